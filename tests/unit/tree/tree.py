"""What the checks of the tree share: its files, C text without comments and strings, its functions."""
import functools
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = ("proto/message/golden", "proto/schema/examples", "tests/fuzz/corpus", "tests/bench/results")


@functools.cache
def files():
    """Paths relative to the root of everything that is no build, cache or version control."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        top = pathlib.Path(folder) == ROOT
        folders[:] = sorted(name for name in folders
                            if name not in (".git", "__pycache__", ".cache", ".pytest_cache") and not (top and name.startswith("build")))
        found += [str((pathlib.Path(folder) / name).relative_to(ROOT)) for name in sorted(names) if not name.endswith(".pyc")]
    return found


def with_suffix(*suffixes):
    return [path for path in files() if path.endswith(suffixes)]


def sources():
    return with_suffix(".c", ".h")


@functools.cache
def text(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)


@functools.cache
def code(path):
    """The C text with comments blanked and strings emptied; lines stay where they are."""
    def blank(match):
        token = match.group()
        if token.startswith("/"):
            return " " + "\n" * token.count("\n")
        return token[0] * 2
    return TOKEN.sub(blank, text(path))


def functions(path):
    """(name, line, lines of the body) of each function: the format puts both its braces in column one."""
    lines = code(path).split("\n")
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 6):start])
            names = re.findall(r"(\w+)\s*\((?=[^;{}]*$)", head.split("}")[-1].split(";")[-1])
            yield (names[0] if names else "?"), start, number - start - 1
            start = None


def folders():
    return sorted({str(pathlib.PurePosixPath(path).parent) for path in files()})
