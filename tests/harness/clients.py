"""What real clients of the egress proxy need: a network namespace whose only way out is the proxy's socket, a CA and an HTTPS site in
the lab's second namespace (files, a git repository, a package index), and a venv with Python's clients."""
import http.server
import shutil
import socket
import ssl
import subprocess
import threading
import zipfile

from harness.egress_lab import inside, read_head, run
from harness.humaneval import CACHE
from harness.paths import environment

PACKAGES = ("requests", "urllib3", "httpx", "websockets")
PACKAGE = "stockade_sample"
WEBSOCKET_ECHO = """
import ssl, sys, websockets.sync.server as server
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(sys.argv[1])
def echo(peer):
    for message in peer:
        peer.send(message)
with server.serve(echo, "0.0.0.0", int(sys.argv[2]), ssl=context) as serving:
    print("ready", flush=True)
    serving.serve_forever()
"""


def venv():
    """A virtual environment with the clients from PyPI; its programs' folder."""
    folder = CACHE / "egress-clients-venv"
    if not (folder / "ready").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", folder], check=True)
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES], check=True)
        (folder / "ready").touch()
    return folder / "bin"


class Cage:
    """A namespace with nothing but a loopback, as a sandbox has: 127.0.0.1:3128 is relayed to the proxy's Unix socket, and what an
    optional `forward` port takes goes through one CONNECT, for clients that know no proxies."""

    PORT = 3128

    def __init__(self, name):
        self.name, self.target, self.sockets = name, None, []
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        self.listen(self.PORT, None)

    def close(self):
        for sock in self.sockets:
            sock.close()
        subprocess.run(["ip", "netns", "del", self.name], check=False)

    def listen(self, port, connect):
        with inside(self.name):
            sock = socket.create_server(("127.0.0.1", port), backlog=64)
        self.sockets.append(sock)
        threading.Thread(target=self.loop, args=(sock, connect), daemon=True).start()

    def loop(self, sock, connect):
        while True:
            try:
                client, _ = sock.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(client, connect), daemon=True).start()

    def one(self, client, connect):
        with client, socket.socket(socket.AF_UNIX) as proxy:
            try:
                proxy.connect(self.target)
                if connect:
                    proxy.sendall(f"CONNECT {connect} HTTP/1.1\r\nHost: {connect}\r\n\r\n".encode())
                    if read_head(proxy)[0] != 200:
                        return
                back = threading.Thread(target=pump, args=(proxy, client), daemon=True)
                back.start()
                pump(client, proxy)
                back.join()
            except OSError:
                pass

    def run(self, argv, folder, timeout=60, stdin=b"", **more):
        """The finished client: its standard output, error and status."""
        url = f"http://127.0.0.1:{self.PORT}"
        proxies = {name: url for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
        own = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8", "NO_PROXY": "", "PIP_CONFIG_FILE": "/dev/null"}
        env = {**own, **proxies, **{name: str(value) for name, value in more.items()}}
        return subprocess.run(["ip", "netns", "exec", self.name, *map(str, argv)], capture_output=True, check=False, cwd=folder,
                              input=stdin, timeout=timeout, env=env)


def pump(source, to):
    try:
        while data := source.recv(65536):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)
    except OSError:
        for sock in (source, to):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Authority:
    """A CA of the test, and one certificate for the names given."""

    def __init__(self, folder, names):
        self.ca, self.pair = folder / "ca.pem", folder / "pair.pem"
        self.key, self.cert = folder / "key.pem", folder / "cert.pem"
        self.openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test CA", "-keyout", "ca.key",
                     "-out", "ca.pem", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        self.openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={names[0]}", "-keyout", "key.pem", "-out", "csr.pem")
        (folder / "ext").write_text(f"subjectAltName={','.join('DNS:' + name for name in names)}\nbasicConstraints=CA:FALSE\n")
        self.openssl(folder, "x509", "-req", "-in", "csr.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                     "-extfile", "ext", "-out", "cert.pem")
        self.pair.write_text(self.cert.read_text() + self.key.read_text())

    @staticmethod
    def openssl(folder, *arguments):
        done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


class Pages(http.server.SimpleHTTPRequestHandler):
    """Files below the site's folder; *.git is served by git's own CGI program."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def setup(self):
        self.request.settimeout(30)
        if self.server.context:
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self):
        super().finish()
        if self.server.context:
            self.request.unwrap()

    def do_GET(self):
        self.server.seen.append((self.command, self.path))
        if ".git/" in self.path:
            return self.git(b"")
        return super().do_GET()

    def do_POST(self):
        self.server.seen.append((self.command, self.path))
        return self.git(self.rfile.read(int(self.headers["Content-Length"])))

    def git(self, body):
        path, _, query = self.path.partition("?")
        env = {**environment(), "GIT_PROJECT_ROOT": str(self.directory), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
               "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_LENGTH": str(len(body)), "REMOTE_ADDR": "127.0.0.1",
               "CONTENT_TYPE": self.headers.get("Content-Type", ""), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        out = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=True).stdout
        head, _, answer = out.partition(b"\r\n\r\n")
        self.send_response(200)
        for line in head.decode().splitlines():
            name, _, value = line.partition(": ")
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Site:
    """A folder over HTTPS (with a certificate) or HTTP at every address of a namespace."""

    def __init__(self, ns, port, folder, pair=None):
        def handler(*arguments):
            return Pages(*arguments, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("", 0), handler, bind_and_activate=False)
        self.server.socket.close()
        with inside(ns):
            self.server.socket = socket.create_server(("0.0.0.0", port), backlog=64)
        self.server.context, self.server.seen = None, []
        self.server.handle_error = lambda *_: None
        if pair:
            self.server.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self.server.context.load_cert_chain(pair)
        threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True).start()

    @property
    def seen(self):
        return self.server.seen

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def make_files(folder, secret):
    """What the site holds: /file, a repository /sample.git, and an index /simple/ with one wheel."""
    (folder / "file").write_text(secret)
    work, bare = folder.parent / "work", folder / "sample.git"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    env = environment(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
    work.mkdir()
    (work / "README").write_text(secret)
    for argv in (["init", "-q"], ["add", "README"], ["commit", "-q", "-m", "one"]):
        subprocess.run(git + argv, cwd=work, env=env, check=True)
    subprocess.run(git + ["clone", "-q", "--bare", work, bare], env=env, check=True)
    shutil.rmtree(work)
    name = PACKAGE.replace("_", "-")
    index = folder / "simple" / name
    index.mkdir(parents=True)
    wheel = index / f"{PACKAGE}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        info = f"{PACKAGE}-1.0.dist-info"
        out.writestr(f"{PACKAGE}.py", f"SECRET = {secret!r}\n")
        out.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        out.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr(f"{info}/RECORD", f"{PACKAGE}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    (index / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{wheel.name}">{wheel.name}</a></body></html>')


def websocket_echo(ns, python, pair, port):
    """The package's own server, echoing, in a namespace."""
    argv = ["ip", "netns", "exec", ns, str(python), "-c", WEBSOCKET_ECHO, str(pair), str(port)]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment())
    assert process.stdout.readline() == b"ready\n"
    return process
