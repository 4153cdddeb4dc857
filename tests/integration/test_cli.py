"""Every verb of the command line: help, output, JSON, exit status, one line of error."""
import json
import re
import subprocess

import pytest

from harness.api import PLATFORM
from harness.paths import STOCKADE, environment
from harness.wait import until

VERBS = ["up", "run", "submit", "plan", "config", "runs", "logs", "cancel", "audit tail", "audit verify", "pools", "workers", "doctor", "token", "completion"]


def one_line(done):
    """An error is one line on stderr that begins with the program's name."""
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("stockade"), done
    return done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb(up, verb):
    done = up.cli(*verb.split(), "--help", check=0)
    assert done.stdout.startswith(f"usage: stockade {verb}") and not done.stderr
    assert len(done.stdout.splitlines()) >= 3


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_option_is_wrong_usage(up, verb):
    done = up.cli(*verb.split(), "--no-such-option", check=2)
    assert "no-such-option" in done.stderr


def test_help_lists_every_verb(up):
    text = up.cli("--help", check=0).stdout
    for verb in VERBS:
        assert re.search(rf"^  {verb.split()[0]} ", text, re.M), verb
    assert up.cli("--version", check=0).stdout.startswith("stockade ")
    assert "nonsense" in one_line(up.cli("nonsense", check=2))
    assert up.cli(check=2).stderr.startswith("usage:")


# --- run

@pytest.mark.parametrize("options, command, status", [
    ([], ["true"], 0), ([], ["sh", "-c", "exit 3"], 3), ([], ["no-such-program"], 127), ([], ["sh", "-c", "kill -9 $$"], 137),
    (["--timeout", "0.3"], ["sleep", "60"], 124),
])
def test_run_ends_as_the_command_does(up, options, command, status):
    up.cli("run", *options, "helper", "--", *command, check=status)


def test_run_passes_output_through(up):
    done = up.cli("run", "helper", "--", "sh", "-c", "echo out; echo err >&2; exit 4", check=4)
    assert done.stdout == "out\n" and done.stderr == "err\n"


def test_run_shows_egress_when_asked(up):
    done = up.cli("run", "--egress", "helper", "--", "python3", "-c", "import urllib.request as u\ntry: u.urlopen('https://nobody.example/')\nexcept OSError: pass", check=0)
    assert re.search(r"egress: deny\s+nobody\.example:443\s+host_not_allowed", done.stderr), done


def test_run_sends_stdin_and_variables(up):
    done = up.cli("run", "--stdin", "-", "--env", "A=x=y", "--cwd", "/tmp", "helper", "--", "sh", "-c", "cat; echo $A; pwd", stdin="piped\n", check=0)
    assert done.stdout == "piped\nx=y\n/tmp\n"


def test_run_as_json(up):
    result = json.loads(up.cli("run", "--json", "helper", "--", "sh", "-c", "echo hi; exit 5", check=5).stdout)
    assert result["exit_code"] == 5 and result["stdout_tail"] == "hi\n"


def test_run_that_is_refused_ends_with_125(up):
    assert "not listed" in one_line(up.cli("run", "stranger", "--", "true", check=125))
    assert one_line(up.cli("run", "helper", "--", "true", check=125, STOCKADE_TOKEN="wrong"))
    assert one_line(up.cli("run", "helper", "--", "true", check=125, STOCKADE_URL="http://127.0.0.1:9"))


def test_run_without_a_command_is_wrong_usage(up):
    one_line(up.cli("run", "helper", check=2))


# --- submit

def test_submit_waits_for_every_line(up, tmp_path):
    lines = tmp_path / "runs.jsonl"
    lines.write_text("".join(json.dumps({"agent": "helper", "command": ["sh", "-c", f"echo {i}; exit {i % 2}"]}) + "\n" for i in range(10)) + "\n")
    done = up.cli("submit", lines, "--wait", check=0)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(one["line"] for one in results) == list(range(1, 11))
    assert {one["line"]: one["stdout_tail"] for one in results} == {i + 1: f"{i}\n" for i in range(10)}


def test_submit_tells_which_line_was_refused(up, tmp_path):
    lines = tmp_path / "runs.jsonl"
    lines.write_text('{"agent":"helper","command":["true"]}\nnot json\n{"agent":"helper","command":[]}\n')
    done = up.cli("submit", lines, check=1)
    answers = {one["line"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert answers[1]["id"].startswith("run-") and answers[2]["code"] == "invalid_json" and answers[3]["pointer"] == "/command"
    assert "2 of 3" in one_line(done)


def test_submit_twice_under_one_key_runs_once(up, tmp_path):
    lines = tmp_path / "runs.jsonl"
    lines.write_text('{"agent":"helper","command":["true"]}\n' * 3)
    first = [json.loads(line)["run_id"] for line in up.cli("submit", lines, "--wait", "--key", "twice", check=0).stdout.splitlines()]
    second = [json.loads(line)["run_id"] for line in up.cli("submit", lines, "--wait", "--key", "twice", check=0).stdout.splitlines()]
    assert len(set(first)) == 3 and sorted(first) == sorted(second)


def test_submit_of_a_missing_file(up, tmp_path):
    one_line(up.cli("submit", tmp_path / "none", check=2))


# --- configuration

def test_config_get_set_diff(fresh, tmp_path):
    up = fresh().start()
    assert json.loads(up.cli("config", "get", check=0).stdout)["enabled"] is False
    file = tmp_path / "config.json"
    file.write_text('{"enabled": true, "agents": {"a": {"allow": ["x.example"]}}}')
    assert "reason" in one_line(up.cli("config", "set", file, check=1))
    done = up.cli("config", "set", file, "--reason", "CHG-1", check=0)
    assert done.stdout.startswith("version 1 ") and "x.example" in done.stdout
    assert json.loads(up.cli("config", "get", check=0).stdout)["agents"]["a"]["allow"] == ["x.example"]
    file.write_text('{"enabled": true, "agents": {"a": {"allow": ["y.example"]}}}')
    assert re.search(r'^\+.*"y\.example"', up.cli("config", "diff", file, check=0).stdout, re.M)
    one_line(up.cli("config", "set", file, "--reason", "r", "--if-version", "7", check=1))
    file.write_text("{")
    one_line(up.cli("config", "set", file, check=2))
    assert json.loads(up.cli("config", "get", "--organisation", check=0).stdout)["agents"] == {}


# --- runs, logs, cancel

def test_runs_lists_and_shows(up):
    run = up.api.run("helper", ["echo", "shown"], labels={"cli": "yes"})["run_id"]
    table = up.cli("runs", "--label", "cli=yes", check=0).stdout.splitlines()
    assert len(table) == 2 and run in table[1] and "exited" in table[1]
    assert json.loads(up.cli("runs", "--label", "cli=yes", "--json", check=0).stdout)["runs"][0]["id"] == run
    assert json.loads(up.cli("runs", run, check=0).stdout)["result"]["stdout_tail"] == "shown\n"
    one_line(up.cli("runs", "run-00000000000000000000000000", check=1))


def test_logs_of_a_finished_run(up):
    run = up.api.run("helper", ["sh", "-c", "echo o; echo e >&2"])["run_id"]
    done = up.cli("logs", run, check=0)
    assert (done.stdout, done.stderr) == ("o\n", "e\n")


def test_logs_follow_a_running_one(up):
    run = up.api.submit("helper", ["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.3; done"])
    assert up.cli("logs", "-f", run, check=0).stdout == "1\n2\n3\n"


def test_cancel(up):
    run = up.api.submit("helper", ["sleep", "300"])
    up.cli("cancel", run, check=0)
    assert until(lambda: (lambda row: row["state"] == "finished" and row)(up.api.ok("GET", f"/v1/runs/{run}")), 15, "finished")["reason"] == "cancelled"
    one_line(up.cli("cancel", "run-00000000000000000000000000", check=1))


# --- plan, audit, pools, workers, doctor, token, completion

def test_plan(up):
    text = up.cli("plan", "helper", "--", "python3", "job.py", check=0).stdout
    assert re.search(r"^backend\s+oci$", text, re.M) and "api.vendor.com" in text
    assert json.loads(up.cli("plan", "--json", "helper", "--", "true", check=0).stdout)["objects"]


def test_text_of_others_drives_no_terminal_and_forges_no_line(up):
    reason = "a\0b \x1b[2J \x9b2J\r\n2026-01-01T00:00:00.000Z forged \x85 \u2028 \u202e \\u0000 é end"
    before = up.api.ok("GET", PLATFORM)["agents"]
    up.api.ok("PUT", PLATFORM, {"enabled": True, "agents": {**before, "other": {"allow": ["terminal.example"]}}, "reason": reason})
    try:
        rows = until(lambda: [row for row in up.api.audit("?action=agent_sandbox.config.update") if row["details"].get("reason") == reason], 10, "the row, unaltered")
        assert len(rows) == 1
        text = up.cli("audit", "tail", "--limit", "5", check=0).stdout
        (line,) = [line for line in text.split("\n") if "end" in line]
        assert "forged" in line and "é" in line and "\\u0000" in line
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", text), repr(text)
    finally:
        up.api.configure(before)


def test_audit_tail_and_verify(up):
    run = up.api.run("helper", ["true"])["run_id"]
    until(lambda: len(up.api.audit(f"?run={run}")) == 2, 10, "two rows")
    lines = up.cli("audit", "tail", "--run", run, check=0).stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["agent_sandbox.launch", "agent_sandbox.teardown"]
    assert len(json.loads(up.cli("audit", "tail", "--run", run, "--json", check=0).stdout)["rows"]) == 2
    assert up.cli("audit", "verify", "--state-dir", up.state_dir, check=0).stdout
    assert up.cli("audit", check=2).stderr.startswith("usage:")


def test_pools_and_workers(up):
    up.cli("pools", "p", "--agent", "helper", "--target", "0", check=0)
    assert "p" in up.cli("pools", check=0).stdout
    assert up.worker in up.cli("workers", check=0).stdout
    assert json.loads(up.cli("workers", "--json", check=0).stdout)["workers"][0]["id"] == up.worker
    one_line(up.cli("pools", "p", "--agent", "helper", "--target", "many", check=2))


def test_doctor_says_what_the_host_has(up):
    text = up.cli("doctor", check=0).stdout
    assert re.search(r"^\s*oci\b", text, re.M)
    found = json.loads(up.cli("doctor", "--json", check=0).stdout)
    assert found


def test_token_create_refuses_what_it_cannot_make(up, tmp_path):
    assert re.fullmatch(r"stk_[0-9a-f]{64}\n", up.cli("token", "create", "--state-dir", tmp_path / "s", check=0).stdout)
    for options in (["--scopes", "rooot"], ["--tenant", "A B"], ["--expires", "0"], ["--label", "x" * 100]):
        one_line(up.cli("token", "create", "--state-dir", tmp_path / "s", *options, check=2))
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700


def test_completion_completes_verbs_and_options(up):
    script = up.cli("completion", "bash", check=0).stdout
    ask = script + "\nCOMP_WORDS=(stockade $1); COMP_CWORD=1; COMP_WORDS[1]=su; _stockade; echo ${COMPREPLY[*]}; COMP_WORDS=(stockade run --ti); COMP_CWORD=2; _stockade; echo ${COMPREPLY[*]}"
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout == "submit\n--timeout\n", done
    one_line(up.cli("completion", "fish", check=2))


def test_the_token_can_come_from_a_file(up, tmp_path):
    (tmp_path / "token").write_text(up.token + "\n")
    up.cli("runs", "--token-file", tmp_path / "token", token=False, check=0)
    assert "token" in one_line(up.cli("runs", token=False, check=1))


def test_colourless_output_does_not_depend_on_the_terminal(built):
    done = subprocess.run([STOCKADE, "--help"], env=environment(TERM="dumb"), capture_output=True, check=True)
    assert b"\033" not in done.stdout
