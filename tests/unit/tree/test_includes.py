"""Includes point downward only: base <- http, message, policy <- bus, state, store <- each program. A program never includes
another; deploy/standalone is the one place that links them all, and tests may look at everything."""
import re

import tree

BASE = {"proto/base"}
MIDDLE = BASE | {"proto/http", "proto/message", "proto/policy"}
PORTS = MIDDLE | {"proto/bus", "proto/state", "proto/store"}
PROGRAMS = {"api-gateway", "scheduler", "workers", "egress-proxy", "audit-consumer"}
MAY = {
    "proto/base": BASE,
    "proto/http": BASE | {"proto/http"},
    "proto/message": BASE | {"proto/message"},
    "proto/policy": BASE | {"proto/message", "proto/policy"},
    "proto/bus": MIDDLE | {"proto/bus"},
    "proto/state": MIDDLE | {"proto/bus", "proto/state"},
    "proto/store": MIDDLE | {"proto/store"},
    "workers/runtime": MIDDLE | {"workers/runtime"},
    "egress-proxy": MIDDLE | {"egress-proxy"},
    "deploy/standalone": PORTS | PROGRAMS | {"deploy/standalone"},
    **{program: PORTS | {program} for program in PROGRAMS - {"egress-proxy"}},
}
# What links no library that has no static archive: the static programs and the libraries they are made of.
STATIC = {"proto/http", "proto/message", "proto/policy", "workers/runtime", "egress-proxy"}
HOST_LIBRARIES = re.compile(r"<(openssl|cjson|sqlite3|curl)\b")


def area(path):
    fitting = [name for name in MAY if path.startswith(name + "/")]
    return max(fitting, key=len) if fitting else None


def includes(path):
    return re.findall(r'^\s*#\s*include\s+([<"][^>"]+)[>"]', tree.text(path), re.M)


def test_includes_point_downward():
    wrong = []
    for path in tree.sources():
        home = area(path)
        for name in includes(path):
            if name.startswith("<") or path.startswith("tests/"):
                continue
            target = area(name[1:])
            if home is None or target is None or target not in MAY[home]:
                wrong.append(f"{path} includes {name[1:]}")
    assert not wrong, "\n".join(wrong)


def test_includes_are_rooted_at_the_repository():
    wrong = [f"{path}: {name[1:]}" for path in tree.sources() if not path.startswith("tests/")
             for name in includes(path) if name.startswith('"') and not (tree.ROOT / name[1:]).is_file()]
    assert not wrong, "\n".join(wrong)


def test_static_programs_need_no_library_of_the_host():
    wrong = [f"{path}: {name}" for path in tree.sources() if area(path) in STATIC
             for name in includes(path) if HOST_LIBRARIES.match(name)]
    assert not wrong, "\n".join(wrong)


def test_the_check_sees_an_upward_include():
    assert area("proto/base/err.c") == "proto/base" and area("workers/runtime/main.c") == "workers/runtime"
    assert "scheduler" not in MAY["workers"] and "proto/bus" not in MAY["proto/message"]
