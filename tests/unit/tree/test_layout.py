"""The tree is the one that the README describes, and says in every folder what the folder is for."""
import os
import re
import subprocess

import pytest

import tree

TOP = {"api-gateway", "scheduler", "workers", "egress-proxy", "audit-consumer", "proto", "deploy", "tests", "CMakeLists.txt", "README.md"}
PAGE = 90


def test_the_top_level_is_what_the_design_says():
    names = {name for name in os.listdir(tree.ROOT) if not name.startswith(".") and not name.startswith("build")}
    assert names == TOP


def documented_folders():
    for folder in tree.folders():
        parts = folder.split("/")
        hidden = any(part.startswith(".") and part != "." for part in parts)
        mirrored = len(parts) > 2 and parts[0] == "tests" and parts[1] in ("unit", "conformance")
        if folder.startswith(tree.DATA) or hidden or mirrored:
            continue
        yield folder


@pytest.mark.parametrize("folder", documented_folders())
def test_every_folder_says_on_one_page_what_it_is_for(folder):
    page = tree.ROOT / folder / "README.md"
    assert page.is_file(), f"{folder} has no README.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    most = 400 if folder == "." else PAGE
    assert 3 <= len(lines) <= most, f"{page} has {len(lines)} lines"


def test_files_named_by_a_readme_exist():
    missing = []
    for page in tree.with_suffix("README.md"):
        folder = tree.ROOT / os.path.dirname(page)
        for name in re.findall(r"`([\w./-]+\.(?:c|h|py|sh))`", tree.text(page)):
            if not (folder / name).exists() and not (tree.ROOT / name).exists() and not list(tree.ROOT.glob(f"**/{name}")):
                missing.append(f"{page}: {name}")
    assert not missing, "\n".join(missing)


def test_shell_scripts_parse():
    scripts = tree.with_suffix(".sh") + [".ci/run"]
    assert len(scripts) > 3
    for path in scripts:
        subprocess.run(["bash", "-n", tree.ROOT / path], check=True)
        assert tree.text(path).startswith("#!/usr/bin/env bash\n"), path
        assert "set -euo pipefail" in tree.text(path), f"{path} goes on after an error"


def test_python_files_parse():
    for path in tree.with_suffix(".py"):
        compile(tree.text(path), path, "exec")


def test_no_generated_or_large_file_is_kept():
    large = [path for path in tree.files() if (tree.ROOT / path).stat().st_size > 200_000]
    assert not large
