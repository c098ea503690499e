"""Branches and exits (PTX ISA 9.7.12)."""

from __future__ import annotations

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import BRANCH, EXIT, INDEXED, Op, no_effect
from tcir.interp.ptx.registers import view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Because, Symbol
from tcir.interp.ptx.warp import Warp


@instruction("bra")
def bra(d: Decode) -> Op:
    d.skip("uni")
    d.done(1)
    return d.jump(BRANCH, (d.label(d.operands[0]),))


@instruction("brx.idx")
def brx(d: Decode) -> Op:
    """Branches to the label that the index selects from a .branchtargets list."""
    d.skip("uni")
    d.done(2)
    u32 = TYPES["u32"]
    index = d.src(d.operands[0], u32)
    listed = d.operands[1]
    if not isinstance(listed, Symbol) or listed.name not in d.function.targets:
        raise d.malformed("expected the label of a .branchtargets list")
    targets = tuple(d.label(Symbol(name)) for name in d.function.targets[listed.name])
    n, site = view(u32), d.site

    def run(w: Warp, m: int) -> list[tuple[int, int]]:
        if w.undef[index] & m:
            w.read_undefined(site, (index,), m)
        groups: dict[int, int] = {}
        for lane in LANE_INDICES[m]:
            at = int(w.v[n][index][lane])
            if at >= len(targets):
                raise w.error(
                    "branch-index", f"expected an index below {len(targets)}, got {at}", site
                )
            groups[targets[at]] = groups.get(targets[at], 0) | 1 << int(lane)
        return sorted(groups.items())

    return d.jump(INDEXED, targets, run)


@instruction("call")
def call(d: Decode) -> Op:
    """Reports a call that `calls.inline_calls` could not replace as incomplete, with the reason."""
    (why,) = d.operands
    assert isinstance(why, Because)
    raise d.incomplete(why.text)


@instruction("ret", "exit")
def leave(d: Decode) -> Op:
    """`ret` of an entry function ends the thread like `exit`."""
    d.skip("uni")
    d.done(0)
    return d.op(EXIT, no_effect)


@instruction("trap")
def trap(d: Decode) -> Op:
    d.done(0)
    site = d.site

    def run(w: Warp, m: int) -> None:
        raise w.error("trap", f"expected no trap, got one in lanes {m:#010x}", site)

    return d.plain(run)


@instruction("brkpt", "pmevent")
def breakpoint_(d: Decode) -> Op:
    return d.plain(no_effect)
