"""Names that MLIR allows and PTX does not: legal in the code, and the user's for the user."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcir
from tcir.codegen import assemble
from tcir.errors import Error
from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.program.symbols import legal_symbol

MATMUL = """func.func @NAME(%a: tensor<128x64xf16>, %b: tensor<64x32xf16>) -> tensor<128x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x32xf32>) -> tensor<128x32xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x64xf16>, tensor<64x32xf16>)
    outs(%f : tensor<128x32xf32>) -> tensor<128x32xf32>
  return %r : tensor<128x32xf32>
}"""
PTX = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry NAME(.param .u64 out)
{
	ret;
}
"""
SPELLED = {
    "main.1": "main$2e$1",
    "my-kernel": "my$2d$kernel",
    "aten::mm": "aten$3a3a$mm",
    "größe": "gr$c3b6c39f$e",
    "1x": "$31$x",
    "a$b": "a$24$b",
    "_": "$5f$",
    "WARP_SZ": "$57$ARP_SZ",
    "matmul": "matmul",
    "_Z3addPf": "_Z3addPf",
}


@pytest.mark.parametrize("name", SPELLED)
def test_the_machine_and_ptxas_agree_on_names(name: str) -> None:
    """What is left as it is can be spelled; what is not cannot, but for a dollar sign."""
    symbol = legal_symbol(name)
    assert symbol == SPELLED[name]
    assert assemble(PTX.replace("NAME", symbol)).data
    assert tcir.run_ptx(PTX.replace("NAME", symbol), grid=1, block=32, args=[np.zeros(1)]).ok
    if symbol != name and "$" not in name:
        with pytest.raises(Error):
            assemble(PTX.replace("NAME", name))


NO_NAMES = ["main.1", "größe", "1x", "_", "a%b", "a::b"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_the_machine_refuses_what_is_no_name(name: str) -> None:
    with pytest.raises(PtxSyntaxError):
        tcir.run_ptx(PTX.replace("NAME", name), grid=1, block=32, args=[np.zeros(1)])


@pytest.mark.parametrize(
    "line", [".reg .b32 r.x;", ".shared .b32 s.x;", "l.1:", ".local .b8 größe[4];"]
)
def test_the_same_of_registers_variables_and_labels(line: str) -> None:
    text = PTX.replace("NAME", "k").replace("\tret;", f"\t{line}\n\tret;")
    with pytest.raises(PtxSyntaxError, match=r"expected a|unexpected character"):
        tcir.run_ptx(text, grid=1, block=32, args=[np.zeros(1)])
    with pytest.raises(Error, match="ptxas rejected"):
        assemble(text)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(NAMES, NAMES)
def test_names_that_differ_still_do(one: str, other: str) -> None:
    first, second = legal_symbol(one), legal_symbol(other)
    assert (first == second) == (one == other)
    assert re.fullmatch(r"[A-Za-z][\w$]*|[_$][\w$]+", first, re.ASCII)


def test_a_kernel_has_the_user_s_name_and_is_executed_after_the_pass() -> None:
    kernel = tcir.compile(MATMUL.replace("NAME", "main.1"), "gemm", validate=True)
    assert kernel.report.ok and kernel.report["legalize-symbols"].verdict == "equal"
    launch = kernel.launch_config
    assert (kernel.name, launch.title, launch.name) == ("main.1", "main.1", "main$2e$1")
    assert ".visible .entry main$2e$1(" in kernel.ptx and kernel.cubin
    ones = np.ones((128, 64), np.float16), np.ones((64, 32), np.float16)
    assert (kernel.run(*ones) == 64).all()


def test_a_plain_name_has_no_such_pass() -> None:
    kernel = tcir.compile(MATMUL.replace("NAME", "main_1"), "gemm")
    assert "legalize-symbols" not in [line.name for line in kernel.report.passes]
    assert kernel.launch_config.symbol == ""


def test_a_kernel_may_be_called_as_shared_memory_is() -> None:
    kernel = tcir.compile(MATMUL.replace("NAME", "smem"), "gemm")
    assert ".extern .shared .align 1024 .b8 smem_[];" in kernel.ptx and kernel.cubin
