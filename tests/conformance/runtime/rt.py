"""Starts the real runtime on a Unix socket with a scratch root, as an ordinary user, and speaks plain HTTP to it."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("STOCKADE_BUILD", SOURCE / "build"))
BINARY = BUILD / "workers/runtime/stockade-runtime"
PYTHON = "/usr/bin/python3"
UID = 65532
# A sanitizer build is dynamic and large: what a test says of memory holds for the real one only.
SANITIZED = b"__asan_init" in BINARY.read_bytes() if BINARY.exists() else False


def wait_until(condition, seconds=5.0, what="condition"):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.005)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body.decode("utf-8", errors="strict"))


class Client:
    """One kept-alive connection."""

    def __init__(self, address):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(address)
        self.file = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.sock.close()

    def send(self, method, path, body=None, headers=()):
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: sandbox", f"Content-Length: {len(data)}", *headers, "", ""]
        self.sock.sendall("\r\n".join(lines).encode() + data)

    def read_head(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("the runtime closed the connection")
        status, headers = int(line.split()[1]), {}
        while line := self.file.readline().strip():
            name, value = line.decode().split(":", 1)
            headers[name.lower()] = value.strip()
        return status, headers

    def read_chunk(self):
        size = self.file.readline()
        if not size:
            raise ConnectionError("the runtime closed the connection")
        data = self.file.read(int(size, 16))
        self.file.readline()
        return data

    def read(self, to_head=False):
        status, headers = self.read_head()
        if to_head:
            return Reply(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while data := self.read_chunk():
                body += data
        else:
            body = self.file.read(int(headers.get("content-length", 0)))
        return Reply(status, headers, body)

    def call(self, method, path, body=None, headers=()):
        self.send(method, path, body, headers)
        return self.read(to_head=method == "HEAD")

    def execute(self, command, **fields):
        reply = self.call("POST", "/execute", {"command": command, **fields})
        assert reply.status == 200, reply.body
        return reply.json

    def python(self, code, *args, **fields):
        return self.execute([PYTHON, "-c", code, *args], **fields)

    def stream(self, command, **fields):
        """The frames of a streamed run; raises ConnectionError when it is cut."""
        self.send("POST", "/execute?stream=1", {"command": command, **fields})
        status, headers = self.read_head()
        assert status == 200 and headers["content-type"] == "application/x-ndjson"
        rest = b""
        while data := self.read_chunk():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield json.loads(line)
        assert rest == b""


def process_table():
    """pid -> (parent, state, command line) of all we can see."""
    table = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        state, parent = stat.rsplit(")", 1)[1].split()[:2]
        table[int(entry.name)] = (int(parent), state, line)
    return table


def processes_with(text):
    return [pid for pid, (_, state, line) in process_table().items() if text in line and state != "Z"]


class Runtime:
    """mode "plain": below the test; "pid1": first process of a pid namespace, as in a sandbox."""

    def __init__(self, mode="plain", args=(), env=None, uid=UID, stdin=subprocess.DEVNULL, listen=True, wrap=(),
                 pass_fds=(), preexec=None, place="/tmp"):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="stk-rt-", dir=place))
        self.dir.chmod(0o755)
        self.root = self.dir / "ws"
        self.root.mkdir()
        self.socket = str(self.dir / "rt.sock")
        command = [str(BINARY), "--root", str(self.root), *args]
        if listen:
            command += ["--listen", f"unix:{self.socket}"]
        if os.geteuid() == 0:
            for path in (self.dir, self.root):
                os.chown(path, uid, uid)
            command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *wrap, *command]
        else:
            command = [*wrap, *command]
        self.mode = mode
        if mode == "pid1":
            user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
            command = ["unshare", *user, "--pid", "--fork", "--mount-proc", *command]
        self.log = open(self.dir / "log", "wb")
        self.proc = subprocess.Popen(command, stdin=stdin, stdout=self.log, stderr=self.log, env=env,
                                     pass_fds=pass_fds, preexec_fn=preexec, start_new_session=True)
        if listen:
            wait_until(self.ready, what="runtime answers")

    def ready(self):
        assert self.proc.poll() is None, self.output()
        try:
            with Client(self.socket) as client:
                return client.call("GET", "/").status == 200
        except OSError:
            return False

    def output(self):
        return (self.dir / "log").read_text()

    @property
    def pid(self):
        if self.mode == "plain":
            return self.proc.pid
        children = pathlib.Path(f"/proc/{self.proc.pid}/task/{self.proc.pid}/children").read_text().split()
        return int(children[0])

    def memory(self, field="Rss"):
        """KiB."""
        for line in pathlib.Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        raise KeyError(field)

    def assert_memory(self, most, field="Rss", before=0):
        """At most `most` KiB more than before."""
        now = self.memory(field)
        assert SANITIZED or now - before <= most, f"{now} KiB, {before} KiB before"

    def assert_small(self):
        private = self.memory("Private_Clean") + self.memory("Private_Dirty")
        assert SANITIZED or private <= 1024, f"{private} KiB private"

    def below(self):
        """Live and zombie processes below the runtime: pid -> state."""
        table, found, grew = process_table(), {}, True
        while grew:
            grew = False
            for pid, (parent, state, _) in table.items():
                if pid not in found and (parent == self.pid or parent in found):
                    found[pid], grew = state, True
        return found

    def client(self):
        return Client(self.socket)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def stop(self):
        try:
            if self.proc.poll() is None:
                os.kill(self.pid, signal.SIGTERM)
            self.proc.wait(10)
        except (subprocess.TimeoutExpired, OSError, IndexError):
            self.kill_hard()
        finally:
            self.log.close()
            shutil.rmtree(self.dir, ignore_errors=True)

    def kill_hard(self):
        try:
            self.kill()
        except (OSError, IndexError):
            pass
        self.proc.kill()
        self.proc.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
