"""Allowed egress, in a world of two network namespaces: a DNS server that counts and origins that record."""
import pytest

from harness.net import World
from harness.up import Up
from harness.wait import until

FETCH = "import sys, urllib.request as u\nfor url in sys.argv[1:]:\n    try: print(u.urlopen(url, timeout=10).read().decode())\n    except OSError as error: print('refused', error)\n"
CONNECT = """
import os, socket, sys
host, port = sys.argv[1], int(sys.argv[2])
s = socket.create_connection(("127.0.0.1", 3128), 10)
s.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n".encode())
head = s.recv(65536).split(b"\\r\\n")[0].decode()
print(head)
if " 200 " in head:
    s.sendall(b"ping")
    print(s.recv(100).decode())
"""


@pytest.fixture(scope="module")
def world(built, tmp_path_factory):
    with World() as one:
        one.names.update({"allowed.example": ["93.184.216.34"], "other.example": ["93.184.216.35"], "inside.example": ["10.1.2.3"],
                          "meta.example": ["169.254.169.254"], "mixed.example": ["93.184.216.34", "127.0.0.1"]})
        one.origin(443, b"pong")
        one.origin(8443, b"pong")
        one.origin(80)
        folder = tmp_path_factory.mktemp("world")
        with Up(settings=one.settings(), listen=f"unix:{folder}/api", prefix=one.prefix()) as up:
            up.start()
            up.api.configure({"a": {"allow": ["allowed.example", "inside.example", "meta.example", "mixed.example", "gone.example", "other.example:8443"]},
                              "none": {}})
            one.up = up
            yield one


def connect(world, host, port, agent="a"):
    result = world.up.api.run(agent, ["python3", "-c", CONNECT, host, str(port)])
    assert result["reason"] == "exited" and result["exit_code"] == 0, result
    return result


def test_a_listed_host_is_reached_and_recorded(world):
    result = connect(world, "allowed.example", 443)
    assert result["stdout_tail"] == "HTTP/1.1 200 OK\npong\n" or result["stdout_tail"].splitlines()[1] == "pong", result
    (one,) = result["egress"]
    assert (one["host"], one["port"], one["verdict"], one["rule"]) == ("allowed.example", 443, "allow", "allowed.example")
    assert one["address"].startswith("93.184.216.34") and one["bytes_out"] == 4 and one["bytes_in"] == 4
    assert ("93.184.216.34", 443, b"ping") in world.reached
    rows = until(lambda: [row for row in world.up.api.audit(f"?run={result['run_id']}") if row["action"] == "agent_sandbox.egress.allow"], 10, "an allow row")
    assert len(rows) == 1 and rows[0]["details"]["host"] == "allowed.example"


def test_an_unlisted_host_is_refused_before_any_dns_query(world):
    before = len(world.queries)
    for host, reason in (("unlisted.example", "host_not_allowed"), ("other.example", "port_not_allowed"), ("sub.allowed.example", "host_not_allowed")):
        result = connect(world, host, 443)
        assert " 403 " in result["stdout_tail"]
        assert [(one["verdict"], one["reason"]) for one in result["egress"]] == [("deny", reason)]
    assert len(world.queries) == before
    assert " 200 " in connect(world, "other.example", 8443)["stdout_tail"], "the port that its entry names"


@pytest.mark.parametrize("host", ["inside.example", "meta.example", "mixed.example"])
def test_a_name_of_an_address_that_is_not_public_is_refused(world, host):
    before = len(world.reached)
    result = connect(world, host, 443)
    assert " 403 " in result["stdout_tail"]
    assert [one["reason"] for one in result["egress"]] == ["address_not_public"]
    assert len(world.reached) == before


def test_an_address_is_on_no_list(world):
    for host in ("93.184.216.34", "10.201.0.2", "127.0.0.1", "0x5db8d822", "[::1]"):
        result = connect(world, host, 443)
        assert result["egress"][0]["verdict"] == "deny", (host, result)


def test_a_name_that_does_not_exist(world):
    result = connect(world, "gone.example", 443)
    assert " 502 " in result["stdout_tail"] or " 504 " in result["stdout_tail"], result
    (one,) = result["egress"]
    assert one["host"] == "gone.example" and one["reason"] not in ("", "allowed") and one["address"] == "", one


def test_an_empty_list_lets_nothing_out(world):
    before = len(world.queries), len(world.reached)
    assert " 403 " in connect(world, "allowed.example", 443, agent="none")["stdout_tail"]
    assert (len(world.queries), len(world.reached)) == before


def test_the_proxy_is_the_only_way_out(world):
    code = """
import socket
for family, address in ((socket.AF_INET, ("93.184.216.34", 443)), (socket.AF_INET6, ("2606:2800:220:1::1", 443)), (socket.AF_INET, ("198.51.100.53", 53))):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(3)
    try:
        s.connect(address)
        print("REACHED", address)
    except OSError as error:
        print("no", error)
try:
    print("REACHED", socket.getaddrinfo("allowed.example", 443))
except OSError as error:
    print("no", error)
"""
    before = len(world.queries), len(world.reached)
    result = world.up.api.run("a", ["python3", "-c", code])
    assert result["stdout_tail"].count("no [") == 4 and "REACHED" not in result["stdout_tail"], result
    assert (len(world.queries), len(world.reached)) == before


def test_a_tightened_policy_reaches_a_running_sandbox(world):
    code = CONNECT.replace("\nhost, port", "\nimport time\nhost, port", 1) + """
s.close()
deadline = time.monotonic() + 10
while time.monotonic() < deadline:
    s = socket.create_connection(("127.0.0.1", 3128), 10)
    s.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n".encode())
    head = s.recv(65536).split(b"\\r\\n")[0].decode()
    s.close()
    if " 403 " in head:
        print("cut off")
        break
    time.sleep(0.05)
"""
    agents = world.up.api.ok("GET", "/api/admin/platform/agent-sandbox")["agents"]
    run = world.up.api.submit("a", ["python3", "-c", code, "allowed.example", "443"])
    until(lambda: any(record[0] == "allowed.example" for record in world.queries[-6:]) and world.up.api.ok("GET", f"/v1/runs/{run}")["state"] == "running", 20, "it has connected")
    try:
        world.up.api.configure({"a": {"allow": []}, "none": {}})
        row = until(lambda: (lambda found: found["state"] == "finished" and found)(world.up.api.ok("GET", f"/v1/runs/{run}")), 30, "finished")
    finally:
        world.up.api.configure(agents)
    assert row["result"]["stdout_tail"].endswith("cut off\n"), row["result"]
