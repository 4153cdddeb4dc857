"""The table of known ways around an egress proxy (egress-cases.json), each against the real program: what must be refused is refused
with the right reason and leaves the right traces (no DNS, no connection, one record), and beside it its mirror, the same request
with the one bad property repaired, goes through. Names are random, so that nothing can be recognised."""
import json
import pathlib
import re
import secrets
import subprocess

import pytest

import egress_steps
from harness import paths
from harness.egress_lab import Lab, Origin, PROXY_V4, Proxy, TIME, read_head, run

CASES = json.loads((pathlib.Path(__file__).parent / "egress-cases.json").read_text())
PUBLIC = "93.184.216.34"
WIRE = [c for c in CASES if not c["request"].startswith(("CONFIG:", "STEPS:"))]
CONFIG = [c for c in CASES if c["request"].startswith("CONFIG:")]
STEPS = [c for c in CASES if c["request"].startswith("STEPS:")]

# Where we name a reason more closely, or check another thing first.
OTHER_REASON = {
    "msg-13": ("bodyless_method_body", "a GET with a body is refused whatever else is odd about it"),
}


@pytest.fixture(scope="module")
def lab():
    lab = Lab()
    lab.origin(443)
    lab.origin(80)
    lab.origin(8443)
    run("ip", "-n", lab.b, "route", "add", "blackhole", "192.0.9.9/32")
    yield lab
    lab.close()


class Names:
    """allowed.example and evil.example under names of this test alone."""

    def __init__(self):
        self.map = {"allowed.example": f"a{secrets.token_hex(4)}.example", "evil.example": f"e{secrets.token_hex(4)}.example"}

    def put(self, text):
        return re.sub(r"(?<![%\w-])(allowed|evil)\.example(?![\w-])", lambda m: self.map[m.group(0)], text, flags=re.I)

    def case(self, text):
        """As put, but ALLOWED.Example stays in mixed case."""
        return re.sub("ALLOWED.Example", self.map["allowed.example"].title(), self.put(text) if "ALLOWED" not in text else text)


def answers(values):
    plain = [v for v in values if not v.startswith("SEQ ")]
    if plain:
        return [{"<closed port>": PUBLIC, "<proxy listener address>": PROXY_V4}.get(v, v) for v in plain]
    steps = [v.removeprefix("SEQ ").split()[0] for v in values]
    return lambda rtype, nth: [steps[min(nth, len(steps)) - 1]]


def policy_of(case, names):
    allow = [names.put("*.evil.example" if e == "*.example" else e) for e in case["allow"]]  # *.example alone is refused at load
    policy = {"version": 5, "allow": allow, "limits": {"connect_seconds": 1, "head_seconds": 3}}
    if found := re.search(r"org allow = \[(.*)\]", case.get("assert", "") + case.get("note", "")):
        policy["organisation"] = {"default": "deny", "allow": [found.group(1)]}
    if case["id"] == "tun-01":
        policy["tls"] = "off"  # its early bytes begin a hello that never becomes whole
    return policy


def set_dns(lab, dns, names):
    lab.dns.names = {names.put(k): answers([names.put(v) for v in vs]) for k, vs in dns.items() if k != "/etc/hosts"}
    lab.dns.hook = None


def request_of(case, names):
    text = names.case(case["request"]).replace("<64 KiB of a>", "a" * 65536)
    if case["id"] == "chunk-07":
        text = text.replace("a" * 64, "a" * 65536)
    if case["id"] == "tun-05":
        text = text.replace(":443", ":444")
    return text.encode("latin-1")


def exchange(proxy, request):
    """Status, head and body of the first answer; for a CONNECT that is let through, the socket too."""
    sock = proxy.connect()
    try:
        sock.sendall(request)
    except (BrokenPipeError, ConnectionResetError):
        pass
    status, head, rest = read_head(sock)
    if request.startswith(b"CONNECT") and status == 200:
        return status, head, rest, sock
    length = re.search(rb"\r\ncontent-length: (\d+)", head, re.I)
    want = int(length.group(1)) if length else 1 << 30
    sock.settimeout(TIME)
    while len(rest) < want:
        more = sock.recv(65536)
        if not more:
            break
        rest += more
    return status, head, rest, sock


def delivered(lab, proxy, request, names):
    """The request goes through: bytes both ways through the tunnel, or the origin's answer."""
    status, head, body, sock = exchange(proxy, request)
    assert status == 200, (status, head, body)
    with sock:
        if not request.startswith(b"CONNECT"):
            assert body == b"hello from the origin\n"
            return head
        early = request.partition(b"\r\n\r\n")[2]
        token = b"hi" + secrets.token_bytes(14)  # not the beginning of a TLS hello
        sock.sendall(token)
        got = body
        while len(got) < len(early) + 16:
            more = sock.recv(100)
            assert more
            got += more
        assert got == early + token
        return head


def mirror_request(case, names):
    """The case with its one bad property repaired."""
    good, request = names.map["allowed.example"], request_of(case, names)
    post = f"POST http://{good}/ HTTP/1.1\r\nHost: {good}\r\n"
    if case["id"].startswith("smug"):
        return (post + "Content-Length: 5\r\n\r\nhello").encode()
    if case["id"].startswith("chunk"):
        return (post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").encode()
    if case["id"].startswith(("addr", "org-04")) and request.startswith(b"CONNECT"):
        return request
    if request.startswith(b"CONNECT"):
        return f"CONNECT {good}:443 HTTP/1.1\r\nHost: {good}:443\r\n\r\n".encode()
    return f"GET http://{good}/ HTTP/1.1\r\nHost: {good}\r\n\r\n".encode()


def mirror_policy(case, policy, names):
    policy = dict(policy, allow=[names.map["allowed.example"]] + [e for e in policy["allow"] if e != names.map["allowed.example"]])
    policy.pop("organisation", None)
    return policy


def quiet(lab):
    lab.capture.take()
    lab.dns.queries.clear()
    return {port: len(origin.notes) for port, origin in lab.origins.items()}


def check_refused(case, lab, proxy, names, before):
    status, head, body, sock = exchange(proxy, request_of(case, names))
    sock.close()
    problem = json.loads(body)
    want = OTHER_REASON.get(case["id"], (case["deny_reason"],))[0]
    assert problem["reason"] == want and 400 <= status < 600, (status, problem)
    statuses = str(case.get("status", status)).split("|")
    assert str(status) in statuses, (status, statuses)
    packets = lab.capture.take()
    if case["must_not_resolve"]:
        assert lab.dns.queries == [] and not [p for p in packets if p[2] == 53], "it asked a name"
    if not case["id"].startswith(("chunk", "msg-10")):
        assert not [p for p in packets if p[3]], "it connected somewhere"
        assert before == {port: len(origin.notes) for port, origin in lab.origins.items()}
    for value in sum(case["dns"].values(), []):
        assert value not in body.decode(), "it told an address"
    record = [r for r in proxy.wait_records(1) if r["kind"] == "decision"][0 if case["id"] == "msg-10" else -1]
    assert record["verdict"] == "deny" and record["reason"] == want and record["policy_version"] == 5
    assert "\x1b" not in json.dumps(record)


def check_allowed(case, lab, proxy, names):
    request = request_of(case, names)
    if case.get("status") in (502, 504):
        status, _, body, sock = exchange(proxy, request)
        sock.close()
        assert status == case["status"], (status, body)
        assert [r["verdict"] for r in proxy.wait_records(1)] == ["allow"] * len(proxy.records())
        return
    delivered(lab, proxy, request, names)


def upstream_of(case, lab, names):
    """What the origin was told, for the cases whose point that is."""
    note = lab.origins[80].notes[-1]["data"].decode("latin-1").lower()
    assert f"\r\nhost: {names.map['allowed.example']}\r\n" in note and note.count("\r\nhost:") == 1
    for field in ("proxy-", "upgrade", "http2-settings", "x-upstream", "x-smokescreen", "cookie", "te:", "keep-alive"):
        assert f"\r\n{field}" not in note, (field, note)
    assert "\r\nconnection: close\r\n" in note


@pytest.mark.parametrize("case", WIRE, ids=lambda c: c["id"])
def test_on_the_wire(case, lab, tmp_path):
    names, mirror_names = Names(), Names()
    policy = policy_of(case, names)
    if case["id"] == "tun-05":
        policy["allow"] = [e + ":444" for e in policy["allow"]]
    set_dns(lab, case["dns"], names)
    odd = {"msg-12": (80, egress_steps.switching_origin), "port-14": (443, Origin.http)}.get(case["id"])
    if odd:
        lab.origin(*odd)
    (tmp_path / "case").mkdir()
    proxy = Proxy(paths.PROXY, lab, tmp_path / "case", policy)
    try:
        before = quiet(lab)
        if case["expect"] == "allow" or (case["id"] == "chunk-08"):
            check_allowed(case, lab, proxy, names)
            if case["id"].startswith("msg") and case["id"] != "msg-12":
                upstream_of(case, lab, names)
            if check := egress_steps.AFTER.get(case["id"]):
                check(lab, proxy, names, lambda: exchange(proxy, request_of(case, names)))
        else:
            check_refused(case, lab, proxy, names, before)
    finally:
        assert proxy.stop() == 0, proxy.stderr()
        if odd:
            lab.origins.pop(odd[0]).close()
            lab.origin(odd[0])
    if case["expect"] == "allow":
        return
    set_dns(lab, {mirror_names.map["allowed.example"]: [PUBLIC], **{k: [PUBLIC] for k in case["dns"]}}, mirror_names)
    lab.dns.names.setdefault("example.com", [PUBLIC])
    (tmp_path / "mirror").mkdir()
    mirror = Proxy(paths.PROXY, lab, tmp_path / "mirror", mirror_policy(case, policy_of(case, mirror_names), mirror_names))
    try:
        delivered(lab, mirror, mirror_request(case, mirror_names), mirror_names)
    finally:
        assert mirror.stop() == 0, mirror.stderr()


@pytest.mark.parametrize("case", CONFIG, ids=lambda c: c["id"])
def test_in_the_policy_file(case, lab, tmp_path):
    def load(allow):
        (tmp_path / "policy").write_text(json.dumps({"version": 1, "allow": ["good.example"] + allow}))
        argv = [str(paths.PROXY), "--explain", "good.example:443", "--policy", str(tmp_path / "policy")]
        return subprocess.run(argv, capture_output=True, text=True, timeout=10)

    bad = load(case["allow"])
    assert bad.returncode == 2 and bad.stdout == "" and bad.stderr.count("\n") == 1 and "/allow/1" in bad.stderr, bad
    repaired = load(["*.example.com"])
    assert repaired.returncode == 0 and "allow: allowed" in repaired.stdout, repaired


@pytest.mark.parametrize("case", STEPS, ids=lambda c: c["id"])
def test_step_by_step(case, lab, tmp_path):
    steps = egress_steps.STEPS[case["id"]]
    lab.dns.hook = None
    quiet(lab)
    steps(lab, tmp_path)


def test_every_case_is_there():
    assert len(CASES) == 166 and len({c["id"] for c in CASES}) == 166
    assert {c["id"] for c in STEPS} == set(egress_steps.STEPS)
