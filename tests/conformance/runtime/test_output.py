"""Floods, caps and the streamed form."""
import base64
import json
import socket
import time

import pytest
import rt

MIB = 1 << 20
MIXED = """
import os, sys
piece = int(sys.argv[1]); left = int(sys.argv[2])
block = b'0123456789abcde\\n' * (piece // 16 + 2)
n = at = 0
while left > 0:
    n += 1
    os.write(1 + n % int(sys.argv[3]), block[at : at + min(piece, left)])
    left -= piece
    at = (at + piece) % 16
sys.exit(3)
"""


@pytest.fixture(scope="module")
def fresh():
    with rt.Runtime("pid1") as it:
        yield it


def test_a_flood_is_drained_in_bounded_memory_and_keeps_its_exit_code(fresh):
    with fresh.client() as client:
        client.execute(["true"])
        before = fresh.memory()
        client.send("POST", "/execute", {"command": [rt.PYTHON, "-c", MIXED, "65536", str(256 * MIB), "2"]})
        most = before
        client.sock.setblocking(False)
        while True:
            most = max(most, fresh.memory())
            try:
                if client.sock.recv(1, socket.MSG_PEEK):
                    break
            except BlockingIOError:
                time.sleep(0.02)
        client.sock.settimeout(60)
        end = client.read().json
        most = max(most, fresh.memory())
    assert end["exit_code"] == 3 and end["truncated"]
    assert end["stdout_bytes"] == end["stderr_bytes"] == 128 * MIB
    assert len(end["stdout"].encode()) <= MIB + 64 and len(end["stderr"].encode()) <= MIB + 64
    assert rt.SANITIZED or most - before < 4 * MIB // 1024, f"{most - before} KiB more"
    assert end["duration_ms"] < 20000


def test_memory_is_given_back_after_a_flood(fresh):
    with fresh.client() as client:
        client.python(MIXED, "65536", str(8 * MIB), "2")
        fresh.assert_memory(2048)


def test_only_stderr_flooding_loses_no_stdout(fresh):
    with fresh.client() as client:
        end = client.python("import os;os.write(1,b'here\\n');[os.write(2,b'e'*65536) for _ in range(200)]")
    assert end["stdout"] == "here\n" and end["exit_code"] == 0
    assert end["stderr_bytes"] == 200 * 65536


def test_size_of_the_writes_does_not_change_what_is_kept(fresh):
    with fresh.client() as client:
        ends = [client.python(MIXED, piece, "300000", "1", max_output_bytes=65536) for piece in ["1", "65536"]]
    for end in ends:
        del end["duration_ms"]
    assert ends[0] == ends[1]
    assert ends[0]["truncated"] and "bytes left out" in ends[0]["stderr"] + ends[0]["stdout"]


def test_head_and_tail_are_kept_and_the_gap_is_told(fresh):
    with fresh.client() as client:
        end = client.execute(["seq", "1", "200000"], max_output_bytes=1000, base64=True)
    assert end["stdout"].startswith("1\n2\n3\n") and end["stdout"].endswith("\n199999\n200000\n")
    kept = base64.b64decode(end["stdout_base64"])
    gap = end["stdout_gap"]
    whole = "".join(f"{i}\n" for i in range(1, 200001)).encode()
    assert whole[: gap["at"]] == kept[: gap["at"]]
    assert whole[gap["at"] + gap["bytes"] :] == kept[gap["at"] :]
    assert end["stdout_bytes"] == len(whole) == len(kept) + gap["bytes"]


def test_cuts_fall_between_characters(fresh):
    with fresh.client() as client:
        for shift in range(4):
            end = client.python(f"print('x'*{shift} + '😀'*5000, end='')", max_output_bytes=1000)
            assert end["truncated"] and "\ufffd" not in end["stdout"]


def test_exactly_the_cap_is_not_truncated(fresh):
    with fresh.client() as client:
        end = client.execute(["head", "-c", "4096", "/dev/zero"], max_output_bytes=4096)
        assert not end["truncated"] and end["stdout"] == "\0" * 4096
        assert client.execute(["head", "-c", "4097", "/dev/zero"], max_output_bytes=4096)["truncated"]


def test_a_large_text_answer_is_whole(fresh):
    with fresh.client() as client:
        end = client.python("print('☹'*300000, end='')")
    assert end["stdout"] == "☹" * 300000 and not end["truncated"]


def frames_of(client, command, **fields):
    out, exit_line = {"stdout": b"", "stderr": b""}, None
    gaps = {}
    for frame in client.stream(command, **fields):
        assert exit_line is None, "a frame after the exit frame"
        (key,) = set(frame) - {"bytes"}
        if key == "exit":
            exit_line = frame["exit"]
        elif key == "gap":
            gaps[frame["gap"]] = (len(out[frame["gap"]]), frame["bytes"])
        else:
            out[key] += base64.b64decode(frame[key], validate=True)
    return out, gaps, exit_line


def test_frames_come_while_the_command_runs(fresh):
    with fresh.client() as client:
        frames = client.stream(["sh", "-c", "echo one; read x; echo two >&2; exit 5"], stdin="go\n")
        got = list(frames)
        assert [set(f) for f in got] == [{"stdout"}, {"stderr"}, {"exit"}]
        frames = client.stream([rt.PYTHON, "-c", "import os,time;os.write(1,b'first\\n');time.sleep(1);print('second')"])
        begin = time.monotonic()
        assert base64.b64decode(next(frames)["stdout"]) == b"first\n"
        assert time.monotonic() - begin < 0.8
        assert list(frames)[-1]["exit"]["exit_code"] == 0


def test_exit_line_has_all_its_members_and_is_last(fresh):
    with fresh.client() as client:
        out, gaps, end = frames_of(client, ["sh", "-c", "printf 'a\\377b'; kill -9 $$"])
        assert out["stdout"] == b"a\xffb" and not gaps
        assert end["exit_code"] == 137 and end["signal"] == 9 and end["stdout_bytes"] == 3
        _, _, end = frames_of(client, ["nope"])
        assert end["exit_code"] == 127 and "No such file" in end["detail"]
        _, _, end = frames_of(client, ["sleep", "9"], timeout_seconds=0.2)
        assert end["exit_code"] == 124 and end["timed_out"]


def test_streamed_gap_stands_between_head_and_tail(fresh):
    whole = "".join(f"{i}\n" for i in range(1, 200001)).encode()
    with fresh.client() as client:
        out, gaps, end = frames_of(client, ["seq", "1", "200000"], max_output_bytes=10000)
    at, missing = gaps["stdout"]
    assert out["stdout"] == whole[:at] + whole[at + missing :]
    assert end["truncated"] and end["stdout_bytes"] == len(whole)


def test_a_request_that_is_refused_has_no_frames(fresh):
    with fresh.client() as client:
        reply = client.call("POST", "/execute?stream=1", {"command": []})
        assert reply.status == 422


def test_a_slow_reader_neither_stops_the_command_nor_costs_memory(fresh):
    with fresh.client() as client:
        client.execute(["true"])
        before = fresh.memory()
        done = fresh.root / "flood-done"
        code = f"import os;[os.write(1,b'y'*65536) for _ in range(2000)];open({str(done)!r},'w').close()"
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send("POST", "/execute?stream=1", {"command": [rt.PYTHON, "-c", code]})
        rt.wait_until(done.exists, 20, "the command ends though nobody reads")
        fresh.assert_memory(4096, before=before)
        status, _ = client.read_head()
        body = b""
        while data := client.read_chunk():
            body += data
    last = json.loads(body.splitlines()[-1])
    assert last["exit"]["exit_code"] == 0 and last["exit"]["stdout_bytes"] == 2000 * 65536
