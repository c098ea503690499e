"""run_cubin takes the parts of a by-value parameter that run_ptx takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tcir import runtime
from tcir.codegen import assemble
from tcir.errors import InputError
from tcir.machine import TensorMap
from tcir.run import run_ptx

from . import fake_driver

KERNEL = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 p[192])  // { number, out, 48 bytes of nothing, map }
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<8>;
.shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
mov.u32 %r2, tile; mov.u32 %r3, bar; mov.u32 %r0, %tid.x;
mov.b64 %d1, p; cvta.param.u64 %d1, %d1; add.u64 %d2, %d1, 64;
ld.param.u32 %r4, [p]; ld.param.u64 %d4, [p+8];
setp.eq.u32 %p0, %r0, 0; @!%p0 bra wait;
mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128; mov.u32 %r5, 0;
cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes
 [%r2], [%d2, {%r5}], [%r3];
wait: bar.warp.sync -1;
again: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0; @!%p1 bra again;
shl.b32 %r5, %r0, 2; add.u32 %r2, %r2, %r5; cvt.u64.u32 %d5, %r5; add.u64 %d4, %d4, %d5;
ld.shared.u32 %r5, [%r2]; add.u32 %r5, %r5, %r4; st.global.u32 [%d4], %r5;
ret;
}
"""


def parts(buffer: np.ndarray, out: np.ndarray) -> list[Any]:
    """The map begins in the middle of its buffer."""
    words = TensorMap.tiled(buffer[32:], dtype="u32", dims=(32,), strides_bytes=(), box=(32,))
    return [np.uint32(7), bytes(4), out, bytes(48), words]


@pytest.fixture(autouse=True)
def afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # ends in front of it
    yield
    fake_driver.forget()


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = fake_driver.install(monkeypatch, {"k": ([192], KERNEL)}, (10, 0))
    cubin = assemble(KERNEL, "sm_100a").data

    def run(argument: Any) -> Any:
        runtime.run_cubin(cubin, entry="k", grid=1, block=32, args=[argument])
        return fake.launches[-1]

    return run


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_struct_with_maps_and_a_pointer(launch: Any, kind: Any) -> None:
    buffer, out, want = np.arange(64, dtype=np.uint32), *np.zeros((2, 32), np.uint32).copy()
    launched = launch(kind(parts(buffer, out)))
    assert run_ptx(KERNEL, grid=1, block=32, args=[parts(buffer, want)]).ok
    assert (out == want).all() and (out == buffer[32:] + 7).all()
    (value,) = launched.values
    assert len(value) == 192 and value[:8] == b"\x07" + bytes(7) and value[16:64] == bytes(48)


def test_parts_that_do_not_fit(launch: Any) -> None:
    buffer, out = np.arange(64, dtype=np.uint32), np.zeros(32, np.uint32)
    good = parts(buffer, out)
    with pytest.raises(InputError, match=r"part 4 at byte 48: .* insert bytes\(16\) before it"):
        launch([*good[:3], bytes(32), good[4]])
    with pytest.raises(InputError, match=r"parameters of \(192,\) bytes, got \(200,\)"):
        launch([*good, bytes(8)])
    with pytest.raises(InputError, match="parts inside parts"):
        launch([good[:2], *good[2:]])
    with pytest.raises(InputError, match="a tuple of such parts, got float"):
        launch([1.0, *good[1:]])
