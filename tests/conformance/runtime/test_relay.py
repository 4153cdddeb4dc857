"""The relay from a loopback port to the proxy's socket."""
import hashlib
import os
import random
import socket
import threading

import pytest
import rt
from rt import wait_until


class Proxy:
    """A Unix server; `serve` handles each connection in a thread of its own."""

    def __init__(self, serve, backlog=512):
        self.path = f"/tmp/stk-rt-proxy-{os.getpid()}-{id(self)}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o666)
        self.listener.listen(backlog)
        self.accepted = 0
        self.serve = serve
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.one, args=(sock,), daemon=True).start()

    def one(self, sock):
        with sock:
            try:
                self.serve(sock)
            except OSError:
                pass

    def close(self):
        self.listener.close()
        if os.path.exists(self.path):
            os.unlink(self.path)


def echo(sock):
    while data := sock.recv(65536):
        sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)


@pytest.fixture
def relay(start):
    """Starts a runtime that relays to a proxy with the given behaviour."""
    proxies = []

    def make(serve, **kwargs):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        proxies.append(Proxy(serve, **kwargs))
        runtime = start(args=["--relay", f"127.0.0.1:{port}=unix:{proxies[-1].path}"])
        runtime.port, runtime.proxy = port, proxies[-1]
        return runtime

    yield make
    for proxy in proxies:
        proxy.close()


def dial(runtime):
    sock = socket.create_connection(("127.0.0.1", runtime.port))
    sock.settimeout(20)
    return sock


def read_all(sock):
    data = b""
    while piece := sock.recv(1 << 20):
        data += piece
    return data


def test_commands_are_told_of_the_proxy(relay):
    runtime = relay(echo)
    with runtime.client() as client:
        env = dict(line.split("=", 1) for line in client.execute(["env"])["stdout"].splitlines())
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]:
        assert env[name] == f"http://127.0.0.1:{runtime.port}"
    assert env["NO_PROXY"] == env["no_proxy"] == ""


def test_bytes_pass_both_ways_whole(relay):
    runtime = relay(echo)
    data = random.Random(1).randbytes(16 << 20)
    with dial(runtime) as sock:
        writer = threading.Thread(target=lambda: (sock.sendall(data), sock.shutdown(socket.SHUT_WR)))
        writer.start()
        got = read_all(sock)
        writer.join()
    assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()


def test_a_half_close_is_passed_on_and_the_answer_still_comes(relay):
    def serve(sock):
        asked = read_all(sock)
        sock.sendall(b"you said " + asked)

    with dial(relay(serve)) as sock:
        sock.sendall(b"hello")
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock) == b"you said hello"


def test_the_proxys_half_close_is_passed_on_too(relay):
    got = []

    def serve(sock):
        sock.sendall(b"first")
        sock.shutdown(socket.SHUT_WR)
        got.append(read_all(sock))

    with dial(relay(serve)) as sock:
        assert read_all(sock) == b"first"
        sock.sendall(b"later")
    wait_until(lambda: got == [b"later"])


def test_a_reader_that_is_slow_holds_the_sender_back(relay):
    go = threading.Event()

    def serve(sock):
        go.wait(20)
        read_all(sock)

    runtime = relay(serve)
    with runtime.client() as client:
        client.execute(["true"])
    before = runtime.memory()
    with dial(runtime) as sock:
        sock.setblocking(False)
        sent = 0
        try:
            while sent < 64 << 20:
                sent += sock.send(b"x" * 65536)
        except BlockingIOError:
            pass
        assert sent < 32 << 20
        runtime.assert_memory(512, before=before)
        go.set()


def test_a_connection_is_closed_when_there_is_no_proxy(relay):
    runtime = relay(echo)
    runtime.proxy.close()
    with dial(runtime) as sock:
        assert read_all(sock) == b""
    with runtime.client() as client:
        assert client.execute(["echo", "fine"])["stdout"] == "fine\n"


def test_a_reset_on_one_side_ends_the_other(relay):
    ended = threading.Event()

    def serve(sock):
        try:
            read_all(sock)
        finally:
            ended.set()

    sock = dial(relay(serve))
    sock.sendall(b"x")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()
    assert ended.wait(5)


def test_at_most_256_connections_at_once_and_the_rest_wait(relay):
    release = threading.Event()

    def serve(sock):
        release.wait(20)
        sock.sendall(b"done")

    runtime = relay(serve)
    socks = [dial(runtime) for _ in range(300)]
    try:
        wait_until(lambda: runtime.proxy.accepted == 256)
        with runtime.client() as client:
            assert client.execute(["echo", "fine"])["stdout"] == "fine\n"
        assert runtime.proxy.accepted == 256
        release.set()
        assert all(read_all(sock) == b"done" for sock in socks)
        assert runtime.proxy.accepted == 300
    finally:
        for sock in socks:
            sock.close()


def test_a_full_backlog_of_the_proxy_is_waited_for(relay):
    runtime = relay(echo, backlog=0)
    socks = [dial(runtime) for _ in range(50)]
    for sock in socks:
        sock.sendall(b"x")
        sock.shutdown(socket.SHUT_WR)
    assert [read_all(sock) for sock in socks] == [b"x"] * 50
    for sock in socks:
        sock.close()


def test_a_command_uses_it(relay):
    runtime = relay(echo)
    code = f"import socket;s=socket.create_connection(('127.0.0.1',{runtime.port}));s.sendall(b'ping');print(s.recv(9))"
    with runtime.client() as client:
        assert client.execute([rt.PYTHON, "-c", code])["stdout"] == "b'ping'\n"
