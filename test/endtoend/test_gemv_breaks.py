"""Breaks of the GEMV kernels: each damage has to be laid to the pass that did it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.machine.numerics import formats
from tcir.passmanager.pipeline import as_pipeline

from . import breaking
from .block_scaled_oracle import inputs_of, product
from .block_scaled_text import UE8M0, BlockScaled
from .breaking import (
    Edit,
    PtxCheck,
    change_operand,
    change_text,
    erase,
    pick,
    run_broken,
    set_attribute,
)

TILE = "tile-gemv-padded-n"
NVFP4 = BlockScaled(m=130, k=1280, n=None)
MX = BlockScaled(m=128, k=1024, scale=UE8M0, block=32)
RANGES = BlockScaled(m=300, k=320)
COLUMNS = BlockScaled(m=128, k=512, n=3)
TWENTY = BlockScaled(m=200, k=320, n=20)


def _plus(amount: int) -> Callable[[Any], Any]:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _minus(amount: int) -> Callable[[Any], Any]:
    return lambda old: arith.subi(old, arith.constant(old.type, amount))


def _flipped(old: Any) -> Any:
    return arith.subi(arith.constant(old.type, 1), old)


def _box_of_a_third(module: Any) -> None:
    """The inner boxes of A's scales begin half a block further."""
    op = pick(module, "tc.tma_load", 1)
    with ir.InsertionPoint(op), op.location:
        op.operands[2] = _plus(1)(op.operands[2])


@dataclass(frozen=True)
class Break(breaking.Break):
    """A damage to what the pass `at` made of `program`."""

    program: BlockScaled = NVFP4
    options: str = "stages=2"


def _break(
    what: str, edit: Edit, by: tuple[str, ...] = ("difference",), at: str = TILE, **more: Any
) -> Break:
    return Break(what, at, edit, by, **more)


NOTICED = ("difference", "hazard", "illegal", "deadlock", "refused")
MMA, CP = "tc.mma_block_scale", "tc.cp_scales"
BREAKS = [
    _break("stale scale id of A", set_attribute(MMA, "sfa_id", "0 : i64", 1), program=MX),
    _break("stale scale id of B", set_attribute(MMA, "sfb_id", "0 : i64", 1), program=MX),
    _break("stale columns of A's scales", set_attribute(MMA, "sfa_column", "0 : i64", 1)),
    _break("one set of scales is not copied", erase(CP, 2), NOTICED),
    _break("blocks of scales exchanged", set_attribute(CP, "block", "0 : i64", 1)),
    _break("boxes of scales begin in the middle of a block", _box_of_a_third),
    _break("wrong slice of B", set_attribute(MMA, "b_slice", "0 : i64", 1)),
    _break("wrong column stored", change_operand("tc.tmem_ld", 2, _plus(1)), program=COLUMNS),
    _break("scales as ue8m0", set_attribute(MMA, "scale_type", '"ue8m0"')),
    _break("wrong share boundary of a part", change_operand("scf.for", 1, _minus(1)),
          options="schedule=split-k splits=2"),
    _break("wrong share boundary of a range", change_operand("scf.for", 1, _minus(1)), NOTICED,
          program=RANGES, options="schedule=stream-k"),
    # Loops in program order, inner ones first: stages, quarters, segments.
    _break("a segment of a range left out", change_operand("scf.for", 1, _minus(1), 2), NOTICED,
          program=RANGES, options="schedule=stream-k"),
    *(
        _break(f"{wait} waits for the wrong parity",
              change_operand("tc.mbarrier_wait", 1, _flipped, index), NOTICED, "place-barriers")
        for index, wait in enumerate(("producer", "mma"))
    ),
    _break("both CTAs load the first columns", change_text(r'"tc\.cta_rank"\(\) : \(\) -> index',
           "arith.constant 0 : index"), NOTICED, program=TWENTY, options="cluster=2x1 pad_n=32"),
    _break("a part of the columns is for one CTA", change_text("cta_mask = 3", "cta_mask = 1"),
           NOTICED, program=TWENTY, options="cluster=2x1 pad_n=32"),
    _break("every CTA begins with the first tile", change_text("gpu.block_id x",
           "arith.constant 0 : index"), NOTICED, program=RANGES, options="scheduler=clc"),
    _break("the response is not awaited", erase("tc.mbarrier_wait", -1), NOTICED,
           "cluster-launch-control", program=RANGES, options="scheduler=clc"),
    _break("commit of the ring left out", erase("tc.commit", 0), NOTICED, "assign-roles"),
    _break("descriptor of another slice",
          lambda module: _descriptor(module), NOTICED, "convert-tc-to-nvvm"),
]  # fmt: skip


def _descriptor(module: Any) -> None:
    """The first multiplication reads A 32 bytes further."""
    op = pick(module, "nvvm.tcgen05.mma.block_scale", 0)
    with ir.InsertionPoint(op), op.location:
        op.operands[1] = _plus(2)(op.operands[1])


@cache
def _pipeline(options: str) -> tcir.Pipeline:
    return as_pipeline("gemv-padded-n", **dict(word.split("=") for word in options.split()))


@pytest.mark.parametrize("options", ["stages=2", "schedule=stream-k"])
def test_unbroken(options: str) -> None:
    caught = run_broken(NVFP4.linalg(), _pipeline(options), TILE, lambda _: None, orders=2)
    assert not caught, caught.text


@pytest.mark.parametrize(
    "broken",
    [pytest.param(b, id=b.what) for b in BREAKS],
)
def test_break(broken: Break) -> None:
    caught = broken.check(broken.program.linalg(), _pipeline(broken.options), orders=4)
    print(f"\n{broken.what:<44} {broken.at:<22} {caught.by}", end="")


@dataclass(frozen=True)
class PtxBreak:
    """A damage to PTX: the `index`-th match replaced."""

    what: str
    pattern: str
    replacement: str | Callable[[Any], str]
    by: str
    says: str = ""
    index: int = 0


def _toggled(bit: int) -> Callable[[Any], str]:
    return lambda match: match[1] + str(int(match[2]) ^ 1 << bit) + match[3]


PTX_BREAKS = [
    PtxBreak("scales in one lane of a quarter only",
             r"tcgen05\.cp\.cta_group::1\.32x128b\.warpx4", "tcgen05.cp.cta_group::1.4x256b",
             "hazard", "error scale-copies: "),
    PtxBreak("scale type in the instruction descriptor",
             r"(, |mov\.b32 \t%r\d+, )(\d{9})(;|, \[)", _toggled(23), "difference"),
    PtxBreak("block 32 for block 16", r"block16", "block32",
             "illegal: bad-descriptor", "scale type (bit 23): expected 1 (ue8m0), got 0 (ue4m3)"),
]  # fmt: skip


@pytest.fixture(scope="module")
def ptx() -> PtxCheck:
    return PtxCheck(NVFP4.linalg(), tcir.compile(NVFP4.linalg(), _pipeline("stages=2")))


@pytest.mark.parametrize("broken", PTX_BREAKS, ids=lambda b: b.what)
def test_ptx_break(ptx: PtxCheck, broken: PtxBreak) -> None:
    caught = ptx.run(ptx.edit(broken.pattern, broken.replacement, broken.index), 2)
    print(f"\n{broken.what:<44} {'llvm-to-ptx':<22} {caught.by or 'NOT CAUGHT'}", end="")
    assert caught, "nothing noticed the break"
    assert caught.by.startswith(broken.by) and broken.says in caught.text, caught.text


def _bytes(codes: Any) -> Any:
    """Two codes of e2m1 a byte, the even k in the low half."""
    return codes[:, 0::2] | codes[:, 1::2] << 4


def test_nibbles_exchanged() -> None:
    """No op of this kernel decides about nibbles, so no pass can exchange them: the launch can.

    The product is then, exactly, that of A with every two neighbours in k exchanged.
    """
    inputs = inputs_of(NVFP4)
    kernel = tcir.compile(NVFP4.linalg(), _pipeline("stages=2"))
    codes = inputs["a"].view(np.uint8)
    exchanged = codes.reshape(-1, 2)[:, ::-1].reshape(codes.shape)
    results = []
    for elements in (codes, exchanged):
        want = product(NVFP4, **inputs | {"a": elements.view(inputs["a"].dtype)})
        out = np.zeros_like(want)
        kernel(_bytes(elements), inputs["sa"], inputs["b"], inputs["sb"], out)
        assert out.tobytes() == want.tobytes()
        results.append(out)
    assert results[0].tobytes() != results[1].tobytes()
    swapped = _bytes(codes) >> 4 | _bytes(codes) << 4
    assert (swapped == _bytes(exchanged)).all()


def test_the_sign_bit_of_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    """ue4m3 has no sign: bit 7 changes nothing; on a machine that used it, it would show."""
    inputs = inputs_of(NVFP4)
    want = product(NVFP4, **inputs)
    signed = (inputs["sa"].view(np.uint8) | 0x80).view(inputs["sa"].dtype)
    kernel = tcir.compile(NVFP4.linalg(), _pipeline("stages=2"))

    def run() -> Any:
        out = np.zeros_like(want)
        kernel(inputs["a"], signed, inputs["b"], inputs["sb"], out)
        return out

    assert run().tobytes() == want.tobytes()
    values, exponents = formats._scale_table("ue4m3")
    of_e4m3 = np.where(np.arange(256) < 128, values, -values), exponents
    monkeypatch.setattr(formats, "_scale_table", lambda name: of_e4m3)
    assert run().tobytes() == (-want).tobytes()
