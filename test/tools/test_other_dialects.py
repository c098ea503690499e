"""Programs of StableHLO, torch, TOSA and bytecode: told what they are, and what lowers them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tcir

BIN = Path(sys.executable).parent
STABLEHLO = """func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // stablehlo.negate in a comment is none
  %0 = stablehlo.abs %a : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""
TORCH = """func.func @main(%a: !torch.vtensor<[8,8],f16>) -> !torch.vtensor<[8,8],f16> {
  %0 = torch.aten.relu %a : !torch.vtensor<[8,8],f16> -> !torch.vtensor<[8,8],f16>
  return %0 : !torch.vtensor<[8,8],f16>
}
"""
TOSA = """func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c = "tosa.const"() <{values = dense<2.0> : tensor<8x8xf32>}> : () -> tensor<8x8xf32>
  %0 = tosa.add %a, %c : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""
PROGRAMS = {
    "StableHLO": (STABLEHLO, "3:8: error: ", "got stablehlo.abs of StableHLO; "),
    "torch": (TORCH, "2:8: error: ", "got torch.aten.relu of torch-mlir; "),
    "TOSA": (TOSA, "2:8: error: ", "got tosa.const of TOSA; "),
}


def told(text: str) -> str:
    with pytest.raises(tcir.InputError) as error:
        tcir.compile(text, "layers")
    return str(error.value)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_place_the_dialect_and_the_command(name: str) -> None:
    text, place, words = PROGRAMS[name]
    said = told(text)
    assert said.startswith("<text>:" + place.removesuffix("error: ")) and words in said


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_command_lowers_it(name: str, tmp_path: Path) -> None:
    """As the message says it; what it writes compiles."""
    file = tmp_path / "FILE"
    file.write_text(PROGRAMS[name][0])
    tc_opt = subprocess.run(
        [BIN / "tc-opt", file, "--pipeline=layers"], capture_output=True, text=True, check=False
    )
    assert tc_opt.returncode == 3 and f"{file}:{PROGRAMS[name][1]}" in tc_opt.stderr
    command = re.search(r"`([^`]*)`", tc_opt.stderr)
    assert command is not None
    words = shlex.split(command[1].replace("FILE", str(file)))
    done = subprocess.run([BIN / words[0], *words[1:]], capture_output=True, text=True, check=True)
    assert tcir.compile(done.stdout, "layers").launches.launches


def test_other_texts_are_as_they_were() -> None:
    """A dialect that nobody knows, and TOSA where no pass of ours runs."""
    assert "Dialect `nobody' not found" in told(STABLEHLO.replace("stablehlo.abs", "nobody.abs"))
    tcir.validate(TOSA, "builtin.module(canonicalize)")


def test_bytecode(tmp_path: Path) -> None:
    path = tmp_path / "x.mlirbc"
    path.write_bytes(b"ML\xefR\x0d\x01")
    with pytest.raises(tcir.InputError, match=r"x\.mlirbc: expected MLIR text, got bytecode"):
        tcir.compile(path, "layers")
