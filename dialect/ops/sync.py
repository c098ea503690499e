"""Synchronisation."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import constant_of, integer
from tcir.dialect.cta_pair import wrong_group
from tcir.dialect.limits import CTA_BARRIERS, MBARRIER_TX
from tcir.dialect.multicast import wrong_mask
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, one_of, same_rules, verify
from tcir.dialect.types import MbarrierType

FENCES = (
    "tcgen05.before", "tcgen05.after", "proxy.async", "proxy.async.shared", "mbarrier_init",
)  # fmt: skip
"""Kinds of ``tc.fence``."""


class MbarrierWaitOp(Op, name="mbarrier_wait", async_only=True):
    """Blocks until the phase of parity ``parity`` (index, 0 or 1) of ``bar`` is complete.

    On a fresh barrier a wait for parity 1 passes at once (``mbarrier.try_wait.parity`` in a loop,
    PTX ISA 9.7.13.15.16). With ``cta_group = 2`` the wait acquires writes that threads of both CTAs
    of a pair released; with ``cluster`` it acquires writes of all CTAs of a cluster
    (``.acquire.cluster``).
    """

    example = """
    func.func @example(%full: !tc.mbarrier, %phase: index) {
      "tc.mbarrier_wait"(%full, %phase) : (!tc.mbarrier, index) -> ()
      return
    }
    """
    form = "{bar} parity={parity}"

    bar: ext.Operand[MbarrierType]
    parity: ext.Operand[ir.IndexType]


class MbarrierExpectTxOp(Op, name="mbarrier_expect_tx", issued_by="thread", async_only=True):
    """``mbarrier.arrive.expect_tx``: the current phase expects ``nbytes`` more bytes, and the
    thread arrives once.

    (PTX ISA 9.7.13.15.13.)
    """

    example = """
    func.func @example(%full: !tc.mbarrier) {
      "tc.mbarrier_expect_tx"(%full) {nbytes = 24576 : i64} : (!tc.mbarrier) -> ()
      return
    }
    """

    bar: ext.Operand[MbarrierType]
    nbytes: ir.IntegerAttr


class MbarrierArriveOp(Op, name="mbarrier_arrive", role="epilogue", async_only=True):
    """``mbarrier.arrive`` by every thread that executes the op: 32 arrivals per warp, or 1 in a
    role of one thread.

    With ``once`` each warp arrives once, when its threads have reached the op together. With
    ``cta_mask`` as well, it arrives on the barrier at the same address in each CTA of the mask, as
    ``tc.commit`` does (``.release.cluster``, PTX ISA 9.7.13.15.13). The op releases each thread's
    earlier writes. With ``cta_group = 2`` it arrives on the barrier at the same address in the
    leader of the pair (``mapa``, ``.release.cluster``).
    """

    example = """
    func.func @example(%ready: !tc.mbarrier) {
      "tc.mbarrier_arrive"(%ready) : (!tc.mbarrier) -> ()
      return
    }
    """

    bar: ext.Operand[MbarrierType]


class CommitOp(Op, name="commit", issued_by="thread", role="mma", async_only=True):
    """``tcgen05.commit``: one arrival on ``bar`` when this thread's tcgen05 work is complete.

    The work consists of all mma, cp and shift ops that the thread issued before (PTX ISA
    9.7.16.12). The op implies ``tcgen05.fence::before_thread_sync``. With ``cta_group = 2`` the
    work of the whole pair must be complete. With ``cta_mask`` the op arrives on the barrier at the
    same address in each CTA of the mask: a bit for each rank of the cluster, or an array with such
    a mask for each CTA (``.multicast::cluster``).
    """

    example = """
    func.func @example(%empty: !tc.mbarrier) {
      "tc.commit"(%empty) : (!tc.mbarrier) -> ()
      return
    }
    """

    bar: ext.Operand[MbarrierType]


class FenceOp(Op, name="fence"):
    """A fence of kind ``"tcgen05.before"``, ``"tcgen05.after"``, ``"proxy.async"`` or
    ``"mbarrier_init"``.

    (PTX ISA 9.7.16.11 and 9.7.13.4.) A fence of kind ``"proxy.async.shared"`` covers only accesses
    to this CTA's shared memory.
    """

    example = """
    func.func @example() {
      "tc.fence"() {kind = "tcgen05.after"} : () -> ()
      return
    }
    """
    form = "{kind}"

    kind: ir.StringAttr


class CtaBarrierOp(Op, name="cta_barrier", issued_by="cta"):
    """``bar.sync 0``: a barrier of all threads of the CTA (PTX ISA 9.7.13.1)."""

    example = """
    func.func @example() {
      "tc.cta_barrier"() : () -> ()
      return
    }
    """


class FirstWarpBarrierOp(Op, name="first_warp_barrier", issued_by="cta", async_only=True):
    """The first warp waits until all warps of the CTA have arrived; the other warps do not wait.

    The first warp executes ``bar.sync``, and the other warps execute ``bar.arrive`` (PTX ISA
    9.7.13.1), on barrier number 1 + ``slot``, so the other warps may arrive for several slots
    before the first warp waits. Afterwards the first warp may overwrite data that the other warps
    have accessed before. The op is legal in kernels without roles.
    """

    example = """
    func.func @example(%slot: index) {
      "tc.first_warp_barrier"(%slot) : (index) -> ()
      return
    }
    """

    slot: ext.Operand[ir.IndexType]


class WarpBarrierOp(Op, name="warp_barrier", issued_by="warp", role="epilogue", async_only=True):
    """``bar.warp.sync``: a barrier of all 32 threads of the executing warp (PTX ISA 9.7.13.2)."""

    example = """
    func.func @example() {
      "tc.warp_barrier"() : () -> ()
      return
    }
    """


class WarpsBarrierOp(Op, name="warps_barrier", issued_by="warp", role="epilogue", async_only=True):
    """``bar.sync``: a barrier of ``warps`` adjacent warps of the role (PTX ISA 9.7.13.1).

    These warps are group ``number`` (an index), and they use barrier 1 + ``number``.
    """

    example = """
    func.func @example(%number: index) {
      "tc.warps_barrier"(%number) {warps = 2 : i64} : (index) -> ()
      return
    }
    """

    number: ext.Operand[ir.IndexType]
    warps: ir.IntegerAttr


@verify(
    WarpsBarrierOp,
    "warps",
    "PTX ISA 9.7.13.1",
    "warps must be at least 2, got {got}: one warp meets by tc.warp_barrier",
    bad={"warps = 2": "warps = 1"},
)
def _(op: WarpsBarrierOp) -> Broken:
    got = integer(op, "warps")
    return None if got >= 2 else {"got": got}


@verify(
    WarpsBarrierOp,
    "number",
    "PTX ISA 9.7.13.1",
    "number must be 0 to {most}, got {got}: a CTA has {all} barriers, of which tc.cta_barrier is 0",
    bad={"%number: index) {": ") { %number = arith.constant 15 : index"},
    good={"%number: index) {": ") { %number = arith.constant 14 : index"},
)
def _(op: WarpsBarrierOp) -> Broken:
    got, most = constant_of(op.number), CTA_BARRIERS - 2
    inside = got is None or 0 <= got <= most
    return None if inside else {"got": got, "most": most, "all": CTA_BARRIERS}


@verify(
    FirstWarpBarrierOp,
    "slot",
    "PTX ISA 9.7.13.1",
    "slot must be 0 to {most}, got {got}: a CTA has {all} barriers, of which tc.cta_barrier is 0",
    bad={"%slot: index) {": ") { %slot = arith.constant 15 : index"},
    good={"%slot: index) {": ") { %slot = arith.constant 14 : index"},
)
def _(op: FirstWarpBarrierOp) -> Broken:
    got, most = constant_of(op.slot), CTA_BARRIERS - 2
    return None if got is None or got <= most else {"got": got, "most": most, "all": CTA_BARRIERS}


@verify(
    MbarrierWaitOp,
    "parity",
    "PTX ISA 9.7.13.15.16",
    "parity must be 0 or 1, got {got}: it is the low bit of the phase number",
    bad={"!tc.mbarrier, %phase: index) {": "!tc.mbarrier) { %phase = arith.constant 2 : index"},
    good={"!tc.mbarrier, %phase: index) {": "!tc.mbarrier) { %phase = arith.constant 1 : index"},
)
def _(op: MbarrierWaitOp) -> Broken:
    got = constant_of(op.parity)
    return None if got in (None, 0, 1) else {"got": got}


@verify(
    MbarrierExpectTxOp,
    "nbytes",
    "PTX ISA 9.7.13.15",
    "nbytes must be {legal}, got {got}: the object counts transaction bytes in 20 bits; split "
    "the stage over two barriers",
    bad={"nbytes = 24576": "nbytes = 1048576"},
    good={"nbytes = 24576": "nbytes = 1048575"},
)
def _(op: MbarrierExpectTxOp) -> Broken:
    got = integer(op, "nbytes")
    return None if got in MBARRIER_TX else {"legal": MBARRIER_TX, "got": got}


@verify(
    FenceOp,
    "kind",
    "PTX ISA 9.7.16.11, 9.7.13.4",
    "kind must be one of {legal}, got {got}",
    bad={'kind = "tcgen05.after"': 'kind = "tcgen05"'},
    good={'kind = "tcgen05.after"': 'kind = "proxy.async"'},
)
def _(op: FenceOp) -> Broken:
    return one_of(op, "kind", FENCES)


@verify(
    MbarrierWaitOp,
    "cta-group",
    "PTX ISA 9.7.16.5",
    "cta_group must be 1 or 2, got {got}: an arrival is on the CTA's own barrier, or on that of "
    "the leader of its pair; leave it out for one CTA",
    bad={"%phase)": "%phase) {cta_group = 3 : i64}"},
    good={"%phase)": "%phase) {cta_group = 2 : i64}"},
)
def _(op: MbarrierWaitOp | MbarrierArriveOp) -> Broken:
    return wrong_group(op)


same_rules(
    MbarrierArriveOp,
    MbarrierWaitOp,
    {"cta-group": {"%ready)": "%ready) {cta_group = 3 : i64}"}},
    {"cta-group": {"%ready)": "%ready) {cta_group = 2 : i64}"}},
)


@verify(
    CommitOp,
    "cta-mask",
    "PTX ISA 9.7.16.12",
    "cta_mask must be in [1, 255], a bit for each CTA of the cluster by its rank, or array<i64> of "
    "such a mask for each CTA, got {got}: without one the arrival is on the CTA's own barrier",
    bad={"%empty)": "%empty) {cta_group = 2 : i64, cta_mask = 0 : i64}"},
    good=(
        {"%empty)": "%empty) {cta_group = 2 : i64, cta_mask = 3 : i64}"},
        {"%empty)": "%empty) {cta_mask = array<i64: 3, 12>}"},
    ),
)
def _(op: CommitOp | MbarrierArriveOp) -> Broken:
    return wrong_mask(op)


same_rules(
    MbarrierArriveOp,
    CommitOp,
    {"cta-mask": {"%ready)": "%ready) {once, cta_mask = array<i64: 3, 256>}"}},
    {"cta-mask": {"%ready)": "%ready) {once, cta_mask = array<i64: 3, 3>}"}},
)
