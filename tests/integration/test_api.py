"""Every path of the HTTP API, as documented."""
import concurrent.futures
import json
import re
import shlex
import socket
import struct
import subprocess

import pytest

from harness.api import Api, PLATFORM
from harness.paths import environment
from harness.wait import until

ORG = "/api/admin/platform/egress-policy"
PLAN_CALL = """curl -sS -w '\\n%{http_code}' -X POST "$BASE/api/admin/platform/agent-sandbox/plan" -H "Authorization: Bearer $TOKEN" -d '{"agent": "helper", "command": ["python", "job.py"]}'"""
PUT_CALL = """curl -sS -w '\\n%{http_code}' -X PUT "$BASE/api/admin/platform/agent-sandbox" -H "Authorization: Bearer $TOKEN" -d '{"enabled": true, "agents": {"helper": {"allow": ["api.vendor.com"]}}, "reason": "CHG-1042"}'"""


def curl(up, command):
    """As a user would paste it."""
    words = [word.replace("$BASE", up.url).replace("$TOKEN", up.token) for word in shlex.split(command)]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60, check=True)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body)


def finished(up, run, seconds=30):
    def ended():
        answer = up.api.ok("GET", f"/v1/runs/{run}")
        return answer if answer["state"] == "finished" else None
    return until(ended, seconds, f"{run} is finished")


# --- the two documented calls

def test_the_documented_plan_call_works_as_written(up):
    status, plan = curl(up, PLAN_CALL)
    assert status == 200 and plan["agent"] == "helper" and plan["objects"]


def test_the_documented_put_call_works_as_written(fresh):
    up = fresh().start()
    status, answer = curl(up, PUT_CALL)
    assert status == 200 and answer["version"] == 1
    assert answer["after"]["agents"]["helper"]["allow"] == ["api.vendor.com"]
    assert answer["before"] is None
    assert [one["pointer"] for one in answer["weakening"]] == ["/agents/helper/allow/0"]
    assert up.api.ok("GET", PLATFORM)["agents"]["helper"]["allow"] == ["api.vendor.com"]


# --- configuration

def test_it_is_off_by_default(fresh):
    up = fresh().start()
    answer = up.api.get(PLATFORM)
    assert answer.status == 200 and answer.headers["ETag"]
    assert answer.json["enabled"] is False and answer.json["agents"] == {} and answer.json["backend"] == "auto"


def test_put_replaces_the_whole_document(fresh):
    up = fresh().start()
    up.api.configure({"one": {"allow": ["a.example"]}, "two": {}})
    up.api.configure({"two": {"allow": ["b.example"]}})
    assert list(up.api.ok("GET", PLATFORM)["agents"]) == ["two"]


def test_if_match_is_honoured(fresh):
    up = fresh().start()
    old = up.api.get(PLATFORM).headers["ETag"]
    body = {"enabled": True, "agents": {"a": {}}, "reason": "x"}
    assert up.api.put(PLATFORM, body, headers={"If-Match": old}).status == 200
    up.api.put(PLATFORM, body, headers={"If-Match": old}).problem(412, "version_mismatch")
    new = up.api.get(PLATFORM).headers["ETag"]
    assert new != old and up.api.put(PLATFORM, body, headers={"If-Match": new}).status == 200


def test_a_change_is_audited_with_before_after_and_what_it_loosens(fresh):
    up = fresh().start()
    up.api.configure({"a": {"allow": ["x.example"]}})
    up.api.ok("PUT", PLATFORM, {"enabled": True, "agents": {"a": {"allow": ["x.example", "y.example"]}}, "reason": "CHG-7"})
    rows = until(lambda: (lambda found: found if len(found) == 2 else None)(up.api.audit("?action=agent_sandbox.config.update&order=oldest")), 10, "two rows")
    row = rows[1]
    assert row["details"]["reason"] == "CHG-7" and row["before"]["agents"]["a"]["allow"] == ["x.example"]
    assert row["after"]["agents"]["a"]["allow"] == ["x.example", "y.example"]
    assert [one["pointer"] for one in row["weakening"]] == ["/agents/a/allow/1"]


def test_tightening_needs_no_reason(fresh):
    up = fresh().start()
    up.api.configure({"a": {"allow": ["x.example"]}})
    answer = up.api.ok("PUT", PLATFORM, {"enabled": True, "agents": {"a": {"allow": []}}})
    assert answer["weakening"] == []


def test_env_values_are_blank_when_read_and_kept_by_unchanged(fresh):
    up = fresh().start()
    up.api.configure({"a": {"env": {"KEY": "hidden-value"}}})
    read = up.api.get(PLATFORM)
    assert b"hidden-value" not in read.body and "KEY" in read.json["agents"]["a"]["env"]
    up.api.configure({"a": {"env": {"KEY": "unchanged"}}})
    assert up.api.run("a", ["sh", "-c", "echo $KEY"])["stdout_tail"] == "hidden-value\n"
    problem = up.api.put(PLATFORM, {"enabled": True, "agents": {"a": {"env": {"NEW": "unchanged"}}}, "reason": "x"}).problem(422)
    assert problem["pointer"] == "/agents/a/env/NEW"


def test_the_organisation_policy_narrows_and_never_widens(fresh):
    up = fresh().start()
    up.api.configure({"a": {"allow": ["x.example", "y.example"]}})
    assert up.api.ok("GET", ORG).get("default", "allow") == "allow"
    up.api.ok("PUT", ORG, {"default": "allow", "deny": ["y.example"], "allow": ["z.example"], "reason": "x"})
    plan = up.api.ok("POST", f"{PLATFORM}/plan", {"agent": "a", "command": ["true"]})
    effective = {one["entry"]: one["effective"] for one in plan["allow"]}
    assert effective == {"x.example": True, "y.example": False}
    result = up.api.run("a", ["python3", "-c", "import urllib.request as u\ntry: u.urlopen('https://y.example/')\nexcept OSError as e: print(e)"])
    assert [(one["host"], one["verdict"], one["reason"]) for one in result["egress"]] == [("y.example", "deny", "org_policy")]


# --- runs

def test_submit_then_ask(up):
    answer = up.api.post("/v1/runs", {"agent": "helper", "command": "echo 'a b'", "labels": {"task": "t1"}, "priority": 7})
    assert answer.status == 202
    run = answer.json["id"]
    assert answer.headers["Location"] == f"/v1/runs/{run}" and answer.json["state"] in ("submitted", "queued", "assigned", "running", "finished")
    assert up.api.get(f"/v1/runs/{run}").status == 200, "right after the 202 it is known"
    row = finished(up, run)
    assert row["labels"] == {"task": "t1"} and row["priority"] == 7 and row["reason"] == "exited"
    assert row["result"]["stdout_tail"] == "a b\n"
    assert row["submitted"] <= row["started"] <= row["finished"]


def test_submit_and_wait(up):
    answer = up.api.post("/v1/runs?wait=30s", {"agent": "helper", "command": ["echo", "x"]})
    assert answer.status == 200 and answer.json["stdout_tail"] == "x\n"


def test_a_run_longer_than_its_wait_is_answered_202(up):
    answer = up.api.post(f"{PLATFORM}/run?wait=200ms", {"agent": "helper", "command": ["sleep", "2"]})
    assert answer.status == 202, answer
    assert finished(up, answer.headers["Location"].rpartition("/")[2])["reason"] == "exited"


def test_stdin_and_environment_and_directory(up):
    result = up.api.run("helper", ["sh", "-c", "cat; echo $A; pwd"], stdin="hello\n", env={"A": "b c"}, cwd="/tmp")
    assert result["stdout_tail"] == "hello\nb c\n/tmp\n"


@pytest.mark.parametrize("command, reason, code", [
    (["false"], "exited", 1),
    (["sh", "-c", "exit 77"], "exited", 77),
    (["no-such-program"], "exited", 127),
    (["/etc/hosts"], "exited", 126),
    (["sh", "-c", "kill -9 $$"], "signaled", 137),
    (["sh", "-c", "kill -TERM $$"], "signaled", 143),
])
def test_how_a_command_ends(up, command, reason, code):
    result = up.api.run("helper", command)
    assert (result["reason"], result["exit_code"]) == (reason, code), result


@pytest.mark.parametrize("seconds", [0.25, 0.5])
def test_a_timeout_ends_the_command_and_its_children(up, seconds):
    result = up.api.run("helper", ["sh", "-c", "sleep 600 & sleep 600"], timeout_seconds=seconds)
    assert result["reason"] == "timeout" and result["exit_code"] == 124 and result["timed_out"]
    assert seconds * 900 <= result["duration_ms"] < 10_000


def test_memory_over_the_limit_ends_as_oom(fresh):
    up = fresh().start()
    up.api.configure({"small": {"limits": {"memory_bytes": 48 << 20}}})
    result = up.api.run("small", ["python3", "-c", "x = bytearray(200 << 20)"])
    assert result["reason"] == "oom" and result["exit_code"] == 137 and result["oom_killed"], result


def test_long_output_is_cut_and_says_so(up):
    result = up.api.run("helper", ["python3", "-c", "print('x' * 400000); print('end')"])
    assert result["truncated"] and result["stdout_bytes"] == 400005 and result["stdout_tail"].endswith("x\nend\n")
    assert len(result["stdout_tail"]) <= 65536


def test_output_that_is_not_utf8_is_repaired(up):
    result = up.api.run("helper", ["printf", "a\\377b"])
    assert result["stdout_tail"] == "a\ufffdb"


def test_a_key_makes_a_repeat_the_same_run(up):
    body = {"agent": "helper", "command": ["true"]}
    headers = {"Idempotency-Key": "once-1"}
    first = up.api.post("/v1/runs", body, headers=headers).json["id"]
    assert up.api.post("/v1/runs", body, headers=headers).json["id"] == first
    up.api.post("/v1/runs", {**body, "priority": 1}, headers=headers).problem(422, "idempotency_mismatch")
    finished(up, first)
    assert up.api.post("/v1/runs?wait=5s", body, headers=headers).json["run_id"] == first
    launches = [row for row in up.api.audit(f"?run={first}") if row["action"] == "agent_sandbox.launch"]
    assert len(launches) == 1


def test_many_at_once_under_one_key_are_one_run(up):
    def submit(_):
        return up.api.submit("helper", ["true"], headers={"Idempotency-Key": "many-1"})
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        (run,) = set(pool.map(submit, range(16)))
    assert finished(up, run)["reason"] == "exited"
    rows = until(lambda: (lambda rows: "agent_sandbox.teardown" in rows and rows)([row["action"] for row in up.api.audit(f"?run={run}")]), 10, "teardown")
    assert sorted(rows) == ["agent_sandbox.launch", "agent_sandbox.teardown"]


def test_the_list_is_filtered_and_paged(up):
    runs = [up.api.submit("helper", ["true"], labels={"page": "p"}) for _ in range(5)]
    for run in runs:
        finished(up, run)
    seen, cursor = [], ""
    while cursor is not None:
        page = up.api.ok("GET", f"/v1/runs?label=page%3Dp&limit=2{'&cursor=' + cursor if cursor else ''}")
        assert len(page["runs"]) <= 2
        seen += [run["id"] for run in page["runs"]]
        cursor = page["next"]
    assert sorted(seen) == sorted(runs) and len(set(seen)) == 5
    assert {run["agent"] for run in up.api.ok("GET", "/v1/runs?agent=helper")["runs"]} == {"helper"}
    assert up.api.ok("GET", "/v1/runs?agent=nobody")["runs"] == []
    assert up.api.ok("GET", "/v1/runs?state=queued&label=page%3Dp")["runs"] == []
    up.api.get("/v1/runs?state=dreaming").problem(422, "invalid_field")
    up.api.get("/v1/runs?limit=0").problem(422, "invalid_field")
    up.api.get("/v1/runs?colour=red").problem(400, "bad_request")


def test_cancel_a_running_and_a_finished_run(up):
    run = up.api.submit("helper", ["sleep", "300"])
    until(lambda: up.api.ok("GET", f"/v1/runs/{run}")["state"] == "running", 20, "running")
    assert up.api.post(f"/v1/runs/{run}/cancel").status in (200, 202)
    row = finished(up, run, 15)
    assert row["reason"] == "cancelled" and row["cancel_asked"]
    again = up.api.post(f"/v1/runs/{run}/cancel")
    assert again.status in (200, 202, 409), again
    assert up.api.ok("GET", f"/v1/runs/{run}")["reason"] == "cancelled"
    up.api.post("/v1/runs/run-00000000000000000000000000/cancel").problem(404, "not_found")


def test_a_deadline_in_the_queue_expires(fresh):
    up = fresh(settings={"worker.slots": "1"}).start()
    up.api.configure({"a": {}})
    long = up.api.submit("a", ["sleep", "4"])
    late = up.api.submit("a", ["true"], deadline_seconds=0.5)
    assert finished(up, late, 15)["reason"] == "expired"
    assert finished(up, long, 15)["reason"] == "exited"
    assert not [row for row in up.api.audit(f"?run={late}") if row["action"] == "agent_sandbox.launch"]


def test_a_backend_that_is_lacking_is_refused_with_the_reason(up):
    problem = up.api.post(f"{PLATFORM}/run", {"agent": "helper", "command": ["true"], "backend": "firecracker"}).problem(422, "backend_unavailable")
    assert "firecracker" in problem["detail"]
    plan = up.api.ok("POST", f"{PLATFORM}/plan", {"agent": "helper", "command": ["true"], "backend": "firecracker"})
    assert plan["backend"] is None and any("backend_unavailable" in one for one in plan["would_refuse"])
    rows = until(lambda: up.api.audit("?action=agent_sandbox.refusal"), 10, "a refusal row")
    assert any("firecracker" in json.dumps(row) for row in rows)


# --- events

def test_events_stream_state_and_output(up):
    run = up.api.submit("helper", ["sh", "-c", "for i in 1 2 3; do echo line $i; sleep 0.2; done; echo oops >&2"])
    events = list(up.api.events(run))
    states = [data["state"] for _, name, data in events if name == "state"]
    assert states[-1] == "finished" and states == sorted(states, key=["submitted", "queued", "assigned", "running", "finished"].index)
    text = {"stdout": "", "stderr": ""}
    for _, name, data in events:
        if name == "output":
            text[data["stream"]] += data["data"]
    assert text == {"stdout": "line 1\nline 2\nline 3\n", "stderr": "oops\n"}


def test_events_resume_behind_the_last_id(up):
    run = up.api.submit("helper", ["sh", "-c", "echo one; sleep 0.3; echo two; sleep 0.3; echo three; sleep 2"])
    got = []
    for number, name, data in up.api.events(run):
        if name == "output":
            got.append((number, data["data"]))
            break
    rest = "".join(data["data"] for _, name, data in up.api.events(run, last_event_id=got[0][0]) if name == "output")
    assert got[0][1] + rest == "one\ntwo\nthree\n"


def test_a_client_that_hangs_up_does_not_end_the_run(up):
    connection = up.api.connection(30)
    connection.request("POST", f"{PLATFORM}/run", json.dumps({"agent": "helper", "command": ["sh", "-c", "sleep 1; echo done"], "labels": {"left": "alone"}}),
                       {"Authorization": f"Bearer {up.token}"})
    found = until(lambda: up.api.ok("GET", "/v1/runs?label=left%3Dalone")["runs"], 10, "the run")
    assert "\nstockade_gateway_abandoned_total 0\n" in up.api.get("/metrics").body.decode()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a close alone is a half-close to the server
    connection.close()
    row = finished(up, found[0]["id"])
    assert row["result"]["stdout_tail"] == "done\n" and row["reason"] == "exited" and not row["cancel_asked"]
    assert "\nstockade_gateway_abandoned_total 1\n" in up.api.get("/metrics").body.decode()


# --- pools, workers, audit

def test_a_warm_pool_serves_the_next_run(up):
    assert up.api.ok("PUT", "/v1/pools/warm", {"agent": "helper", "target": 2})["after"]["target"] == 2
    until(lambda: up.api.ok("GET", "/v1/pools/warm")["warm"] == 2, 20, "two warm sandboxes")
    assert up.api.run("helper", ["echo", "hi"])["warm"] is True
    assert [pool["name"] for pool in up.api.ok("GET", "/v1/pools")["pools"]] == ["warm"]
    assert up.api.ok("GET", "/v1/pools/warm")["spec"]["agent"] == "helper"
    up.api.ok("PUT", "/v1/pools/warm", {"agent": "helper", "target": 0})
    until(lambda: up.api.ok("GET", "/v1/pools/warm")["warm"] == 0, 20, "no warm sandbox")
    up.api.get("/v1/pools/none").problem(404, "not_found")
    up.api.put("/v1/pools/warm", {"agent": "helper", "target": -1}).problem(422)


def test_workers_say_what_their_hosts_have(up):
    (worker,) = up.api.ok("GET", "/v1/workers")["workers"]
    assert worker["id"] == up.worker and worker["live"] is True and worker["slots"] >= 1
    assert [one["ok"] for one in worker["backends"] if one["name"] == "oci"] == [True]


def test_audit_is_filtered_ordered_and_paged(up):
    run = up.api.run("helper", ["true"])["run_id"]
    rows = until(lambda: (lambda found: found if len(found) == 2 else None)(up.api.audit(f"?run={run}&order=oldest")), 10, "two rows")
    assert [row["action"] for row in up.api.audit(f"?run={run}")] == ["agent_sandbox.teardown", "agent_sandbox.launch"]
    page = up.api.ok("GET", f"/v1/audit?run={run}&order=oldest&limit=1")
    assert [row["id"] for row in page["rows"]] == [rows[0]["id"]] and page["next"]
    rest = up.api.ok("GET", f"/v1/audit?run={run}&order=oldest&limit=1&cursor={page['next']}")
    assert [row["id"] for row in rest["rows"]] == [rows[1]["id"]]
    assert up.api.audit(f"?run={run}&action=agent_sandbox.launch")[0]["id"] == rows[0]["id"]
    assert len(up.api.audit(f"?run={run}&since={rows[0]['time']}")) == 2
    assert up.api.audit(f"?run={run}&until={rows[0]['time']}") in ([], [rows[0]])
    up.api.get("/v1/audit?since=yesterday").problem(422)


# --- what watches it

def test_health_readiness_metrics_need_no_token(up):
    api = Api(up.url)
    assert api.get("/healthz").status == 200 and api.get("/readyz").status == 200
    text = api.get("/metrics").body.decode()
    assert re.search(r"^stockade_\w+ \d", text, re.M)
    assert re.findall(r"^# TYPE (\S+) \w+$", text, re.M) == list(dict.fromkeys(re.findall(r"^# TYPE (\S+) \w+$", text, re.M))), "a family is said twice"
    names = set(re.findall(r"^(stockade_\w+?)(?:_bucket|_sum|_count)?(?:\{| )", text, re.M))
    assert len(names) >= 10, names


def test_openapi_describes_every_path(up):
    document = Api(up.url).get("/openapi.json").json
    assert document["openapi"].startswith("3.")
    for path in (PLATFORM, f"{PLATFORM}/plan", f"{PLATFORM}/run", ORG, "/v1/runs", "/v1/runs/{id}", "/v1/runs/{id}/cancel", "/v1/runs/{id}/events",
                 "/v1/audit", "/v1/workers", "/v1/pools/{name}", "/healthz", "/readyz", "/metrics"):
        assert path in document["paths"], path


def test_a_console_is_served(up):
    answer = Api(up.url).get("/")
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("method, path, status, code", [
    ("GET", "/nothing", 404, "not_found"), ("DELETE", "/v1/runs", 405, "method_not_allowed"), ("POST", PLATFORM, 405, "method_not_allowed"),
    ("GET", "/v1/runs/not-an-id", 404, "not_found"), ("GET", "/v1/runs/run-00000000000000000000000000", 404, "not_found"),
    ("GET", "/v1/runs/", 404, "not_found"), ("GET", "/v1/runs/../tokens", 404, "not_found"), ("GET", "/v1/runs?limit=1&limit=2", 400, "bad_request"),
    ("GET", "/v1/runs?label=%zz", 400, "bad_request"),
])
def test_what_is_not_there_is_a_problem(up, method, path, status, code):
    answer = up.api.call(method, path)
    answer.problem(status, code)
    assert status != 405 or answer.headers["Allow"]
