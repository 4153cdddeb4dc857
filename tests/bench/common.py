"""What the benches share: one JSON line per figure, an instance of `stockade up` of their own, CPU time and memory from /proc."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness.paths import BUILD, environment  # noqa: E402
from harness.up import Up  # noqa: E402
from harness.wait import until  # noqa: E402

RUN = "/api/admin/platform/agent-sandbox/run"
CGROUP = os.environ.get("STOCKADE_BENCH_CGROUP", "stockade-bench")
TICK = os.sysconf("SC_CLK_TCK")


def at(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def figure(name, **values):
    """One line; floats are cut to what means something."""
    cut = {key: round(value, 3) if isinstance(value, float) else value for key, value in values.items()}
    print(json.dumps({"name": name, **cut}), flush=True)


def timed(name, times, floor_name=None, floors=(), **more):
    """A figure of times in milliseconds beside a floor that was measured in turn with it."""
    values = {"unit": "ms", "n": len(times), "p50": at(times, 0.5), "p99": at(times, 0.99)}
    if floors:
        values |= {"floor": floor_name, "floor_p50": at(floors, 0.5), "over_ms": at(times, 0.5) - at(floors, 0.5),
                   "ratio": at(times, 0.5) / at(floors, 0.5)}
    figure(name, **values, **more)


@contextlib.contextmanager
def folder_in_memory():
    """On a tmpfs, as /run is on a host that boots; where there is none, on the disk."""
    parent = "/dev/shm" if os.path.ismount("/dev/shm") else None
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stk-bench-", dir=parent))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def instance(agents=None, **settings):
    """`stockade up` with its state on the disk and its short-lived files in memory."""
    with folder_in_memory() as run_dir, Up(settings={"worker.cgroup": CGROUP, **settings}) as up:
        up.run_dir = run_dir
        up.start()
        up.api.configure(agents or {"bench": {"allow": []}})
        yield up
        assert up.stop() == 0, up.log()[-2000:]


def cpu_seconds(pid):
    """Of all threads, ended ones included; not of children."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def when_idle(pid, quiet=0.5, limit=60):
    """Waits until a process has used nearly nothing for a while; its CPU seconds then."""
    end = time.monotonic() + limit
    while True:
        before = cpu_seconds(pid)
        time.sleep(quiet)
        after = cpu_seconds(pid)
        if after - before <= 0.05 * quiet or time.monotonic() > end:
            return after


def private_kib(pid):
    total = 0
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.startswith("Private_"):
            total += int(value.split()[0])
    return total


def bare(*command):
    """Milliseconds of a program started and waited for with nothing between."""
    since = time.perf_counter()
    pid = os.posix_spawn(command[0], command, {"PATH": "/usr/bin:/bin"})
    _, status = os.waitpid(pid, 0)
    assert status == 0, (command, status)
    return (time.perf_counter() - since) * 1e3


def load(address, count, connections, status, request):
    """bench_load's figures for one request sent again and again."""
    done = subprocess.run([BUILD / "tests/bench/bench_load", address, str(count), str(connections), str(status)], input=request,
                          stdout=subprocess.PIPE, check=True, env=environment())
    return json.loads(done.stdout)


def pool(api, size):
    """A warm pool of the agent `bench`, full."""
    api.ok("PUT", "/v1/pools/bench", {"agent": "bench", "target": size, "min": 1, "max": size + 2})
    full(api, size)


def full(api, size):
    until(lambda: api.ok("GET", "/v1/pools")["pools"][0]["warm"] >= size, 60, "a full pool")
