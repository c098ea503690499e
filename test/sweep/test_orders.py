"""Completion orders in several processes: the report is that of one."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import tcir
from tcir.kernel import Kernel
from tcir.program.source import load_module, mlir_context
from tcir.sweep.validation import joined
from tcir.validation import orders
from tcir.validation.coverage import Coverage
from tcir.validation.orders import Tried, tried
from tcir.validation.report import Line, Report
from tcir.validation.settings import Settings
from tcir.validation.validator import begin

from .programs import GEMM

PATIENT = 40
"""Polls of a wait that then gives up: orders 1, 7 and 8 bring the operands later."""


def timeless(line: Line) -> str:
    """Without seconds, and without how many CTAs repeated what their process knew."""
    return re.sub(r" +\d+\.\d\d s | \(\d+ of \d+ CTAs drew their own\)", " ", str(line)).rstrip()


@cache
def kernel() -> Kernel:
    return tcir.compile(GEMM, "gemm", cache=False, n_tile=96)  # one CTA


def checked(ptx: str, jobs: int, count: int = 10, skip: int = 0) -> Line:
    """The line of PTX of the program."""
    with mlir_context() as context:
        validation = begin(load_module(GEMM, context), Settings(orders=count, jobs=jobs, skip=skip))
    line = Line(1, "llvm-to-ptx")
    validation.check_ptx(ptx, kernel().launches, line)
    line.execute_seconds = 0.0
    return line


def impatient() -> str:
    """The kernel with a wait of the mma for its operands that ends after some polls."""
    form = (
        r"(\$L__BB0_\d+):\n\tmbarrier\.try_wait(\.parity\.shared\.b64 (%p\d+).*;)\n\tnot.*\n.*bra.*"
    )
    waits = list(re.finditer(form, kernel().ptx))
    wait = waits[1]
    label, rest, found = wait.groups()
    bounded = f"""\t.reg .b32 %polls; .reg .pred %more;
\tmov.b32 %polls, {PATIENT};
{label}:
\tmbarrier.test_wait{rest}
\t@{found} bra DONE;
\tsub.u32 %polls, %polls, 1;
\tsetp.gt.u32 %more, %polls, 0;
\t@%more bra {label};
DONE:"""
    return kernel().ptx[: wait.start()] + bounded + kernel().ptx[wait.end() :]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders are spread however little time they take."""
    monkeypatch.setattr(orders, "WORTH", -1.0)


def test_a_sound_kernel(always: None) -> None:
    one, several = checked(kernel().ptx, 1), checked(kernel().ptx, 3)
    assert one.verdict == "equal" and one.compared.endswith(", 10 completion orders")
    assert several == one


def test_what_only_some_orders_show(always: None) -> None:
    one, several = (checked(impatient(), jobs, skip=3) for jobs in (1, 3))
    assert (one.verdict, one.orders) == ("different", 4) and one.findings  # 4, 5, 6 after the first
    assert several == one
    assert checked(impatient(), 3, 4, skip=3).verdict == "equal"
    alone = checked(impatient(), 1, 2, skip=6)
    assert (alone.verdict, alone.findings) == ("different", one.findings)


@pytest.mark.parametrize("text", [kernel, impatient])
def test_orders_in_several_jobs(text: Callable[[], str | Kernel]) -> None:
    ptx = kernel().ptx if text is kernel else impatient()
    covered = Coverage(["full range"], "no bound is known")
    whole = Report(passes=[checked(ptx, 1, 7, skip=3)], seed=0, orders=7, coverage=covered)
    parts = [checked(ptx, 1, 4, skip=3), checked(ptx, 1, 4, skip=6)]
    reports = [Report(passes=[part], seed=0, orders=4, coverage=covered) for part in parts]
    texts = [json.dumps(report.as_dict()) for report in reports]
    assert whole.ok == (text is kernel)
    assert json.loads(json.dumps(joined(texts).as_dict())) == json.loads(
        json.dumps(whole.as_dict())
    )


def test_states_after_a_broken_one_were_not_executed() -> None:
    """One job finds at the third state what another one finds at the second."""

    def report(*verdicts: str) -> str:
        lines = [Line(n, f"p{n}", verdict=each) for n, each in enumerate(verdicts)]
        return json.dumps(Report(passes=lines, seed=0, orders=2).as_dict())

    late = report("reference", "equal", "different", "not executed")
    early = report("reference", "different", "not executed", "not executed")
    for order in ([late, early], [early, late]):
        lines = joined(order).passes
        assert [line.verdict for line in lines] == ["reference", "different", *["not executed"] * 2]


def test_reports_of_one_process_and_of_two(always: None) -> None:
    one, two = (tcir.validate(GEMM, "gemm", orders=6, jobs=jobs) for jobs in (1, 2))
    assert one.ok and [*map(timeless, two.passes)] == [*map(timeless, one.passes)]
    assert two.below() == one.below()


def attempt(order: int) -> Tried:
    time.sleep(0.01)
    return Tried(Line(order, str(os.getpid())), {})


def test_orders_come_in_their_order(always: None) -> None:
    found = list(tried(range(1, 20), 4, attempt))
    assert [each.line.index for each in found] == list(range(1, 20))
    assert found[0].line.name == str(os.getpid())
    assert len({each.line.name for each in found[1:]}) == 4


def test_cheap_orders_stay_here() -> None:
    assert {each.line.name for each in tried(range(9), 4, attempt)} == {str(os.getpid())}


@pytest.mark.parametrize("how", ["dies", "raises"])
def test_an_order_that_ends_its_process_is_tried_here(
    always: None, tmp_path: Path, how: str
) -> None:
    parent = os.getpid()

    def fragile(order: int) -> Tried:
        if order == 5 and os.getpid() != parent:
            (tmp_path / str(os.getpid())).touch()
            if how == "raises":
                raise ValueError(order)
            os.kill(os.getpid(), signal.SIGKILL)
        return attempt(order)

    found = list(tried(range(1, 9), 2, fragile))
    assert [each.line.index for each in found] == list(range(1, 9))
    assert found[4].line.name == str(parent) and len(list(tmp_path.iterdir())) == 3


def test_who_has_heard_enough_ends_the_others(always: None) -> None:
    def slow(order: int) -> Tried:
        if order > 3:
            time.sleep(3600)  # to the end of the test, were it not ended
        return attempt(order)

    running = tried(range(1, 9), 3, slow)
    assert [next(running).line.index for _ in range(3)] == [1, 2, 3]
    running.close()
