"""What a hostile sandbox, name server or origin may try beyond the table of cases, and what must keep working meanwhile."""
import json
import os
import pathlib
import secrets
import socket
import threading
import time

import pytest

from egress_steps import PUBLIC, refused, up
from harness import paths
from harness.egress_lab import Lab, ORIGIN_V4, connect_request, inside, read_all, read_head, run, tunnel, wait_for

V6 = "2606:4700::1234"


@pytest.fixture(scope="module")
def lab():
    lab = Lab()
    lab.origin(443)
    lab.origin(80)
    run("ip", "-n", lab.b, "route", "add", "blackhole", "192.0.9.9/32")
    run("ip", "-n", lab.b, "-6", "route", "add", "blackhole", "2606:4700::dead/128")
    yield lab
    lab.close()


@pytest.fixture(autouse=True)
def plain(lab):
    lab.dns.hook, lab.dns.ttl = None, 0
    lab.dns.queries.clear()


ALLOW = {"version": 1, "allow": ["a.example"]}


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


# --- tunnels -------------------------------------------------------------------------------------------------------------


def test_what_comes_right_behind_a_connect_arrives_whole_and_in_order(lab, tmp_path):
    data = secrets.token_bytes(100 * 1024)
    with up(lab, tmp_path, {**ALLOW, "tls": "off"}, ["a.example"]) as proxy, proxy.connect() as sock:
        sender = threading.Thread(target=sock.sendall, args=(connect_request("a.example") + data,))
        sender.start()
        status, _, got = read_head(sock)
        assert status == 200
        while len(got) < len(data):
            got += sock.recv(65536)
        sender.join()
        assert got == data


def test_a_half_closed_client_still_gets_all_of_a_slow_answer(lab, tmp_path):
    size = 8 << 20

    def late(conn, note):
        while data := conn.recv(65536):
            note["data"] += data
        for _ in range(8):
            conn.sendall(b"z" * (size // 8))
            time.sleep(0.02)

    lab.origin(8445, late)
    with up(lab, tmp_path, {"allow": ["a.example:8445"]}, ["a.example"]) as proxy, tunnel(proxy, "a.example", 8445) as sock:
        sock.sendall(b"the question")
        sock.shutdown(socket.SHUT_WR)
        assert len(read_all(sock)) == size
        close = wait_for("close", lambda: [r for r in proxy.records() if r["kind"] == "close"])[0]
        assert close["bytes_in"] == size and close["bytes_out"] == 12 and close["reason"] == "closed"


def test_a_half_closed_origin_still_gets_what_the_client_sends(lab, tmp_path):
    def first(conn, note):
        conn.sendall(b"bye")
        conn.shutdown(socket.SHUT_WR)
        while data := conn.recv(65536):
            note["data"] += data
        note["eof"] = True

    origin = lab.origin(8446, first)
    with up(lab, tmp_path, {"allow": ["a.example:8446"], "tls": "require"}, ["a.example"]) as proxy:
        with proxy.connect() as sock:
            sock.sendall(connect_request("a.example", 8446))
            status, _, rest = read_head(sock)
            assert status == 200 and rest + read_all(sock) == b"bye"  # server bytes are not held back by the check of the client's first ones
        wait_for("the end", lambda: origin.notes[-1]["eof"])


@pytest.mark.parametrize("listen", [None, "127.0.0.1:0"])
def test_bytes_both_ways_at_once_are_not_changed(lab, tmp_path, listen):
    data = secrets.token_bytes(6 << 20)
    with up(lab, tmp_path, {**ALLOW, "tls": "off"}, ["a.example"], listen=listen) as proxy, tunnel(proxy, "a.example") as sock:
        sender = threading.Thread(target=lambda: (sock.sendall(data), sock.shutdown(socket.SHUT_WR)))
        sender.start()
        got = read_all(sock)
        sender.join()
        assert got == data
        close = wait_for("close", lambda: [r for r in proxy.records() if r["kind"] == "close"])[0]
        assert close["bytes_in"] == close["bytes_out"] == len(data)


def test_ten_thousand_connections_leave_nothing_behind(lab, tmp_path):
    with up(lab, tmp_path, {**ALLOW, "limits": {"tunnels": 1000}}, ["a.example"]) as proxy:
        lab.dns.ttl = 60
        tunnel(proxy, "a.example").close()
        wait_for("quiet", lambda: len(proxy.records()) == 2)
        before = descriptors(proxy.child())

        def many():
            for i in range(1250):
                with proxy.connect() as sock:
                    sock.sendall(connect_request("a.example" if i % 2 else "b.example"))
                    if i % 5:
                        read_head(sock)

        threads = [threading.Thread(target=many) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_for("descriptors back to where they were", lambda: descriptors(proxy.child()) <= before)
        tunnel(proxy, "a.example").close()


# --- limits --------------------------------------------------------------------------------------------------------------


def test_the_limit_of_bytes_is_exact_and_final(lab, tmp_path):
    policy = {**ALLOW, "tls": "off", "limits": {"bytes": 100000}}
    with up(lab, tmp_path, policy, ["a.example"]) as proxy:
        with tunnel(proxy, "a.example") as sock:
            sock.sendall(b"x" * 80000)
            read_all(sock)
        assert refused(proxy, "a.example")[1]["reason"] == "bytes_exceeded"
        rows = proxy.wait_records(4)
        assert [r["reason"] for r in rows] == ["allowed", "bytes_exceeded", "bytes_exceeded", "bytes_exceeded"]
        assert rows[2]["kind"] == "close" and rows[2]["bytes_in"] + rows[2]["bytes_out"] <= 100000


def test_the_limit_of_bytes_a_second_slows_and_does_not_cut(lab, tmp_path):
    policy = {**ALLOW, "tls": "off", "limits": {"bytes_per_second": 400000}}
    with up(lab, tmp_path, policy, ["a.example"]) as proxy, tunnel(proxy, "a.example") as sock:
        data, begun = secrets.token_bytes(300000), time.monotonic()
        sender = threading.Thread(target=lambda: (sock.sendall(data), sock.shutdown(socket.SHUT_WR)))
        sender.start()
        got = read_all(sock)
        sender.join()
        assert len(got) == len(data) and got == data, (proxy.records()[-1]["reason"], len(got))
        # 600,000 bytes in all, of which a quarter second's worth may go at once.
        assert 1.0 < time.monotonic() - begun < 4


# --- names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answers, status, reason",
    [
        (["SERVFAIL"], 502, "dns_servfail"),
        (["MALFORMED"], 502, "dns_malformed"),
        (["TCPCUT"], 502, "dns_truncated"),
        (["NXDOMAIN"], 502, "dns_nxdomain"),
        ([], 502, "dns_no_address"),
        (["CNAME a.example", PUBLIC], 502, "dns_malformed"),
        (["CNAME b.example", "CNAME c.example", PUBLIC], 200, "allowed"),
        (["CNAME b.example", "10.0.0.1"], 403, "address_not_public"),
        (["TRUNCATED", PUBLIC], 200, "allowed"),
        (["TRUNCATED", PUBLIC, "127.0.0.1"], 403, "address_not_public"),
        ([V6], 200, "allowed"),
        (["198.51.100.1"], 403, "address_not_public"),
    ],
)
def test_each_kind_of_answer_has_its_own_reason(lab, tmp_path, answers, status, reason):
    with up(lab, tmp_path, ALLOW) as proxy:
        lab.dns.names = {"a.example": answers}
        with proxy.connect() as sock:
            sock.sendall(connect_request("a.example"))
            assert read_head(sock)[0] == status
        assert proxy.wait_records(1)[0]["reason"] == reason
        assert (lab.dns.tcp_queries > 0) == (reason == "dns_truncated" or "TRUNCATED" in answers) or lab.dns.tcp_queries


def test_a_large_answer_comes_by_tcp_and_every_address_in_it_counts(lab, tmp_path):
    many = [f"93.184.216.{i}" for i in range(1, 31)]
    with up(lab, tmp_path, ALLOW) as proxy:
        lab.dns.names = {"a.example": ["TRUNCATED", *many]}
        tunnel(proxy, "a.example").close()
        lab.dns.names = {"a.example": ["TRUNCATED", *many, "169.254.169.254"]}
        assert refused(proxy, "a.example")[1]["reason"] == "address_not_public"


def test_the_next_name_server_is_asked_when_one_fails_and_none_but_those(lab, tmp_path):
    with inside(lab.b):
        deaf = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        deaf.bind((ORIGIN_V4, 5300))
    with deaf, up(lab, tmp_path, ALLOW, ["a.example"], resolvers=(f"{ORIGIN_V4}:5399", f"{ORIGIN_V4}:53")) as proxy:
        tunnel(proxy, "a.example").close()
        lab.dns.names = {}
    with up(lab, tmp_path, ALLOW, ["a.example"], resolvers=(f"{ORIGIN_V4}:5399",)) as proxy:
        assert refused(proxy, "a.example")[1]["reason"] == "dns_unreachable"
    with up(lab, tmp_path, ALLOW, ["a.example"], resolvers=()) as proxy:
        assert refused(proxy, "a.example")[1]["reason"] == "dns_unreachable"


def test_every_query_has_a_fresh_port_and_id(lab, tmp_path):
    seen = []
    lab.dns.ttl = 0

    def note(query, reply):
        seen.append(query[:2])
        return [reply]

    ports = []
    with up(lab, tmp_path, ALLOW, ["a.example"]) as proxy:
        lab.dns.hook = note
        with inside(lab.a):
            sniff = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        sniff.setblocking(False)
        for _ in range(40):
            tunnel(proxy, "a.example").close()
        while True:
            try:
                data = sniff.recv(2048)
            except BlockingIOError:
                break
            if data[9] == 17 and data[22:24] == b"\x00\x35":
                ports.append(data[20:22])
        sniff.close()
    assert len(seen) == 80 and len(set(seen)) > 70 and len(ports) >= 50 and len(set(ports)) > 0.9 * len(ports)


def test_a_kept_answer_is_judged_anew_and_forgotten_in_time(lab, tmp_path):
    with up(lab, tmp_path, {"allow": ["a.example"], "internal": [{"cidr": "10.1.0.0/16", "hosts": ["a.example"]}]}) as proxy:
        lab.dns.names, lab.dns.ttl = {"a.example": ["10.1.2.3"]}, 1
        tunnel(proxy, "a.example").close()
        tunnel(proxy, "a.example").close()
        assert len(lab.dns.queries) == 2
        proxy.reload(ALLOW)
        wait_for("the new policy", lambda: refused(proxy, "b.example") and proxy.records()[-1]["policy_version"] == 1)
        assert refused(proxy, "a.example")[1]["reason"] == "address_not_public"


# --- addresses -----------------------------------------------------------------------------------------------------------


def test_a_dead_address_does_not_hold_up_a_live_one(lab, tmp_path):
    with up(lab, tmp_path, ALLOW) as proxy:
        for dead in ("2606:4700::dead", "192.0.9.9"):
            lab.dns.names = {"a.example": [dead, PUBLIC, V6] if ":" not in dead else [dead, PUBLIC]}
            begun = time.monotonic()
            tunnel(proxy, "a.example").close()
            assert time.monotonic() - begun < 1.5


def test_internal_networks_open_for_their_hosts_and_ports_alone(lab, tmp_path):
    policy = {"allow": ["a.example", "b.example"], "internal": [{"cidr": "10.1.0.0/16", "hosts": ["a.example"], "ports": [443]}]}
    with up(lab, tmp_path, policy) as proxy:
        lab.dns.names = {"a.example": ["10.1.2.3"], "b.example": ["10.1.2.3"]}
        tunnel(proxy, "a.example").close()
        assert refused(proxy, "b.example")[1]["reason"] == "address_not_public"
        assert refused(proxy, "a.example", 80)[1]["reason"] == "address_not_public"
        lab.dns.names = {"a.example": ["10.2.0.1"]}
        assert refused(proxy, "a.example")[1]["reason"] == "address_not_public"


def test_an_address_that_the_host_gains_is_refused_from_then_on(lab, tmp_path):
    with up(lab, tmp_path, ALLOW) as proxy:
        lab.dns.names = {"a.example": ["93.184.216.99"]}
        tunnel(proxy, "a.example").close()
        run("ip", "-n", lab.a, "addr", "add", "93.184.216.99/32", "dev", "lo")
        try:
            wait_for("the notice", lambda: refused(proxy, "a.example")[1]["reason"] == "address_not_public", 5)
        finally:
            run("ip", "-n", lab.a, "addr", "del", "93.184.216.99/32", "dev", "lo")
        wait_for("the notice", lambda: served(proxy), 5)


def served(proxy, host="a.example"):
    with proxy.connect() as sock:
        sock.sendall(connect_request(host))
        return read_head(sock)[0] == 200


# --- policy --------------------------------------------------------------------------------------------------------------


def test_a_thousand_flips_under_load_never_let_a_stranger_through(lab, tmp_path):
    with up(lab, tmp_path, {"version": 1, "allow": ["a.example"]}) as proxy:
        lab.dns.names, lab.dns.ttl = {n: [PUBLIC] for n in ("a.example", "b.example", "c.example")}, 60
        stop, got = threading.Event(), {"a.example": set(), "b.example": set(), "c.example": set()}

        def hammer(host):
            while not stop.is_set():
                with proxy.connect() as sock:
                    sock.sendall(connect_request(host))
                    got[host].add(read_head(sock)[0])

        threads = [threading.Thread(target=hammer, args=(host,)) for host in got]
        for thread in threads:
            thread.start()
        for i in range(2, 1002):
            proxy.reload({"version": i, "allow": ["a.example" if i % 2 else "b.example"]})
            if i % 10 == 0:
                time.sleep(0.01)
        wait_for("the last policy", lambda: proxy.records()[-1]["policy_version"] == 1001)
        stop.set()
        for thread in threads:
            thread.join()
        assert got["c.example"] == {403} and got["a.example"] >= {200, 403} and got["b.example"] >= {200, 403}
        for row in proxy.records():
            if row["reason"] == "allowed":
                assert row["host"] == ("a.example" if row["policy_version"] % 2 else "b.example"), row


# --- plain http ----------------------------------------------------------------------------------------------------------


def get(host, path="/", extra="", method="GET", version="1.1"):
    return f"{method} http://{host}{path} HTTP/{version}\r\nHost: {host}\r\n{extra}\r\n".encode()


def talk(proxy, request):
    with proxy.connect() as sock:
        sock.sendall(request)
        sock.shutdown(socket.SHUT_WR)
        return read_all(sock)


def says(lab, response, linger=False):
    """Port 80 answers every request with these bytes."""

    def serve(conn, note):
        while b"\r\n\r\n" not in note["data"]:
            data = conn.recv(65536)
            if not data:
                return
            note["data"] += data
        conn.sendall(response)
        if linger:
            conn.recv(1)

    return lab.origin(80, serve)


def test_pipelined_requests_are_each_judged_and_answered_in_order(lab, tmp_path):
    says(lab, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    hosts = ["a.example", "evil.example"] * 25
    with up(lab, tmp_path, ALLOW, ["a.example"]) as proxy:
        got = talk(proxy, b"".join(get(host) for host in hosts[:-1]) + get("a.example", extra="Connection: close\r\n"))
        assert got.count(b"HTTP/1.1 200 OK") == 26 and got.count(b"HTTP/1.1 403 ") == 24
        rows = [r for r in proxy.wait_records(26 * 2 + 24) if r["kind"] == "decision"]
        assert [r["host"] for r in rows] == hosts[:-1] + ["a.example"]


@pytest.mark.parametrize(
    "response, want",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"Content-Length: 2\r\nVia: 1.1 stockade\r\n\r\nok"),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"Transfer-Encoding: chunked\r\nVia: 1.1 stockade\r\n\r\nd\r\nuntil the end\r\n0\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nT: x\r\n\r\n", b"\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"\r\n\r\nok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhidden", b"\r\n\r\nok"),
    ],
)
def test_responses_come_back_in_our_own_framing(lab, tmp_path, response, want):
    says(lab, response)
    with up(lab, tmp_path, ALLOW, ["a.example"]) as proxy:
        got = talk(proxy, get("a.example"))
        assert got.startswith(b"HTTP/1.1 200 OK\r\n") and got.endswith(want) and b"103" not in got, got


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        b"HTTP/2 200\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 17 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_a_response_that_is_not_certain_is_not_passed_on(lab, tmp_path, response):
    says(lab, response)
    with up(lab, tmp_path, ALLOW, ["a.example"]) as proxy:
        got = talk(proxy, get("a.example"))
        assert got.startswith(b"HTTP/1.1 502 ") and b'"reason":"bad_response"' in got
        assert [r["reason"] for r in proxy.wait_records(2)] == ["allowed", "bad_response"]


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\nzz\r\n",
    ],
)
def test_a_cut_response_looks_cut_to_the_client(lab, tmp_path, response):
    says(lab, response)
    with up(lab, tmp_path, ALLOW, ["a.example"]) as proxy:
        got = talk(proxy, get("a.example") + get("a.example"))
        assert got.count(b"HTTP/1.1 ") <= 1 and not got.endswith(b"0\r\n\r\n") and b"Content-Length: 9" not in got
        assert proxy.wait_records(2)[1]["reason"] == "bad_response"


def test_expect_head_and_old_clients(lab, tmp_path):
    with up(lab, tmp_path, ALLOW, ["a.example"]) as proxy:

        def serve(conn, note):
            while b"\r\n\r\n" not in note["data"]:
                note["data"] += conn.recv(65536)
            if b"Expect: 100-continue" in note["data"]:
                conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                note["data"] += conn.recv(65536)
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + (b"" if note["data"].startswith(b"HEAD") else b"body"))

        origin = lab.origin(80, serve)
        with proxy.connect() as sock:
            sock.sendall(get("a.example", method="POST", extra="Content-Length: 5\r\nExpect: 100-continue\r\n"))
            assert read_head(sock)[0] == 100
            sock.sendall(b"hello")
            assert read_head(sock)[0] == 200 and origin.notes[-1]["data"].endswith(b"\r\n\r\nhello")
        assert talk(proxy, get("a.example", method="POST", extra="Content-Length: 5\r\nExpect: magic\r\n")).startswith(b"HTTP/1.1 417 ")
        got = talk(proxy, get("a.example", method="HEAD") + get("a.example", extra="Connection: close\r\n"))
        assert got.count(b"Content-Length: 4") == 2 and got.endswith(b"body") and got.count(b"body") == 1
        assert b"Connection: close" in talk(proxy, get("a.example", version="1.0"))


def test_large_bodies_both_ways(lab, tmp_path):
    data = secrets.token_bytes(5 << 20)

    def echo(conn, note):
        raw = b""
        while b"\r\n\r\n" not in raw:
            raw += conn.recv(65536)
        head, _, rest = raw.partition(b"\r\n\r\n")
        while len(rest) < len(data):
            rest += conn.recv(1 << 16)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(rest) + rest)

    lab.origin(80, echo)
    with up(lab, tmp_path, ALLOW, ["a.example"]) as proxy, proxy.connect() as sock:
        request = get("a.example", method="PUT", extra=f"Content-Length: {len(data)}\r\n")
        sender = threading.Thread(target=sock.sendall, args=(request + data,))
        sender.start()
        status, head, body = read_head(sock)
        while len(body) < len(data):
            body += sock.recv(1 << 16)
        sender.join()
        assert status == 200 and body == data


def test_a_slow_body_outlives_the_limit_of_the_head(lab, tmp_path):
    def count(conn, note):
        raw = b""
        while b"0123456789" not in raw.partition(b"\r\n\r\n")[2]:
            raw += conn.recv(65536)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    lab.origin(80, count)
    with up(lab, tmp_path, {**ALLOW, "limits": {"head_seconds": 1}}, ["a.example"]) as proxy, proxy.connect() as sock:
        begun = time.monotonic()
        sock.sendall(get("a.example", method="PUT", extra="Content-Length: 10\r\n"))
        for i in range(10):
            due = begun + 0.2 * (i + 1)
            wait_for("its turn", lambda due=due: time.monotonic() > due)
            sock.sendall(b"%d" % i)
        assert read_head(sock)[0] == 200 and time.monotonic() - begun > 1.5


# --- evidence ------------------------------------------------------------------------------------------------------------


def test_nothing_of_paths_queries_or_credentials_is_recorded(lab, tmp_path):
    says(lab, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    with up(lab, tmp_path, ALLOW, ["a.example"]) as proxy:
        for host in ("a.example", "evil.example"):
            talk(proxy, get(host, "/s3cret-path?s3cret=query", "Authorization: s3cret\r\nProxy-Authorization: s3cret\r\n"))
        talk(proxy, b"GET http://user:s3cret@a.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
        proxy.wait_records(4)
        assert "s3cret" not in proxy.records_path.read_text() and "s3cret" not in proxy.stderr()


def test_a_journal_that_cannot_be_written_lets_nothing_new_through(lab, tmp_path):
    def small():
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    with up(lab, tmp_path, ALLOW, ["a.example"], before=small) as proxy:
        got = set()
        for _ in range(20):
            with proxy.connect() as sock:
                sock.sendall(connect_request("a.example"))
                got.add(read_head(sock)[0])
            if 503 in got:
                break
        assert got == {200, 503}
        assert not served(proxy) and not served(proxy)
        whole = [line for line in proxy.records_path.read_text().splitlines() if line.endswith("}")]
        assert [json.loads(line)["seq"] for line in whole] == list(range(1, len(whole) + 1))


def test_the_source_has_no_second_way_out():
    """Names are asked and addresses dialled in one file each."""
    folder = pathlib.Path(paths.ROOT / "egress-proxy")
    callers = {path.name for path in folder.glob("*.c") if " connect(" in path.read_text() or "= connect(" in path.read_text() or "(connect(" in path.read_text()}
    assert callers == {"dialer.c", "dns_query.c"}
    assert not [path.name for path in folder.glob("*.c") if "getaddrinfo" in path.read_text() or "gethostby" in path.read_text()]
