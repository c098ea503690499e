"""DeepGEMM's sm_100 GEMMs: `python deep_gemm_kernels.py OUT` writes OUT/NAME.ptx and OUT/NAME.json.

The kernels are the templates of the package sgl-deep-gemm, instantiated as its host code does
(csrc/jit_kernels/impls/sm100_*.hpp); only the tiles per CTA and the number of CTAs are small.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Gemm:
    """D[g] = A[g] B[g]^T. dtype: of A, B and D. major: "K" or "MN" for A and for B.

    kind: GemmType. pair: "" for one CTA; "A" or "B": two CTAs load half of that operand's tile.
    ks: K of each group (k-grouped), rows: M of each group (m-grouped).
    """

    a: str = "bf16"
    b: str = "bf16"
    d: str = "bf16"
    m: int = 256
    n: int = 256
    k: int = 256
    block: tuple[int, int, int] = (128, 128, 64)
    major: str = "K K"
    kind: str = "Normal"
    groups: int = 1
    pair: str = ""
    sms: int = 2
    stages: int = 4
    swap: bool = False
    accumulate: bool = False
    gran: tuple[int, int] = (128, 128)
    rows: tuple[int, ...] = ()
    ks: tuple[int, ...] = ()

    @property
    def scaled(self) -> bool:
        return self.a != "bf16"

    @property
    def swizzle_d(self) -> int:
        return 128


def fp8(**options: Any) -> Gemm:
    return Gemm(**{"a": "e4m3", "b": "e4m3", "block": (128, 128, 128), "k": 512} | options)


GEMMS = {
    "bf16": Gemm(),
    "bf16_f32": Gemm(d="f32", n=128),
    "bf16_accumulate": Gemm(d="f32", m=128, accumulate=True),
    "bf16_nn": Gemm(major="K MN", m=128),
    "bf16_tn": Gemm(major="MN MN", m=128),
    "bf16_m32": Gemm(m=64, n=128, block=(32, 64, 64)),
    "bf16_pair": Gemm(n=512, pair="B", k=128, block=(128, 256, 64)),
    "bf16_swap_ab": Gemm(m=64, n=256, block=(32, 128, 64), swap=True),
    "bf16_swap_ab_pair": Gemm(m=64, n=512, block=(32, 128, 64), swap=True, pair="A", k=128),
    "bf16_contiguous": Gemm(kind="MGroupedContiguous", groups=3, rows=(128, 256, 128), k=128),
    "bf16_masked": Gemm(kind="MGroupedMasked", groups=3, m=256, n=128, rows=(100, 0, 200), k=128),
    "bf16_batched": Gemm(kind="Batched", groups=3, m=128, n=128, k=128),
    "bf16_mn": Gemm(major="MN K", m=128),
    "bf16_tall": Gemm(m=512, n=64, block=(128, 64, 64), sms=4),
    "bf16_wide": Gemm(m=128, n=512, block=(128, 256, 64), k=320, stages=3),
    "bf16_ragged": Gemm(m=200, n=192, k=192, block=(128, 64, 64)),
    "bf16_nn_f32": Gemm(major="K MN", d="f32", m=128, n=128),
    "bf16_pair_nn": Gemm(n=256, pair="B", k=128, major="K MN"),
    "bf16_pair_f32": Gemm(n=128, pair="B", d="f32"),
    "bf16_pair_contiguous": Gemm(
        kind="MGroupedContiguous", groups=2, rows=(256, 256), n=128, k=128, pair="B"
    ),
    "bf16_masked_nn": Gemm(
        kind="MGroupedMasked", groups=2, m=128, n=128, rows=(128, 30), k=128, major="K MN"
    ),
    "bf16_batched_f32": Gemm(kind="Batched", groups=2, m=128, n=128, k=192, d="f32"),
    "bf16_k_grouped": Gemm(
        kind="KGroupedContiguous", groups=2, major="MN MN", d="f32", accumulate=True, m=128, n=128,
        ks=(128, 192),
    ),
    "fp8": fp8(),
    "fp8_gran32": fp8(gran=(32, 32), n=128),
    "fp8_m64": fp8(m=128, n=128, block=(64, 128, 128)),
    "fp8_f32_accumulate": fp8(d="f32", accumulate=True, m=128, gran=(32, 128)),
    "fp8_pair": fp8(n=256, pair="B"),
    "fp8_nn": fp8(major="K MN", m=128),
    "fp8_tn": fp8(major="MN MN", m=128),
    "fp8_f32": fp8(d="f32", m=128, k=640),
    "fp8_ragged": fp8(m=180, n=128, k=384),
    "fp8_gran32_128": fp8(gran=(32, 128), n=128, k=256),
    "fp8_swap_ab": fp8(m=32, block=(32, 128, 128), swap=True),
    "fp8_swap_ab_pair": fp8(m=32, n=256, block=(32, 128, 128), swap=True, pair="A"),
    "fp8_contiguous": fp8(kind="MGroupedContiguous", groups=2, rows=(128, 128), n=128),
    "fp8_masked": fp8(kind="MGroupedMasked", groups=2, m=128, n=128, rows=(70, 128)),
    "fp8_batched": fp8(kind="Batched", groups=2, m=128, n=128),
    "fp8_fp4": fp8(b="e2m1", gran=(128, 32), n=128),
    "fp8_fp4_pair": fp8(b="e2m1", gran=(32, 32), n=128, pair="B"),
    "fp8_fp4_contiguous": fp8(
        b="e2m1", gran=(128, 32), kind="MGroupedContiguous", groups=2, rows=(128, 128), n=128
    ),
    "fp8_fp4_masked": fp8(
        b="e2m1", gran=(32, 32), kind="MGroupedMasked", groups=2, m=128, n=128, rows=(90, 10)
    ),
    "fp8_fp4_swap_ab": fp8(
        b="e2m1", gran=(128, 32), m=32, n=128, block=(32, 128, 128), swap=True
    ),
    "mxf4_f32": fp8(a="e2m1", b="e2m1", gran=(32, 32), block=(128, 128, 256), d="f32", m=128),
    "mxf4_contiguous": fp8(
        a="e2m1", b="e2m1", gran=(32, 32), block=(128, 128, 256), n=128,
        kind="MGroupedContiguous", groups=2, rows=(128, 128),
    ),
    "mxf4": fp8(a="e2m1", b="e2m1", gran=(32, 32), block=(128, 128, 256)),
    "mxf4_pair": fp8(
        a="e2m1", b="e2m1", gran=(32, 32), block=(128, 128, 256), n=128, pair="B"
    ),
}  # fmt: skip

BF16, F32 = "cutlass::bfloat16_t", "float"
IDENTITY = "epilogue::operators::Identity"


def flag(value: bool) -> str:
    return "true" if value else "false"


def instance(g: Gemm) -> str:
    """The instantiation, its arguments in the order of the template's parameters."""
    majors = ", ".join(f"cute::UMMA::Major::{m}" for m in g.major.split())
    blocks = ", ".join(map(str, g.block))
    roles = f"128, 128, {2 if g.pair else 1}, {flag(g.pair == 'A')}, {g.sms}"
    kind = f"GemmType::{g.kind}, {flag(g.accumulate)}"
    out = BF16 if g.d == "bf16" else F32
    if not g.scaled:
        return (
            f"sm100_bf16_gemm_impl<{majors}, 0, 0, 0, {blocks}, {g.groups}, 128, 128, "
            f"{g.swizzle_d}, {g.stages}, {roles}, 64, {flag(g.swap)}, true, {kind}, {out}, "
            f"{IDENTITY}, 100>"
        )
    e2m1 = "cutlass::detail::float_e2m1_unpacksmem_t" if g.a == "e4m3" else "cutlass::float_e2m1_t"
    types = ", ".join("cutlass::float_e4m3_t" if t == "e4m3" else e2m1 for t in (g.a, g.b))
    return (
        f"sm100_fp8_fp4_gemm_1d1d_impl<{majors}, {g.gran[0]}, {g.gran[1]}, 128, 0, 0, 0, {blocks}, "
        f"{g.groups}, 128, 128, {g.swizzle_d}, {g.stages}, 2, {roles}, {flag(g.swap)}, true, "
        f"{kind}, {types}, {out}, {IDENTITY}>"
    )


def source(g: Gemm) -> str:
    header = "sm100_fp8_fp4_gemm_1d1d" if g.scaled else "sm100_bf16_gemm"
    return f"""#include <deep_gemm/impls/{header}.cuh>
using namespace deep_gemm;
static void __instantiate_kernel() {{
    auto ptr = reinterpret_cast<void*>(&{instance(g)});
}}
"""


def main(out: Path) -> None:
    import nvcc

    include, version = nvcc.package("sgl-deep-gemm", "deep_gemm/include")
    for name, gemm in GEMMS.items():
        path = out / f"{name}.cu"
        path.write_text(source(gemm))
        record: dict[str, Any] = {"block": [256], "dynamic_smem": 232448, "gemm": asdict(gemm)}
        try:
            text = nvcc.ptx(path, [include], version, "-std=c++20")
        except subprocess.CalledProcessError as error:
            record = {"error": re.sub(r"\s+", " ", error.stderr)[-300:]}
        else:
            (out / f"{name}.ptx").write_text(text)
        (out / f"{name}.json").write_text(json.dumps(record))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
