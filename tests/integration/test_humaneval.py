"""HumanEval, 164 real problems, a sandbox each, compared with the package's own evaluator on the same input."""
import collections
import json
import subprocess

import pytest

from harness import humaneval, leftovers
from harness.paths import ROOT
from harness.wait import until


@pytest.fixture(scope="module")
def folder():
    return humaneval.problems_folder()


@pytest.fixture(scope="module")
def up(built):
    from harness.up import Up
    with Up() as one:
        one.start()
        one.api.configure({"humaneval": {"allow": ["api.vendor.com"]}})
        yield one


def submit(up, folder, tmp_path, *options):
    lines = subprocess.run(["/usr/bin/python3", ROOT / "deploy/humaneval.py", "runs", folder, *options], capture_output=True, text=True, check=True).stdout
    file = tmp_path / "runs.jsonl"
    file.write_text(lines)
    done = up.cli("submit", file, "--wait", check=0, timeout=400)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    (tmp_path / "results.jsonl").write_text(done.stdout)
    score = subprocess.run(["/usr/bin/python3", ROOT / "deploy/humaneval.py", "score", tmp_path / "results.jsonl"], capture_output=True, text=True, check=True).stdout
    return results, score


@pytest.mark.parametrize("empty", [False, True], ids=["reference solutions", "bodies replaced by pass"])
def test_as_many_pass_as_the_packages_own_evaluator_says(up, folder, tmp_path, empty):
    module = humaneval.script()
    problems = module.problems(folder)
    expected = humaneval.reference_count([(one["task_id"], module.completion(one, empty)) for one in problems], tmp_path)
    assert len(problems) == 164 and expected == (0 if empty else 164)
    results, score = submit(up, folder, tmp_path, *(["--empty"] if empty else []))
    assert len(results) == 164
    assert sum(module.passed(one) for one in results) == expected, [one for one in results if module.passed(one) == empty][:2]
    assert score == f"{expected} of 164 passed\n"
    assert {one["reason"] for one in results} == {"exited"}
    assert len({one["sandbox"] for one in results}) == 164, "a sandbox serves one run"
    assert all(one["egress"] == [] for one in results)
    runs = {one["run_id"] for one in results}

    def told():
        rows = [row for row in up.api.audit() if row.get("run") in runs]
        found = collections.Counter(row["action"] for row in rows)
        return rows if found["agent_sandbox.teardown"] >= 164 else None
    rows = until(told, 30, "164 teardowns")
    for action in ("agent_sandbox.launch", "agent_sandbox.teardown"):
        mine = [row for row in rows if row["action"] == action]
        assert len(mine) == 164 and {row["run"] for row in mine} == runs and len({row["sandbox"] for row in mine}) == 164
    until(lambda: not leftovers.directories(up), 20, lambda: leftovers.everything(up))
    assert up.verify().returncode == 0


def test_a_job_that_tries_another_host_shows_exactly_that_refusal(up):
    done = up.cli("run", "--json", "humaneval", "--", "python3", "-c",
                  "import urllib.request as u\ntry: u.urlopen('https://example.com/', timeout=5)\nexcept OSError as e: print('refused:', e)", check=0)
    result = json.loads(done.stdout)
    assert result["stdout_tail"].startswith("refused:")
    assert [(one["host"], one["port"], one["verdict"], one["reason"]) for one in result["egress"]] == [("example.com", 443, "deny", "host_not_allowed")]
