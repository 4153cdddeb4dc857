"""Nothing calls past the queue: with the bus refusing publishes nothing starts, and what is not durable is not answered as accepted."""
import json

import pytest

from harness import leftovers
from harness.api import PLATFORM
from harness.wait import until


def configured(fresh):
    up = fresh().start()
    up.api.configure({"a": {"allow": ["api.vendor.com"]}})
    assert up.api.run("a", ["true"])["exit_code"] == 0
    until(lambda: len(up.api.audit("?action=agent_sandbox.teardown")) == 1, 10, "the teardown row")
    assert up.stop() == 0
    return up


def test_with_the_bus_refusing_publishes_nothing_starts(fresh):
    up = configured(fresh)
    up.start(STK_FAILPOINTS="bus.publish.before_commit=error")
    before = len(up.api.audit())
    up.api.post(f"{PLATFORM}/run", {"agent": "a", "command": ["true"]}).problem(503)
    up.api.post("/v1/runs", {"agent": "a", "command": ["true"]}).problem(503)
    up.api.put(PLATFORM, {"enabled": True, "agents": {"a": {"allow": []}}}).problem(503)
    assert up.api.ok("GET", PLATFORM)["agents"]["a"]["allow"] == ["api.vendor.com"], "everybody acts on stk.config alone"
    up.api.post(f"{PLATFORM}/plan", {"agent": "a", "command": ["true"]}).problem(503)
    assert len(up.api.audit()) == before
    assert not leftovers.directories(up) and not leftovers.cgroups(up)
    assert up.stop() == 0
    up.start()
    assert up.api.run("a", ["true"])["exit_code"] == 0
    launches = up.api.audit("?action=agent_sandbox.launch")
    assert len(launches) == 2, "what was refused has not run"


@pytest.mark.parametrize("point", ["worker.before_launch", "worker.after_launch"])
def test_a_launch_row_that_is_not_durable_means_that_no_command_runs(fresh, tmp_path, point):
    up = configured(fresh)
    up.start(STK_FAILPOINTS=f"{point}=error", STK_FAILPOINT_LOG=tmp_path / "hits")
    mark = "the-command-ran"
    answer = up.api.post(f"{PLATFORM}/run?wait=30s", {"agent": "a", "command": ["echo", mark]})
    assert mark not in answer.body.decode(), answer
    assert (tmp_path / "hits").read_text().startswith(point), "the failpoint was not reached"
    assert answer.json["reason"] == "sandbox_failed" and answer.json["attempt"] == 3, answer

    def rows(kind):
        return sorted(row["assignment"] for row in up.api.audit(f"?run={answer.json['run_id']}&action=agent_sandbox.{kind}"))
    until(lambda: rows("launch") == rows("teardown"), 20, lambda: f"{rows('launch')} {rows('teardown')}")


def test_the_request_travels_the_bus(fresh):
    """Each step of a run is a record on a topic: request, assignment, launch row, result, finished, teardown row."""
    import sqlite3
    up = configured(fresh)
    database = sqlite3.connect(f"file:{up.state_dir}/bus.db?mode=ro", uri=True)
    tables = [name for (name,) in database.execute("select name from sqlite_master where type='table'")]
    text = " ".join(str(row) for table in tables for row in database.execute(f"select * from {table}"))
    database.close()
    for topic in ("stk.requests", "stk.assignments", "stk.events", "stk.audit", "stk.config"):
        assert topic in text, (topic, tables)
    for word in ("agent_sandbox.launch", "agent_sandbox.teardown", '"finished"', '"result"'):
        assert word in text or json.dumps(word)[1:-1] in text, word
