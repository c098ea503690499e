"""What tc-opt and the Python entry points refuse at once, in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tcir
from tcir.errors import UnknownNameError
from tcir.opt.arguments import parse_arguments

from .test_driver import tc_opt

FUNCTION = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pipeline=gemm", "--pipeline=conv"], "expected one --pipeline"),
        (["--pipeline", "gemm", "--pipeline=conv"], "expected one --pipeline"),
        (["--pipeline=gemm", "--orders=5"], "--orders: expected --validate-each"),
        (
            ["--cse", "--mlir-print-ir-after-change"],
            "expected --mlir-print-ir-after-all, or -after",
        ),
        (["--mlir-elide-elementsattrs-if-larger=-1"], "expected at least 0 elements, got -1"),
    ],
)
def test_flags_that_contradict_or_do_nothing(words: list[str], said: str) -> None:
    with pytest.raises(tcir.InputError, match=said):
        parse_arguments(["f.mlir", *words])
    assert (
        parse_arguments(["f.mlir", "--pipeline=gemm", "--orders=5", "--validate-each"]).orders == 5
    )
    change = ["--mlir-print-ir-after-change", "--mlir-print-ir-after=cse"]
    assert parse_arguments(["f.mlir", "--cse", *change]).mlir_print_ir_after_change
    none = ["--mlir-elide-elementsattrs-if-larger=0"]
    assert parse_arguments(["f.mlir", *none]).mlir_elide_elementsattrs_if_larger == 0


@pytest.mark.parametrize("text", ["no\udcff", "cse{a=\udcff}"])
def test_a_pass_that_is_no_utf_8(text: str) -> None:
    with pytest.raises(tcir.InputError, match=r"expected a pass in UTF-8, got '.*\\udcff"):
        tcir.Pipeline([text]).check()


@pytest.mark.parametrize("program", [None, 7, [FUNCTION]])
def test_programs_that_are_none(program: Any) -> None:
    with pytest.raises(tcir.InputError, match="MLIR text, a path or an ir"):
        tcir.compile(program, "gemm")


def test_numbers_that_are_none() -> None:
    with pytest.raises(tcir.InputError, match="orders: expected an integer, got 'x'"):
        tcir.validate(FUNCTION, "gemm", orders="x")  # type: ignore[arg-type]


def test_a_near_option_is_spelled_as_the_command_line_takes_it() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'n-tile'"):
        tcir.named_pipeline("gemm{ntile=8}")


def test_a_failing_plugin_is_named_with_its_line_and_in_the_reproducers_command(
    tmp_path: Path,
) -> None:
    plugin, saved = tmp_path / "mine.py", tmp_path / "r.mlir"
    plugin.write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\nimport tcir\n\n\n"
        "@tcir.register_pass\n@dataclass(frozen=True)\nclass Mine(tcir.Pass):\n"
        '    name: ClassVar[str] = "test-divides"\n\n    def run(self, module):\n        1 / 0\n'
    )
    flag = f"--load-pass-plugin={plugin}"
    done = tc_opt(
        "-", flag, "--test-divides", f"--mlir-pass-pipeline-crash-reproducer={saved}", text=FUNCTION
    )
    assert done.returncode == 4
    assert f"error: {plugin}:12: ZeroDivisionError: division by zero" in done.stderr
    command = done.stderr.rpartition("tc-opt ")[2].split()
    assert command == [flag, "--run-reproducer", str(saved)]
    assert f"{plugin}:12: " in tc_opt(*command).stderr
