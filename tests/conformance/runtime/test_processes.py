"""Nothing of a command outlives its answer, whatever it does to hide; its neighbours are left alone."""
import concurrent.futures
import os
import pathlib
import signal
import threading
import time

import pytest
import rt
from rt import PYTHON, processes_with, wait_until

DAEMON = """
import os, signal, sys, time
for s in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
    signal.signal(s, signal.SIG_IGN)
if os.fork():
    time.sleep(float(sys.argv[2]))
    sys.exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.execvp('sleep', ['sleep', '300', sys.argv[1]])
"""


def assert_gone(runtime, marker):
    assert processes_with(marker) == []
    wait_until(lambda: not runtime.below(), 1, "no process and no zombie is left")


def test_timeout_ends_all_descendants(client, runtime, marker):
    script = f"""
    for i in 1 2 3; do (while :; do echo $i >> growing; sleep 0.02 {marker}; done) & done
    sh -c 'sh -c "sleep 300 {marker}" & sleep 300 {marker}' & wait
    """
    end = client.execute(["sh", "-c", script], timeout_seconds=0.4)
    assert end["exit_code"] == 124 and end["duration_ms"] < 600
    assert_gone(runtime, marker)
    size = (runtime.root / "growing").stat().st_size
    assert size > 0
    time.sleep(0.1)
    assert (runtime.root / "growing").stat().st_size == size


def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_answer(client, runtime, marker):
    begin = time.monotonic()
    end = client.execute(["sh", "-c", f"sleep 20 {marker} & echo STARTED"])
    assert time.monotonic() - begin < 1
    assert (end["stdout"], end["exit_code"], end["timed_out"]) == ("STARTED\n", 0, False)
    assert_gone(runtime, marker)


def test_all_output_before_the_exit_is_there_though_a_child_lives(client, runtime, marker):
    code = f"import os,subprocess;subprocess.Popen(['sleep','20','{marker}']);os.write(1,b'x'*1048576) and os._exit(0)"
    end = client.python("import sys\n" + code)
    assert end["stdout_bytes"] == 1048576 and not end["truncated"]
    assert_gone(runtime, marker)


def test_what_a_child_writes_right_after_the_exit_is_kept(client):
    end = client.execute(["sh", "-c", "(sleep 0.03; echo late) & echo early"])
    assert end["stdout"] == "early\nlate\n"


def test_a_survivor_that_writes_for_ever_is_cut_off(client, runtime, marker):
    begin = time.monotonic()
    end = client.execute(["bash", "-c", f"(exec -a {marker} yes) & exit 3"])
    assert time.monotonic() - begin < 2 and end["exit_code"] == 3
    assert_gone(runtime, marker)


def test_a_daemon_in_its_own_session_dies_at_the_timeout(client, runtime, marker):
    end = client.python(DAEMON, marker, "60", timeout_seconds=0.5)
    assert end["exit_code"] == 124 and end["duration_ms"] < 700
    assert_gone(runtime, marker)


def test_a_daemon_in_its_own_session_dies_after_the_exit(client, runtime, marker):
    end = client.python(DAEMON, marker, "0.2")
    assert end["exit_code"] == 0 and not end["timed_out"]
    assert_gone(runtime, marker)


def test_ignoring_every_signal_does_not_help(client, runtime, marker):
    end = client.execute(["sh", "-c", f"trap '' TERM INT HUP QUIT; while :; do :; done # {marker}"], timeout_seconds=0.3)
    assert end["exit_code"] == 124 and end["duration_ms"] < 500
    assert_gone(runtime, marker)


def test_stopped_processes_die_too(client, runtime, marker):
    script = f"sleep 300 {marker} & kill -STOP $!; setsid sleep 301 {marker} & kill -STOP $!; kill -STOP $$"
    end = client.execute(["sh", "-c", script], timeout_seconds=0.3)
    assert end["exit_code"] == 124 and end["duration_ms"] < 500
    assert_gone(runtime, marker)


@pytest.mark.parametrize("sig", ["STOP", "TERM", "HUP", "USR1"])
def test_a_command_that_signals_its_minder_gains_nothing(client, runtime, marker, sig):
    end = client.execute(["sh", "-c", f"kill -{sig} $PPID; sleep 300 {marker}"], timeout_seconds=0.4)
    assert (end["exit_code"], end["timed_out"]) == (124, True) and end["duration_ms"] < 600
    assert_gone(runtime, marker)


def test_a_command_that_stops_its_minder_has_its_own_end(client, runtime, marker):
    end = client.execute(["sh", "-c", f"setsid sleep 300 {marker} & kill -STOP $PPID; kill -STOP $PPID; exit 7"], timeout_seconds=5)
    assert (end["exit_code"], end["timed_out"]) == (7, False) and end["duration_ms"] < 1000
    assert_gone(runtime, marker)


def test_a_command_that_kills_its_minder_ends(client, runtime, marker):
    end = client.execute(["sh", "-c", f"setsid sleep 300 {marker} & kill -KILL $PPID; sleep 300 {marker}"], timeout_seconds=9)
    assert (end["exit_code"], end["signal"], end["timed_out"]) == (137, 9, False)
    assert "minder" in end["detail"] and end["duration_ms"] < 2000
    assert_gone(runtime, marker)


@pytest.mark.parametrize("sig", ["TERM", "INT", "KILL", "STOP", "HUP", "QUIT", "CHLD", "PIPE", "USR1"])
def test_a_command_cannot_signal_the_first_process(start, sig):
    runtime = start("pid1")
    with runtime.client() as client:
        assert client.execute(["sh", "-c", f"kill -{sig} 1; kill -{sig} 1"])["exit_code"] == 0
        assert client.execute(["echo", "alive"], timeout_seconds=2)["stdout"] == "alive\n"
        client.execute(["sh", "-c", f"kill -{sig} -1"])
        assert client.execute(["echo", "alive"], timeout_seconds=2)["stdout"] == "alive\n"


def test_minder_and_runtime_cannot_be_taken_over(client):
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
buf = ctypes.create_string_buffer(8)
class vec(ctypes.Structure):
    _fields_ = [('p', ctypes.c_void_p), ('n', ctypes.c_size_t)]
ours, theirs = vec(ctypes.addressof(buf), 8), vec(0x400000, 8)
minder = os.getppid()
for pid in (minder, int(open(f'/proc/{minder}/stat').read().rsplit(')', 1)[1].split()[1])):
    fd = os.pidfd_open(pid)
    print(libc.ptrace(16, pid, 0, 0), ctypes.get_errno())
    print(libc.syscall(438, fd, 3, 0), ctypes.get_errno())
    print(libc.process_vm_readv(pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0), ctypes.get_errno())
"""
    assert client.python(code)["stdout"] == "-1 1\n" * 6


def test_minder_and_runtime_cannot_be_looked_into(client, runtime):
    code = """
import os
for pid in (os.getppid(), int(open(f'/proc/{os.getppid()}/stat').read().rsplit(')', 1)[1].split()[1])):
    for name in ('mem', 'fd', 'environ', 'maps', 'fd/3', 'cwd', 'root'):
        try:
            os.listdir(f'/proc/{pid}/{name}') if name == 'fd' else open(f'/proc/{pid}/{name}', 'rb').read(1)
            print('open', pid, name)
        except PermissionError:
            pass
        except OSError as e:
            if e.errno not in (13, 21):
                print(name, e)
"""
    assert client.python(code)["stdout"] == ""


def test_neighbours_of_an_ended_command_live_on(client, runtime, marker):
    with runtime.client() as other:
        other.send("POST", "/execute", {"command": ["sh", "-c", "setsid sleep 0.9 & (sleep 0.82; echo child) & sleep 0.8; echo done"]})
        for _ in range(5):
            assert client.python(DAEMON, marker, "60", timeout_seconds=0.1)["exit_code"] == 124
            assert processes_with(marker) == []
            assert client.execute(["sh", "-c", f"kill -KILL $PPID; sleep 300 {marker}"])["exit_code"] == 137
        end = other.read().json
    assert (end["stdout"], end["exit_code"]) == ("done\nchild\n", 0)
    assert_gone(runtime, marker)


def test_each_of_200_parallel_runs_gets_its_own_status(runtime):
    local = threading.local()

    def run(i):
        if not hasattr(local, "client"):
            local.client = runtime.client()
        end = local.client.execute(["sh", "-c", f"(sleep 0.01 &) ; echo {i}; exit {i % 200}"])
        return end["exit_code"] == i % 200 and end["stdout"] == f"{i}\n"

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        assert all(pool.map(run, range(200)))
    wait_until(lambda: not runtime.below(), 1, "no zombie is left")


def test_orphans_are_reaped_while_the_command_runs(client, runtime):
    end = client.execute(["sh", "-c", "for i in $(seq 150); do (sleep 0.001 &); done; sleep 0.5; "
                          "cat /proc/[0-9]*/stat 2>/dev/null | awk -v minder=$PPID '$3 == \"Z\" && $4 == minder' | wc -l"])
    assert end["stdout"].strip() == "0"


BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"


@pytest.mark.parametrize("mode", ["plain", "pid1"])
@pytest.mark.parametrize("neighbour", [False, True])
def test_a_fork_bomb_leaves_the_runtime_serving(start, mode, neighbour):
    uid = 64000 + os.getpid() % 1000 if os.geteuid() == 0 else os.geteuid()
    runtime = start(mode, uid=uid, wrap=["prlimit", "--nproc=80"] if os.geteuid() == 0 else [])
    with runtime.client() as client, runtime.client() as health, runtime.client() as other:
        if neighbour:
            other.send("POST", "/execute", {"command": ["sleep", "3"]})
        client.send("POST", "/execute", {"command": [PYTHON, "-c", BOMB], "timeout_seconds": 1})
        until, answers = time.monotonic() + 0.9, 0
        while time.monotonic() < until:
            assert health.call("GET", "/").status == 200
            answers += 1
        assert answers > 20
        end = client.read().json
        assert end["exit_code"] == 124 and end["duration_ms"] < 1500, end
        assert client.execute(["echo", "alive"])["stdout"] == "alive\n"
        if neighbour:
            assert other.read().json["exit_code"] == 0
    wait_until(lambda: not runtime.below(), 2, "nothing is left")


def test_no_process_to_be_had_is_503_and_may_be_tried_again(start, marker):
    if os.geteuid() != 0:
        pytest.fail("this test needs root to have a user of its own")
    runtime = start("pid1", uid=65000 + os.getpid() % 500, wrap=["prlimit", "--nproc=3"])
    with runtime.client() as client, runtime.client() as other:
        other.send("POST", "/execute", {"command": ["sleep", "1", marker]})
        wait_until(lambda: processes_with(f"sleep 1 {marker}"))
        reply = client.call("POST", "/execute", {"command": ["true"]})
        assert reply.status == 503 and reply.headers["retry-after"] == "1"
        assert "no process could be started" in reply.json["detail"]
        assert other.read().json["exit_code"] == 0
        wait_until(lambda: client.call("POST", "/execute", {"command": ["true"]}).status == 200)


def memory_group():
    """A fresh memory cgroup of 64 MiB; yields nothing where we may not make one."""
    v2 = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
    base = pathlib.Path("/sys/fs/cgroup" if v2 else "/sys/fs/cgroup/memory")
    group = base / f"stk-test-rt-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    if v2:
        (group / "memory.max").write_text("64M")
        (group / "memory.swap.max").write_text("0")
    else:
        (group / "memory.limit_in_bytes").write_text("64M")
    return group


@pytest.fixture
def limited():
    group = memory_group()
    yield group
    wait_until(lambda: not (group / "cgroup.procs").read_text(), 5, "the group is empty")
    group.rmdir()


@pytest.mark.parametrize("mode", ["plain", "pid1"])
def test_out_of_memory_is_told_and_the_runtime_survives(limited, start, mode):
    runtime = start(mode, preexec=lambda: (limited / "cgroup.procs").write_text("0"))
    with runtime.client() as client:
        end = client.python("b = bytearray(1 << 30)\nfor i in range(0, len(b), 4096): b[i] = 1")
        assert (end["exit_code"], end["signal"], end["oom_killed"]) == (137, 9, True)
        end = client.execute(["sh", "-c", f"{PYTHON} -c 'b = bytearray(1 << 30)'; exit 4"])
        assert (end["exit_code"], end["oom_killed"]) == (4, True)
        end = client.python("import resource;resource.setrlimit(resource.RLIMIT_AS,(1<<26,1<<26));b=bytearray(1<<30)")
        assert (end["exit_code"], end["oom_killed"]) == (1, False) and "MemoryError" in end["stderr"]
        end = client.execute(["sh", "-c", "kill -9 $$"])
        assert (end["exit_code"], end["oom_killed"]) == (137, False)
        assert client.execute(["cat", "/proc/self/oom_score_adj"])["stdout"] == "1000\n"
    assert pathlib.Path(f"/proc/{runtime.pid}/oom_score_adj").read_text() == "0\n"


def test_the_runtime_stops_on_sigterm_and_takes_everything_with_it(start, marker):
    runtime = start("plain")
    with runtime.client() as client:
        client.send("POST", "/execute", {"command": [PYTHON, "-c", DAEMON, marker, "60"]})
        wait_until(lambda: len(processes_with(marker)) >= 2, what="the daemon runs")
        runtime.proc.send_signal(signal.SIGTERM)
        assert runtime.proc.wait(5) == 0
    assert processes_with(marker) == []


@pytest.mark.parametrize("mode", ["plain", "pid1"])
def test_a_killed_runtime_cuts_the_answer_and_never_invents_one(start, mode, marker):
    for i in range(10):
        runtime = start(mode)
        with runtime.client() as client:
            frames = client.stream(["sh", "-c", f"echo begun; exec sleep 300 {marker}"])
            assert "stdout" in next(frames)
            runtime.kill()
            with pytest.raises((ConnectionError, ValueError)):
                list(frames)
        wait_until(lambda: not processes_with(marker), 2, "the command dies with its runtime")
