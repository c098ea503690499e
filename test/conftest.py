"""Settings of all tests."""

import os

import pytest
from hypothesis import settings

# No deadline: the first example pays for imports and compiled code. In CI always the same examples.
settings.register_profile("tcir", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("tcir")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-lockstep", action="store_true", help="runs every CTA on its own: all has to be equal"
    )


def pytest_configure(config: pytest.Config) -> None:
    import tcir.interp.ptx.lockstep.launch as lockstep

    lockstep.RAISE = True
    if config.getoption("--no-lockstep"):
        lockstep.LEAST = 1 << 60


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The tests of lockstep compare both ways themselves."""
    if config.getoption("--no-lockstep"):
        skip = pytest.mark.skip(reason="--no-lockstep")
        for item in items:
            if item.path.name == "test_lockstep.py":
                item.add_marker(skip)
