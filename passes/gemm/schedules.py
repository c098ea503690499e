"""The schedules of a matrix product: equal tiles of each legal width, with their modelled times."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.ops.block_scale import ROWS_PER_COLUMN
from tcir.passes.emit.cost import DEFAULT, Cost, LaunchWork, under_other_answers
from tcir.passes.emit.limits import MMA_N, MMA_N_STEP, equal_widths, round_up
from tcir.passes.emit.quantise import QUANTISED_COLUMNS
from tcir.passes.gemm.cost import ProductShape
from tcir.passmanager.remarks import remark
from tcir.time.constants import Constants


@dataclass(frozen=True)
class GemmCandidate:
    """A candidate for the launch of a product, with tiles of one width."""

    work: LaunchWork

    def microseconds(self, constants: Constants = DEFAULT) -> float:
        """The modelled time of the launch in microseconds."""
        return Cost.of(self.work, constants).microseconds

    def __str__(self) -> str:
        return f"n-tile={self.work.n_tile}"


class GemmSchedules:
    """Schedules of `op`, a ``tc.matmul`` or ``tc.block_scaled_matmul``.

    kind: kind of the instruction, as in `ScaledShape`
    quantised: number of columns of the sums that are quantised
    """

    def __init__(self, op: ir.OpView, kind: str = "", quantised: int = 0) -> None:
        shape = ProductShape.of(op, kind)
        step = whole = MMA_N_STEP
        if quantised:
            shape, step, whole = replace(shape, columns=quantised), *2 * (QUANTISED_COLUMNS,)
        elif isinstance(op, tc.BlockScaledMatmulOp):
            step = ROWS_PER_COLUMN
        widths = {width for width in equal_widths(shape.columns, step) if width < shape.columns}
        widths |= {round_up(shape.columns, whole)} & set(MMA_N.values)
        self.op = op
        self.candidates = [GemmCandidate(shape.work(n)) for n in sorted(widths, reverse=True)]

    def ranked(self, constants: Constants = DEFAULT) -> list[GemmCandidate]:
        """The candidates, fastest first. At equal times wider tiles come first."""
        return sorted(self.candidates, key=lambda each: each.microseconds(constants))

    def choose(self) -> GemmCandidate:
        """Chooses the fastest candidate. A remark names the second fastest, and the candidate that
        would win for other values of constants on which sources disagree."""
        best, *others = self.ranked()
        if others:
            times = [f"{each}: {each.microseconds():.2f} us" for each in (best, others[0])]
            words = f"{'; next '.join(times)} (modelled, not measured)"
            remark(self.op, f"chose {words}; {self._disputes(best)}")
        return best

    def _disputes(self, best: GemmCandidate) -> str:
        found = under_other_answers(lambda constants: self.ranked(constants)[0])
        other = [f"{each} under {answer}" for answer, each in found.items() if each != best]
        same = "the same under other answers to constants on which sources disagree"
        return ", ".join(other) or same
