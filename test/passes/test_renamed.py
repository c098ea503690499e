"""Old names of passes work for one release, and say what they are called now; second names stay."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

import tcir
from tcir.passmanager.pipeline import (
    Pass,
    Pipeline,
    find_pass,
    find_pipeline,
    named_pipeline,
    register_pipeline,
    registered_pipelines,
)
from tcir.passmanager.renamed import PASSES, PIPELINES

PACK = """func.func @f(%c: tensor<4x32xi8>) -> tensor<4x32xf4E2M1FN> {
  %p = "tc.pack_codes"(%c) : (tensor<4x32xi8>) -> tensor<4x32xf4E2M1FN>
  return %p : tensor<4x32xf4E2M1FN>
}"""


@pytest.mark.parametrize("old", PASSES)
def test_an_old_name_is_the_new_pass(old: str) -> None:
    with pytest.warns(FutureWarning, match=f"pass {old} is part of convert-to-simt now"):
        (made,) = Pipeline.parse(old)
    assert find_pass(old) is None
    assert (str(made),) == (PASSES[old],)


def test_options_go_on_to_the_new_pass() -> None:
    with pytest.warns(FutureWarning):
        (made,) = Pipeline.parse("convert-block-scaled-to-simt{rows=2 warps=8}")
    assert str(made) == "convert-to-simt{quantise-apart=false rows=2 warps=8}"


def test_an_old_pipeline_makes_the_same_code() -> None:
    lowering = "convert-scf-to-cf,convert-to-llvm,canonicalize,cse"
    new = tcir.compile(PACK, f"builtin.module(convert-to-simt,{lowering})", cache=False)
    with pytest.warns(FutureWarning):
        old = tcir.compile(
            PACK,
            f"builtin.module(convert-scales-to-simt,convert-codes-to-simt,{lowering})",
            cache=False,
        )
    assert old.ptx == new.ptx


@pytest.mark.parametrize(("second", "first"), PIPELINES.items())
def test_a_second_name_of_a_pipeline(second: str, first: str) -> None:
    found = find_pipeline(second)
    assert found is not None and found is find_pipeline(first)
    assert f"{first}: " in found.describe() and f"(also {second})" in found.describe()
    assert second not in registered_pipelines()
    with pytest.raises(tcir.InputError, match=f"expected a new pipeline name, got '{second}'"):
        register_pipeline(replace(found, name=second, build=lambda options: tcir.Pipeline([])))


def test_places_by_an_old_name() -> None:
    passes = named_pipeline("gemm")
    assert passes.index("convert-linalg-to-simt") == passes.index("convert-to-simt")


@pytest.mark.parametrize("old", PASSES)
def test_a_pass_from_outside_takes_no_old_name(old: str) -> None:
    class Taken(Pass):
        """Has the name of a pass of the package."""

        name: ClassVar[str] = old

    with pytest.raises(tcir.InputError, match=old):
        tcir.register_pass(Taken)
