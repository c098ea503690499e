"""Ops of `nvvm` that are one PTX instruction each, written from the PTX ISA."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tcir._mlir import ir
from tcir.dialect.attributes import defining
from tcir.errors import IncompleteError
from tcir.interp.thread.speller import (
    CONSTANTS,
    Speller,
    expect,
    only,
    pointer_space,
    spelling,
)

_GROUPS = {"": "1", "#nvvm.cta_group<cta_1>": "1", "#nvvm.cta_group<cta_2>": "2"}
_SREG = {
    f"{name}.{axis}": f"%{ptx}.{axis}"
    for name, ptx in (("tid", "tid"), ("ntid", "ntid"), ("ctaid", "ctaid"), ("nctaid", "nctaid"))
    for axis in "xyz"
} | {"laneid": "%laneid", "warpid": "%warpid", "cluster.ctarank": "%cluster_ctarank"}


def address(speller: Speller, value: ir.Value, space: int) -> str:
    """Returns ``[register]`` for a pointer to the given address space; IncompleteError for a
    pointer to another address space.
    """
    found = pointer_space(value.type)
    if found != space:
        raise IncompleteError(f"no rule for an address of type {value.type}")
    return f"[{speller.read_one(value)}]"


def immediate(value: ir.Value) -> int:
    """Returns the number of a constant operand, for PTX operands that must be immediates."""
    op = defining(value)
    if op is None or op.operation.name not in CONSTANTS:
        raise IncompleteError("no rule for an operand that is not a constant")
    return int(ir.IntegerAttr(op.operation.attributes["value"]).value)


def _special_register(speller: Speller, op: ir.Operation) -> None:
    only(op)
    name = op.name.removeprefix("nvvm.read.ptx.sreg.")
    speller.emit(f"mov.u32 {speller.define_one(op.results[0])}, {_SREG[name]}")


spelling(*(f"nvvm.read.ptx.sreg.{name}" for name in _SREG))(_special_register)


@dataclass(frozen=True)
class _Operand:
    """An operand in the text of an instruction: its register, or with the number of an address
    space, as in ``{a:3}``, the address that it is."""

    speller: Speller
    value: ir.Value

    def __format__(self, space: str) -> str:
        if space:
            return address(self.speller, self.value, int(space))
        return self.speller.read_one(self.value)


def instruction(text: str, *names: str, **words: Mapping[str, str]) -> None:
    """Adds the rule of ops each of which is one instruction.

    text:  the instruction, with operands a, b, c (`_Operand`), the result d, and attributes
    words: PTX of an attribute, by its text in MLIR ("" if it is absent); attributes that are not
           listed are integers
    """
    fields = re.findall(r"\{(\w+)", text)
    operands = [name for name in "abc" if name in fields]
    numbers = [name for name in fields if name not in (*"abcd", *words)]

    def spell(speller: Speller, op: ir.Operation) -> None:
        only(op, *words, *numbers)
        given: dict[str, object] = {n: ir.IntegerAttr(op.attributes[n]).value for n in numbers}
        given |= {name: table[expect(op, name, *table)] for name, table in words.items()}
        given |= {n: _Operand(speller, each) for n, each in zip(operands, op.operands, strict=True)}
        if len(op.results):
            given["d"] = speller.define_one(op.results[0])
        speller.emit(text.format(**given))

    spelling(*names)(spell)


# PTX ISA 9.7.9.25.3, 9.7.9.25.4: groups of copies
instruction("cp.async.commit_group", "nvvm.cp.async.commit.group")
instruction("cp.async.wait_group {n}", "nvvm.cp.async.wait.group")
instruction("cp.async.bulk.commit_group", "nvvm.cp.async.bulk.commit.group")
instruction(
    "cp.async.bulk.wait_group{read} {group}",
    "nvvm.cp.async.bulk.wait_group",
    read={"": "", "unit": ".read"},
)
# PTX ISA 9.7.13: warps, fences, barriers, the grid
instruction("bar.warp.sync {a}", "nvvm.bar.warp.sync")
instruction("fence.mbarrier_init.release.cluster", "nvvm.fence.mbarrier.init")
instruction("mbarrier.init.shared::cta.b64 {a:3}, {b}", "nvvm.mbarrier.init")
for _name in "arrive", "arrive.relaxed", "wait":
    instruction(
        f"barrier.cluster.{_name}{{aligned}}",
        f"nvvm.cluster.{_name}",
        aligned={"": "", "unit": ".aligned"},
    )
instruction(
    "vote.sync.{kind}.b32 {d}, {b}, {a}",
    "nvvm.vote.sync",
    kind={"#nvvm<vote_sync_kind ballot>": "ballot"},
)
instruction(
    "griddepcontrol.{kind}",
    "nvvm.griddepcontrol",
    kind={f"#nvvm<grid_dep_action {name}>": name for name in ("wait", "launch_dependents")},
)
# PTX ISA 9.7.16: tensor memory and its fences; 9.7.19: registers
instruction(
    "tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 {a:3}, {b}",
    "nvvm.tcgen05.alloc",
    group=_GROUPS,
)
instruction(
    "tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned",
    "nvvm.tcgen05.relinquish_alloc_permit",
    group=_GROUPS,
)
instruction(
    "tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 {a}, {b}",
    "nvvm.tcgen05.dealloc",
    group=_GROUPS,
)
instruction(
    "tcgen05.shift.cta_group::{group}.down {a:6}",
    "nvvm.tcgen05.shift",
    group=_GROUPS,
)
instruction(
    "tcgen05.fence::{kind}_thread_sync",
    "nvvm.tcgen05.fence",
    kind={f"#nvvm.tcgen05_fence<{name}>": name for name in ("before", "after")},
)
instruction(
    "tcgen05.wait::{kind}.sync.aligned",
    "nvvm.tcgen05.wait",
    kind={"#nvvm.tcgen05_wait<load>": "ld", "#nvvm.tcgen05_wait<store>": "st"},
)
instruction(
    "setmaxnreg.{action}.sync.aligned.u32 {regCount}",
    "nvvm.setmaxregister",
    action={"#nvvm<action increase>": "inc", "#nvvm<action decrease>": "dec"},
)


@spelling("nvvm.elect.sync")
def _elect(speller: Speller, op: ir.Operation) -> None:
    """Spells ``elect.sync`` (PTX ISA 9.7.13.14); without a mask, of all threads of the warp."""
    only(op)
    mask = speller.read_one(op.operands[0]) if len(op.operands) else "0xffffffff"
    leader = speller.fresh("b32")
    speller.emit(f"elect.sync {leader}|{speller.define_one(op.results[0])}, {mask}")


@spelling("nvvm.barrier")
def _barrier(speller: Speller, op: ir.Operation) -> None:
    """Spells ``bar.sync`` (PTX ISA 9.7.13.1)."""
    only(op, "aligned")
    expect(op, "aligned", "true")
    if len(op.operands) not in (0, 2):
        raise IncompleteError("no rule for a barrier of all threads other than barrier 0")
    chosen = ", ".join(speller.read_one(each) for each in op.operands)
    speller.emit(f"bar.sync {chosen or 0}")


@spelling("nvvm.fence.proxy")
def _fence_proxy(speller: Speller, op: ir.Operation) -> None:
    """Spells ``fence.proxy.async`` (PTX ISA 9.7.13.4)."""
    only(op, "kind", "space")
    kind = expect(op, "kind", "#nvvm.proxy_kind<async>", "#nvvm.proxy_kind<async.shared>")
    if "shared" in kind:
        expect(op, "space", "#nvvm.shared_space<cta>")
        speller.emit("fence.proxy.async.shared::cta")
    else:
        speller.emit("fence.proxy.async")


_SCOPES = {"": "", "#nvvm.mem_scope<cta>": "", "#nvvm.mem_scope<cluster>": ".cluster"}
"""Scope of an mbarrier operation -> PTX's qualifier; "" is the default, the CTA."""


def _order(op: ir.Operation, name: str) -> str:
    """Returns ``.acquire`` or ``.release`` with its scope; "" for the scope of the CTA."""
    only(op, "relaxed", "scope")
    expect(op, "relaxed", "false", "")
    scope = _SCOPES[expect(op, "scope", *_SCOPES)]
    return scope and f".{name}{scope}"


@spelling("nvvm.mapa")
def _mapa(speller: Speller, op: ir.Operation) -> None:
    """Spells ``mapa`` of a shared address (PTX ISA 9.7.9.24)."""
    only(op)
    pointer, rank = op.operands
    if (pointer_space(pointer.type), pointer_space(op.results[0].type)) != (3, 7):
        raise IncompleteError("no rule for mapa of an address that is not shared")
    target = speller.define_one(op.results[0])
    speller.emit(
        f"mapa.shared::cluster.u32 {target}, {speller.read_one(pointer)}, {speller.read_one(rank)}"
    )


@spelling("nvvm.mbarrier.arrive")
def _mbarrier_arrive(speller: Speller, op: ir.Operation) -> None:
    """Spells ``mbarrier.arrive`` (PTX ISA 9.7.13.15.13)."""
    order = _order(op, "release")
    if len(op.operands) != 1:
        raise IncompleteError("no rule for a count of arrivals")
    if pointer_space(op.operands[0].type) == 7:
        bar = address(speller, op.operands[0], 7)
        speller.emit(f"mbarrier.arrive{order}.shared::cluster.b64 _, {bar}")
        return
    state = speller.define_one(op.results[0]) if len(op.results) else speller.fresh("b64")
    bar = address(speller, op.operands[0], 3)
    speller.emit(f"mbarrier.arrive{order}.shared::cta.b64 {state}, {bar}")


@spelling("nvvm.mbarrier.arrive.expect_tx")
def _mbarrier_expect(speller: Speller, op: ir.Operation) -> None:
    """Spells ``mbarrier.arrive.expect_tx`` (PTX ISA 9.7.13.15.13)."""
    order = _order(op, "release")
    pointer, count = op.operands
    state = speller.define_one(op.results[0]) if len(op.results) else speller.fresh("b64")
    speller.emit(
        f"mbarrier.arrive.expect_tx{order}.shared::cta.b64 {state}, "
        f"{address(speller, pointer, 3)}, {speller.read_one(count)}"
    )


@spelling("nvvm.mbarrier.try_wait")
def _mbarrier_try_wait(speller: Speller, op: ir.Operation) -> None:
    """Spells ``mbarrier.try_wait`` (PTX ISA 9.7.13.15.16); an i32 operand is a parity, an i64 one a
    state."""
    order = _order(op, "acquire")
    if len(op.operands) != 2:
        raise IncompleteError("no rule for a time limit")
    pointer, phase = op.operands
    parity = ".parity" if str(phase.type) == "i32" else ""
    speller.emit(
        f"mbarrier.try_wait{parity}{order}.shared::cta.b64 {speller.define_one(op.results[0])}, "
        f"{address(speller, pointer, 3)}, {speller.read_one(phase)}"
    )


_TMA_MODES = {
    "tile": "tile", "tile_gather4": "tile::gather4", "im2col": "im2col",
    "im2col_w": "im2col::w", "im2col_w_128": "im2col::w::128",
}  # fmt: skip
"""NVVM's mode of a load with a rule -> PTX's mode."""


@spelling("nvvm.cp.async.bulk.tensor.shared.cluster.global")
def _tma_load(speller: Speller, op: ir.Operation) -> None:
    """Spells a ``cp.async.bulk.tensor`` load (PTX ISA 9.7.9.27.5.2).

    The target is shared memory of the executing CTA, named as such or in the cluster, or of the
    CTAs of a mask; in a pair, the mbarrier may be in the other CTA.
    """
    only(op, "group", "isCTAOnly", "mode")
    own = expect(op, "isCTAOnly", "true", "false") == "true"
    space, number = ("shared::cta", 3) if own else ("shared::cluster", 7)
    modes = {f"#nvvm.tma_load_mode<{name}>": ptx for name, ptx in _TMA_MODES.items()}
    name = modes[expect(op, "mode", *modes)]
    target, tensor_map, coords, bar, offsets, masks, policies, *rest = segments(op)
    if any(rest):
        raise IncompleteError("no rule for a predicate")
    place = ", ".join(speller.read_one(coordinate) for coordinate in coords)
    rank = 2 if name == "tile::gather4" else len(coords)
    group = f".{cta_group(op)}" if "group" in op.attributes else ""
    marks = f"{'.multicast::cluster' if masks else ''}{group}"
    marks += ".L2::cache_hint" if policies else ""
    text = (
        f"cp.async.bulk.tensor.{rank}d.{space}.global.{name}"
        f".mbarrier::complete_tx::bytes{marks} {address(speller, target[0], number)}, "
        f"[{speller.read_one(tensor_map[0])}, {{{place}}}], {address(speller, bar[0], 3)}"
    )
    if offsets:
        text += f", {{{', '.join(speller.read_one(offset) for offset in offsets)}}}"
    speller.emit(", ".join([text, *map(speller.read_one, [*masks, *policies])]))


def segments(op: ir.Operation) -> list[list[Any]]:
    """Returns the operands of an op, grouped by the fields of the op's definition."""
    operands, parts = list(op.operands), []
    for size in op.attributes["operandSegmentSizes"]:
        parts.append(operands[:size])
        del operands[:size]
    return parts


def cta_group(op: ir.Operation, name: str = "group") -> str:
    """Returns the qualifier ``cta_group::1`` or ``::2``."""
    return f"cta_group::{_GROUPS[expect(op, name, *_GROUPS)]}"


@spelling("nvvm.tcgen05.commit")
def _commit(speller: Speller, op: ir.Operation) -> None:
    """Spells ``tcgen05.commit`` (PTX ISA 9.7.16.12)."""
    only(op, "group")
    pointer, *masks = op.operands
    multicast = ".multicast::cluster" if masks else ""
    operands = [address(speller, pointer, 3), *(speller.read_one(mask) for mask in masks)]
    speller.emit(
        f"tcgen05.commit.{cta_group(op)}.mbarrier::arrive::one.shared::cluster{multicast}.b64 "
        + ", ".join(operands)
    )
