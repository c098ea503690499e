"""Bugs of attention in tensor memory: in the exchanges of its roles, and in its numbers.

The program has three blocks of keys and one slot for a tile, so that slots, barriers and tiles in
tensor memory are used again, an odd number of times. With ``tau = 0`` every block rescales.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from .edits import Edit
from .planted import Planted, Program

ROLES = "assign-roles"
TILES = "tile-attention"
ATTENTION, CAUSAL = "attention", "causal attention"
PERSISTENT = "attention of a CTA with three tiles"
NO_KEYS = "attention of rows without keys"
TWO_TILES = "attention of two tiles"
OVER = "attention of two tiles with exponentials over scores"
INTERLEAVED = "interleave-products"
PLANNED = "plan-memory"


def text(queries: str, keys: str, out: str, lse: str, causal: str = "") -> str:
    """The program of one op."""
    return f"""
    func.func @attention(%q: {queries}, %k: {keys}, %v: {keys}) -> ({out}, {lse}) {{
      %o, %lse = "tc.attention"(%q, %k, %v) ({{}}) {{scale = 0.125 : f32, q_layout = "bhmd",
          kv_layout = "bhnd", out_layout = "bhmd"{causal}}}
          : ({queries}, {keys}, {keys}) -> ({out}, {lse})
      return %o, %lse : {out}, {lse}
    }}
    """


TEXTS = {
    ATTENTION: text(
        "tensor<1x1x128x64xf16>", "tensor<1x1x384x64xf16>", "tensor<1x1x128x64xf16>",
        "tensor<1x1x128xf32>",
    ),
    CAUSAL: text(
        "tensor<1x4x150x64xf16>", "tensor<1x2x200x64xf16>", "tensor<1x4x150x64xf16>",
        "tensor<1x4x150xf32>", ", causal_offset = -20 : i64",
    ),
    TWO_TILES: text(
        "tensor<1x1x256x64xf16>", "tensor<1x1x384x64xf16>", "tensor<1x1x256x64xf16>",
        "tensor<1x1x256xf32>",
    ),
    OVER: text(
        "tensor<1x1x256x128xf16>", "tensor<1x1x384x128xf16>", "tensor<1x1x256x128xf16>",
        "tensor<1x1x256xf32>",
    ),
    PERSISTENT: text(
        "tensor<1x1x384x64xf16>", "tensor<1x1x384x64xf16>", "tensor<1x1x384x64xf16>",
        "tensor<1x1x384xf32>", ", causal_offset = 0 : i64",
    ),
    NO_KEYS: text(
        "tensor<1x1x256x64xf16>", "tensor<1x1x128x64xf16>", "tensor<1x1x256x64xf16>",
        "tensor<1x1x256xf32>", ", causal_offset = -130 : i64",
    ),
}  # fmt: skip


@cache
def program(name: str) -> Program:
    """The compiled program."""
    rows = 256 if name in (TWO_TILES, OVER) else 128
    more = "stages=4 ctas=1" if name == PERSISTENT else "stages=1"
    return Program(f"attention{{{more} tau=0.0 rows={rows}}}", TEXTS[name])


@dataclass(frozen=True)
class Spot:
    """Line `number` with `text` of those of a role ("": of all), -1 the last."""

    role: str
    text: str
    number: int = 0

    def of(self, lines: list[str]) -> int:
        """Its place in the program."""
        first, end = 0, len(lines)
        if self.role:
            end = next(n for n, line in enumerate(lines) if f'kind = "{self.role}", t' in line)
            first = max(n for n, line in enumerate(lines[:end]) if '"tc.role"()' in line)
        return [n for n in range(first, end) if self.text in lines[n]][self.number]


def drop(*spots: Spot) -> Edit:
    """Without these lines."""

    def edit(text: str) -> str:
        lines = text.split("\n")
        for place in sorted((spot.of(lines) for spot in spots), reverse=True):
            del lines[place]
        return "\n".join(lines)

    return edit


def move(what: Spot, before: Spot) -> Edit:
    """Moves a line before another."""

    def edit(text: str) -> str:
        lines = text.split("\n")
        source, target = what.of(lines), before.of(lines)
        line = lines.pop(source)
        lines.insert(target - (source < target), line)
        return "\n".join(lines)

    return edit


def change(where: Spot, old: str, new: str) -> Edit:
    """Replaces text in a line."""

    def edit(text: str) -> str:
        lines = text.split("\n")
        place = where.of(lines)
        assert re.search(old, lines[place]), lines[place]
        lines[place] = re.sub(old, new, lines[place], count=1)
        return "\n".join(lines)

    return edit


def like(where: Spot, other: Spot, part: str) -> Edit:
    """Replaces a part of a line by that of another line."""

    def edit(text: str) -> str:
        lines = text.split("\n")
        place, wanted = where.of(lines), re.search(part, lines[other.of(lines)])
        assert wanted is not None
        lines[place] = re.sub(part, wanted[0], lines[place], count=1)
        return "\n".join(lines)

    return edit


def _(role: str, text: str, number: int = 0) -> Spot:
    return Spot(role, text, number)


WAIT, ARRIVE, COMMIT = '"tc.mbarrier_wait"', '"tc.mbarrier_arrive"', '"tc.commit"'
FENCE, LOAD, STORE = (
    '"tc.fence"',
    '"tc.tmem_wait"() {kind = "ld"}',
    '"tc.tmem_wait"() {kind = "st"}',
)
FIRST = '"tc.mma"'
EXCHANGES = [
    Planted(what, ATTENTION, ROLES, edit, by)
    for what, edit, by in (
        ("stores of exponentials are not waited for", drop(_("epilogue", STORE)), "hazard: race"),
        (
            "loads of scores are not waited for",
            drop(_("epilogue", LOAD)),
            "hazard: registers-before-wait",
        ),
        (
            "loads of sums are not waited for before they are rescaled",
            drop(_("epilogue", LOAD, 1)),
            "hazard: registers-before-wait",
        ),
        (
            "loads of results are not waited for",
            drop(_("epilogue", LOAD, -1)),
            "hazard: registers-before-wait",
        ),
        (
            "exponentials are handed over without a fence",
            drop(_("epilogue", FENCE, 1)),
            "warning: missing-fence-before",
        ),
        (
            "exponentials are taken over without a fence",
            drop(_("mma", FENCE, -1)),
            "warning: missing-fence-after",
        ),
        (
            "scores are taken over without a fence",
            drop(_("epilogue", FENCE, 0)),
            "warning: missing-fence-after",
        ),
        (
            "results are taken over without a fence",
            drop(_("epilogue", FENCE, 2)),
            "warning: missing-fence-after",
        ),
        (
            "scores are read before the product, sums rescaled under it",
            drop(_("epilogue", WAIT, 0)),
            "deadlock",
        ),
        (
            "the product with values does not wait for exponentials",
            drop(_("mma", WAIT, -1)),
            "hazard: race",
        ),
        (
            "it waits for one warp of four",
            change(_("", "arrivals = 128"), "arrivals = 128", "arrivals = 32"),
            "deadlock",
        ),
        (
            "it waits for twice as many threads",
            change(_("", "arrivals = 128"), "arrivals = 128", "arrivals = 256"),
            "deadlock",
        ),
        (
            "the phase of exponentials starts anew in every block",
            change(_("mma", WAIT, -1), r", %\w+\)", ", %c0)"),
            "deadlock",
        ),
        (
            "the phase of scores starts anew in every block",
            change(_("epilogue", WAIT, 0), r", %\w+\)", ", %c0)"),
            "deadlock",
        ),
        (
            "the phase of keys is that of an empty slot",
            change(_("mma", WAIT, 1), r", %\w+\)", ", %c1)"),
            "deadlock",
        ),
        (
            "results are read before the last product is complete",
            drop(_("epilogue", WAIT, -1)),
            "hazard: race",
        ),
        (
            "the commit of the scores stands for that of the results",
            drop(_("epilogue", WAIT, -1), _("mma", COMMIT, -1)),
            "hazard: race",
        ),
        (
            "scores are committed before the product",
            move(_("mma", COMMIT, 0), before=_("mma", FIRST)),
            "hazard: race",
        ),
        (
            "keys are released before the product",
            move(_("mma", COMMIT, 1), before=_("mma", FIRST)),
            "hazard: race",
        ),
        (
            "values are released before the product",
            move(_("mma", COMMIT, 2), before=_("mma", FIRST, 4)),
            "hazard: race",
        ),
        (
            "keys are released with the values only, one commit for two barriers",
            drop(_("mma", COMMIT, 1)),
            "deadlock",
        ),
        ("keys are not waited for", drop(_("mma", WAIT, 1)), "hazard: race"),
        ("values are not waited for", drop(_("mma", WAIT, 2)), "hazard: race"),
        ("queries are not waited for", drop(_("mma", WAIT, 0)), "hazard: race"),
        ("an empty slot of keys is not waited for", drop(_("producer", WAIT, 0)), "deadlock"),
        ("an empty slot of values is not waited for", drop(_("producer", WAIT, 1)), "hazard: race"),
        (
            "half of the bytes of keys are expected",
            change(_("producer", "expect_tx", 1), "16384", "8192"),
            "deadlock",
        ),
        (
            "more bytes of values are expected than come",
            change(_("producer", "expect_tx", 2), "16384", "32768"),
            "deadlock",
        ),
        ("warps do not arrive", drop(_("epilogue", ARRIVE)), "deadlock"),
        (
            "warps arrive before they rescale the sums",
            move(_("epilogue", ARRIVE), before=_("epilogue", '"tc.rows_differ"')),
            "hazard: race",
        ),
        (
            "warps arrive before they store exponentials",
            move(_("epilogue", ARRIVE), before=_("epilogue", '"tc.tmem_st_words"')),
            "hazard: race",
        ),
        (
            "warps arrive before they read scores",
            move(_("epilogue", ARRIVE), before=_("epilogue", '"tc.tmem_ld"')),
            "hazard: race",
        ),
        (
            "tensor memory is freed while it is in use",
            drop(_("", '"tc.cta_barrier"', -1)),
            "illegal: tensor-memory-columns",
        ),
        (
            "tensor memory is not freed",
            drop(_("", '"tc.tmem_dealloc"')),
            "hazard: tensor-memory-leak",
        ),
        (
            "the product with values goes first, before there are exponentials",
            move(_("mma", WAIT, -1), before=_("mma", COMMIT, 2)),
            "hazard: race",
        ),
    )
]
"""Behind the last pass that knows roles; warnings are errors with ``ordering=isa``."""
TILES_OF_A_CTA = [
    Planted(what, PERSISTENT, ROLES, edit, by)
    for what, edit, by in (
        ("products count blocks anew", change(_("mma", "scf.yield %"), r"%\w+", "%c0"), "deadlock"),
        (
            "loads count blocks anew",
            change(_("producer", "scf.yield %"), r"%\w+", "%c0"),
            "deadlock",
        ),
        (
            "exponentials count blocks anew",
            change(_("epilogue", "scf.yield %", -1), r"%\w+", "%c0"),
            "deadlock",
        ),
        (
            "results have the first tile's phase",
            change(_("epilogue", WAIT, -1), r", %\w+\)", ", %c0)"),
            "hazard: race",
        ),
        ("results are not waited for", drop(_("epilogue", WAIT, -1)), "hazard: race"),
        (
            "results are not loaded when the next products go",
            drop(_("epilogue", LOAD, -1)),
            "hazard: registers-before-wait",
        ),
        (
            "exponentials are not waited for, and so neither results of the tile before",
            drop(_("mma", WAIT, -1)),
            "deadlock",
        ),
        (
            "the next queries do not wait for the products of this tile",
            drop(_("producer", WAIT, 0)),
            "hazard: race",
        ),
        ("the next queries are not waited for", drop(_("mma", WAIT, 0)), "hazard: race"),
        (
            "queries have the first tile's phase",
            change(_("mma", WAIT, 0), r", %\w+\)", ", %c0)"),
            "deadlock",
        ),
        (
            "queries are released before the products",
            move(_("mma", COMMIT, -1), before=_("mma", WAIT, 1)),
            "hazard: race",
        ),
        (
            "the first block of a later tile adds to the sums of the one before",
            change(_("mma", "arith.subi %arg", -1), r", %\w+ :", ", %c0 :"),
            "difference",
        ),
    )
]
"""Three tiles of 3, 2 and 1 blocks: barriers complete an odd number of times in a tile."""
TURN = '"tc.turn"'
TILES_IN_TURN = [
    Planted(what, TWO_TILES, INTERLEAVED, edit, by)
    for what, edit, by in (
        (
            "keys are released after the first tile's scores",
            move(_("mma", COMMIT, 2), before=_("mma", FIRST, 4)),
            "hazard: race",
        ),
        (
            "values are released after the first tile's product",
            move(_("mma", COMMIT, 4), before=_("mma", FIRST, 20)),
            "hazard: race",
        ),
        (
            "the first tile's exponentials are not waited for",
            drop(_("mma", WAIT, 4)),
            "hazard: race",
        ),
        (
            "the second tile's exponentials are not waited for",
            drop(_("mma", WAIT, 7)),
            "hazard: race",
        ),
        (
            "the first tile's product waits for the second tile's exponentials",
            like(_("mma", WAIT, 4), _("mma", WAIT, 7), r"\(%\w+, "),
            "hazard: race",
        ),
        (
            "the second tile's product waits for the first tile's exponentials",
            like(_("mma", WAIT, 7), _("mma", WAIT, 4), r"\(%\w+, "),
            "hazard: race",
        ),
        (
            "the next scores are multiplied before those of the block are read",
            move(_("mma", FIRST, 16), before=_("mma", WAIT, 2)),
            "hazard: race",
        ),
        (
            "the second tile's softmax reads the scores of the first",
            like(_("softmax1", '"tc.tmem_ld"'), _("softmax0", '"tc.tmem_ld"'), r"\(%\w+, "),
            "hazard: race",
        ),
        (
            "the second tile's softmax stores the exponentials of the first",
            like(_("softmax1", "st_words"), _("softmax0", "st_words"), r"\(%\w+, %\w+, "),
            "hazard: race",
        ),
        (
            "the second tile's warps arrive for the first",
            like(_("softmax1", ARRIVE, 1), _("softmax0", ARRIVE, 1), r"\(%\w+\)"),
            "deadlock",
        ),
        (
            "the first tile's scores are waited for by both",
            like(_("softmax1", WAIT), _("softmax0", WAIT), r"\(%\w+, "),
            "hazard: race",
        ),
        (
            "scores of both tiles are committed together, before the second's",
            move(_("mma", COMMIT, 1), before=_("mma", FIRST, 4)),
            "hazard: race",
        ),
        (
            "values of the block before have the phase of the next",
            like(_("mma", WAIT, 2), _("mma", WAIT, 5), r", %\w+\)"),
            "deadlock",
        ),
        (
            "exponentials of the block before have the phase of the next",
            like(_("mma", WAIT, 4), _("mma", WAIT, 5), r", %\w+\)"),
            "deadlock",
        ),
        (
            "the last values are not waited for",
            drop(_("mma", WAIT, 8)),
            "hazard: race",
        ),
        (
            "the second tile's last exponentials are not waited for",
            drop(_("mma", WAIT, 12)),
            "hazard: race",
        ),
        (
            "results are read before the last product",
            drop(_("epilogue", WAIT, 2)),
            "hazard: race",
        ),
        (
            "results of both tiles are committed before the second tile's",
            move(_("mma", COMMIT, -1), before=_("mma", FIRST, -1)),
            "hazard: race",
        ),
        ("a turn is not passed on", drop(_("softmax0", TURN, 2)), "deadlock"),
        ("no warpgroup has the first turn", drop(_("softmax1", TURN, 0)), "deadlock"),
        (
            "sums are rescaled before there are factors",
            drop(_("epilogue", WAIT, 0)),
            "deadlock",
        ),
        ("stores of factors are not waited for", drop(_("softmax0", STORE, 0)), "hazard: race"),
        ("stores of totals are not waited for", drop(_("softmax1", STORE, -1)), "hazard: race"),
        (
            "a product does not wait for the sums to be rescaled",
            drop(_("mma", WAIT, 3)),
            "hazard: race",
        ),
        ("rescaled sums are not waited for at the end", drop(_("mma", WAIT, 11)), "hazard: race"),
        (
            "the epilogue arrives before it has rescaled",
            move(_("epilogue", ARRIVE), before=_("epilogue", '"tc.rows_differ"')),
            "hazard: race",
        ),
        (
            "stores of rescaled sums are not waited for",
            drop(_("epilogue", STORE, 0)),
            "hazard: race",
        ),
        (
            "loads of factors are not waited for",
            drop(_("epilogue", LOAD, 0)),
            "hazard: registers-before-wait",
        ),
        ("totals are not waited for", drop(_("epilogue", WAIT, 3)), "hazard: race"),
        (
            "totals are stored over factors that may not have been read",
            change(_("softmax0", '"tc.tmem_st"', 1), "%c2", "%c0"),
            "hazard: race",
        ),
        (
            "sums are rescaled by the other tile's factors",
            like(_("epilogue", '"tc.tmem_ld"', 0), _("epilogue", '"tc.tmem_ld"', 2), r"\(%\w+, "),
            "hazard: race",
        ),
        (
            "factors are handed over before they are stored",
            move(_("softmax0", ARRIVE, 0), before=_("softmax0", '"tc.tmem_st"', 0)),
            "hazard: race",
        ),
        (
            "factors have the phase of the first block",
            change(_("epilogue", WAIT, 0), r", %\w+\)", ", %c0)"),
            "hazard: undefined-read",
        ),
        (
            "the fence of rescaled sums is missing",
            drop(_("epilogue", FENCE, 1)),
            "warning: missing-fence-before",
        ),
    )
]
"""Bugs of two tiles, planted after their products are interleaved."""
COLUMNS = [
    Planted(what, OVER, after, edit, by)
    for what, after, edit, by in (
        (
            "the next scores do not wait for the product that reads exponentials",
            INTERLEAVED,
            drop(_("mma", WAIT, 8)),
            "warning: issue-order",
        ),
        (
            "the second tile's scores wait for the first tile's product",
            INTERLEAVED,
            like(_("mma", WAIT, 11), _("mma", WAIT, 8), r"\(%\w+, "),
            "warning: issue-order",
        ),
        (
            "the product with values is committed before it is issued",
            INTERLEAVED,
            move(_("mma", COMMIT, 3), before=_("mma", FIRST, 16)),
            "warning: issue-order",
        ),
        (
            "exponentials are over the factors of the epilogue",
            PLANNED,
            change(_("", "column = 64"), "column = 64", "column = 0"),
            "difference",
        ),
        (
            "exponentials are over the scores of the other tile",
            PLANNED,
            change(_("", "column = 320"), "column = 320", "column = 64"),
            "hazard: race",
        ),
    )
]
"""Bugs of two tiles whose exponentials are over scores."""
NUMBERS = [
    Planted(what, name, TILES, edit, by)
    for what, name, edit, by in (
        (
            "sums of exponentials are not rescaled",
            ATTENTION,
            change(_("", "math.fma"), r"math.fma (%\w+), %\w+#2, (%\w+)", r"arith.addf \1, \2"),
            "difference",
        ),
        (
            "sums of values are not rescaled",
            ATTENTION,
            change(_("", "arith.andi"), r"andi %\w+", "andi %false"),
            "difference",
        ),
        (
            "sums of values are rescaled before there are any",
            ATTENTION,
            change(_("", "arith.andi"), r"andi %\w+", "andi %true"),
            "hazard: undefined-read",
        ),
        (
            "the maximum is that of the last block",
            ATTENTION,
            change(_("", "tc.row_online_max"), r"\(%\w+, (%\w+)\)", r"(\1, \1)"),
            "difference",
        ),
        (
            "the maximum stays that of the first block",
            ATTENTION,
            change(_("", "scf.yield"), r"yield %\w+,", "yield %arg9,"),
            "difference",
        ),
        (
            "exponentials are relative to the old maximum",
            ATTENTION,
            change(_("", "tc.row_exponentials"), "#1", "#2"),
            "difference",
        ),
        (
            "sums are divided by the maximum",
            ATTENTION,
            change(_("", "tc.row_numbers", 2), "#1", "#0"),
            "difference",
        ),
        (
            "logarithms lack the maximum",
            ATTENTION,
            change(_("", "tc.row_log_sum"), r"\(%\w+, (%\w+)\)", r"(\1, \1)"),
            "difference",
        ),
        (
            "logarithms have another scale",
            ATTENTION,
            change(_("", "tc.row_log_sum"), r"scale = [\d.]+", "scale = 0.125"),
            "difference",
        ),
        (
            "exponentials are to the base e of the scale",
            ATTENTION,
            change(_("", "tc.row_exponentials"), r"scale = [\d.]+", "scale = 0.125"),
            "difference",
        ),
        (
            "exponentials of the second half of the keys are old",
            ATTENTION,
            change(_("", "tc.mma", 8), "a_slice = 4", "a_slice = 0"),
            "difference",
        ),
        (
            "the last keys meet the values of the first",
            ATTENTION,
            change(_("", "tc.mma", -1), "b_slice = 7", "b_slice = 0"),
            "difference",
        ),
        (
            "the last elements of a head are left out of scores",
            ATTENTION,
            drop(_("", "tc.mma", 3)),
            "difference",
        ),
        (
            "scores are added to those of the block before",
            ATTENTION,
            change(_("", "tc.mma", 0), "%false", "%true"),
            "hazard: undefined-read",
        ),
        (
            "values of the block before are forgotten",
            ATTENTION,
            change(_("", "tc.mma", 4), r"(\(%\w+, %\w+, %\w+), %\w+", r"\1, %false"),
            "difference",
        ),
        (
            "the last block is not visited",
            ATTENTION,
            change(_("", "scf.for"), "to %c3", "to %c1"),
            "difference",
        ),
        (
            "keys and values of the same block are loaded always",
            ATTENTION,
            change(_("", "tc.tma_load", 1), r"%c0, %\w+", "%c0, %c0"),
            "difference",
        ),
        (
            "a warp has the numbers of another",
            ATTENTION,
            change(_("", "tc.row_numbers", -1), r", %arg\w+\)", ", %c0)"),
            "difference",
        ),
        (
            "a causal mask without the diagonal",
            CAUSAL,
            change(_("", "tc.mask_rows"), "causal_offset = -20", "causal_offset = -21"),
            "difference",
        ),
        (
            "a causal mask with a key more",
            CAUSAL,
            change(_("", "tc.mask_rows"), "causal_offset = -20", "causal_offset = -19"),
            "difference",
        ),
        (
            "no causal mask",
            CAUSAL,
            change(_("", "tc.mask_rows"), "causal_offset = -20", "causal_offset = 1000"),
            "difference",
        ),
        (
            "keys beyond the last are zeros, not masked",
            CAUSAL,
            change(
                _("", "tc.mask_rows"),
                r"(.*), %c200\) \{causal_offset = -20",
                r"%all = arith.constant 256 : index\n\1, %all) {causal_offset = 200",
            ),
            "difference",
        ),
        (
            "the mask starts with the first row of the tile for every warp",
            CAUSAL,
            change(_("", "tc.mask_rows"), r"(\(%\w+), %\w+,", r"\1, %c0,"),
            "difference",
        ),
        (
            "the mask of every block is that of the first",
            CAUSAL,
            change(_("", "tc.mask_rows"), r"(\(%\w+, %\w+), %\w+, ", r"\1, %c0, "),
            "difference",
        ),
        (
            "a head reads the keys of head mod 2",
            CAUSAL,
            change(_("", "arith.divui %block_id_x"), "divui", "remui"),
            "difference",
        ),
        (
            "tiles of rows without keys visit no block",
            NO_KEYS,
            change(_("", "arith.maxui"), "%c1", "%c0"),
            "hazard: undefined-read",
        ),
        (
            "rows without keys are means of all values",
            NO_KEYS,
            change(_("", "tc.mask_rows"), "-130", "130"),
            "difference",
        ),
    )
]
"""Behind the first pass, which is held within its bound."""
NUMBERS_OF_TWO = [
    Planted(what, TWO_TILES, TILES, edit, by)
    for what, edit, by in (
        (
            "both tiles have the queries of the first",
            like(_("", "tc.tma_load", 1), _("", "tc.tma_load", 0), r"%c0, %\w+"),
            "difference",
        ),
        (
            "the second tile's results are stored as the first's",
            like(_("", "arith.addi", -1), _("", "arith.addi", -2), r"addi %\w+"),
            "hazard: output-never-written",
        ),
        (
            "the second tile's scores are those of the first",
            like(_("", "tc.mma", 4), _("", "tc.mma", 0), r"\(%\w+, %\w+"),
            "hazard: undefined-read",
        ),
        (
            "the second tile goes on with the maxima of the first",
            change(_("", "iter_args", 2), "= %arg8", "= %arg6"),
            "difference",
        ),
        (
            "the second tile's values are added to the first's",
            like(_("", "tc.mma", -1), _("", "tc.mma", 15), r"\(%\w+"),
            "difference",
        ),
        (
            "both tiles' sums are divided by the first's",
            like(_("", "tc.row_numbers", 6), _("", "tc.row_numbers", 4), r"%\w+#\d"),
            "difference",
        ),
    )
]
"""Bugs of two tiles, planted after tiling."""
BUGS = [*EXCHANGES, *TILES_OF_A_CTA, *TILES_IN_TURN, *COLUMNS, *NUMBERS, *NUMBERS_OF_TWO]
