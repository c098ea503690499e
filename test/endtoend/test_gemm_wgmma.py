"""gemm for sm_90a: every type, order and tail is executed after every pass; breaks are seen."""

from __future__ import annotations

from typing import Any

import pytest

import tcir
from endtoend.product_text import program
from endtoend.test_matmul_warp_breaks import Break, erase, number

TARGET = "sm_90a"


CASES = [
    pytest.param(program(72, 40, 104, "f16", "km", "nk"), {}, id="f16 km nk"),
    (program(37, 51, 29, "f16"), {}),  # no extent is a multiple of 8
    (program(40, 72, 16, "f16", out="f8E5M2"), {"n_tile": 64}),  # pairs of bytes
    pytest.param(
        program(264, 16, 256, "f16"),
        {"n_tile": 16, "stages": 2, "persistent": True, "ctas": 2},
        id="two laps of 2",
    ),
    (program(40, 16, 1096, "f16"), {"n_tile": 16, "stages": 8}),  # three laps
    (program(40, 80, 16, "f16", out="f8E4M3FN"), {"n_tile": 64}),  # stored 16 bytes at a time
    (program(136, 72, 100, "f32"), {}),  # B is repacked
    (program(200, 328, 136, "f16", out="f16"), {}),
    (program(200, 328, 136, "f16", "mk", "nk", out="f16"), {}),
    (program(200, 328, 136, "bf16", "km", "kn", out="bf16"), {}),
    (program(200, 328, 136, "bf16", "km", "nk"), {}),
    (program(136, 72, 104, "f32", "km", "nk"), {}),
    (program(136, 72, 208, "i8"), {}),
    (program(136, 72, 80, "f16", batch=3), {}),
    (program(136, 72, 80, "bf16", batch=2), {"persistent": True, "ctas": 3}),
    (program(1, 8, 8, "f16"), {}),
    (program(64, 8, 16, "f16", out="f16"), {}),
    (program(520, 264, 200, "bf16"), {"persistent": True, "ctas": 3}),
    (program(264, 520, 200, "f16"), {"n_tile": 136, "stages": 2}),
    (program(264, 200, 328, "f16", out="f16"), {"cluster": "2x1", "stages": 2}),
    (program(264, 456, 200, "bf16", "km", "nk"), {"cluster": "1x2", "n_tile": 64}),
    (program(520, 264, 264, "f16"), {"cluster": "2x2", "persistent": True, "ctas": 4}),
    (program(128, 96, 64, "f16"), {"cluster": "2x2", "n_tile": 32}),
    (program(512, 512, 512, "f16", out="f16"), {"n_tile": 256}),
    (program(1024, 1024, 256, "bf16", out="bf16"), {"persistent": True, "n_tile": 192}),
]


@pytest.mark.parametrize(("text", "options"), CASES)
def test_every_pass_is_executed_and_holds(text: str, options: dict[str, Any]) -> None:
    kernel = tcir.compile(text, "gemm", target=TARGET, validate=True, orders=2, **options)
    kernel.report.check()
    assert [line.name for line in kernel.report.passes][-1] == "llvm-to-ptx"
    assert "wgmma.mma_async" in kernel.ptx


@pytest.mark.parametrize(
    ("text", "options", "threads"),
    [
        (program(40, 136, 200, "f16", "mk", "nk", out="f16"), {}, 160),
        (program(64, 72, 136, "bf16", "km", "kn"), {"n_tile": 32}, 160),
        (program(33, 72, 208, "i8", batch=2), {}, 160),
        (program(65, 72, 136, "f16"), {}, 288),
        (program(64, 96, 64, "f16"), {"cluster": "1x2", "n_tile": 32}, 288),
    ],
)
def test_at_most_64_rows_are_one_warpgroups(
    text: str, options: dict[str, Any], threads: int
) -> None:
    kernel = tcir.compile(text, "gemm", target=TARGET, validate=True, orders=2, **options)
    kernel.report.check()
    assert kernel.launches.launches[-1].block == (threads, 1, 1)


@pytest.mark.parametrize(("columns", "units"), [(80, 4), (72, 0)])
def test_bytes_are_stored_in_units_where_rows_are_whole_ones(columns: int, units: int) -> None:
    """Of a tile of 128 columns a thread has two units of each of its two rows."""
    text = program(40, columns, 16, "f16", out="f8E4M3FN")
    ptx = tcir.compile(text, "gemm", target=TARGET, n_tile=128).ptx
    assert ptx.count("st.global.v4.b32") == units
    assert ptx.count("cvt.rn.satfinite.e4m3x2.f32") == 32


@pytest.mark.parametrize(
    ("example", "options"),
    [
        ("mlp_bf16", {}),
        ("attention_projections", {}),
        ("matmul", {"persistent": True}),
        ("tf32_matmul", {}),
    ],
)
def test_the_examples_with_their_epilogues(example: str, options: dict[str, Any]) -> None:
    text = f"examples/{example}.mlir"
    kernel = tcir.compile(text, "gemm", target=TARGET, validate=True, **options)
    kernel.report.check()


def no_wait(op: Any) -> None:
    """The registers are used as if nothing had to be waited for."""
    op.results[0].replace_all_uses_with(op.operands[0])
    op.erase()


# Behind which pass, what, and the pass whose verdict it is.
BREAKS = {
    "registers read before the wait": ("place-barriers", Break("tc.wgmma_wait", no_wait)),
    "a slot freed before it was read": (
        "place-barriers",
        Break("tc.wgmma_wait", number("pending", 1)),
    ),
    "no wait for the tiles": ("place-barriers", Break("tc.mbarrier_wait", erase)),
    "slots never freed": ("place-barriers", Break("tc.mbarrier_arrive", erase)),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_seen_where_roles_are_apart(name: str) -> None:
    after, broken = BREAKS[name]
    pipeline = tcir.named_pipeline("gemm", n_tile=16, stages=2).insert(broken, after=after)
    text = program(136, 16, 256, "f16")
    kernel = tcir.compile(text, pipeline, target=TARGET, validate=True, orders=3)
    failure = kernel.report.first_failure()
    assert failure is not None, str(kernel.report)
    assert failure.verdict in ("different", "incomplete")
    assert failure.name in ("break", "assign-roles"), str(failure)


def without(name: str) -> Any:
    def change(op: Any) -> None:
        if name in op.attributes:
            del op.attributes[name]

    return change


CLUSTER_BREAKS = {
    "slots freed for one CTA only": Break("tc.mbarrier_arrive", without("cta_mask")),
    "loads for one CTA only": Break("tc.tma_load", without("cta_mask")),
}


def across(broken: Break) -> Any:
    """A product of clusters of two, broken behind assign-roles."""
    pipeline = tcir.named_pipeline("gemm", n_tile=32, stages=2, cluster="2x1")
    pipeline = pipeline.insert(broken, after="assign-roles")
    text = program(136, 32, 256, "f16")
    return tcir.compile(text, pipeline, target=TARGET, validate=True, orders=3)


def test_a_wait_that_leaves_out_other_ctas_is_a_warning() -> None:
    """Shipping kernels of clusters have it."""
    report = across(Break("tc.mbarrier_wait", without("cluster"))).report
    kinds = {finding["code"] for finding in report["break"].findings}
    assert kinds == {"mbarrier-scope"}, str(report)


@pytest.mark.parametrize("name", CLUSTER_BREAKS)
def test_a_break_between_ctas_is_seen(name: str) -> None:
    kernel = across(CLUSTER_BREAKS[name])
    failure = kernel.report.first_failure()
    assert failure is not None, str(kernel.report)
    assert failure.name == "break", str(failure)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (program(64, 64, 64, "f16"), {"n_tile": 12}, "multiple of 8 in .*, got 12 .*take 8 or 16"),
        (program(64, 64, 64, "i8"), {"n_tile": 40}, "n-tile to be one of 8, .*got 40"),
        (program(64, 64, 64, "f16"), {"n_tiles": 2}, "n-tiles=1 for sm_90a, got 2: one wgmma"),
        (program(64, 64, 64, "f16"), {"cta_group": 2}, "cta-group=1 for sm_90a, got 2"),
        (program(64, 64, 64, "f16"), {"swap": "always"}, "operands in their order for sm_90a"),
    ],
)
def test_what_wgmma_does_not_have_is_refused(
    text: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(tcir.Error, match=message):
        tcir.compile(text, "gemm", target=TARGET, **options)
