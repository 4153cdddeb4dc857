"""The egress proxy beside smokescreen, squid and tinyproxy, in one run and one world: tunnels set up per second of processor time, relay,
added latency, memory, start. All listen on TCP here, since not every one of them knows Unix sockets."""
import signal
import socket
import subprocess
import time

import common
from bench_egress import ADDRESS, HOST, LOAD, MANY, World
from harness.egress_lab import ORIGIN_V4, Origin, connect_request, inside, read_head, tunnel
from harness.paths import PROXY
from harness.peers import CLIENT, NAMES, Peer, version

SECONDS, STREAMS, IN_FLIGHT, HELD, ROUND_TRIPS, STARTS = 3, 4, 64, 1000, 1500, 7
PORT = 3129


def load(world, peer, kind, host, n):
    """(what the tool printed, CPU seconds that the proxy spent)"""
    before = common.cpu_seconds(peer.pid())
    done = subprocess.run(["ip", "netns", "exec", world.lab.a, LOAD, kind, peer.address, host, "443", str(n), str(SECONDS)],
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True, timeout=SECONDS + 60)
    return done.stdout.decode().split(), common.cpu_seconds(peer.pid()) - before


def connects(world, peer):
    (done, failed), cpu = load(world, peer, "connects", MANY, IN_FLIGHT)
    return {"per_core": int(done) / cpu, "per_second": int(done) / SECONDS, "n": int(done), "failed": int(failed)}


def relay(world, peer):
    (moved, seconds), cpu = load(world, peer, "pull", HOST, STREAMS)
    return {"per_core": int(moved) * 8 / 1e9 / cpu, "per_second": int(moved) * 8 / 1e9 / float(seconds)}


def latency(world, peer):
    """One byte to the origin and back, through the proxy and without it, in turn."""
    with inside(world.lab.a):
        direct = socket.create_connection((ADDRESS, 80))
    through = tunnel(peer, HOST, 80)
    times, floors = [], []
    for sock in (direct, through):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(ROUND_TRIPS):
        for sock, into in ((direct, floors), (through, times)):
            since = time.perf_counter()
            sock.send(b"x")
            sock.recv(1)
            into.append((time.perf_counter() - since) * 1e3)
    direct.close()
    through.close()
    return {part: common.at(times, at) for part, at in (("p50", 0.5), ("p99", 0.99))} | {
        "added_p50": common.at(times, 0.5) - common.at(floors, 0.5), "added_p99": common.at(times, 0.99) - common.at(floors, 0.99)}


def memory(world, peer):
    idle = common.private_kib(peer.pid())
    held = world.run(world.lab.a, "hold", peer.address, HOST, "443", str(HELD), "0")
    assert held.stdout.readline() == b"held\n", f"{peer.name} does not hold {HELD} tunnels"
    grown = common.private_kib(peer.pid()) - idle
    held.stdin.close()
    held.wait()
    return {"idle": idle, "per_1000_tunnels": grown}


def start_command(world, peer):
    """How it is started, and on which port it will be."""
    if peer.name != "stockade":
        return peer.argv, peer.port
    (peer.folder / "start.json").write_text('{"version": 1, "allow": ["allowed.example"]}')
    argv = [PROXY, "--listen", f"127.0.0.1:{PORT}", "--policy", peer.folder / "start.json", "--resolver", f"{ORIGIN_V4}:53"]
    argv += ["--records", peer.folder / "start.jsonl"]
    return ["ip", "netns", "exec", world.lab.a, "sh", "-ec", 'exec "$@"', "sh", *map(str, argv)], PORT


def refused(world, port):
    with inside(world.lab.a):
        client = socket.socket()
    with client:
        client.bind((CLIENT, 0))
        try:
            client.connect(("127.0.0.1", port))
            client.sendall(connect_request("x.example"))
            return 400 <= read_head(client)[0] < 500
        except (ConnectionRefusedError, ConnectionResetError):
            return False


def start(world, peer):
    """From the start of the program to its first refusal, through the same shell in the same namespace."""
    argv, port = start_command(world, peer)
    peer.quit()
    times = []
    for _ in range(STARTS):
        since = time.perf_counter()
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not refused(world, port):
            assert process.poll() is None, argv
        times.append((time.perf_counter() - since) * 1e3)
        process.terminate() if peer.name in ("stockade", "squid") else process.kill()
        process.wait(30)
    floors = [bare(world) for _ in range(STARTS)]
    return {"p50": common.at(times, 0.5), "n": STARTS, "floor": "the same shell, /bin/true", "floor_p50": common.at(floors, 0.5),
            "over_ms": common.at(times, 0.5) - common.at(floors, 0.5)}


def bare(world):
    since = time.perf_counter()
    subprocess.run(["ip", "netns", "exec", world.lab.a, "sh", "-ec", 'exec "$@"', "sh", "/bin/true"], check=True)
    return (time.perf_counter() - since) * 1e3


BENCHES = {"connects": (connects, "tunnels per second", "per_core"), "relay": (relay, "Gbit/s", "per_core"),
           "round_trip": (latency, "ms", "added_p50"), "memory": (memory, "KiB", "idle"), "start": (start, "ms", "over_ms")}


def figures(world):
    found = {}
    for name, (bench, _, _) in BENCHES.items():
        for who in NAMES:
            with Peer(who, world.lab, [HOST, MANY], head_seconds=600, dns_ttl=60) as peer:
                found[name, who] = bench(world, peer)
    return found


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with World() as the_world:
        the_world.lab.origin(80, Origin.echo)
        got = figures(the_world)
    for bench_name, (_, unit, key) in BENCHES.items():
        for peer_name in NAMES:
            values = got[bench_name, peer_name]
            beside = {"times_ours": values[key] / got[bench_name, "stockade"][key]} if got[bench_name, "stockade"][key] else {}
            common.figure(f"peers_{bench_name}_{peer_name}", version=version(peer_name), unit=unit, **values, **beside)
