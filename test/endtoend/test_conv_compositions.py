"""conv-implicit-gemm with the schedulers, clusters, stores and parts of products of matrices.

Each case is executed after every pass, down to PTX, and once more beside numpy; what is rejected
stands beside what is legal. A layer of ResNet-50 at its size is slow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

import tcir
from tcir.passmanager.options import OptionValue

from .conv_kinds_text import Named
from .linalg_text import Conv
from .oracle import convolution, operands

PIPELINE = "conv-implicit-gemm"
SMALL = Conv(2, 14, 13, 72, 40, 3, 3)
"""2 x 12 x 11 pixels are three tiles, the last not whole; two steps a tap, the second not whole."""
STRIDED = Conv(3, 23, 10, 64, 48, 3, 3, (1, 1, 1, 1), strides=(2, 1), out="f16")
TINY = Conv(2, 11, 11, 16, 32, 3, 3)
"""162 pixels: two tiles, of one step a tap."""
LAYER = Conv(1, 56, 56, 64, 64, 3, 3, (1, 1, 1, 1))
"""conv2_x of ResNet-50: 25 tiles."""
CLUSTER, STORED = ".multicast::cluster", "cp.async.bulk.tensor.2d.global.shared::cta"
STORED_IN_PARTS = STORED.replace(".2d", ".3d")
TAKEN_OVER = "clusterlaunchcontrol.try_cancel"


@dataclass(frozen=True)
class Case:
    """A convolution, options of the pipeline, and what its PTX has because of them."""

    conv: Conv
    options: str
    instruction: str = ""
    target: str = "sm_100a"

    def __str__(self) -> str:
        return "-".join([self.conv.name, *self.options.split(), self.target])


CASES = [
    Case(TINY, "cluster=2x1 persistent=true ctas=2 store=tma", CLUSTER),
    Case(SMALL, "persistent=true ctas=2 n-tile=32"),
    Case(SMALL, "persistent=true scheduler=clc", TAKEN_OVER),
    Case(SMALL, "store=tma", STORED),
    Case(SMALL, "store=tma epilogue-tile=64x16 persistent=true ctas=1", STORED),
    Case(SMALL, "epilogue-tile=128x32 n-tile=64"),
    Case(SMALL, "epilogue-warps=8 n-tile=32"),
    Case(SMALL, "cluster=2x1", CLUSTER),
    Case(SMALL, "cluster=1x2 n-tile=32", CLUSTER),
    Case(STRIDED, "cluster=2x2 n-tile=32 persistent=true ctas=4 store=tma", CLUSTER),
    Case(STRIDED, "cta-group=2 persistent=true scheduler=clc store=tma", TAKEN_OVER),
    Case(STRIDED, "split-k=3"),
    Case(SMALL, "n-tiles=2 n-tile=16"),
    Case(STRIDED, "n-tiles=2 n-tile=32 cta-group=2 persistent=true scheduler=clc", TAKEN_OVER),
    Case(STRIDED, "split-k=9 store=tma persistent=true", STORED_IN_PARTS),
    Case(replace(SMALL, c=64, element="i8", out="i32", filter="fhwc"), "cluster=4x1", CLUSTER),
    Case(SMALL, "cluster=2x1 n-tile=32", CLUSTER, "sm_90a"),
    Case(STRIDED, "cluster=1x2 n-tile=32 persistent=true ctas=2", CLUSTER, "sm_90a"),
    Case(LAYER, "persistent=true cluster=2x1 store=tma", CLUSTER),
    Case(LAYER, "persistent=true scheduler=clc store=tma", TAKEN_OVER),
]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=str(c)) for c in CASES],
)
def test_every_level(case: Case) -> None:
    """Every level, and the PTX beside numpy."""
    pipeline = f"{PIPELINE}{{{case.options}}}"
    kernel = tcir.compile(case.conv.text(), pipeline, target=case.target, validate=True, orders=2)
    assert kernel.report.ok, str(kernel.report)
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}
    assert not [finding for line in kernel.report.passes for finding in line.findings]
    assert case.instruction in kernel.ptx
    assert kernel.ptx.count(".entry") == (2 if "split-k" in case.options else 1)
    x, w = operands(case.conv)
    want = convolution(case.conv, x, w)
    out = np.zeros_like(want)
    outcome = kernel(x, w, out, order_seed=1)
    assert out.tobytes() == want.tobytes() and not outcome.findings, str(outcome)


def test_a_cluster_loads_its_filters_once() -> None:
    """Of two CTAs along the pixels each loads half of the filters, for both: boxes of 16 of 32."""
    boxes = []
    for cluster in ("1x1", "2x1"):
        ir = tcir.compile(SMALL.text(), PIPELINE, cluster=cluster, n_tile=32).ir
        tiled = ir["tile-conv-implicit-gemm"]
        boxes += re.findall(r"make_tensor_map.*box = array<i64: (\d+), 64, 1, 1>", tiled)
    assert boxes == ["32", "16"]


def grouped(channels: int) -> Named:
    """Two groups of 16 channels, to `channels` each."""
    einsum = "nhwgcrs,gkrsc->nhwgk"
    images, filters = (1, 5, 6, 2, 16), (2, channels, 2, 2, 16)
    return Named("conv_2d_nhwgc_gfhwc", (1, 2), einsum, images, filters)


@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
def test_a_cluster_loads_filters_of_one_group(target: str) -> None:
    """Of 192 channels a tile has 96 by itself; parts of 8 for each of eight CTAs make it 64."""
    layer = grouped(192)
    kernel = tcir.compile(layer.text("f16"), PIPELINE, target=target, cluster="8x1")
    assert len(kernel.launches.launches) == 1
    inputs = layer.inputs("f16")
    want = layer.want(*inputs, "f16")
    out = np.zeros_like(want)
    outcome = kernel(*inputs, out)
    assert out.tobytes() == want.tobytes() and not outcome.findings, str(outcome)


@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
@pytest.mark.parametrize(
    ("channels", "given", "message", "way_out"),
    [
        (48, {"cluster": "8x1"}, "expected cluster=2x1 for groups of 48 output channels, got clus",
         {"cluster": "2x1"}),
        (64, {"cluster": "4x1", "n_tile": 16}, "the 64 output channels of a group and are a "
         "multiple of 32, got 16", {"n_tile": 32}),
        (96, {"cluster": "4x1", "n_tile": 48}, "the 96 output channels of a group and are a "
         "multiple of 32, got 48", {"n_tile": 32}),
    ],
)  # fmt: skip
def test_the_way_out_of_groups_in_clusters_compiles(
    target: str,
    channels: int,
    given: dict[str, OptionValue],
    message: str,
    way_out: dict[str, OptionValue],
) -> None:
    text = grouped(channels).text("f16")
    with pytest.raises(tcir.PassError) as caught:
        tcir.compile(text, PIPELINE, target=target, **given)
    ((name, value),) = way_out.items()
    assert message in str(caught.value)
    assert f"take {name.replace('_', '-')}={value}" in str(caught.value)
    assert tcir.compile(text, PIPELINE, target=target, **{**given, **way_out}).ptx


@pytest.mark.parametrize(
    ("target", "given", "message"),
    [
        ("sm_100a", {"ctas": 2}, "expected ctas=0 with persistent=false, got 2"),
        ("sm_100a", {"scheduler": "clc"}, "expected persistent=true with scheduler=clc, got false"),
        ("sm_100a", {"cluster": "2x1", "cta_group": 2}, "expected cluster=1x1 with cta-group=2"),
        ("sm_100a", {"store_stages": 2}, "expected store-stages=0 with store=direct, got 2"),
        ("sm_100a", {"cluster": "2x1", "n_tile": 16}, "expected n-tile to be a multiple of 32 with "
         "cluster=2x1, got 16"),
        ("sm_100a", {"split_k": 4}, "expected split-k=1 or one of 3, 9"),
        ("sm_90a", {"epilogue_tile": "128x32"}, "expected epilogue-tile=auto for sm_90a"),
        ("sm_90a", {"persistent": True, "scheduler": "clc"}, "expected scheduler=static for "),
        ("sm_90a", {"cluster": "2x1", "n_tile": 8}, "expected n-tile to be a multiple of 32 with "
         "cluster=2x1, got 8"),
    ],
)  # fmt: skip
def test_rejected(target: str, given: dict[str, OptionValue], message: str) -> None:
    with pytest.raises(tcir.Error) as caught:
        tcir.compile(STRIDED.text(), PIPELINE, target=target, **given)
    assert message in str(caught.value)
