"""atom and red on shared and global memory (PTX ISA 9.7.13 "atom", "red")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tcir.interp.ptx.decode import VIEW_DTYPES, Decode, Op, rule, view
from tcir.interp.ptx.isa.floating import add_odd, decode_float, encode_float
from tcir.interp.ptx.isa.memory import addresses, check_aligned, load, store, take_space
from tcir.interp.ptx.warp import LANES, Warp

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, b: old + b,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, b: b,
    "inc": lambda old, b: np.where(old >= b, 0, old + 1),
    "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - 1),
}


def _float_add(name: str) -> Callable[[Any, Any], Any]:
    part = name.removesuffix("x2")
    width: Any = {"f32": np.uint32, "f16": np.uint16, "bf16": np.uint16, "f64": np.uint64}[part]

    def run(old: Any, b: Any) -> Any:
        x, y = (np.ascontiguousarray(v).view(width) for v in (old, b))
        total = add_odd(decode_float(x, part), decode_float(y, part))
        return encode_float(total, part).view(old.dtype)

    return run


def _atomic(d: Decode, returns: bool) -> Op:
    space = take_space(d)
    d.skip(
        "relaxed",
        "acquire",
        "release",
        "acq_rel",
        "cta",
        "cluster",
        "gpu",
        "sys",
        "noftz",
        "L2::cache_hint",
    )
    name = d.require(*_OPERATIONS, "cas")
    kind = d.type(
        "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f16", "bf16", "f16x2", "bf16x2", "b16"
    )
    d.done((2, 3, 4))
    floats = kind.kind == "f"
    if floats and name != "add":
        raise d.incomplete(f"no rule for .{name}.{kind.name}")
    n = view(f"u{8 * kind.size}") if floats else view(kind)
    dtype = VIEW_DTYPES[n]
    rest = d.operands[1:] if returns else d.operands
    slot, size, offset, _ = d.address(rest[0])
    b = d.src(rest[1], kind)
    c = d.src(rest[2], kind) if name == "cas" else None
    dst = d.dst(d.operands[0], kind) if returns else None
    combine = _float_add(kind.name) if floats else _OPERATIONS.get(name)
    site = d.site
    nbytes = kind.size

    def run(w: Warp, m: int) -> None:
        at = addresses(w, slot, size, offset, m, site)
        check_aligned(w, at, nbytes, site)
        needed = (b,) if c is None else (b, c)
        for s in needed:
            if w.undef[s] & m:
                w.read_undefined(site, needed, m)
        # Lanes go one after another: nothing else runs in between.
        for position, lane in enumerate(LANES[m]):
            here, one = at[position : position + 1], slice(lane, lane + 1)
            old = load(w, space, here, nbytes, LANES[m][position : position + 1], site, True)
            old = np.ascontiguousarray(old).view(dtype)[:, 0]
            operand = w.v[n][b][one]
            if combine is None:
                assert c is not None
                new = np.where(old == operand, w.v[n][c][one], old)
            else:
                new = combine(old, operand)
            data = np.ascontiguousarray(new, dtype=dtype).view(np.uint8).reshape(1, nbytes)
            store(w, space, here, data, LANES[m][position : position + 1], site, True)
            if dst is not None:
                w.v[n][dst][one] = old
        if dst is not None:
            w.undef[dst] &= ~m

    return d.plain(run)


@rule("atom")
def atom(d: Decode) -> Op:
    return _atomic(d, returns=True)


@rule("red")
def red(d: Decode) -> Op:
    return _atomic(d, returns=False)
