"""A by-value parameter made of parts: scalars, padding, tensor maps, pointers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.machine import TensorMap
from tcir.ptxrun.values import argument
from tcir.run import LaunchError, run_ptx

from .conftest import HEADER

KERNEL = (
    HEADER
    + """
.visible .entry k(.param .align 64 .b8 p[328])
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<8>;
.shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar;
mov.u32 %r2, tile; mov.u32 %r3, bar; mov.u32 %r0, %tid.x;
mov.b64 %d1, p; cvta.param.u64 %d1, %d1; add.u64 %d2, %d1, 64; add.u64 %d3, %d1, 192;
ld.param.u32 %r4, [p]; ld.param.u64 %d4, [p+320];
setp.eq.u32 %p0, %r0, 0; @!%p0 bra wait;
prefetch.tensormap [%d2];
mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256; mov.u32 %r5, 0; add.u32 %r6, %r2, 128;
cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes
 [%r2], [%d2, {%r5}], [%r3];
cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes
 [%r6], [%d3, {%r5}], [%r3];
wait: bar.warp.sync -1;
again: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0; @!%p1 bra again;
shl.b32 %r5, %r0, 3; add.u32 %r2, %r2, %r5; cvt.u64.u32 %d5, %r5; add.u64 %d4, %d4, %d5;
ld.shared.u32 %r5, [%r2]; add.u32 %r5, %r5, %r4; st.global.u32 [%d4], %r5;
ld.shared.u32 %r5, [%r2+4]; add.u32 %r5, %r5, %r4; st.global.u32 [%d4+4], %r5;
ret;
}
"""
)


def word_map(array: np.ndarray) -> TensorMap:
    return TensorMap.tiled(array, dtype="u32", dims=(32,), strides_bytes=(), box=(32,))


def parts(buffer: np.ndarray, out: np.ndarray) -> list[Any]:
    """Both maps point into one buffer."""
    return [np.uint32(7), bytes(60), word_map(buffer[:32]), word_map(buffer[32:]), out]


def test_maps_inside_a_parameter(assemble: Any) -> None:
    buffer, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    report = run_ptx(KERNEL, grid=1, block=32, args=[parts(buffer, out)])
    assert report.ok, report
    assert (out == buffer + 7).all()
    assemble(KERNEL)


@pytest.mark.parametrize(
    "change,word",
    [
        (lambda p: [*p[:1], *p[2:]], "multiple of 64"),
        (lambda p: p[:-1], "328 bytes in all, got 320"),
        (lambda p: [*p[:-1], "x"], "part 4 at byte 320"),
        (lambda p: [*p[:-1], 1.5], "got float"),
    ],
)
def test_parts_that_do_not_fit(change: Any, word: str) -> None:
    given = change(parts(np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)))
    with pytest.raises(LaunchError, match=word):
        run_ptx(KERNEL, grid=1, block=32, args=[given])


def test_parameter_without_alignment() -> None:
    given = parts(np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32))
    with pytest.raises(LaunchError, match="align 64"):
        run_ptx(KERNEL.replace(".align 64 .b8 p", ".align 8 .b8 p"), grid=1, block=32, args=[given])


def test_parts_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    np.save(file, np.arange(64, dtype=np.uint32))
    fields = {"array": str(file), "dtype": "u32", "dims": [32], "strides_bytes": [], "box": [32]}
    words = ["u32=7", "bytes=" + "00" * 60, "map=" + json.dumps(fields), "zeros=u32,64"]
    scalar, padding, tensor, out = argument("parts=" + json.dumps(words), ())
    assert scalar == np.uint32(7) and padding == bytes(60) and out.shape == (64,)
    given = (scalar, padding, tensor, tensor, out)
    assert run_ptx(KERNEL, grid=1, block=32, args=[given]).ok
    assert out.tolist() == [n % 32 + 7 for n in range(64)]
    with pytest.raises(LaunchError, match="parts"):
        argument("parts=[", ())
