"""A kill at every named failpoint, and an error at each: the run ends as it must, once."""
import re

import evidence
import pytest

from harness.paths import ROOT
from harness.wait import until

CONFIGURATION = ("bus.", "store.")  # hit by everything, the first hits are those of the start


def failpoints():
    names = set()
    for folder in ("api-gateway", "scheduler", "workers", "audit-consumer", "proto", "egress-proxy"):
        for path in (ROOT / folder).rglob("*.c"):
            names.update(re.findall(r'stk_failpoint\(\s*"([^"]+)"', path.read_text(encoding="utf-8")))
    return sorted(names)


POINTS = failpoints()


def test_the_tree_has_failpoints():
    assert len(POINTS) >= 10 and {"worker.before_launch", "worker.after_launch", "worker.after_result"} <= set(POINTS)


def prepared(fresh):
    up = fresh(settings={"worker.lease": "3s", "worker.heartbeat": "500ms"}).start()
    up.api.configure({evidence.AGENT: {"allow": []}})
    assert up.stop() == 0
    return up


@pytest.mark.parametrize("hit", [1, 2])
@pytest.mark.parametrize("point", POINTS)
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
