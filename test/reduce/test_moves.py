"""Delta debugging, and the moves: what they leave is smaller, and still a program."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tcir.interp.ptx.parser import parse
from tcir.opt.containment import Notes
from tcir.passmanager.pipeline import Pipeline
from tcir.reduce import mlir, passes, ptx
from tcir.reduce.attempt import PATIENCE, Attempts
from tcir.reduce.command import Search
from tcir.reduce.ddmin import ddmin
from tcir.reduce.failure import Failure, of_error, of_run, of_validation
from tcir.reduce.program import Mlir, Ptx, reduced_mlir

CHAIN = """
func.func @f(%a: tensor<8x6xf32>, %b: tensor<8x6xf32>, %c: tensor<4xf32>) -> (tensor<8x6xf32>, tensor<4xf32>) {
  %1 = arith.addf %a, %b : tensor<8x6xf32>
  %2 = math.exp %1 : tensor<8x6xf32>
  %3 = arith.mulf %2, %1 : tensor<8x6xf32>
  %4 = math.sqrt %c : tensor<4xf32>
  return %3, %4 : tensor<8x6xf32>, tensor<4xf32>
}
"""  # fmt: skip  # noqa: E501


@given(st.integers(1, 40), st.data())
def test_ddmin_finds_a_part_of_which_nothing_can_be_left_out(
    size: int, data: st.DataObject
) -> None:
    wanted = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
    tried = []

    def fails(items: list[int]) -> bool:
        tried.append(items)
        return wanted <= set(items)

    assert ddmin(range(size), fails) == sorted(wanted)
    assert len(tried) <= size**2 + 3 * size


def test_ddmin_of_what_is_not_monotonic_is_still_minimal() -> None:
    def fails(items: list[int]) -> bool:
        return len(items) % 2 == 1 and 5 in items

    found = ddmin(range(9), fails)
    assert fails(found)
    assert not any(fails([n for n in found if n != each]) for each in found)


def test_ops_are_left_out() -> None:
    assert mlir.count_ops(CHAIN, False) == 5  # the function is one
    # exp is left out: what used it takes the sum
    kept = mlir.with_ops(CHAIN, False, [0, 1, 3, 4])
    assert kept is not None and "math.exp" not in kept and "arith.mulf %0, %0" in kept
    # the sum is left out: its first operand takes its place
    kept = mlir.with_ops(CHAIN, False, [0, 2, 3, 4])
    assert kept is not None and "math.exp %arg0" in kept
    everything = mlir.with_ops(CHAIN, False, [])
    assert everything is not None and "func" not in everything


def test_a_result_without_an_operand_of_its_type_becomes_an_argument() -> None:
    text = (
        "func.func @f() -> tensor<4xf32> {\n"
        "%e = tensor.empty() : tensor<4xf32>\nreturn %e : tensor<4xf32> }"
    )
    kept = mlir.with_ops(text, False, [0])
    assert kept is not None and "(%arg0: tensor<4xf32>) -> tensor<4xf32>" in kept


def test_results_and_arguments_are_left_out() -> None:
    less = list(mlir.returning_less(CHAIN, False))
    assert any("return %3 : tensor<4xf32>" in each for each in less)  # one result less
    assert any("return %1, %3" in each for each in less)  # an operand of what made it
    with_unused = mlir.with_ops(CHAIN, False, [0, 2, 3, 4])
    assert with_unused is not None
    (left,) = mlir.without_arguments(with_unused, False)
    assert "%arg2" not in left and "%arg1: tensor<4xf32>" in left


MATMUL = """
func.func @f(%a: tensor<6x5xf32>, %b: tensor<5x3xf32>, %c: tensor<6x3xf32>) -> tensor<6x3xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<6x5xf32>, tensor<5x3xf32>) outs(%c : tensor<6x3xf32>) -> tensor<6x3xf32>
  return %0 : tensor<6x3xf32>
}
"""  # fmt: skip  # noqa: E501


def test_shapes_become_smaller_and_fit() -> None:
    assert mlir.extents(CHAIN) == [8, 6, 4] and mlir.extents(MATMUL) == [6, 5, 3]
    half = mlir.with_extents(MATMUL, False, {6: 3, 5: 2})
    assert half is not None and "tensor<3x2xf32>" in half and "tensor<2x3xf32>" in half
    assert mlir.with_extents(MATMUL, False, {7: 3}) is None


def sizes_left(text: str, fails: Callable[[list[int]], bool]) -> tuple[list[int], int]:
    """The extents of a chain or a product that is reduced while its sorted extents fail."""
    tried = []

    def still(program: Mlir) -> bool:
        tried.append(program.module)
        return "linalg.matmul" in program.module and fails(mlir.extents(program.module))

    canonical = mlir.canonical(text, False)
    assert canonical is not None
    found = reduced_mlir(Mlir(canonical, None), still, still, "")
    return mlir.extents(found.module), len(tried)


def test_shapes_are_halved_and_then_less_by_powers_of_two() -> None:
    large = MATMUL.replace("5x", "333x").replace("x5x", "x333x").replace("6x", "256x")
    left, tried = sizes_left(large, lambda found: max(found, default=1) > 40)
    assert left == [41] and tried < 120
    left, _ = sizes_left(large, lambda found: sum(found) > 300)
    assert sum(left) == 301


def test_what_does_not_verify_is_no_candidate() -> None:
    assert mlir.canonical("func.func @f( {", False) is None
    assert mlir.canonical('"other.op"() : () -> ()', False) is None
    assert mlir.canonical('"other.op"() : () -> ()', True) is not None


def test_passes_and_options_are_left_out() -> None:
    pipeline = Pipeline.parse("builtin.module(raise-to-tc,tile-gemm{n-tile=64},canonicalize,cse)")
    assert [each.name for each in passes.up_to(pipeline, "tile-gemm")] == [
        "raise-to-tc",
        "tile-gemm",
    ]
    assert passes.up_to(pipeline, "(input)") == pipeline
    (simpler,) = passes.with_defaults(pipeline)
    assert str(simpler) == "builtin.module(raise-to-tc,tile-gemm,canonicalize,cse)"


PTX = """
.version 8.8
.target sm_100a
.address_size 64
.global .align 4 .b32 table[2] = {1, 2};
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<2>;
  .loc 1 3 5
  ld.param.u64 %rd1, [p];
$L__loop:
  mov.b64 {%r1, %r2}, %rd1; add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 5;
  { .reg .b32 t; mov.u32 t, 3; }
  @%p1 bra $L__loop; // again
  ret;
}
.section .debug_info { .b8 1 }
"""


def test_statements_of_ptx() -> None:
    texts = [PTX[start:end] for start, end in ptx.statements(PTX)]
    assert texts == [
        ".reg .b32 %r<9>;", ".reg .b64 %rd<9>;", ".reg .pred %p<2>;", ".loc 1 3 5",
        "ld.param.u64 %rd1, [p];", "mov.b64 {%r1, %r2}, %rd1;", "add.u32 %r1, %r1, 1;",
        "setp.lt.u32 %p1, %r1, 5;", ".reg .b32 t;", "mov.u32 t, 3;", "@%p1 bra $L__loop;", "ret;",
    ]  # fmt: skip


def test_statements_of_ptx_are_left_out() -> None:
    left = ptx.with_statements(PTX, [0, 1, 4, 11])
    (function,) = parse(left).functions.values()
    assert [each.mnemonic for each in function.body or []] == ["ld.param.u64", "ret"]
    assert "again" not in left and "$L__loop:" in left
    plain = ptx.without_debug(left)
    assert "$L__loop" not in plain and ".section" not in plain and "table[2]" in plain


def test_an_attempt_that_takes_much_longer_than_the_first_hangs(tmp_path: Path) -> None:
    def run(program: Path, report: Path, notes: Notes) -> int:
        report.write_text('{"interesting": true}')
        time.sleep(60 if program.read_text() == "slow" else 0)
        return 1

    attempts = Attempts(run, ".ptx")
    search = Search(attempts, Ptx("quick"), tmp_path / "out.ptx")
    assert attempts.seconds >= PATIENCE
    attempts.seconds = 1
    assert not search.fails(Ptx("slow"))
    assert attempts.failure("slow") == Failure("native code", "ended by SIGALRM")
    assert search.fails(Ptx("quick too")) and (tmp_path / "out.ptx").read_text() == "quick too"
    before = attempts.count
    assert not search.fails(Ptx("slow")) and attempts.count == before  # it was tried


def test_failures_are_the_same_where_names_and_numbers_differ() -> None:
    one, other = (
        of_error("m.mlir:3:4: error: 'f' has 5 of %x"),
        of_error("error: 'g' has 12.5 of %y"),
    )
    assert one == other and one.said == "'f' has 5 of %x"
    assert one != of_error("error: 'g' lacks 12.5 of %y")
    ended = {"name": "p", "verdict": "different", "findings": [], "difference": None,
             "compared": "illegal use of the machine: deadlock: CTA (0, 0, 0)"}  # fmt: skip
    raced = {**ended, "findings": [{"severity": "error", "code": "race"}]}
    wrong = {**ended, "difference": {}}
    assert of_validation({"passes": [ended]}) == Failure(
        "p", "different: illegal use of the machine: deadlock"
    )
    assert of_validation({"passes": [raced]}) == Failure("p", "different: race")
    assert of_validation({"passes": [wrong]}) == Failure("p", "different")
    assert of_validation({"passes": [{**wrong, "verdict": "equal"}]}) is None
    assert of_run({"ok": True}) is None
