"""Warpgroups.

Ops that redistribute registers among warpgroups, and ops of Hopper's tensor core, which multiplies
tiles in shared memory for a warpgroup and leaves the sums in the warpgroup's registers.

A fragment of C has the layout of mma.sync: with ``tc.warps = array<i64: 4 * g, 1>`` a warp has 16
of the 64 rows of its warpgroup, in the registers in which wgmma leaves them (PTX ISA 9.7.15.5.1.1).
"""

from collections.abc import Sequence
from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer, integers, not_arrays
from tcir.dialect.fragments import accumulator_type
from tcir.dialect.limits import (
    FP8,
    MMA_K_BYTES,
    SETMAXNREG,
    WGMMA_M,
    WGMMA_N,
    WGMMA_N_INTEGERS,
    WGMMA_PENDING,
    Legal,
)
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, same_rules, unsigned_problem, verify
from tcir.dialect.types import SmemType, element_bytes
from tcir.dialect.warp_types import FragmentType

_TRANSPOSED_BYTES = 2


def columns_of(element: ir.Type) -> Legal:
    """Legal N of one wgmma instruction for operands of this element type."""
    return WGMMA_N_INTEGERS if str(element) == "i8" else WGMMA_N


class WgmmaOp(
    Op,
    name="wgmma",
    issued_by="warp",
    role="consumer",
    reads_shared=("a", "b"),
    completed_by="tc.wgmma_wait",
):
    """``wgmma.mma_async``: computes ``d = a * b^T + c`` for whole tiles; each warpgroup has 64 rows
    of A.

    The op is one wgmma group: ``wgmma.fence``, an instruction for every 32 bytes of K, and
    ``commit_group``. In a ``tc.async`` kernel the registers of C and the tiles belong to the
    hardware until a ``tc.wgmma_wait`` (PTX ISA 9.7.15). i8 is signed unless ``unsigned``,
    ``array<i64: a, b>``, has a 1 for its operand. Numerics: `docs/explanation/numerics.md`.
    """

    example = """
    !a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
    !b = !tc.smem<array<i64: 256, 64>, f16, "MN", "128B">
    !c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
    func.func @example(%a: !a, %b: !b, %c: !c) {
      %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !c
      return
    }
    """

    a: ext.Operand[SmemType]
    b: ext.Operand[SmemType]
    c: ext.Operand[FragmentType]
    d: ext.Result[FragmentType]


class WgmmaTapsOp(
    Op,
    name="wgmma_taps",
    issued_by="warp",
    role="consumer",
    reads_shared=("a", "b"),
    completed_by="tc.wgmma_wait",
):
    """`tc.wgmma` of several pairs of tiles as one wgmma group: ``d = a[0] * b[0]^T + a[1] * b[1]^T
    … + c``.

    Tile t of A is read from row ``rows[t]`` on, so the taps of a filter can read one tile of
    pixels, each from a different first row. The descriptor's start address moves by whole rows, and
    its base offset stays 0: an H200 takes the swizzle from the address that it reads, so a start
    need not be a multiple of the pattern (PTX ISA 9.7.15.5.1.2, docs/explanation/hopper.md).
    The tiles are K-major with a swizzle, because the rows of such tiles are all the same distance
    apart.
    """

    example = """
    !a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
    !b = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
    !c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
    func.func @example(%a: !a, %b0: !b, %b1: !b, %c: !c) {
      %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 1>,
          operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !c
      return
    }
    """

    a: Sequence[ext.Operand[SmemType]]
    b: Sequence[ext.Operand[SmemType]]
    c: ext.Operand[FragmentType]
    rows: Any
    d: ext.Result[FragmentType]


class WgmmaProductOp(
    Op,
    name="wgmma_product",
    issued_by="warp",
    role="consumer",
    reads_shared=("a", "b"),
    completed_by="tc.wgmma_wait",
):
    """``d = a * b^T``: a `tc.wgmma` without an accumulator, for sums that are added elsewhere.

    Its first instruction has a false scale-d, so no register of D is read (PTX ISA 9.7.15.5). For
    operands of e4m3 and e5m2 wgmma keeps only 13 bits of a sum; a `tc.add_fragment` in f32 after
    every tile keeps 24 bits.
    """

    example = """
    !a = !tc.smem<array<i64: 128, 128>, f8E4M3FN, "K", "128B">
    !b = !tc.smem<array<i64: 128, 128>, f8E5M2, "K", "128B">
    !c = !tc.fragment<array<i64: 128, 128>, f32, "C", "mma.m16n8k32.b8">
    func.func @example(%a: !a, %b: !b) {
      %d = "tc.wgmma_product"(%a, %b) : (!a, !b) -> !c
      return
    }
    """

    a: ext.Operand[SmemType]
    b: ext.Operand[SmemType]
    d: ext.Result[FragmentType]


class WgmmaFragmentOp(
    Op,
    name="wgmma_fragment",
    issued_by="warp",
    role="consumer",
    reads_shared=("b",),
    completed_by="tc.wgmma_wait",
):
    """Computes ``d = a * b^T + c`` as `tc.wgmma` does, but with A in registers: one instruction for
    each 32 bytes of a row of A.

    Until a ``tc.wgmma_wait`` the registers of A also belong to the hardware (PTX ISA 9.7.15.5).
    """

    example = """
    !a = !tc.fragment<array<i64: 128, 128>, f16, "A", "mma.m16n8k16.f16">
    !b = !tc.smem<array<i64: 64, 128>, f16, "MN", "128B">
    !c = !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">
    func.func @example(%a: !a, %b: !b, %c: !c) {
      %d = "tc.wgmma_fragment"(%a, %b, %c) : (!a, !b, !c) -> !c
      return
    }
    """

    a: ext.Operand[FragmentType]
    b: ext.Operand[SmemType]
    c: ext.Operand[FragmentType]
    d: ext.Result[FragmentType]


class WgmmaFragmentProductOp(
    Op,
    name="wgmma_fragment_product",
    issued_by="warp",
    role="consumer",
    reads_shared=("b",),
    completed_by="tc.wgmma_wait",
):
    """Computes ``d = a * b^T`` with A in registers. It is a `tc.wgmma_fragment` without an
    accumulator, for sums that are added elsewhere, as with `tc.wgmma_product` (PTX ISA 9.7.15.5).
    """

    example = """
    !a = !tc.fragment<array<i64: 128, 128>, f8E4M3FN, "A", "mma.m16n8k32.b8">
    !b = !tc.smem<array<i64: 64, 128>, f8E5M2, "K", "128B">
    !c = !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k32.b8">
    func.func @example(%a: !a, %b: !b) {
      %d = "tc.wgmma_fragment_product"(%a, %b) : (!a, !b) -> !c
      return
    }
    """

    a: ext.Operand[FragmentType]
    b: ext.Operand[SmemType]
    d: ext.Result[FragmentType]


FRAGMENT_PRODUCTS = (WgmmaFragmentOp, WgmmaFragmentProductOp)
"""Products whose A is in registers."""
WGMMA_OPS = (WgmmaOp, WgmmaProductOp, WgmmaTapsOp, *FRAGMENT_PRODUCTS)
"""Ops of ``wgmma.mma_async``."""


class WgmmaWaitOp(Op, name="wgmma_wait", issued_by="warp", role="consumer", async_only=True):
    """``wgmma.wait_group``: waits until all but the last ``pending`` groups of the warpgroup are
    complete.

    Its result is the accumulator, which may be read if no group is pending; the tiles that the
    complete groups read may be overwritten (PTX ISA 9.7.15.7.3).
    """

    example = """
    !c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
    func.func @example(%d: !c) {
      %e = "tc.wgmma_wait"(%d) {pending = 0 : i64} : (!c) -> !c
      return
    }
    """

    d: ext.Operand[FragmentType]
    pending: ir.IntegerAttr
    e: ext.Result[FragmentType]


@verify(
    WgmmaOp,
    "operands",
    "PTX ISA 9.7.15.5",
    "expected a fragment of C and a result like it, got {c} and {d}: wgmma adds to the registers "
    "that it reads",
    bad={"-> !c": '-> !tc.fragment<array<i64: 128, 256>, i32, "C", "mma.m16n8k32.b8">'},
)
def _(op: WgmmaOp) -> Broken:
    if op.c.type.operand == "C" and op.c.type == op.d.type:
        return None
    return {"c": op.c.type, "d": op.d.type}


@verify(
    WgmmaProductOp,
    "result",
    "PTX ISA 9.7.15.5",
    "expected a fragment of C as result, got {d}: wgmma writes sums",
    bad={'"C"': '"A"'},
)
def _(op: WgmmaProductOp) -> Broken:
    return None if op.d.type.operand == "C" else {"d": op.d.type}


@verify(
    WgmmaOp,
    "shapes",
    "PTX ISA 9.7.15.2",
    "expected A [m, k], B [n, k] and C [m, n] with m a multiple of {m} (a warpgroup's rows), n "
    "{n}, and k of whole instructions of {k} elements (32 bytes), got {got}",
    bad=(
        {"array<i64: 256, 64>": "array<i64: 256, 32>"},
        {
            'array<i64: 128, 64>, f16, "K"': 'array<i64: 64, 128>, i8, "K"',
            'array<i64: 256, 64>, f16, "MN"': 'array<i64: 40, 128>, i8, "K"',
            '128, 256>, f32, "C", "mma.m16n8k16.f16"': '64, 40>, i32, "C", "mma.m16n8k32.b8"',
        },
    ),
    good={
        "array<i64: 128, 64>": "array<i64: 128, 32>",
        "array<i64: 256, 64>": "array<i64: 256, 32>",
    },
)
def _(op: WgmmaOp | WgmmaProductOp) -> Broken:
    a, b, c = (v.type.shape for v in (op.a, op.b, op.d))
    step = MMA_K_BYTES // element_bytes(op.a.type.element)
    fits = a[1] == b[1] and c == [a[0], b[0]] and a[1] % step == 0
    legal = columns_of(op.a.type.element)
    if fits and a[0] % WGMMA_M == 0 and b[0] in legal:
        return None
    return {"m": WGMMA_M, "n": legal, "k": step, "got": f"{a}, {b} and {c}"}


@verify(
    WgmmaOp,
    "types",
    "PTX ISA 9.7.15.2",
    "expected element types of wgmma with an accumulator of {want}, got {a} x {b} -> {c}: f16, "
    "bf16, f32 (as tf32) and i8 are not mixed, e4m3 and e5m2 are",
    bad={"array<i64: 256, 64>, f16": "array<i64: 256, 64>, bf16"},
    good={"array<i64: 128, 64>, f16": "array<i64: 128, 64>, f8E4M3FN", 'f16, "MN"': 'f8E5M2, "K"'},
)
def _(op: WgmmaOp | WgmmaProductOp) -> Broken:
    a, b, c = (str(v.type.element) for v in (op.a, op.b, op.d))
    want = accumulator_type(a)
    mixed = a == b or (a.startswith("f8") and b.startswith("f8"))
    if mixed and c == want:
        return None
    return {"want": want, "a": a, "b": b, "c": c}


@verify(
    WgmmaOp,
    "major",
    "PTX ISA 9.7.15.5.1.2",
    "expected K-major tiles of {element}, got {got}: wgmma transposes elements of 16 bits only; "
    "store the operand with K innermost",
    bad={"f16": "f32", '"MN", "128B"': '"MN", "128B_ATOM_32B"'},
)
def _(op: WgmmaOp | WgmmaProductOp) -> Broken:
    element, got = op.a.type.element, [v.type.major for v in (op.a, op.b)]
    if got == ["K", "K"] or element_bytes(element) == _TRANSPOSED_BYTES:
        return None
    return {"element": element, "got": " and ".join(got)}


@verify(
    WgmmaOp,
    "unsigned",
    "PTX ISA 9.7.15.2",
    "unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got {got} on {element}: only "
    "integers come unsigned",
    bad={"%c)": "%c) {unsigned = array<i64: 1, 0>}"},
    good={
        "array<i64: 128, 64>, f16": "array<i64: 128, 64>, i8",
        'f16, "MN"': 'i8, "K"',
        "f32": "i32",
        "%c)": "%c) {unsigned = array<i64: 1, 0>}",
    },
)
def _(op: WgmmaOp | WgmmaProductOp) -> Broken:
    return unsigned_problem(op, str(op.a.type.element))


same_rules(
    WgmmaProductOp,
    WgmmaOp,
    {
        "shapes": {"!b = !tc.smem<array<i64: 128, 128>": "!b = !tc.smem<array<i64: 40, 128>"},
        "types": {"f8E5M2": "i8"},
        "major": {
            '!b = !tc.smem<array<i64: 128, 128>, f8E5M2, "K"': (
                '!b = !tc.smem<array<i64: 128, 128>, f8E5M2, "MN"'
            )
        },
        "unsigned": {"%b)": "%b) {unsigned = array<i64: 1, 0>}"},
    },
    {
        "shapes": {
            "!b = !tc.smem<array<i64: 128, 128>": "!b = !tc.smem<array<i64: 256, 128>",
            "tc.fragment<array<i64: 128, 128>": "tc.fragment<array<i64: 128, 256>",
        },
        "types": {"f8E4M3FN": "f16", "f8E5M2": "f16"},
        "unsigned": {
            "f8E4M3FN": "i8",
            "f8E5M2": "i8",
            "f32": "i32",
            "%b)": "%b) {unsigned = array<i64: 0, 1>}",
        },
    },
)


@verify(
    WgmmaTapsOp,
    "operands",
    "PTX ISA 9.7.15.5",
    "expected as many tiles of A as of B and rows, at least one, all of A and all of B of one "
    "type, and a fragment of C with a result like it, got {a}, {b}, {rows}, {c} and {d}",
    bad={"rows = array<i64: 0, 1>": "rows = array<i64: 0>"},
    good={"rows = array<i64: 0, 1>": "rows = array<i64: 0, 8>"},
)
def _(op: WgmmaTapsOp) -> Broken:
    a, b = ([v.type for v in each] for each in (op.a, op.b))
    arrays = not_arrays(op, rows=len(a)) is None
    alike = len(set(a)) == len(set(b)) == 1 and len(a) == len(b)
    if arrays and alike and op.c.type.operand == "C" and op.c.type == op.d.type:
        return None
    named = {name: ", ".join(map(str, types)) or "none" for name, types in (("a", a), ("b", b))}
    return named | {"rows": op.attributes["rows"], "c": op.c.type, "d": op.d.type}


@verify(
    WgmmaTapsOp,
    "a",
    "PTX ISA 9.7.15.5.1.2, docs/explanation/hopper.md",
    "expected tiles of A that are K-major in one column of a swizzle, got {got}: the rows of "
    "several columns, or of an MN-major tile, are not all the same distance apart",
    bad=(
        {"array<i64: 136, 64>": "array<i64: 136, 32>", '"128B"': '"NONE"'},
        {"array<i64: 136, 64>": "array<i64: 192, 64>", '"K"': '"MN"'},
        {"array<i64: 136, 64>": "array<i64: 136, 128>"},
    ),
    good={"array<i64: 136, 64>": "array<i64: 136, 32>", "array<i64: 32, 64>": "array<i64: 32, 32>"},
)
def _(op: WgmmaTapsOp) -> Broken:
    kind = op.a[0].type
    one = kind.shape[1] * element_bytes(kind.element) <= kind.span
    fits = kind.major == "K" and kind.swizzle in ("32B", "64B", "128B") and one
    return None if fits else {"got": kind}


@verify(
    WgmmaTapsOp,
    "shapes",
    "PTX ISA 9.7.15.2",
    "expected A [rows, k], B [n, k] and C [m, n] with m a multiple of {m} (a warpgroup's rows), n "
    "{n}, k of whole instructions of {k} elements (32 bytes), and m rows of A from each of {first} "
    "on, got {got}",
    bad=(
        {"rows = array<i64: 0, 1>": "rows = array<i64: 0, 9>"},
        {
            "array<i64: 32, 64>": "array<i64: 40, 64>",
            "rows = array<i64: 0, 1>": "rows = array<i64: 0, 8>",
        },
    ),
    good=(
        {"rows = array<i64: 0, 1>": "rows = array<i64: 0, 8>"},
        {"rows = array<i64: 0, 1>": "rows = array<i64: 8, 0>"},
    ),
)
def _(op: WgmmaTapsOp) -> Broken:
    a, b, c = (v.type.shape for v in (op.a[0], op.b[0], op.c))
    element, rows = op.a[0].type.element, integers(op, "rows")
    step, legal = MMA_K_BYTES // element_bytes(element), columns_of(element)
    fits = a[1] == b[1] and c[1] == b[0] and a[1] % step == 0 and c[0] % WGMMA_M == 0
    if fits and b[0] in legal and min(rows) >= 0 and max(rows) + c[0] <= a[0]:
        return None
    got = f"{a}, {b} and {c}"
    return {"m": WGMMA_M, "n": legal, "k": step, "first": rows, "got": got}


@verify(
    WgmmaTapsOp,
    "types",
    "PTX ISA 9.7.15.2",
    "expected f16, bf16, f32 (as tf32) or i8, not mixed, with an accumulator of {want}, got {a} x "
    "{b} -> {c}",
    bad={"array<i64: 32, 64>, f16": "array<i64: 32, 64>, bf16"},
)
def _(op: WgmmaTapsOp) -> Broken:
    a, b, c = (str(v.type.element) for v in (op.a[0], op.b[0], op.c))
    want = accumulator_type(a)
    return None if a == b and c == want else {"want": want, "a": a, "b": b, "c": c}


@verify(
    WgmmaTapsOp,
    "major",
    "PTX ISA 9.7.15.5.1.2",
    "expected K-major tiles of B of {element}, got {got}: wgmma transposes elements of 16 bits "
    "only; store the operand with K innermost",
    bad={
        "64>, f16": "32>, f32",
        'i64: 32, 64>, f16, "K", "128B"': 'i64: 32, 32>, f32, "MN", "128B_ATOM_32B"',
    },
    good={"i64: 136, 64>, f16": "i64: 136, 32>, f32", "i64: 32, 64>, f16": "i64: 32, 32>, f32"},
)
def _(op: WgmmaTapsOp) -> Broken:
    element, got = op.a[0].type.element, op.b[0].type.major
    if got == "K" or element_bytes(element) == _TRANSPOSED_BYTES:
        return None
    return {"element": element, "got": got}


@verify(
    WgmmaTapsOp,
    "unsigned",
    "PTX ISA 9.7.15.2",
    "unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got {got} on {element}: only "
    "integers come unsigned",
    bad={"rows = array<i64: 0, 1>": "rows = array<i64: 0, 1>, unsigned = array<i64: 1, 0>"},
    good={
        "array<i64: 136, 64>, f16": "array<i64: 136, 64>, i8",
        "array<i64: 32, 64>, f16": "array<i64: 32, 64>, i8",
        "f32": "i32",
        "rows = array<i64: 0, 1>": "rows = array<i64: 0, 8>, unsigned = array<i64: 1, 0>",
    },
)
def _(op: WgmmaTapsOp) -> Broken:
    return unsigned_problem(op, str(op.a[0].type.element))


@verify(
    WgmmaWaitOp,
    "pending",
    "PTX ISA 9.7.15.7.3",
    "pending must be {legal}, got {got}: it is the number of groups that may be incomplete",
    bad={"pending = 0": "pending = 8"},
    good={"pending = 0": "pending = 7"},
)
def _(op: WgmmaWaitOp) -> Broken:
    got = integer(op, "pending")
    return None if got in WGMMA_PENDING else {"legal": WGMMA_PENDING, "got": got}


@verify(
    WgmmaWaitOp,
    "operands",
    "PTX ISA 9.7.15.7.3",
    "expected a result like the fragment waited for, got {d} and {e}",
    bad={"-> !c": '-> !tc.fragment<array<i64: 128, 256>, i32, "C", "mma.m16n8k32.b8">'},
)
def _(op: WgmmaWaitOp) -> Broken:
    d, e = op.d.type, op.e.type
    return None if d == e else {"d": d, "e": e}


class WarpgroupRegistersOp(Op, name="warpgroup_registers", issued_by="cta", async_only=True):
    """``setmaxnreg``: from here on each thread of warpgroup n (warps 4n to 4n + 3) has
    ``registers[n]`` registers.

    The kernel is launched with as many registers as fit on the SM (``.maxnreg``). Warpgroups with
    smaller shares give back the registers that warpgroups with larger shares take (PTX ISA 9.7.19,
    setmaxnreg).
    """

    example = """
    func.func @example() {
      "tc.warpgroup_registers"() {registers = array<i64: 232, 232, 40>} : () -> ()
      return
    }
    """
    form = "{registers}"

    registers: Any


@verify(
    WarpgroupRegistersOp,
    "registers",
    SETMAXNREG.source,
    "registers must be a non-empty array<i64> of counts that are {legal}, got {got}",
    bad={"registers = array<i64: 232, 232, 40>": "registers = array<i64: 232, 20>"},
    good={"registers = array<i64: 232, 232, 40>": "registers = array<i64: 232, 256>"},
)
def _(op: WarpgroupRegistersOp) -> Broken:
    got = not_arrays(op, registers=None)
    if got is None:
        counts = integers(op, "registers")
        if counts and all(count in SETMAXNREG for count in counts):
            return None
    return {"legal": SETMAXNREG, "got": got or op.attributes["registers"]}


@verify(
    WgmmaFragmentOp,
    "operands",
    "PTX ISA 9.7.15.5",
    "expected fragments of A, of C and a result like it, got {a}, {c} and {d}: wgmma adds to the "
    "registers that it reads",
    bad={"(%a, %b, %c)": "(%c, %b, %c)", "(!a, !b, !c)": "(!c, !b, !c)"},
)
def _(op: WgmmaFragmentOp) -> Broken:
    a, c, d = op.a.type, op.c.type, op.d.type
    return None if a.operand == "A" and c.operand == "C" and c == d else {"a": a, "c": c, "d": d}


@verify(
    WgmmaFragmentProductOp,
    "operands",
    "PTX ISA 9.7.15.5",
    "expected a fragment of A, and one of C as result, got {a} and {d}: wgmma writes sums",
    bad={'"C"': '"A"'},
)
def _(op: WgmmaFragmentProductOp) -> Broken:
    a, d = op.a.type, op.d.type
    return None if a.operand == "A" and d.operand == "C" else {"a": a, "d": d}


@verify(
    WgmmaFragmentOp,
    "shapes",
    "PTX ISA 9.7.15.2",
    "expected A [m, k], B [n, k] of one type of 16 bits, or of e4m3 and e5m2 with B K-major, and C "
    "[m, n] with m a multiple of {m} (a warpgroup's rows), n {n}, and k of whole instructions of "
    "{k} elements, got {got}",
    bad=(
        {"!b = !tc.smem<array<i64: 64, 128>": "!b = !tc.smem<array<i64: 64, 64>"},
        {"128, 128>, f16": "128, 128>, bf16"},
    ),
    good={"128, 128>, f16": "128, 128>, bf16", "64, 128>, f16": "64, 128>, bf16"},
)
def _(op: WgmmaFragmentOp | WgmmaFragmentProductOp) -> Broken:
    a, b, c = op.a.type, op.b.type, op.d.type
    step = MMA_K_BYTES // element_bytes(b.element)
    fits = a.shape[1] == b.shape[1] and c.shape == [a.shape[0], b.shape[0]]
    narrow = {str(a.element), str(b.element)} <= set(FP8) and b.major == "K"
    types = narrow or (a.element == b.element and str(b.element) in ("f16", "bf16"))
    if (
        fits
        and types
        and a.shape[0] % WGMMA_M == 0
        and b.shape[0] in WGMMA_N
        and a.shape[1] % step == 0
    ):
        return None
    return {"m": WGMMA_M, "n": WGMMA_N, "k": step, "got": f"{a}, {b} and {c}"}


same_rules(
    WgmmaFragmentProductOp,
    WgmmaFragmentOp,
    {"shapes": {'f8E5M2, "K"': 'f8E5M2, "MN"'}},
    {"shapes": {"f8E5M2": "f8E4M3FN"}},
)
