"""`tcir.compile`: code at every level, and kernels called on numpy arrays."""

import dataclasses
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.errors import MissingDependencyError
from tcir.machine import Assumptions
from tcir.program.inputs import make_inputs
from tcir.session.code import tmem_columns

MATMUL = """
func.func @product(%a: tensor<40x48xbf16>, %b: tensor<48x24xbf16>) -> tensor<40x24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x24xf32>) -> tensor<40x24xf32>
  %r = linalg.matmul ins(%a, %b : tensor<40x48xbf16>, tensor<48x24xbf16>)
      outs(%f : tensor<40x24xf32>) -> tensor<40x24xf32>
  return %r : tensor<40x24xf32>
}
"""


@pytest.fixture(scope="module")
def kernel() -> tcir.Kernel:
    return tcir.compile(MATMUL, "matmul")


def test_code_at_every_level(kernel: tcir.Kernel) -> None:
    assert kernel.name == "product"
    assert "linalg.matmul" in kernel.ir["(input)"]
    assert "tc.matmul" in kernel.ir["raise-to-tc"]
    assert '"tc.mma"' in kernel.ir["assign-roles"]
    assert "llvm.func @product" in kernel.ir["convert-tc-to-nvvm"]
    assert ".target sm_100a" in kernel.ptx
    assert "tcgen05.mma" in kernel.ptx
    assert tmem_columns(kernel.ptx) == 32
    assert [line.verdict for line in kernel.report.passes] == ["-"] * len(kernel.report.passes)


def test_cubin_and_sass(kernel: tcir.Kernel) -> None:
    try:
        cubin = kernel.cubin
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert cubin[:4] == b"\x7fELF"
    assert "UTCHMMA" in kernel.sass


def test_call(kernel: tcir.Kernel) -> None:
    a, b = make_inputs(kernel.signature.inputs, 5, "integers")
    out = np.full((40, 24), np.nan, np.float32)
    outcome = kernel(a, b, out)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(out, expected)
    assert outcome.findings == []
    assert outcome.counters["mma"] > 0
    assert repr(outcome) == "<Outcome at the ptx level: float32[40, 24]; 0 errors>"


def test_run_makes_the_result(kernel: tcir.Kernel) -> None:
    a, b = make_inputs(kernel.signature.inputs, 5, "integers")
    out = kernel.run(a, b)
    np.testing.assert_array_equal(out, a.astype(np.float64) @ b.astype(np.float64))
    with pytest.raises(tcir.InputError, match="got 2, inputs alone; run\\(\\) makes the results"):
        kernel(a, b)
    with pytest.raises(tcir.InputError, match=r"got list; to run on your own arrays: .*\.run\("):
        tcir.validate(MATMUL, "matmul", inputs=[a, b])  # type: ignore[arg-type]


def test_a_notebook_shows_a_few_lines(kernel: tcir.Kernel) -> None:
    """Not the PTX, nor arrays."""
    shown = "<Kernel @product for sm_100a: bfloat16[40, 48], bfloat16[48, 24] -> float32[40, 24]; "
    assert repr(kernel).startswith(shown) and len(repr(kernel)) < 200
    assert repr(kernel.report) == str(kernel.report)


@pytest.mark.parametrize("change", ["count", "shape", "dtype", "byte order", "read-only", "list"])
def test_wrong_arrays(kernel: tcir.Kernel, change: str) -> None:
    arrays = [
        np.zeros((40, 48), ml_dtypes.bfloat16),
        np.zeros((48, 24), ml_dtypes.bfloat16),
        np.zeros((40, 24), np.float32),
    ]
    message = "argument 1: expected an array bfloat16\\[48, 24\\], got "
    if change == "count":
        arrays.pop()
        message = "expected 3 arrays \\(bfloat16\\[40, 48\\], .*\\), got 2"
    elif change == "shape":
        arrays[1] = arrays[1].T
        message += "bfloat16\\[24, 48\\]"
    elif change == "dtype":
        arrays[1] = arrays[1].astype(np.float16)
        message += "float16\\[48, 24\\]"
    elif change == "byte order":
        arrays[2] = arrays[2].astype(">f4")
        message = "argument 2: expected an array float32\\[40, 24\\], got .* byte order \\(>f4\\)"
    elif change == "read-only":
        arrays[2].flags.writeable = arrays[1].flags.writeable = False
        message = "argument 2: expected an array for the result, got a read-only one"
    else:
        arrays[1] = [[0]]
        message += "list"
    with pytest.raises(tcir.InputError, match=message):
        kernel(*arrays)


def test_a_kernel_runs_under_the_conditions_asked_for(kernel: tcir.Kernel) -> None:
    inputs = make_inputs(kernel.signature.inputs, 1, "integers")
    out = np.zeros((40, 24), np.float32)
    unfenced = re.sub(r"tcgen05\.fence::after_thread_sync;", "", kernel.ptx)
    relying = dataclasses.replace(kernel, ptx=unfenced)
    assert {f.severity for f in relying(*inputs, out).findings} == {"warning"}
    with pytest.raises(tcir.HazardError, match=r"missing-fence-after.*not promised by PTX ISA"):
        relying(*inputs, out, ordering="isa")
    assert kernel(*inputs, out, ordering="isa").findings == []
    with pytest.raises(tcir.MachineError, match="instruction"):
        kernel(*inputs, out, max_instructions=10)
    for wrong, words in {
        "ordering": "ordering: expected 'silicon' or 'isa', got 'no'",
        "hazards": "hazards: expected 'raise', 'report' or 'off', got 'no'",
        "numerics": "numerics: expected 'exact' or 'fast', got 'no'",
        "assumptions": r"assumptions: expected tcir\.machine\.Assumptions, got str",
    }.items():
        with pytest.raises(tcir.InputError, match=words):
            kernel(*inputs, out, **{wrong: "no"})


def test_an_assumption_reaches_a_kernel(kernel: tcir.Kernel) -> None:
    inputs = make_inputs(kernel.signature.inputs, 1, "integers")
    out = np.zeros((40, 24), np.float32)
    mma = re.search(r"tcgen05\.mma.*, (%p\d+);", kernel.ptx)  # the first one starts a sum
    assert mma is not None
    added = f"setp.eq.u32 {mma[1]}, 0, 0; {mma[0]}"
    trusting = dataclasses.replace(kernel, ptx=kernel.ptx.replace(mma[0], added))
    with pytest.raises(tcir.HazardError, match="undefined-read"):
        trusting(*inputs, out)
    assert not trusting(*inputs, out, assumptions=Assumptions(alloc_content="zeros")).findings
    np.testing.assert_array_equal(out, kernel(*inputs, np.empty_like(out)).outputs[0])


def test_options_and_targets() -> None:
    with pytest.raises(tcir.InputError, match=r"has no option 'stage'.*did you mean 'stages'"):
        tcir.compile(MATMUL, "matmul", stage=2)
    with pytest.raises(tcir.InputError, match=r"targets sm_80, .*, sm_100a, got 'sm_100'"):
        tcir.compile(MATMUL, "matmul", target="sm_100")
    with pytest.raises(tcir.InputError, match="expected a program lowered to llvm and nvvm"):
        tcir.compile(MATMUL, ["canonicalize"])
    two = tcir.compile(MATMUL, "matmul", stages=2)
    assert "tile-gemm" in str(two.report.pipeline)


def code_of(source) -> list[str]:
    """PTX without the name of the source file and the numbers that point into it."""
    lines = tcir.compile(source, "matmul").ptx.splitlines()
    return [line for line in lines if not line.strip().startswith((".file", ".loc", "//"))]


def test_sources(tmp_path: Path) -> None:
    path = tmp_path / "a program.mlir"
    path.write_text(MATMUL)
    texts = [code_of(source) for source in (MATMUL, path, str(path))]
    assert texts[0] == texts[1] == texts[2]
    from tcir.program.source import load_module, mlir_context

    with mlir_context() as context:
        module = load_module(MATMUL, context)
        before = str(module)
        assert code_of(module) == texts[0]
        assert str(module) == before
    with pytest.raises(tcir.InputError, match=r"cannot read 'no/such\.mlir'"):
        tcir.compile("no/such.mlir", "matmul")
    with pytest.raises(tcir.InputError, match=r"<text>:1:\d+: error: expected"):
        tcir.compile("func.func @f( {}", "matmul")


def test_pipeline_with_a_pass_exchanged() -> None:
    from tcir.passmanager.pipeline import named_pipeline

    pipeline = named_pipeline("matmul").insert("canonicalize", after="raise-to-tc")
    kernel = tcir.compile(MATMUL, pipeline)
    assert "canonicalize" in kernel.ir
    assert "canonicalize#2" in kernel.ir
    assert "assign-role" not in kernel.ir


def test_a_text_is_printed_only_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A context takes as long as several passes: the names of passes need none, and the table of
    launches one."""
    made: list[object] = []

    class Counted(ir.Context):  # type: ignore[misc]
        def __init__(self) -> None:
            made.append(super().__init__())

    monkeypatch.setattr(ir, "Context", Counted)
    kernel = tcir.compile(MATMUL, "matmul")
    assert "canonicalize" in kernel.ir and len(made) == 1
    assert kernel.launch_table.rows and len(made) == 2


def test_validated_compile() -> None:
    kernel = tcir.compile(MATMUL, "matmul", validate=True, orders=3)
    assert kernel.report.ok, str(kernel.report)
    assert kernel.report["llvm-to-ptx"].verdict == "equal"
