"""The roofline: what FLOPs and bytes take at least, by hand and of programs."""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
from endtoend.attention_text import Attention

import tcir
from tcir.machine.events import Recording
from tcir.opt.command import main
from tcir.passes.emit.calls import inlined
from tcir.program.execution import run_sequence
from tcir.program.flops import flops_in
from tcir.program.source import load_module, mlir_context
from tcir.run_options import RunOptions
from tcir.target import TARGETS
from tcir.time import modelled_time
from tcir.time.roofline import CUDA_CORES, ExecutedWork, Roofline, RooflineTime, by_kind, scaled

EXAMPLES = Path(__file__).parents[2] / "examples"
CHIP = 148 * 1.85  # SM cycles a nanosecond


def test_the_longer_limit_is_the_bound() -> None:
    few = Roofline("sm_100a", {"f16": 10**9}, 10**8)
    assert few.bound == "HBM" and few.microseconds == pytest.approx(10**8 / 7260 / 1000)
    many = Roofline("sm_100a", {"f16": 10**12}, 10**8)
    assert many.bound == "tensor pipe, f16"
    assert many.microseconds == pytest.approx(10**12 / 8192 / CHIP / 1000)
    assert few.intensity < few.ridge == many.ridge < many.intensity
    assert many.ridge == pytest.approx(8192 * CHIP / 7260)


def test_kinds_have_their_own_rates() -> None:
    both = Roofline("sm_100a", {"f16": 8192, "mxf4nvf4": 32768}, 1)
    times = both.limits
    assert times["tensor pipe, f16"] == pytest.approx(times["tensor pipe, mxf4nvf4"])
    found = by_kind("sm_90", [("mxf4nvf4", 5), ("f16", 3), ("other", 2), ("f16", 1)])
    assert found == {CUDA_CORES: 7, "f16": 4}
    assert Roofline("sm_90", {CUDA_CORES: 256}, 1).limits[CUDA_CORES] == pytest.approx(
        1 / (132 * 1.83 * 1000)
    )


def test_what_was_executed_runs_where_its_ctas_are() -> None:
    """150 CTAs are two waves: 75 at a time on the average."""
    done = ExecutedWork(ctas=150, tensor_cycles=150 * 2000, products=10, to_sms=150 * 6400)
    roof = Roofline("sm_100a", {"f16": 10**9}, 10**6, executed=done)
    assert roof.concurrent_sms == 75
    assert roof.executed_limits["tensor pipe"] == pytest.approx(2 * 2000 / 1850)
    assert roof.executed_limits["L2 to SM"] == pytest.approx(2 * 6400 / 81 / 1850)
    assert roof.share == pytest.approx(10**9 / 8192 / CHIP / 1000 / (4000 / 1850))
    assert "as executed at least 2.16 us (tensor pipe, 75 SMs): at most 21 % of" in str(roof)
    timed = replace(roof, modelled=RooflineTime(10.0, "latency"))
    assert timed.share == pytest.approx(roof.microseconds / 10)
    assert str(timed).endswith("; takes 10 us (latency), 4 % of the roofline")
    padded = ExecutedWork(ctas=1, tensor_cycles=0, products=8192 * 500, to_sms=0)
    alone = Roofline("sm_100a", {"f16": 10}, 10, executed=padded)
    assert alone.executed_limits["tensor pipe"] == pytest.approx(1000 / 1850), "no cycles counted"


def test_numbers_in_words() -> None:
    assert [scaled(n, "B") for n in (12, 1200, 66.1e6, 1.5e12)] == [
        "12 B",
        "1.2 kB",
        "66.1 MB",
        "1.5 TB",
    ]


FLOPS = {
    "matmul.mlir": [("f16", 2 * 200 * 136 * 328)],
    "resnet50_conv2_3x3.mlir": [("f16", 2 * 56 * 56 * 64 * 9 * 64)],
    "nvfp4_gemv_7168x2048x4.mlir": [("mxf4nvf4", 2 * 7168 * 2048 * 4)],
    "tf32_one_tile.mlir": None,
    "mlp_bf16.mlir": None,
}


@pytest.mark.parametrize("name", FLOPS)
def test_flops_of_a_program(name: str) -> None:
    with mlir_context() as context:
        found = flops_in(inlined(load_module(EXAMPLES / name, context)))
    kinds = {"tf32_one_tile.mlir": "tf32", "mlp_bf16.mlir": "f16"}
    if FLOPS[name] is None:
        assert {kind for kind, _ in found} == {kinds[name]}
    else:
        assert found == FLOPS[name]


def product(a: str, b: str, c: str, body: str) -> str:
    return f"""func.func @f(%a: tensor<8x32x{a}>, %b: tensor<32x16x{b}>) -> tensor<8x16x{c}> {{
      %z = arith.constant {"0" if c[0] == "i" else "0.0"} : {c}
      %e = tensor.empty() : tensor<8x16x{c}>
      %i = linalg.fill ins(%z : {c}) outs(%e : tensor<8x16x{c}>) -> tensor<8x16x{c}>
      %r = linalg.matmul ins(%a, %b : tensor<8x32x{a}>, tensor<32x16x{b}>)
        outs(%i : tensor<8x16x{c}>) -> tensor<8x16x{c}>
      {body}return %r : tensor<8x16x{c}>
    }}"""


@pytest.mark.parametrize(
    ("a", "b", "c", "kind"),
    [
        ("f16", "f16", "f32", "f16"),
        ("bf16", "bf16", "f32", "f16"),
        ("f16", "bf16", "f32", "tf32"),
        ("f32", "f32", "f32", "tf32"),
        ("f8E4M3FN", "f8E5M2", "f32", "f8f6f4"),
        ("i8", "i8", "i32", "i8"),
        ("i32", "i32", "i32", "other"),
        ("f64", "f64", "f64", "other"),
    ],
)
def test_the_kind_is_that_of_the_types(a: str, b: str, c: str, kind: str) -> None:
    with mlir_context() as context:
        assert flops_in(load_module(product(a, b, c, ""), context)) == [(kind, 2 * 8 * 16 * 32)]


@pytest.mark.parametrize(("offset", "scores"), [(None, 8 * 40), (0, 36), (35, 310), (-3, 15)])
def test_attention_counts_the_scores_that_have_a_key(offset: int | None, scores: int) -> None:
    """Of both products: heads of 16 elements, values of 32."""
    text = Attention(b=2, h=3, m=8, d=16, n=40, e=32, causal=offset).text
    with mlir_context() as context:
        found = flops_in(load_module(text, context))
    assert found == [("f16", 2 * 2 * 3 * scores * (16 + 32))]


def test_every_report_has_the_line(capfd, tmp_path: Path) -> None:
    small = tmp_path / "small.mlir"
    small.write_text(product("f16", "f16", "f32", ""))
    nbytes = 2 * (8 * 32 + 32 * 16) + 4 * 8 * 16
    line = f"roofline, modelled       8.19 kFLOP (f16), {scaled(nbytes, 'B')} of HBM, 4 FLOP/B: "
    line += "at least"
    kernel = tcir.compile(small, "gemm")
    assert kernel.report.roofline is not None and kernel.report.roofline.hbm_bytes == nbytes
    assert kernel.report.roofline.executed is None
    assert [each.startswith(line) for each in str(kernel.report).splitlines()].count(True) == 1
    report = tcir.validate(small, "gemm")
    (found,) = (each for each in str(report).splitlines() if each.startswith(line))
    assert "us (latency), " in found and found.endswith("% of the roofline")
    json_path = tmp_path / "report.json"
    words = [str(small), "--pipeline=gemm", f"--validate-each={json_path}", "--emit=ptx"]
    assert main([*words, "-o", str(tmp_path / "out.ptx")]) == 0
    assert found in capfd.readouterr().err
    said = json.loads(json_path.read_text())["roofline"]
    assert said["flops"] == {"f16": 8192} and said["hbm_bytes"] == nbytes
    assert said["bound"] == "HBM" and 0 < said["share"] < 1
    assert report.roofline is not None and said["limits_us"] == report.roofline.limits
    assert report.roofline.modelled is not None
    assert said["modelled_us"] == report.roofline.modelled.microseconds > 1
    assert said["limited_by"] == "latency" and set(said["executed_limits_us"]) >= {"L2 to SM"}


def test_what_the_machine_counted_is_what_was_executed() -> None:
    """Four CTAs, three loads of 64 k each: 128 rows of A and 128 columns of B, f16."""
    report = tcir.validate(EXAMPLES / "matmul.mlir", "gemm")
    assert report.roofline is not None
    done, counted = report.roofline.executed, report["llvm-to-ptx"].counters
    assert done is not None
    assert done.tensor_cycles == counted["tensor_cycles"] > 0
    assert done.to_sms == counted["global_to_shared_read"] + counted["global_load"] > 0
    assert done.ctas == counted["ctas"]


def test_the_modelled_time_is_that_of_the_events() -> None:
    """As `run_ptx(events=…)` and `modelled_time` give it: two launches, and what lies between."""
    kernel = tcir.compile(EXAMPLES / "mlp_bf16.mlir", "gemm", validate=True)
    recording = Recording()
    inputs = [np.zeros(spec.shape, spec.dtype) for spec in kernel.signature.inputs]
    options = RunOptions(events=recording)
    run_sequence(kernel.ptx, kernel.launches, inputs, kernel.signature.outputs, options)
    times = [
        modelled_time(stream, "sm_100a", prod(launch.grid), unique_bytes=sum(row.bytes))
        for stream, launch, row in zip(
            recording.streams, kernel.launches.launches, kernel.launch_table.rows, strict=True
        )
    ]
    assert len(times) == 2 and kernel.report.roofline is not None
    modelled = kernel.report.roofline.modelled
    both = sum(time.microseconds for time in times) + times[1].launch_us
    assert modelled is not None and modelled.microseconds == pytest.approx(both)


def test_a_recorded_run_leaves_what_runs_in_other_orders_find() -> None:
    kernel = tcir.compile(EXAMPLES / "matmul.mlir", "gemm")
    inputs = [np.zeros(spec.shape, spec.dtype) for spec in kernel.signature.inputs]
    repeats: dict[bytes, object] = {}
    for options in (
        RunOptions(repeats=repeats, events=Recording()),
        RunOptions(repeats=repeats, order_seed=1),
    ):
        run_sequence(kernel.ptx, kernel.launches, inputs, kernel.signature.outputs, options)
    assert len(repeats) == 1


def test_in_several_processes_the_line_has_bounds_only() -> None:
    report = tcir.validate(EXAMPLES / "tf32_one_tile.mlir", "gemm", jobs=2)
    assert report.ok and report.roofline is not None and report.roofline.modelled is None
    assert "as executed at least" in str(report.roofline)


def test_workspaces_are_moved_but_not_compulsory() -> None:
    roof = tcir.compile(EXAMPLES / "mlp_bf16.mlir", "gemm").report.roofline
    table = tcir.compile(EXAMPLES / "mlp_bf16.mlir", "gemm").launch_table
    arguments, loaded, stored, results = table.total
    assert roof is not None and loaded == stored > 0
    assert roof.hbm_bytes == arguments + results and roof.moved == sum(table.total)
    assert "by its launches" in str(roof)


def test_a_target_without_constants_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "sm_86", replace(TARGETS["sm_80"], name="sm_86"))
    for target, known in (("sm_80", True), ("sm_86", False)):
        kernel = tcir.compile(EXAMPLES / "tf32_one_tile.mlir", "matmul-warp", target=target)
        assert (kernel.report.roofline is not None) == known


def test_a_program_below_tensors_has_none() -> None:
    tiled = tcir.compile(EXAMPLES / "matmul.mlir", "gemm").ir["assign-roles"]
    report = tcir.validate(tiled)
    assert report.ok and report.roofline is None and "roofline" not in str(report)
    assert report.as_dict()["roofline"] is None
