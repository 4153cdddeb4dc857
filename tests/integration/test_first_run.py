"""The first milestone: configuration, a run, its egress decisions and its audit trail."""
import json

from harness import leftovers
from harness.api import PLATFORM
from harness.wait import until

TRY_TWO_HOSTS = """
import urllib.request
for url in ("https://not-listed.example/", "https://also-not.example:8443/"):
    try:
        urllib.request.urlopen(url, timeout=10)
    except OSError as error:
        print("refused", error)
"""


def rows(up, run):
    return up.api.audit(f"?run={run}&order=oldest")


def settled(up, run, n):
    """The run's audit rows once there are as many as that."""
    return until(lambda: (lambda found: found if len(found) >= n else None)(rows(up, run)), 10, lambda: f"{n} audit rows: {rows(up, run)}")


def test_a_command_goes_in_and_its_result_comes_back(up):
    result = up.api.run("helper", ["python3", "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"])
    assert result["reason"] == "exited" and result["exit_code"] == 3 and result["signal"] == 0
    assert result["stdout_tail"] == "out\n" and result["stderr_tail"] == "err\n"
    assert not result["timed_out"] and not result["oom_killed"] and not result["truncated"]
    assert result["backend"] == "oci" and result["isolation"] in ("container", "gvisor")
    assert result["egress"] == [] and result["egress_dropped"] == 0
    assert result["duration_ms"] > 0 and result["run_id"].startswith("run-") and result["sandbox"].startswith("sbx-")


def test_every_refused_host_is_shown_and_recorded(up):
    result = up.api.run("helper", ["python3", "-c", TRY_TWO_HOSTS])
    assert result["reason"] == "exited" and result["exit_code"] == 0, result
    assert result["stdout_tail"].count("refused") == 2
    shown = [(one["host"], one["port"], one["verdict"], one["reason"]) for one in result["egress"]]
    assert shown == [("not-listed.example", 443, "deny", "host_not_allowed"), ("also-not.example", 8443, "deny", "host_not_allowed")]
    assert result["egress_denied"] == 2 and result["egress_allowed"] == 0
    denials = [row for row in settled(up, result["run_id"], 4) if row["action"] == "agent_sandbox.egress.deny"]
    assert [row["details"]["host"] for row in denials] == ["not-listed.example", "also-not.example"]


def test_a_run_leaves_a_launch_and_a_teardown(up):
    result = up.api.run("helper", ["echo", "very-secret-argument"])
    found = settled(up, result["run_id"], 2)
    assert [row["action"] for row in found] == ["agent_sandbox.launch", "agent_sandbox.teardown"]
    assert all(row["agent"] == "helper" and row["tenant"] == "default" for row in found)
    assert found[0]["details"]["executable"] == "echo"
    assert "very-secret-argument" not in json.dumps(found), "the audit trail keeps the executable's name and a keyed hash of the rest"


def test_the_audit_chain_verifies(up):
    up.api.run("helper", ["true"])
    done = up.verify()
    assert done.returncode == 0, done


def test_a_changed_row_breaks_the_chain(up, tmp_path):
    import shutil
    import sqlite3
    run = up.api.run("helper", ["true"])["run_id"]
    settled(up, run, 2)  # with the teardown row nothing of it is being written any more
    copy = tmp_path / "state"
    shutil.copytree(up.state_dir, copy, ignore=shutil.ignore_patterns("journal"))
    database = sqlite3.connect(copy / "audit.db")
    table, column = "audit", "row"
    database.execute(f"update {table} set {column} = cast(replace(cast({column} as text), 'helper', 'helped') as blob) where seq = (select min(seq) from {table} where cast({column} as text) like '%helper%')")
    assert database.total_changes == 1
    database.commit()
    database.close()
    done = up.cli("audit", "verify", "--state-dir", copy)
    assert done.returncode == 1 and "the hash does not follow" in done.stdout + done.stderr, done


def test_while_it_is_off_nothing_runs(fresh):
    up = fresh().start()
    answer = up.api.post(f"{PLATFORM}/run", {"agent": "helper", "command": ["true"]})
    assert "nothing changed" in answer.problem(409, "not_sandboxed")["detail"]
    assert up.api.post("/v1/runs", {"agent": "helper", "command": ["true"]}).problem(409, "not_sandboxed")
    up.api.configure({"helper": {}}, enabled=False)
    up.api.post(f"{PLATFORM}/run", {"agent": "helper", "command": ["true"]}).problem(409, "not_sandboxed")
    up.api.configure({"helper": {}})
    assert "other" in up.api.post(f"{PLATFORM}/run", {"agent": "other", "command": ["true"]}).problem(409, "not_sandboxed")["detail"]
    assert up.api.run("helper", ["true"])["exit_code"] == 0
    assert [row["action"] for row in up.api.audit() if row["action"] in ("agent_sandbox.launch", "agent_sandbox.refusal")] == ["agent_sandbox.launch"]


def test_nothing_is_left_on_the_host_after_a_run(up):
    up.api.run("helper", ["sh", "-c", "setsid sleep 1000 & exit 0"])
    until(lambda: not leftovers.directories(up) and not leftovers.mounts(up), 10, lambda: leftovers.everything(up))
    left = leftovers.everything(up)
    assert not left.get("processes"), left
    assert not left.get("cgroups"), left


def test_secrets_are_in_no_file_in_the_clear(up):
    secret = "Zq8-only-in-the-clear-inside-the-sandbox"
    result = up.api.run("helper", ["sh", "-c", f"echo $HIDDEN; echo {secret[::-1]}"], env={"HIDDEN": secret})
    assert result["stdout_tail"] == f"{secret}\n{secret[::-1]}\n"
    up.verify()
    for path in up.state_dir.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert secret.encode() not in data and secret[::-1].encode() not in data, path
    assert secret not in up.log()
