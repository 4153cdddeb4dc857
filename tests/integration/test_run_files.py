"""Files into a run and out of it, through the API and the command line."""
import base64
import json
import os

from harness.api import PLATFORM
from harness.wait import until

LIMIT = 256 * 1024
LOOK = """
import hashlib, json, os, sys
found = {}
for top, _, names in os.walk('.'):
    for name in names:
        path = os.path.join(top, name)
        data = open(path, 'rb').read()
        found[os.path.relpath(path)] = [hashlib.sha256(data).hexdigest()[:16], len(data), oct(os.stat(path).st_mode & 0o777)]
print(json.dumps(found))
"""


def b64(data):
    return base64.b64encode(data).decode()


def collected(result):
    return {one["path"]: base64.b64decode(one["content_base64"]) if "content_base64" in one else one["error"] for one in result["files"]}


def actions(up, run):
    return [row["action"].split(".", 1)[1] for row in up.api.audit(f"?run={run}&order=oldest")]


def test_files_are_there_before_the_command_starts(up):
    import hashlib
    binary = bytes(range(256)) * 100
    names = {"plain.txt": b"hello\n", "deep/er/and deeper": binary, "caf\u00e9 \U0001f600 100% a%20b": b"", "q\"uo'te;x=\\": b"\r\n--\r\n"}
    result = up.api.run("helper", ["python3", "-c", LOOK], files=[{"path": path, "content_base64": b64(data)} for path, data in names.items()])
    assert result["reason"] == "exited" and result["exit_code"] == 0, result
    assert json.loads(result["stdout_tail"]) == {path: [hashlib.sha256(data).hexdigest()[:16], len(data), "0o644"] for path, data in names.items()}
    assert "files" not in result, "nothing was asked for"


def test_an_executable_file_is_one(up):
    script = "#!/bin/sh\necho ran \"$1\"\n"
    result = up.api.run("helper", ["./bin/tool", "it"], files=[{"path": "bin/tool", "content": script, "executable": True}])
    assert result["stdout_tail"] == "ran it\n", result
    result = up.api.run("helper", ["./tool"], files=[{"path": "tool", "content": script}])
    assert result["exit_code"] == 126


def test_files_and_stdin_together_fill_a_request(up):
    big = os.urandom(500_000)
    result = up.api.run("helper", ["sh", "-c", "cat - >> in; cp in out; wc -c < out"], files=[{"path": "in", "content_base64": b64(big)}], stdin="tail")
    assert result["stdout_tail"].strip() == str(len(big) + 4), result


def test_what_was_asked_for_comes_back(up):
    made = "import os; os.makedirs('out'); open('out/data.bin', 'wb').write(bytes(range(256))); open('empty', 'w'); open('left', 'w').write('no'); print('done')"
    result = up.api.run("helper", ["python3", "-c", made], collect=["out/data.bin", "empty", "out", "missing"])
    assert result["exit_code"] == 0 and result["stdout_tail"] == "done\n"
    assert [one["path"] for one in result["files"]] == ["out/data.bin", "empty", "out", "missing"]
    got = collected(result)
    assert got["out/data.bin"] == bytes(range(256)) and got["empty"] == b""
    assert "directory" in got["out"] and "No such file" in got["missing"]
    assert [one.get("size") for one in result["files"]] == [256, 0, None, None]
    again = up.api.ok("GET", f"/v1/runs/{result['run_id']}")
    assert again.get("result", again)["files"] == result["files"]


def test_odd_names_go_in_and_come_back_as_they_are(up):
    names = ["100%.txt", "a%20b", "a%2Fb", "%2e%2e", "a+b", "#?&", " x ", "\u00e9", "e\u0301", "\U0001f600", "x\ny", "...", "-rf"]
    result = up.api.run("helper", ["true"], files=[{"path": name, "content": name} for name in names], collect=names)
    assert collected(result) == {name: name.encode() for name in names}, result


def test_files_come_back_however_the_command_ended(up):
    for command, more, reason in ((["sh", "-c", "echo x > f; exit 3"], {}, "exited"), (["sh", "-c", "echo x > f; kill -9 $$"], {}, "signaled"),
                                  (["sh", "-c", "echo x > f; sleep 60"], {"timeout_seconds": 0.5}, "timeout")):
        result = up.api.run("helper", command, collect=["f"], **more)
        assert result["reason"] == reason and collected(result) == {"f": b"x\n"}, result


def test_collected_files_are_bounded_together(up):
    sizes = {"a": LIMIT - 1000, "b": 2000, "c": 1000, "d": 1, "e": 0, "huge": 20_000_000}
    code = "import json,sys\nfor name, n in json.loads(sys.argv[1]).items(): open(name, 'wb').write(b'x' * n)"
    result = up.api.run("helper", ["python3", "-c", code, json.dumps(sizes)], collect=list(sizes))
    assert result["reason"] == "exited" and result["exit_code"] == 0
    got = collected(result)
    assert [len(got[name]) if isinstance(got[name], bytes) else None for name in sizes] == [LIMIT - 1000, None, 1000, None, 0, None]
    assert "too large" in got["b"] and "1000 bytes are left" in got["b"]
    assert [one["size"] for one in result["files"]] == list(sizes.values())


def test_much_output_beside_many_files_still_fits(up):
    code = "import os,sys\nopen('f','wb').write(os.urandom(262144))\nfor out in (sys.stdout, sys.stderr):\n    out.write('y' * 1000000 + 'the end')"
    result = up.api.run("helper", ["python3", "-c", code], collect=["f"])
    assert result["reason"] == "exited" and len(collected(result)["f"]) == LIMIT
    assert result["truncated"] and result["stdout_bytes"] == 1000007
    assert result["stdout_tail"].endswith("the end") and result["stderr_tail"].endswith("the end")


def test_what_a_command_leaves_in_place_of_a_file_is_listed_with_its_error(up):
    code = "import os\nos.mkfifo('fifo'); os.symlink('/etc/passwd', 'link'); os.symlink('/', 'abs'); open('locked', 'w').write('x'); os.chmod('locked', 0)"
    result = up.api.run("helper", ["python3", "-c", code], collect=["fifo", "link", "abs/etc/passwd", "locked"])
    assert result["exit_code"] == 0, result
    got = collected(result)
    assert "regular" in got["fifo"] and "leaves the root" in got["link"] and "leaves the root" in got["abs/etc/passwd"] and "denied" in got["locked"]


def test_a_file_that_has_no_place_ends_the_run_as_refused(up):
    files = [{"path": "a", "content": "x"}, {"path": "a/b", "content": "y"}]
    result = up.api.run("helper", ["echo", "ran"], files=files, collect=["a"])
    assert result["reason"] == "refused" and result["exit_code"] is None and "a/b" in result["detail"], result
    assert not result.get("stdout_tail")
    until(lambda: actions(up, result["run_id"]), 10, lambda: "audit rows")
    assert "refusal" in actions(up, result["run_id"]) and "launch" not in actions(up, result["run_id"])


def test_a_file_that_finds_no_room_ends_the_run_as_refused(up):
    up.api.configure({"helper": {"allow": []}, "tight": {"allow": [], "limits": {"file_bytes": 4096}}})
    result = up.api.run("tight", ["cat", "f"], files=[{"path": "f", "content": "x" * 4096}])
    assert result["reason"] == "exited" and len(result["stdout_tail"]) == 4096, result
    result = up.api.run("tight", ["cat", "f"], files=[{"path": "dir/f", "content": "x" * 4097}])
    assert result["reason"] == "refused" and result["detail"].startswith("file dir/f: File too large"), result


def test_paths_are_checked_at_submit(up):
    for path in ("/etc/passwd", "../x", "a/../../x", "", "a//b", ".", "a/", "n" * 256, "a\0b"):
        up.api.post(f"{PLATFORM}/run", {"agent": "helper", "command": ["true"], "files": [{"path": path, "content": ""}]}).problem(422)
        up.api.post(f"{PLATFORM}/run", {"agent": "helper", "command": ["true"], "collect": [path]}).problem(422)
    two = [{"path": "a", "content": ""}] * 2
    assert up.api.post(f"{PLATFORM}/run", {"agent": "helper", "command": ["true"], "files": two}).problem(422)["pointer"] == "/files/1/path"


def test_a_run_that_is_cancelled_says_what_was_not_collected(up):
    run = up.api.submit("helper", ["sh", "-c", "echo x > f; sleep 60"], collect=["f"])
    until(lambda: up.api.get(f"/v1/runs/{run}").json["state"] == "running", 20, lambda: "it runs")
    up.api.ok("POST", f"/v1/runs/{run}/cancel", {})
    result = until(lambda: (lambda one: one if one["state"] == "finished" else None)(up.api.get(f"/v1/runs/{run}").json), 20, lambda: "it ends")
    result = result.get("result", result)
    assert result["reason"] == "cancelled" and "not collected" in collected(result)["f"]


def test_contents_and_paths_are_nowhere_in_the_clear(up):
    marker = f"mark-{os.urandom(8).hex()}"
    result = up.api.run("helper", ["sh", "-c", f"cat {marker}.in > out"], files=[{"path": f"{marker}.in", "content": f"in {marker}"}], collect=["out"])
    assert collected(result)["out"] == f"in {marker}".encode()
    for folder, _, names in os.walk(up.state_dir):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read()
            assert marker.encode() not in data and base64.b64encode(marker.encode())[:-4] not in data, os.path.join(folder, name)


def test_a_warm_sandbox_takes_files_too(up):
    up.api.ok("PUT", "/v1/pools/files", {"agent": "helper", "target": 2})
    try:
        until(lambda: up.api.ok("GET", "/v1/pools/files")["warm"] > 0, 30, "a warm sandbox")
        result = up.api.run("helper", ["sh", "-c", "cat a b > c"], files=[{"path": "a", "content": "1"}, {"path": "b", "content": "2"}], collect=["c"])
        assert result["warm"] and collected(result)["c"] == b"12", result
    finally:
        up.api.ok("PUT", "/v1/pools/files", {"agent": "helper", "target": 0})
        until(lambda: up.api.ok("GET", "/v1/pools/files")["warm"] == 0, 20, "no warm sandbox")


# --- the command line ---


def test_the_command_line_sends_and_fetches_files(up, tmp_path):
    (tmp_path / "data.txt").write_bytes(b"input\n")
    tool = tmp_path / "tool:x"
    tool.write_text("#!/bin/sh\nmkdir -p out/deep; tr a-z A-Z < in/data.txt > out/deep/up.txt; : > empty; echo \"$A $B\"\n")
    tool.chmod(0o755)
    there = tmp_path / "results"
    done = up.cli("run", "--file", f"{tmp_path}/data.txt:in/data.txt", "--file", f"{tool}:bin/tool", "--env", "A=1", "--env", "B=two",
                  "--collect", "out/deep/up.txt", "--collect=empty", "--out", there, "helper", "--", "./bin/tool", check=0)
    assert done.stdout == "1 two\n" and done.stderr == ""
    assert (there / "out/deep/up.txt").read_bytes() == b"INPUT\n" and (there / "empty").read_bytes() == b""


def test_a_local_name_alone_is_the_name_inside(up, tmp_path):
    (tmp_path / "n.txt").write_text("n")
    assert up.cli("run", "--file", tmp_path / "n.txt", "helper", "--", "cat", "n.txt", check=0).stdout == "n"


def test_a_file_that_is_not_collected_is_said_and_changes_exit_status_0_only(up, tmp_path):
    done = up.cli("run", "--collect", "missing", "--collect", "there", "--out", tmp_path, "helper", "--", "sh", "-c", "echo x > there", check=125)
    assert done.stderr.splitlines() == ["stockade run: missing: No such file or directory"]
    assert (tmp_path / "there").read_text() == "x\n" and not (tmp_path / "missing").exists()
    up.cli("run", "--collect", "missing", "--out", tmp_path, "helper", "--", "sh", "-c", "exit 7", check=7)


def test_json_output_holds_the_files(up):
    done = up.cli("run", "--json", "--collect", "f", "helper", "--", "sh", "-c", "echo x > f", check=0)
    assert collected(json.loads(done.stdout)) == {"f": b"x\n"}
    assert not os.path.exists("f")


def test_wrong_file_options_are_one_line(up, tmp_path):
    for options, word in ((["--file", f"{tmp_path}/none"], "none"), (["--file", "x:"], "LOCAL:PATH"), (["--file", ":x"], "LOCAL:PATH"), (["--file", tmp_path], "can't be sent")):
        done = up.cli("run", *options, "helper", "--", "true", check=2)
        assert word in done.stderr and done.stderr.count("\n") == 1
    (tmp_path / "f").write_text("x")
    done = up.cli("run", "--file", f"{tmp_path}/f:../f", "helper", "--", "true", check=125)
    assert "/files/0/path" in done.stderr
