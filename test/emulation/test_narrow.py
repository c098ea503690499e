"""Tensor maps of narrow elements are maps of bytes with a note. Copies by them: on a GPU only."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from endtoend.block_scaled_text import F4, F8A, UE8M0, BlockScaled

import tcir
from tcir.emulation import EmulatedLaunch, EmulationError, emulate, narrow
from tcir.machine.tma.map_fields import MapFields

from .test_rewriting import LOAD, STORE, _kernel

NOTE_OF_NONE = bytes(range(128))


def _fields(dtype: str, box: int = 128, swizzle: str = "128B", rows: int = 32) -> MapFields:
    return MapFields(
        mode="tiled", dtype=dtype, dims=(512, 100), strides_bytes=(512,), element_strides=(1, 1),
        box=(box, rows), swizzle=swizzle,
    )  # fmt: skip


def _encoded(fields: MapFields) -> tuple[MapFields, bytes]:
    given: list[MapFields] = []

    def encode(fields: MapFields, address: int) -> bytes:
        assert address == 4096
        given.append(fields)
        return NOTE_OF_NONE

    found = narrow.encoder(encode)(fields, 4096)
    assert len(found) == 128 and found[:124] == NOTE_OF_NONE[:124]
    return given[0], found[124:]


@pytest.mark.parametrize(
    ("fields", "dims", "box", "swizzle", "note"),
    [
        (_fields("u8"), (512, 100), (128, 32), "128B", NOTE_OF_NONE[124:]),
        (_fields("u4_align8b", 256), (256, 100), (128, 32), "128B", b"\x08\0\x12\x7c"),
        (_fields("u4_align16b"), (256, 100), (64, 32), "NONE", b"\x38\0\x12\x7c"),
        (_fields("u4_align16b", swizzle="NONE"), (256, 100), (64, 32), "NONE", b"\x18\0\x12\x7c"),
        (_fields("u6_align16b"), (384, 100), (96, 32), "NONE", b"\x3c\0\x12\x7c"),
    ],
    ids=["plain", "dense", "padded", "not swizzled", "six bits"],
)
def test_fields_and_note(
    fields: MapFields, dims: tuple[int, ...], box: tuple[int, ...], swizzle: str, note: bytes
) -> None:
    found, behind = _encoded(fields)
    assert (found.dtype, found.dims, found.box, found.swizzle) == ("u8", dims, box, swizzle)
    assert found.strides_bytes == fields.strides_bytes and behind == note


def test_what_is_not_emulated_is_named() -> None:
    with pytest.raises(EmulationError, match="rows whose padding is a multiple of 128"):
        _encoded(_fields("u4_align16b", rows=3))


@pytest.mark.parametrize(("a", "has_notes"), [(F4, True), (F8A, False)])
def test_a_kernel_with_fp4_operands_beside_fp8_looks_for_notes(a: str, has_notes: bool) -> None:
    case = BlockScaled(m=20, n=140, k=256, a=a, b=F8A, scale=UE8M0, block=32)
    kernel = tcir.compile(case.linalg(), "gemm")
    assert ("%tcir_emulation_has" in kernel.emulated.ptx) == has_notes


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
def test_copies_of_narrow_elements_assemble(tmp_path: Path) -> None:
    pair = LOAD.replace("::bytes ", "::bytes.multicast::cluster.cta_group::2 ")
    more = pair.replace("[%r6];", "[%r6], %h1;").replace("shared::cta", "shared::cluster")
    prefetch = "cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1, {%r2, %r3}];"
    text = _kernel("\n".join((LOAD, STORE, more, prefetch)))
    made = emulate(text, EmulatedLaunch((4, 1, 1), (128, 1, 1), (2, 1, 1)), narrow=True)
    (tmp_path / "k.ptx").write_text(made.ptx)
    command = ["ptxas", "-arch=sm_90a", tmp_path / "k.ptx", "-o", tmp_path / "k.cubin"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
