"""`stockade up` as a process: one per state directory, clear refusals, a full disk, draining."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

from harness import leftovers
from harness.api import PLATFORM
from harness.paths import STOCKADE, environment
from harness.up import Refused
from harness.wait import until


def refused(up, **env):
    with pytest.raises(Refused) as found:
        up.start(**env)
    lines = [line for line in found.value.log.strip().splitlines() if line.startswith("stockade up: ")]
    assert len(lines) == 1, found.value.log
    return found.value.status, lines[0]


def test_a_second_one_on_the_same_state_directory_is_refused_and_names_the_pid(fresh):
    first = fresh().start()
    second = fresh(folder=first.folder)
    second.token = first.token
    status, line = refused(second)
    assert status == 1 and str(first.process.pid) in line
    assert first.api.get("/healthz").status == 200


def test_two_with_directories_of_their_own_do_not_meet(fresh):
    one, two = fresh().start(), fresh().start()
    for up in (one, two):
        up.api.configure({"a": {}})
    assert one.api.run("a", ["echo", "1"])["stdout_tail"] == "1\n"
    assert two.api.run("a", ["echo", "2"])["stdout_tail"] == "2\n"
    assert len(one.api.ok("GET", "/v1/runs")["runs"]) == 1
    assert one.worker != two.worker


def test_a_port_in_use(fresh):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        status, line = refused(fresh(listen=f"127.0.0.1:{port}"))
    assert status == 1 and str(port) in line and "in use" in line


@pytest.mark.parametrize("text, where", [
    ("worker:\n  slotz: 5\n", ":2:3"),
    ("worker:\n  lease: 10 parsecs\n", ":2:10"),
    ("http:\n  body_max: 5QB\n", ":2:13"),
    ("worker:\n  slots: many\n", ":2:10"),
    ("worker:\n  slots: 5\n  slots: 6\n", ":3:"),
    ("log:\n  level: loud\n", ":2:10"),
    ("worker: [\n", ":"),
    ("worker:\n  lease: 2s\n", "worker.lease"),
    ("state_dir: relative\n", "state_dir"),
])
def test_a_wrong_configuration_names_line_and_column(fresh, tmp_path, text, where):
    file = tmp_path / "stockade.yaml"
    file.write_text(text)
    up = fresh(flags=["--config", str(file)])
    if "state_dir" in text:
        done = subprocess.run([STOCKADE, "up", "--config", file], env=environment(), capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 2 and where in done.stderr and done.stderr.count("\n") == 1
        return
    status, line = refused(up)
    assert status == 2 and where in line, line


@pytest.mark.parametrize("setting", ["worker.slotz=5", "worker.slots", "worker.lease=1parsec", "egress.resolvers=nowhere"])
def test_a_wrong_override_is_named(fresh, setting):
    status, line = refused(fresh(flags=["--set", setting]))
    assert status == 2 and setting.partition("=")[0] in line


def test_a_configuration_file_is_used(fresh, tmp_path):
    file = tmp_path / "stockade.yaml"
    file.write_text("worker:\n  slots: 3\nlog:\n  format: json\n")
    up = fresh(flags=["--config", str(file)]).start()
    assert up.api.ok("GET", "/v1/workers")["workers"][0]["slots"] == 3
    assert json.loads(up.log().splitlines()[0])


def test_what_was_accepted_outlives_a_restart(fresh):
    up = fresh().start()
    up.api.configure({"a": {"allow": ["x.example"]}})
    run = up.api.run("a", ["echo", "kept"])["run_id"]
    assert up.stop() == 0
    up.start()
    assert up.api.ok("GET", PLATFORM)["agents"]["a"]["allow"] == ["x.example"]
    assert up.api.ok("GET", f"/v1/runs/{run}")["result"]["stdout_tail"] == "kept\n"
    assert up.verify().returncode == 0
    assert up.api.run("a", ["echo", "again"])["exit_code"] == 0


def test_sigterm_lets_a_running_run_end(fresh):
    up = fresh().start()
    up.api.configure({"a": {}})
    run = up.api.submit("a", ["sh", "-c", "sleep 2; echo finished"])
    until(lambda: up.api.ok("GET", f"/v1/runs/{run}")["state"] == "running", 20, "running")
    up.process.send_signal(signal.SIGTERM)
    assert up.process.wait(30) == 0
    assert not leftovers.everything(up)
    up.start()
    row = up.api.ok("GET", f"/v1/runs/{run}")
    assert row["reason"] == "exited" and row["result"]["stdout_tail"] == "finished\n"


def test_as_the_first_process_it_ends_with_all_its_children(fresh):
    up = fresh(prefix=["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]).start()
    up.api.configure({"a": {}})
    run = up.api.submit("a", ["sh", "-c", "setsid sleep 300 & sleep 1; echo finished"])
    until(lambda: up.api.ok("GET", f"/v1/runs/{run}")["state"] == "running", 20, "running")
    (first,) = pathlib.Path(f"/proc/{up.process.pid}/task/{up.process.pid}/children").read_text().split()
    assert re.search(r"^NSpid:.*\t1$", pathlib.Path(f"/proc/{first}/status").read_text(), re.M)
    os.kill(int(first), signal.SIGTERM)
    assert up.process.wait(30) == 0
    assert not leftovers.everything(up)
    up.prefix = []
    up.start()
    assert up.api.ok("GET", f"/v1/runs/{run}")["result"]["stdout_tail"] == "finished\n"


def test_a_second_sigterm_hurries(fresh):
    up = fresh().start()
    up.api.configure({"a": {}})
    run = up.api.submit("a", ["sleep", "300"])
    until(lambda: up.api.ok("GET", f"/v1/runs/{run}")["state"] == "running", 20, "running")
    up.process.send_signal(signal.SIGTERM)
    until(lambda: "stopping" in up.log(), 10, "it says that it stops")
    up.process.send_signal(signal.SIGTERM)
    assert up.process.wait(20) == 0
    assert not leftovers.everything(up)
    up.start()
    assert until(lambda: up.api.ok("GET", f"/v1/runs/{run}")["reason"], 20, "ended") == "worker_lost"


def test_the_state_directory_is_private(up):
    assert up.state_dir.stat().st_mode & 0o777 == 0o700
    for path in up.state_dir.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_idle_it_does_nothing(up):
    """No busy loop: an idle instance uses almost no processor time."""
    def used():
        fields = open(f"/proc/{up.process.pid}/stat", encoding="ascii").read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    before, begun = used(), time.monotonic()
    until(lambda: time.monotonic() - begun > 2, 5, "two seconds passed")
    assert used() - before <= 20, "more than a tenth of a processor while idle"


def test_descriptors_do_not_grow_with_runs(up):
    up.api.run("helper", ["true"])
    until(lambda: not leftovers.directories(up), 10, "gone")
    before = up.descriptors()
    for _ in range(15):
        up.api.run("helper", ["true"])
    until(lambda: not leftovers.directories(up) and up.descriptors() <= before + 3, 10, lambda: f"{up.descriptors()} descriptors, {before} before")


def test_what_clients_send_forges_no_log_line(fresh):
    up = fresh(settings={"log.format": "json", "log.level": "debug"}).start()
    up.api.configure({"a": {}})
    for path in ("/v1/runs/%0a%7b%22level%22%3a%22forged%22%7d", "/v1/audit?host=%0a%1b%5b2J", "/%e2%80%a8%c2%85", "/%1b%5b2J"):
        up.api.get(path, headers={"User-Agent": "a\x85\x9b2J", "X-Request-Id": "x\x85y"})
    up.api.run("a", ["printf", "\\n{\"level\":\"forged\"}\\n\\033[2J"], env={"A": "\n\x1b[2J"})
    lines = up.log_path.read_bytes().split(b"\n")
    assert len(lines) > 5 and lines.pop() == b""
    for line in lines:
        assert json.loads(line)["level"] in ("debug", "info", "warn", "error"), line
        assert not re.search(rb"[\x00-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]", line), line


# --- files that do not answer

def locked(up, name):
    """Another process holds the file's write lock."""
    database = sqlite3.connect(up.state_dir / name, isolation_level=None, timeout=20)
    database.execute("begin immediate")
    return contextlib.closing(database)


def test_a_store_that_does_not_answer_loses_no_row(fresh):
    up = fresh().start()
    up.api.configure({"a": {}})
    with locked(up, "audit.db"):
        runs = [up.api.run("a", ["true"])["run_id"] for _ in range(20)]
    for run in runs:
        until(lambda run=run: {row["action"] for row in up.api.audit(f"?run={run}")} == {"agent_sandbox.launch", "agent_sandbox.teardown"}, 30, f"rows of {run}")
    assert up.verify().returncode == 0


def test_a_bus_that_does_not_answer_is_503_and_the_repeat_is_one_run(fresh):
    up = fresh().start()
    up.api.configure({"a": {}})
    body, key = {"agent": "a", "command": ["true"]}, {"Idempotency-Key": "slow"}
    with locked(up, "bus.db"):
        problem = up.api.post("/v1/runs", body, headers=key).problem(503)
        assert problem["retryable"] and str(up.folder) not in problem["detail"], problem
        assert up.api.get("/healthz").status == 200
    run = until(lambda: (lambda answer: answer.status == 202 and answer.json["id"])(up.api.post("/v1/runs", body, headers=key)), 30, "accepted")
    row = until(lambda: (lambda row: row["state"] == "finished" and row)(up.api.ok("GET", f"/v1/runs/{run}")), 30, "ended")
    assert row["reason"] == "exited" and not row["cancel_asked"]
    assert len(up.api.audit(f"?run={run}&action=agent_sandbox.launch")) == 1


# --- a full disk

@pytest.fixture
def small_disk(fresh):
    up = fresh(settings={"run_dir": "/tmp/placeholder"})
    del up.settings["run_dir"]
    up.state_dir.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "stk-test", up.state_dir], check=True)
    yield up
    if up.process.poll() is None:
        up.kill()
    subprocess.run(["umount", "-l", up.state_dir], check=True)


def test_a_full_disk_is_answered_503_and_loses_nothing(small_disk):
    up = small_disk.start()
    up.api.configure({"a": {}})
    accepted = [up.api.run("a", ["true"])["run_id"]]
    ballast = up.state_dir / "ballast"
    with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)

    def full():
        answer = up.api.post("/v1/runs", {"agent": "a", "command": ["true"], "stdin": "x" * 100_000}, timeout=30)
        if answer.status == 202:
            accepted.append(answer.json["id"])
            return None
        return answer
    answer = until(full, 40, "the disk is full for a submit")
    assert answer.problem(503)["retryable"] is True
    assert up.process.poll() is None, up.log()[-2000:]
    ballast.unlink()

    def works():
        answer = up.api.post(f"{PLATFORM}/run", {"agent": "a", "command": ["true"]}, timeout=60)
        return answer.status == 200 and answer.json["exit_code"] == 0
    until(works, 90, lambda: f"it recovers: {up.log()[-1500:]}", pause=0.2)
    for run in accepted:
        row = until(lambda run=run: (lambda row: row["state"] == "finished" and row)(up.api.ok("GET", f"/v1/runs/{run}")), 60, f"{run} ended")
        assert row["reason"] == "exited", row
    assert up.verify().returncode == 0
    assert not re.search(r"corrupt", up.log())
    assert up.stop() == 0


def test_a_second_sigterm_ends_it_although_the_disk_is_full(small_disk):
    up = small_disk.start()
    up.api.configure({"a": {}})
    run = up.api.submit("a", ["sleep", "300"])
    until(lambda: up.api.ok("GET", f"/v1/runs/{run}")["state"] == "running", 20, "running")
    with open(up.state_dir / "ballast", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    for _ in range(2):
        up.process.send_signal(signal.SIGTERM)
        until(lambda: "stopping" in up.log(), 10, "it says that it stops")
    up.process.wait(30)
    (up.state_dir / "ballast").unlink()
    up.start()
    until(lambda: up.api.ok("GET", f"/v1/runs/{run}")["state"] == "finished", 60, "ended")
    until(lambda: not leftovers.directories(up), 20, lambda: leftovers.everything(up))
    assert up.stop() == 0 and set(leftovers.everything(up)) <= {"mounts"}, "but for the disk itself"
