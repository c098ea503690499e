"""Every row of `legal` is raised by a program, and the same program without what it names is not.

docs/reference/kernels.md is what the generator writes; a cell that reads "yes" is a kernel, down to
PTX.
"""

from __future__ import annotations

import dataclasses

import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.passes.kernels import legal
from tcir.passmanager.pipeline import Pipeline
from tcir.session.session import set_target
from tcir.tools.dev import kernels_page

from ..linalg_programs import named
from .programs import (
    CONV,
    CONV_GROUPS,
    CONV_PARTS,
    CONV_QUANTISED,
    DENSE,
    EXCHANGED,
    GATED,
    GATED_BLOCKS,
    GROUPED,
    GROUPED_BLOCKS,
    GROUPED_QUANTISED,
    QUANTISED,
    SCALED,
    VECTOR,
)

H = "sm_90a"


@dataclasses.dataclass(frozen=True)
class Pair:
    """A program and pass that a row excludes, and what differs in the one that is legal."""

    row: str
    program: str
    passes: str
    legal_passes: str = ""
    legal_program: str = ""
    target: str = "sm_100a"
    legal_target: str = ""


PAIRS = (
    Pair("persistent beside scheduler=clc", DENSE, "tile-gemm{scheduler=clc}",
         "tile-gemm{scheduler=clc persistent=true}"),
    Pair("ctas beside scheduler=clc", DENSE, "tile-gemm{scheduler=clc persistent=true ctas=2}",
         "tile-gemm{scheduler=clc persistent=true}"),
    Pair("ctas beside persistent=false", DENSE, "tile-gemm{ctas=2}",
         "tile-gemm{ctas=2 persistent=true}"),
    Pair("scheduler beside core=wgmma", DENSE, "tile-gemm{scheduler=clc persistent=true}",
         "tile-gemm{persistent=true}", target=H),
    Pair("cluster beside cta_group=2", DENSE, "tile-gemm{cluster=2x1 cta-group=2}",
         "tile-gemm{cta-group=2}"),
    Pair("cluster beside scheduler=clc", DENSE,
         "tile-gemm{cluster=2x1 scheduler=clc persistent=true}", "tile-gemm{cluster=2x1}"),
    Pair("cluster beside product=row-walk", CONV, "tile-conv-smem-offset{cluster=1x2 n-tile=32}",
         "tile-conv-smem-offset{cluster=2x1 n-tile=32}"),
    Pair("cta_group beside core=wgmma", CONV, "tile-conv-implicit-gemm{cta-group=2}",
         "tile-conv-implicit-gemm", target=H),
    Pair("tiling beside cta_group=2", CONV, "tile-conv-shift-reuse{cta-group=2 tiling=linear}",
         "tile-conv-shift-reuse{cta-group=2 tiling=packed}"),
    Pair("persistent beside tiling=linear", CONV,
         "tile-conv-shift-reuse{persistent=true tiling=linear}",
         "tile-conv-shift-reuse{persistent=true tiling=packed}"),
    Pair("cluster beside m_tile=256", VECTOR,
         "tile-gemv-padded-n{m-tile=256 pad-n=32 cluster=2x1}",
         "tile-gemv-padded-n{m-tile=256 pad-n=32}"),
    Pair("cluster beside product=padded", VECTOR, "tile-gemv-padded-n{cluster=1x2}",
         "tile-gemv-padded-n{cluster=2x1}"),
    Pair("schedule beside scheduler=clc", VECTOR,
         "tile-gemv-padded-n{scheduler=clc schedule=stream-k}",
         "tile-gemv-padded-n{scheduler=clc schedule=single}"),
    Pair("schedule beside cluster=2x1", VECTOR,
         "tile-gemv-padded-n{cluster=2x1 schedule=split-k}",
         "tile-gemv-padded-n{cluster=2x1 schedule=single}"),
    Pair("schedule beside m_tile=256", VECTOR,
         "tile-gemv-padded-n{m-tile=256 pad-n=32 schedule=split-k}",
         "tile-gemv-padded-n{m-tile=256 pad-n=32}"),
    Pair("store_stages beside store=direct", DENSE, "tile-gemm{store-stages=2}",
         "tile-gemm{store=tma store-stages=2}"),
    Pair("store beside tiling=packed", CONV, "tile-conv-shift-reuse{store=tma tiling=packed}",
         "tile-conv-shift-reuse{store=tma}"),
    Pair("store beside operands=exchanged", EXCHANGED, "tile-gemm{store=tma}", "tile-gemm"),
    Pair("store beside results=quantised", QUANTISED, "tile-gemm{store=tma}", "tile-gemm"),
    Pair("store beside results=gated", GATED, "tile-gemm{store=tma}", "tile-gemm"),
    Pair("epilogue_tile beside core=wgmma", DENSE, "tile-gemm{epilogue-tile=128x32}",
         "tile-gemm", target=H),
    Pair("results beside product=grouped", GROUPED_QUANTISED, "tile-gemm", legal_program=GROUPED),
    Pair("results beside product=im2col", CONV_QUANTISED, "tile-conv-implicit-gemm",
         legal_program=CONV),
    Pair("results beside product=row-walk", GROUPED_BLOCKS, "tile-gemm", target=H,
         legal_program=GROUPED),
    Pair("results beside core=wgmma", GATED, "tile-gemm", target=H, legal_target="sm_100a"),
    Pair("results beside core=tcgen05", GATED_BLOCKS, "tile-gemm", target="sm_100a",
         legal_target=H),
    Pair("n_tiles beside core=wgmma", DENSE, "tile-gemm{n-tiles=2 n-tile=32}",
         "tile-gemm{n-tile=32}", target=H),
    Pair("n_tiles beside store=tma", DENSE, "tile-gemm{n-tiles=2 n-tile=32 store=tma}",
         "tile-gemm{n-tiles=2 n-tile=32}"),
    Pair("collector beside n_tiles=1", DENSE, "tile-gemm{collector=true}",
         "tile-gemm{collector=true n-tiles=2 n-tile=32}"),
    Pair("kind beside core=wgmma", DENSE, "tile-gemm{kind=mxf4}", "tile-gemm", target=H),
    Pair("kind beside product=dense", DENSE, "tile-gemm{kind=mxf4}", "tile-gemm{kind=mxf4nvf4}",
         legal_program=SCALED),
    Pair("core beside product=block-scaled", SCALED, "tile-gemm", target=H,
         legal_target="sm_100a"),
    Pair("core beside product=shifted", CONV, "tile-conv-shift-reuse", target=H,
         legal_target="sm_100a"),
    Pair("consumer_warps beside core=tcgen05", DENSE, "tile-gemm{consumer-warps=8}",
         target="sm_100a", legal_target=H),
    Pair("epilogue_warps beside store=tma", DENSE, "tile-gemm{store=tma epilogue-warps=8}",
         "tile-gemm{epilogue-warps=8}"),
    Pair("producer_warps beside core=wgmma", DENSE, "tile-gemm{producer-warps=2}",
         "tile-gemm{producer-warps=1}", target=H),
    Pair("consumer_warps beside core=wgmma", DENSE, "tile-gemm{consumer-warps=1}",
         "tile-gemm{consumer-warps=8}", target=H),
    Pair("epilogue_warps beside core=wgmma", DENSE, "tile-gemm{epilogue-warps=8}", "tile-gemm",
         target=H),
    Pair("split_k beside results=gated", GATED, "split-k{splits=2}", legal_program=DENSE),
    Pair("swap beside product=grouped", GROUPED, "swap-operands{swap=always}", "swap-operands"),
    Pair("swap beside results=gated", GATED, "swap-operands{swap=always}", legal_program=DENSE),
    Pair("operands beside core=wgmma", EXCHANGED, "tile-gemm", target=H, legal_program=DENSE),
    Pair("shift beside halo=mask", CONV, "tile-conv-shift-reuse{shift=shift}",
         "tile-conv-shift-reuse{shift=shift halo=refresh}"),
    Pair("shift_quarters beside shift=ashift", CONV, "tile-conv-shift-reuse{shift-quarters=all}",
         "tile-conv-shift-reuse{shift-quarters=all shift=shift halo=refresh}"),
    Pair("halo_load beside halo=mask", CONV,
         "tile-conv-shift-reuse{halo-load=w128 tiling=packed}",
         "tile-conv-shift-reuse{halo-load=w128 tiling=packed halo=refresh}"),
    Pair("tiling beside halo_load=w128", CONV, "tile-conv-shift-reuse{halo-load=w128 halo=refresh}",
         "tile-conv-shift-reuse{halo-load=w128 halo=refresh tiling=packed}"),
    Pair("ctas beside copies=cp.async", DENSE,
         "tile-matmul-warp{ctas=1 copy=cp.async block-m=64}",
         "tile-matmul-warp{ctas=1 copy=tma block-m=64}", target=H),
)  # fmt: skip


def run(text: str, passes: str, target: str) -> None:
    """Runs the passes on the program for a target."""
    context = ir.Context()
    tc.load(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        set_target(module, target)
        Pipeline.parse(f"builtin.module({passes})").run(module)


def test_every_row_has_a_pair() -> None:
    assert [pair.row for pair in PAIRS] == [row.name for row in legal.ROWS]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.row)
def test_pair(pair: Pair) -> None:
    row = next(row for row in legal.ROWS if row.name == pair.row)
    with pytest.raises(tcir.Error) as error:
        run(pair.program, pair.passes, pair.target)
    assert f"{row.reason}{f' ({row.source})' if row.source else ''}; {row.way_out}" in str(
        error.value
    )
    run(
        pair.legal_program or pair.program,
        pair.legal_passes or pair.passes,
        pair.legal_target or pair.target,
    )


def test_a_convolution_in_parts_has_one_schedule() -> None:
    run(CONV_PARTS, "tile-conv", "sm_100a")


@pytest.mark.parametrize("target", ["sm_100a", H])
def test_ctas_of_other_groups_share_no_pixels(target: str) -> None:
    run(CONV_GROUPS, "tile-conv-implicit-gemm{cluster=2x1 n-tile=32}", target)
    with pytest.raises(
        tcir.PassError, match="expected cluster=1x1 for a convolution with groups of channels"
    ):
        run(CONV_GROUPS, "tile-conv-implicit-gemm{cluster=1x2 n-tile=32}", target)


THIN_GROUPS = CONV_GROUPS.replace("3x3x32x64xf16", "3x3x32x48xf16").replace(
    "10x10x64xf32", "10x10x48xf32"
)


def test_a_group_has_the_widths_of_its_core() -> None:
    """24 output channels of a group: N of wgmma is a multiple of 8, of tcgen05 of 16."""
    for options in ("", "{n-tile=24}", "{n-tile=8}"):
        run(THIN_GROUPS, f"tile-conv-implicit-gemm{options}", H)
    with pytest.raises(tcir.PassError, match="take n-tile=8, or pad each group"):
        run(THIN_GROUPS, "tile-conv-implicit-gemm{n-tile=16}", H)
    for options in ("", "{n-tile=8}"):
        with pytest.raises(tcir.PassError, match=r"to a multiple of 16|a multiple of 16 in"):
            run(THIN_GROUPS, f"tile-conv-implicit-gemm{options}", "sm_100a")


FEATURES = kernels_page.FEATURES
SMALL = {
    legal.DENSE: named("matmul", ["300x136", "136x64", "300x64"]),
    legal.SCALED: SCALED,
    legal.GROUPED: GROUPED,
    legal.PADDED: VECTOR,
}
LAYER = named("conv_2d_nhwc_hwcf", ["2x10x10x64", "3x3x64x64", "2x8x8x64"])
CELLS = [
    (route, name)
    for route in kernels_page.ROUTES
    for name in kernels_page.FEATURES
    if kernels_page.reason(route, name) is None
]


@pytest.mark.parametrize(("route", "name"), CELLS, ids=lambda each: getattr(each, "title", each))
def test_what_has_no_row_compiles(route: kernels_page.Route, name: str) -> None:
    options = {k: v for k, v in route.feature(name).items() if k != "sums"}
    if route.product in (legal.DENSE, legal.GROUPED) or "n_tiles" in options:
        options["n_tile"] = 32
    if name == "split of K" and route.product in legal.CONVOLUTIONS:
        options["split_k"] = 3  # equal parts of nine taps, of three filter rows
    matrices = route.product in SMALL and route.product != legal.PADDED
    pipeline = "gemm" if matrices else route.tiling.removeprefix("tile-")
    target = "sm_100a" if route.core == legal.TCGEN05 else H
    kernel = tcir.compile(SMALL.get(route.product, LAYER), pipeline, target=target, **options)
    assert kernel.ptx.count(".entry") >= 1


def test_every_row_of_absent_options_is_on_the_page() -> None:
    """None is for an option that the pass has, or behind another row."""
    found = [kernels_page.reason(r, name) for r in kernels_page.ROUTES for name in FEATURES]
    assert [row for row in legal.ABSENT if row not in found] == []


def test_page_is_fresh() -> None:
    page = kernels_page.TARGET.read_text(encoding="utf-8")
    assert kernels_page.render() == page, "run `python -m tcir.tools.dev.kernels_page`"
