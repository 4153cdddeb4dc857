"""What each sandbox costs while it waits: private memory of runtime and proxy; and what a refusal costs."""
import json
import pathlib
import signal
import subprocess
import tempfile

import common
from harness.paths import PROXY, environment

REQUEST = b"CONNECT not-listed.example:443 HTTP/1.1\r\nHost: not-listed.example:443\r\n\r\n"


def named(name):
    """(pid, its cgroups, its parent) of each process whose name begins so."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "comm").read_text().startswith(name):
                    yield int(entry.name), (entry / "cgroup").read_text(), (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue


def idle_memory():
    with common.instance() as up:
        common.pool(up.api, 4)
        worker = up.worker
        runtimes = [common.private_kib(pid) for pid, groups, _ in named("runtime") if worker in groups]
        proxies = [common.private_kib(pid) for pid, _, parent in named("stockade-egress") if parent == str(up.process.pid)]
        assert len(runtimes) >= 4 and len(proxies) >= 4, (runtimes, proxies)
        common.figure("runtime_idle_private_kib", n=len(runtimes), p50=common.at(runtimes, 0.5), p99=max(runtimes), target=1024)
        common.figure("proxy_idle_private_kib", n=len(proxies), p50=common.at(proxies, 0.5), p99=max(proxies), target=2048)
        common.figure("up_private_kib", n=1, p50=common.private_kib(up.process.pid), warm_sandboxes=4)


class Standalone:
    def __init__(self, folder):
        self.path = str(folder / "s")
        policy = folder / "policy.json"
        policy.write_text(json.dumps({"allow": ["listed.example"]}))
        self.process = subprocess.Popen([PROXY, "--listen", f"unix:{self.path}", "--policy", policy, "--resolver", "127.0.0.1:9"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())

    def serving(self):
        """The process that serves: by itself, the proxy is its child's keeper."""
        pid = self.process.pid
        return int((pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split() or [pid])[0])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        pathlib.Path(self.path).unlink(missing_ok=True)


def refusals():
    """Beyond a burst they are slowed down on purpose: what one costs is the figure, not how many there are."""
    with tempfile.TemporaryDirectory(prefix="stk-bench-") as name:
        one = Standalone(pathlib.Path(name))
        common.until(lambda: pathlib.Path(one.path).is_socket(), 10, "the proxy's socket")
        try:
            before = common.cpu_seconds(one.serving())
            got = common.load(f"unix:{one.path}", 10000, 16, 403, REQUEST)
            cpu = common.cpu_seconds(one.serving()) - before
            common.figure("proxy_refusals", n=got["n"], per_core=got["n"] / cpu, paced_per_second=got["n"] / got["seconds"], p50=got["p50"],
                          memory_after_kib=common.private_kib(one.serving()))
        finally:
            one.stop()


if __name__ == "__main__":
    idle_memory()
    refusals()
