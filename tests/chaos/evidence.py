"""Runs that tell that they started, and what must hold for them however often `stockade up` was killed."""
import collections
import http.client
import json

from harness import leftovers
from harness.wait import until

AGENT = "chaos"
HOST = "started.example"
# The refused connection is the run's own evidence that it started.
TELL = f"""exec 3<>/dev/tcp/127.0.0.1/3128
printf 'CONNECT {HOST}:443 HTTP/1.1\\r\\nHost: {HOST}:443\\r\\n\\r\\n' >&3
read -r line <&3
echo "$line"
sleep "$1"
"""


def body(seconds):
    return {"agent": AGENT, "command": ["bash", "-c", TELL, "tell", str(seconds)], "timeout_seconds": 60}


def submit(up, key, seconds):
    """The id of an accepted run, or None when the answer never came or was no 202."""
    try:
        answer = up.api.call("POST", "/v1/runs", body(seconds), headers={"Idempotency-Key": key}, timeout=10)
    except (OSError, http.client.HTTPException):
        return None
    return json.loads(answer.body)["id"] if answer.status == 202 else None


def ended(up, run):
    row = up.api.ok("GET", f"/v1/runs/{run}")
    return row if row["state"] == "finished" else None


def check(up, runs, seconds=120):
    """Everything that must hold for the accepted runs of an instance that is up. Returns how many ended for which reason."""
    rows = {run: until(lambda run=run: ended(up, run), seconds, lambda run=run: f"{run} ends: {up.api.get(f'/v1/runs/{run}')}; {up.log()[-1500:]}") for run in runs}
    until(lambda: not leftovers.directories(up) and not leftovers.journals(up), 30, lambda: f"no sandbox is left: {leftovers.everything(up)}")
    kinds = ("launch", "teardown", "egress.deny")
    audit = {}

    def settled():
        for kind in kinds:
            audit[kind] = [(row["run"], row["assignment"]) for row in up.api.audit(f"?action=agent_sandbox.{kind}") if row["run"] in rows]
        return sorted(audit["launch"]) == sorted(audit["teardown"])
    until(settled, 30, lambda: f"each launch has its teardown: {set(audit['launch']) ^ set(audit['teardown'])}", pause=0.2)
    assert len(audit["launch"]) == len(set(audit["launch"])), "a launch row is there twice"
    launched = {run for run, _ in audit["launch"]}
    starts = collections.Counter(run for run, _ in set(audit["egress.deny"]))
    twice = [run for run, n in starts.items() if n > 1]
    assert not twice, f"started twice: {twice}"
    for run, row in rows.items():
        if row["reason"] == "worker_lost":
            assert run in launched, f"{run} was lost without a launch row"
        else:
            assert row["reason"] == "exited" and row["result"]["exit_code"] == 0, row
            assert " 403 " in row["result"]["stdout_tail"], row
            assert run in launched and starts[run] == 1, row
    assert up.verify().returncode == 0
    return collections.Counter(row["reason"] for row in rows.values())


def each_launch_has_its_teardown(up, query="", seconds=20):
    """Rows are stored a moment after they were published."""
    def assignments(kind):
        return sorted(row["assignment"] for row in up.api.audit(f"?action=agent_sandbox.{kind}{query}"))
    until(lambda: assignments("launch") == assignments("teardown"), seconds,
          lambda: f"launches {assignments('launch')}, teardowns {assignments('teardown')}", pause=0.1)


def nothing_is_left(up):
    assert up.stop() == 0, up.log()[-2000:]
    assert not leftovers.everything(up)
