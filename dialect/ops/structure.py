"""Roles."""

from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integers, not_arrays, string
from tcir.dialect.limits import BLOCK_THREADS, WARP
from tcir.dialect.operation import Issuer, Op, traits_of
from tcir.dialect.rules import Broken, one_of, verify
from tcir.dialect.walk import nested
from tcir.dialect.warp_map import role_kinds


class RoleOp(Op, name="role", traits=[ir.NoTerminatorTrait], async_only=True):
    """The part of a kernel executed by the warps in ``warps``; ``kind`` names it.

    ``threads`` is ``"one"`` (one elected thread of the warp executes it) or ``"warp"``. The block
    argument is the position of the executing warp in the list ``warps``, from 0. Roles of one
    kernel run concurrently; values of the enclosing function may be used inside. Only the leader of
    a CTA pair executes a role with ``leader``.
    """

    example = """
    func.func @example(%done: !tc.mbarrier) {
      "tc.role"() ({
      ^bb0(%position: index):
        "tc.commit"(%done) : (!tc.mbarrier) -> ()
      }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
      return
    }
    """
    form = "{kind} warps={warps} threads={threads}"

    kind: ir.StringAttr
    warps: Any
    threads: ir.StringAttr
    body: ext.Region


class OneThreadOp(Op, name="one_thread", traits=[ir.NoTerminatorTrait]):
    """One thread of the CTA executes the body, for example TMA loads in a main loop; the other
    threads skip it.

    The op is for kernels without roles, where all warps run the same program. Values of the
    enclosing function may be used inside.
    """

    example = """
    !tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
    func.func @example(%x: memref<256x512xf16>, %k: index, %m: index, %tile: !tile,
                       %full: !tc.mbarrier) {
      %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 512, 256>,
          strides = array<i64: 1024>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>,
          corners = array<i64>, swizzle = "128B"} : (memref<256x512xf16>) -> !tc.tensor_map
      "tc.one_thread"() ({
        "tc.mbarrier_expect_tx"(%full) {nbytes = 16384 : i64} : (!tc.mbarrier) -> ()
        "tc.tma_load"(%map, %k, %m, %tile, %full) {row = 0 : i64, nbytes = 16384 : i64,
            operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>}
            : (!tc.tensor_map, index, index, !tile, !tc.mbarrier) -> ()
      }) : () -> ()
      return
    }
    """

    body: ext.Region


@verify(
    OneThreadOp,
    "body",
    "PTX ISA 9.7.13.15, 9.7.9.27",
    "the body must be one block of {legal} only, got {got}: one thread issues these, everything "
    "else is the work of all",
    bad={'"tc.mbarrier_expect_tx"': '"tc.cta_barrier"'},
)
def _(op: OneThreadOp) -> Broken:
    legal = ("tc.mbarrier_expect_tx", "tc.tma_load")
    blocks = list(op.body)
    if len(blocks) != 1 or len(blocks[0].arguments):
        return {"legal": " and ".join(legal), "got": f"{len(blocks)} blocks or block arguments"}
    got = next((o.operation.name for o in blocks[0] if o.operation.name not in legal), None)
    return None if got is None else {"legal": " and ".join(legal), "got": got}


@verify(
    RoleOp,
    "kind",
    "tc",
    "kind must be one of {legal}, got {got}",
    bad={'kind = "mma"': 'kind = "loader"'},
    good={'kind = "mma"': 'kind = "producer"'},
)
def _(op: RoleOp) -> Broken:
    return one_of(op, "kind", role_kinds())


@verify(
    RoleOp,
    "threads",
    "tc",
    'threads must be "one" or "warp", got "{got}"',
    bad={'threads = "one"': 'threads = "all"'},
)
def _(op: RoleOp) -> Broken:
    got = string(op, "threads")
    return None if got in ("one", "warp") else {"got": got}


@verify(
    RoleOp,
    "warps",
    "CUDA C++ Programming Guide, technical specifications",
    "warps must be a non-empty array<i64> of distinct warp indices in [0, 31], got {got}",
    bad={"warps = array<i64: 5>": "warps = array<i64: 0, 0, 1, 2>"},
)
def _(op: RoleOp) -> Broken:
    got = not_arrays(op, warps=None)
    if got is None:
        warps = integers(op, "warps")
        if (
            warps
            and len(set(warps)) == len(warps)
            and all(w in range(BLOCK_THREADS // WARP) for w in warps)
        ):
            return None
    return {"got": got or op.attributes["warps"]}


@verify(
    RoleOp,
    "one-warp",
    "PTX ISA 9.7.16.5, table 46",
    'threads = "one" takes exactly one warp, got warps {got}: every listed warp would elect a '
    "thread and issue everything once more",
    bad={"warps = array<i64: 5>": "warps = array<i64: 4, 5>"},
)
def _(op: RoleOp) -> Broken:
    warps = integers(op, "warps")
    return None if string(op, "threads") == "warp" or len(warps) == 1 else {"got": warps}


@verify(
    RoleOp,
    "body",
    "tc",
    "the body must be one block with one index argument (the position in warps), got {got}",
    bad={"index": "i32"},
)
def _(op: RoleOp) -> Broken:
    blocks = list(op.body)
    arguments = [a.type for block in blocks for a in block.arguments]
    if len(blocks) == 1 and len(arguments) == 1 and isinstance(arguments[0], ir.IndexType):
        return None
    types = ", ".join(map(str, arguments))
    return {"got": f"{len(blocks)} blocks with arguments ({types})"}


def _first_issued_by(op: RoleOp, issuer: Issuer) -> Broken:
    """The first op of the body that must not be executed by ``issuer``."""
    found = (each for each in nested(op) if traits_of(each).issued_by == issuer)
    return next(({"got": each.operation.name} for each in found), None)


@verify(
    RoleOp,
    "issuer-one",
    "PTX ISA 9.7.16.5, table 46",
    '{got} must be in a role of threads = "one": hardware executes it once per active thread',
    bad={'threads = "one"': 'threads = "warp"'},
)
def _(op: RoleOp) -> Broken:
    return None if string(op, "threads") == "one" else _first_issued_by(op, "thread")


@verify(
    RoleOp,
    "issuer-warp",
    "PTX ISA 9.7.16.5, table 46",
    '{got} must be in a role of threads = "warp": it needs all 32 threads, converged',
    bad={'"tc.commit"': '"tc.tmem_wait"'},
)
def _(op: RoleOp) -> Broken:
    return None if string(op, "threads") == "warp" else _first_issued_by(op, "warp")


@verify(
    RoleOp,
    "whole-cta",
    "PTX ISA 9.7.13.1, 9.7.16.7",
    "{got} must stand outside roles: it is the whole CTA's, and a barrier that only some warps "
    "reach never completes",
    bad={'"tc.commit"': '"tc.cta_barrier"'},
)
def _(op: RoleOp) -> Broken:
    return _first_issued_by(op, "cta")


@verify(
    RoleOp,
    "nesting",
    "tc",
    "roles must not nest, got a {got} inside: a warp has one role",
    bad={
        '"tc.commit"(%done) : (!tc.mbarrier) -> ()': (
            '"tc.role"() ({ ^bb0(%inner: index): }) {kind = "epilogue", warps = array<i64: '
            '0>, threads = "warp"} : () -> ()'
        )
    },
)
def _(op: RoleOp) -> Broken:
    found = (each for each in nested(op) if isinstance(each, RoleOp | OneThreadOp))
    return next(({"got": each.operation.name} for each in found), None)
