"""The egress proxy alone, in two namespaces: tunnels set up per second and core, relay per core, added latency, memory, start, rules."""
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

import common
from harness.egress_lab import Lab, Proxy, connect_request, inside, read_head, tunnel
from harness.paths import BUILD, PROXY

LOAD = BUILD / "tests/bench/bench_egress_load"
HOST, ADDRESS = "allowed.example", "93.184.216.34"
MANY = f"*.{HOST}"  # 256 names, each with an address of its own
POLICY = {"version": 1, "allow": [HOST, MANY, f"{HOST}:444"], "limits": {"tunnels": 20000}}
SECONDS = 4


class World:
    def __enter__(self):
        self.lab = Lab()
        self.lab.capture.sock.close()  # nobody reads it here, and it would cost every packet
        self.lab.dns.names, self.lab.dns.ttl = {HOST: [ADDRESS], **{f"h{i}.{HOST}": [f"93.184.217.{i}"] for i in range(256)}}, 60
        self.origins = [self.run(self.lab.b, "origin", "443")]
        assert self.origins[0].stdout.readline() == b"ready\n"
        self.folders = [tempfile.TemporaryDirectory(prefix="stk-bench-")]
        return self

    def __exit__(self, *_):
        for one in self.origins:
            one.kill()
            one.wait()
        self.lab.close()

    def run(self, ns, *argv):
        return subprocess.Popen(["ip", "netns", "exec", ns, LOAD, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def proxy(self, policy=POLICY, tcp=False):
        folder = pathlib.Path(self.folders[0].name) / str(time.monotonic_ns())
        folder.mkdir()
        return Proxy(PROXY, self.lab, folder, policy, listen="127.0.0.1:0" if tcp else None)

    def load(self, proxy, kind, n):
        """(what the tool printed, CPU seconds that the proxy spent)"""
        address = proxy.ready.split()[1] if proxy.listen else proxy.socket_path
        before = common.cpu_seconds(proxy.child())
        done = self.run(self.lab.a, kind, address, MANY if kind == "connects" else HOST, "443", str(n), str(SECONDS))
        out = done.communicate()[0].decode().split()
        return out, common.cpu_seconds(proxy.child()) - before


def connects(world):
    for tcp in (False, True):
        proxy = world.proxy(tcp=tcp)
        (done, failed), cpu = world.load(proxy, "connects", 64)
        assert int(failed) == 0
        name = "proxy_connects_" + ("tcp" if tcp else "unix")
        common.figure(name, unit="per second and core", value=int(done) / cpu, per_second=int(done) / SECONDS, n=int(done), target=10000)
        proxy.stop()


def relay(world):
    for tcp in (False, True):
        proxy = world.proxy({**POLICY, "tls": "off"}, tcp=tcp)
        (moved, seconds), cpu = world.load(proxy, "pull", 4)
        gbit = int(moved) * 8 / 1e9
        name = "proxy_relay_" + ("tcp" if tcp else "unix")
        common.figure(name, unit="Gbit/s per core", value=gbit / cpu, per_second=gbit / float(seconds), target=20)
        proxy.stop()


def latency(world):
    """One byte to the origin and back, through the proxy and without it, in turn."""
    world.lab.origin(444)
    proxy = world.proxy({**POLICY, "tls": "off"}, tcp=True)
    with inside(world.lab.a):
        direct = socket.create_connection((ADDRESS, 444))
    through = tunnel(proxy, HOST, 444)
    times, floors = [], []
    for sock in (direct, through):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(3000):
        for sock, into in ((direct, floors), (through, times)):
            since = time.perf_counter()
            sock.send(b"x")
            sock.recv(1)
            into.append((time.perf_counter() - since) * 1e3)
    common.timed("proxy_round_trip", times, "the same without a proxy", floors)
    proxy.stop()


def memory(world):
    proxy = world.proxy()
    idle = common.private_kib(proxy.child())
    common.figure("proxy_idle_private", unit="KiB", value=idle, target=2048)
    held = world.run(world.lab.a, "hold", proxy.socket_path, HOST, "443", "1000", "0")
    assert held.stdout.readline() == b"held\n"
    common.figure("proxy_memory_per_1000_tunnels", unit="KiB", value=common.private_kib(proxy.child()) - idle)
    held.stdin.close()
    held.wait()
    proxy.stop()


def start(world):
    """From the start of the program to its first refusal, under a worker's flags, socket and control stream made before."""
    times = []
    for _ in range(60):
        with tempfile.TemporaryDirectory() as folder:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(f"{folder}/s")
            listener.listen(8)
            ours, theirs = socket.socketpair()
            client = socket.socket(socket.AF_UNIX)
            client.connect(f"{folder}/s")
            client.sendall(connect_request("x.example"))
            fds = (listener.fileno(), theirs.fileno())
            argv = [PROXY, f"--listen=fd:{fds[0]}", f"--control-fd={fds[1]}", "--resolver=127.0.0.1:53"]
            for fd in fds:
                os.set_inheritable(fd, True)
            since = time.perf_counter()
            pid = os.posix_spawn(argv[0], argv, {})
            assert read_head(client)[0] == 503
            times.append((time.perf_counter() - since) * 1e3)
            for sock in (ours, theirs, listener, client):
                sock.close()
            os.waitpid(pid, 0)
    floors = [common.bare("/bin/true") for _ in range(60)]
    common.timed("proxy_start_to_first_refusal", times, "/bin/true", floors, target=3)


def rules(world):
    """Refusals per second and core with few rules and with many: the decision does not grow."""
    got = {}
    for n in (10, 10000):
        proxy = world.proxy({"version": 1, "allow": [f"h{i}.example" if i % 2 else f"*.w{i}.example" for i in range(n)] + [MANY], "limits": {"tunnels": 20000}})
        (done, _), cpu = world.load(proxy, "connects", 64)
        got[n] = cpu / int(done) * 1e6
        proxy.stop()
    common.figure("proxy_connect_cpu_by_rules", unit="us", rules_10=got[10], rules_10000=got[10000], ratio=got[10000] / got[10])


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with World() as the_world:
        for bench in (connects, relay, latency, memory, start, rules):
            bench(the_world)
