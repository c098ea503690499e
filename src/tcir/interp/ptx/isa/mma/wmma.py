"""wmma.load, wmma.mma, wmma.store (PTX ISA 9.7.14.4): matrices of a warp in opaque fragments.

The ISA leaves open which register contains which element. Here a fragment consists of mma.sync
fragments side by side, in blocks of 8 columns. A program that depends on this order relies on
undocumented behaviour.
"""

from __future__ import annotations

import re

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.memory import (
    AccessTarget,
    addresses,
    check_aligned,
    load,
    store,
    stored,
    take_space,
)
from tcir.interp.ptx.isa.mma.mma_sync import (
    BITS,
    Matrices,
    MmaSyncForm,
    collective,
    dense,
    dense_spread,
    doubles,
    fragments_of,
    multiplied_by,
    registers_of,
)
from tcir.interp.ptx.isa.values.fragments import fragment_a, fragment_b, fragment_c
from tcir.interp.ptx.lanes import FULL, LANE_INDICES, LANE_MASK
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32, U64, VIEW_DTYPES, unsigned_view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Operand
from tcir.interp.ptx.warp import Warp

_WHOLE = ("m16n16k16", "m8n32k16", "m32n8k16")
_SHAPES = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), _WHOLE),
    "tf32": ("m16n16k8",),
    "f64": ("m8n8k4",),
    "b1": ("m8n8k128",),
    **dict.fromkeys(("s4", "u4"), ("m8n8k32",)),
}
"""By the type of A and B."""
_OF_SHAPE = {
    shape: tuple(a for a in _SHAPES if shape in _SHAPES[a])
    for shape in (*_WHOLE, "m16n16k8", "m8n8k4", "m8n8k128", "m8n8k32")
}
_F16_FACTOR = 8
"""Registers of A and of B in f16, whatever the shape."""
_SUMS = {"f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "f64": ("f64",)}


def _sizes(shape: str) -> tuple[int, int, int]:
    m, n, k = map(int, re.findall(r"\d+", shape))
    return m, n, k


class _Fragment:
    """One of the matrices: where its elements are, and how many registers they take."""

    def __init__(self, d: Decode, matrix: str) -> None:
        self.matrix, shape = matrix, d.require(*_OF_SHAPE)
        m, n, k = _sizes(shape)
        kinds = _OF_SHAPE[shape]
        sums = {c for a in kinds for c in _SUMS.get(a, ("s32",))}
        self.kind = d.require(*(kinds if matrix in "ab" else sorted(sums)))
        self.bits = BITS.get(self.kind, 32)
        if matrix == "a":
            self.rows, self.columns = fragment_a(self.bits, m, k)
        elif matrix == "b":
            self.rows, self.columns = fragment_b(self.bits, k, n)
        else:
            self.rows, self.columns = fragment_c(m, n)
        self.per = max(1, 32 // self.bits)
        self.type = TYPES["f64" if self.bits == 64 else "b32"]
        self.registers = len(self.rows) // self.per
        halves = matrix in "ab" and self.kind == "f16"
        self.copies = _F16_FACTOR // self.registers if halves else 1
        # neighbours along K in one access, where elements are smaller than a byte
        self.together = self.per if self.bits < 8 else 1
        self.leading = {"a": (k, m), "b": (n, k)}.get(matrix, (n, m))

    def places(self, start: int, stride: int, by_row: bool) -> np.ndarray:
        """Byte addresses of the elements of each access, [accesses, 32]."""
        major, minor = (self.rows, self.columns) if by_row else (self.columns, self.rows)
        return start + (major * stride + minor)[:: self.together] * self.bits // 8

    @property
    def nbytes(self) -> int:
        """Bytes of one access."""
        return self.bits * self.together // 8


class _Matrix:
    """A matrix in memory: its address, its stride in elements, its layout."""

    def __init__(
        self, d: Decode, address: Operand, fragment: _Fragment, by_row: bool, space: str
    ) -> None:
        self.place, self.fragment, self.by_row = (
            AccessTarget.of(d, address, space),
            fragment,
            by_row,
        )
        self.space = self.place.space
        self.stride = d.src(d.operands[2], TYPES["u32"]) if len(d.operands) == 3 else None
        if fragment.together > 1 and by_row != (fragment.matrix == "a"):
            raise d.malformed(
                f"expected A .row and B .col, got {fragment.matrix.upper()} "
                f"{'.row' if by_row else '.col'}: both elements of a byte have the same row of A, "
                "or column of B"
            )
        self.site = d.site

    def __call__(self, w: Warp) -> np.ndarray:
        """Addresses [accesses, 32]; all lanes must have the same operands."""
        at = addresses(w, self.place, FULL, self.site)
        stride = np.full(32, self.fragment.leading[0 if self.by_row else 1], np.uint32)
        if self.stride is not None:
            if w.undef[self.stride] & FULL:
                w.read_undefined(self.site, (self.stride,), FULL)
            stride = w.v[U32][self.stride]
        for name, values in (("address", at), ("stride", stride)):
            if (values != values[0]).any():
                raise w.error("not-uniform", f"expected the same {name} in all lanes", self.site)
        return self.fragment.places(int(at[0]), int(stride[0]), self.by_row)


def _layout(d: Decode) -> bool:
    return d.require("row", "col") == "row"


@instruction("wmma.load")
def load_matrix(d: Decode) -> Op:
    """`wmma.load.{a,b,c}.sync.aligned.layout.shape{.ss}.type r, [p] {, stride}`"""
    matrix = d.require("a", "b", "c")
    d.require("sync")
    d.require("aligned")
    by_row, space = _layout(d), take_space(d)
    fragment = _Fragment(d, matrix)
    d.done((2, 3))
    count = fragment.registers * fragment.copies
    targets = [d.dst(o, fragment.type) for o in d.vector(d.operands[0], count)]
    place, site = _Matrix(d, d.operands[1], fragment, by_row, space), d.site
    nbytes, lanes = fragment.nbytes, LANE_INDICES[FULL]
    code = VIEW_DTYPES[unsigned_view(nbytes)]
    view = U64 if fragment.bits == 64 else U32
    each = fragment.per // fragment.together

    def run(w: Warp, m: int) -> None:
        words = np.zeros((fragment.registers, 32), VIEW_DTYPES[view])
        for n, at in enumerate(place(w)):
            check_aligned(w, at, nbytes, site)
            data = load(w, place.space, at, nbytes, lanes, site)
            codes = np.ascontiguousarray(data).view(code).reshape(32).astype(words.dtype)
            words[n // each] |= codes << words.dtype.type(8 * nbytes * (n % each) % 64)
        for n, target in enumerate(targets):
            np.copyto(w.v[view][target], words[n % fragment.registers], where=LANE_MASK[m])
            w.undef[target] &= ~m

    return d.plain(run, aligned=True)


@instruction("wmma.store")
def store_matrix(d: Decode) -> Op:
    """`wmma.store.d.sync.aligned.layout.shape{.ss}.type [p], r {, stride}`"""
    d.require("d")
    d.require("sync")
    d.require("aligned")
    by_row, space = _layout(d), take_space(d)
    fragment = _Fragment(d, "d")
    d.done((2, 3))
    sources = [d.src(o, fragment.type) for o in d.vector(d.operands[1], fragment.registers)]
    place, site = _Matrix(d, d.operands[0], fragment, by_row, space), d.site
    nbytes, lanes, per = fragment.nbytes, LANE_INDICES[FULL], fragment.per
    view = U64 if fragment.bits == 64 else U32
    code = VIEW_DTYPES[unsigned_view(nbytes)]

    def run(w: Warp, m: int) -> None:
        for n, at in enumerate(place(w)):
            check_aligned(w, at, nbytes, site)
            source = sources[n // per]
            values = w.v[view][source] >> VIEW_DTYPES[view].type(8 * nbytes * (n % per) % 64)
            data = values.astype(code).view(np.uint8).reshape(32, nbytes)
            undefined = stored(w, [source], nbytes, FULL, site) if w.undef[source] & m else None
            store(w, place.space, at, data, lanes, site, undefined=undefined)

    return d.plain(run, aligned=True)


@instruction("wmma.mma")
def multiply(d: Decode) -> Op:
    """`wmma.mma{.op.popc}.sync.aligned.alayout.blayout.shape{.rnd}.types{.satfinite} d, a, b, c`

    For f16 products `.types` gives only the types of D and C.
    """
    operation = d.take("xor", "and") if d.take("popc") else None
    d.require("sync")
    d.require("aligned")
    layouts = [m for m in d.modifiers if m in ("row", "col")]
    d.modifiers = [m for m in d.modifiers if m not in ("row", "col")]
    shape = d.require(*_OF_SHAPE)
    mode = d.take("rn", "rz", "rm", "rp")
    saturate = d.take("satfinite") is not None
    names, d.modifiers = d.modifiers, []
    d.done(4)
    types = names if len(names) == 4 else [names[0], "f16", "f16", names[-1]] if names else []
    known = len(types) == 4 and types[1] in _OF_SHAPE[shape] and len(layouts) == 2
    if not known or {types[0], types[3]} - set(_SUMS.get(types[1], ("s32",))):
        raise d.malformed(f"expected two layouts and the types of {shape}, got {'.'.join(names)}")
    m, n, k = _sizes(shape)
    of_d, of_a, of_b, of_c = types
    if (of_a == "b1") != (operation is not None) or BITS[of_a] != BITS.get(of_b):
        raise d.malformed("expected operands of one width, .xor.popc or .and.popc with .b1 only")
    if of_d == "f16" and of_c == "f32":
        raise d.incomplete("no rule for C of f32 and D of f16: no document says how C is rounded")
    form = MmaSyncForm(m, k, of_d, of_a, of_b, of_c, saturate, (True, False), n)
    wide, bits = of_a == "f64", BITS[of_a]
    factors = [_F16_FACTOR if of_a == "f16" else registers_of(x * k, bits) for x in (m, n)]
    sums = [registers_of(m * n, BITS.get(each, 32)) for each in (of_d, of_c)]
    counts = [sums[0], *factors, sums[1]]
    targets, sources = fragments_of(d, counts, wide)
    products = m * n * k
    if wide:
        return collective(d, True, targets, sources, doubles(form, mode or "rn"), products)
    product = _widened(form, multiplied_by(d, form, operation))
    run, together = dense(form, product), of_a in ("f16", "bf16", "tf32")
    return collective(d, False, targets, sources, run, products, dense_spread(form), together)


def _widened(form: MmaSyncForm, product: Matrices) -> Matrices:
    """C of f16 for a D of f32."""
    if (form.d, form.c) != ("f32", "f16"):
        return product

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        values = c.astype(np.uint16).view(np.float16).astype(np.float32)
        return product(a, b, values.view(np.uint32))

    return run
