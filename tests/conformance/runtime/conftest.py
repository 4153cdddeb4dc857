import itertools
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import rt  # noqa: E402

serial = itertools.count()


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes some seconds")


@pytest.fixture(scope="module", params=["plain", "pid1"])
def runtime(request):
    """One runtime for the tests of a file, in both settings."""
    with rt.Runtime(request.param, args=["--max-concurrent", "64"]) as it:
        yield it
        assert it.proc.poll() is None, it.output()


@pytest.fixture
def client(runtime):
    with runtime.client() as it:
        yield it


@pytest.fixture
def marker():
    """Text that makes this test's processes recognisable: sleep takes it as one more number."""
    return f"0.{os.getpid()}{next(serial):06d}"


@pytest.fixture
def start():
    """Starts runtimes of the test's own and stops them."""
    made = []

    def make(*args, **kwargs):
        made.append(rt.Runtime(*args, **kwargs))
        return made[-1]

    yield make
    for it in made:
        it.stop()
