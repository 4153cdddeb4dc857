"""Fixtures of the tests that run real programs."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import leftovers  # noqa: E402
from harness.paths import STOCKADE  # noqa: E402
from harness.up import Up  # noqa: E402
from harness.wait import until  # noqa: E402

AGENTS = {"helper": {"allow": ["api.vendor.com"]}}


@pytest.fixture(scope="session")
def built():
    assert STOCKADE.exists(), f"{STOCKADE} is not built: deploy/build.sh"


@pytest.fixture(scope="module")
def up(built):
    """One instance for a file of tests: the agent `helper` is on the list. At the end nothing may be left."""
    with Up() as one:
        one.start()
        one.api.configure(AGENTS)
        yield one
        until(lambda: not leftovers.directories(one), 20, lambda: f"sandboxes gone: {leftovers.everything(one)}")
        assert one.stop() == 0, one.log()[-2000:]
        assert not leftovers.everything(one)


@pytest.fixture
def fresh(built):
    """Makes instances that are removed after the test: fresh(settings=…) gives one that is not started."""
    made = []

    def make(**options):
        made.append(Up(**options))
        return made[-1]
    yield make
    for one in made:
        one.remove()


def pytest_report_header():
    return f"build: {os.environ.get('STOCKADE_BUILD', 'build')}"
