"""gemv-padded-n with the options that few programs need: wide N tiles, N = 8, other kinds."""

from __future__ import annotations

import numpy as np
import pytest

import tcir
from tcir.passmanager.remarks import remarks_to

from .block_scaled_oracle import inputs_of, product
from .block_scaled_text import UE8M0, BlockScaled
from .test_halo_assumptions import assume

MXFP4 = BlockScaled(m=130, k=512, scale=UE8M0, block=32)
KINDS = {
    "mxf4nvf4": "kind::mxf4nvf4.block_scale.block32",
    "mxf8f6f4": "kind::mxf8f6f4.block_scale",
}
"""What multiplies MXFP4 besides mxf4."""


def right_at_every_level(case: BlockScaled, pipeline: str) -> str:
    """The PTX, once results are equal to numpy's, and to each other at every level."""
    inputs = inputs_of(case, seed=7, largest=2)
    kernel = tcir.compile(case.linalg(), pipeline=pipeline, validate=True, orders=2, seed=3)
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}, str(
        kernel.report
    )
    want = product(case, **inputs)
    out = np.zeros_like(want)
    kernel(*inputs.values(), out)
    assert out.tobytes() == want.tobytes()
    return kernel.ptx


@pytest.mark.parametrize("kind", KINDS)
def test_kind(kind: str) -> None:
    ptx = right_at_every_level(MXFP4, f"gemv-padded-n{{kind={kind}}}")
    assert KINDS[kind] in ptx
    assert "kind::mxf4.block_scale" in tcir.compile(MXFP4.linalg(), pipeline="gemv-padded-n").ptx


def test_more_columns_than_sixteen() -> None:
    case = BlockScaled(m=129, k=256, n=20, batch=2, out="bf16")
    right_at_every_level(case, "gemv-padded-n{pad_n=32}")


def test_more_columns_than_rows_share_a_column_of_tensor_memory() -> None:
    """The scales of more than 32 columns do not fit beside each other as they are: reordered."""
    case = BlockScaled(m=129, k=256, n=40)
    right_at_every_level(case, "gemv-padded-n{pad_n=48}")


@pytest.mark.parametrize("answer", ["runs", "illegal"])
def test_n_of_eight_rests_on_an_assumption(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assume(monkeypatch, scaled_n8=answer)
    said: list[str] = []
    case = BlockScaled(m=3, k=64)
    with remarks_to(lambda _, text: said.append(text)):
        report = tcir.validate(case.linalg(), "gemv-padded-n", pad_n=8)
    assert any("pad-n=8 relies on the assumption scaled_n8" in text for text in said)
    assert report.ok == (answer == "runs"), str(report)
    assert ("scaled_n8 = illegal" in str(report)) == (answer == "illegal"), str(report)


def test_n_of_sixteen_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assume(monkeypatch, scaled_n8="illegal")
    said: list[str] = []
    with remarks_to(lambda _, text: said.append(text)):
        report = tcir.validate(BlockScaled(m=3, k=64).linalg(), "gemv-padded-n")
    assert report.ok, str(report)
    assert not [text for text in said if "scaled_n8" in text]


def test_padding_to_more_columns_than_share_a_column_of_tensor_memory() -> None:
    with pytest.raises(tcir.PassError, match=r"at most 32 with row-major .*, got 48: .* pad-n=16"):
        tcir.compile(BlockScaled(m=24, n=8, k=256).linalg(), "gemv-padded-n", pad_n=48)
