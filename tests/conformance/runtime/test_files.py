"""Files in and out: every call, every path rule, and what a hostile command leaves lying there."""
import json
import os
import resource
import socket
import stat
import subprocess
import threading
import time

import pytest
import rt
from files import listing, own, put, quote, root_only, runtime, ws
from forms import BOUNDARY, TYPE, form, part, end, upload
from rt import wait_until
from test_serving import raw, read_all


# --- upload ---


def test_an_uploaded_file_is_there_with_its_parents(ws, client):
    reply = upload(client, "a/b/c.txt", b"hello\r\n--not the boundary\r\n")
    assert (reply.status, reply.json) == (200, {"message": "File 'a/b/c.txt' uploaded successfully.", "size": 27})
    assert (ws.root / "a/b/c.txt").read_bytes() == b"hello\r\n--not the boundary\r\n"
    assert stat.S_IMODE((ws.root / "a/b/c.txt").stat().st_mode) == 0o644
    assert os.listdir(ws.root / "a/b") == ["c.txt"]


def test_an_upload_replaces_and_keeps_the_mode(ws, client):
    assert upload(client, "run.sh", b"#!/bin/sh\necho one\n", "?mode=0755").status == 200
    assert client.execute(["./run.sh"])["stdout"] == "one\n"
    assert upload(client, "run.sh", b"#!/bin/sh\necho two\n").status == 200
    assert client.execute(["./run.sh"])["stdout"] == "two\n"
    assert upload(client, "run.sh", b"", "?mode=600").status == 200
    assert stat.S_IMODE((ws.root / "run.sh").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", ["", "7", "9999", "4755", "00755", "rwx", "-1", "0888"])
def test_a_mode_is_octal_permission_bits(ws, client, mode):
    reply = upload(client, "f", b"x", f"?mode={mode}")
    assert reply.status == 422 and reply.json["detail"][0]["loc"] == ["body", "mode"]
    assert os.listdir(ws.root) == []


def test_an_acknowledged_upload_is_visible(ws, client):
    for i in range(200):
        assert upload(client, f"d{i % 7}/f{i}", str(i).encode()).status == 200
        assert client.execute(["cat", f"d{i % 7}/f{i}"])["stdout"] == str(i)


def test_an_empty_file_goes_in_and_out(ws, client):
    assert upload(client, "empty", b"").status == 200
    reply = client.call("GET", "/download/empty")
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", "0")
    assert client.call("GET", "/download/empty", headers=("Range: bytes=0-9",)).status == 200


def test_other_parts_of_the_form_are_passed_over(ws, client):
    body = b"preamble\r\n" + part("", b"x", name=b"note", disposition=b'form-data; name="note"') + form("f", b"data") + b"epilogue"
    assert client.call("POST", "/upload", body, (TYPE,)).status == 200
    assert (ws.root / "f").read_bytes() == b"data" and os.listdir(ws.root) == ["f"]


NAMES = ["100%.txt", "a%20b", "a%2Fb", "a+b", "#?&;=", "two words", " lead", "caf\u00e9", "cafe\u0301", "\U0001f600", 'q"uote', "back\\slash",
         "..\\x", "....", "...", ".hidden", "-rf", "~", "tab\there", "a'b", "new\nline", "%", "%00", "\u202egpj.exe"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_decoded_once_and_never_changed(ws, client, name):
    put(ws, name, b"mine")
    url = quote(name)
    reply = client.call("GET", f"/download/{url}")
    assert (reply.status, reply.body) == (200, b"mine")
    assert client.call("GET", f"/exists/{url}").json == {"path": name, "exists": True}
    assert list(listing(client)) == [name]
    assert client.call("GET", f"/exists/{quote(url) if quote(url) != url else url + 'x'}").json["exists"] is False
    assert client.call("DELETE", f"/files/{url}").status == 204
    assert os.listdir(ws.root) == []


@pytest.mark.parametrize("name", [n for n in NAMES if "\n" not in n])
def test_a_name_is_uploaded_as_it_is(ws, client, name):
    assert upload(client, name, b"1").status == 200
    assert os.listdir(ws.root) == [name]
    extended = b"form-data; name=file; filename=\"fallback\"; filename*=UTF-8''" + quote("x" + name).encode()
    assert client.call("POST", "/upload", form("", b"2", disposition=extended), (TYPE,)).status == 200
    assert sorted(os.listdir(ws.root)) == sorted([name, "x" + name])


@pytest.mark.parametrize("path", ["%zz", "a%", "a%2", "%%41", "%g0"])
def test_a_malformed_escape_is_400(ws, client, path):
    for method, call in (("GET", "download"), ("GET", "list"), ("GET", "exists"), ("DELETE", "files")):
        reply = client.call(method, f"/{call}/{path}")
        assert reply.status == 400 and set(reply.json) == {"detail"}


# --- what leaves the root ---


def escapes(ws):
    base = ws.dir
    return ["../outside/secret", "../../etc/passwd", "/etc/passwd", "a/../../outside/secret", "..", "../", "a/b/../../../x", "/", "//etc/passwd",
            f"{base}/ws-evil/x", f"{base}/ws-evil", f"{base}/ws/../outside/secret", "./../outside/secret", "../ws-evil/x", "f\0/../x", "\0", "/workspace-evil"]


def spellings(path):
    full = "".join(f"%{byte:02x}" for byte in path.encode())
    return {quote(path), full, path.replace("/", "%2f").replace("\0", "%00"), path.replace("..", "%2e%2e").replace("\0", "%00")}


def test_no_spelling_of_a_path_leaves_the_root(ws, client):
    (ws.root / "a").mkdir()
    (ws.root / "a/b").mkdir()
    for path in escapes(ws):
        for spelling in spellings(path):
            for method, call in (("GET", "download"), ("GET", "list"), ("GET", "exists"), ("DELETE", "files")):
                if call == "list" and path in ("/",) and spelling == "/":
                    continue
                reply = client.call(method, f"/{call}/{spelling}")
                assert reply.status == 403, (method, call, spelling, reply.status, reply.body)
        if "\0" in path or path.endswith("/"):
            continue
        reply = upload(client, path, b"evil")
        assert reply.status == 403, (path, reply.status, reply.body)
    assert sorted(os.listdir(ws.root)) == ["a"]


def test_an_absolute_path_below_the_root_is_taken(ws, client):
    assert upload(client, f"{ws.root}/d/f", b"abs").status == 200
    assert client.call("GET", f"/download/{quote(f'{ws.root}/d/f')}").body == b"abs"
    assert list(listing(client, str(ws.root))) == ["d"]


def test_no_link_leads_out_of_the_root(ws, client):
    os.symlink("/", ws.root / "abs")
    os.symlink("..", ws.root / "up")
    os.symlink("../outside/secret", ws.root / "file")
    os.symlink("/proc/self/root", ws.root / "magic")
    os.symlink(f"{ws.root}", ws.root / "home")
    for path in ("abs/etc/passwd", "up/outside/secret", "file", "magic/etc/passwd", "abs/proc/self/root/etc/passwd", "home/x"):
        assert client.call("GET", f"/download/{path}").status == 403, path
        assert client.call("GET", f"/exists/{path}").status == 403, path
    for path in ("abs", "up", "magic", "abs/etc", "up/outside"):
        assert client.call("GET", f"/list/{path}").status == 403, path
    for path in ("abs/tmp/x", "up/outside/secret", "up/new", "magic/tmp/x"):
        assert upload(client, path, b"evil").status == 403, path
    for path in ("up/outside/secret", "abs/etc/passwd"):
        assert client.call("DELETE", f"/files/{path}").status == 403, path
    for link in ("abs", "up", "file", "magic", "home"):
        assert client.call("DELETE", f"/files/{link}?recursive=true").status == 204
    assert os.listdir(ws.root) == []


def test_links_that_stay_inside_work_as_directories_only(ws, client):
    put(ws, "d/f", b"in")
    os.symlink("d", ws.root / "link")
    os.symlink("d/f", ws.root / "latest")
    assert client.call("GET", "/download/link/f").body == b"in"
    assert client.call("GET", "/download/d/../d/./f").body == b"in"
    assert client.call("GET", "/download/latest").status == 409
    assert upload(client, "latest", b"x").status == 409
    assert client.call("GET", "/exists/latest").json["exists"] is True
    assert client.call("GET", "/list/link").status == 404
    assert listing(client)["latest"]["kind"] == "symlink"
    assert client.call("DELETE", "/files/latest").status == 204
    assert (ws.root / "d/f").read_bytes() == b"in"


SWAP = """
import ctypes, os, sys, time
libc, end, n = ctypes.CDLL(None), time.monotonic() + float(sys.argv[1]), 0
os.symlink('../outside', 'link')
while time.monotonic() < end:
    for _ in range(100):
        assert libc.renameat2(-100, b'd', -100, b'link', 2) == 0  # RENAME_EXCHANGE
    n += 100
print(n)
"""


def test_a_race_of_directory_and_link_shows_nothing_foreign(ws, client):
    put(ws, "d/secret", b"ours")
    put(ws, "d/mine")
    own(ws, ws.root / "d")
    end, seen = [], set()
    racer = threading.Thread(target=lambda: end.append(ws.client().python(SWAP, "2")))
    racer.start()
    i = 0
    while racer.is_alive():
        i += 1
        reply = client.call("GET", "/download/d/secret")
        seen.add(reply.status)
        assert reply.status in (200, 403) and (reply.status != 200 or reply.body == b"ours")
        reply = client.call("GET", "/list/d")
        seen.add(reply.status)
        assert reply.status in (200, 403, 404) and (reply.status != 200 or "mine" in {e["name"] for e in reply.json})
        reply = upload(client, f"d/u{i}", b"x")
        assert reply.status in (200, 403), reply.body
        assert client.call("DELETE", f"/files/d/u{i}").status in (204, 403, 404)
    racer.join()
    assert seen >= {200, 403} and int(end[0]["stdout"]) > 1000, end


# A kernel without openat2, as a seccomp list: it fails with ENOSYS or, in older lists, with EPERM.
WITHOUT_OPENAT2 = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x00050000 | int(sys.argv[1])), (0x06, 0, 0, 0x7fff0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
class Filter(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("code", ctypes.c_void_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(len(code), ctypes.addressof(program)))) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("errnum", [38, 1])
def test_without_openat2_no_link_is_followed_at_all(start, errnum):
    runtime = start("plain", wrap=(rt.PYTHON, "-c", WITHOUT_OPENAT2, str(errnum)))
    outside = runtime.dir / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    own(runtime, outside)
    with runtime.client() as client:
        assert upload(client, "a/b/f", b"one").status == 200 and upload(client, "a/b/f", b"two").status == 200
        assert client.call("GET", "/download/a%2Fb//f").body == b"two"
        assert list(listing(client)) == ["a"] and client.call("GET", "/exists/a/b/f").json["exists"] is True
        os.symlink("/", runtime.root / "abs")
        os.symlink("../outside", runtime.root / "up")
        os.symlink("a", runtime.root / "in")
        for path in ("..", "../outside/secret", "a/../../outside/secret", "up/secret", "abs/etc/passwd", "in/b/f", "a/../a/b/f", "%2fetc%2fpasswd"):
            for method, call in (("GET", "download"), ("GET", "list"), ("DELETE", "files")):
                assert client.call(method, f"/{call}/{path}").status in (403, 404, 409), (call, path)
            assert client.call("GET", f"/exists/{path}").json.get("exists") is not True
            assert upload(client, path.replace("%2f", "/"), b"x").status in (403, 409, 422), path
        racer = threading.Thread(target=lambda: runtime.client().python(SWAP.replace("'link'", "'link2'").replace("b'd'", "b'a'").replace("b'link'", "b'link2'"), "1"))
        racer.start()
        while racer.is_alive():
            reply = client.call("GET", "/download/a/secret")
            assert reply.status in (403, 404, 409)
            upload(client, "a/new", b"x")
            client.call("DELETE", "/files/a/secret")
        racer.join()
        assert client.call("DELETE", "/files/a?recursive=true").status == 204
    assert os.listdir(outside) == ["secret"] and (outside / "secret").read_text() == "secret"


# --- what is no regular file ---


def test_what_is_no_file_is_refused_at_once(ws, client):
    os.mkfifo(ws.root / "fifo")
    own(ws, ws.root / "fifo")
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(ws.root / "sock"))
    own(ws, ws.root / "sock")
    os.symlink("/dev/zero", ws.root / "zero")
    (ws.root / "dir").mkdir()
    own(ws, ws.root / "dir")
    wanted = {"fifo": (409, 409), "sock": (409, 409), "zero": (403, 409), "dir": (404, 409)}
    for name, (down, up) in wanted.items():
        before = time.monotonic()
        assert client.call("GET", f"/download/{name}").status == down, name
        assert upload(client, name, b"x").status == up, name
        assert time.monotonic() - before < 1  # a busy machine; one that blocks never comes back
        assert client.call("GET", "/").status == 200
    kinds = {name: (entry["type"], entry.get("kind")) for name, entry in listing(client).items()}
    assert kinds == {"fifo": ("file", "fifo"), "sock": ("file", "socket"), "zero": ("file", "symlink"), "dir": ("directory", None)}
    assert client.call("DELETE", "/files/dir").status == 409
    for name in wanted:
        assert client.call("DELETE", f"/files/{name}?recursive=true").status == 204
    sock.close()


def test_a_file_in_the_way_of_a_directory(ws, client):
    put(ws, "f", b"x")
    assert upload(client, "f/g", b"y").status == 409
    assert client.call("GET", "/download/f/g").status == 404
    assert client.call("GET", "/exists/f/g").json["exists"] is False
    assert client.call("GET", "/list/f").json == {"detail": "Path is not a directory"}
    assert client.call("DELETE", "/files/f/g").status == 404


@pytest.mark.parametrize("path", ["n" * 256, "d/" * 2100 + "x", "x" * 4000])
def test_too_long_a_path_is_no_file(ws, client, path):
    assert client.call("GET", f"/download/{path}").status == 404
    assert client.call("GET", f"/exists/{path}").status in (200, 404)
    assert upload(client, path, b"x").status == 422


# --- wrong shapes ---

SHAPES = {
    "no form at all": (b'{"a":1}', "Content-Type: application/json", 422),
    "no type": (b"x", "X-None: 1", 422),
    "no boundary": (form("f", b"x"), "Content-Type: multipart/form-data", 422),
    "an empty boundary": (form("f", b"x"), 'Content-Type: multipart/form-data; boundary=""', 422),
    "another form": (form("f", b"x"), f"Content-Type: multipart/mixed; boundary={BOUNDARY.decode()}", 422),
    "nothing": (b"", TYPE, 400),
    "no part": (end(), TYPE, 422),
    "another field": (form("f", b"x", name=b"upload"), TYPE, 422),
    "no filename": (form("", b"x", disposition=b'form-data; name="file"'), TYPE, 422),
    "an empty filename": (form("", b"x"), TYPE, 422),
    "a directory's name": (form("d/", b"x"), TYPE, 422),
    "two files": (part("f", b"x") + form("g", b"y"), TYPE, 422),
    "NUL in the name": (form("a\0b", b"x"), TYPE, 422),
    "NUL in the extended name": (form("", b"x", disposition=b"form-data; name=file; filename*=UTF-8''a%00b"), TYPE, 422),
    "no end": (part("f", b"x"), TYPE, 400),
    "half an end": (part("f", b"x") + b"--" + BOUNDARY + b"-", TYPE, 400),
    "a boundary that goes on": (part("f", b"x") + b"--" + BOUNDARY + b"zz\r\n", TYPE, 400),
    "no disposition": (b"--" + BOUNDARY + b"\r\nX: y\r\n\r\nx\r\n" + end(), TYPE, 400),
    "two dispositions": (form("f", b"x", disposition=b'form-data; name="file"; filename="f"\r\nContent-Disposition: form-data; name="file"'), TYPE, 400),
    "two filenames": (form("", b"x", disposition=b'form-data; name="file"; filename="f"; filename="g"'), TYPE, 400),
    "a quote that never ends": (form("", b"x", disposition=b'form-data; name="file"; filename="f'), TYPE, 400),
    "another charset": (form("", b"x", disposition=b"form-data; name=file; filename*=latin1''f"), TYPE, 400),
    "a huge part head": (form("", b"x", disposition=b'form-data; name="file"; filename="f"; z="' + b"z" * 20000 + b'"'), TYPE, 400),
}


@pytest.mark.parametrize("body, header, status", SHAPES.values(), ids=SHAPES.keys())
def test_a_form_of_the_wrong_shape_changes_nothing(ws, client, body, header, status):
    reply = client.call("POST", "/upload", body, (header,))
    assert reply.status == status, reply.body
    assert (status == 422) == isinstance(reply.json["detail"], list)
    assert os.listdir(ws.root) == []
    assert client.call("GET", "/").status == 200  # the connection goes on


def test_other_methods_are_405(client):
    for path, allowed in (("/upload", "POST"), ("/download/x", "GET"), ("/list", "GET"), ("/list/", "GET"), ("/exists/x", "GET"), ("/files/x", "DELETE")):
        for method in ("GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"):
            if method == allowed:
                continue
            reply = client.call(method, path)
            assert (reply.status, reply.headers["allow"]) == (405, allowed), (method, path)
    for path in ("/download", "/exists", "/files", "//list", "/lists/", "/upload/"):
        assert client.call("GET", path).status == 404, path


# --- uploads that do not end ---


def test_an_upload_that_breaks_off_leaves_the_old_file(ws, client):
    put(ws, "f", b"old")
    body = part("f", b"n" * 100000)
    head = f"POST /upload HTTP/1.1\r\nHost: x\r\n{TYPE}\r\n".encode()
    chunk = b"%x\r\n%s\r\n" % (len(body), body)
    broken = [head + b"Content-Length: 1073741824\r\n\r\n" + body,
              head + b"Content-Length: %d\r\n\r\n" % (len(body) + len(end()) + 1) + body + end(),
              head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk,
              head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"%x\r\n%s\r\n" % (len(end()), end())]
    for data in broken:
        sock = raw(ws, data)
        wait_until(lambda: len(os.listdir(ws.root)) == 2, what="the upload is under way")
        assert (ws.root / "f").read_bytes() == b"old"
        sock.close()
        wait_until(lambda: os.listdir(ws.root) == ["f"], what="nothing of the upload is left")
        assert client.call("GET", "/download/f").body == b"old"


@pytest.mark.parametrize("bad", [b"-1", b"+5", b"0x5", b"5;ext", b"00000000000000005", b"5 "])
def test_bad_chunk_sizes_are_400_and_change_nothing(ws, client, bad):
    put(ws, "f", b"old")
    head = f"POST /upload HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    answer = read_all(raw(ws, head + bad + b"\r\nhello\r\n0\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 400 ") and b"onnection: close" in answer
    assert os.listdir(ws.root) == ["f"] and (ws.root / "f").read_bytes() == b"old"


def test_a_body_may_be_cut_anywhere(ws, client):
    body = form("f", b"ab\r\n--\r\ncd")
    head = f"POST /upload HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    sock = raw(ws, b"")
    file = sock.makefile("rb")

    def send(*pieces):
        for piece in pieces:
            sock.sendall(piece)
        status = file.readline()
        while line := file.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        assert file.read(length) and b" 200 " in status, status
        assert (ws.root / "f").read_bytes() == b"ab\r\n--\r\ncd"
        (ws.root / "f").unlink()

    for cut in range(1, len(body)):
        send(head + b"%x\r\n%s\r\n" % (cut, body[:cut]), b"%x\r\n%s\r\n0\r\n\r\n" % (len(body) - cut, body[cut:]))
    whole = head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    for cut in range(1, len(whole)):
        send(whole[:cut], whole[cut:])
    send(*(whole[i:i + 1] for i in range(len(whole))))
    file.close()
    sock.close()


def test_a_half_closed_client_gets_its_answer(ws):
    body = form("f", b"half")
    head = f"POST /upload HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    assert read_all(raw(ws, head + body, half_close=True)).startswith(b"HTTP/1.1 200 ")
    assert (ws.root / "f").read_bytes() == b"half"


def test_continue_is_said_once(ws):
    body = form("f", b"data")
    head = f"POST /upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n{TYPE}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    sock = raw(ws, head)
    assert sock.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    for i in range(0, len(body), 7):
        sock.sendall(body[i:i + 7])
    answer = read_all(sock)
    assert answer.startswith(b"HTTP/1.1 200 ") and b"100 Continue" not in answer


def test_too_large_an_upload_is_413_and_its_body_is_no_request(start):
    runtime = start("plain", args=["--max-upload", "1000"])
    follow = b"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: 32\r\n\r\n{\"command\":[\"touch\",\"executed\"]}"
    head = f"POST /upload HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n{TYPE}\r\nContent-Length: 1001\r\n\r\n".encode()
    answer = read_all(raw(runtime, head + follow))
    assert answer.startswith(b"HTTP/1.1 413 ") and answer.count(b"HTTP/1.1") == 1
    chunked = f"POST /upload HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    body = part("f", b"x" * 2000)
    answer = read_all(raw(runtime, chunked + b"%x\r\n%s\r\n" % (len(body), body)))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert os.listdir(runtime.root) == []


@root_only
def test_a_full_disk_is_507_and_the_old_file_stays(start):
    runtime = start("plain")
    small = runtime.root / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=256k,uid={rt.UID},mode=0755", "tmpfs", small], check=True)
    try:
        with runtime.client() as client:
            assert upload(client, "small/f", b"old").status == 200
            reply = upload(client, "small/f", b"n" * 500000)
            assert reply.status == 507 and "space" in reply.json["detail"], reply.body
            assert os.listdir(small) == ["f"] and (small / "f").read_bytes() == b"old"
            big = part("small/f", b"n" * 3000000)
            answer = read_all(raw(runtime, f"POST /upload HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nContent-Length: {len(big)}\r\n\r\n".encode() + big[:1000000]))
            assert answer.startswith(b"HTTP/1.1 507 ")
            assert os.listdir(small) == ["f"]
            assert upload(client, "small/f", b"new").status == 200
    finally:
        subprocess.run(["umount", small], check=True)


def test_an_upload_over_the_limit_of_a_file_is_507(start):
    runtime = start("plain", preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)))
    with runtime.client() as client:
        assert upload(client, "f", b"old").status == 200
        reply = upload(client, "f", b"n" * 65537)
        assert reply.status == 507 and "too large" in reply.json["detail"].lower(), reply.body
        assert os.listdir(runtime.root) == ["f"] and client.call("GET", "/download/f").body == b"old"
        assert upload(client, "f", b"n" * 65536).status == 200
        assert client.python("open('g', 'wb').write(bytes(70000))")["exit_code"] == 1, "Python sees an error: it ignores the signal itself"
        assert client.execute(["dd", "if=/dev/zero", "of=g", "bs=100000", "count=1"])["signal"] == 25, "a command has its default action"
