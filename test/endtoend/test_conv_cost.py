"""The cost model's counts are the machine's, and the cheapest legal schedule is the one chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tcir
from tcir.passes.conv.cost import SCHEDULES
from tcir.passes.conv.schedules import ConvSchedules
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.tile_conv import TileConv
from tcir.passes.emit.cost import PRICED, Cost, LaunchWork, mma_cycles
from tcir.passes.pipelining.multi_buffer import BARRIER_BYTES
from tcir.passes.raising.raise_to_tc import RaiseToTc
from tcir.passmanager.remarks import remarks_to
from tcir.program.source import load_module, mlir_context
from tcir.time.constants import Constants, disputed

from .linalg_text import Conv
from .oracle import convolution, operands

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "convolution.md"
SAME = (1, 1, 1, 1)
LAYERS = [
    Conv(1, 14, 14, 64, 64, 3, 3, SAME),
    Conv(2, 7, 7, 32, 24, 3, 3, SAME, filter="fhwc"),
    Conv(1, 15, 13, 24, 40, 3, 3, SAME, strides=(2, 2)),
    Conv(1, 12, 20, 16, 16, 3, 3, (2, 2, 2, 2), dilations=(2, 2), element="bf16"),
    Conv(1, 9, 40, 8, 16, 1, 7, (0, 0, 3, 3), out="f16"),
    Conv(3, 9, 11, 136, 16, 1, 1, strides=(2, 1)),
    Conv(1, 9, 11, 48, 16, 3, 3, SAME, element="i8", out="i32"),
    Conv(1, 9, 11, 16, 32, 3, 3, SAME, element="f8E4M3FN", strides=(2, 2)),
    Conv(1, 9, 11, 20, 16, 3, 3, SAME, element="f32", filter="fhwc"),
    Conv(1, 10, 9, 16, 32, 5, 4, (2, 1, 0, 3), strides=(3, 2), dilations=(1, 3)),
]


layers = pytest.mark.parametrize(
    "layer",
    [pytest.param(layer, id=layer.name) for layer in LAYERS],
)


def work_of(layer: Conv, schedule: str, n_tile: int) -> LaunchWork | None:
    """The model's counts."""
    with mlir_context() as context:
        module = load_module(layer.text(), context)
        RaiseToTc().apply(module)
        op = next(iter(module.body.operations[0].regions[0].blocks[0]))
        with module.context:
            return SCHEDULES[schedule](ConvShape.of(op), n_tile)


CYCLES = {(16, False): 36, (16, True): 8, (32, False): 40, (32, True): 16}
"""(N, whether A is in tensor memory) -> cycles of one mma with M = 128, written out.

N / 2 for the product (8192 multiplications of f16 a cycle and SM), or 32 bytes of every row of B,
and of A's 128 unless they are in tensor memory, at 128 bytes a cycle: the larger.
"""


@pytest.mark.parametrize(("n_tile", "stages"), [(16, 1), (32, 2)])
@pytest.mark.parametrize("schedule", SCHEDULES)
@layers
def test_work_is_what_the_machine_counts(
    layer: Conv, schedule: str, n_tile: int, stages: int
) -> None:
    x, w = operands(layer, 5)
    want = convolution(layer, x, w)
    name, brace, options = schedule.partition("{")
    pipeline = f"{name}{{n-tile={n_tile} stages={stages} {options if brace else '}'}"
    kernel = tcir.compile(layer.text(), pipeline)
    out = np.zeros_like(want)
    counted = kernel(x, w, out).counters
    assert out.tobytes() == want.tobytes()
    work = work_of(layer, schedule, n_tile)
    assert work is not None
    a_in_tmem = schedule.startswith("conv-shift-reuse")
    assert work.ctas == int(np.prod(kernel.launch_config.grid))
    assert work.mma == counted["mma"]
    assert work.activations == counted["global_to_shared_0"]
    assert work.filters == counted["global_to_shared_1"]
    assert work.to_tmem == counted["shared_to_tmem"]
    assert work.to_tensor == counted["shared_to_tensor"]
    assert abs(kernel.launch_config.dynamic_smem - stages * work.stage_bytes) <= BARRIER_BYTES
    assert work.tensor_cycles == counted["tensor_cycles"] == work.mma * CYCLES[n_tile, a_in_tmem]
    assert work.outputs * layer.k * want.itemsize == counted["global_store"]


@layers
def test_the_cheapest_legal_schedule_is_chosen(layer: Conv) -> None:
    said: list[str] = []
    with mlir_context() as context:
        module = load_module(layer.text(), context)
        RaiseToTc().apply(module)
        op = next(iter(module.body.operations[0].regions[0].blocks[0]))
        ranked = ConvSchedules(op).ranked()
        with remarks_to(lambda location, text: said.append(text)):
            TileConv().apply(module)
    legal = [each for each in ranked if not each.reason]
    times = {each.schedule: Cost.of(each.work).microseconds for each in legal if each.work}
    chosen = said[0].split()[1]
    assert times[chosen] == min(times.values())
    assert "modelled, not measured" in said[0]
    assert "halo=refresh is not considered" in said[0] and "refresh" not in said[0].split()[1]
    assert all(schedule in said[0] for schedule in SCHEDULES)


def test_no_schedule_is_chosen_that_does_not_fit_shared_memory() -> None:
    """Seven taps of 256 output channels are 229 KB; one of implicit-gemm's stages has one."""
    layer = Conv(1, 20, 40, 64, 256, 7, 7, (3, 3, 3, 3))
    said: list[str] = []
    with remarks_to(lambda location, text: said.append(text)):
        kernel = tcir.compile(layer.text(), "conv", n_tile=256)
    assert kernel.launch_config.dynamic_smem <= 227 * 1024
    assert "chose conv-implicit-gemm" in said[0]
    assert "bytes of shared memory, and there are 231424" in said[0]


def test_conv_shift_reuse_is_obeyed_with_a_remark_when_it_loses() -> None:
    said: list[str] = []

    def listen(location: object, text: str) -> None:
        if "is built" in text:
            said.append(text)

    with remarks_to(listen):
        slow = tcir.compile(Conv(1, 14, 14, 64, 64, 1, 1).text(), "conv-shift-reuse")
        assert "ashift" not in slow.ptx  # one tap shifts nothing
        (text,) = said
        tcir.compile(LAYERS[0].text(), "conv-shift-reuse", n_tile=16)
    assert text.startswith("conv-shift-reuse{tiling=rows} with n-tile=64 is built and takes ")
    assert "modelled, not measured" in text and "conv-implicit-gemm" in text
    assert len(said) == 1, "the second is the cheapest: no remark"


def tap_cycles(n: int, taps: int, *, a_in_tmem: bool) -> tuple[int, int, int]:
    """Of `taps` mma of 128 x `n`: tensor cycles with copies that hold up the pipe, without, and
    those of the longest of pipe, shared memory and copy; shifts left out."""
    constants = Constants("sm_100a")
    mma = taps * mma_cycles(n, a_in_tmem=a_in_tmem)
    slab = 128 * 32 if a_in_tmem else 0
    copy = int(slab / constants["cp-rate"])
    port = (taps * 32 * (n + (0 if a_in_tmem else 128)) + slab) / constants["shared-port"]
    return mma + copy, mma, int(max(mma, copy, port))


def test_three_taps_gain_no_tensor_cycles_from_64_columns_on() -> None:
    """The table of docs/explanation/convolution.md, from the table of constants."""
    cells = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines()]
    rows = {row[0]: row[1:] for row in cells if row[0].startswith(("tensor cycles, A", "speed-up"))}
    lanes = 32 / 30  # V
    shared, copied, hidden, added = [], [], [], []
    for n in (32, 64, 96, 128):
        here, there = (tap_cycles(n, 3, a_in_tmem=each) for each in (False, True))
        shared.append(str(here[0]))
        copied.append(str(there[0]))
        hidden.append(f"{here[2] / there[2] / lanes:.2f}")
        added.append(f"{here[0] / there[0] / lanes:.2f}")
    assert list(rows.values()) == [shared, copied, hidden, added]
    gains = {n: int(a) - int(b) for n, a, b in zip((32, 64, 96, 128), shared, copied, strict=True)}
    assert gains[32] > 0 and all(gains[n] < 0 for n in (64, 96, 128))
    # Nine taps for a copy win: 352 against 432 cycles, 208 against 360.
    assert [tap_cycles(n, 9, a_in_tmem=True)[0] for n in (64, 32)] == [352, 208]
    assert [tap_cycles(n, 9, a_in_tmem=False)[0] for n in (64, 32)] == [432, 360]


def test_the_whole_layer_of_the_page() -> None:
    layer = Conv(1, 56, 56, 64, 64, 3, 3, SAME)
    reuse = work_of(layer, "conv-shift-reuse{tiling=rows}", 64)
    gemm = work_of(layer, "conv-implicit-gemm", 64)
    assert reuse is not None and gemm is not None
    cycles = [
        Cost.of(each, Constants("sm_100a", choices)).tensor * each.ctas
        for each, choices in ((gemm, {}), (reuse, {"cp-blocks-mma": "overlap"}), (reuse, {}))
    ]
    words = (
        f"gains {cycles[0] / cycles[1]:.2f} if copies overlap and "
        f"{cycles[0] / cycles[2]:.2f} if they do not"
    )
    assert words in " ".join(PAGE.read_text().split())
    assert reuse.activations < 0.4 * gemm.activations, "the advantage in bytes"


def test_each_constant_costs_what_it_says() -> None:
    """One wave of two CTAs, by hand: 36 mma of 32 cycles, 12 copies of 4 KB, 24 shifts a CTA."""
    work = LaunchWork(
        ctas=2, n_tile=64, lanes=256, outputs=240, mma=72, a_in_tmem=True, activations=98304,
        filters=147456, to_tmem=98304, stored=61440, epilogue_reads=0, unique_bytes=10,
        stage_bytes=0,
    )  # fmt: skip

    def cost(**choices: str) -> Cost:
        return Cost.of(
            work, Constants("sm_100a", {k.replace("_", "-"): v for k, v in choices.items()})
        )

    read: set[str] = set()

    class Reading(Constants):
        def __getitem__(self, name: str) -> float:
            read.add(name)
            return super().__getitem__(name)

    usual = Cost.of(work, Reading("sm_100a"))
    assert usual == cost() and read <= set(PRICED) <= read | {"sector"}
    assert usual.tensor == 36 * 32 + 12 * 64 + 24 and usual.copies == 12 * 64
    assert cost(shift="4-banks").tensor == usual.tensor + 24
    assert cost(cp_rate="port").tensor == usual.tensor - 12 * 32
    assert cost(cp_blocks_mma="overlap").tensor == usual.tensor - 12 * 64
    assert usual.epilogue == 64 * 2 + 130 + 30 * 52  # 30 KB stored
    assert cost(ld_column="port").epilogue == usual.epilogue - 64
    assert usual.l2 == -(-122880 // 81) and cost(l2_port="hopper").l2 == 122880 // 64
    large = replace(work, stage_bytes=48 << 10)
    assert Cost.of(large, Constants("sm_100a")).l2 == -(-122880 // 62)
    assert Cost.of(large, Constants("sm_100a", {"l2-port-large": "best"})) == usual
    assert usual.cycles == usual.tensor + usual.epilogue + 1000
    assert cost(cta_latency="loaded").cycles == usual.cycles + 660


def test_the_remark_has_the_choice_under_every_other_answer() -> None:
    said: list[str] = []
    with remarks_to(lambda location, text: said.append(text)), mlir_context() as context:
        module = load_module(Conv(1, 28, 28, 256, 128, 1, 1).text(), context)
        for each in (RaiseToTc(), TileConv()):
            each.apply(module)
    answers = [
        f"{name}={answer}"
        for name, constant in disputed("sm_100a").items()
        for answer in list(constant.figures["sm_100a"])[1:]
    ]
    after = said[0].partition("sources disagree on some constants")[2]
    for answer in answers:
        assert (answer in after) == (answer.partition("=")[0] in PRICED)
