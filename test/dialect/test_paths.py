"""The barriers that order the uses of a tile: without any one of the waits, some use has none."""

import re

import pytest

from tcir._mlir import func
from tcir.dialect.kernel.paths import reuses_of
from tcir.dialect.kernel.verify import verify_kernel
from tcir.dialect.kernel.view import view
from tcir.program.source import load_module, mlir_context
from tcir.tools.dev.barrier_page import KERNELS, TARGET, document, state

WAIT = '"tc.mbarrier_wait"'


def missing(text: str) -> tuple[int, int]:
    """Uses of tiles that nothing orders, and violations of rules."""
    with mlir_context() as context:
        module = load_module(text, context)
        kernels = [op for op in module.body.operations if isinstance(op, func.FuncOp)]
        (kernel,) = (op for op in kernels if "tc.kernel" in op.attributes)
        reuses = reuses_of(view(kernel))
        assert reuses
        return sum(len(each.missing) for each in reuses), len(verify_kernel(kernel))


def test_the_page_is_current() -> None:
    assert TARGET.read_text() == document()


@pytest.mark.parametrize("title", KERNELS)
def test_every_wait_is_needed(title: str) -> None:
    text = state(title)
    assert missing(text) == (0, 0)
    lines = text.splitlines()
    waits = [number for number, line in enumerate(lines) if WAIT in line]
    assert len(waits) >= 5
    for number in waits:
        without = "\n".join(lines[:number] + lines[number + 1 :])
        assert missing(without)[0] > 0, lines[number]


def test_a_wait_for_the_iteration_before_is_too_late() -> None:
    """Scores are read an iteration late: their way there and back takes two iterations."""
    text = state(next(iter(KERNELS)))
    role = text.partition('kind = "mma"')[2]
    wait = next(line for line in role.splitlines() if WAIT in line)
    _, parity = re.findall(r"%\w+", wait)[:2]
    late = f"%late = arith.subi %c1, {parity} : index\n{wait.replace(parity, '%late')}"
    assert min(missing(text.replace(wait, late))) > 0
