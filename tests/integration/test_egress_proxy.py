"""The egress proxy by itself: standalone with a file, and under a worker's control stream."""
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness import paths
from harness.egress_lab import Lab, Proxy, answer, connect_request, read_head, tunnel, wait_for

RUN = "run-0000000000000000000000000a"


@pytest.fixture(scope="module")
def lab():
    lab = Lab()
    lab.origin(443)
    lab.dns.names = {"allowed.example": ["93.184.216.34"], "b.example": ["93.184.216.35"]}
    yield lab
    lab.close()


@pytest.fixture
def start(lab, tmp_path):
    started = []

    def go(policy, **more):
        folder = tmp_path / f"p{len(started)}"
        folder.mkdir()
        started.append(Proxy(paths.PROXY, lab, folder, policy, **more))
        return started[-1]

    yield go
    for proxy in started:
        proxy.stop()


class Worker:
    """A worker's end of the control stream."""

    def __init__(self, lab, folder):
        self.path, self.journal_path = str(folder / "s"), folder / "journal"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self.path)
        listener.listen(64)
        os.chmod(self.path, 0o777)
        journal = os.open(self.journal_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.stream, theirs = socket.socketpair()
        argv = ["ip", "netns", "exec", lab.a, str(paths.PROXY), f"--listen=fd:{listener.fileno()}"]
        argv += [f"--control-fd={theirs.fileno()}", f"--journal-fd={journal}", "--resolver=11.0.0.2:53"]
        self.proc = subprocess.Popen(argv, pass_fds=(listener.fileno(), theirs.fileno(), journal), stdin=subprocess.DEVNULL)
        listener.close()
        theirs.close()
        os.close(journal)
        self.stream.settimeout(10)
        self.lines, self.rest = [], b""
        assert self.until("ready")["detail"].startswith("unix:")

    def send(self, **message):
        self.stream.sendall(json.dumps(message).encode() + b"\n")

    def read(self, timeout):
        if not select.select([self.stream], [], [], timeout)[0]:
            return False
        data = self.stream.recv(65536)
        *whole, self.rest = (self.rest + data).split(b"\n")
        self.lines += [json.loads(line) for line in whole]
        return bool(data)

    def until(self, kind, timeout=10):
        end = time.monotonic() + timeout
        while True:
            for i, line in enumerate(self.lines):
                if line["kind"] == kind:
                    return self.lines.pop(i)
            assert time.monotonic() < end and self.read(0.1) is not None, f"no {kind}"

    def policy(self, version, run=RUN, **body):
        self.send(kind="policy", version=version, run=run, body={"version": version, **body})
        return self.until("policy_ok")

    def connect(self, host, port=443):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(10)
        sock.connect(self.path)
        sock.sendall(connect_request(host, port))
        return sock

    def journal(self):
        return [json.loads(line) for line in self.journal_path.read_text().splitlines()]

    def stop(self):
        self.stream.close()
        return self.proc.wait(10)


@pytest.fixture
def worker(lab, tmp_path):
    worker = Worker(lab, tmp_path)
    yield worker
    worker.stop()


def reason(sock):
    status, _, body = answer(sock)
    return status, json.loads(body)["reason"]


def test_an_allowed_host_is_reached_and_another_never_reaches_dns(lab, start):
    proxy = start({"version": 7, "allow": ["allowed.example"]})
    with tunnel(proxy, "allowed.example") as sock:
        sock.sendall(b"through and back")
        assert sock.recv(100) == b"through and back"
    with proxy.connect() as sock:
        sock.sendall(connect_request("evil.example"))
        assert reason(sock) == (403, "host_not_allowed")
    decision, refusal, close = sorted(proxy.wait_records(3), key=lambda r: r["reason"])[:1] + proxy.records()[1:3]
    assert [r["seq"] for r in proxy.records()] == [1, 2, 3]
    assert decision["host"] == "allowed.example" and decision["address"] == "93.184.216.34:443" and decision["policy_version"] == 7
    assert {refusal["verdict"], close["verdict"]} == {"deny", "allow"}
    assert lab.dns.asked("evil.example") == [] and len(lab.dns.asked("allowed.example")) == 2


def test_nothing_is_allowed_before_the_first_policy(worker):
    assert reason(worker.connect("allowed.example")) == (503, "policy_unavailable")
    record = worker.until("record")["body"]
    assert record["reason"] == "policy_unavailable" and record["run"] == "" and record["seq"] == 1


def test_the_first_allow_waits_for_its_acknowledgement_and_later_ones_do_not(worker):
    worker.policy(3, allow=["allowed.example"])
    with worker.connect("allowed.example") as sock:
        record = worker.until("record")["body"]
        assert record["first"] is True and record["run"] == RUN and record["reason"] == "allowed" and record["policy_version"] == 3
        assert worker.journal()[-1] == record
        assert not select.select([sock], [], [], 0.3)[0], "answered before the acknowledgement"
        worker.send(kind="ack", seq=record["seq"])
        assert read_head(sock)[0] == 200
    with worker.connect("allowed.example") as sock:
        assert read_head(sock)[0] == 200


def test_without_an_acknowledgement_in_two_seconds_the_answer_is_audit_unavailable(worker, lab):
    worker.policy(1, allow=["allowed.example"])
    begun, seen = time.monotonic(), len(lab.origins[443].notes)
    assert reason(worker.connect("allowed.example")) == (503, "audit_unavailable")
    assert 1.5 < time.monotonic() - begun < 6
    assert all(note["data"] == b"" for note in lab.origins[443].notes[seen:])
    reasons = [r["reason"] for r in worker.journal()]
    assert reasons == ["allowed", "audit_unavailable", "audit_unavailable"]


def test_a_bad_policy_is_refused_whole_and_the_old_one_stays(worker):
    worker.policy(1, allow=["b.example"])
    worker.send(kind="policy", version=2, run=RUN, body={"version": 2, "allow": ["allowed.example", "*"]})
    bad = worker.until("policy_bad")
    assert bad["version"] == 2 and "/allow/1" in bad["detail"]
    assert reason(worker.connect("allowed.example")) == (403, "host_not_allowed")


def test_half_a_policy_is_no_policy(worker):
    worker.policy(1, allow=["b.example"])
    text = json.dumps({"kind": "policy", "version": 2, "run": RUN, "body": {"version": 2, "allow": ["allowed.example"]}}).encode()
    worker.stream.sendall(text)  # all but the end of its line
    assert reason(worker.connect("allowed.example")) == (403, "host_not_allowed")
    worker.stream.shutdown(socket.SHUT_RDWR)
    assert worker.proc.wait(5) == 0
    assert [(row["policy_version"], row["reason"]) for row in worker.journal()] == [(1, "host_not_allowed")]


def test_tightening_cuts_what_no_longer_passes(worker):
    worker.policy(1, allow=["allowed.example"])
    with worker.connect("allowed.example") as sock:
        worker.send(kind="ack", seq=worker.until("record")["body"]["seq"])
        assert read_head(sock)[0] == 200
        sock.sendall(b"x")
        assert sock.recv(10) == b"x"
        worker.policy(2, allow=["b.example"])
        assert sock.recv(10) == b""
    cut = [worker.until("record")["body"] for _ in range(2)]
    assert [(r["kind"], r["reason"]) for r in cut] == [("decision", "policy_changed"), ("close", "policy_changed")]
    assert cut[1]["bytes_in"] == cut[1]["bytes_out"] == 1


def test_a_worker_that_does_not_read_slows_the_proxy_down_and_loses_no_record(worker):
    worker.policy(1, allow=["allowed.example"])
    total, done = 9000, []

    def flood():
        for _ in range(total // 6):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(worker.path)
            sock.sendall(connect_request("evil.example"))
            read_head(sock)
            sock.close()
            done.append(1)

    threads = [threading.Thread(target=flood) for _ in range(6)]
    for thread in threads:
        thread.start()
    seen = [0, time.monotonic()]

    def stuck():
        if len(done) != seen[0]:
            seen[:] = [len(done), time.monotonic()]
        return time.monotonic() - seen[1] > 1

    wait_for("the flood to be held up", stuck, 60)
    assert len(done) < total, "nothing was held up"
    records = []
    while len(records) < total:
        records.append(worker.until("record", 30)["body"])
    for thread in threads:
        thread.join()
    assert [r["seq"] for r in records] == list(range(1, total + 1)) == [r["seq"] for r in worker.journal()]


def test_drain_ends_everything_and_says_so_behind_the_last_record(worker):
    worker.policy(1, allow=["allowed.example"])
    with worker.connect("allowed.example") as sock:
        worker.send(kind="ack", seq=worker.until("record")["body"]["seq"])
        assert read_head(sock)[0] == 200
        worker.send(kind="drain")
        assert sock.recv(10) == b""
        worker.until("drained")
        assert [(line["kind"], line["body"]["reason"]) for line in worker.lines] == [("record", "drained")]
    with pytest.raises(OSError):
        worker.connect("allowed.example")


def test_a_killed_proxy_leaves_whole_rows_and_a_client_without_network(worker):
    worker.policy(1, allow=["allowed.example"])
    with worker.connect("allowed.example") as sock:
        worker.send(kind="ack", seq=worker.until("record")["body"]["seq"])
        assert read_head(sock)[0] == 200
        for _ in range(50):
            reason(worker.connect("evil.example"))
        worker.proc.kill()
        assert sock.recv(1) == b""
    rows = worker.journal()
    assert [r["seq"] for r in rows] == list(range(1, 52)) and rows[0]["first"] is True
    with pytest.raises(OSError):
        worker.connect("allowed.example").recv(1)


def test_the_end_of_the_control_stream_is_the_end_of_the_proxy(worker):
    worker.stream.shutdown(socket.SHUT_RDWR)
    assert worker.proc.wait(5) == 0


def test_a_bad_policy_file_is_one_line_and_a_non_zero_exit(lab, tmp_path):
    (tmp_path / "p").write_text('{"version":1,"allow":["*"]}')
    argv = ["ip", "netns", "exec", lab.a, str(paths.PROXY), "--listen", "127.0.0.1:0", "--policy", str(tmp_path / "p")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10)
    assert done.returncode != 0 and done.stdout == "" and done.stderr.count("\n") == 1 and "/allow/0" in done.stderr


@pytest.mark.parametrize("kind", ["port", "socket"])
def test_an_address_in_use_is_one_line_and_a_non_zero_exit(start, tmp_path, kind):
    (tmp_path / "policy").write_text('{"version":1,"allow":[]}')
    with socket.socket(socket.AF_INET if kind == "port" else socket.AF_UNIX) as taken:
        taken.bind(("127.0.0.1", 0) if kind == "port" else str(tmp_path / "s"))
        taken.listen(1)
        address = f"127.0.0.1:{taken.getsockname()[1]}" if kind == "port" else f"unix:{tmp_path}/s"
        done = subprocess.run([paths.PROXY, f"--listen={address}", "--policy", tmp_path / "policy", "--resolver=127.0.0.1:53", "--records=-"],
                              capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 1 and done.stdout == "" and done.stderr == f"stockade-egress-proxy: {address} is in use\n"


def test_as_the_first_process_it_ends_on_sigterm(tmp_path):
    (tmp_path / "policy").write_text('{"version":1,"allow":[]}')
    argv = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", paths.PROXY, "--listen=127.0.0.1:0", "--policy", tmp_path / "policy",
            "--resolver=127.0.0.1:53", f"--records={tmp_path}/records"]
    outer = subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert outer.stdout.readline().startswith(b"ready 127.0.0.1:")
        (first,) = open(f"/proc/{outer.pid}/task/{outer.pid}/children", encoding="ascii").read().split()
        os.kill(int(first), signal.SIGTERM)
        assert outer.wait(10) == 0
    finally:
        outer.kill()
        outer.wait()
        outer.stdout.close()


def test_sighup_reads_the_policy_again_and_a_bad_file_changes_nothing(start):
    proxy = start({"version": 1, "allow": []})

    def verdict():
        with proxy.connect() as sock:
            sock.sendall(connect_request("allowed.example"))
            return read_head(sock)[0]

    assert verdict() == 403
    proxy.reload('version: 2\nallow:\n  - "allowed.example" # YAML\n')
    wait_for("the new policy", lambda: verdict() == 200)
    proxy.reload('{"allow":["*."]}')
    wait_for("a complaint", lambda: "the old policy stays" in proxy.stderr())
    assert verdict() == 200


def test_either_process_ends_with_the_other(start):
    first, second = start({"allow": []}), start({"allow": []})
    serving = first.child()
    os.kill(first.proc.pid, signal.SIGKILL)
    wait_for("the child's end", lambda: not os.path.exists(f"/proc/{serving}") or open(f"/proc/{serving}/stat").read().split()[2] == "Z")
    os.kill(second.child(), signal.SIGKILL)
    assert second.proc.wait(10) == 128 + signal.SIGKILL


def test_an_ordinary_user_can_run_it_and_records_may_go_to_standard_output(lab, tmp_path):
    folder = tmp_path / "user"
    folder.mkdir()
    tmp_path.chmod(0o755)
    os.chown(folder, 65534, 65534)
    (folder / "policy.yaml").write_text("version: 4\nallow: [allowed.example]\n")
    (folder / "config").write_text(f"policy: {folder}/policy.yaml\nresolver: ['11.0.0.2:53']\nrecords: '-'\n")
    (folder / "proxy").write_bytes(paths.PROXY.read_bytes())
    (folder / "proxy").chmod(0o755)
    for parent in folder.parents:
        if parent.stat().st_uid == 0 and parent != parent.parent and str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    argv = ["ip", "netns", "exec", lab.a, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(folder / "proxy")]
    proc = subprocess.Popen([*argv, f"--listen=unix:{folder}/s", "--config", str(folder / "config")], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert proc.stdout.readline() == f"ready unix:{folder}/s\n".encode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(10)
            sock.connect(f"{folder}/s")
            sock.sendall(connect_request("allowed.example"))
            assert read_head(sock)[0] == 200
        rows = [json.loads(proc.stdout.readline()) for _ in range(2)]
        assert [r["kind"] for r in rows] == ["decision", "close"] and rows[0]["policy_version"] == 4
    finally:
        proc.terminate()
        assert proc.wait(10) == 0
        proc.stdout.close()


def test_explain_tells_every_step_without_connecting(lab, tmp_path):
    (tmp_path / "p").write_text('{"version":1,"allow":["allowed.example","inside.example"]}')
    lab.dns.names["inside.example"] = ["93.184.216.34", "10.0.0.1"]
    seen = len(lab.origins[443].notes)

    def explain(target):
        argv = ["ip", "netns", "exec", lab.a, str(paths.PROXY), "--explain", target, "--policy", str(tmp_path / "p"), "--resolver", "11.0.0.2:53"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10)
        return done.returncode, done.stdout

    status, text = explain("Allowed.Example.")
    assert status == 0 and "target     allowed.example port 443" in text and "93.184.216.34:443 public: may be dialled" in text
    status, text = explain("inside.example:80")
    assert status == 1 and "10.0.0.1:80 private: refuses them all" in text and "address_not_public" in text
    assert explain("evil.example")[0] == explain("127.0.0.1:80")[0] == explain("a b")[0] == 1
    assert len(lab.origins[443].notes) == seen and not lab.dns.asked("evil.example")
