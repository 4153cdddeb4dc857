"""Without root: an ordinary user with a range of subordinate ids runs doctor, `up` and runs in sandboxes."""
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import pytest

from harness import leftovers
from harness.paths import LIBEXEC, STOCKADE, environment
from harness.wait import until

AGENTS = {"helper": {"allow": [], "limits": {"memory_bytes": 64 << 20, "pids": 40}}}
CGROUPS = pathlib.Path("/sys/fs/cgroup")


class User:
    """A user of this machine with its own copy of the programs: the build may be where only its owner can go."""
    def __init__(self, folder):
        self.name, self.folder = f"stk-test-{os.getpid()}", folder
        subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/false", "--add-subids-for-system", self.name], check=True)
        entry = pwd.getpwnam(self.name)
        self.uid, self.gid = entry.pw_uid, entry.pw_gid
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name in [STOCKADE.name, "stockade-launch", "stockade-runtime", "stockade-egress-proxy"]:
            found = next(path for path in [STOCKADE, *(pathlib.Path(part) / name for part in LIBEXEC.split(":"))] if path.name == name and path.exists())
            shutil.copy(found, self.programs / name)
        self.stockade = self.programs / STOCKADE.name
        self.prefix = ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]

    def remove(self):
        subprocess.run(["userdel", self.name], check=True, capture_output=True)

    def run(self, *arguments):
        return subprocess.run([*self.prefix, self.stockade, *arguments], env=environment(STOCKADE_LIBEXEC=self.programs), cwd="/", text=True,
                              capture_output=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def user(built):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stk-user-", dir="/tmp"))
    folder.chmod(0o755)
    one = User(folder)
    yield one
    one.remove()
    shutil.rmtree(folder)


@pytest.fixture
def make(user, fresh):
    """Instances of the user's own."""
    def start(**settings):
        one = fresh(flags=["--auth", "none"], settings=settings, env={"STOCKADE_LIBEXEC": user.programs},
                    prefix=[*user.prefix, "sh", "-c", f'shift; exec {user.stockade} "$@"', "sh"])
        os.chown(one.folder, user.uid, user.gid)
        one.start()
        one.api.configure(AGENTS)
        return one
    return start


def test_doctor_finds_a_backend_and_names_what_is_not_enforced(user):
    done = user.run("doctor", "--json")
    assert done.returncode == 0, done
    oci = json.loads(done.stdout)[0]
    assert oci["name"] == "oci" and oci["ok"] and oci["isolation"] in ("container", "gvisor"), oci
    assert not oci["reason"] and not oci["remedy"], oci
    assert "memory and cpu limits are not enforced" in oci["notes"] and "root" in oci["notes"], oci
    text = user.run("doctor")
    assert text.returncode == 0 and "ok" in text.stdout and "note:" in text.stdout, text
    assert not [name for name in os.listdir("/tmp") if name.startswith("stockade-doctor") and pathlib.Path("/tmp", name).stat().st_uid == user.uid]


def test_without_subordinate_ids_doctor_says_what_to_do(user):
    kept = {path: pathlib.Path(path).read_text() for path in ("/etc/subuid", "/etc/subgid")}
    try:
        for path, text in kept.items():
            pathlib.Path(path).write_text("".join(line for line in text.splitlines(True) if not line.startswith(user.name + ":")))
        done = user.run("doctor", "--json")
    finally:
        for path, text in kept.items():
            pathlib.Path(path).write_text(text)
    oci = json.loads(done.stdout)[0]
    assert done.returncode == 1 and not oci["ok"], done
    assert "/etc/subuid" in oci["reason"] and "usermod --add-subuids" in oci["remedy"], oci


def test_runs_work_and_are_nobody(make):
    up = make()
    result = up.api.run("helper", ["sh", "-c", "id -u; cat /proc/self/uid_map | tr -s ' '; ls /home /root 2>&1 | wc -l; touch /workspace/a && echo wrote"])
    assert result["reason"] == "exited" and result["exit_code"] == 0, result
    assert result["stdout_tail"].startswith("65532\n") and result["stdout_tail"].endswith("wrote\n"), result
    refused = up.api.run("helper", ["python3", "-c", "import urllib.request as u\ntry: u.urlopen('https://a.example/')\nexcept OSError: print('no')"])
    assert refused["stdout_tail"] == "no\n" and refused["egress_denied"] == 1, refused
    until(lambda: not leftovers.everything(up), 15, lambda: leftovers.everything(up))
    assert up.stop() == 0, up.log()[-2000:]
    assert not leftovers.everything(up)


def test_a_fork_bomb_is_bounded_all_the_same(make):
    up = make()
    result = up.api.run("helper", ["python3", "-c", """
import os
made = 0
try:
    while True:
        if os.fork() == 0:
            import signal
            signal.pause()
        made += 1
except OSError:
    print(made < 60)
os._exit(0)
"""])
    assert result["stdout_tail"] == "True\n", result
    until(lambda: not leftovers.everything(up), 15, lambda: leftovers.everything(up))


def running(argument):
    """Whether a process has this argument, whoever it belongs to."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if argument.encode() in pathlib.Path("/proc", entry, "cmdline").read_bytes().split(b"\0"):
                return True
        except (FileNotFoundError, ProcessLookupError):
            pass
    return False


def test_nothing_is_left_after_kill_9_and_the_next_start(make):
    up = make()
    mark = f"60.{os.getpid()}"
    run = up.api.submit("helper", ["sleep", mark], timeout_seconds=60)
    until(lambda: running(mark), 20, "the command")
    up.kill()
    up.start()
    ended = until(lambda: (lambda row: row if row["state"] == "finished" else None)(up.api.ok("GET", f"/v1/runs/{run}")), 30, "finished")
    assert ended["reason"] == "worker_lost", ended
    until(lambda: not leftovers.everything(up) and not running(mark), 15, lambda: leftovers.everything(up))
    assert up.api.run("helper", ["echo", "again"])["stdout_tail"] == "again\n"


@pytest.mark.skipif(not (CGROUPS / "memory/cgroup.procs").exists(), reason="cgroup v1 alone lets a user be given a cgroup of this kind")
def test_with_a_cgroup_of_its_own_memory_is_limited_too(make, user):
    name = f"stk-given-{os.getpid()}"
    given = [path.parent / name for path in CGROUPS.glob("*/cgroup.procs") if path.parent.name != "unified" and not path.parent.is_symlink()]
    try:
        for path in given:
            path.mkdir()
            subprocess.run(["chown", "-R", str(user.uid), path], check=True)
        up = make(**{"worker.cgroup": name})
        assert "not enforced" not in json.dumps(up.api.ok("GET", "/v1/workers"))
        result = up.api.run("helper", ["python3", "-c", "kept = []\nwhile True: kept.append(bytearray(4 << 20))"])
        assert result["reason"] == "oom" and result["exit_code"] == 137, result
        assert up.stop() == 0, up.log()[-2000:]
    finally:
        for path in given:
            for below in sorted(path.rglob("*"), key=lambda found: -len(str(found))):
                if below.is_dir():
                    below.rmdir()
            path.rmdir()
