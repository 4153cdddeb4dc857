"""A PostgreSQL server under test: Debian's programs, data in a temporary directory, loopback and a Unix socket, fsync on."""
import os
import pathlib
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile

from harness.wait import until

VERSIONS = pathlib.Path("/usr/lib/postgresql")
START = 60


def programs():
    found = sorted(VERSIONS.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    assert found, f"no PostgreSQL below {VERSIONS}: deploy/packages.sh test"
    return found[-1].parent


def ordinary_user():
    """Whom the server runs as: it refuses root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            known = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": known.pw_uid, "group": known.pw_gid, "extra_groups": []}
    raise AssertionError("no ordinary user to run PostgreSQL as")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Postgres:
    def __init__(self, **settings):
        self.bin, self.who, self.settings = programs(), ordinary_user(), settings
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stk-pg-", dir="/tmp"))
        self.data, self.port, self.process = self.folder / "data", free_port(), None
        self.user, self.password = "stockade", secrets.token_hex(16)
        if self.who:
            os.chown(self.folder, self.who["user"], self.who["group"])
        secret = self.folder / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)
        self.run("initdb", "--pgdata", self.data, "--username", self.user, "--pwfile", secret, "--auth-local", "trust",
                 "--auth-host", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8")
        secret.unlink()
        self.certificate = self.folder / "server.crt"
        key = self.folder / "server.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", self.certificate],
                       check=True, capture_output=True)
        key.chmod(0o600)
        if self.who:
            os.chown(key, self.who["user"], self.who["group"])

    def environment(self):
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "PGCONNECT_TIMEOUT": "5"}

    def run(self, program, *arguments):
        done = subprocess.run([self.bin / program, *map(str, arguments)], capture_output=True, text=True, check=False,
                              env=self.environment(), cwd=self.folder, timeout=120, **self.who)
        assert done.returncode == 0, (program, done.stdout, done.stderr)
        return done.stdout

    # --- life

    def start(self):
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self.folder, "fsync": "on", "ssl": "on",
                    "ssl_cert_file": self.certificate, "ssl_key_file": self.folder / "server.key",
                    "shared_buffers": "64MB", "max_wal_size": "1GB", "logging_collector": "off", **self.settings}
        flags = [flag for name, value in settings.items() for flag in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([self.bin / "postgres", "-D", self.data, *flags], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.environment(), cwd=self.folder, **self.who)
        until(self.answers, START, lambda: f"PostgreSQL ready; {self.log()[-2000:]}")
        return self

    def answers(self):
        assert self.process.poll() is None, self.log()[-2000:]
        return subprocess.run([self.bin / "psql", "-d", self.local, "-qAtc", "SELECT 1"], capture_output=True, check=False,
                              env=self.environment(), cwd="/").returncode == 0

    def stop(self, how=signal.SIGINT):
        """SIGINT: at once, sessions are ended; SIGQUIT: without a clean end; SIGKILL: as if the power went."""
        if self.process and self.process.poll() is None:
            if how == signal.SIGKILL:
                self.kill_all()
            else:
                self.process.send_signal(how)
            self.process.wait(60)
        self.process = None

    def kill_all(self):
        """The server and its children: a new one refuses to start while one of those lives."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.process.kill()
        for child in map(int, children):
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        until(lambda: not any(os.path.exists(f"/proc/{child}") for child in children), 30, "PostgreSQL's children are gone")

    def remove(self):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()

    # --- what one asks it

    @property
    def conninfo(self):
        """Over TCP, with the password."""
        return f"host=127.0.0.1 port={self.port} user={self.user} dbname=postgres password={self.password} sslmode=disable"

    @property
    def conninfo_tls(self):
        """The same over TLS; the server has to show its certificate."""
        return (f"host=localhost hostaddr=127.0.0.1 port={self.port} user={self.user} dbname=postgres password={self.password} "
                f"sslmode=verify-full sslrootcert={self.certificate}")

    @property
    def local(self):
        return f"host={self.folder} port={self.port} user={self.user} dbname=postgres"

    def sql(self, text):
        """Rows of unaligned text, by the Unix socket: independent of our adapter."""
        done = subprocess.run([self.bin / "psql", "-d", self.local, "-X", "-v", "ON_ERROR_STOP=1", "-qAtc", text], capture_output=True,
                              text=True, check=False, env=self.environment(), cwd="/", timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def log(self):
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""
