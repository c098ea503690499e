"""tcgen05.ld, st and wait: collective accesses to tensor memory (PTX ISA 9.7.16.8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.memory import stored
from tcir.interp.ptx.isa.tcgen05.operands import TmemAddress, collective
from tcir.interp.ptx.lanes import LANE_INDICES, LANE_MASK
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES
from tcir.interp.ptx.warp import Warp
from tcir.machine.memory.undefined import Undefined

_U32_TYPE = TYPES["u32"]
_SHAPES = ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2")
_COUNTS = ("x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128")


@dataclass(frozen=True)
class TmemAccess:
    """A tcgen05.ld or st of 32-bit registers."""

    address: TmemAddress
    shape: str
    count: int
    packed: bool
    split: int | None
    slots: tuple[int, ...]
    load: bool


def _access(d: Decode, packing: str) -> tuple[str, int, bool]:
    collective(d)
    shape, count = d.require(*_SHAPES), d.require(*_COUNTS)
    packed = d.take(packing) is not None
    d.require("b32")
    return shape, int(count[1:]), packed


_REGISTERS_PER_NUM = {"16x128b": 2, "16x256b": 4}


@instruction("tcgen05.ld")
def ld(d: Decode) -> Op:
    if d.take("red"):
        raise d.incomplete("tcgen05.ld.red is not an instruction of sm_100a")
    shape, count, packed = _access(d, "pack::16b")
    d.done(3 if shape == "16x32bx2" else 2)
    registers = count * _REGISTERS_PER_NUM.get(shape, 1)
    targets = [d.dst(o, _U32_TYPE) for o in d.vector(d.operands[0], registers)]
    address = TmemAddress(d, d.operands[1])
    split = d.immediate(d.operands[2]) if shape == "16x32bx2" else None
    site = d.site
    pending = dict.fromkeys(targets, site)

    def run(w: Warp, m: int) -> None:
        values, undefined = w.agent.tmem.read(
            address.uniform(w, m), shape, count, packed, split, site=site
        )
        v, where = w.v[U32], LANE_MASK[m]
        for target, row in zip(targets, values, strict=True):
            np.copyto(v[target], row, where=where)
        w.loaded(pending, m, undefined)

    op = d.plain(run, aligned=True)
    op.form = TmemAccess(address, shape, count, packed, split, tuple(targets), True)
    return op


@instruction("tcgen05.st")
def st(d: Decode) -> Op:
    shape, count, packed = _access(d, "unpack::16b")
    d.done(3 if shape == "16x32bx2" else 2)
    registers = count * _REGISTERS_PER_NUM.get(shape, 1)
    address = TmemAddress(d, d.operands[0])
    split = d.immediate(d.operands[1]) if shape == "16x32bx2" else None
    sources = tuple(d.src(o, _U32_TYPE) for o in d.vector(d.operands[-1], registers))
    site = d.site

    def run(w: Warp, m: int) -> None:
        undefined = None
        if any(w.undef[source] & m for source in sources):
            undefined = stored(w, sources, 4, m, site)
        if undefined is not None:  # by register, lane and byte
            where = np.zeros((32, len(sources), 4), bool)
            where[LANE_INDICES[m]] = undefined.where.reshape(-1, len(sources), 4)
            undefined = Undefined(where.transpose(1, 0, 2), undefined.origin)
        data = np.stack([w.v[U32][source] for source in sources])
        w.agent.tmem.st(
            address.uniform(w, m), shape=shape, num=count, data=data, unpack=packed,
            half_split=split, undefined=undefined, site=site,
        )  # fmt: skip

    op = d.plain(run, aligned=True)
    op.form = TmemAccess(address, shape, count, packed, split, sources, False)
    return op


@instruction("tcgen05.wait::ld", "tcgen05.wait::st")
def wait(d: Decode) -> Op:
    collective(d)
    d.done(0)
    which, site = d.name[-2:], d.site

    def run(w: Warp, m: int) -> None:
        w.agent.tmem.wait(which, site=site)
        if which == "ld" and w.pending:
            w.awaited()

    return d.plain(run, aligned=True)
