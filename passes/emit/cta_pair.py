"""Common code of tilings for CTA pairs: the option `cta_group`, and the half of B that a CTA
loads."""

from __future__ import annotations

from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.errors import InputError
from tcir.passes.emit import index
from tcir.passes.emit.index import Index


def check_cta_group(cta_group: int) -> None:
    """Raises InputError for an illegal value of the option `cta_group`."""
    if cta_group not in (1, PAIR):
        raise InputError(
            "expected cta-group to be 1 or 2, the CTAs that an mma acts on (PTX ISA 9.7.16.5), "
            f"got {cta_group}; smallest accepted: cta-group=1"
        )


def first_column(tile: Index, columns: int, cta_group: int) -> Index:
    """The first column of B that this CTA loads, in the tile of `columns` columns that begins at
    column `tile`. The second CTA of a pair loads the second half of the tile."""
    if cta_group != PAIR:
        return tile
    return index.add(tile, index.mul(tc.CtaRankOp().rank, columns))
