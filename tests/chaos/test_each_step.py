"""A kill at every named failpoint, and an error at each: the run ends as it must, once."""
import re

import evidence
import pytest

from harness.paths import ROOT
from harness.wait import until

OTHER_ADAPTERS = ("store.postgres.", "bus.kafka.", "state.redis.")  # not what `stockade up` is made of
ENDED_IN_THE_QUEUE = "scheduler.ended"  # reached only by a run that the scheduler itself ends


def failpoints():
    names = set()
    for folder in ("api-gateway", "scheduler", "workers", "audit-consumer", "proto", "egress-proxy"):
        for path in (ROOT / folder).rglob("*.c"):
            names.update(re.findall(r'stk_failpoint\(\s*"([^"]+)"', path.read_text(encoding="utf-8")))
    return sorted(name for name in names if not name.startswith(OTHER_ADAPTERS))


POINTS = failpoints()


def test_the_tree_has_failpoints():
    assert len(POINTS) >= 10 and {"worker.before_launch", "worker.after_launch", "worker.after_result"} <= set(POINTS)


def prepared(fresh):
    up = fresh(settings={"worker.lease": "3s", "worker.heartbeat": "500ms"}).start()
    up.api.configure({evidence.AGENT: {"allow": []}})
    assert up.stop() == 0
    return up


@pytest.mark.parametrize("hit", [1, 2])
@pytest.mark.parametrize("point", [point for point in POINTS if point != ENDED_IN_THE_QUEUE])
def test_killed_at_a_step(fresh, tmp_path, point, hit):
    up = prepared(fresh)
    log = tmp_path / "hits"
    up.start(wait=False, STK_FAILPOINTS=f"{point}=kill@{hit}", STK_FAILPOINT_LOG=log)
    try:
        up.wait_ready()
    except AssertionError:
        assert up.process.poll() == -9, up.log()[-1500:]
    runs = {key: evidence.submit(up, key, 0.05) for key in ("a", "b", "c")} if up.process.poll() is None else {"a": None}
    until(lambda: up.process.poll() is not None or all(run and finished_quietly(up, run) for run in runs.values()), 30, "it was killed, or everything ended")
    killed = up.process.poll() is not None
    assert not killed or up.process.returncode == -9, up.log()[-1500:]
    if killed:
        up.start()
    for key, run in runs.items():
        again = until(lambda key=key: evidence.submit(up, key, 0.05), 20, "accepted")
        assert run in (None, again), "the same key is the same run"
        runs[key] = again
    evidence.check(up, list(runs.values()), 60)
    evidence.nothing_is_left(up)
    assert killed and log.read_text().split()[0] == point, f"{point} was not reached"


def finished_quietly(up, run):
    try:
        return evidence.ended(up, run)
    except OSError:
        return None


def test_killed_while_a_run_expires_in_the_queue(fresh):
    up = prepared(fresh)
    up.start(STK_FAILPOINTS=f"{ENDED_IN_THE_QUEUE}=kill")
    run = up.api.submit(evidence.AGENT, ["true"], deadline_seconds=0.001)
    assert until(lambda: up.process.poll(), 20, "it was killed") == -9
    up.start()
    assert until(lambda: evidence.ended(up, run), 20, "ended")["reason"] == "expired"
    assert not up.api.audit(f"?run={run}&action=agent_sandbox.launch")
    evidence.nothing_is_left(up)


@pytest.mark.parametrize("point", ["worker.before_launch", "worker.after_launch", "worker.before_execute", "worker.after_finish"])
def test_a_failing_step_neither_loses_nor_repeats_a_run(fresh, point):
    """The second hit fails: one attempt goes wrong, the run ends all the same."""
    up = prepared(fresh)
    up.start(STK_FAILPOINTS=f"{point}=error@2")
    runs = [until(lambda key=key: evidence.submit(up, key, 0), 20, "accepted") for key in "abc"]
    rows = [until(lambda run=run: evidence.ended(up, run), 40, lambda run=run: f"{run} ends; {up.log()[-1500:]}") for run in runs]
    assert {row["reason"] for row in rows} <= {"exited", "worker_lost", "sandbox_failed"}
    assert sum(row["reason"] == "exited" for row in rows) >= 2, rows
    assert not up.verify().returncode
    evidence.each_launch_has_its_teardown(up)
    evidence.nothing_is_left(up)


@pytest.mark.parametrize("n", range(1, 9))
def test_a_refused_publish_neither_loses_nor_repeats_a_run(fresh, n):
    """The n-th commit of the bus fails: request, lane record, launch row, result and so on, whichever it is."""
    up = prepared(fresh)
    up.start(STK_FAILPOINTS=f"bus.publish.before_commit=error@{n}")
    run = until(lambda: evidence.submit(up, "once", 0), 20, "accepted")
    evidence.check(up, [run], 30)
    evidence.nothing_is_left(up)
