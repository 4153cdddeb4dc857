"""`stockade up` under test: a fresh state directory, started, stopped, killed and started again."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from harness import leftovers
from harness.api import Api
from harness.paths import STOCKADE, environment
from harness.wait import until

START = 30


class Refused(AssertionError):
    """`stockade up` ended before it was ready."""
    def __init__(self, status, log):
        super().__init__(f"stockade up ended with {status}: {log}")
        self.status, self.log = status, log


class Up:
    def __init__(self, settings=(), listen="127.0.0.1:0", flags=(), env=(), prefix=(), folder=None):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="stk-", dir="/tmp"))
        self.folder.chmod(0o711)  # a sandbox's root is mapped to another user and has to reach run_dir
        self.state_dir, self.run_dir = self.folder / "state", self.folder / "run"
        self.settings, self.listen, self.flags, self.env, self.prefix = dict(settings), listen, list(flags), dict(env), list(prefix)
        self.process = self.url = self.token = None
        self.log_path = self.folder / "up.log"

    # --- life

    def start(self, wait=True, **env):
        arguments = [*self.prefix, str(STOCKADE), "up", "--state-dir", str(self.state_dir), "--listen", self.listen,
                     "--set", f"run_dir={self.run_dir}", *self.flags]
        for name, value in self.settings.items():
            arguments += ["--set", f"{name}={value}"]
        if self.token is None and not any("none" in flag for flag in self.flags):
            self.token = self.create_token()
        ready = open(self.folder / "ready", "wb+")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(arguments, stdout=ready, stderr=log, stdin=subprocess.DEVNULL, env=environment(**self.env, **env))
        ready.close()
        return self.wait_ready() if wait else self

    def wait_ready(self):
        def ready():
            found = re.search(r"^ready (\S+)$", (self.folder / "ready").read_text(), re.M)
            if not found and self.process.poll() is not None:
                raise Refused(self.process.returncode, self.log()[-2000:])
            return found
        self.url = until(ready, START, lambda: f"ready; {self.log()[-2000:]}").group(1)
        return self

    def stop(self, seconds=45):
        """SIGTERM, and the exit status; a second one after half the time."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(seconds / 2)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(seconds / 2)
                except subprocess.TimeoutExpired:
                    self.kill()
                    raise AssertionError("stockade up did not end after two SIGTERM; " + self.log()[-2000:]) from None
        return self.process.returncode if self.process else None

    def kill(self):
        """SIGKILL: no chance to clean up."""
        self.process.kill()
        self.process.wait(30)

    def remove(self):
        try:
            self.stop()
        finally:
            leftovers.sweep(self)
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    # --- what one asks it

    @property
    def api(self):
        return Api(self.url, self.token)

    @property
    def worker(self):
        return (self.state_dir / "worker.id").read_text().strip()

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def create_token(self, *options):
        """Into the state directory, before the first start or while it runs."""
        done = subprocess.run([STOCKADE, "token", "create", "--state-dir", self.state_dir, "--label", "test", *(options or ("--scopes", "all"))],
                              env=environment(), capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def cli(self, *arguments, check=None, stdin=None, token=True, timeout=120, **env):
        """A verb of the command line, against this instance."""
        known = {"STOCKADE_URL": self.url or "", "STOCKADE_STATE_DIR": self.state_dir, **({"STOCKADE_TOKEN": self.token or ""} if token else {})}
        done = subprocess.run([STOCKADE, *map(str, arguments)], env=environment(**{**known, **env}), input=stdin, capture_output=True,
                              text=True, timeout=timeout, check=False)
        if check is not None:
            assert done.returncode == check, (arguments, done)
        return done

    def verify(self):
        """`stockade audit verify` on the state directory."""
        return self.cli("audit", "verify", "--state-dir", self.state_dir)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))
