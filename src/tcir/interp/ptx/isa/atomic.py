"""atom and red on shared and global memory (PTX ISA 9.7.13 "atom", "red")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.memory import (
    AccessTarget,
    addresses,
    check_aligned,
    load,
    store,
    take_space,
)
from tcir.interp.ptx.isa.values.rounding import add_odd, decode_float, encode_float, minmax_bits
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import VIEW_DTYPES, unsigned_view, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import Type
from tcir.interp.ptx.warp import Warp
from tcir.machine.order.distinct import distinct
from tcir.machine.order.strong import Strong

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""New value from old value and operand."""

OPERATIONS: dict[str, Combine] = {
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


def _float_add(name: str) -> Combine:
    part = name.removesuffix("x2")
    width = {"f32": np.uint32, "f16": np.uint16, "bf16": np.uint16, "f64": np.uint64}[part]

    def run(old: np.ndarray, b: np.ndarray) -> np.ndarray:
        x, y = (np.ascontiguousarray(v).view(width) for v in (old, b))
        total = add_odd(decode_float(x, part), decode_float(y, part))
        return encode_float(total, part).view(old.dtype)

    return run


def _float_extreme(name: str, largest: bool) -> Combine:
    part = name.removesuffix("x2")

    def run(old: np.ndarray, b: np.ndarray) -> np.ndarray:
        x, y = (np.ascontiguousarray(v).view(np.uint16) for v in (old, b))
        return minmax_bits(x, y, part, largest, False).view(old.dtype)

    return run


def combination(d: Decode, name: str, kind: Type) -> Combine | None:
    """Function that computes the new value from the old value and the operand; None for cas, which
    has two operands.
    """
    if kind.kind != "f":
        return OPERATIONS.get(name)
    if name == "add":
        return _float_add(kind.name)
    if name in ("min", "max") and kind.name not in ("f32", "f64"):
        return _float_extreme(kind.name, name == "max")
    raise d.incomplete(f"no rule for .{name}.{kind.name}")


def _atomic(d: Decode, returns: bool) -> Op:
    space = take_space(d)
    order = d.take("relaxed", "acquire", "release", "acq_rel")
    d.skip("noftz", "L2::cache_hint")
    scope = d.take("cta", "cluster", "gpu", "sys") or "gpu"
    name = d.require(*OPERATIONS, "cas")
    lanes_of_vector = d.take("v2", "v4", "v8")
    count = int(lanes_of_vector[1:]) if lanes_of_vector else 1
    kind = d.type(
        "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2",
        "b16", "b128",
    )  # fmt: skip
    d.done((2, 3, 4))
    strong = Strong(
        scope,
        kind.size,
        acquire=order in ("acquire", "acq_rel"),
        release=order in ("release", "acq_rel"),
        atomic=True,
        observes=returns,
        counts=returns and name in ("add", "inc"),
    )
    if count > 1 and kind.kind != "f":
        raise d.malformed(f".v{count} goes with float types only")
    if kind.size == 16 and (name not in ("exch", "cas") or not returns):
        raise d.malformed(f"expected .exch or .cas of atom with .b128, got .{name}")
    combine = combination(d, name, kind)
    n = unsigned_view(kind.size) if kind.kind == "f" else view(kind)
    dtype = VIEW_DTYPES[n]
    rest = d.operands[1:] if returns else d.operands
    place = AccessTarget.of(d, rest[0], space)
    space = place.space
    operands = [d.src(o, kind) for o in d.vector(rest[1], count)]
    c = d.src(rest[2], kind) if name == "cas" else None
    targets = [d.dst(o, kind) for o in d.vector(d.operands[0], count)] if returns else []
    needed = (*operands, *(() if c is None else (c,)))
    site = d.site
    nbytes = kind.size * count

    def run(w: Warp, m: int) -> None:
        at = addresses(w, place, m, site)
        check_aligned(w, at, nbytes, site)
        for s in needed:
            if w.undef[s] & m:
                w.read_undefined(site, needed, m)
        lanes = LANE_INDICES[m]
        # Lanes that share an address go one after another: nothing else runs in between.
        apart = len(distinct(at)) == len(at)
        groups = [slice(None)] if apart else [slice(i, i + 1) for i in range(len(at))]
        for group in groups:
            who = lanes[group]
            old = load(w, space, at[group], nbytes, who, site, strong)
            old = np.ascontiguousarray(old).view(dtype)
            wrote: slice | np.ndarray = slice(None)
            operand = np.stack([w.v[n][s][who] for s in operands], axis=1)
            if combine is None:
                assert c is not None
                same = (_bytes(old) == _bytes(operand)).all(axis=-1)
                new = np.where(same, w.v[n][c][who][:, None], old)
                wrote = same.all(axis=1)  # a cas that fails only reads
            else:
                new = combine(old, operand)
            data = np.ascontiguousarray(new, dtype=dtype).view(np.uint8).reshape(-1, nbytes)
            if data[wrote].size:
                store(w, space, at[group][wrote], data[wrote], who[wrote], site, strong)
            for column, target in enumerate(targets):
                w.v[n][target][who] = old[:, column]
        for target in targets:
            w.undef[target] &= ~m

    return d.plain(run)


def _bytes(values: np.ndarray) -> np.ndarray:
    """uint8 [..., size]."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, -1)


@instruction("atom")
def atom(d: Decode) -> Op:
    return _atomic(d, returns=True)


@instruction("red")
def red(d: Decode) -> Op:
    return _atomic(d, returns=False)
