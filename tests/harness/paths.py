"""Where the checkout, the build and the programs under test are."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("STOCKADE_BUILD", ROOT / "build")).resolve()
STOCKADE = BUILD / "deploy/standalone/stockade"
PROXY = BUILD / "egress-proxy/stockade-egress-proxy"
RUNTIME = BUILD / "workers/runtime/stockade-runtime"
LIBEXEC = ":".join(str(BUILD / folder) for folder in ("proto", "workers/runtime", "egress-proxy"))


def environment(**more):
    """The tests' environment without proxies or settings of the person who runs them."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STOCKADE_") and "proxy" not in name.lower()}
    return {**kept, "STOCKADE_LIBEXEC": LIBEXEC, "LC_ALL": "C.UTF-8", **{name: str(value) for name, value in more.items()}}
