"""Kernels divided among forks: the program, its texts, its report and every error are the same."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect.attributes import string
from tcir.errors import InvalidIRError, PassError
from tcir.passes.pipelining.assign_roles import AssignRoles
from tcir.passes.pipelining.plan_memory import PlanMemory
from tcir.session import divided
from tcir.session.apart import Compilers
from tcir.session.texts import Texts
from tcir.validation.report import Report

WIDTHS = (64, 128, 256, 64, 192, 320)


def _product(number: int, k: int, n: int) -> str:
    a, f, h = f"tensor<128x{k}xf16>", f"tensor<128x{n}xf32>", f"tensor<128x{n}xf16>"
    return f"""
  %e{number} = tensor.empty() : {f}
  %z{number} = linalg.fill ins(%zero : f32) outs(%e{number} : {f}) -> {f}
  %p{number} = linalg.matmul ins(%x{number}, %w{number} : {a}, tensor<{k}x{n}xf16>)
    outs(%z{number} : {f}) -> {f}
  %x{number + 1} = arith.truncf %p{number} : {f} to {h}"""


PAIRS = list(pairwise(WIDTHS))
WEIGHTS = ", ".join(f"%w{n}: tensor<{k}x{m}xf16>" for n, (k, m) in enumerate(PAIRS))
PRODUCTS = f"""func.func @chain(%x0: tensor<128x{WIDTHS[0]}xf16>, {WEIGHTS})
    -> tensor<128x{WIDTHS[-1]}xf16> {{
  %zero = arith.constant 0.0 : f32
{"".join(_product(n, *each) for n, each in enumerate(PAIRS))}
  return %x{len(PAIRS)} : tensor<128x{WIDTHS[-1]}xf16>
}}"""
"""A chain of products, each of another shape: as many kernels."""


def _compiled(monkeypatch: pytest.MonkeyPatch, forks: int, target: str = "sm_90a") -> tcir.Kernel:
    monkeypatch.setattr(divided, "_FORKS", forks)
    return tcir.compile(PRODUCTS, "layers", target=target, cache=False)


def _divided(kernel: tcir.Kernel) -> list[str]:
    """Names of the passes whose state is in parts."""
    assert isinstance(kernel.ir, Texts)
    return [name for name, state in kernel.ir.states.items() if isinstance(state, tuple)]


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_the_program_is_the_same(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    one, two = (_compiled(monkeypatch, forks, target) for forks in (1, 2))
    assert not _divided(one)
    ran = [name for name in one.ir if any(name in row for row in divided.ROWS)]
    assert _divided(two) == ran and {"multi-buffer", "convert-tc-to-nvvm", "cse"} <= {*ran}
    assert (one.ptx, one.launches) == (two.ptx, two.launches)
    assert dict(one.ir) == dict(two.ir)
    lines = [[(each.index, each.name, each.ops) for each in k.report.passes] for k in (one, two)]
    assert lines[0] == lines[1]
    names = [[(each.index, each.name) for each in k.report.unchanged] for k in (one, two)]
    assert names[0] == names[1]


def test_a_child_that_compiles_divides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCIR_CACHE_DIR", "")
    with Compilers(1) as children:
        kernel = children.compile(PRODUCTS, "layers", "sm_90a")
    assert bool(_divided(kernel)) == (len(os.sched_getaffinity(0)) > 1)
    assert kernel.ptx == _compiled(monkeypatch, 1).ptx


def test_few_kernels_are_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divided, "LEAST", len(PAIRS) + 1)
    assert not _divided(_compiled(monkeypatch, 2))


def test_kernels_named_like_their_memory_are_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The symbol of the memory is one that none of all kernels has."""
    monkeypatch.setattr(divided, "_FORKS", 2)
    kernel = tcir.compile(PRODUCTS.replace("@chain", "@smem"), "layers", cache=False)
    assert {*_divided(kernel)} <= {*divided.ON_THREADS}


def _breaking(
    monkeypatch: pytest.MonkeyPatch, cls: type[Any], broken: Callable[[ir.OpView], None]
) -> None:
    """Makes a pass call a function of the fourth kernel after it ran."""
    started = cls.run

    def run(self: object, module: ir.Module) -> None:
        started(self, module)
        for op in module.body.operations:
            if op.operation.name == "func.func" and string(op, "sym_name") == "chain_3_matmul":
                broken(op)

    monkeypatch.setattr(cls, "run", run)


def _rejected(op: ir.OpView) -> None:
    raise PassError("expected another kernel", op.location)


def _made_invalid(op: ir.OpView) -> None:
    roles = [each for each in op.regions[0].blocks[0] if each.operation.name == "tc.role"]
    del roles[0].attributes["kind"]


@pytest.mark.parametrize(
    ("cls", "broken", "kind"),
    [(PlanMemory, _rejected, PassError), (AssignRoles, _made_invalid, InvalidIRError)],
)
def test_errors_are_those_without_forks(
    monkeypatch: pytest.MonkeyPatch,
    cls: type[Any],
    broken: Callable[[ir.OpView], None],
    kind: type[PassError],
) -> None:
    _breaking(monkeypatch, cls, broken)
    found = []
    for forks in (1, 2):
        with pytest.raises(kind) as raised:
            _compiled(monkeypatch, forks)
        error = raised.value
        assert error.pass_name == cls.name and isinstance(error.report, Report)
        found.append((str(error), [(each.name, each.ops) for each in error.report.passes]))
    assert found[0] == found[1]


def test_a_fork_that_dies_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, parent = _compiled(monkeypatch, 1), os.getpid()

    def killed(op: ir.OpView) -> None:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGSEGV)

    _breaking(monkeypatch, PlanMemory, killed)
    found = _compiled(monkeypatch, 2)
    assert {*_divided(found)} <= {*divided.ON_THREADS} and found.ptx == expected.ptx
