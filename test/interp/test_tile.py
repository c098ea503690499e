"""Tile rules on hand-written kernels at each level, against numpy's convolution on integers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_kernels import Conv, droppable, shift_conv

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.walk import nested
from tcir.errors import InputError
from tcir.interp import Outcome, OutputSpec, tile
from tcir.interp.tile.addresses import TileLayout
from tcir.interp.tile.movement import clip
from tcir.machine import Deadlock, MachineError
from tcir.run_options import RunOptions

LEVELS = (2, 3, 4, 5, 6)
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


def operands(conv: Conv, seed: int = 0) -> tuple[Any, Any]:
    """Small integers without zeros, different everywhere one could look by mistake."""
    rng = np.random.default_rng(seed)
    pick = np.array([-3, -2, -1, 1, 2, 3, 4])
    x = rng.choice(pick, (conv.n, conv.h, conv.w, conv.c)).astype(DTYPES[conv.element])
    w = rng.choice(pick, (conv.r, conv.s, conv.c, conv.k)).astype(DTYPES[conv.element])
    return x, w


def convolution(conv: Conv, x: Any, w: Any) -> Any:
    pad = conv.pad
    padded = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (conv.r, conv.s), (1, 2))
    exact = np.einsum("npqcrs,rsck->npqk", windows, w.astype(np.float64), optimize=True)
    return exact.astype(np.float32).astype(DTYPES[conv.out])


def run_text(text: str, conv: Conv, seed: int | None = None, hazards: str = "report") -> Outcome:
    context = ir.Context()
    with context:
        tc.load(context)
        module = ir.Module.parse(text)
    shape = (conv.n, conv.p, conv.q, conv.k)
    return tile.run(
        module,
        "f",
        operands(conv),
        [OutputSpec(shape, np.dtype(DTYPES[conv.out]))],
        RunOptions(seed, hazards),
    )


def check(outcome: Outcome, conv: Conv) -> None:
    assert not outcome.incomplete, outcome.incomplete
    assert not outcome.findings, [str(f) for f in outcome.findings]
    np.testing.assert_array_equal(outcome.outputs[0], convolution(conv, *operands(conv)))


CONVS = {
    "two slabs a row, tails in q and units": Conv(),
    "one slab, 32 channels": Conv(c=32, kc=32, k=32),
    "64 channels a step, 5 wide": Conv(c=64, kc=64, k=16, r=1, s=5, pad=2, h=3),
    "no padding, N = 2, bf16 in and out": Conv(n=2, h=4, w=13, pad=0, element="bf16", out="bf16"),
    "channel tail by zero fill": Conv(c=24, kc=16, h=3, w=20, out="f16"),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CONVS)
def test_every_level_equals_numpy_bit_for_bit(level, name):
    conv = CONVS[name]
    check(run_text(shift_conv(level, conv), conv), conv)


@pytest.mark.parametrize("level", [4, 5, 6])
def test_any_completion_order_gives_the_same(level):
    conv = Conv(h=3)
    for seed in range(10):
        check(run_text(shift_conv(level, conv), conv, seed), conv)


def problem(text: str, conv: Conv, seed: int | None = None) -> str | None:
    """How a run failed: "error CODE", "finding CODE", "different"; None if it did not."""
    try:
        outcome = run_text(text, conv, seed)
    except MachineError as error:
        return f"error {'deadlock' if isinstance(error, Deadlock) else error.code}"
    assert not outcome.incomplete, outcome.incomplete
    if outcome.findings:
        return f"finding {outcome.findings[0].code}"
    if not np.array_equal(outcome.outputs[0], convolution(conv, *operands(conv))):
        return "different"
    return None


SMALL = Conv(h=3, w=30)

NEEDLESS = {
    4: {
        "fence_after_full": "one agent waits for TMA only, and cp and mma need no fence after that",
        "fence_before_end": "tcgen05.dealloc is synchronous: a barrier is enough",
        "fence_init": "one agent does everything: nobody else sees the barriers",
        "barrier_setup": "one agent does everything",
        "barrier_end": "one agent does everything",
    },
    6: {
        "fence_after_full": "the mma thread waits for TMA only, and cp and mma need no fence then",
        "fence_before_end": "tcgen05.dealloc is synchronous: a barrier is enough",
    },
}
"""Ops whose absence changes nothing by the ISA's rules, with the reason."""


@pytest.mark.parametrize("level", NEEDLESS)
def test_every_op_left_out_is_noticed(level):
    """Different results, an error, or a finding (for a fence a warning) under one order of four."""
    unnoticed = set()
    for tag in droppable(level, SMALL):
        text = shift_conv(level, SMALL, drop=[tag])
        if all(problem(text, SMALL, seed) is None for seed in [None, *range(3)]):
            unnoticed.add(tag)
    assert unnoticed == set(NEEDLESS[level])


CHANGED = {
    "dropped ashift": ("mma00", lambda line: line.replace("ashift = true", "ashift = false")),
    "too few bytes expected": ("expect", lambda line: _number(line, "nbytes", -16)),
    "too many bytes expected": ("expect", lambda line: _number(line, "nbytes", 16)),
    "one lane less stored": ("store", lambda line: _number(line, "rows", -1)),
    "a stale lane stored": ("store", lambda line: _number(line, "rows", 1)),
    "slab loaded one row off": ("load_a1", lambda line: _number(line, "row", 8)),
}


def _number(line: str, name: str, by: int) -> str:
    head, _, tail = line.partition(f"{name} = ")
    value, _, rest = tail.partition(" ")
    return f"{head}{name} = {int(value) + by} {rest}"


# In program order the neighbouring unit's right value lands on the stale lane's later.
@pytest.mark.parametrize(
    ("level", "name"),
    [(n, name) for n in (4, 6) for name in CHANGED if (n, name) != (4, "a stale lane stored")],
)
def test_a_changed_op_is_noticed(level, name):
    tag, change = CHANGED[name]
    conv = Conv(h=3, w=40)  # two blocks a row, so a stored stale lane lands on another's pixel
    text = shift_conv(level, conv, change={tag: change})
    found = {problem(text, conv, seed) for seed in [None, *range(3)]}
    assert found != {None}


@pytest.mark.parametrize("level", [4, 6])
@pytest.mark.parametrize("tag", ["wait_full", "wait_done", "wait_empty"])
def test_a_flipped_parity_is_noticed(level, tag):
    def flip(line: str) -> str:
        bar, parity = line[line.index("(") + 1 : line.index(")")].split(", ")
        return (
            f"%one_{tag} = arith.constant 1 : index\n"
            f"%flip_{tag} = arith.subi %one_{tag}, {parity} : index\n"
            + line.replace(f"({bar}, {parity})", f"({bar}, %flip_{tag})")
        )

    text = shift_conv(level, SMALL, change={tag: flip})
    found = {problem(text, SMALL, seed) for seed in [None, *range(3)]}
    assert found != {None}


def test_a_tile_is_undefined_again_in_every_iteration():
    def only_in_the_first_filter_row(line: str) -> str:
        row = line[line.index("(") + 1 : line.index(")")].split(", ")[4]
        return f"""%nought = arith.constant 0 : index
          %first = arith.cmpi eq, {row}, %nought : index
          scf.if %first {{ {line} }}"""

    text = shift_conv(2, SMALL, change={"load_b1": only_in_the_first_filter_row})
    outcome = run_text(text, SMALL)
    assert {f.code for f in outcome.errors} == {"undefined-read"}
    assert "tc.mma" in outcome.errors[0].first


def test_wrong_byte_count_in_program_order():
    context = ir.Context()
    with context:
        tc.load(context)
        module = ir.Module.parse(shift_conv(2, SMALL))
        load = next(op for op in nested(module.operation) if op.operation.name == "tc.tma_load")
        # Past the verifier, which would refuse it.
        load.attributes["nbytes"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1040)
    spec = [OutputSpec((SMALL.n, SMALL.p, SMALL.q, SMALL.k), np.dtype(np.float32))]
    with pytest.raises(MachineError, match="wrong-byte-count: expected nbytes = 1024"):
        tile.run(module, "f", operands(SMALL), spec)


def test_findings_name_the_op_and_its_location():
    outcome = run_text(shift_conv(4, SMALL, drop=["tmem_wait"]), SMALL)
    finding = outcome.errors[0]
    assert "tc.tmem_ld" in finding.first and ":" in finding.first


def test_unwritten_outputs_are_reported():
    conv = Conv(h=3, w=30)
    text = shift_conv(2, conv, change={"store": lambda line: _number(line, "rows", -2)})
    outcome = run_text(text, conv)
    (finding,) = outcome.errors
    assert finding.code == "output-never-written"
    assert "(0, 0, 28, 0)" in finding.second


def test_sites_say_who_wrote_an_element():
    conv = Conv()
    outcome = run_text(shift_conv(6, conv), conv)
    # p = 2, q = 33: unit 2*2 + 1 = 5, so CTA 1, quarter 1, lane 33 - 30 = 3 of it.
    words = outcome.sites[0]((0, 2, 33, 7))
    assert "CTA (1, 0, 0)" in words and "lane 35" in words and "tc.store_rows" in words


def test_counters_count_the_bytes_moved():
    conv = Conv()
    counters = run_text(shift_conv(2, conv), conv).counters
    assert counters["global_to_shared"] == conv.ctas * conv.steps * (128 * 32 + 3 * 16 * 32)
    assert counters["shared_to_tmem"] == conv.ctas * conv.steps * 128 * 32
    assert counters["mma"] == conv.ctas * conv.steps * 3


def test_arithmetic_on_register_tiles():
    """relu(2 y - 1) in the epilogue, and the writer's lane is still known after it."""
    conv = Conv(h=3)

    def epilogue(line: str) -> str:
        value = line[line.index("(") + 1 : line.index(",")]
        return f"""%two = arith.constant 2.0 : f32
          %twos = vector.broadcast %two : f32 to vector<32x16xf32>
          %ones = arith.constant dense<1.0> : vector<32x16xf32>
          %zeros = arith.constant dense<0.0> : vector<32x16xf32>
          %e0 = arith.mulf %twos, {value} : vector<32x16xf32>
          %e1 = arith.subf %e0, %ones : vector<32x16xf32>
          %e2 = arith.cmpf ogt, %e1, %zeros : vector<32x16xf32>
          %e3 = arith.select %e2, %e1, %zeros : vector<32x16xi1>, vector<32x16xf32>
          """ + line.replace(f"({value},", "(%e3,")

    outcome = run_text(shift_conv(6, conv, change={"store": epilogue}), conv, 3)
    assert not outcome.incomplete and not outcome.findings
    expected = np.maximum(2 * convolution(conv, *operands(conv)) - 1, 0)
    np.testing.assert_array_equal(outcome.outputs[0], expected)
    assert "lane 35" in outcome.sites[0]((0, 0, 33, 7))


def test_an_op_without_a_rule_is_named():
    text = shift_conv(2, SMALL).replace("return }", "gpu.barrier\nreturn }")
    (line,) = run_text(text, SMALL).incomplete
    assert "gpu.barrier" in line and "no rule" in line

    @tile.execute("gpu.barrier")
    def barrier(compiler, op):
        return lambda frame: None

    try:
        check(run_text(text, SMALL), SMALL)
    finally:
        del tile.execute._rules["gpu.barrier"]


def test_wrong_buffers_are_refused():
    context = ir.Context()
    with context:
        tc.load(context)
        module = ir.Module.parse(shift_conv(2, SMALL))
    with pytest.raises(InputError, match="expected buffers"):
        tile.run(module, "f", operands(Conv(h=4)), [OutputSpec((1,), np.dtype(np.float32))])


@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
@pytest.mark.parametrize("major", ["K", "MN"])
def test_element_addresses_fill_the_tile_once(major, swizzle):
    """Every element has bytes of its own, all within the tile, 16-byte chunks stay together."""
    tile = TileLayout(64, 128, 2, major, swizzle)
    addresses = tile.elements(4096, 0, 128)
    assert np.array_equal(np.sort(addresses.reshape(-1)), 4096 + 2 * np.arange(64 * 128))
    rows = addresses if major == "K" else addresses.T
    chunks = rows.reshape(rows.shape[0], -1, 8)
    assert (np.diff(chunks, axis=2) == 2).all()


def test_element_addresses_of_mn_major_tf32():
    """32 of M or N are a row of 128 bytes; of row k the eighths of 32 bytes change places by k."""
    addresses = TileLayout(64, 16, 4, "MN", "128B_ATOM_32B").elements(4096, 0, 16)
    assert np.array_equal(np.sort(addresses.reshape(-1)), 4096 + 4 * np.arange(64 * 16))
    for mn in range(64):
        for k in range(16):
            piece = mn % 32 // 8 ^ k % 4
            row = mn // 32 * 16 + k
            assert addresses[mn, k] == 4096 + 128 * row + 32 * piece + 4 * (mn % 8)


def test_element_addresses_of_a_drawn_swizzle():
    # 128-byte rows: chunk c of row r lies at chunk c XOR (r mod 8).
    addresses = TileLayout(16, 64, 2, "K", "128B").elements(1024, 0, 64)
    for row in range(16):
        for chunk in range(8):
            assert addresses[row, 8 * chunk] == 1024 + 128 * row + 16 * (chunk ^ (row % 8))


def test_clip_keeps_what_lies_inside():
    assert clip([0, 2, 30, 8], (1, 5, 56, 64), 30, 2) == (26, 56)
    assert clip([0, 2, 0, 8], (1, 5, 56, 64), 30, 2) == (30, 56)
    assert clip([1, 0, 0, 0], (1, 5, 56, 64), 30, 2) == (0, 0)
    assert clip([0, 0, -1, 0], (1, 5, 56, 64), 30, 2) == (0, 0)
    assert clip([3, 40], (8, 64), 32, 1, 0) == (24, 5)


def test_the_demo_layer():
    """56 x 56 x 64 -> 64, 3 x 3: 28 CTAs x 36 mma, with hazards on, in a drawn order."""
    conv = Conv(h=56, w=56, c=64, k=64, kc=64)
    context = ir.Context()
    with context:
        tc.load(context)
        module = ir.Module.parse(shift_conv(6, conv))
    spec = [OutputSpec((1, 56, 56, 64), np.dtype(np.float32))]
    x, w = operands(conv)
    check(tile.run(module, "f", (x, w), spec, RunOptions(1)), conv)
