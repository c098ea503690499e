"""CuTe DSL GEMMs for `gemm_sass`, without a GPU: ``f16`` or ``nvfp4``; writes kernel.ptx.

f16 is the kernel of `peers`. NVFP4 is CUTLASS's own first tutorial, ``nvfp4_gemm_0.py``, with tiles
of 128 x 128 and f32 results; ``$CUTLASS`` names a checkout of CUTLASS.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

OPTIONS = "--gpu-arch sm_100a --keep-ptx"
SIZE = 4096
TUTORIAL = "examples/python/CuTeDSL/cute/blackwell/tutorial/tutorial_gemm/nvfp4_gemm_0.py"


def f16() -> Any:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
    import cute_tensor_core

    cute_tensor_core.M = cute_tensor_core.K = SIZE
    cute_tensor_core.N = SIZE // 2
    cute_tensor_core.STAGES = 4
    return cute_tensor_core.matmul_f16()


def nvfp4() -> Any:
    import cuda.bindings.driver as cuda
    import cutlass
    from cutlass import cute
    from cutlass.cute.runtime import make_ptr

    spec = importlib.util.spec_from_file_location(
        "tutorial", Path(os.environ.get("CUTLASS", "."), TUTORIAL)
    )
    assert spec is not None and spec.loader is not None
    tutorial = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(os.environ.get("CUTLASS", "."), "examples/python/CuTeDSL")))
    spec.loader.exec_module(tutorial)
    tutorial.mma_tiler_mn, tutorial.c_dtype = (128, 128), cutlass.Float32

    def pointer(kind: Any) -> Any:
        return make_ptr(kind, 32, cute.AddressSpace.gmem, assumed_align=32)

    e2m1, e4m3, f32 = cutlass.Float4E2M1FN, cutlass.Float8E4M3FN, cutlass.Float32
    operands = [pointer(kind) for kind in (e2m1, e2m1, e4m3, e4m3, f32)]
    kernel = tutorial.Sm100BlockScaledDenseGemmKernel()
    stream = cuda.CUstream(0)
    return cute.compile(kernel, *operands, (SIZE, SIZE, SIZE, 1), stream, options=OPTIONS)


if __name__ == "__main__":
    Path("kernel.ptx").write_text({"f16": f16, "nvfp4": nvfp4}[sys.argv[1]]().__ptx__)
