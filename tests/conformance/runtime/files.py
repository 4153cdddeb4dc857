"""What the tests of files share: a root of their own with a sentinel beside it, and names as they go into a path."""
import json
import os
import urllib.parse

import pytest
import rt

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs mount or a cgroup")


def quote(path):
    return urllib.parse.quote(path, safe="")


def own(runtime, path):
    if os.geteuid() == 0:
        os.chown(path, rt.UID, rt.UID)


def put(runtime, name, data=b""):
    path = os.path.join(os.fsencode(runtime.root), os.fsencode(name))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    own(runtime, path)
    return path


# A sandbox has its root in memory too.
PLACE = "/dev/shm" if os.access("/dev/shm", os.W_OK) and not os.statvfs("/dev/shm").f_flag & os.ST_NOEXEC else "/tmp"


@pytest.fixture(scope="module", params=["plain", "pid1"])
def runtime(request):
    with rt.Runtime(request.param, args=["--max-concurrent", "64"], place=PLACE) as it:
        yield it
        assert it.proc.poll() is None, it.output()


@pytest.fixture
def ws(runtime, client):
    """An empty root, and a sentinel outside of it that must stay as it is."""
    import shutil
    for entry in runtime.root.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    outside = runtime.dir / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "secret").write_text("secret")
    own(runtime, outside)
    evil = runtime.dir / "ws-evil"
    evil.mkdir(exist_ok=True)
    own(runtime, evil)
    yield runtime
    assert sorted(os.listdir(outside)) == ["secret"] and (outside / "secret").read_text() == "secret"
    assert os.listdir(evil) == []


def listing(client, path=""):
    reply = client.call("GET", f"/list/{quote(path)}")
    assert reply.status == 200, reply.body
    return {entry["name"]: entry for entry in reply.json}
