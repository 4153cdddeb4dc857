"""Random command strings are split as Python's own shlex splits them. Usage: shlex_as_python.py PROGRAM [SEED]."""
import json
import random
import shlex
import subprocess
import sys

PIECES = ["a", "bc", " ", "  ", "\t", "\n", "\r", "'", '"', "\\", "\\\\", "\\'", '\\"', "\\ ", "\\n", "$HOME", ";", "|", "#x",
          "\u00e9", "\U0001f600", "''", '""', "\v", "\f", "\u00a0", "\0", "=", "-x", "*", "`", "(", "&&"]


def expected(text):
    try:
        return shlex.split(text)
    except ValueError as error:
        return str(error)


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    texts = ["".join(rng.choices(PIECES, k=rng.randrange(0, 14))) for _ in range(4000)]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run([sys.argv[1]], input=lines.encode(), stdout=subprocess.PIPE, check=True, timeout=60)
    answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert len(answers) == len(texts)
    wrong = [(t, a, expected(t)) for t, a in zip(texts, answers) if a != expected(t)]
    split = sum(isinstance(a, list) for a in answers)
    print(f"{len(texts)} strings, {split} split, {len(texts) - split} refused, {len(wrong)} differ")
    for text, got, want in wrong[:10]:
        print(f"{text!r}: got {got!r}, Python {want!r}")
    assert split > 500 and len(texts) - split > 500, "the mix tests too little"
    return 1 if wrong else 0


sys.exit(main())
