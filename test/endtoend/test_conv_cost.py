"""The cost model's counts are the machine's, and the cheapest legal schedule is the one chosen."""

from __future__ import annotations

import numpy as np
import pytest

import tcir
from tcir.passes.conv.cost import SCHEDULES, Cost, Work
from tcir.passes.conv.schedules import rank
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.tile_conv import TileConv
from tcir.passes.raising.raise_to_tc import RaiseToTc
from tcir.passes.roles.multi_buffer import BARRIER_BYTES
from tcir.passmanager.remarks import remarks_to
from tcir.program.source import load_module, mlir_context

from .linalg_text import Conv
from .oracle import convolution, integers

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
QUICK = [LAYERS[0], LAYERS[5]]


layers = pytest.mark.parametrize(
    "layer",
    [
        pytest.param(layer, id=layer.name, marks=() if layer in QUICK else pytest.mark.slow)
        for layer in LAYERS
    ],
)


def work_of(layer: Conv, schedule: str, n_tile: int) -> Work | None:
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


@pytest.mark.parametrize(
    ("n_tile", "stages"), [(16, 1), pytest.param(32, 2, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("schedule", SCHEDULES)
@layers
def test_work_is_what_the_machine_counts(
    layer: Conv, schedule: str, n_tile: int, stages: int
) -> None:
    x_shape, w_shape, _ = layer.shapes
    x, w = integers(x_shape, layer.element, 5), integers(w_shape, layer.element, 6)
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
        ranked = rank(op)
        with remarks_to(lambda location, text: said.append(text)):
            TileConv().apply(module)
    legal = [each for each in ranked if not each.reason]
    times = {each.schedule: Cost.of(each.work).microseconds for each in legal if each.work}
    chosen = said[0].split()[1]
    assert times[chosen] == min(times.values())
    assert "modelled, not measured" in said[0]
    assert "halo=refresh is no candidate" in said[0] and "refresh" not in said[0].split()[1]
    assert all(schedule in said[0] for schedule in SCHEDULES)


def test_no_schedule_is_chosen_that_does_not_fit_shared_memory() -> None:
    """Seven taps of 256 output channels are 229 KB; one of implicit-gemm's stages has one."""
    layer = Conv(1, 20, 40, 64, 256, 7, 7, (3, 3, 3, 3))
    said: list[str] = []
    with remarks_to(lambda location, text: said.append(text)):
        kernel = tcir.compile(layer.text(), "conv", n_tile=256)
    assert kernel.launch_config.dynamic_smem <= 227 * 1024
    assert "chose conv-implicit-gemm" in said[0]
    assert "not legal: expected at most 231424 bytes of shared memory a stage" in said[0]


def test_conv_shift_reuse_is_obeyed_with_a_remark_when_it_loses() -> None:
    said: list[str] = []

    def listen(location: object, text: str) -> None:
        if "was asked for" in text:
            said.append(text)

    with remarks_to(listen):
        slow = tcir.compile(Conv(1, 14, 14, 64, 64, 1, 1).text(), "conv-shift-reuse")
        assert "ashift" not in slow.ptx  # one tap shifts nothing
        (text,) = said
        tcir.compile(LAYERS[0].text(), "conv-shift-reuse", n_tile=16)
    assert text.startswith("conv-shift-reuse{tiling=rows} with n-tile=64 was asked for: ")
    assert "modelled, not measured" in text and "conv-implicit-gemm" in text
    assert len(said) == 1, "the second is the cheapest: no remark"
