"""Whatever a broken pass's program does when it runs is that pass's verdict.

Each fault stands beside the same program without it, which is clean.
"""

from __future__ import annotations

from typing import Any

import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.passmanager.pipeline import named_pipeline
from tcir.program import capacity
from tcir.program.source import load_module, mlir_context
from tcir.validation.report import Report
from tcir.validation.work import Work

from .block_scaled_text import BlockScaled
from .breaking import Broken, Edit, PtxCheck, change_text, pick, set_attribute
from .linalg_text import Conv, Matmul

MATMUL = Matmul(32, 16, 64)
REPACKED = Conv(1, 3, 10, 3, 16, 2, 3, (1, 0, 1, 1))


def validated(
    at: str, edit: Edit, program: Conv | Matmul = MATMUL, pipeline: str = "matmul"
) -> Report:
    """The report of `program` when `edit` damages what the pass `at` made."""
    passes = named_pipeline(pipeline)
    broken = passes.replace(at, Broken(passes.passes[passes.index(at)], edit))
    report: Report = tcir.validate(program.text(), broken)
    return report


def test_the_whole_programs_are_clean() -> None:
    for program, pipeline in ((MATMUL, "matmul"), (REPACKED, "conv-implicit-gemm")):
        report = tcir.validate(program.text(), pipeline)
        assert report.ok, str(report)
        assert not any(line.findings or line.remarks for line in report.passes), str(report)


def divide_by_zero(module: Any) -> None:
    """Takes the slot of a ring modulo 0, as exchanged operands do in the first turn."""
    op = pick(module, "arith.remui")
    op.operands[0], op.operands[1] = op.operands[1], op.operands[0]


def shift_too_far(module: Any) -> None:
    op = pick(module, "arith.remui")
    with ir.InsertionPoint(op), op.location:
        far = arith.ConstantOp(op.operands[0].type, 64).result
        op.results[0].replace_all_uses_with(arith.ShRUIOp(op.operands[0], far).result)


def vectors(name: str, second: str) -> Edit:
    """Inserts an operation of integer vectors whose second operand is `second`."""

    def edit(module: Any) -> None:
        loop = pick(module, "scf.for")
        with ir.InsertionPoint(loop), loop.location:
            kind = ir.VectorType.get([2], ir.IntegerType.get_signless(32))
            values = [f"dense<7> : {kind}", f"dense<{second}> : {kind}"]
            operands = [arith.ConstantOp(kind, ir.Attribute.parse(v)).result for v in values]
            ir.Operation.create(name, [kind], operands)

    return edit


def swap_launches(module: Any) -> None:
    """The repacking of the image and the convolution change places."""
    functions = [op.operation for op in module.body.operations]
    first, last = functions[0], functions[-1]
    orders = first.attributes["tc.order"], last.attributes["tc.order"]
    last.attributes["tc.order"], first.attributes["tc.order"] = orders


def erase_function(module: Any) -> None:
    module.body.operations[0].operation.erase()


def workspaces(by: int) -> Edit:
    """Changes the size of every workspace by so many bytes."""

    def edit(module: Any) -> None:
        attributes = module.operation.attributes
        sizes = [size + by for size in attributes["tc.workspaces"]]
        attributes["tc.workspaces"] = ir.DenseI64ArrayAttr.get(sizes)

    return edit


def step_of_zero(module: Any) -> None:
    loop = pick(module, "scf.for")
    loop.operands[2] = loop.operands[0]


def endless_turns(module: Any) -> None:
    """A loop of 2^62 turns."""
    loop = pick(module, "scf.for")
    with ir.InsertionPoint(loop), loop.location:
        loop.operands[1] = arith.ConstantOp(ir.IndexType.get(), 1 << 62).result


FAULTS: dict[str, tuple[str, Edit, str]] = {
    "division by zero": ("place-barriers", divide_by_zero, "division-by-zero: expected a divisor"),
    "shift": ("place-barriers", shift_too_far, "bad-shift: expected a shift by 0 to 63 bits, got"),
    "division of vectors": (
        "place-barriers",
        vectors("arith.divui", "[1, 0]"),
        "division-by-zero: expected a divisor other than 0, got 7 by 0",
    ),
    "shift of vectors": (
        "place-barriers",
        vectors("arith.shli", "[1, 32]"),
        "bad-shift: expected a shift by 0 to 31 bits, got 32",
    ),
    "erased function": ("multi-buffer", erase_function, "expected one function with a body"),
    "no step": ("tile-gemm", step_of_zero, "bad-step: expected a positive step"),
    "loop of tiles": ("tile-gemm", endless_turns, "loop-budget: expected loops of at most"),
    "operand of inline assembly": (
        "convert-tc-to-nvvm",
        change_text(r'"tcgen05.wait::ld.sync.aligned;"', '"tcgen05.wait::ld.sync.aligned; // $99"'),
        "bad-inline-asm: expected the text to name one of 32 operands, got $99",
    ),
    "tied operand": (
        "convert-tc-to-nvvm",
        change_text(r"=r,0,1,2,", "=r,77,1,2,"),
        "bad-inline-asm: expected a constraint tied to one of 16 outputs, got '77'",
    ),
    "mask of a shuffle": (
        "convert-tc-to-nvvm",
        change_text(r"\[4, 5, 6, 7\]", "[4, 5, 6, 70]"),
        "bad-element: expected an element of 0 to 31, got 70",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_the_verdict_of_its_pass(name: str) -> None:
    at, edit, words = FAULTS[name]
    report = validated(at, edit)
    failure = report.first_failure()
    assert failure is not None and (report.verdict, failure.name) == ("different", at), str(report)
    assert words in failure.compared, str(report)


@pytest.mark.parametrize("name", ["arith.divui", "arith.shli"])
def test_vectors_without_a_bad_element_are_clean(name: str) -> None:
    passes = named_pipeline("matmul")
    *first, last = passes.passes[: passes.index("place-barriers") + 1]
    first.append(Broken(last, vectors(name, "[1, 2]")))
    assert tcir.validate(MATMUL.text(), tcir.Pipeline(first)).check()


def test_workspaces_have_the_size_that_kernels_use() -> None:
    """The pass that says another size than its kernels is the one that is wrong."""
    for by in (-16, 16):
        report = validated("split-launches", workspaces(by), REPACKED, "conv-implicit-gemm")
        failure = report.first_failure()
        assert failure is not None and failure.name == "split-launches", str(report)
        assert "expected workspace 3 of" in failure.compared
        assert "bytes in tc.workspaces" in failure.compared


def test_workspaces_that_no_gpu_has() -> None:
    for at in ("split-launches", "convert-to-llvm"):
        for by in (1 << 42, -(1 << 20)):
            report = validated(at, workspaces(by), REPACKED, "conv-implicit-gemm")
            failure = report.first_failure()
            assert failure is not None and failure.name == at, str(report)
            assert failure.verdict == "different"
            assert "expected workspace 3 to have 0 to" in str(failure)


def test_what_this_machine_cannot_hold_is_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any of it is allocated: the process would be killed."""
    monkeypatch.setattr(capacity, "host_memory", lambda: 1 << 20)
    report = validated("split-launches", workspaces(1 << 20), REPACKED, "conv-implicit-gemm")
    failure = report.first_failure()
    assert failure is not None and failure.name == "split-launches", str(report)
    assert failure.verdict == "incomplete" and "expected an execution within" in str(failure)
    with pytest.raises(tcir.IncompleteError, match="got at least"):
        tcir.validate(Matmul(128, 128, 8192).text(), "matmul")


def test_launches_in_the_wrong_order() -> None:
    report = validated("split-launches", swap_launches, REPACKED, "conv-implicit-gemm")
    failure = report.first_failure()
    assert failure is not None and failure.name == "split-launches", str(report)
    assert "@conv argument 0: expected float16[1, 3, 12, 8], got nothing" in failure.compared


@pytest.fixture(scope="module")
def check() -> PtxCheck:
    text = MATMUL.text()
    return PtxCheck(text, tcir.compile(text, "matmul"))


def test_an_endless_loop_is_a_verdict_that_names_the_loop(check: PtxCheck) -> None:
    assert not check.run(check.kernel.ptx, 1)
    endless = check.edit(r"(ret;)", r"L_END: add.s32 %r1, %r1, 1;\n\tbra L_END;\n\1")
    caught = check.run(endless, 1)
    assert caught.by == "illegal: instruction-budget", caught
    line = 1 + endless[: endless.index("L_END: add")].count("\n")
    assert f"the loop from line {line}: add.s32" in caught.text, caught.text


def test_a_quotient_by_zero_in_ptx(check: PtxCheck) -> None:
    """Undefined behaviour, named, where a store depends on it; a discarded quotient is none."""
    divide = (
        ".reg .pred %five; .reg .b32 %none; mov.b32 %none, 0;\n"
        "div.u32 %none, 7, %none; setp.ne.u32 %five, %none, 5;\n"
    )
    for guard, by in (("", ""), ("@%five ", "hazard: division-by-zero")):
        assert check.run(check.edit(r"st\.global", rf"{divide}{guard}\g<0>"), 1).by == by


def tile_program(turns: int) -> str:
    """A program of tiles, its loop with as many turns more."""
    with mlir_context() as context:
        module = load_module(MATMUL.text(), context)
        passes = named_pipeline("matmul")
        for item in passes.passes[: passes.index("tile-gemm") + 1]:
            item.apply(module)
        loop = pick(module, "scf.for")
        with ir.InsertionPoint(loop), loop.location:
            more = arith.ConstantOp(ir.IndexType.get(), turns).result
            loop.operands[1] = arith.AddIOp(loop.operands[1], more).result
        return str(module)


def test_an_endless_loop_of_the_input_is_a_verdict_too() -> None:
    assert tcir.validate(tile_program(0), tcir.Pipeline(["cse"]))
    report = tcir.validate(tile_program(100_000_000), tcir.Pipeline(["cse"]))
    (line,) = (line for line in report.passes if line.name == "(input)")
    assert line.verdict == report.verdict == "different", str(report)
    assert "loop-budget: expected loops of at most" in line.compared, str(report)


def test_a_store_to_an_input_of_a_tile_program() -> None:
    """B and the result have one shape and type here; the result itself stays right."""

    def store_again(module: Any) -> None:
        store = pick(module, "tc.store_rows")
        function = module.body.operations[0].operation
        with ir.InsertionPoint(store):
            copy = store.clone()
        copy.operands[1] = function.regions[0].blocks[0].arguments[1]

    report = validated("assign-roles", store_again, Matmul(64, 16, 64, out="f16"))
    failure = report.first_failure()
    assert failure is not None and failure.name == "assign-roles", str(report)
    (finding,) = failure.findings
    assert finding["code"] == "input-overwritten"
    assert "tc.store_rows" in finding["text"] and "buffer 1 of @" in finding["text"]


def test_twice_the_work_is_a_remark() -> None:
    double = set_attribute("func.func", "tc.grid", "array<i64: 2, 1, 1>")
    report = validated("multi-buffer", double)
    assert report.ok, str(report)
    remarks = report["multi-buffer"].remarks
    assert "same result, more work: ctas 1 -> 2 (2x)" in remarks
    assert any("mma 4 -> 8 (2x)" in remark for remark in remarks)
    assert "remark: same result, more work: ctas 1 -> 2 (2x)" in str(report)
    others = [line for line in report.passes if line.name != "multi-buffer"]
    assert not any(line.remarks for line in others), str(report)


def more_steps(module: Any) -> None:
    """14 times the steps along k: TMA fills what lies beyond the matrices with zeros."""
    loop = pick(module, "scf.for")
    with ir.InsertionPoint(loop), loop.location:
        steps = loop.operands[1].owner.attributes["value"].value
        loop.operands[1] = arith.ConstantOp(ir.IndexType.get(), 14 * steps).result


def store_twice(module: Any) -> None:
    store = pick(module, "tc.store_rows")
    with ir.InsertionPoint(store):
        store.clone()


def test_the_first_level_of_tiles_is_held_to_the_contraction() -> None:
    """There is no level before it to compare with; the input says how many products it needs."""
    report = validated("tile-gemm", more_steps)
    assert report.ok, str(report)
    expected = f"products {128 * 16 * 64} -> {14 * 128 * 16 * 64} (14x)"
    assert report["tile-gemm"].remarks == [f"same result, more work than the input: {expected}"], (
        str(report)
    )
    twice = validated("tile-gemm", store_twice)
    expected = f"bytes stored {32 * 16 * 4} -> {2 * 32 * 16 * 4} (2x)"
    assert twice["tile-gemm"].remarks == [f"same result, more work than the input: {expected}"]


@pytest.mark.parametrize(
    ("pipeline", "at", "text", "expected"),
    [
        (
            "matmul-warp",
            "tile-matmul-warp",
            Matmul(64, 32, 96).text(),
            f"products {128 * 32 * 96} -> {8 * 64 * 32 * 128} (5.33x)",
        ),
        (
            "gemv-simt",
            "convert-to-simt",
            BlockScaled(m=64, k=256).linalg(),
            f"products on CUDA cores {128 * 256} -> {8 * 64 * (2 * 256 + 16)} (8.25x)",
        ),
    ],
    ids=["mma.sync", "CUDA cores"],
)
def test_kernels_without_tcgen05_are_held_to_the_contraction(
    pipeline: str, at: str, text: str, expected: str
) -> None:
    def eightfold(module: Any) -> None:
        loop = pick(module, "scf.for")
        with ir.InsertionPoint(loop):
            for _ in range(7):
                loop.clone()

    passes = named_pipeline(pipeline)
    made = passes.passes[: passes.index(at)]
    for edit, remarks in ((lambda module: None, []), (eightfold, [expected])):
        report = tcir.validate(text, tcir.Pipeline([*made, Broken(passes.passes[len(made)], edit)]))
        assert report.ok, str(report)
        assert report[at].remarks == [
            f"same result, more work than the input: {r}" for r in remarks
        ]


def test_a_kernel_that_begins_to_count_is_no_remark() -> None:
    """Of kernels of threads and tiles, the second counts instructions once it is lowered."""
    before = Work(("thread", "tile"), {"instructions": 320, "mma": 4})
    assert not before.jumps(Work(("thread", "thread"), {"instructions": 2787, "mma": 4}))
    lowered = Work(("thread", "thread"), {"instructions": 320, "mma": 4})
    after = Work(("thread", "thread"), {"instructions": 2787, "mma": 4})
    assert lowered.jumps(after) == ["instructions 320 -> 2787 (8.71x)"]


def test_an_epilogue_may_take_an_instruction_for_every_number_that_it_stores() -> None:
    """MXFP8 of 256 x 512 sums with a K of 64, all but no bytes of operands, took 135304."""
    tiles = Work(("tile",), {"global_store": 256 * 512, "global_to_shared": 4 * 3 * 128 * 128})
    assert tiles.budget("thread", 0, 0) > 3 * 135304
