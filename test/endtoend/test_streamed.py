"""Products with few rows or columns, and of matrices and vectors: what they give, every level."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.codegen.sass import disassemble
from tcir.passes.simt.convert_to_simt import ConvertToSimt

from .breaking import Edit, change_text, erase, run_broken

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


def linear(m: int, n: int, k: int, element: str, batch: int = 0) -> str:
    """x · wᵀ + b, all of a type, summed in f32."""
    b, d, outer = (f"{batch}x", "b, ", '"parallel", ') if batch else ("", "", "")
    wide = "" if element == "f32" else f"%e = arith.extf %y : {element} to f32"
    narrow = "" if element == "f32" else f"%t = arith.truncf %s : f32 to {element}"
    sums = f"tensor<{b}{m}x{n}xf32>"
    x, w = f"tensor<{b}{m}x{k}x{element}>", f"tensor<{b}{n}x{k}x{element}>"
    out = f"tensor<{b}{m}x{n}x{element}>"
    extended = ("%u", "%v") if element == "f32" else ("%p", "%q")
    casts = (
        ""
        if element == "f32"
        else (f"%p = arith.extf %u : {element} to f32\n %q = arith.extf %v : {element} to f32")
    )
    return f"""
func.func @main(%x: {x}, %w: {w}, %b: tensor<{n}x{element}>) -> {out} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {sums}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {sums}) -> {sums}
  %c = linalg.generic {{indexing_maps = [affine_map<({d}m, n, k) -> ({d}m, k)>,
      affine_map<({d}m, n, k) -> ({d}n, k)>, affine_map<({d}m, n, k) -> ({d}m, n)>],
      iterator_types = [{outer}"parallel", "parallel", "reduction"]}}
      ins(%x, %w : {x}, {w}) outs(%zeros : {sums}) {{
  ^bb0(%u: {element}, %v: {element}, %a: f32):
    {casts}
    %m = arith.mulf {extended[0]}, {extended[1]} : f32
    %s = arith.addf %a, %m : f32
    linalg.yield %s : f32
  }} -> {sums}
  %place = tensor.empty() : {out}
  %r = linalg.generic {{indexing_maps = [affine_map<({d}m, n) -> ({d}m, n)>,
      affine_map<({d}m, n) -> (n)>, affine_map<({d}m, n) -> ({d}m, n)>],
      iterator_types = [{outer}"parallel", "parallel"]}}
      ins(%c, %b : {sums}, tensor<{n}x{element}>) outs(%place : {out}) {{
  ^bb0(%a: f32, %y: {element}, %o: {element}):
    {wide}
    %s = arith.addf %a, {"%y" if element == "f32" else "%e"} : f32
    {narrow}
    linalg.yield {"%s" if element == "f32" else "%t"} : {element}
  }} -> {out}
  return %r : {out}
}}
"""


def names(kernel: Any) -> list[str]:
    """The instructions that multiply, of all launches."""
    return [word for word in ("wgmma", "mma.sync", "tcgen05.mma") if word in kernel.ptx]


def check(
    m: int, n: int, k: int, element: str, target: str = "sm_90a", batch: int = 0
) -> list[str]:
    """Runs the kernel on normal numbers; float64 is the oracle."""
    generator = np.random.default_rng(m * n + k)
    outer = (batch,) if batch else ()
    shapes = ((*outer, m, k), (*outer, n, k), (n,))
    x, w, b = (generator.standard_normal(s).astype(DTYPES[element]) for s in shapes)
    kernel = tcir.compile(linear(m, n, k, element, batch), "layers", target=target)
    out = np.zeros((*outer, m, n), DTYPES[element])
    report = kernel(x, w, b, out)
    assert not report.findings
    wide = [each.astype(np.float64) for each in (x, w, b)]
    want = wide[0] @ np.swapaxes(wide[1], -1, -2) + wide[2]
    # tf32 has 10 bits behind the point; f16 and bf16 are multiplied exactly.
    factors = 2.0**-9 if element == "f32" and "mma" in " ".join(names(kernel)) else 2.0**-20
    room = factors * np.abs(wide[0]) @ np.abs(np.swapaxes(wide[1], -1, -2))
    room += 2.0 ** {"f16": -11, "bf16": -8, "f32": -23}[element] * np.abs(want) + 2.0**-24
    assert (np.abs(out.astype(np.float64) - want) <= room).all()
    return names(kernel)


@pytest.mark.parametrize(
    ("m", "n", "k", "element"),
    [
        (2, 40, 96, "f16"), (5, 72, 520, "bf16"), (16, 33, 40, "f16"), (9, 257, 2056, "f16"),
        (40, 3, 1000, "bf16"), (300, 10, 512, "f16"), (8, 64, 132, "f32"), (16, 4096, 64, "bf16"),
        (3, 17, 8, "f16"), (4, 4300, 256, "f16"), (12, 8000, 72, "f16"),
    ],
)  # fmt: skip
def test_few_rows_or_columns(m: int, n: int, k: int, element: str) -> None:
    """Tails of rows, columns and K; many rows of either factor."""
    assert check(m, n, k, element) == ["mma.sync"]


@pytest.mark.parametrize(("groups", "n"), [(3, 56), (5, 43), (14, 233)])
def test_groups_of_rows(groups: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half an mma.sync is the last of an odd number of groups; one CTA has rows beyond the end."""
    monkeypatch.setattr("tcir.passes.simt.streamed.groups_of", lambda *_: groups)
    assert check(9, n, 136, "f16") == ["mma.sync"]


@pytest.mark.parametrize(
    ("n", "k", "ctas", "warps"),
    [
        (4096, 4096, 128, 8), (6144, 4096, 256, 4), (11008, 4096, 230, 4), (14336, 4096, 256, 4),
        (16384, 4096, 256, 4), (18944, 4096, 296, 4), (50257, 768, 786, 4), (3072, 768, 192, 8),
    ],
)  # fmt: skip
def test_ctas_share_an_sm_where_there_are_more(n: int, k: int, ctas: int, warps: int) -> None:
    """With 8 warps an SM has one: 172 would be two rounds. With 4 it has two, of rows that fill
    them. With few loads in flight (K of 768, two groups) it has several of 8."""
    kernel = tcir.compile(linear(16, n, k, "f16"), "layers", target="sm_90a")
    (launch,) = kernel.launches.launches
    assert (launch.grid[0], launch.block[0]) == (ctas, 32 * warps)


@pytest.mark.parametrize(
    ("m", "n", "k", "element", "target"),
    [
        (1, 33, 520, "f16", "sm_90a"),
        (70, 1, 264, "bf16", "sm_100a"),
        (1, 3, 7, "f32", "sm_90a"),
        (1, 300, 4097, "f16", "sm_100a"),
    ],
)
def test_vectors(m: int, n: int, k: int, element: str, target: str) -> None:
    """CUDA cores, on both targets; f32 is not cut to tf32."""
    assert check(m, n, k, element, target) == []


@pytest.mark.parametrize("batch", [3])
def test_batches(batch: int) -> None:
    assert check(4, 40, 72, "f16", batch=batch) == ["mma.sync"]
    assert check(1, 40, 72, "f16", batch=batch) == []


@pytest.mark.parametrize(("m", "target"), [(17, "sm_90a"), (4, "sm_100a")])
def test_others_are_tiles(m: int, target: str) -> None:
    """More rows than few, and a target whose tensor core takes the matrix as its rows."""
    kernel = tcir.compile(linear(m, 64, 64, "f16"), "layers", target=target)
    assert names(kernel) == [{"sm_90a": "wgmma", "sm_100a": "tcgen05.mma"}[target]]


@pytest.mark.parametrize("inputs", ["integers", "random"])
@pytest.mark.parametrize(("m", "n", "k"), [(3, 40, 96), (1, 9, 1032), (40, 5, 200)])
def test_every_level(m: int, n: int, k: int, inputs: Any) -> None:
    """convert-to-simt chooses the order of the sums; what follows keeps their bits."""
    program = linear(m, n, k, "f16")
    report = tcir.validate(program, "layers", target="sm_90a", inputs=inputs, orders=2)
    assert report.ok, str(report)
    assert not [finding for line in report.passes for finding in line.findings], str(report)
    for line in report.passes:
        if line.verdict == "within bound":
            kept = "bit for bit as before the pass" in line.compared
            assert kept or line.name == "convert-to-simt", str(report)
    if inputs == "integers":
        assert {line.verdict for line in report.passes} <= {"reference", "equal"}, str(report)


MMA = r"m16n8k16.row.col.f32.f16.f16.f32 \{\$0, \$1, \$2, \$3\}, \{"
MADE = "m16n8k16.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {"


@pytest.mark.parametrize(
    ("size", "edit"),
    [
        pytest.param((3, 40, 520), erase("nvvm.barrier"), id="the barrier"),
        pytest.param(
            (3, 40, 520),
            change_text(r"%c9_i32 = arith.constant 9", "%c9_i32 = arith.constant 8"),
            id="the last chunk",
        ),
        pytest.param(
            (3, 40, 520),
            change_text(r"(%c1040_i32_5\d) = arith.constant 1040", r"\1 = arith.constant 2000"),
            id="K's tail",
        ),
        pytest.param(
            (3, 40, 96),
            change_text(MMA + r"\$4, \$5, \$6, \$7\}", MADE + "$5, $4, $6, $7}"),
            id="rows exchanged",
        ),
    ],
)
def test_breaks(size: tuple[int, int, int], edit: Edit) -> None:
    """Caught at the pass that made them."""
    pipeline = tcir.named_pipeline("layers")
    caught = run_broken(linear(*size, "f16"), pipeline, "convert-to-simt", edit, target="sm_90a")
    assert caught and caught.at == "convert-to-simt", caught


PAST_L1 = "ld.global.nc.L1::no_allocate"
SIMT = ConvertToSimt(quantise_apart=False, streamed=True, programmatic=True)


def programmatic() -> tcir.Pipeline:
    """Pipeline layers; its products of few rows may start before the previous launch has ended."""
    return tcir.named_pipeline("layers").replace("convert-to-simt", SIMT)


@pytest.mark.parametrize("plain", [False, True])
def test_the_matrix_is_not_the_result(plain: bool) -> None:
    """The machine sees a matrix that the launch writes: plain loads race, these are not legal."""
    kernel = tcir.compile(linear(4, 64, 64, "f16"), "layers", target="sm_90a")
    (launch,) = kernel.launches.launches
    x, w, b = (np.ones(shape, np.float16) for shape in ((4, 64), (64, 64), 64))
    ptx = kernel.ptx.replace(PAST_L1, "ld.global") if plain else kernel.ptx
    for out, code in ((np.zeros((4, 64), np.float16), None), (w, "race")):
        report = tcir.run_ptx(
            ptx, grid=launch.grid, block=launch.block, args=[x, w, b, out], dynamic_smem=1 << 14
        )
        expected = code and (code if plain else "non-coherent-load")
        assert {each.code for each in report.findings} == ({expected} if expected else set())


def test_no_load_is_before_the_wait_of_a_programmatic_launch() -> None:
    """Neither LLVM nor ptxas moves a load of the matrix, which no fence orders."""
    kernel = tcir.compile(linear(4, 64, 512, "f16"), programmatic(), target="sm_90a")
    ptx, sass = kernel.ptx, disassemble(kernel.cubin)
    assert PAST_L1 in ptx and 0 < ptx.index("griddepcontrol.wait") < ptx.index("ld.global")
    assert 0 < sass.index("ACQBULK") < sass.index("LDG.E.NA.128.CONSTANT")
    assert sass.index("ACQBULK") < sass.index("LDG")


def test_a_missing_wait_is_caught() -> None:
    """Without it, another launch may still write what the loads past L1 read."""
    edit, program = erase("nvvm.griddepcontrol"), linear(3, 40, 96, "f16")
    caught = run_broken(program, programmatic(), "convert-to-simt", edit, target="sm_90a")
    assert (caught.at, caught.by) == ("convert-to-simt", "hazard: race"), caught


@pytest.mark.parametrize(
    ("m", "n", "k", "target", "launches"),
    [
        (64, 1024, 4096, "sm_90a", 2),
        (64, 14336, 1024, "sm_90a", 1),
        (64, 1024, 256, "sm_90a", 1),
        (16, 1024, 4096, "sm_90a", 1),
        (64, 1024, 4096, "sm_100a", 1),
    ],
)
def test_parts_of_k_are_chosen(m: int, n: int, k: int, target: str, launches: int) -> None:
    """Where few tiles leave SMs without one; a second launch sums the parts up."""
    kernel = tcir.compile(linear(m, n, k, "f16"), "layers", target=target)
    assert len(kernel.launches.launches) == launches


def test_chosen_parts_of_k() -> None:
    assert check(20, 64, 2048, "f16") == ["wgmma"]
    kernel = tcir.compile(linear(20, 64, 2048, "f16"), "layers", target="sm_90a")
    assert len(kernel.launches.launches) == 2


def test_more_matrices_than_a_grid_has_along_z() -> None:
    """They are tiles, of which persistent CTAs have several."""
    kernel = tcir.compile(linear(2, 16, 16, "f16", batch=65536), "layers", target="sm_90a")
    assert names(kernel) == ["wgmma"]
