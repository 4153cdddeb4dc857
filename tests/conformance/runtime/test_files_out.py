"""Files out: download, list, exists, delete, and sizes beyond memory."""
import json
import os
import socket
import stat
import threading
import time
import urllib.parse

import pytest
import rt
from files import listing, own, put, quote, root_only, runtime, ws
from forms import TYPE, part, end, upload
from rt import wait_until
from test_serving import raw, read_all


# --- download ---


def test_a_download_says_what_it_is(ws, client):
    put(ws, "d/report.csv", b"a,b\n")
    reply = client.call("GET", "/download/d/report.csv")
    assert reply.body == b"a,b\n" and reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-disposition"] == 'attachment; filename="report.csv"'
    assert reply.headers["accept-ranges"] == "bytes" and reply.headers["last-modified"].endswith(" GMT")
    put(ws, 'caf\u00e9 "1".csv')
    reply = client.call("GET", "/download/" + quote('caf\u00e9 "1".csv'))
    assert reply.headers["content-disposition"] == "attachment; filename=\"caf_ _1_.csv\"; filename*=UTF-8''caf%C3%A9%20%221%22.csv"
    assert client.call("GET", "/download/nope").status == 404
    assert client.call("GET", "/download/").status == 404


RANGES = [("bytes=0-0", 206, b"0", "0-0"), ("bytes=2-4", 206, b"234", "2-4"), ("bytes=7-", 206, b"789", "7-9"), ("bytes=-3", 206, b"789", "7-9"),
          ("bytes=0-99", 206, b"0123456789", "0-9"), ("bytes=-99", 206, b"0123456789", "0-9"), ("bytes=9-9", 206, b"9", "9-9"),
          ("bytes=10-", 416, None, "*"), ("bytes=-0", 416, None, "*"), ("bytes=99-100", 416, None, "*"), ("bytes=99999999999999999999999-", 416, None, "*"),
          ("bytes=0-99999999999999999999999", 206, b"0123456789", "0-9"),
          ("bytes=4-2", 200, b"0123456789", None), ("bytes=0-1,3-4", 200, b"0123456789", None), ("bytes=", 200, b"0123456789", None),
          ("bytes=-", 200, b"0123456789", None), ("bytes=a-b", 200, b"0123456789", None), ("lines=1-2", 200, b"0123456789", None),
          ("bytes=1 - 2", 200, b"0123456789", None)]


@pytest.mark.parametrize("value, status, body, where", RANGES)
def test_one_range_is_honoured(ws, client, value, status, body, where):
    put(ws, "f", b"0123456789")
    reply = client.call("GET", "/download/f", headers=(f"Range: {value}",))
    assert reply.status == status
    assert reply.headers.get("content-range") == (f"bytes {where}/10" if where else None)
    assert body is None or reply.body == body


def test_a_range_of_another_version_gives_the_whole(ws, client):
    put(ws, "f", b"0123456789")
    tag = client.call("GET", "/download/f").headers["etag"]
    assert client.call("GET", "/download/f", headers=("Range: bytes=1-1", f"If-Range: {tag}")).body == b"1"
    assert client.call("GET", "/download/f", headers=("Range: bytes=1-1", 'If-Range: "x"')).body == b"0123456789"


def test_slow_readers_of_a_huge_file_cost_no_memory_and_delay_nobody(ws, client):
    with open(ws.root / "huge", "wb") as file:
        file.truncate(8 << 30)
    own(ws, ws.root / "huge")
    before = ws.memory()
    readers = []
    for _ in range(20):
        sock = raw(ws, b"GET /download/huge HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(65536, socket.MSG_WAITALL).startswith(b"HTTP/1.1 200 OK")
        readers.append(sock)
    began = time.monotonic()
    assert client.execute(["echo", "beside"])["stdout"] == "beside\n"
    assert time.monotonic() - began < 5
    ws.assert_memory(2048, before=before)
    for sock in readers:
        sock.close()
    wait_until(lambda: client.call("GET", "/").status == 200)


def test_a_file_that_shrinks_cuts_the_connection(ws):
    path = ws.root / "f"
    with open(path, "wb") as file:
        file.truncate(64 << 20)
    own(ws, path)
    sock = raw(ws, b"GET /download/f HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
    first = sock.recv(1000)
    assert b"Content-Length: 67108864\r\n" in first
    os.truncate(path, 1 << 20)
    rest = b""
    try:
        rest = read_all(sock)
    except ConnectionResetError:
        pass
    assert len(first) + len(rest) < 64 << 20 and b"HTTP/1.1" not in rest


# --- list, exists, delete ---


def test_the_root_has_several_spellings(ws, client):
    put(ws, "f", b"123")
    for path in ("/list", "/list/", "/list/.", "/list/./", "/list/d/..", "/list/%2e"):
        (ws.root / "d").mkdir(exist_ok=True)
        names = {entry["name"]: entry for entry in client.call("GET", path).json}
        assert set(names) == {"f", "d"}, path
    entry = names["f"]
    assert entry["size"] == 3 and entry["type"] == "file" and abs(entry["mod_time"] - time.time()) < 60
    assert names["d"]["type"] == "directory"
    assert client.call("GET", "/exists/").json == {"path": "", "exists": True}


def test_one_bad_entry_never_breaks_a_list(ws, client):
    os.symlink("nowhere", ws.root / "dangling")
    os.symlink("loop", ws.root / "loop")
    (ws.root / "locked").mkdir(mode=0)
    put(ws, b"caf\xe9 \xff")
    put(ws, b"100%\xff")
    found = listing(client)
    assert set(found) == {"dangling", "loop", "locked", "caf%E9%20%FF", "100%25%FF"}
    assert found["locked"]["type"] == "directory"
    for escaped, name in (("caf%E9%20%FF", b"caf\xe9 \xff"), ("100%25%FF", b"100%\xff")):
        assert found[escaped]["escaped"] is True and urllib.parse.unquote_to_bytes(escaped) == name
        assert client.call("GET", f"/download/{escaped}").status == 200
        assert client.call("DELETE", f"/files/{escaped}").status == 204
    assert all("escaped" not in found[name] for name in ("dangling", "loop", "locked"))


def test_a_hundred_thousand_entries_are_streamed_beside_everything_else(ws, client):
    (ws.root / "many").mkdir()
    count = 100000 if ws.mode == "plain" else 20000
    for i in range(count):
        os.mknod(ws.root / "many" / f"entry-{i:06d}")
    own(ws, ws.root / "many")
    client.call("GET", "/list")
    before, slow = ws.memory(), []
    stop = threading.Event()

    def probe():
        with ws.client() as other:
            while not stop.is_set():
                began = time.monotonic()
                assert other.call("GET", "/").status == 200
                slow.append(time.monotonic() - began)
    prober = threading.Thread(target=probe)
    prober.start()
    assert len(listing(client, "many")) == count
    ws.assert_memory(2048, before=before)
    assert client.call("DELETE", "/files/many?recursive=true").status == 204
    stop.set()
    prober.join()
    assert sorted(slow)[len(slow) // 2] < 0.05, sorted(slow)[-5:]
    assert os.listdir(ws.root) == []


def test_a_list_that_nobody_reads_ends_with_its_reader(ws, client):
    (ws.root / "many").mkdir()
    for i in range(20000):
        os.mknod(ws.root / "many" / f"entry-{i:06d}")
    before = len(os.listdir(f"/proc/{ws.pid}/fd"))
    sock = raw(ws, b"GET /list/many HTTP/1.1\r\nHost: x\r\n\r\n")
    assert sock.recv(10)
    sock.close()
    wait_until(lambda: len(os.listdir(f"/proc/{ws.pid}/fd")) == before, what="its descriptors are closed")


def test_files_are_deleted_and_directories_only_when_asked(ws, client):
    put(ws, "f")
    put(ws, "d/e/g")
    own(ws, ws.root / "d")
    own(ws, ws.root / "d/e")
    (ws.root / "none").mkdir()
    assert client.call("DELETE", "/files/f").status == 204
    assert client.call("DELETE", "/files/f").status == 404
    for query in ("", "?recursive=false", "?recursive=", "?x=true"):
        assert client.call("DELETE", f"/files/d{query}").status == 409
        assert client.call("DELETE", f"/files/none{query}").status == 409
    assert client.call("DELETE", "/files/none?recursive=true").status == 204
    assert client.call("DELETE", "/files/d/?recursive=true").status == 204
    assert os.listdir(ws.root) == []
    for path in ("", ".", "/", "./", "d/..", "%2e"):
        reply = client.call("DELETE", f"/files/{path}?recursive=true")
        assert reply.status in (403, 404), (path, reply.status)
    assert ws.root.is_dir()


def test_a_deep_tree_with_links_out_of_it_is_deleted_without_following(ws, client):
    code = """
import os
os.makedirs('t'); os.chdir('t')
for i in range(1500):
    os.mkdir('d'); os.symlink('/', 'out'); os.chmod('d', 0o700); os.chdir('d')
os.symlink('../../outside', 'up')
"""
    assert client.python(code)["exit_code"] == 0
    (ws.root / "t/locked").mkdir(mode=0)
    own(ws, ws.root / "t/locked")
    assert client.call("DELETE", "/files/t?recursive=true").status == 204
    assert os.listdir(ws.root) == []


def test_a_tree_that_a_command_keeps_filling_delays_nobody(ws, client):
    code = """
import os, time
end = time.monotonic() + 1.5
i = 0
while time.monotonic() < end:
    i += 1
    os.makedirs('t', exist_ok=True)
    try: open(f't/{i}', 'w').close()
    except OSError: pass
"""
    filler = threading.Thread(target=lambda: ws.client().python(code))
    filler.start()
    wait_until(lambda: (ws.root / "t").exists())
    with ws.client() as other:
        other.send("DELETE", "/files/t?recursive=true")
        began = time.monotonic()
        assert client.call("GET", "/").status == 200 and time.monotonic() - began < 1
        assert other.read().status in (204, 409)
    filler.join()


def test_a_delete_that_nobody_waits_for_leaves_no_process(ws, client):
    code = "import os\nfor i in range(20000):\n    os.makedirs(f't/{i % 100}', exist_ok=True); open(f't/{i % 100}/{i}', 'w').close()"
    assert client.python(code)["exit_code"] == 0
    sock = raw(ws, b"DELETE /files/t?recursive=true HTTP/1.1\r\nHost: x\r\n\r\n")
    sock.close()
    wait_until(lambda: not ws.below(), what="no process is left")
    assert client.call("DELETE", "/files/t?recursive=true").status in (204, 404)


# --- sizes ---


def memory_group(limit):
    """A cgroup with a memory limit, on v1 or v2; None when there is none to be had."""
    name = f"stk-files-{os.getpid()}"
    for base, files in (("/sys/fs/cgroup/memory", {"memory.limit_in_bytes": limit}), ("/sys/fs/cgroup", {"memory.max": limit, "memory.swap.max": 0})):
        path = os.path.join(base, name)
        try:
            os.mkdir(path)
        except OSError:
            continue
        if not os.path.exists(os.path.join(path, next(iter(files)))):
            os.rmdir(path)
            continue
        for file, value in files.items():
            if os.path.exists(os.path.join(path, file)):
                with open(os.path.join(path, file), "w") as out:
                    out.write(str(value))
        return path
    return None


@pytest.mark.slow
@root_only
def test_one_gibibyte_goes_up_and_down_in_64_mebibytes(start):
    group = memory_group(64 << 20)
    if not group:
        pytest.skip("no memory controller here")

    def join():
        with open(os.path.join(group, "cgroup.procs"), "w") as out:
            out.write(str(os.getpid()))
    runtime = start("plain", preexec=join, place="/var/tmp")  # on a disk: a tmpfs would count for the group
    size, block = 1 << 30, os.urandom(1 << 20)
    try:
        head, tail = part("big", b"")[:-2], b"\r\n" + end()
        with runtime.client() as client:
            length = len(head) + size + len(tail)
            client.sock.sendall(f"POST /upload HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nContent-Length: {length}\r\n\r\n".encode() + head)
            for _ in range(1024):
                client.sock.sendall(block)
            client.sock.sendall(tail)
            assert client.read().json["size"] == size
            assert os.stat(runtime.root / "big").st_size == size
            client.sock.sendall(b"GET /download/big HTTP/1.1\r\nHost: x\r\n\r\n")
            status, headers = client.read_head()
            assert status == 200 and int(headers["content-length"]) == size
            for _ in range(1024):
                assert client.file.read(1 << 20) == block
            assert client.call("GET", "/").status == 200
        assert runtime.memory() < 16384
        assert runtime.proc.poll() is None
    finally:
        runtime.stop()
        wait_until(lambda: not open(os.path.join(group, "cgroup.procs")).read(), what="the group is empty")
        os.rmdir(group)
