"""Real clients through the egress proxy: each reaches the host that is listed and is refused the one that is not."""
import base64
import functools
import hashlib
import http.server
import os
import ssl
import subprocess
import threading
import zipfile

import pytest

from harness import paths
from harness.egress_lab import Lab, Proxy, inside, tunnel

HOST, OTHER = "allowed.example", "evil.example"
TEXT = b"served by the origin\n"


def cert(folder):
    key, crt = folder / "key.pem", folder / "ca.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={HOST}",
         "-addext", f"subjectAltName=DNS:{HOST},DNS:{OTHER}", "-keyout", key, "-out", crt],
        check=True, capture_output=True,
    )
    return key, crt


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.headers.get("Upgrade") != "websocket":
            return super().do_GET()
        token = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(token.encode()).digest()).decode()
        self.wfile.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        self.wfile.write(b"\x81\x05hello")
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, ns, port, folder, context=None):
        with inside(ns):
            super().__init__(("0.0.0.0", port), functools.partial(Handler, directory=str(folder)))
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass


def fill(folder):
    """A file, a git repository over plain files, and a package index with one wheel."""
    (folder / "file.txt").write_bytes(TEXT)
    work, bare = folder / "work", folder / "repo.git"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t.example", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q", work], check=True)
    (work / "a.txt").write_text("in the repository\n")
    subprocess.run([*git, "-C", work, "add", "."], check=True)
    subprocess.run([*git, "-C", work, "commit", "-q", "-m", "one"], check=True)
    subprocess.run([*git, "clone", "-q", "--bare", work, bare], check=True)
    subprocess.run([*git, "-C", bare, "update-server-info"], check=True)
    index = folder / "simple" / "tiny-thing"
    index.mkdir(parents=True)
    wheel = "tiny_thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(index / wheel, "w") as out:
        info = "tiny_thing-1.0.dist-info"
        out.writestr("tiny_thing.py", "answer = 42\n")
        out.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n")
        out.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr(f"{info}/RECORD", f"tiny_thing.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    (index / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')


class World:
    def __init__(self, folder):
        self.lab = Lab()
        self.lab.dns.names = {HOST: ["93.184.216.34"], OTHER: ["93.184.216.35"]}
        key, self.ca = cert(folder)
        (folder / "www").mkdir()
        fill(folder / "www")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca, key)
        self.servers = [Server(self.lab.b, 443, folder / "www", context), Server(self.lab.b, 80, folder / "www")]
        (folder / "proxy").mkdir()
        policy = {"version": 1, "allow": [HOST], "tls": "require"}
        self.proxy = Proxy(paths.PROXY, self.lab, folder / "proxy", policy, listen="127.0.0.1:0")
        self.address = self.proxy.ready.split()[1]

    def run(self, *argv, **more):
        url = f"http://{self.address}"
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "NODE_PATH": "/usr/share/nodejs"}
        env |= {name: url for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy")} | {"NO_PROXY": ""}
        argv = ["ip", "netns", "exec", self.lab.a, *[str(arg) for arg in argv]]
        return subprocess.run(argv, env=env, capture_output=True, timeout=60, **more)

    def close(self):
        assert self.proxy.stop() == 0, self.proxy.stderr()
        for server in self.servers:
            server.shutdown()
            server.server_close()
        self.lab.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("clients"))
    yield world
    world.close()


PYTHON = {
    "urllib": "import ssl,sys,urllib.request as u; print(u.urlopen(sys.argv[1], context=ssl.create_default_context(cafile=sys.argv[2])).read().decode(), end='')",
    "requests": "import requests,sys; r=requests.get(sys.argv[1], verify=sys.argv[2]); r.raise_for_status(); print(r.text, end='')",
    "urllib3": "import os,sys,urllib3; m=urllib3.ProxyManager(os.environ['HTTPS_PROXY'], ca_certs=sys.argv[2]); r=m.request('GET', sys.argv[1], retries=False); assert r.status==200, r.status; print(r.data.decode(), end='')",
}
NODE = """
const { ProxyAgent, request } = require('undici');
const agent = new ProxyAgent({ uri: process.env.HTTPS_PROXY, requestTls: { ca: require('fs').readFileSync(process.argv[2]) } });
request(process.argv[1], { dispatcher: agent }).then(r => { if (r.statusCode != 200) throw r.statusCode; return r.body.text(); })
  .then(t => process.stdout.write(t)).catch(e => { console.error(String(e)); process.exit(1); });
"""


def command(client, url, ca):
    if client in PYTHON:
        return ["/usr/bin/python3", "-c", PYTHON[client], url, ca]
    return {
        "curl": ["curl", "-sS", "--fail", "--cacert", ca, url],
        "wget": ["wget", "-q", "--tries=1", "--ca-certificate", ca, "-O", "-", url],
        "node": ["node", "-e", NODE, url, ca],
    }[client]


CLIENTS = [(client, scheme) for client in ("curl", "wget", *PYTHON) for scheme in ("https", "http")]


@pytest.mark.parametrize("client, scheme", [*CLIENTS, ("node", "https")])  # undici asks for a tunnel for plain http too
def test_a_client_reaches_what_is_listed_and_nothing_else(world, client, scheme):
    good = world.run(*command(client, f"{scheme}://{HOST}/file.txt", world.ca))
    assert good.returncode == 0 and good.stdout == TEXT, good
    asked = len(world.lab.dns.queries)
    bad = world.run(*command(client, f"{scheme}://{OTHER}/file.txt", world.ca))
    assert bad.returncode != 0 and TEXT not in bad.stdout, bad
    assert len(world.lab.dns.queries) == asked
    last = world.proxy.records()[-1]
    assert last["host"] == OTHER and last["reason"] == "host_not_allowed"


def test_git_over_https(world, tmp_path):
    done = world.run("git", "-c", f"http.sslCAInfo={world.ca}", "clone", "-q", f"https://{HOST}/repo.git", tmp_path / "clone")
    assert done.returncode == 0, done
    assert (tmp_path / "clone/a.txt").read_text() == "in the repository\n"
    bad = world.run("git", "-c", f"http.sslCAInfo={world.ca}", "clone", "-q", f"https://{OTHER}/repo.git", tmp_path / "other")
    assert bad.returncode != 0 and b"403" in bad.stderr


def test_pip_against_a_package_index(world, tmp_path):
    index = f"https://{HOST}/simple"
    pip = ["/usr/bin/python3", "-m", "pip", "--isolated", "--disable-pip-version-check", "download", "-q", "--no-cache-dir", "--retries", "0",
           "--proxy", f"http://{world.address}", "--cert", world.ca, "-d", tmp_path]
    done = world.run(*pip, "-i", index, "tiny-thing")
    assert done.returncode == 0, done
    assert os.listdir(tmp_path) == ["tiny_thing-1.0-py3-none-any.whl"]


def test_openssl_by_its_own_proxy_option(world):
    argv = ["openssl", "s_client", "-quiet", "-verify_return_error", "-CAfile", world.ca, "-proxy", world.address, "-connect", f"{HOST}:443", "-servername"]
    request = f"GET /file.txt HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()
    good = world.run(*argv, HOST, input=request)
    assert good.stdout.endswith(TEXT), good
    fronted = world.run(*argv, OTHER, input=request)
    assert TEXT not in fronted.stdout and [r["reason"] for r in world.proxy.records()[-2:]] == ["sni_mismatch"] * 2


def test_a_websocket_through_a_tunnel(world):
    context = ssl.create_default_context(cafile=world.ca)
    with context.wrap_socket(tunnel(world.proxy, HOST), server_hostname=HOST) as sock:
        key = base64.b64encode(os.urandom(16)).decode()
        sock.sendall(f"GET /ws HTTP/1.1\r\nHost: {HOST}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        got = b""
        while not got.endswith(b"\x81\x05hello"):
            more = sock.recv(4096)
            assert more
            got += more
        assert b" 101 " in got.splitlines()[0]
