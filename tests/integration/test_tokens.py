"""Tokens: tenants, scopes, expiry, and a server without tokens."""
import pytest

from harness.api import Api, PLATFORM
from harness.up import Refused
from harness.wait import until

ORG = "/api/admin/platform/egress-policy"
RUN_BODY = {"agent": "helper", "command": ["true"]}
CALLS = {
    "runs.write": [("POST", f"{PLATFORM}/run", RUN_BODY), ("POST", "/v1/runs", RUN_BODY), ("POST", "/v1/runs/run-0000000000000000000000000/cancel", None)],
    "runs.read": [("GET", "/v1/runs", None), ("GET", "/v1/runs/run-x", None), ("GET", "/v1/runs/run-x/events", None)],
    "plan": [("POST", f"{PLATFORM}/plan", RUN_BODY)],
    "config.read": [("GET", PLATFORM, None), ("GET", ORG, None), ("GET", "/v1/workers", None), ("GET", "/v1/pools", None)],
    "config.write": [("PUT", PLATFORM, {"enabled": True, "agents": {"helper": {"allow": ["api.vendor.com"]}}}), ("PUT", ORG, {})],
    "audit.read": [("GET", "/v1/audit", None)],
    "pools.write": [("PUT", "/v1/pools/p", {"agent": "helper", "target": 0})],
    "admin": [("GET", "/v1/tokens", None)],
}
SCOPES = list(CALLS)


@pytest.fixture(scope="module")
def scoped(built):
    """An instance with one token for each scope alone, one of another tenant, and one that expires in two seconds."""
    from harness.up import Up
    with Up() as one:
        one.create_token()
        tokens = {scope: one.create_token("--scopes", scope) for scope in SCOPES}
        tokens["other tenant"] = one.create_token("--scopes", "all", "--tenant", "acme")
        tokens["short"] = one.create_token("--scopes", "all", "--expires", "2")
        one.start()
        one.api.configure({"helper": {"allow": ["api.vendor.com"]}})
        yield one, tokens


@pytest.mark.parametrize("scope", SCOPES)
def test_a_call_needs_its_scope(scoped, scope):
    up, tokens = scoped
    for method, path, body in CALLS[scope]:
        for other in SCOPES:
            if other in (scope, "admin"):
                continue
            problem = Api(up.url, tokens[other]).call(method, path, body).problem(403, "forbidden")
            assert scope in problem["detail"], problem
        assert Api(up.url, tokens[scope]).call(method, path, body).status not in (401, 403), (method, path)


def test_loosening_needs_a_scope_of_its_own(scoped):
    up, tokens = scoped
    current = up.api.ok("GET", PLATFORM)["agents"]
    wider = {"enabled": True, "agents": {**current, "helper": {"allow": ["api.vendor.com", "example.com"]}}, "reason": "wanted"}
    problem = Api(up.url, tokens["config.write"]).put(PLATFORM, wider).problem(403, "forbidden")
    assert "governance.weaken" in problem["detail"] and "example.com" in problem["detail"], problem
    assert up.api.put(PLATFORM, {**wider, "reason": ""}).problem(422)["pointer"] == "/reason"
    answer = up.api.ok("PUT", PLATFORM, wider)
    assert [one["pointer"] for one in answer["weakening"]] == ["/agents/helper/allow/1"]
    up.api.ok("PUT", PLATFORM, {"enabled": True, "agents": current})


def test_tenants_do_not_see_each_other(scoped):
    up, tokens = scoped
    other = Api(up.url, tokens["other tenant"])
    run = up.api.submit("helper", ["true"])
    other.get(f"/v1/runs/{run}").problem(404, "not_found")
    other.post(f"/v1/runs/{run}/cancel").problem(404, "not_found")
    assert other.ok("GET", "/v1/runs")["runs"] == []
    assert other.ok("GET", PLATFORM)["enabled"] is False
    other.post("/v1/runs", RUN_BODY).problem(409, "not_sandboxed")
    assert all(row["tenant"] == "acme" for row in other.audit())
    until(lambda: up.api.ok("GET", f"/v1/runs/{run}")["state"] == "finished", 20, "finished")


def test_only_admin_may_name_another_tenant(scoped):
    up, tokens = scoped
    Api(up.url, tokens["config.read"]).get(f"{PLATFORM}?tenant=acme").problem(403, "forbidden")
    assert up.api.ok("GET", f"{PLATFORM}?tenant=acme")["enabled"] is False


def test_a_token_expires(scoped):
    up, tokens = scoped
    short = Api(up.url, tokens["short"])
    until(lambda: short.get(PLATFORM).status == 401, 10, "expired")
    short.get(PLATFORM).problem(401, "unauthenticated")


def test_tokens_are_stored_as_hashes(scoped):
    up, tokens = scoped
    for path in up.state_dir.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not any(token.encode() in data for token in tokens.values()), path


def test_tokens_are_made_and_taken_back_through_the_api(scoped):
    up, _ = scoped
    made = up.api.ok("POST", "/v1/tokens", {"scopes": ["runs.read"], "label": "ci"})
    mine = Api(up.url, made["token"])
    until(lambda: mine.get("/v1/runs").status == 200, 10, "the token is in force")
    mine.get(PLATFORM).problem(403, "forbidden")
    listed = up.api.ok("GET", "/v1/tokens")["tokens"]
    assert any(one["label"] == "ci" for one in listed) and made["token"] not in str(listed)
    assert up.api.call("DELETE", f"/v1/tokens/{made['details']['id']}").status in (200, 204)
    until(lambda: mine.get("/v1/runs").status == 401, 10, "the token is taken back")


# --- without tokens

def test_a_server_without_tokens_does_not_start(fresh):
    up = fresh()
    up.token = ""
    with pytest.raises(Refused) as refused:
        up.start()
    assert refused.value.status != 0 and "token" in refused.value.log.strip().splitlines()[-1]


def test_auth_none_is_for_loopback_only(fresh):
    up = fresh(listen="0.0.0.0:0", flags=["--auth", "none"])
    with pytest.raises(Refused) as refused:
        up.start()
    assert "loopback" in refused.value.log


@pytest.mark.parametrize("headers, why", [
    ({"Origin": "https://evil.example"}, "Origin"),
    ({"Sec-Fetch-Site": "cross-site"}, "Sec-Fetch-Site"),
    ({"Host": "evil.example"}, "Host"),
])
def test_without_tokens_a_web_page_cannot_reach_it(open_up, headers, why):
    open_up.api.get("/v1/runs", headers=headers).problem(403, "forbidden")
    assert open_up.api.get("/v1/runs").status == 200


@pytest.fixture(scope="module")
def open_up(built):
    from harness.up import Up
    with Up(flags=["--auth", "none"]) as one:
        one.start()
        yield one


def test_it_serves_on_a_unix_socket(fresh, tmp_path):
    up = fresh(listen=f"unix:{tmp_path}/s", flags=["--auth", "none"]).start()
    assert up.url == f"unix:{tmp_path}/s"
    assert up.api.get("/healthz").status == 200
    assert up.cli("runs", check=0).stdout.startswith("RUN")
