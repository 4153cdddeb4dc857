"""Commands that attack their sandbox. After each: the verdict is right, no trace is left on the host, the next run works, `up` is healthy."""
import os
import pathlib
import textwrap

import pytest

from harness import leftovers
from harness.wait import until

MIB = 1 << 20
LIMITS = {"memory_bytes": 96 * MIB, "pids": 64, "file_bytes": 8 * MIB, "workspace_bytes": 32 * MIB, "tmp_bytes": 16 * MIB, "open_files": 128}
AGENTS = {"helper": {"allow": []}, "small": {"allow": [], "limits": LIMITS}}

# What the programs below have at hand.
PRELUDE = """
import ctypes, errno, os, resource, signal, socket, stat, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    "A system call by number: its result, or the name of its error."
    ctypes.set_errno(0)
    result = libc.syscall(*arguments)
    return result if result >= 0 else errno.errorcode[ctypes.get_errno()]
def refused(what, act):
    "Prints what went through although it must not."
    try:
        result = act()
    except (OSError, ValueError, MemoryError):
        return
    if not isinstance(result, str):
        print("WENT THROUGH", what, result, flush=True)
"""


@pytest.fixture(scope="module")
def hostile(up):
    up.api.configure(AGENTS)
    return up


def left(hostile):
    """What is left now; what goes away while it is looked at counts as there."""
    try:
        return leftovers.everything(hostile)
    except FileNotFoundError as gone:
        return {"going": str(gone)}


@pytest.fixture(autouse=True)
def no_trace(hostile):
    yield
    until(lambda: not left(hostile), 15, lambda: f"nothing left of the run: {left(hostile)}")
    assert hostile.process.poll() is None, hostile.log()[-2000:]
    assert hostile.api.get("/healthz").status == 200 and hostile.api.get("/readyz").status == 200
    after = hostile.api.run("small", ["python3", "-c", "print(6 * 7)"])
    assert after["stdout_tail"] == "42\n" and after["reason"] == "exited", after


def attack(hostile, program, agent="small", timeout=20, **more):
    return hostile.api.run(agent, ["python3", "-c", PRELUDE + textwrap.dedent(program)], timeout_seconds=timeout, **more)


def finished(hostile, run):
    def look():
        row = hostile.api.ok("GET", f"/v1/runs/{run}")
        return row if row["state"] == "finished" else None
    return until(look, 20, "finished")


def harmless(result, output="done\n"):
    """It ended by itself and nothing that it tried went through."""
    ended = result["reason"], result["exit_code"], result["stdout_tail"], result["stderr_tail"]
    assert ended == ("exited", 0, output, ""), result


# --- processes

def test_a_fork_bomb_is_bounded_and_ends_at_its_timeout(hostile):
    result = attack(hostile, """
        while True:
            try:
                os.fork()
            except OSError:
                pass
    """, timeout=2)
    assert result["reason"] == "timeout" and result["exit_code"] == 124 and result["timed_out"], result
    assert result["duration_ms"] < 5000, result


def test_a_fork_bomb_that_exits_is_gone_with_its_leader(hostile):
    result = attack(hostile, """
        for _ in range(200):
            try:
                if os.fork() == 0:
                    os.setsid()
                    while True:
                        signal.pause()
            except OSError:
                break
        os._exit(3)
    """)
    assert result["reason"] == "exited" and result["exit_code"] == 3, result


def test_a_daemon_in_its_own_session_does_not_outlive_the_run(hostile):
    result = attack(hostile, """
        for number in set(range(1, 65)) - {signal.SIGCHLD}:
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.chdir("/")
                os.closerange(0, 256)
                while True:
                    time.sleep(1)
            os._exit(0)
        os.wait()
        print("done", flush=True)
    """)
    harmless(result)


def test_a_command_that_stops_itself_and_its_minder_ends_at_its_timeout(hostile):
    result = attack(hostile, """
        print("before", flush=True)
        os.kill(os.getppid(), signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
    """, timeout=1)
    assert result["reason"] == "timeout" and result["stdout_tail"] == "before\n", result
    assert result["duration_ms"] < 4000, result


def test_a_command_that_kills_all_it_may_ends_as_killed_and_never_as_a_success(hostile):
    result = attack(hostile, """
        os.kill(-1, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert result["reason"] == "signaled" and result["exit_code"] == 137 and result["signal"] == 9, result


def test_a_command_that_attacks_the_first_process_gains_nothing(hostile):
    result = attack(hostile, """
        for number in range(1, 65):
            try:
                os.kill(1, number)
            except OSError:
                pass
        refused("ptrace attach", lambda: call(101, 16, 1, 0, 0))
        refused("ptrace seize", lambda: call(101, 0x4206, 1, 0, 0))
        for name in ("mem", "environ", "maps", "fd", "root/etc/shadow", "exe", "auxv", "stack", "syscall", "io"):
            path = f"/proc/1/{name}"
            refused(path, lambda: os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1))
        refused("pidfd_getfd", lambda: call(438, call(434, 1, 0), 3, 0))
        buffer = ctypes.create_string_buffer(64)
        refused("process_vm_readv", lambda: call(310, 1, ctypes.byref(buffer), 1, ctypes.byref(buffer), 1, 0))
        refused("kcmp", lambda: call(312, os.getpid(), 1, 0, 0, 0))
        refused("prlimit of the first process", lambda: call(302, 1, 7, 0, ctypes.byref(buffer)))
        print("done")
    """)
    harmless(result)


def test_closing_every_descriptor_loses_the_output_and_not_the_status(hostile):
    result = attack(hostile, """
        os.closerange(0, 4096)
        os._exit(7)
    """)
    assert result["reason"] == "exited" and result["exit_code"] == 7 and result["stdout_tail"] == "", result


def test_threads_count_as_processes(hostile):
    result = attack(hostile, """
        started = 0
        threading.stack_size(65536)
        try:
            for _ in range(1000):
                threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
                started += 1
        except RuntimeError:
            pass
        print("bounded" if started < 80 else f"{started} threads", flush=True)
        os._exit(0)
    """)
    harmless(result, "bounded\n")


def test_priorities_affinity_and_scheduling_do_not_touch_the_host(hostile):
    result = attack(hostile, """
        refused("nice -20", lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))
        refused("real-time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))
        refused("raise a limit", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20)))
        refused("lower oom_score_adj", lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"-1000"))
        print("done")
    """)
    harmless(result)


def test_a_command_cannot_take_the_first_processs_turn_when_its_deadline_comes(hostile):
    result = attack(hostile, """
        for pid in (1, 2):
            refused("renice", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
            refused("idle class", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))
        refused("renice all of the user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
        os.nice(1)
        print("spins", flush=True)
        for _ in range(20):
            if os.fork() == 0:
                break
        while True:
            pass
    """, timeout=1)
    assert (result["reason"], result["exit_code"], result["stdout_tail"]) == ("timeout", 124, "spins\n"), result
    assert result["detail"] == "" and result["duration_ms"] < 3000, result  # by the runtime, not by the end of its sandbox


# --- memory and output

def test_more_memory_than_the_limit_is_out_of_memory(hostile):
    result = attack(hostile, """
        kept = []
        while True:
            kept.append(bytearray(4 << 20))
    """)
    assert result["reason"] == "oom" and result["exit_code"] == 137 and result["oom_killed"], result


def test_a_child_that_runs_out_of_memory_is_told_and_its_parent_goes_on(hostile):
    result = attack(hostile, """
        child = os.fork()
        if child == 0:
            kept = []
            while True:
                kept.append(bytearray(4 << 20))
        _, status = os.waitpid(child, 0)
        print("signal", os.WTERMSIG(status))
    """)
    assert result["reason"] == "exited" and result["exit_code"] == 0 and result["oom_killed"], result
    assert result["stdout_tail"] == "signal 9\n", result


def test_memory_in_shared_segments_and_files_counts(hostile):
    result = attack(hostile, """
        fd = os.memfd_create("all")
        try:
            while True:
                os.write(fd, bytes(4 << 20))
        except OSError:
            os.dup2(fd, 100)
        kept = [bytearray(4 << 20)]
        while True:
            try:
                descriptor = os.memfd_create("more")
                os.write(descriptor, bytes(8 << 20))
            except OSError:
                kept.append(bytearray(4 << 20))
    """)
    assert result["oom_killed"] and result["exit_code"] == 137, result


def test_a_flood_of_output_is_cut_and_its_status_kept(hostile):
    result = attack(hostile, """
        block = b"x" * (1 << 20)
        for _ in range(512):
            sys.stdout.buffer.write(block)
        sys.stdout.flush()
        sys.exit(5)
    """, timeout=60)
    assert result["reason"] == "exited" and result["exit_code"] == 5, result
    assert result["truncated"] and result["stdout_bytes"] == 512 * MIB, result
    assert len(result["stdout_tail"]) <= 65536 + 200, len(result["stdout_tail"])


def test_a_flood_of_bytes_that_are_no_text_is_delivered_as_json(hostile):
    result = attack(hostile, """
        sys.stdout.buffer.write(b"\\0\\xff\\x1b" * (1 << 20))
        sys.stderr.buffer.write(b"\\0" * (1 << 20))
    """)
    assert result["reason"] == "exited" and result["exit_code"] == 0 and result["truncated"], result
    assert result["stdout_bytes"] == 3 * MIB and result["stderr_bytes"] == MIB, result


# --- the runtime's links

def test_the_runtimes_links_are_out_of_reach(hostile):
    result = attack(hostile, """
        for path in ("/.stockade/l/s", "/.stockade/p/s", "/.stockade/l/x"):
            refused(f"write {path}", lambda: open(path, "w"))
        refused("dial the worker", lambda: socket.socket(socket.AF_UNIX).connect("/.stockade/l/s"))
        for name in ("l", "p", ""):
            refused(f"replace /.stockade/{name}", lambda: os.rename(f"/.stockade/{name}", "/.stockade/old"))
            refused(f"link in /.stockade/{name}", lambda: os.symlink("/etc/passwd", f"/.stockade/{name}/link"))
        refused("write to the runtime", lambda: open("/.stockade/runtime", "r+b"))
        print(os.listdir("/.stockade/l"))
        for port in range(1, 9000, 7):
            if port == 3128:
                continue
            with socket.socket() as sock:
                refused(f"port {port}", lambda: sock.connect(("127.0.0.1", port)))
        print("done")
    """)
    harmless(result, "[]\ndone\n")


def test_the_proxys_socket_gives_no_control_over_the_proxy(hostile):
    result = attack(hostile, """
        sock = socket.socket(socket.AF_UNIX)
        sock.connect("/.stockade/p/s")
        sock.sendall(b'{"kind":"policy","version":99,"run":"","body":{"version":99,"allow":["*.example.org"]}}\\n')
        sock.settimeout(5)
        answer = sock.recv(4096)
        print(answer.split(b"\\r\\n")[0].decode() if answer.startswith(b"HTTP/1.1 4") or not answer else answer)
    """)
    assert result["reason"] == "exited" and result["exit_code"] == 0, result
    assert "200" not in result["stdout_tail"] and "policy_ok" not in result["stdout_tail"], result
    assert result["egress_allowed"] == 0, result


# --- the network

def test_no_address_but_the_proxys_is_reachable(hostile):
    host = hostile.url.removeprefix("http://")
    port = int(host.rpartition(":")[2])
    result = attack(hostile, f"""
        for address in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.0.1", "1.1.1.1", "8.8.8.8", "100.100.100.200", "0.0.0.0"):
            for port in ({port}, 22, 53, 80, 443, 2375, 8888):
                with socket.socket() as sock:
                    sock.settimeout(1)
                    refused(f"tcp {{address}}:{{port}}", lambda: sock.connect((address, port)))
            if not address.startswith("127.") and address != "0.0.0.0":
                with socket.socket(type=socket.SOCK_DGRAM) as sock:
                    refused(f"udp {{address}}", lambda: sock.sendto(b"x", (address, 53)))
        for address in ("::1", "fe80::1", "fd00:ec2::254", "2606:4700:4700::1111"):
            with socket.socket(socket.AF_INET6) as sock:
                sock.settimeout(1)
                refused(f"tcp [{{address}}]", lambda: sock.connect((address, {port})))
        with socket.socket(type=socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            refused("broadcast", lambda: sock.sendto(b"x", ("255.255.255.255", 67)))
        refused("resolve", lambda: socket.getaddrinfo("example.org", 80))
        print([line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line])
        print("done")
    """)
    harmless(result, "['lo']\ndone\n")
    assert result["egress"] == [], result


def test_no_other_family_and_no_raw_socket_is_to_be_had(hostile):
    result = attack(hostile, """
        plain = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6}
        for family in range(0, 46):
            for kind in range(1, 11):
                for protocol in (0, 1, 6, 17, 255):
                    made = call(41, family, kind, protocol)
                    if isinstance(made, int):
                        os.close(made)
                        if family not in plain or kind in (4, 10) or (kind == 3 and family != socket.AF_UNIX):
                            print("WENT THROUGH", family, kind, protocol)
        refused("io_uring", lambda: call(425, 8, ctypes.create_string_buffer(256)))
        print("done")
    """)
    harmless(result)


def test_abstract_sockets_of_the_host_are_not_there(hostile):
    import socket
    name = "\0stk-test-" + str(os.getpid())
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        result = attack(hostile, f"""
            refused("abstract socket", lambda: socket.socket(socket.AF_UNIX).connect({name!r}))
            print("done")
        """)
    harmless(result)


# --- files

def test_nothing_but_workspace_and_tmp_can_be_written(hostile):
    result = attack(hostile, """
        for folder, names, files in os.walk("/"):
            if folder.startswith(("/proc", "/workspace", "/tmp", "/dev/shm")):
                names[:] = []
                continue
            if folder.count("/") > 3:
                names[:] = []
            refused(f"make a file in {folder}", lambda: os.close(os.open(os.path.join(folder, "stk-new"), os.O_CREAT | os.O_EXCL)))
            refused(f"make a folder in {folder}", lambda: os.mkdir(os.path.join(folder, "stk-dir")))
            for name in files[:20]:
                path = os.path.join(folder, name)
                if not stat.S_ISREG(os.lstat(path).st_mode):
                    continue
                refused(f"write {path}", lambda: open(path, "r+b"))
                refused(f"unlink {path}", lambda: os.unlink(path))
                refused(f"chmod {path}", lambda: os.chmod(path, 0o777))
        for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches",
                     "/proc/sys/net/ipv4/ip_forward", "/proc/self/uid_map", "/proc/self/setgroups"):
            refused(f"write {path}", lambda: os.write(os.open(path, os.O_WRONLY), b"1"))
        for path in ("/workspace/a", "/tmp/a", "/dev/shm/a"):
            open(path, "w").write("x")
        print("done")
    """)
    harmless(result)


def test_no_path_or_name_of_the_host_can_be_read(hostile):
    result = attack(hostile, f"""
        for path in ("/etc/shadow", "/root/.ssh", "/home", "/var/log", "/run/docker.sock", "/sys/kernel", "/sys/fs/cgroup", "/boot", "/mnt", "/lost+found",
                     {str(hostile.state_dir)!r}, {str(hostile.run_dir)!r}, "/proc/kcore", "/proc/kallsyms", "/proc/keys", "/proc/timer_list", "/dev/mem",
                     "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/fuse", "/dev/kvm", "/dev/net/tun"):
            refused(f"read {{path}}", lambda: "empty" if not (os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)) else 1)
        import platform
        print(platform.node(), open("/etc/hostname").read() if os.path.exists("/etc/hostname") else "", sep="")
        print(sorted(os.listdir("/etc")))
        print([name for name in os.listdir("/proc") if name.isdigit() and int(name) > 400])
    """)
    assert result["reason"] == "exited" and result["exit_code"] == 0, result
    lines = result["stdout_tail"].splitlines()
    assert lines == ["sandbox", "['alternatives', 'group', 'hosts', 'ld.so.cache', 'nsswitch.conf', 'passwd', 'resolv.conf', 'ssl']", "[]"], lines
    assert os.uname().nodename not in result["stdout_tail"] or os.uname().nodename == "sandbox"


def test_a_file_over_the_limit_ends_its_writer_and_not_the_sandbox(hostile):
    result = attack(hostile, """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open("/workspace/big", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 20))
            except OSError as error:
                print(errno.errorcode[error.errno], file.tell() >> 20)
    """)
    harmless(result, "EFBIG 8\n")


def test_a_full_workspace_is_an_error_of_the_command_alone(hostile):
    result = attack(hostile, """
        for place, size in (("/workspace", 32), ("/tmp", 16)):
            written = 0
            try:
                for number in range(100):
                    with open(f"{place}/{number}", "wb", buffering=0) as file:
                        for _ in range(4):
                            written += file.write(bytes(1 << 20))
            except OSError as error:
                print(place, errno.errorcode[error.errno], (written >> 20) <= size)
    """)
    harmless(result, "/workspace ENOSPC True\n/tmp ENOSPC True\n")


def test_very_many_files_and_links_cost_nobody_else(hostile):
    result = attack(hostile, """
        made = 0
        try:
            for number in range(100_000):
                os.close(os.open(f"/workspace/{number}", os.O_CREAT | os.O_WRONLY))
                made += 1
            for number in range(1000):
                os.symlink("/" * 4000, f"/tmp/{number}")
        except OSError as error:
            print("stopped", errno.errorcode[error.errno])
        os.symlink("loop", "/tmp/loop")
        refused("a loop of links", lambda: open("/tmp/loop"))
        print("done" if made else "none")
    """, timeout=60)
    assert result["reason"] in ("exited", "oom"), result
    assert result["reason"] == "oom" or result["stdout_tail"].endswith("done\n"), result


def test_a_tree_as_deep_as_it_goes_is_removed(hostile):
    result = attack(hostile, """
        os.chdir("/workspace")
        try:
            for _ in range(20000):
                os.mkdir("d" * 200)
                os.chdir("d" * 200)
        except OSError:
            pass
        print("done")
    """, timeout=60)
    harmless(result)


# --- privileges

def test_no_device_node_can_be_made(hostile):
    result = attack(hostile, """
        for kind, major, minor in ((stat.S_IFBLK, 254, 0), (stat.S_IFBLK, 8, 0), (stat.S_IFCHR, 1, 1), (stat.S_IFCHR, 1, 11), (stat.S_IFCHR, 10, 200)):
            for place in ("/workspace", "/tmp", "/dev/shm"):
                refused(f"mknod {kind} {major}:{minor}", lambda: os.mknod(f"{place}/node", kind | 0o666, os.makedev(major, minor)))
        os.mkfifo("/workspace/fifo")
        print(sorted(name for name in os.listdir("/dev") if not os.path.islink(f"/dev/{name}")))
    """)
    harmless(result, "['full', 'null', 'random', 'shm', 'tty', 'urandom', 'zero']\n")


PRIVILEGED = {"mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "clone3": 435, "open_tree": 428, "move_mount": 429,
              "fsopen": 430, "fsmount": 432, "mount_setattr": 442, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "keyctl": 250, "add_key": 248,
              "request_key": 249, "init_module": 175, "finit_module": 313, "kexec_load": 246, "reboot": 169, "swapon": 167, "acct": 163, "quotactl": 179,
              "syslog": 103, "iopl": 172, "ioperm": 173, "settimeofday": 164, "adjtimex": 159, "clock_settime": 227, "sethostname": 170, "setdomainname": 171,
              "open_by_handle_at": 304, "name_to_handle_at": 303, "fanotify_init": 300, "io_uring_setup": 425, "io_setup": 206, "ptrace": 101, "process_vm_writev": 311,
              "pidfd_getfd": 438, "landlock_create_ruleset": 444, "modify_ldt": 154, "vhangup": 153, "lookup_dcookie": 212, "move_pages": 279, "mbind": 237,
              "migrate_pages": 256, "nfsservctl": 180, "uselib": 134, "ustat": 136, "sysfs": 139, "memfd_secret": 447, "process_madvise": 440}


def test_no_privileged_call_is_there(hostile):
    result = attack(hostile, f"""
        buffer = ctypes.create_string_buffer(256)
        for name, number in {PRIVILEGED!r}.items():
            answer = call(number, ctypes.byref(buffer), ctypes.byref(buffer), ctypes.byref(buffer), 0, 0, 0)
            if answer not in ("ENOSYS", "EPERM"):
                print("WENT THROUGH", name, answer)
        for flag in (0x10000000, 0x40000000, 0x20000, 0x20000000, 0x4000000, 0x8000000, 0x2000000, 0x80):
            answer = call(272, flag)
            if isinstance(answer, int):
                print("WENT THROUGH unshare", flag)
        for flag in (0x10000000, 0x40000000, 0x20000, 0x20000000, 0x4000000, 0x8000000, 0x2000000):
            answer = call(56, flag | signal.SIGCHLD, 0, 0, 0, 0)
            if answer == 0:
                os._exit(0)
            if isinstance(answer, int):
                print("WENT THROUGH clone", flag)
        print("done")
    """)
    harmless(result)


def test_no_privilege_can_be_had(hostile):
    result = attack(hostile, """
        for number in (0, 1, 65534, 100000):
            refused(f"uid {number}", lambda: os.setuid(number))
            refused(f"gid {number}", lambda: os.setgid(number))
        refused("groups", lambda: os.setgroups([0]))
        with open("/workspace/suid", "wb") as file:
            file.write(open("/usr/bin/id", "rb").read())
        os.chmod("/workspace/suid", 0o6777)
        print(subprocess.run(["/workspace/suid", "-u"], capture_output=True, text=True).stdout.strip())
        for program in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/newuidmap", "/usr/bin/mount", "/usr/bin/chsh"):
            if os.path.exists(program):
                code = "import os; print(os.geteuid())"
                done = subprocess.run([program], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        print([status[name].strip() for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")])
    """)
    zero = "0" * 16
    harmless(result, f"65532\n['{zero}', '{zero}', '{zero}', '{zero}', '{zero}', '1', '2']\n")


def test_typing_into_a_terminal_is_not_possible(hostile):
    result = attack(hostile, """
        import fcntl
        refused("TIOCSTI", lambda: fcntl.ioctl(0, 0x5412, b"x"))
        refused("TIOCSTI with high bits", lambda: call(16, 0, ctypes.c_ulong(0x100005412), b"x"))
        refused("a terminal", lambda: os.open("/dev/tty", os.O_RDWR))
        refused("a new terminal", lambda: os.openpty())
        print("done")
    """)
    harmless(result)


# --- names

@pytest.mark.parametrize("agent", ["a", "A.b_c-9", "x" * 128])
def test_any_name_that_is_allowed_can_be_run(hostile, agent):
    hostile.api.configure({**AGENTS, agent: {"allow": []}})
    try:
        result = hostile.api.run(agent, ["echo", agent], labels={"team": "ä/ö ü", "x": ""})
        assert result["stdout_tail"] == agent + "\n", result
    finally:
        hostile.api.configure(AGENTS)


# --- the host's side

def test_a_sandbox_whose_first_process_is_killed_from_outside_ends_its_run_once(hostile):
    def inside():
        return [pid for pid, line in leftovers.processes(hostile) if line.startswith("/.stockade/runtime")]
    until(lambda: not inside(), 20, "an earlier run's sandbox is gone")
    run = hostile.api.submit("small", ["sleep", "60"], timeout_seconds=60)
    first = until(inside, 20, "the sandbox's first process")[0]
    until(lambda: hostile.api.ok("GET", f"/v1/runs/{run}")["state"] == "running", 20, "running")
    until(lambda: any("sleep" in line for _, line in leftovers.processes(hostile)), 20, "the command")
    os.kill(first, 9)
    ended = finished(hostile, run)
    assert ended["reason"] == "sandbox_failed", ended


def test_a_run_whose_proxy_is_killed_has_no_network_and_ends(hostile):
    run = hostile.api.submit("small", ["sleep", "60"], timeout_seconds=60)

    def proxies():
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and parent(entry) == hostile.process.pid and
                b"stockade-egress-proxy" in pathlib.Path("/proc", entry, "cmdline").read_bytes()]

    def parent(entry):
        try:
            return int(pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            return 0
    until(lambda: hostile.api.ok("GET", f"/v1/runs/{run}")["state"] == "running", 20, "running")
    for pid in until(proxies, 20, "the proxy"):
        os.kill(pid, 9)
    ended = finished(hostile, run)
    assert ended["reason"] == "sandbox_failed", ended


def test_cancelling_a_hostile_run_leaves_nothing(hostile):
    run = hostile.api.submit("small", ["python3", "-c", PRELUDE + textwrap.dedent("""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for _ in range(30):
            if os.fork() == 0:
                os.setsid()
                while True:
                    time.sleep(1)
        print("ready", flush=True)
        time.sleep(100)
    """)], timeout_seconds=100)
    until(lambda: hostile.api.ok("GET", f"/v1/runs/{run}")["state"] == "running", 20, "running")
    until(lambda: len([1 for _, line in leftovers.processes(hostile) if "python3" in line]) > 20, 20, "its processes")
    hostile.api.ok("POST", f"/v1/runs/{run}/cancel", status=(200, 202, 204))
    ended = finished(hostile, run)
    assert ended["reason"] == "cancelled", ended


def freeze(hostile, frozen):
    """Freezes the sandboxes of this worker, as an operator or a snapshot might. v1 or v2."""
    names = {"freezer.state": ("FROZEN", "THAWED"), "cgroup.freeze": ("1", "0")}
    for group in leftovers.cgroups(hostile):
        for name, words in names.items():
            if pathlib.Path(group, name).exists():
                pathlib.Path(group, name).write_text(words[not frozen])


def test_a_frozen_sandbox_is_removed_all_the_same(hostile):
    run = hostile.api.submit("small", ["sleep", "60"], timeout_seconds=60)
    until(lambda: any("sleep" in line for _, line in leftovers.processes(hostile)), 20, "the command")
    freeze(hostile, True)
    hostile.api.ok("POST", f"/v1/runs/{run}/cancel", status=(200, 202, 204))
    ended = finished(hostile, run)
    assert ended["reason"] == "cancelled", ended


def test_a_frozen_sandbox_does_not_hold_its_run_beyond_the_timeout(hostile):
    run = hostile.api.submit("small", ["sleep", "60"], timeout_seconds=2)
    until(lambda: any("sleep" in line for _, line in leftovers.processes(hostile)), 20, "the command")
    freeze(hostile, True)
    ended = finished(hostile, run)
    assert ended["reason"] == "timeout", ended
