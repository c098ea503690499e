"""Settings of all tests."""

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.append(str(Path(__file__).parent))  # modes.py, tiers.py

import tiers

# A test compiles what it tests: nothing comes from the user's cache, and nothing is left there.
os.environ["TCIR_CACHE_DIR"] = ""

# To look for cycles after every 700 objects takes 10 % of the collection and 3 % of the tests.
gc.set_threshold(50_000, 20, 50)

# No deadline: the first example pays for imports and compiled code. In CI always the same examples.
settings.register_profile("tcir", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("tcir")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--mode",
        choices=["apart", "together", "interpreted", "jobs"],
        help="how the machine executes programs (test/modes.py): all has to be equal",
    )
    parser.addoption(
        "--record-launches",
        type=Path,
        metavar="FOLDER",
        help="write launches for sm_100a there, for `python -m tcir.testing.gpu`",
    )
    parser.addoption(
        "--budget",
        type=float,
        default=tiers.BUDGET,
        metavar="SECONDS",
        help="what takes longer is slow (test/tiers.py)",
    )


def pytest_configure(config: pytest.Config) -> None:
    # A mistake in lockstep changes no result, so that nothing else would tell.
    config.addinivalue_line(
        "filterwarnings", "error::tcir.interp.ptx.lockstep.abandoned.LockstepDivergence"
    )
    if mode := config.getoption("--mode"):
        from modes import MODES

        MODES[mode](pytest.MonkeyPatch())
    if folder := config.getoption("--record-launches"):
        from tcir.testing.record import record

        record(folder, lambda: os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0])


def pytest_collection_finish() -> None:
    # Tens of thousands of collected tests stay to the end: the collector need not visit them.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = [item.nodeid for item in items if not item.get_closest_marker("slow")]
    over = tiers.over_budget(names, tiers.durations(), config.getoption("--budget"))
    for item in items:
        if item.nodeid in over:
            item.add_marker(pytest.mark.slow)
    if mode := config.getoption("--mode"):
        from modes import OWN

        skip = pytest.mark.skip(reason=f"--mode={mode}: left out (test/modes.py)")
        for item in items:
            names = {item.path.name, item.name.partition("[")[0]}
            if names & (OWN[mode] | {"test_modes.py"}):
                item.add_marker(skip)
