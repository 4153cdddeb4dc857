"""Bad input gets a clear answer at the door, and nothing is enqueued."""
import json

import pytest

from harness.api import PLATFORM

RUN = f"{PLATFORM}/run"


def run_body(**changes):
    body = {"agent": "helper", "command": ["true"], **changes}
    return {name: value for name, value in body.items() if value is not KeyError}


@pytest.fixture(autouse=True)
def nothing_is_enqueued(up):
    before = up.api.pages("/v1/runs", "runs")
    yield
    after = up.api.pages("/v1/runs", "runs")
    assert after == before, "a refused request left a run behind"


# --- texts that are not JSON, or not what JSON should be

NOT_JSON = {
    "empty body": b"",
    "spaces only": b"   ",
    "BOM": b"\xef\xbb\xbf{\"agent\":\"helper\",\"command\":[\"true\"]}",
    "trailing junk": b"{\"agent\":\"helper\",\"command\":[\"true\"]} x",
    "two documents": b"{\"agent\":\"helper\",\"command\":[\"true\"]}{}",
    "duplicate keys": b"{\"agent\":\"helper\",\"agent\":\"helper\",\"command\":[\"true\"]}",
    "lone high surrogate": b"{\"agent\":\"helper\",\"command\":[\"\\ud800\"]}",
    "lone low surrogate": b"{\"agent\":\"helper\",\"command\":[\"\\udc00x\"]}",
    "surrogates the wrong way round": b"{\"agent\":\"helper\",\"command\":[\"\\udc00\\ud800\"]}",
    "100k nested arrays": b"{\"agent\":\"helper\",\"command\":" + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "100k opened arrays": b"[" * 100_000,
    "leading zero": b"{\"agent\":\"helper\",\"command\":[\"true\"],\"timeout_seconds\":01}",
    "raw newline in a string": b"{\"agent\":\"helper\",\"command\":[\"a\nb\"]}",
    "raw NUL": b"{\"agent\":\"helper\",\"command\":[\"a\x00b\"]}",
    "bad UTF-8": b"{\"agent\":\"helper\",\"command\":[\"\xff\xfe\"]}",
    "overlong UTF-8": b"{\"agent\":\"helper\",\"command\":[\"\xc0\xaf\"]}",
    "single quotes": b"{'agent':'helper'}",
    "NaN": b"{\"agent\":\"helper\",\"command\":[\"true\"],\"timeout_seconds\":NaN}",
    "comment": b"{/* */}",
    "cut in the middle": b"{\"agent\":\"helper\",\"command\":[\"tr",
    "trailing comma": b"{\"agent\":\"helper\",\"command\":[\"true\",]}",
}


@pytest.mark.parametrize("what", NOT_JSON)
def test_what_is_not_json_is_400(up, what):
    for path in (RUN, "/v1/runs", f"{PLATFORM}/plan"):
        up.api.post(path, NOT_JSON[what]).problem(400, "invalid_json")
    up.api.put(PLATFORM, NOT_JSON[what]).problem(400, "invalid_json")


@pytest.mark.parametrize("text, pointer", [
    (b"[]", ""), (b"null", ""), (b"\"run\"", ""), (b"5", ""), (b"true", ""),
    (b"{\"agent\":\"helper\",\"command\":[\"a\\u0000b\"]}", "/command/0"),
    (b"{\"agent\":\"helper\",\"command\":[\"true\"],\"timeout_seconds\":1e999}", "/timeout_seconds"),
    (b"{\"agent\":\"helper\",\"command\":[\"true\"],\"priority\":9223372036854775808}", "/priority"),
    (b"{\"agent\":\"helper\",\"command\":[\"true\"],\"priority\":1e999}", "/priority"),
    (b"{\"agent\":\"helper\",\"command\":[\"true\"],\"env\":{\"A\":\"\\u0000\"}}", "/env/A"),
])
def test_json_with_a_wrong_value_names_the_place(up, text, pointer):
    answer = up.api.post("/v1/runs", text)
    assert answer.status in (400, 422), answer
    problem = answer.problem()
    assert answer.status == 400 or problem.get("pointer", "") == pointer, problem


# --- requests

FIELDS = {
    "no agent": ({"agent": KeyError}, "/agent"),
    "empty agent": ({"agent": ""}, "/agent"),
    "agent of another type": ({"agent": 5}, "/agent"),
    "agent with a slash": ({"agent": "a/b"}, "/agent"),
    "agent that begins with a dot": ({"agent": ".."}, "/agent"),
    "agent that is too long": ({"agent": "a" * 129}, "/agent"),
    "no command": ({"command": KeyError}, "/command"),
    "empty list": ({"command": []}, "/command"),
    "empty string": ({"command": ""}, "/command"),
    "spaces": ({"command": "   "}, "/command"),
    "empty program": ({"command": [""]}, "/command/0"),
    "number": ({"command": 5}, "/command"),
    "null": ({"command": None}, "/command"),
    "object": ({"command": {"a": 1}}, "/command"),
    "number in the list": ({"command": ["echo", 5]}, "/command/1"),
    "list in the list": ({"command": ["echo", ["x"]]}, "/command/1"),
    "NUL in an argument": ({"command": ["echo", "a\0b"]}, "/command/1"),
    "unbalanced quote": ({"command": "echo 'x"}, "/command"),
    "unbalanced double quote": ({"command": 'echo "x'}, "/command"),
    "backslash at the end": ({"command": "echo x\\"}, "/command"),
    "timeout 0": ({"timeout_seconds": 0}, "/timeout_seconds"),
    "timeout -1": ({"timeout_seconds": -1}, "/timeout_seconds"),
    "timeout 1e300": ({"timeout_seconds": 1e300}, "/timeout_seconds"),
    "timeout -0.0": ({"timeout_seconds": -0.0}, "/timeout_seconds"),
    "timeout 1e-9": ({"timeout_seconds": 1e-9}, "/timeout_seconds"),
    "timeout 1e18": ({"timeout_seconds": 1e18}, "/timeout_seconds"),
    "timeout 2^63": ({"timeout_seconds": 1 << 63}, "/timeout_seconds"),
    "timeout true": ({"timeout_seconds": True}, "/timeout_seconds"),
    "timeout as a list": ({"timeout_seconds": []}, "/timeout_seconds"),
    "timeout as text": ({"timeout_seconds": "5"}, "/timeout_seconds"),
    "timeout null": ({"timeout_seconds": None}, "/timeout_seconds"),
    "timeout over the agent's limit": ({"timeout_seconds": 3601}, "/timeout_seconds"),
    "unknown field": ({"comand": ["true"]}, "/comand"),
    "unknown backend": ({"backend": "magic"}, "/backend"),
    "env of another type": ({"env": ["A=1"]}, "/env"),
    "env value of another type": ({"env": {"A": 1}}, "/env/A"),
    "env name with =": ({"env": {"A=B": "1"}}, "/env/A=B"),
    "env name with a digit first": ({"env": {"1A": "1"}}, "/env/1A"),
    "env name empty": ({"env": {"": "1"}}, "/env/"),
    "priority 10": ({"priority": 10}, "/priority"),
    "priority -1": ({"priority": -1}, "/priority"),
    "priority 1.5": ({"priority": 1.5}, "/priority"),
    "retry word": ({"retry": "sometimes"}, "/retry"),
    "deadline 0": ({"deadline_seconds": 0}, "/deadline_seconds"),
    "labels of another type": ({"labels": {"a": 1}}, "/labels/a"),
    "webhook, which is not built": ({"webhook": "http://x"}, "/webhook"),
    "stdin that is no base64": ({"stdin_base64": "%%"}, "/stdin_base64"),
}


@pytest.mark.parametrize("what", FIELDS)
def test_a_wrong_field_is_named(up, what):
    changes, pointer = FIELDS[what]
    for path in (RUN, "/v1/runs"):
        problem = up.api.post(path, run_body(**changes)).problem(422)
        assert problem["pointer"] == pointer, problem
        assert problem["code"] in ("invalid_field", "missing_field", "unknown_field")


def test_a_plan_takes_no_timeout(up):
    answer = up.api.post(f"{PLATFORM}/plan", {"agent": "helper", "command": ["true"], "timeout_seconds": 0.25})
    assert answer.problem(422, "unknown_field")["pointer"] == "/timeout_seconds"


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", "no type"])
def test_json_is_judged_by_its_text_and_not_by_its_type(up, kind):
    headers = {"Content-Type": kind}
    assert up.api.post(f"{PLATFORM}/plan", b'{"agent":"helper","command":["true"]}', headers=headers).status == 200
    up.api.post("/v1/runs", b"agent=helper&command=true", headers=headers).problem(400, "invalid_json")


@pytest.mark.parametrize("command, pointer", [
    (["echo", "x" * 200_000], "/command/1"),
    ("echo " + "x" * 200_000, "/command"),
    (["echo"] + ["x" * 1000] * 1060, None),
    (["echo"] + ["x"] * 5000, "/command"),
])
def test_more_than_exec_can_take_is_413(up, command, pointer):
    problem = up.api.post("/v1/runs", run_body(command=command)).problem(413, "too_large")
    assert pointer is None or problem["pointer"] == pointer


def test_a_body_over_the_limit_is_413(up):
    body = json.dumps(run_body(stdin="x" * (1 << 20))).encode()
    assert len(body) > 1 << 20
    up.api.post("/v1/runs", body).problem(413, "too_large")


# --- configuration

BAD_ENTRIES = ["*", "*.", "", "*.com", "http://x", "https://api.vendor.com/", "x:0", "x:99999", "x:-1", "x:", "x:80:80", "x y", "x/y", "user@x.com",
               "127.0.0.1", "10.0.0.1:80", "[::1]", "::1", "0x7f000001", "0177.0.0.1", "2130706433", "1.2.3", "a..b", ".a", "-a.com", "a_b!.com",
               "a" * 64 + ".com", "*.*.com", "a.*.com", "**.com", "x.com\0", "x.com\n", "%2e.com", "xn--", "x.com?"]


@pytest.mark.parametrize("entry", BAD_ENTRIES, ids=repr)
def test_a_bad_allow_entry_refuses_the_whole_document(up, entry):
    before = up.api.get(PLATFORM)
    body = {"enabled": True, "agents": {"helper": {"allow": ["fine.example.org", entry]}}, "reason": "x"}
    problem = up.api.put(PLATFORM, body).problem(422)
    assert problem["pointer"] == "/agents/helper/allow/1", problem
    after = up.api.get(PLATFORM)
    assert after.body == before.body and after.headers["ETag"] == before.headers["ETag"]


@pytest.mark.parametrize("entry, canonical", [
    ("API.Vendor.COM", "api.vendor.com"), ("api.vendor.com.", "api.vendor.com"), ("bücher.example", "xn--bcher-kva.example"),
    ("*.Example.org", "*.example.org"), ("db.example.com:5432", "db.example.com:5432"),
])
def test_spellings_of_a_name_are_one_name(up, entry, canonical):
    plan = None
    before = up.api.ok("GET", PLATFORM)
    try:
        up.api.configure({"helper": {"allow": [entry]}})
        plan = up.api.ok("POST", f"{PLATFORM}/plan", {"agent": "helper", "command": ["true"]})
    finally:
        up.api.configure(before["agents"])
    assert [one["entry"] for one in plan["allow"]] == [canonical]


@pytest.mark.parametrize("changes, pointer", [
    ({"agents": {"helper": {"limits": {"memory_bytes": 1 << 60}}}}, "/agents/helper/limits/memory_bytes"),
    ({"agents": {"helper": {"limits": {"memory_bytes": 1}}}}, "/agents/helper/limits/memory_bytes"),
    ({"agents": {"helper": {"limits": {"pids": 0}}}}, "/agents/helper/limits/pids"),
    ({"agents": {"helper": {"limits": {"cpu_millis": 1e9}}}}, "/agents/helper/limits/cpu_millis"),
    ({"agents": {"helper": {"limits": {"timeout_seconds": 1e6}}}}, "/agents/helper/limits/timeout_seconds"),
    ({"agents": {"helper": {"limits": {"memory": 1}}}}, "/agents/helper/limits/memory"),
    ({"agents": {"helper": {"alow": []}}}, "/agents/helper/alow"),
    ({"agents": {"helper": {"allow": "x.com"}}}, "/agents/helper/allow"),
    ({"agents": {"helper": {"allow": [5]}}}, "/agents/helper/allow/0"),
    ({"agents": {"helper": {"tls": "maybe"}}}, "/agents/helper/tls"),
    ({"agents": {"a b": {}}}, "/agents/a b"),
    ({"agents": []}, "/agents"),
    ({"enabled": "yes"}, "/enabled"),
    ({"enabled": None}, "/enabled"),
    ({"backend": "best"}, "/backend"),
    ({"extra": 1}, "/extra"),
])
def test_a_wrong_member_of_the_document_is_named(up, changes, pointer):
    body = {"enabled": True, "agents": {"helper": {}}, "reason": "x", **changes}
    assert up.api.put(PLATFORM, body).problem(422)["pointer"] == pointer


@pytest.mark.parametrize("body, pointer", [
    ({"default": "maybe"}, "/default"), ({"deny": ["*"]}, "/deny/0"), ({"allow": ["http://x"]}, "/allow/0"), ({"agents": {"helper": {"deny": ["x:0"]}}}, "/agents/helper/deny/0"),
    ({"denied": []}, "/denied"),
])
def test_a_wrong_member_of_the_organisation_policy_is_named(up, body, pointer):
    assert up.api.put("/api/admin/platform/egress-policy", {"reason": "x", **body}).problem(422)["pointer"] == pointer


# --- HTTP itself

@pytest.mark.parametrize("raw, status", [
    (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    (b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 6\r\n\r\n", 400),
    (b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400),
    (b"GARBAGE\r\n\r\n", 400),
    (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505),
    (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\n\r\n", 400),
    (b"GET /v1/runs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400),
    (b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\nIdempotency-Key: a\r\nidempotency-key: b\r\n\r\n", 400),
])
def test_malformed_http_is_refused_and_the_connection_closed(up, raw, status):
    connection = up.api.connection(10)
    connection.connect()
    connection.sock.sendall(raw)
    connection.sock.settimeout(20)
    answer = b""
    try:
        while chunk := connection.sock.recv(65536):
            answer += chunk
    except ConnectionResetError:
        pass
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:300]
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head and json.loads(body)["status"] == status


# --- who asks

def test_a_missing_or_wrong_token_is_401(up):
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": "Bearer stk_" + "0" * 64}, {"Authorization": f"Basic {up.token}"},
                    {"Authorization": f"Bearer {up.token}x"}, {"Authorization": f"Bearer {up.token[:-1]}"}):
        answer = up.api.with_token(None).get(PLATFORM, headers=headers)
        answer.problem(401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer"), answer.headers
    assert up.api.get(PLATFORM, headers={"Authorization": f"bearer {up.token}"}).status == 200, "the scheme's case does not matter"
