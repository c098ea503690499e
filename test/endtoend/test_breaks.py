"""Breaks from outside: a pass is damaged in one place, and the report has to name that pass.

`make test` tries a representative part; the slow tier all of them. The table of break, pass and
what caught it is printed with ``pytest -s``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.passmanager.pipeline import as_pipeline

from . import breaking
from .breaking import (
    Caught,
    Edit,
    PtxCheck,
    change_operand,
    change_text,
    erase,
    pick,
    run_broken,
    set_attribute,
)
from .linalg_text import Conv, Matmul

# Two CTAs, six k steps through a ring of two slots, tails in C, K_out and Q, two panels of B.
PROGRAMS: dict[str, Conv | Matmul] = {
    "conv-shift-reuse": Conv(1, 3, 38, 144, 80, 2, 3, (1, 0, 1, 1)),
    "conv-implicit-gemm": Conv(1, 5, 38, 72, 80, 2, 3, (1, 0, 1, 1)),
    "conv-smem-offset": Conv(1, 5, 38, 72, 80, 2, 3, (1, 0, 1, 1)),
    "matmul": Matmul(200, 80, 328),
}


@dataclass(frozen=True)
class Break(breaking.Break):
    """A damage to the program of `PROGRAMS` that `pipeline` lowers."""

    pipeline: str = "conv-shift-reuse"


DIFFERENCE = ("difference",)
UNWRITTEN = ("hazard: output-never-written",)
UNORDERED = ("hazard", "deadlock")
DEADLOCK = ("deadlock",)
NOTICED = ("difference", "hazard", "illegal", "deadlock", "refused")
"""Any way but a warning."""


def _plus(amount: int) -> Callable[[Any], Any]:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _flipped(old: Any) -> Any:
    return arith.subi(arith.constant(old.type, 1), old)


def _boolean(value: bool) -> Callable[[Any], Any]:
    return lambda old: arith.constant(old.type, int(value))


WAITS = {"empty": 0, "full": 1, "done": 2}  # in program order, at both levels


def _synchronisation(at: str, pipeline: str = "conv-shift-reuse") -> list[Break]:
    """Every wait, parity, commit, fence and byte count, one at a time."""
    wait, expect = "tc.mbarrier_wait", "tc.mbarrier_expect_tx"
    found = [
        Break(f"wait on {bar} removed", at, erase(wait, i), UNORDERED, pipeline)
        for bar, i in WAITS.items()
    ]
    found += [
        Break(
            f"parity of {bar} flipped",
            at,
            change_operand(wait, 1, _flipped, i),
            UNORDERED,
            pipeline,
        )
        for bar, i in WAITS.items()
    ]

    def count(change: int) -> Edit:
        def edit(module: Any) -> None:
            op = pick(module, expect)
            old = op.attributes["nbytes"].value
            op.attributes["nbytes"] = ir.IntegerAttr.get(op.attributes["nbytes"].type, old + change)

        return edit

    found += [
        Break("expect_tx 16 bytes short", at, count(-16), DEADLOCK, pipeline),
        Break("expect_tx 16 bytes too many", at, count(16), DEADLOCK, pipeline=pipeline),
        Break("expect_tx without one box", at, count(-4096), NOTICED, pipeline=pipeline),
        Break("expect_tx removed", at, erase(expect), NOTICED, pipeline=pipeline),
        Break("commit to empty removed", at, erase("tc.commit", 0), DEADLOCK, pipeline=pipeline),
        Break("commit to done removed", at, erase("tc.commit", 1), DEADLOCK, pipeline=pipeline),
        Break("wait::ld removed", at, erase("tc.tmem_wait"), ("hazard",), pipeline),
        Break("fence after done removed", at, erase("tc.fence", 2),
              ("warning: missing-fence-after",), pipeline=pipeline),
    ]  # fmt: skip
    return found


SHIFT = "tile-conv-shift-reuse"
TILE = [
    Break("pads swapped", "raise-to-tc",
          set_attribute("tc.conv2d", "pads", "array<i64: 0, 1, 1, 1>"), DIFFERENCE),
    Break("a stored lane dropped", SHIFT,
          set_attribute("tc.store_rows", "rows", "29 : i64"), UNWRITTEN),
    Break("one .ashift dropped", SHIFT,
          set_attribute("tc.mma", "ashift", "0 : i1"), DIFFERENCE),
    Break("halo off by one (w of a box)", SHIFT,
          change_operand("tc.tma_load", 2, _plus(1)), DIFFERENCE),
    Break("filter tap off by one", SHIFT,
          change_operand("tc.tma_load", 3, _plus(1), 4), DIFFERENCE),
    Break("wrong K slice copied", SHIFT,
          set_attribute("tc.cp", "slice", "0 : i64", 1), ("hazard: undefined-read",)),
    Break("wrong K slice of B", SHIFT,
          set_attribute("tc.mma", "b_slice", "1 : i64"), DIFFERENCE),
    Break("first mma accumulates", SHIFT,
          change_operand("tc.mma", 3, _boolean(True)), ("hazard: undefined-read",)),
    Break("third mma does not accumulate", SHIFT,
          change_operand("tc.mma", 3, _boolean(False), 2), DIFFERENCE),
    Break("wrong swizzle on a tensor map", SHIFT,
          set_attribute("tc.make_tensor_map", "swizzle", '"64B"'), ("refused",)),
    Break("shared tiles overlap", "plan-memory",
          set_attribute("tc.smem_tile", "offset", "0 : i64", 1), NOTICED),
    Break("slab over the accumulator", "plan-memory",
          set_attribute("tc.tmem_tile", "column", "0 : i64", 1), NOTICED),
    Break("barriers over a tile", "plan-memory",
          set_attribute("tc.mbarrier_init", "offset", "0 : i64", 1), NOTICED),
]  # fmt: skip


def _descriptor(user: str, operand: int, bit: int) -> Edit:
    """Adds one unit (16 bytes) at `bit` of the constant part of a descriptor of `user`."""

    def edit(module: Any) -> None:
        value = pick(module, user).operands[operand]
        constant = value.owner.operands[1].owner
        assert value.owner.name == "arith.addi" and constant.name == "arith.constant"
        old = constant.attributes["value"]
        constant.attributes["value"] = ir.IntegerAttr.get(old.type, old.value + (1 << bit))

    return edit


LBO_BIT, SBO_BIT = 16, 32
"""Where the byte offsets stand in a shared-memory descriptor, in units of 16 (PTX ISA 9.7.16.4)."""
CONVERT, CP, MMA = "convert-tc-to-nvvm", "nvvm.tcgen05.cp", "nvvm.tcgen05.mma"
LOWERED = [
    Break("stride (SBO) of A off by 16", CONVERT, _descriptor(CP, 1, SBO_BIT), NOTICED),
    Break("stride (SBO) of B off by 16", CONVERT, _descriptor(MMA, 2, SBO_BIT), NOTICED),
    Break("panel stride (LBO) of B off by 16", CONVERT, _descriptor(MMA, 2, LBO_BIT), DIFFERENCE),
    Break("wrong swizzle on a tensor map", CONVERT,
          change_text(r'swizzle = "128B"', 'swizzle = "NONE"'), DIFFERENCE),
    Break("wait of the registers removed", CONVERT,
          change_text(r'"tcgen05.wait::ld.sync.aligned;"', '""'), NOTICED),
    Break("fence after done removed", CONVERT, erase("nvvm.tcgen05.fence", 1),
          ("warning: missing-fence-after",)),
    Break("a commit removed", CONVERT, erase("nvvm.tcgen05.commit"), DEADLOCK),
    Break("a barrier removed", CONVERT, erase("nvvm.barrier"), NOTICED),
    Break("a branch swapped", "convert-scf-to-cf",
          change_text(r"cf\.cond_br (%\w+), (\^bb\d+), (\^bb\d+) loc",
                      r"cf.cond_br \1, \3, \2 loc"),
          (*NOTICED, "warning: mbarrier-init-again")),  # by all threads but the one that should
    Break("an add becomes a subtraction", "convert-to-llvm",
          change_text(r"llvm\.add (.*) : i64", r"llvm.sub \1 : i64"), NOTICED),
    Break("a predicate inverted", "convert-to-llvm",
          change_text(r'llvm\.icmp "ult"', 'llvm.icmp "uge"'), NOTICED),
    Break("a fence removed", "convert-to-llvm", erase("nvvm.tcgen05.fence", 1),
          ("warning: missing-fence-after",)),
    Break("one .ashift dropped", "canonicalize",
          change_text(r"(nvvm\.tcgen05\.mma [^\n]*)\{aShift, ", r"\1{"), DIFFERENCE),
    Break("a store dropped", "cse", erase("llvm.store", 1), DIFFERENCE),
    Break("K slice of A off by one", "reconcile-unrealized-casts",
          change_text(r"llvm\.mlir\.constant\(2 : i64\)", "llvm.mlir.constant(4 : i64)"), NOTICED),
]  # fmt: skip

GEMM, TILE_GEMM = "conv-implicit-gemm", "tile-conv-implicit-gemm"
OFFSET, TILE_OFFSET = "conv-smem-offset", "tile-conv-smem-offset"


def _corner(module: Any) -> None:
    """One column less on the left of the bounding box, one more on the right."""
    op = pick(module, "tc.make_tensor_map")
    left, top, right, bottom = op.attributes["corners"]
    op.attributes["corners"] = ir.DenseI64ArrayAttr.get([left + 1, top, right + 1, bottom])


OTHERS = [
    Break("bounding box off by one", TILE_GEMM, _corner, NOTICED, pipeline=GEMM),
    Break("im2col offset off by one", TILE_GEMM,
          change_operand("tc.tma_load", 5, _plus(1)), DIFFERENCE, pipeline=GEMM),
    Break("a stored lane dropped", TILE_GEMM,
          set_attribute("tc.store_rows", "rows", "31 : i64"), UNWRITTEN, pipeline=GEMM),
    Break("stride (SBO) of A off by 16", CONVERT, _descriptor(MMA, 1, SBO_BIT), NOTICED,
          pipeline=GEMM),
    *_synchronisation("assign-roles", GEMM),
    Break("a tap reads from the row of another", TILE_OFFSET,
          set_attribute("tc.mma", "a_row", "0 : i64", 1), DIFFERENCE, pipeline=OFFSET),
    Break("row of a box off by one", TILE_OFFSET,
          change_operand("tc.tma_load", 2, _plus(1)), DIFFERENCE, pipeline=OFFSET),
    *_synchronisation("assign-roles", OFFSET),
    Break("a stored lane dropped", "tile-gemm",
          set_attribute("tc.store_rows", "rows", "31 : i64"), UNWRITTEN,
          pipeline="matmul"),
    Break("wrong K slice of A", "tile-gemm",
          set_attribute("tc.mma", "a_slice", "0 : i64", 1), DIFFERENCE, pipeline="matmul"),
    Break("row of a box off by one", "tile-gemm",
          change_operand("tc.tma_load", 2, _plus(1)), DIFFERENCE, pipeline="matmul"),
    *_synchronisation("assign-roles", "matmul"),
]  # fmt: skip

BREAKS = [
    *TILE,
    *_synchronisation("place-barriers"),
    *_synchronisation("assign-roles"),
    *LOWERED,
    *OTHERS,
]

HARMLESS = [
    Break("the last tap shifts a slab that nothing reads again", SHIFT,
          set_attribute("tc.mma", "ashift", "1 : i1", 2), ()),
    # The mma thread waits there for TMA, which is not ordered by tcgen05 fences.
    Break("fence after full removed", "assign-roles", erase("tc.fence", 1), ()),
]  # fmt: skip
"""Edits after which the kernel is still right."""


@dataclass(frozen=True)
class PtxBreak:
    """A damage to PTX text: the `index`-th match of `pattern` replaced."""

    what: str
    pattern: str
    replacement: str | Callable[[Any], str]
    index: int = 0
    by: tuple[str, ...] = NOTICED


def _add(amount: int) -> Callable[[Any], str]:
    """Adds to the number in the second group of a match."""
    return lambda match: match[1] + str(int(match[2]) + amount) + match[3]


# The first is that of A (cp), then B; LLVM writes or where the sum has no carry.
DESCRIPTOR = r"((?:or\.b64|add\.s64) \t%rd\d+, %rd\d+, )(\d{19})(;)"
PARITY = r"(mbarrier\.try_wait\.parity[^\n]*, )(%r\d+)(;)"
PTX_BREAKS = [
    PtxBreak("stride (SBO) of A off by 16", DESCRIPTOR, _add(1 << SBO_BIT)),
    PtxBreak("stride (SBO) of B off by 16", DESCRIPTOR, _add(1 << SBO_BIT), 1),
    PtxBreak("panel stride (LBO) of B off by 16", DESCRIPTOR, _add(1 << LBO_BIT), 1, DIFFERENCE),
    PtxBreak("one .ashift dropped", r"\.ashift", "", by=DIFFERENCE),
    PtxBreak("lane base of tcgen05.ld halved", r"(shl\.b32 \t%r\d+, %r\d+, )21;", r"\g<1>20;"),
    PtxBreak("mma on the slab's columns", r"\.ashift \[%r\d+\], \[(%r\d+)\]",
             r".ashift [\1], [\1]"),
    PtxBreak("mma reads the accumulator as A", r"\.ashift \[(%r\d+)\], \[%r\d+\]",
             r".ashift [\1], [\1]"),
    PtxBreak("bytes of expect_tx halved", r"(mov\.b32 \t%r\d+, )(\d{5})(;)",
             lambda m: f"{m[1]}{int(m[2]) // 2}{m[3]}"),
    PtxBreak("halo off by one (w of a box)", r"(\.global\.tile[^\n]*\{%r\d+, )(%r\d+)(, %r\d+, %r)",
             lambda m: f"{m[1]}%tid.x{m[3]}"),
    *(PtxBreak(f"wait on {bar}: parity 0 forever", PARITY, r"\g<1>0\3", i, UNORDERED)
      for i, bar in enumerate(("empty", "full"))),
    PtxBreak("wait::ld removed", r"tcgen05\.wait::ld\.sync\.aligned;", ""),
    *(PtxBreak(f"bar.sync {i} removed", r"bar\.sync \t0;", "", i) for i in range(2)),
    *(PtxBreak(f"commit {i} removed", r"tcgen05\.commit[^\n]*;", "", i, DEADLOCK)
      for i in range(2)),
    PtxBreak("a store dropped", r"st\.global[^\n]*;", "", 1, DIFFERENCE),
]  # fmt: skip


@cache
def _pipeline(name: str) -> tcir.Pipeline:
    return as_pipeline(name, stages=2)


def _parameters(breaks: list[Any]) -> Any:
    cases = []
    for b in breaks:
        name = f"{b.pipeline}:{b.at}: {b.what}" if isinstance(b, Break) else b.what
        cases.append(pytest.param(b, id=name))
    return pytest.mark.parametrize("broken", cases)


def _tell(pass_name: str, what: str, caught: Caught) -> None:
    order = "" if caught.orders == 1 else f"  (some of {caught.orders} orders)"
    print(f"\n{what:<42} {pass_name:<28} {caught.by or 'NOT CAUGHT'}{order}", end="")


@pytest.mark.parametrize("name", PROGRAMS)
def test_unbroken(name: str) -> None:
    """The programs are sound, and a wrapped pass that edits nothing is no break."""
    pipeline = _pipeline(name)
    caught = run_broken(
        PROGRAMS[name].text(), pipeline, pipeline.passes[0].name, lambda _: None, orders=2
    )
    assert not caught, caught.text


@_parameters(BREAKS)
def test_break(broken: Break) -> None:
    program = PROGRAMS[broken.pipeline].text()
    _tell(broken.at, broken.what, broken.check(program, _pipeline(broken.pipeline)))


@pytest.mark.parametrize("edit", HARMLESS, ids=lambda edit: edit.what)
def test_harmless(edit: Break) -> None:
    program = PROGRAMS[edit.pipeline].text()
    caught = run_broken(program, _pipeline(edit.pipeline), edit.at, edit.edit)
    assert not caught, caught.text


@pytest.fixture(scope="module")
def ptx() -> PtxCheck:
    program = PROGRAMS["conv-shift-reuse"].text()
    return PtxCheck(program, tcir.compile(program, _pipeline("conv-shift-reuse")))


def test_unbroken_ptx(ptx: PtxCheck) -> None:
    assert not ptx.run(ptx.kernel.ptx)


@_parameters(PTX_BREAKS)
def test_ptx_break(ptx: PtxCheck, broken: PtxBreak) -> None:
    caught = ptx.run(ptx.edit(broken.pattern, broken.replacement, broken.index))
    _tell("llvm-to-ptx", broken.what, caught)
    assert caught, "nothing noticed the break"
    assert caught.by.startswith(broken.by), caught.text
