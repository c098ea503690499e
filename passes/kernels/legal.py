"""Combinations of options that no kernel supports: a table with one row, and its reason, for each
such pair.

A kernel is described by facts: the options of its tiling pass, and the circumstances of its product
(`NOUNS`, `CIRCUMSTANCES`). A row names the fact that the error asks the user to change, the values
that this fact may have, and the other facts because of which it may have only these values. A
combination that no row excludes compiles; `test/passes/kernels` tests both kinds of combination,
and docs/reference/kernels.md lists the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import QUARTERS
from tcir.dialect.ops.highlevel import k_part, out_layout
from tcir.errors import InputError
from tcir.passes.emit.cluster import EXTENTS
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.tile_kernel import Source, quantiser_of
from tcir.passes.kernels.warps import WHO_MULTIPLIES
from tcir.passmanager.pipeline import Pass
from tcir.target import TARGETS

Facts: TypeAlias = Mapping[str, object]
"""Facts about a kernel, by name."""
TCGEN05, WGMMA = "tcgen05", "wgmma"
"""Cores that multiply."""
DENSE, SCALED, GROUPED = "dense", "block-scaled", "grouped"
PADDED = "padded"
IM2COL, ROW_WALK, SHIFTED = "im2col", "row-walk", "shifted"
CONVOLUTIONS = (IM2COL, ROW_WALK, SHIFTED)
"""The kinds of products: matrices; block-scaled ones; groups of rows; few padded columns; and
convolutions gathered tap by tap, read from rows of a shared tile, or from shifted lanes."""
PLAIN, GATED, QUANTISED = "plain", "gated", "quantised"
GATED_BLOCKS = "gated-blocks"

NOUNS: Mapping[str, dict[str, str]] = {
    "core": {TCGEN05: "tcgen05", WGMMA: "wgmma"},
    "results": {
        PLAIN: "a result for every sum",
        GATED: "one for two columns, as of a gated activation",
        GATED_BLOCKS: "one for two columns in blocks of 8",
        QUANTISED: "a quantised one",
    },
    "operands": {"given": "operands in their order", "exchanged": "exchanged ones"},
    "sums": {"whole": "whole sums", "parts": "parts of K"},
}
"""Facts that are no options of a tiling pass, with the words for each value in an error."""
CIRCUMSTANCES: Mapping[str, dict[str, str]] = {
    "product": {
        DENSE: "in a product of matrices",
        SCALED: "with block-scaled operands",
        GROUPED: "with groups",
        PADDED: "with few columns",
        IM2COL: "in a convolution",
        ROW_WALK: "with taps that read rows of one tile",
        SHIFTED: "with taps that shift one tile",
    },
    "results": {
        GATED: "with a gated result",
        GATED_BLOCKS: "with a result gated in blocks of 8",
        QUANTISED: "with a quantised result",
    },
    "operands": {"exchanged": "with exchanged operands"},
    "core": {},
}
"""The same facts as an error states them of another one."""


@dataclass(frozen=True)
class Limit:
    """A combination that no kernel supports.

    fact:   an option, or a key of `NOUNS`
    only:   the values that `fact` may have
    beside: facts and their values, one or several, that restrict `fact` to these values
    reason: why there is no kernel
    source: the document that states the hardware's limit; "" if the limit is a decision of this
        project
    way_out: what to do instead
    """

    fact: str
    only: tuple[object, ...]
    beside: Facts
    reason: str
    source: str = ""
    way_out: str = "leave it out"

    @property
    def name(self) -> str:
        """A unique name of the row, composed of its fact and of the facts with which it does not
        combine."""
        beside = " ".join(f"{k}={written(values_of(v)[0])}" for k, v in self.beside.items())
        return f"{self.fact} beside {beside}"

    def applies(self, facts: Facts) -> bool:
        """Whether this row excludes a kernel with these facts. A fact that is not known yet
        excludes nothing."""
        if facts.get(self.fact, self.only[0]) in self.only:
            return False
        return all(key in facts and facts[key] in values_of(v) for key, v in self.beside.items())

    def message(self, facts: Facts) -> str:
        """The text of the error: the value, the allowed values, the reason, and a way out."""
        given = facts[self.fact]
        nouns = NOUNS.get(self.fact)
        got = nouns[str(given)] if nouns else written(given)
        source = f" ({self.source})" if self.source else ""
        return (
            f"expected {self._allowed()} {self._where(facts)}, got {got}: {self.reason}{source}; "
            f"{self.way_out}"
        )

    def _allowed(self) -> str:
        if self.fact in NOUNS:
            return " or ".join(NOUNS[self.fact][str(value)] for value in self.only)
        chosen = [
            value for value in self.only if value not in ("", 0) or value is False
        ] or self.only
        values = [written(value) for value in chosen if value != ""]
        return f"{dashed(self.fact)}={' or '.join(values)}" if values else f"no {self.fact}"

    def _where(self, facts: Facts) -> str:
        return " ".join(self._beside(key, facts) for key in self.beside)

    def _beside(self, key: str, facts: Facts) -> str:
        if words := CIRCUMSTANCES.get(key, {}).get(str(facts[key])):
            return words
        if key == "core":
            return f"for {facts['target']}"
        return f"with {dashed(key)}={written(facts[key])}"


def values_of(value: object) -> tuple[object, ...]:
    """The values that a row names, as a tuple even if there is only one."""
    return value if isinstance(value, tuple) else (value,)


def written(value: object) -> str:
    """A value as a user writes it in an option."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def dashed(name: str) -> str:
    """The name of a fact as a user writes it in an option."""
    return name.replace("_", "-")


_HOPPER = "leave it out, or take target sm_100a"

_ALONG_ROWS = ("1x1", *(f"{m}x1" for m in EXTENTS[1:]))

ROWS: tuple[Limit, ...] = (
    # Schedulers.
    Limit("persistent", (True,), {"scheduler": "clc"},
        "with scheduler=clc the grid has a CTA for every tile, and a running CTA takes over the "
        "tiles of CTAs that are not launched yet", way_out="take persistent=true"),
    Limit("ctas", (0,), {"scheduler": "clc"},
        "with scheduler=clc the hardware decides how many CTAs run"),
    Limit("ctas", (0,), {"persistent": False},
        "a kernel that is not persistent has a CTA for every tile", way_out="take persistent=true"),
    Limit("scheduler", ("static",), {"core": WGMMA},
        "clusterlaunchcontrol needs sm_100", "PTX ISA 9.7.13.17", _HOPPER),
    # Clusters and pairs.
    Limit("cluster", ("1x1",), {"cta_group": PAIR},
        "a pair is itself a cluster of two CTAs, which share B's columns without multicast",
        way_out="leave one of them out"),
    Limit("cluster", ("1x1",), {"scheduler": "clc"},
        "not built: a clusterlaunchcontrol request takes over a whole cluster, and only the "
        "CTAs of a pair share its response",
        way_out="take scheduler=static"),
    Limit("cluster", _ALONG_ROWS, {"product": (ROW_WALK, SHIFTED)},
        "not built: CTAs along the output channels would each load a part of a tile's pixels, and "
        "these do not divide into whole swizzle patterns", way_out="take cluster=Mx1"),
    Limit("cta_group", (1,), {"core": WGMMA},
        "only tcgen05 has pairs of CTAs", "PTX ISA 9.7.16.5", _HOPPER),
    Limit("tiling", ("rows", "packed"), {"cta_group": PAIR},
        "an mma of a pair takes the lane masks of both CTAs from the thread that issues it, and "
        "each CTA has the masks of its own pixels", "PTX ISA 9.7.16.10.9.1",
        "take tiling=packed"),
    Limit("persistent", (False,), {"tiling": "linear"},
        "not built: zeros and lane masks are stored once, before the CTA's only tile"),
    Limit("cluster", ("1x1",), {"m_tile": 256},
        "a pair is itself a cluster of two CTAs, which share B's columns without multicast",
        way_out="leave one of them out"),
    Limit("cluster", _ALONG_ROWS, {"product": PADDED},
        "all columns of the result are in one tile, so there are no CTAs side by side",
        way_out="take cluster=Mx1"),
    Limit("schedule", ("auto", "single"), {"scheduler": "clc"},
        "a CTA takes over whole tiles, but this schedule gives each CTA a range of K that is "
        "fixed when the kernel is compiled", way_out="leave one of them out"),
    Limit("schedule", ("auto", "single"), {"cluster": _ALONG_ROWS[1:]},
        "the CTAs of a cluster load the same steps of K at the same time, but this schedule gives "
        "each CTA another range of K",
        way_out="leave one of them out"),
    Limit("schedule", ("auto", "single"), {"m_tile": 256},
        "the CTAs of a pair compute a tile together, from the same stages, but this schedule "
        "gives each part of K to one CTA", way_out="leave one of them out"),
    # Stores.
    Limit("store_stages", (0,), {"store": "direct"},
        "threads store from registers, without buffers in shared memory",
        way_out="leave it out, or take store=tma"),
    Limit("store", ("direct",), {"tiling": ("packed", "linear")},
        "outputs of a sub-partition begin and end anywhere in a row of the image, and a box has "
        "one size and no gaps", "PTX ISA 5.5.3", "take tiling=rows, or leave store out"),
    Limit("store", ("direct",), {"operands": "exchanged"},
        "with exchanged operands each thread has a column of the output, not a row",
        way_out="take swap=never or store=direct"),
    Limit("store", ("direct",), {"results": QUANTISED},
        "each thread stores the elements and the scales of its row itself",
        way_out="take store=direct"),
    Limit("store", ("direct",), {"results": (GATED, GATED_BLOCKS)},
        "a tile staged for TMA would have as many columns as the sums, twice as many as the "
        "result",
        way_out="take store=direct"),
    Limit("epilogue_tile", ("auto",), {"core": WGMMA},
        "the sums are in registers already, and none are loaded from tensor memory",
        way_out=_HOPPER),
    # Results.
    Limit("results", (PLAIN, GATED, GATED_BLOCKS), {"product": GROUPED},
        "a block of scales covers 128 rows, which may belong to several groups",
        way_out="quantise in another kernel"),
    Limit("results", (PLAIN, GATED, GATED_BLOCKS), {"product": CONVOLUTIONS},
        "a block of scales covers 128 rows of a matrix, but the rows of a tile are pixels",
        way_out="take pipeline conv, where a launch of its own quantises "
        "(split-launches{quantise-apart=true})"),
    Limit("results", (PLAIN, GATED, QUANTISED), {"product": (ROW_WALK, IM2COL, SHIFTED, GROUPED)},
        "not built: the stores of these kernels count the columns of the sums, of which the "
        "result has half as many",
        way_out="return the sums, or let single columns alternate with target sm_100a"),
    Limit("results", (PLAIN, GATED_BLOCKS, QUANTISED), {"core": WGMMA},
        "a thread has two adjacent columns of each 8: the results of gates and values that "
        "alternate would be single columns, which no store or later op takes",
        "PTX ISA 9.7.14.5", "let columns alternate in blocks of 8, or take target sm_100a"),
    Limit("results", (PLAIN, GATED, QUANTISED), {"core": TCGEN05},
        "not built: a thread separates the even columns of its row from the odd ones, not blocks "
        "of 8",
        way_out="let single columns alternate, or take target sm_90a"),
    # Several accumulators.
    Limit("n_tiles", (1,), {"core": WGMMA},
        "one wgmma multiplies a tile of A by up to 256 columns, as many sums as a thread has "
        "registers for", "PTX ISA 9.7.15", "take a larger n-tile, or target sm_100a"),
    Limit("n_tiles", (1,), {"store": "tma"},
        "not built: the buffers in shared memory for TMA stores serve one accumulator"),
    Limit("collector", (False,), {"n_tiles": 1},
        "the collector buffer keeps A for a further mma with the same A, and with n-tiles=1 there "
        "is none", "PTX ISA 9.7.16.10.9.1",
        "take n-tiles=2"),
    # Kinds of instructions.
    Limit("kind", ("",), {"core": WGMMA},
        "wgmma has one instruction for each type of operands, so there is no kind to choose",
        "PTX ISA 9.7.15.2", _HOPPER),
    Limit("kind", ("",), {"product": (DENSE, GROUPED)},
        "tcgen05.mma has one kind for each type of operands that are not block-scaled",
        way_out="leave kind out"),
    Limit("core", (TCGEN05,), {"product": (SCALED, PADDED)},
        "wgmma multiplies no block-scaled operands", "PTX ISA 9.7.15.2", "take target sm_100a"),
    Limit("core", (TCGEN05,), {"product": SHIFTED},
        "wgmma reads A from shared memory or registers, and can shift the rows of neither",
        "PTX ISA 9.7.15.5",
        "take pipeline conv-smem-offset, or target sm_100a"),
    # Warps of a role.
    Limit("consumer_warps", (0, 1), {"core": TCGEN05},
        WHO_MULTIPLIES, way_out="leave it out, or take target sm_90a"),
    Limit("epilogue_warps", (0, QUARTERS), {"store": "tma"},
        "the buffers in shared memory belong to the warps of one warpgroup, and only the thread "
        "that stores a buffer can wait until it is free", way_out="take store=direct"),
    *(Limit(f"{role}_warps", (0, *legal), {"core": WGMMA},
          "on this target the sums are in registers of the consumers, two warpgroups with 64 rows "
          "each, which therefore also store them")
      for role, legal in (("producer", (1,)), ("consumer", (8,)), ("epilogue", ()))),
    # Parts of K and exchanged operands.
    Limit("split_k", (1,), {"results": (GATED, GATED_BLOCKS, QUANTISED)},
        "the kernel that sums the parts computes one element in each thread, not a block of them",
        way_out="leave split-k out"),
    Limit("swap", ("auto", "never"), {"product": GROUPED},
        "with exchanged operands the rows of a group would be the columns of an mma, whose number "
        "is fixed in the instruction descriptor before the size of the group is known",
        way_out="leave swap out"),
    Limit("swap", ("auto", "never"), {"results": (GATED, GATED_BLOCKS, QUANTISED)},
        "with exchanged operands the columns of a block would be in different lanes, but one "
        "thread needs all of them",
        way_out="leave swap out"),
    Limit("operands", ("given",), {"core": WGMMA},
        "with wgmma a thread holds elements of several rows and columns, exchanged or not",
        way_out="leave swap out"),
    # Taps that shift a tile in tensor memory.
    Limit("shift", ("ashift",), {"halo": "mask"},
        ".ashift moves A at no cost; tcgen05.shift is only needed where a shift has to be ordered "
        "before a refresh of the halo",
        way_out="leave shift out, or use halo=refresh"),
    Limit("shift_quarters", ("one",), {"shift": "ashift"},
        "the option names the sub-partitions that tcgen05.shift moves, and has no effect on "
        ".ashift",
        way_out="leave shift-quarters out, or use halo=refresh with shift=shift"),
    Limit("halo_load", ("boxes",), {"halo": "mask"}, "with halo=mask no halo is loaded",
        way_out="leave halo-load out, or use halo=refresh"),
    Limit("tiling", ("packed",), {"halo_load": "w128"},
        "im2col::w::128 traverses 128 pixels of one input row of all images, so sub-partitions "
        "must be consecutive; with tiling=rows they are blocks of arbitrary output rows, and with "
        "tiling=linear they continue from one input row to the next", "PTX ISA 5.5.5",
        "use tiling=packed, or halo-load=boxes"),
    # Warps that load fragments.
    Limit("ctas", (0,), {"copies": "cp.async"},
        "a CTA with several tiles loads the next tile while it stores the last one, which copies "
        "by cp.async do not support",
        way_out="take copy=tma, or as many CTAs as tiles"),
)  # fmt: skip


@dataclass(frozen=True)
class Absent:
    """A feature for which tiling passes have no option.

    tilings, cores: tiling passes and main loops (cores) without the option
    features: columns of the generated table
    reason: why there is no option
    source: the document that states the hardware's limit; "" if the feature has only not been
        implemented
    """

    tilings: tuple[str, ...]
    cores: tuple[str, ...]
    features: tuple[str, ...]
    reason: str
    source: str = ""


_GEMV = "tile-gemv-padded-n"
ABSENT: tuple[Absent, ...] = (
    Absent((_GEMV,), (TCGEN05,), ("store=tma", "epilogue-tile"),
        "a row of the result has only a few columns, so a TMA box or a smaller tile of the "
        "epilogue would save nothing"),
    Absent((_GEMV,), (TCGEN05,), ("n-tiles",),
        "all columns of the result are in one tile: N of the mma is at least their number"),
)  # fmt: skip
"""Features for which a pass has no option; the first row that matches is the reason."""


def absent(tiling: str, core: str, feature: str) -> Absent:
    """Returns the row that gives the reason why a tiling pass has no option for a feature on a core
    (main loop); ValueError if there is no such row."""
    for row in ABSENT:
        if tiling in row.tilings and core in row.cores and feature in row.features:
            return row
    raise ValueError(f"expected a row in ABSENT for {feature} of {tiling} on {core}, got none")


_ADDED: list[Limit] = []


def register(name: str, circumstance: str, *rows: Limit, fact: str = "product") -> str:
    """Adds a product or a core (main loop) that is defined outside the package to the table, with
    rows for the combinations that no kernel supports; returns its name. circumstance: how error
    messages describe it, such as ``with groups``; fact: ``product`` or ``core``."""
    nouns = NOUNS.get(fact, {})
    if name in CIRCUMSTANCES[fact] or name in nouns:
        raise InputError(f"expected a new {fact} name, got '{name}'")
    CIRCUMSTANCES[fact][name], nouns[name] = circumstance, name
    _ADDED.extend(rows)
    return name


def find(facts: Facts) -> Limit | None:
    """The first row that excludes these facts."""
    return next((row for row in (*ROWS, *_ADDED) if row.applies(facts)), None)


def check(facts: Facts, op: ir.OpView | None = None, smallest: str = "") -> None:
    """Raises the error of the first row that excludes these facts: an `InputError` of options, or a
    match failure at `op`, with the `smallest` accepted example."""
    if (row := find(facts)) is not None:
        message = row.message(facts)
        raise InputError(message) if op is None else match_failure(op, message, smallest)


def options_of(tiling: Pass) -> dict[str, object]:
    """The options of a pass, as facts."""
    return dict(vars(tiling))


def core_of(target: str) -> str:
    """The main loop (core) with which a target multiplies tiles in shared memory."""
    return WGMMA if TARGETS[target].wgmma else TCGEN05


def results_of(result: ir.Value) -> str:
    """The kind of the results, which follows from the ops after the product."""
    users = [use.owner.opview for use in result.uses]
    after = next((user for user in users if isinstance(user, tc.EpilogueOp)), None)
    return _results(quantiser_of(result), after)


def _results(quantise: tc.QuantiseBlocksOp | None, after: tc.EpilogueOp | None) -> str:
    if after is not None and after.gate_block > 1:
        return GATED_BLOCKS
    gated = after is not None and after.gated
    return QUANTISED if quantise is not None else GATED if gated else PLAIN


def facts_of(source: Source, product: str, target: str) -> dict[str, object]:
    """Facts (keys and values for the table of combinations) that follow from the op of a source
    function and the ops after it."""
    op = source.op
    return {
        "product": product,
        "core": core_of(target),
        "target": target,
        "results": _results(source.quantise, source.after),
        "operands": "given" if out_layout(op) == "mn" else "exchanged",
        "sums": "whole" if k_part(op) is None else "parts",
    }
