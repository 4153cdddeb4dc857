"""The runtime dials its worker: hello, which link is what, and what the end of each means."""
import json
import os
import socket

import pytest
import rt
from rt import Client, processes_with, wait_until

SANDBOX, NONCE = "sbx-0000000000000000000000000a", "nonce-0000000000000000000000000b"


class Worker:
    """The worker's side: a listening socket that is closed once all links are there."""

    def __init__(self, start, mode, concurrent=2, line=f"{SANDBOX} {NONCE}\n"):
        listener = socket.socket(socket.AF_UNIX)
        path = f"/tmp/stk-rt-worker-{os.getpid()}-{id(self)}"
        try:
            listener.bind(path)
            os.chmod(path, 0o666)
            listener.listen(64)
            listener.settimeout(10)
            read_end, write_end = os.pipe()
            os.write(write_end, line.encode())
            os.close(write_end)
            self.runtime = start(mode, stdin=read_end, listen=False,
                                 args=["--dial", f"unix:{path}", "--token-fd", "0", "--max-concurrent", str(concurrent)])
            os.close(read_end)
            self.links = [self.accept(listener) for _ in range(2 + concurrent)]
        finally:
            listener.close()
            os.unlink(path)

    def accept(self, listener):
        client = Client.__new__(Client)
        client.sock, _ = listener.accept()
        client.sock.settimeout(20)
        client.file = client.sock.makefile("rb")
        client.hello = json.loads(client.file.readline())
        return client

    def of(self, kind):
        return [link for link in self.links if link.hello["kind"] == kind]


@pytest.fixture(params=["plain", "pid1"])
def worker(request, start):
    worker = Worker(start, request.param)
    yield worker
    for link in worker.links:
        link.close()


def test_every_link_says_hello_before_anything_else(worker):
    assert sorted(link.hello["kind"] for link in worker.links) == ["command", "command", "control", "health"]
    for link in worker.links:
        assert (link.hello["id"], link.hello["nonce"]) == (SANDBOX, NONCE)


def test_every_link_serves(worker):
    for link in worker.links:
        assert link.call("GET", "/").json["sandbox"] == SANDBOX
    for link in worker.of("command"):
        for _ in range(3):
            assert link.execute(["echo", "hi"])["stdout"] == "hi\n"
        assert [list(f) for f in link.stream(["true"])] == [["exit"]]


def test_the_nonce_is_nowhere_a_command_can_look(worker):
    link = worker.of("command")[0]
    end = link.execute(["sh", "-c", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/self/fd/0 2>/dev/null; ls -l /proc/self/fd"])
    assert NONCE not in end["stdout"]


def test_the_end_of_the_control_link_ends_the_sandbox(worker, marker):
    link = worker.of("command")[0]
    link.send("POST", "/execute", {"command": ["sh", "-c", f"setsid sleep 300 {marker} & sleep 300 {marker}"]})
    wait_until(lambda: len(processes_with(f"sleep 300 {marker}")) >= 2)
    worker.of("control")[0].close()
    assert worker.runtime.proc.wait(5) == 0
    wait_until(lambda: not processes_with(marker), 2, "its processes are gone")
    assert link.file.read() == b""


def test_the_end_of_a_command_link_ends_its_command_only(worker, marker):
    first, second = worker.of("command")
    first.send("POST", "/execute", {"command": ["sleep", "300", marker]})
    second.send("POST", "/execute", {"command": ["sh", "-c", "sleep 0.5; echo still"]})
    wait_until(lambda: processes_with(f"sleep 300 {marker}"))
    first.close()
    wait_until(lambda: not processes_with(marker), 2, "the command of the lost link is gone")
    assert second.read().json["stdout"] == "still\n"
    assert worker.runtime.proc.poll() is None


def test_the_end_of_all_other_links_ends_it_too(worker):
    for link in worker.links:
        if link.hello["kind"] != "control":
            link.close()
    assert worker.runtime.proc.wait(5) == 0


def test_an_idle_link_is_kept(worker):
    link = worker.of("health")[0]
    assert link.call("GET", "/").status == 200
    worker.runtime.assert_small()


@pytest.mark.parametrize("line", ["", "only-one\n", "no newline", "a b c\n", " \n", "x" * 100 + " y\n", "sp@ce nonce\n"])
def test_a_malformed_token_stops_it_with_one_line(start, line):
    with pytest.raises((TimeoutError, AssertionError, ValueError)):
        Worker(lambda *a, **k: check(start(*a, **k)), "plain", line=line)


def check(runtime):
    assert runtime.proc.wait(5) == 1
    assert runtime.output().count("\n") == 1 and "token" in runtime.output()
    raise ValueError("it stopped as it should")


def test_nobody_to_dial_is_one_line_and_exit_1(start):
    runtime = start(listen=False, args=["--dial", "unix:/tmp/stk-rt-nobody", "--token-fd", "0"], stdin=token_pipe())
    assert runtime.proc.wait(5) == 1
    assert runtime.output().count("\n") == 1 and "control link" in runtime.output()


def token_pipe():
    read_end, write_end = os.pipe()
    os.write(write_end, f"{SANDBOX} {NONCE}\n".encode())
    os.close(write_end)
    return read_end


def test_a_listener_with_a_token_asks_for_it(start):
    runtime = start(args=["--token-fd", "0"], stdin=token_pipe(), listen=False)
    assert runtime.proc.wait(5) == 2
    path = str(runtime.dir / "token.sock")
    runtime = start(args=["--token-fd", "0", "--listen", f"unix:{path}"], stdin=token_pipe(), listen=False)
    wait_until(lambda: os.path.exists(path))
    with Client(path) as client:
        assert client.call("GET", "/").status == 401
    for wrong in ["Bearer", "Bearer x", f"Basic {NONCE}", f"Bearer {NONCE}x", f"Bearer {NONCE[:-1]}"]:
        with Client(path) as client:
            reply = client.call("POST", "/execute", {"command": ["true"]}, headers=[f"Authorization: {wrong}"])
            assert reply.status == 401 and reply.headers["www-authenticate"] == "Bearer"
    with Client(path) as client:
        reply = client.call("POST", "/execute", {"command": ["echo", "hi"]}, headers=[f"Authorization: Bearer {NONCE}"])
        assert reply.json["stdout"] == "hi\n"


def test_the_sandboxes_own_addresses_are_turned_away(start):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    runtime = start(args=["--token-fd", "0", "--listen", f"127.0.0.1:{port}"], stdin=token_pipe(), listen=False)

    def reply():
        try:
            with Client(("127.0.0.1", port)) as client:
                return client.call("POST", "/execute", {"command": ["true"]}, headers=[f"Authorization: Bearer {NONCE}"])
        except ConnectionRefusedError:
            return None

    assert wait_until(reply).status == 403
    assert runtime.proc.poll() is None


def test_it_listens_on_tcp_as_well(start):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start(args=["--listen", f"127.0.0.1:{port}"])
    with Client(("127.0.0.1", port)) as client:
        assert client.execute(["echo", "hi"])["stdout"] == "hi\n"
