"""Real clients through the real proxy, each in a namespace whose only way out is the proxy's socket: a host on the list delivers the
bytes, one that is not fails, leaves one record of its refusal, and nothing asks a name anywhere."""
import contextlib
import os
import secrets
import subprocess

import pytest

from harness import clients, paths
from harness.clients import PACKAGE, Authority, Cage, Site
from harness.egress_lab import Lab, Proxy, inside, wait_for
from harness.postgres import Postgres

PUBLIC = "93.184.216.34"
WS_PORT, PG_PORT, RELAY_GOOD, RELAY_BAD = 8443, 5432, 15432, 15433
PYTHON = {
    "requests": "import requests as c; r = c.get(url, timeout=20); r.raise_for_status(); print(r.text)",
    "urllib3": "import urllib3 as c, os\nm = c.ProxyManager(os.environ['https_proxy'], ca_certs=ca, retries=False, timeout=20)\n"
               "r = m.request('GET', url); assert r.status == 200, r.status; print(r.data.decode())",
    "httpx": "import httpx as c, ssl\nr = c.get(url, verify=ssl.create_default_context(cafile=ca), timeout=20)\n"
             "r.raise_for_status(); print(r.text)",
    "urllib": "import urllib.request as c, ssl\nprint(c.urlopen(url, context=ssl.create_default_context(cafile=ca)).read().decode())",
}
NODE = """
const { fetch, ProxyAgent } = require('undici');
const dispatcher = new ProxyAgent({ uri: process.env.https_proxy, requestTls: { ca: require('fs').readFileSync(process.argv[2]) } });
fetch(process.argv[1], { dispatcher }).then(async (r) => { if (!r.ok) throw new Error(r.status); console.log(await r.text()); })
  .then(() => process.exit(0), (e) => { console.error(e); process.exit(1); });
"""
WEBSOCKET = """
import ssl, sys, websockets.sync.client as client
with client.connect(sys.argv[1], ssl=ssl.create_default_context(cafile=sys.argv[2]), open_timeout=20) as peer:
    for message in (sys.argv[3], "x" * 300000):
        peer.send(message)
        assert peer.recv(20) == message
    print(sys.argv[3])
"""


class Site443:
    """Everything that the clients talk to, and the proxy between."""

    def __init__(self, folder):
        tag = secrets.token_hex(4)
        self.good, self.bad, self.secret = f"good-{tag}.example", f"bad-{tag}.example", secrets.token_hex(24)
        self.folder, self.bin = folder, clients.venv()
        with contextlib.ExitStack() as ends:
            self.lab = self.kept(ends, Lab(), "close")
            self.lab.dns.names = {self.good: [PUBLIC], self.bad: [PUBLIC]}
            self.authority = Authority(folder, [self.good, self.bad])
            (folder / "site").mkdir()
            clients.make_files(folder / "site", self.secret)
            self.sites = [self.kept(ends, Site(self.lab.b, port, folder / "site", pair), "close")
                          for port, pair in ((443, self.authority.pair), (80, None))]
            self.echo = self.kept(ends, clients.websocket_echo(self.lab.b, self.bin / "python", self.authority.pair, WS_PORT), "kill")
            self.postgres = self.kept(ends, self.start_postgres(), "remove")
            self.cage = self.kept(ends, Cage(f"stkc{tag[:6]}"), "close")
            self.cage.listen(RELAY_GOOD, f"{self.good}:{PG_PORT}")
            self.cage.listen(RELAY_BAD, f"{self.bad}:{PG_PORT}")
            self.ends = ends.pop_all()

    @staticmethod
    def kept(ends, thing, end):
        ends.callback(getattr(thing, end))
        return thing

    def start_postgres(self):
        server = Postgres(listen_addresses="0.0.0.0", ssl="on", ssl_cert_file="server.crt", ssl_key_file="server.key")
        server.port = PG_PORT
        for source, name in ((self.authority.cert, "server.crt"), (self.authority.key, "server.key")):
            (server.data / name).write_bytes(source.read_bytes())
            (server.data / name).chmod(0o600)
            if server.who:
                os.chown(server.data / name, server.who["user"], server.who["group"])
        with open(server.data / "pg_hba.conf", "a", encoding="utf-8") as out:
            out.write("hostssl all all 0.0.0.0/0 scram-sha-256\n")
        with inside(self.lab.b):
            return server.start()

    def close(self):
        self.ends.close()
        self.echo.wait(10)

    def psql(self, host):
        relay = RELAY_GOOD if host == self.good else RELAY_BAD
        where = f"host={host} hostaddr=127.0.0.1 port={relay} user={self.postgres.user} dbname=postgres sslmode=verify-full"
        return [self.postgres.bin / "psql", "-XqAt", "-d", f"{where} sslrootcert={self.authority.ca}", "-c",
                f"SELECT '{self.secret}' FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    one = Site443(tmp_path_factory.mktemp("clients"))
    yield one
    one.close()


@pytest.fixture
def proxy(world, tmp_path):
    allow = [world.good, f"{world.good}:{WS_PORT}", f"{world.good}:{PG_PORT}"]
    one = Proxy(paths.PROXY, world.lab, tmp_path, {"version": 3, "allow": allow})
    world.cage.target = one.socket_path
    yield one
    assert one.stop() == 0, one.stderr()


# --- the clients: (arguments, {environment}, standard input) for a host

def curl(world, host, _):
    return ["curl", "-fsS", "--max-time", "20", "--cacert", world.authority.ca, f"https://{host}/file"], {}, b""


def curl_http(world, host, _):
    return ["curl", "-fsS", "--max-time", "20", f"http://{host}/file"], {}, b""


def wget(world, host, _):
    return ["wget", "-qO-", "-t1", "-T20", f"--ca-certificate={world.authority.ca}", f"https://{host}/file"], {}, b""


def wget_http(world, host, _):
    return ["wget", "-qO-", "-t1", "-T20", f"http://{host}/file"], {}, b""


def git(world, host, folder):
    clone = f"git clone -q https://{host}/sample.git {folder}/clone && cat {folder}/clone/README"
    return ["bash", "-ec", clone], {"GIT_SSL_CAINFO": world.authority.ca, "GIT_TERMINAL_PROMPT": "0"}, b""


def pip(world, host, folder):
    install = (f"{world.bin}/pip install -q --disable-pip-version-check --no-cache-dir --retries 0 --timeout 20 --target {folder}/pip "
               f"--cert {world.authority.ca} --index-url https://{host}/simple {PACKAGE} && cat {folder}/pip/{PACKAGE}.py")
    return ["bash", "-ec", install], {}, b""


def python(name):
    def command(world, host, _):
        script = f"import sys; url, ca = sys.argv[1:]\n{PYTHON[name]}"
        bundle = {"REQUESTS_CA_BUNDLE": world.authority.ca}
        return [world.bin / "python", "-c", script, f"https://{host}/file", world.authority.ca], bundle, b""
    return command


def node(world, host, _):
    return ["node", "-e", NODE, f"https://{host}/file", world.authority.ca], {"NODE_PATH": "/usr/share/nodejs"}, b""


def openssl(world, host, _):
    request = f"GET /file HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    argv = ["openssl", "s_client", "-quiet", "-verify_return_error", "-CAfile", world.authority.ca, "-servername", host]
    return argv + ["-proxy", f"127.0.0.1:{Cage.PORT}", "-connect", f"{host}:443", "-ign_eof"], {}, request


def websocket(world, host, _):
    return [world.bin / "python", "-c", WEBSOCKET, f"wss://{host}:{WS_PORT}/", world.authority.ca, world.secret], {}, b""


def psql(world, host, _):
    return world.psql(host), {"PGPASSWORD": world.postgres.password, "PGCONNECT_TIMEOUT": "20"}, b""


CLIENTS = {"curl": curl, "curl-http": curl_http, "wget": wget, "wget-http": wget_http, "git": git, "pip": pip,
           **{name: python(name) for name in PYTHON}, "node-fetch": node, "openssl": openssl, "websocket": websocket, "psql": psql}
PORTS = {"websocket": WS_PORT, "psql": PG_PORT, "curl-http": 80, "wget-http": 80}


def run(world, name, host, folder):
    argv, env, stdin = CLIENTS[name](world, host, folder)
    world.lab.capture.take()
    world.lab.dns.queries.clear()
    return world.cage.run(argv, folder, stdin=stdin, **env)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_listed_host_delivers_the_bytes(name, world, proxy, tmp_path):
    done = run(world, name, world.good, tmp_path)
    assert done.returncode == 0 and world.secret in done.stdout.decode(), (done.stdout, done.stderr.decode())
    rows = wait_for("all closed", lambda: (r := proxy.records()) and len([x for x in r if x["kind"] == "close"]) * 2 == len(r) and r)
    assert {(r["host"], r["port"], r["verdict"]) for r in rows} == {(world.good, PORTS.get(name, 443), "allow")}
    assert sum(r["bytes_in"] for r in rows if r["kind"] == "close") >= len(world.secret)
    assert {q[0] for q in world.lab.dns.queries} == {world.good}, "asked once, by the proxy, and nothing else"


@pytest.mark.parametrize("name", CLIENTS)
def test_a_host_that_is_not_listed_fails_without_a_query(name, world, proxy, tmp_path):
    before = [len(site.seen) for site in world.sites]
    done = run(world, name, world.bad, tmp_path)
    assert done.returncode != 0 and world.secret not in done.stdout.decode(), done
    rows = proxy.wait_records(1)
    assert {(r["host"], r["port"], r["verdict"], r["reason"]) for r in rows} == {
        (world.bad, PORTS.get(name, 443), "deny", "host_not_allowed")}
    packets = [packet for packet in world.lab.capture.take() if packet[1] in (6, 17)]
    assert world.lab.dns.queries == [] and not packets, "nothing left the proxy's namespace, not even a question"
    assert before == [len(site.seen) for site in world.sites]


def test_every_client_can_also_fail_for_want_of_a_proxy(world, proxy, tmp_path):
    """The namespace has no other way: without its proxy even a listed host is out of reach."""
    argv, env, _ = curl(world, world.good, tmp_path)
    world.cage.target = str(tmp_path / "nothing")
    done = world.cage.run(argv + ["--noproxy", "*"], tmp_path, **env)
    assert done.returncode != 0 and done.stdout == b""
    assert world.cage.run(argv, tmp_path, **env).returncode != 0


def test_the_site_is_really_encrypted(world, proxy, tmp_path):
    """A client that does not know the CA refuses the origin: nothing sits between them."""
    argv, env, _ = curl(world, world.good, tmp_path)
    argv[argv.index(world.authority.ca)] = "/etc/ssl/certs/ca-certificates.crt"
    done = world.cage.run(argv, tmp_path, **env)
    assert done.returncode == 60 and done.stdout == b"", done
    assert subprocess.run(["openssl", "verify", "-CAfile", world.authority.ca, world.authority.cert], capture_output=True,
                          check=False).returncode == 0
