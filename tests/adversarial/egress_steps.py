"""The cases of egress-cases.json that are told in steps, by id, and what is to be looked at after some of the others."""
import json
import pathlib
import re
import resource
import secrets
import socket
import struct
import subprocess
import threading
import time

from harness import paths
from harness.egress_lab import Proxy, answer, connect_request, inside, read_all, read_head, tunnel, wait_for
from harness.hello import extension, hello, records, sni

PUBLIC = "93.184.216.34"


class up:
    """A proxy for one test; its end must be clean."""

    def __init__(self, lab, folder, policy, names=(), **more):
        self.folder = folder / secrets.token_hex(3)
        self.folder.mkdir()
        lab.dns.names = {name: [PUBLIC] for name in names}
        self.proxy = Proxy(paths.PROXY, lab, self.folder, policy, **more)

    def __enter__(self):
        return self.proxy

    def __exit__(self, *_):
        assert self.proxy.stop() == 0, self.proxy.stderr()


def refused(proxy, host, port=443):
    with proxy.connect() as sock:
        sock.sendall(connect_request(host, port))
        status, _, body = answer(sock)
        return status, json.loads(body)


def aud_01(lab, folder):
    with up(lab, folder, {"version": 9, "allow": ["a.example", "b.example"]}, ["a.example", "b.example"]) as proxy:
        for _ in range(3):
            assert refused(proxy, "c.example")[0] == 403
        for host in ["a.example"] * 5 + ["b.example"] * 2:
            tunnel(proxy, host).close()
        rows = proxy.wait_records(3 + 7 * 2)
        assert [r["seq"] for r in rows] == list(range(1, 18))
        assert [r["host"] for r in rows if r.get("first")] == ["a.example", "b.example"]
        assert [r["reason"] for r in rows if r["verdict"] == "deny"] == ["host_not_allowed"] * 3
        opens = {r["seq"] for r in rows if r["kind"] == "decision" and r["verdict"] == "allow"}
        assert opens == {r["open_seq"] for r in rows if r["kind"] == "close"}
        assert all(r["policy_version"] == 9 and r["port"] == 443 for r in rows)


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read()).group(1))


def sanitized():
    return b"__asan_init" in paths.PROXY.read_bytes()


def aud_04(lab, folder):
    total, threads = 10600, 8
    with up(lab, folder, {"version": 1, "allow": []}) as proxy:
        refused(proxy, "x.example")
        before, begun = resident(proxy.child()), time.monotonic()

        def flood():
            for _ in range(total // threads):
                assert refused(proxy, "x.example")[0] == 403

        running = [threading.Thread(target=flood) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        took, sent = time.monotonic() - begun, total // threads * threads + 1
        assert took > (sent - 2000) / 1000 * 0.8, "a flood is not slowed down"
        rows = wait_for("all counted", lambda: (r := proxy.records()) and sum(x.get("count", 1) for x in r) == sent and r)
        summaries = [r for r in rows if r["kind"] == "summary"]
        assert len(rows) - len(summaries) == 10000 and summaries and len(summaries) <= took + 2
        assert all(r["reason"] == "host_not_allowed" and r["verdict"] == "deny" and r["host"] == "x.example" for r in summaries)
        assert [r["seq"] for r in rows] == list(range(1, len(rows) + 1))
        assert sanitized() or resident(proxy.child()) - before < 1024


def dns_10(lab, folder):
    def lie(query, reply):
        bad = PUBLIC.replace("93", "94")
        poisoned = reply.replace(socket.inet_aton(PUBLIC), socket.inet_aton(bad))
        wrong_id = bytes([reply[0] ^ 1]) + poisoned[1:]
        wrong_name = poisoned.replace(b"allowed", b"blessed")
        wrong_type = poisoned[:12] + poisoned[12:].replace(b"\x00\x00\x01\x00\x01", b"\x00\x00\x10\x00\x01", 1)
        not_an_answer = poisoned[:2] + bytes([poisoned[2] & 0x7F]) + poisoned[3:]
        return [wrong_id, wrong_name, wrong_type, not_an_answer, b"", poisoned[:11], reply]

    with up(lab, folder, {"version": 1, "allow": ["allowed.example"]}, ["allowed.example"]) as proxy:
        lab.dns.hook = lie
        tunnel(proxy, "allowed.example").close()
        assert proxy.wait_records(1)[0]["address"] == f"{PUBLIC}:443"
        ports = [p for p in lab.capture.take() if p[1] == 17]
        assert ports
    lab.dns.hook = None


def dns_13(lab, folder):
    policy = {"version": 1, "allow": ["*.allowed.example"], "limits": {"dns_queries": 40}}
    with up(lab, folder, policy) as proxy:
        got = [refused(proxy, f"{secrets.token_hex(25)}.allowed.example")[1]["reason"] for _ in range(30)]
        assert got == ["dns_nxdomain"] * 20 + ["dns_budget"] * 10
        assert len(lab.dns.queries) <= 42
        assert [r["reason"] for r in proxy.records()].count("dns_budget") == 10


def dns_14(lab, folder):
    with up(lab, folder, {"version": 1, "allow": ["allowed.example"]}) as proxy:
        lab.dns.names = {"internal-db.corp": ["10.0.0.9"]}
        one, two = refused(proxy, "internal-db.corp"), refused(proxy, "nosuch.corp")
        assert one[0] == two[0] == 403
        assert one[1].pop("host") == "internal-db.corp" and two[1].pop("host") == "nosuch.corp" and one[1] == two[1]
        assert lab.dns.queries == []


def id_01(lab, folder):
    with up(lab, folder, {"allow": ["a.example"]}) as a, up(lab, folder, {"allow": ["b.example"]}) as b:
        lab.dns.names = {"a.example": [PUBLIC], "b.example": [PUBLIC]}
        tunnel(b, "b.example").close()
        with a.connect() as sock:
            sock.sendall(b"CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\nProxy-Authorization: Basic Yjpi\r\n\r\n")
            assert answer(sock)[0] == 403
        assert [r["host"] for r in b.wait_records(2)] == ["b.example"] * 2


def id_02(lab, folder):
    with up(lab, folder, {"allow": []}) as proxy:
        with inside(lab.a):
            tables = [pathlib.Path(f"/proc/thread-self/net/{t}").read_text().splitlines()[1:] for t in ("tcp", "tcp6", "udp", "udp6", "raw")]
        assert not [line for line in tables[0] + tables[1] if line.split()[3] == "0A"], "a TCP listener beside its own socket"
        assert not sum(tables[2:], [])
        assert refused(proxy, "127.0.0.1", 80)[1]["reason"] == "host_not_allowed"


def msg_26(lab, folder):
    def go(n):
        with proxy.connect() as sock:
            try:
                sock.sendall(b"GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n" + b"a: b\r\n" * n + b"\r\n")
            except (BrokenPipeError, ConnectionResetError):
                pass
            return read_head(sock)[0]

    with up(lab, folder, {"allow": ["allowed.example"]}, ["allowed.example"]) as proxy:
        assert go(10000) == 431 and go(96) == 431 and go(95) == 200


def msg_27(lab, folder):
    with up(lab, folder, {"allow": ["allowed.example"], "limits": {"head_seconds": 1}}, ["allowed.example"]) as proxy:
        with proxy.connect() as sock:
            begun = time.monotonic()
            sock.settimeout(0.2)
            got = b""
            for byte in connect_request("allowed.example"):
                try:
                    sock.sendall(bytes([byte]))
                    got = sock.recv(4096)
                except TimeoutError:
                    continue
                break
            assert got.startswith(b"HTTP/1.1 408 ") and b"head_timeout" in got and 0.8 < time.monotonic() - begun < 2
        with proxy.connect() as sock:
            request = connect_request("allowed.example")
            sock.sendall(request[:30])
            time_up = time.monotonic() + 0.5
            wait_for("a slow head", lambda: time.monotonic() > time_up)
            sock.sendall(request[30:])
            assert read_head(sock)[0] == 200
            time_up = time.monotonic() + 1.2
            wait_for("a slow tunnel", lambda: time.monotonic() > time_up)
            sock.sendall(b"still there")
            assert sock.recv(100) == b"still there"


def will_not_start(folder, text):
    path = folder / "policy"
    if text is not None:
        path.write_text(text)
    argv = [str(paths.PROXY), "--listen", f"unix:{folder}/none", "--policy", str(path), "--resolver", "127.0.0.1:1"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10)
    assert done.returncode != 0 and done.stdout == "" and done.stderr.count("\n") == 1, done
    assert not (folder / "none").exists()


def org_03(lab, folder):
    will_not_start(folder, '{"allow":["allowed.example"],"organisation":null}')
    will_not_start(folder, '{"allow":["allowed.example"],"organisation":{"default":"sometimes"}}')
    with up(lab, folder, {"allow": ["allowed.example"], "organisation": {"default": "allow"}}, ["allowed.example"]) as proxy:
        tunnel(proxy, "allowed.example").close()


def pol_05(lab, folder):
    will_not_start(folder, None)
    will_not_start(folder, '{"allow":["allowed.example"')
    will_not_start(folder, '{"allow":["allowed.example"],"alow":[]}')
    will_not_start(folder, "")
    with up(lab, folder, {"allow": []}) as proxy:
        assert refused(proxy, "allowed.example")[1]["reason"] == "host_not_allowed"


# --- TLS ---------------------------------------------------------------------------------------------------------------


def opens_with(lab, folder, data, want, tls="require", pause=False):
    """want: None = reaches the origin byte for byte; else the reason for which the tunnel is cut before anything does."""
    policy = {"allow": ["allowed.example"], "tls": tls, "limits": {"head_seconds": 1}}
    with up(lab, folder, policy, ["allowed.example"]) as proxy:
        seen = len(lab.origins[443].notes)
        with tunnel(proxy, "allowed.example") as sock:
            for part in [data[:7], data[7:60], data[60:]] if pause else [data]:
                sock.sendall(part)
                if pause:
                    time.sleep(0.05)  # so that the parts are read one by one
            got = b""
            while len(got) < len(data):
                more = sock.recv(65536)
                if not more:
                    break
                got += more
            if want is None:
                assert got == data
                return
            wait_for("the connection", lambda: len(lab.origins[443].notes) > seen)
            assert got == b"" and lab.origins[443].notes[seen]["data"] == b""
        rows = proxy.wait_records(3)
        assert [(r["kind"], r["verdict"], r["reason"]) for r in rows[1:]] == [("decision", "deny", want), ("close", "allow", want)]
        assert rows[2]["bytes_out"] == 0


def good_hello():
    return records(hello(sni("allowed.example")))


def sni_2(lab, folder):
    opens_with(lab, folder, records(hello(sni("Allowed.example."))), None)


def sni_3(lab, folder):
    opens_with(lab, folder, records(hello(sni("allowed.example", "evil.example"))), "opaque_tunnel")
    opens_with(lab, folder, records(hello(sni("allowed.example", "evil.example"))), "sni_mismatch", tls="match")
    opens_with(lab, folder, good_hello(), None)


def sni_4(lab, folder):
    two = records(hello(sni("allowed.example"), sni("allowed.example")))
    opens_with(lab, folder, two, "opaque_tunnel")
    opens_with(lab, folder, two, "opaque_tunnel", tls="match")
    opens_with(lab, folder, two, None, tls="off")


def sni_5(lab, folder):
    message = hello(sni("allowed.example"), padding=700)
    opens_with(lab, folder, records(message, 64), None)
    opens_with(lab, folder, records(message), None, pause=True)
    opens_with(lab, folder, records(message, 3), None, pause=True)
    opens_with(lab, folder, records(hello(sni("evil.example"), padding=700), 64), "sni_mismatch", pause=True)
    opens_with(lab, folder, records(message)[:300], "opaque_tunnel", tls="match")


def sni_7(lab, folder):
    ech = records(hello(sni("allowed.example"), extension(0xFE0D, b"\x00" * 32)))
    opens_with(lab, folder, ech, "opaque_tunnel")
    opens_with(lab, folder, ech, None, tls="match")


def tun_14(lab, folder):
    for tls in ("match", "require"):
        opens_with(lab, folder, records(hello(sni("evil.example"))), "sni_mismatch", tls=tls)
        opens_with(lab, folder, good_hello(), None, tls=tls)
    opens_with(lab, folder, records(hello(sni("evil.example"))), None, tls="off")
    opens_with(lab, folder, records(hello(sni("93.184.216.34"))), "opaque_tunnel")


def tun_15(lab, folder):
    """Behind the hello all is opaque: a residual risk that README.md names."""
    opens_with(lab, folder, good_hello() + b"\x17\x03\x03\x00\x05inner", None)
    assert "domain fronting" in (paths.ROOT / "egress-proxy/README.md").read_text()


def tun_17(lab, folder):
    nested = connect_request("evil.example")
    opens_with(lab, folder, nested, None, tls="match")
    opens_with(lab, folder, nested, "opaque_tunnel", tls="require")


# --- tunnels -----------------------------------------------------------------------------------------------------------


def tun_09(lab, folder):
    def drip(conn, note):
        for _ in range(8):
            time.sleep(0.25)  # the first one too: it shall not come with the proxy's 200
            conn.sendall(b".")
        conn.shutdown(socket.SHUT_WR)
        conn.recv(1)

    lab.origin(8444, drip)
    with up(lab, folder, {"allow": ["allowed.example:8444"], "limits": {"idle_seconds": 1}}, ["allowed.example"]) as proxy:
        with tunnel(proxy, "allowed.example", 8444) as sock:
            assert read_all(sock) == b"." * 8


def tun_10(lab, folder):
    with up(lab, folder, {"allow": ["allowed.example"], "limits": {"idle_seconds": 1}}, ["allowed.example"]) as proxy:
        with tunnel(proxy, "allowed.example") as sock:
            sock.sendall(b"12345")
            assert sock.recv(10) == b"12345"
            begun = time.monotonic()
            assert sock.recv(10) == b"" and 0.9 < time.monotonic() - begun < 2.5
        close = proxy.wait_records(2)[1]
        assert close["reason"] == "idle_timeout" and close["bytes_in"] == close["bytes_out"] == 5 and close["duration_ms"] >= 900


def tun_12(lab, folder):
    policy = {"allow": ["allowed.example"], "limits": {"tunnels": 3}}
    with up(lab, folder, policy, ["allowed.example"]) as proxy, up(lab, folder, policy, ["allowed.example"]) as other:
        held = [tunnel(proxy, "allowed.example") for _ in range(3)]
        asked = len(lab.dns.queries)
        status, problem = refused(proxy, "allowed.example")
        assert (status, problem["reason"]) == (503, "too_many_tunnels") and len(lab.dns.queries) == asked
        tunnel(other, "allowed.example").close()
        held.pop().close()
        wait_for("room", lambda: proxy.records()[-1]["kind"] == "close")
        tunnel(proxy, "allowed.example").close()
        for sock in held:
            sock.close()


def spent(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def tun_13(lab, folder):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))

    with up(lab, folder, {"allow": ["allowed.example"]}, ["allowed.example"], before=few) as proxy:
        held = [proxy.connect() for _ in range(120)]
        before = spent(proxy.child())
        wait_for("an answer to one of them", lambda: any(r["reason"] == "overloaded" for r in proxy.records()))
        time_up = time.monotonic() + 1.5
        wait_for("a while", lambda: time.monotonic() > time_up)
        assert spent(proxy.child()) - before < 20, "it spins"
        for sock in held:
            sock.close()
        wait_for("service", lambda: served(proxy))


def served(proxy):
    with proxy.connect() as sock:
        sock.sendall(connect_request("allowed.example"))
        return read_head(sock)[0] == 200


def tun_19(lab, folder):
    """Nothing in a tunnel reads the wall clock, so that a step of it is nothing to a tunnel."""
    for name in ("tunnel.c", "forward.c", "flow.c", "bucket.c", "dialer.c", "dns_query.c", "client.c", "connect.c"):
        text = (paths.ROOT / "egress-proxy" / name).read_text()
        assert "stk_wall" not in text and "gettimeofday" not in text and "CLOCK_REALTIME" not in text, name
    tun_10(lab, folder)


STEPS = {
    name.replace("_", "-", 1): function
    for name, function in list(globals().items())
    if re.fullmatch(r"(aud|dns|id|msg|org|pol|sni|tun)_\d+", name)
}


# --- after the others --------------------------------------------------------------------------------------------------


def after_rebinding(lab, proxy, names, again):
    status, _, body, _ = again()
    assert status == 403 and json.loads(body)["reason"] == "address_not_public"
    assert len(lab.dns.asked(names.map["allowed.example"])) == 4, "A and AAAA once for each request"
    assert not [p for p in lab.capture.take() if p[3] and p[0].startswith("169.254")]


def after_blackhole(lab, proxy, names, again):
    assert not [p for p in lab.capture.take() if p[3] and p[0].startswith("127.")]


def after_trailing_dot(lab, proxy, names, again):
    host = names.map["allowed.example"]
    assert {r["host"] for r in proxy.wait_records(2)} == {host} and lab.dns.asked(host)


def after_switch(lab, proxy, names, again):
    assert [r["reason"] for r in proxy.wait_records(2)] == ["allowed", "bad_response"]


AFTER = {"dns-01": after_rebinding, "dns-02": after_blackhole, "pol-13": after_trailing_dot, "msg-12": after_switch}


def switching_origin(conn, note):
    """Answers 101 to whatever comes."""
    while b"\r\n\r\n" not in note["data"]:
        note["data"] += conn.recv(65536)
    conn.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nanything goes now")
    conn.recv(1)
