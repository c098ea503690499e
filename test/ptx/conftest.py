"""Helpers of the PTX tests: ptxas as judge of legality, and one-instruction kernels."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
PTXAS = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13" / "bin" / "ptxas"
WIDTH = {"pred": "b32"}


def kernel(name: str, body: str, inputs: Sequence[str], output: str) -> str:
    """Entry `name`: thread t loads element t of each input into %a, %b, …, runs `body`, stores %d.

    Predicate temporaries %p0..%p7, 32-bit %t0..%t7 and 64-bit %u0..%u7 are at the body's service.
    """
    registers = "".join(f".reg .{t} %{n};\n" for n, t in zip("abce", inputs))
    params = ", ".join(f".param .u64 {name}_{n}" for n in range(len(inputs) + 1))
    loads = ""
    for n, (reg, kind) in enumerate(zip("abce", inputs)):
        size = int("".join(c for c in kind if c.isdigit()).removesuffix("2") or 0) // 8
        size = {"f16x2": 4, "bf16x2": 4, "f32x2": 8}.get(kind, int(kind.lstrip("usbf")) // 8)
        loads += (
            f"ld.param.u64 %u0, [{name}_{n}]; mad.wide.u32 %u1, %t0, {size}, %u0;\n"
            f"ld.global.b{8 * size} %{reg}, [%u1];\n"
        )
    out = int(output.lstrip("usbf")) // 8
    return f"""
.visible .entry {name}({params})
{{
.reg .pred %p<8>; .reg .b32 %t<8>; .reg .b64 %u<8>; .reg .b16 %h<8>; .reg .{output} %d;
{registers}
mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x; mov.u32 %t2, %ntid.x;
mad.lo.u32 %t0, %t1, %t2, %t0;
{loads}
{body}
ld.param.u64 %u0, [{name}_{len(inputs)}]; mad.wide.u32 %u1, %t0, {out}, %u0;
st.global.b{8 * out} [%u1], %d;
ret;
}}
"""


def _assemble(ptx: str, directory: Path) -> bytes:
    source, target = directory / "kernel.ptx", directory / "kernel.cubin"
    source.write_text(ptx)
    done = subprocess.run(
        [PTXAS, "-arch=sm_100a", source, "-o", target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return target.read_bytes()


@pytest.fixture
def assemble(tmp_path: Path) -> Callable[[str], bytes]:
    """Assembles PTX for sm_100a and fails the test if ptxas refuses it."""
    if not PTXAS.exists():
        pytest.skip("no ptxas on this platform")
    return lambda ptx: _assemble(ptx, tmp_path)


@pytest.fixture
def lanes() -> Callable[..., np.ndarray]:
    """Runs one snippet over arrays, 32 threads per warp; every run has to be ok."""

    def run(
        body: str, arrays: Sequence[np.ndarray], types: Sequence[str], output: str
    ) -> np.ndarray:
        count = len(arrays[0])
        padded = -(-count // 32) * 32
        full = [np.concatenate([a, np.resize(a, padded - count)]) for a in arrays]
        size = int(output.lstrip("usbf")) // 8
        out = np.zeros(padded, np.dtype(f"u{size}"))
        report: RunReport = run_ptx(
            HEADER + kernel("k", body, types, output),
            grid=padded // 32,
            block=32,
            args=[*full, out],
        )
        assert report.ok, str(report)
        return out[:count]

    return run
