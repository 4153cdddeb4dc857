"""The table of egress-cases.json against other egress proxies: the same bytes to each, judged by the same eyes, each in a world of its
own and set up as strictly as it can be. A side-by-side table is printed. Beside every case that must be refused its mirror runs, the
request with the bad property repaired: a proxy that refuses everything proves nothing."""
import collections
import concurrent.futures
import contextlib
import re
import secrets
import socket
import time

import pytest

import egress_steps
from harness.egress_lab import PROXY_V4, Lab, Origin, connect_request, inside, read_head, run, wait_for
from harness.peers import CLIENT, NAMES, Peer, smokescreen, version
from test_egress_cases import WIRE

PUBLIC, SWITCHING, HTTP_ON_443, UNREACHABLE = "93.184.216.34", "93.184.216.35", "93.184.216.36", "93.184.216.37"
BLACKHOLE = "192.0.9.9"  # it and the unreachable one see SYNs again and again: whose they are cannot be told
PLACES = {"<closed port>": UNREACHABLE, "<proxy listener address>": PROXY_V4}
SPECIAL = {"msg-12": SWITCHING, "port-14": HTTP_ON_443}
STRIPPED = {"msg-11": ("upgrade", "http2-settings"), "msg-15": ("proxy-authorization", "proxy-connection", "te", "keep-alive"),
            "msg-17": ("cookie",)}
PATIENCE, LONG_PATIENCE = 4, 12  # seconds without a byte are an answer of their own; the long one where the world fails
# What a configuration cannot say: names with a port; an organisation's list over the sandbox's.
CANNOT = {"smokescreen": {"port-03", "org-04"}, "tinyproxy": {"port-03", "org-04"}}
MORE = {"organisation": {"org-04"}}
Verdict = collections.namedtuple("Verdict", "right text")


class Case:
    """A case under names of its own, and its mirror under others."""

    def __init__(self, row):
        self.row, self.id = row, row["id"]
        self.map, self.mirror_map = self.names(), self.names()
        self.allow = [self.put(entry) for entry in row["allow"]]
        if self.id == "host-13":
            self.allow = [f"*.{self.map['evil.example']}"]  # *.example would be every name of the others
        self.mirror_allow = self.mirror_map["allowed.example"]
        self.hosts = "\n".join(self.put(line) for line in row["dns"].get("/etc/hosts", []))

    @staticmethod
    def names():
        tag = secrets.token_hex(5)
        return {f"{name}.example": f"{name[:2]}{tag}.example" for name in ("allowed", "evil", "other", "attacker")} | {
            "example.com": f"x{tag}.com", "tag": tag}

    def put(self, text, names=None):
        names = names or self.map
        text = text.replace("%61llowed.example", "%61" + names["allowed.example"][1:])
        text = text.replace("evil%2eexample", "a%2e" + names["evil.example"])
        text = text.replace("ALLOWED.Example", names["allowed.example"].title())
        found = r"(?<![%\w-])(?:allowed|evil|other|attacker)\.example(?![\w-])|example\.com"
        return re.sub(found, lambda m: names[m.group(0)], text)

    def request(self):
        text = self.put(self.row["request"]).replace("<64 KiB of a>", "a" * 65536)
        return (text.replace("a" * 64, "a" * 65536) if self.id == "chunk-07" else text).encode("latin-1")

    def dns(self):
        told = {"allowed.example": [PUBLIC]} if "allow" in self.row.get("also_ok", ()) else {}
        return {self.put(k): self.answers(v) for k, v in (told | self.row["dns"]).items() if k != "/etc/hosts"}

    def answers(self, values):
        plain = [self.put(PLACES.get(v, v)) for v in values if not v.startswith("SEQ ")]
        if plain:
            return [SPECIAL.get(self.id, v) if v == PUBLIC else v for v in plain]
        steps = [v.removeprefix("SEQ ").split()[0] for v in values]
        return lambda rtype, nth: [steps[min(nth, len(steps)) - 1]] if rtype == 1 else []

    def mirror(self):
        """The request with its bad property repaired, which must go through; None for a case that must go through itself."""
        if self.row["expect"] == "allow":
            return None
        good = self.mirror_allow
        post = f"POST http://{good}/ HTTP/1.1\r\nHost: {good}\r\n"
        if self.id.startswith("smug"):
            return (post + "Content-Length: 5\r\n\r\nhello").encode()
        if self.id.startswith("chunk"):
            return (post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").encode()
        if self.row["request"].startswith("CONNECT"):
            return connect_request(good)
        return f"GET http://{good}/ HTTP/1.1\r\nHost: {good}\r\n\r\n".encode()


class Folded(dict):
    """Names of the DNS, in whatever case they are asked."""

    def get(self, name):
        return super().get(name.lower())


class World:
    """One proxy in a lab of its own, allowing what all cases allow."""

    def __init__(self, name, cases, **more):
        with contextlib.ExitStack() as ends:
            self.lab = Lab()
            ends.callback(self.lab.close)
            self.set_up(name, cases, ends, **more)
            self.ends = ends.pop_all()

    def set_up(self, name, cases, ends, **more):
        self.lab.origin(80, self.by_address)
        self.lab.origin(443, self.by_address)
        self.lab.origin(8443)
        run("ip", "-n", self.lab.b, "route", "add", "blackhole", f"{BLACKHOLE}/32")
        run("ip", "-n", self.lab.b, "route", "add", "unreachable", f"{UNREACHABLE}/32")
        wait_for("IPv6 goes across", self.reaches_ipv6)
        self.lab.dns.names = Folded()
        for case in cases:
            self.lab.dns.names |= case.dns() | {case.mirror_allow: [PUBLIC]}
        control = f"c.{cases[0].map['example.com']}"
        self.lab.dns.names[control] = [PUBLIC]
        allow = [control] + list(dict.fromkeys(entry for case in cases for entry in case.allow + [case.mirror_allow]))
        self.name, self.make = name, lambda: Peer(name, self.lab, allow, hosts="\n".join(c.hosts for c in cases), **more)
        self.peer = self.make()
        ends.callback(lambda: self.peer.stop())
        assert self.exchange(connect_request(control))[2], f"{name} lets nothing through"  # what it asks at its start is over
        self.tags = {case.map["tag"] for case in cases} | {case.mirror_map["tag"] for case in cases}

    @staticmethod
    def by_address(conn, note):
        if note["address"] == SWITCHING:
            return egress_steps.switching_origin(conn, note)
        if note["port"] == 80 or note["address"] == HTTP_ON_443:
            return patient_origin(conn, note)
        return Origin.echo(conn, note)

    def reaches_ipv6(self):
        with inside(self.lab.a), socket.socket(socket.AF_INET6) as sock:
            sock.settimeout(1)
            return sock.connect_ex(("2606:4700::1", 443)) == 0

    def close(self):
        self.ends.close()

    def exchange(self, request, patience=PATIENCE):
        """(status or 0, head, whether bytes came through, silence)."""
        with self.peer.connect() as sock:
            sock.settimeout(patience)
            try:
                sock.sendall(request)
                status, head, rest = read_head(sock)
                if status != 200 and not 101 <= status < 200:
                    aftermath(sock)
                    return status, head, False, False
                return status, head, self.came_through(sock, request, head, rest), False
            except socket.timeout:
                return 0, b"", False, True
            except OSError:
                return 0, b"", False, False

    @staticmethod
    def came_through(sock, request, head, rest):
        """Bytes both ways through a tunnel (those sent early included), or the origin's own answer."""
        try:
            if request.startswith(b"CONNECT"):
                want = request.partition(b"\r\n\r\n")[2] + secrets.token_bytes(16)
                sock.sendall(want[-16:])
            else:
                want = b"hello from the origin\n"
            while len(rest) < len(want) and (more := sock.recv(65536)):
                rest += more
            return rest.startswith(want) or (b"chunked" in head.lower() and want in rest)
        except OSError:
            return False

    def quiet(self):
        self.lab.capture.take()
        self.lab.dns.queries.clear()
        return {port: len(origin.notes) for port, origin in self.lab.origins.items()}

    def dialled(self):
        """Where the proxy sent a SYN; our own to the proxy is not one."""
        syns = dict.fromkeys((to, port) for to, _, port, syn in self.lab.capture.take() if syn)
        return [at for at in syns if at != ("127.0.0.1", self.peer.port) and at[0] not in (BLACKHOLE, UNREACHABLE)]

    def asked(self, case):
        """Queries that this case is the reason for: not a late one of an earlier case, nor who the client is."""
        others = self.tags - {case.map["tag"]} | {".".join(CLIENT.split(".")[::-1]) + ".in-addr.arpa"}
        return [name for name, _ in self.lab.dns.queries if not any(tag in name.lower() for tag in others)]

    def reached(self, before):
        return [note for port, origin in self.lab.origins.items() for note in origin.notes[before[port]:]]


def aftermath(sock):
    """A refusal's consequences, if it has any: until the connection is closed, or a while nothing comes."""
    sock.settimeout(0.15)
    try:
        while sock.recv(65536):
            pass
    except OSError:
        pass


def patient_origin(conn, note):
    """Answers once a body that was announced is whole, or nothing more of it comes, so that no answer overtakes a refusal."""
    conn.settimeout(0.5)
    try:
        while not whole(note["data"]):
            if not (data := conn.recv(65536)):
                return
            note["data"] += data
    except socket.timeout:
        pass
    body = b"hello from the origin\n"
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    conn.settimeout(5)
    while data := conn.recv(65536):
        note["data"] += data


def whole(data):
    head, end, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
    if b"chunked" in head.lower():
        return body.endswith(b"0\r\n\r\n")
    return bool(end) and len(body) >= int(length.group(1) if length else 0)


def judge(world, case):
    before = world.quiet()
    status, head, through, silence = world.exchange(case.request(), LONG_PATIENCE if case.row.get("status") in (502, 504) else PATIENCE)
    if not world.peer.alive():
        world.peer.stop()
        world.peer = world.make()
        return Verdict(False, "crashed")
    told = "silence" if silence else str(status or "closed")
    syns, asked, notes = world.dialled(), world.asked(case), world.reached(before)
    refusal = judge_refusal(case, told, status, silence, syns, asked)
    passage = judge_passage(case, told, status, head, through, syns, notes)
    expected, other = (passage, refusal) if case.row["expect"] == "allow" else (refusal, passage)
    fine = {"allow"} if other is passage else {"deny", "400-class"}
    return other if fine & set(case.row.get("also_ok", ())) and other.right else expected


def judge_refusal(case, told, status, silence, syns, asked):
    if silence or 0 < status < 400:
        return Verdict(False, told)
    if case.row["must_not_resolve"] and asked:
        return Verdict(False, f"{told}, asked DNS")
    if syns and not case.id.startswith(("chunk", "msg-10")):
        return Verdict(False, f"{told}, dialled {syns[0][0]}:{syns[0][1]}")
    return Verdict(True, told)


def judge_passage(case, told, status, head, through, syns, notes):
    if case.row.get("status") in (502, 504):
        stray = [to for to, _ in syns if to.startswith("127.")]
        return Verdict(status >= 500 and not stray, f"{told}, dialled {stray[0]}" if stray else told)
    if not through:
        return Verdict(False, f"{told}, nothing came")
    bad = [to for to, _ in syns if to not in (PUBLIC, HTTP_ON_443, "172.32.0.1")]
    if bad:
        return Verdict(False, f"{told}, dialled {bad[0]}")
    if case.id == "tun-04" and re.search(rb"\r\n(content-length|transfer-encoding):", head, re.I):
        return Verdict(False, f"{told} with a length")
    upstream = notes[-1]["data"].decode("latin-1").lower()
    for field in STRIPPED.get(case.id, ()):
        if f"\r\n{field}:" in upstream.partition("\r\n\r\n")[0] + "\r\n":
            return Verdict(False, f"{told}, passed {field} on")
    host = re.findall(r"\r\nhost: *(\S+)", upstream.partition("\r\n\r\n")[0])
    if case.id.startswith("msg") and host != [case.map["allowed.example"]]:
        return Verdict(False, f"{told}, Host {' '.join(host)}")
    return Verdict(True, told)


def judge_all(name):
    """(case id -> Verdict, mirrors that did not come through)."""
    cases = [Case(row) for row in WIRE]
    verdicts, failed = {}, []
    for group in (False, True):
        some = [case for case in cases if (case.id in MORE["organisation"]) == group and case.id not in CANNOT.get(name, ())]
        if not some:
            continue
        more = {"organisation": {case.map["example.com"]: f"*.{case.map['example.com']}" for case in some}} if group else {}
        world = World(name, some, **more)
        try:
            for case in some:
                verdicts[case.id] = judge(world, case)
            mirrors = World(name, some) if group else world
            for case in some:
                if (request := case.mirror()) and not mirrors.exchange(request)[2]:
                    failed.append(case.id)
            if mirrors is not world:
                mirrors.close()
        finally:
            world.close()
    return verdicts, failed


def cell(verdict):
    return "-" if verdict is None else ("ok     " if verdict.right else "WRONG  ") + verdict.text


def family(case_id):
    return case_id.rpartition("-")[0]


def sums(verdicts, ids):
    known = [verdicts[i] for i in ids if i in verdicts]
    return f"{sum(v.right for v in known)} of {len(known)}" if known else "-"


@pytest.fixture(scope="module")
def results():
    smokescreen()
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(NAMES)) as pool:
        found = dict(zip(NAMES, pool.map(judge_all, NAMES)))
    return found, time.monotonic() - begun


def lines(results):
    ids = [row["id"] for row in WIRE]
    row = "{:<10} {:<10} {:<34} {:<34} {:<34} {:<34}".format
    yield row("case", "expected", *(f"{name} {version(name)}" for name in NAMES))
    for one in WIRE:
        yield row(one["id"], one["expect"], *(cell(results[name][0].get(one["id"])) for name in NAMES))
    yield ""
    families = sorted({family(i) for i in ids})
    for group in families + ["all"]:
        mine = [i for i in ids if group in (family(i), "all")]
        yield row(group, len(mine), *(sums(results[name][0], mine) for name in NAMES))
    yield row("mirrors", "", *("all came through" if not results[name][1] else f"failed: {results[name][1]}" for name in NAMES))


def test_who_refuses_what(results, capsys):
    found, seconds = results
    with capsys.disabled():
        print(f"\n{len(WIRE)} cases, the same bytes to each, {seconds:.0f} s")
        print("\n".join(line.rstrip() for line in lines(found)))
    right = {name: sum(v.right for v in found[name][0].values()) for name in NAMES}
    assert all(right[name] < right["stockade"] for name in NAMES[1:]), right


def test_ours_is_right_on_every_case(results):
    assert {i: v.text for i, v in results[0]["stockade"][0].items() if not v.right} == {}
    assert len(results[0]["stockade"][0]) == len(WIRE)


@pytest.mark.parametrize("name", NAMES)
def test_the_mirrors_come_through(name, results):
    assert results[0][name][1] == []
    assert len(results[0][name][0]) == len(WIRE) - len(CANNOT.get(name, ()))
