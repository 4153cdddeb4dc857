"""Rules that every C file keeps: nothing banned, nothing left to do, sizes, format, and that it is compiled at all."""
import collections
import json
import os
import pathlib
import re
import subprocess

import tree

BANNED = "sprintf vsprintf strcpy strcat strncpy strncat stpcpy atoi atol atoll atof gets strtok strtok_r system popen alloca tmpnam mktemp tempnam".split()
FILE_LINES, FUNCTION_LINES = 400, 60
TEST_FILE_LINES, TEST_FUNCTION_LINES = 750, 200  # tables of cases
# A port's header is one contract; cut in two it would be read in two.
LONGER_FILES = {"proto/state/state.h": 620}
# Words of one machine or one day: a file that says them is of no use elsewhere.
ELSEWHERE = re.compile(r"(?<![\w.])/(?:wo" r"rk|home/\w+|tmp/d" r"ev)/|\.\./sha" r"red|\bmain.?session\b|#\d+ \(issue\)")


def product(paths):
    return [path for path in paths if not path.startswith("tests/")]


def test_no_banned_function_is_called():
    call = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
    found = [f"{path}:{number}: {match.group(1)}" for path in product(tree.sources())
             for number, line in enumerate(tree.code(path).split("\n"), 1) for match in call.finditer(line)]
    assert not found, "\n".join(found)


def test_nothing_is_left_to_do():
    mark = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
    found = [f"{path}:{number}: {line.strip()}" for path in tree.with_suffix(".c", ".h", ".py", ".sh", ".md", ".txt", ".cmake", ".json")
             for number, line in enumerate(tree.text(path).split("\n"), 1) if mark.search(line)]
    assert not found, "\n".join(found)


def test_files_speak_of_the_project_alone():
    found = [f"{path}:{number}: {line.strip()}" for path in tree.files() if not path.startswith("tests/fuzz/corpus")
             for number, line in enumerate(tree.text(path).split("\n"), 1) if ELSEWHERE.search(line)]
    assert not found, "\n".join(found)


def test_files_are_short():
    long = [f"{path}: {tree.text(path).count(chr(10))} lines" for path in tree.with_suffix(".c", ".h", ".py", ".sh")
            if tree.text(path).count("\n") > LONGER_FILES.get(path, TEST_FILE_LINES if path.startswith("tests/") else FILE_LINES)]
    assert not long, "\n".join(long)


def test_functions_are_short():
    long = [f"{path}:{line}: {name} has {lines} lines" for path in tree.with_suffix(".c")
            for name, line, lines in tree.functions(path) if lines > (TEST_FUNCTION_LINES if path.startswith("tests/") else FUNCTION_LINES)]
    assert not long, "\n".join(long)


def test_the_counter_sees_functions():
    sizes = [lines for path in tree.with_suffix(".c") for _, _, lines in tree.functions(path)]
    assert len(sizes) > 1000 and max(sizes) > 30
    assert sorted(sizes)[len(sizes) // 2] <= 20, "the median function has more than twenty lines"


def test_every_header_begins_with_what_it_is_for():
    silent = [path for path in tree.with_suffix(".h") if not re.match(r"/\*|//", tree.text(path))]
    assert not silent, "\n".join(silent)


def test_headers_are_guarded_once():
    guards = collections.defaultdict(list)
    for path in tree.with_suffix(".h"):
        match = re.search(r"^#ifndef (\w+)\n#define \1\b", tree.text(path), re.M)
        guards[match.group(1) if match else f"none in {path}"].append(path)
    wrong = {guard: paths for guard, paths in guards.items() if len(paths) > 1 or guard.startswith("none")}
    assert not wrong


def test_failpoints_have_names_of_their_own():
    places = collections.defaultdict(list)
    for path in product(tree.with_suffix(".c")):
        for name in re.findall(r'stk_failpoint\(\s*"([^"]+)"', tree.text(path)):
            places[name].append(path)
    assert len(places) >= 3, "no failpoint was found: does the check still see them?"
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert not twice
    assert all(re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", name) for name in places), sorted(places)


def test_sources_are_formatted():
    done = subprocess.run(["clang-format-14", "--dry-run", "-Werror", *tree.sources()], cwd=tree.ROOT, capture_output=True, text=True, check=False)
    paths = collections.Counter(match for match in re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.M))
    assert done.returncode == 0, "clang-format-14 -i " + " ".join(sorted(paths))


def test_every_source_is_compiled():
    build = pathlib.Path(os.environ.get("STOCKADE_BUILD", tree.ROOT / "build"))
    commands = json.loads((build / "compile_commands.json").read_text())
    compiled = {os.path.realpath(os.path.join(entry["directory"], entry["file"])) for entry in commands}
    idle = [path for path in tree.with_suffix(".c") if not path.startswith("tests/fuzz/") and os.path.realpath(tree.ROOT / path) not in compiled]
    assert not idle, "\n".join(idle)
