"""Synchronisation ops."""

from typing import Any

from tcir._mlir import ext, ir

from .base import TC
from .types import MbarrierType


class MbarrierWaitOp(TC.Operation, name="mbarrier_wait"):
    """Block until the phase of parity ``parity`` (index, 0 or 1) of ``bar`` is complete.

    On a fresh barrier parity 1 passes at once (``mbarrier.try_wait.parity`` in a loop, PTX ISA 9.7.13.15.16).
    """

    bar: ext.Operand[MbarrierType]
    parity: ext.Operand[ir.IndexType]


class MbarrierExpectTxOp(TC.Operation, name="mbarrier_expect_tx"):
    """``mbarrier.arrive.expect_tx``: announce ``nbytes`` bytes, then one arrival (PTX ISA 9.7.13.15.13)."""

    bar: ext.Operand[MbarrierType]
    nbytes: ir.IntegerAttr


class CommitOp(TC.Operation, name="commit"):
    """``tcgen05.commit``: ``bar`` gets one arrival when all earlier mma, cp and shift of this thread are complete.

    (PTX ISA 9.7.16.12.) Implies ``tcgen05.fence::before_thread_sync``.
    """

    bar: ext.Operand[MbarrierType]


class FenceOp(TC.Operation, name="fence"):
    """A fence: ``kind`` is ``"tcgen05.before"``, ``"tcgen05.after"``, ``"proxy.async"`` or ``"mbarrier_init"``.

    (PTX ISA 9.7.16.11 and 9.7.13.4.)
    """

    kind: ir.StringAttr


class CtaBarrierOp(TC.Operation, name="cta_barrier"):
    """``bar.sync 0``: all threads of the CTA."""
