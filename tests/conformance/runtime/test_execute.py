"""What a command gets and what its answer says. Each test runs below the test and as PID 1 of a pid namespace."""
import base64
import json
import random

import pytest
from rt import PYTHON, Client


def test_bytes_that_are_not_utf8_become_replacement_characters(client):
    end = client.python("import sys;sys.stdout.buffer.write(b'a\\xff\\xc3(b');sys.exit(7)")
    assert end["exit_code"] == 7
    assert end["stdout"] == "a\ufffd\ufffd(b"


def test_bytes_themselves_are_had_as_base64(client):
    end = client.python("import sys;sys.stdout.buffer.write(bytes(range(256)));sys.stderr.buffer.write(b'\\xff')", base64=True)
    assert base64.b64decode(end["stdout_base64"]) == bytes(range(256))
    assert base64.b64decode(end["stderr_base64"]) == b"\xff"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_nul_bytes_keep_their_place(client, stream):
    end = client.python(f"import sys;sys.{stream}.buffer.write(b'a\\0b\\0')")
    assert end[stream] == "a\0b\0"


def test_last_line_blank_lines_and_carriage_returns_are_exact(client):
    rng = random.Random(4)
    for _ in range(60):
        text = "".join(rng.choices("a\n\r ", k=rng.randrange(0, 40)))
        assert client.execute(["printf", "%s", text])["stdout"] == text
    assert client.execute(["printf", "a\\n\\nb\\n\\n\\nc"])["stdout"] == "a\n\nb\n\n\nc"


def test_stdin_is_empty_unless_given(client):
    end = client.execute(["cat"])
    assert end["exit_code"] == 0 and end["duration_ms"] < 500
    end = client.python("input()")
    assert end["exit_code"] == 1 and "EOFError" in end["stderr"]
    assert client.execute(["readlink", "/proc/self/fd/0"])["stdout"] == "/dev/null\n"


def test_stdin_of_the_runtime_is_not_the_commands(start):
    import os

    r, w = os.pipe()
    try:
        with start(stdin=r).client() as client:
            assert client.execute(["cat"], timeout_seconds=5)["exit_code"] == 0
    finally:
        os.close(r)
        os.close(w)


@pytest.mark.parametrize("size", [0, 1, 65536, 1 << 20])
def test_stdin_is_fed_to_its_end(client, size):
    data = random.Random(size).randbytes(size)
    end = client.execute(["sha256sum"], stdin_base64=base64.b64encode(data).decode())
    import hashlib

    assert end["stdout"].split()[0] == hashlib.sha256(data).hexdigest()


def test_stdin_nobody_reads_does_no_harm(client):
    end = client.execute(["true"], stdin="x" * 900_000)
    assert end["exit_code"] == 0
    assert client.execute(["cat"], stdin="a\0é")["stdout"] == "a\0é"


@pytest.mark.parametrize("timeout", [0, -1, -0.0, 1e-9, 1e18, 9223372036854775808, "5", True, [], {}, -3600, 1e300])
def test_timeout_out_of_range_is_refused_with_the_range(client, runtime, timeout):
    reply = client.call("POST", "/execute", {"command": ["touch", str(runtime.root / "started")], "timeout_seconds": timeout})
    assert reply.status == 422
    detail = reply.json["detail"][0]
    assert detail["loc"] == ["body", "timeout_seconds"]
    assert "0.001 to 86400" in detail["msg"]
    assert not (runtime.root / "started").exists()


def test_timeout_nan_is_not_json(client):
    assert client.call("POST", "/execute", b'{"command":["true"],"timeout_seconds":NaN}').status == 422


def test_timeout_null_and_fractions_are_honoured(client):
    assert client.execute(["true"], timeout_seconds=None)["exit_code"] == 0
    end = client.execute(["sleep", "30"], timeout_seconds=0.25)
    assert (end["exit_code"], end["timed_out"]) == (124, True)
    assert 250 <= end["duration_ms"] <= 450
    assert client.execute(["sleep", "0.1"], timeout_seconds=1.5)["timed_out"] is False


def test_what_was_written_before_the_timeout_is_returned(client):
    end = client.python("import time;print('x');time.sleep(99)", timeout_seconds=0.7)
    assert (end["stdout"], end["exit_code"], end["timed_out"]) == ("x\n", 124, True)


def test_a_programs_own_124_is_not_a_timeout(client):
    end = client.execute(["sh", "-c", "exit 124"])
    assert (end["exit_code"], end["timed_out"], end["signal"]) == (124, False, 0)


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "PIPE"])
def test_a_signal_is_128_and_its_number(client, name):
    import signal

    number = getattr(signal, "SIG" + name)
    end = client.execute(["sh", "-c", f"kill -{name} $$"])
    assert (end["exit_code"], end["signal"], end["timed_out"]) == (128 + number, number, False)


def test_cwd_is_the_root_or_below_it(client, runtime):
    assert client.execute(["pwd"])["stdout"].strip() == str(runtime.root)
    client.execute(["mkdir", "-p", "with space/é"])
    assert client.execute(["pwd"], cwd="with space/é")["stdout"].strip() == str(runtime.root / "with space/é")
    assert client.execute(["pwd"], cwd="/usr")["stdout"] == "/usr\n"
    assert client.execute(["pwd"], cwd="")["stdout"].strip() == str(runtime.root)


def test_bad_cwd_is_refused_by_name_and_nothing_starts(client, runtime):
    client.execute(["sh", "-c", "touch file; mkdir -p closed; chmod 0 closed; ln -sfn / out"])
    started = runtime.root / "cwd-started"
    for cwd in ["nope", str(runtime.root / "nope"), "file", "closed", "..", "../..", "closed/../..", "out/usr", 5, "a\0b"]:
        reply = client.call("POST", "/execute", {"command": ["touch", str(started)], "cwd": cwd})
        assert reply.status == 422, cwd
        assert reply.json["detail"][0]["loc"] == ["body", "cwd"]
        assert "cwd" in reply.json["detail"][0]["msg"] or "path" in reply.json["detail"][0]["msg"]
    assert not started.exists()


@pytest.mark.parametrize("args", [["", " ", "a\nb"], ["'\"\\$("], ["😀é"], ["x" * 100_000], ["$HOME", ";", "|", "*", "`id`"]])
def test_argv_is_passed_byte_for_byte(client, args):
    end = client.python("import sys,json;print(json.dumps(sys.argv[1:]))", *args)
    assert json.loads(end["stdout"]) == args


@pytest.mark.parametrize(
    "text,args",
    [
        ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
        ("$HOME ; | * # x", ["$HOME", ";", "|", "*", "#", "x"]),
        ('"" a', ["", "a"]),
        ("a\\\nb", ["a\nb"]),
        ("a\nb\tc", ["a", "b", "c"]),
        ('"a\\"b" \'c\\d\'', ['a"b', "c\\d"]),
    ],
)
def test_a_string_is_split_as_posix_shlex_does(client, text, args):
    import shlex

    assert shlex.split(text) == args
    end = client.execute(f"{PYTHON} -c 'import sys,json;print(json.dumps(sys.argv[1:]))' " + text)
    assert json.loads(end["stdout"]) == args


@pytest.mark.parametrize("command", ["", "   ", [], [""], 5, None, {}, ["a", 5], [None], "a 'b", 'a "b', "a\\", ["a\0b"], ["a", "b\0"]])
def test_malformed_commands_are_422(client, command):
    reply = client.call("POST", "/execute", {"command": command})
    assert reply.status == 422
    assert reply.json["detail"][0]["loc"][:2] == ["body", "command"]


def test_no_command_at_all_is_422_missing(client):
    assert client.call("POST", "/execute", {}).json["detail"][0] == {
        "loc": ["body", "command"], "msg": "Field required", "type": "missing"}


def test_what_cannot_be_run_is_126_or_127_with_the_reason(client, runtime):
    client.execute(["sh", "-c", "echo x > plain; echo x > noformat; chmod 755 noformat; "
                    "printf '#!/no/such/interpreter\\n' > script; chmod 755 script; mkdir -p folder"])
    for name, code, why in [
        ("no-such-program", 127, "No such file or directory"),
        ("./nope", 127, "No such file or directory"),
        ("./folder", 126, "Permission denied"),
        ("./plain", 126, "Permission denied"),
        ("./noformat", 126, "Exec format error"),
        ("./script", 126, "bad interpreter"),
        ("./plain/x", 126, "Not a directory"),
    ]:
        end = client.execute([name])
        assert end["exit_code"] == code, name
        assert why in end["stderr"] and end["stderr"].startswith(name)
        assert set(end) >= {"stdout", "timed_out", "signal", "oom_killed", "truncated", "duration_ms"}


def test_names_are_looked_up_in_the_requests_path(client, runtime):
    client.execute(["sh", "-c", "mkdir -p bin; printf '#!/bin/sh\\necho mine' > bin/tool; chmod 755 bin/tool"])
    assert client.execute(["tool"], env={"PATH": f"/nope:{runtime.root}/bin"})["stdout"] == "mine\n"
    assert client.execute(["tool"])["exit_code"] == 127


def test_environment_values_are_exact_and_last_one_run(client):
    value = "a\nb=c\n"
    code = "import os,sys;sys.stdout.write(os.environ.get('V','unset'))"
    assert client.python(code, env={"V": value})["stdout"] == value
    assert client.python(code)["stdout"] == "unset"
    assert client.python(code, env={"V": ""})["stdout"] == ""


@pytest.mark.parametrize("key", ["A=B", "", "1X", "A\0B", "A B", "é"])
def test_bad_environment_names_are_refused(client, key):
    reply = client.call("POST", "/execute", {"command": ["true"], "env": {key: "x"}})
    assert reply.status == 422 and reply.json["detail"][0]["loc"][:2] == ["body", "env"]


@pytest.mark.parametrize("env", [{"A": 1}, {"A": None}, {"A": "x\0"}, [], "A=B"])
def test_bad_environment_values_are_refused(client, env):
    assert client.call("POST", "/execute", {"command": ["true"], "env": env}).status == 422


def test_environment_is_built_and_never_inherited(start):
    import os

    runtime = start(env={**os.environ, "SECRET_X": "1"})
    with runtime.client() as client:
        lines = dict(line.split("=", 1) for line in client.execute(["env"])["stdout"].splitlines())
        assert lines == {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(runtime.root),
            "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
        for name in ["environ", "mem", "fd", "maps"]:
            assert client.execute(["cat", f"/proc/{runtime.pid}/{name}"])["exit_code"] != 0
        assert "SECRET_X" not in client.execute(["cat", f"/proc/{runtime.pid}/cmdline"])["stdout"]


def test_signals_are_default_and_unblocked(client):
    status = client.execute(["cat", "/proc/self/status"])["stdout"]
    fields = dict(line.split(":", 1) for line in status.splitlines())
    for name in ["SigBlk", "SigIgn", "SigCgt", "SigPnd"]:
        assert int(fields[name], 16) == 0, name
    assert fields["NoNewPrivs"].strip() == "1"
    end = client.execute(["sh", "-c", "yes | head -1"], timeout_seconds=5)
    assert (end["stdout"], end["stderr"], end["exit_code"]) == ("y\n", "", 0)


def test_only_the_three_descriptors_are_open_while_others_run(client, runtime):
    others = [Client(runtime.socket) for _ in range(20)]
    for other in others:
        other.send("POST", "/execute", {"command": ["sleep", "0.5"]})
    code = "import os;print(sorted(int(f) for f in os.listdir('/proc/self/fd')))"
    assert client.python(code)["stdout"] in ("[0, 1, 2, 3]\n",)
    for other in others:
        assert other.read().json["exit_code"] == 0
        other.close()


def test_print_works_whatever_the_text(client):
    end = client.python("import time;print('☹');open('é.txt','w').close();print(time.tzname)")
    assert end["exit_code"] == 0, end
    assert end["stdout"] == "☹\n('UTC', 'UTC')\n"


def test_one_argument_over_128_kib_is_413_and_points_at_upload(client):
    reply = client.call("POST", "/execute", {"command": ["true", "x" * 131072]})
    assert reply.status == 413
    assert "131071" in reply.json["detail"] and "/upload" in reply.json["detail"]
    assert client.execute(["true", "x" * 131071])["exit_code"] == 0


def test_arguments_over_the_total_are_413(client):
    reply = client.call("POST", "/execute", {"command": ["true"] + ["x" * 100_000] * 40})
    assert reply.status == 413 and "/upload" in reply.json["detail"]


def test_unknown_fields_are_refused_unless_upstream_is_asked_for(client, start):
    body = {"command": ["sh", "-c", "kill -TERM $$"], "later": 1}
    assert client.call("POST", "/execute", body).json["detail"][0]["type"] == "extra_forbidden"
    with start(args=["--compat", "upstream"]).client() as upstream:
        assert upstream.execute(**body)["exit_code"] == -15
