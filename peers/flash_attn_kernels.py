"""FlashAttention-4: `python flash_attn_kernels.py OUT` writes OUT/NAME.ptx and OUT/NAME.json.

The forward kernel of the package flash-attn-4 as shipped. CuTe DSL compiles it and its host code
launches on the recorder, in place of the DSL's runtime library.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

MULTIPROCESSORS = 4
#: Name: (batch, queries, keys, heads, key heads, head size, type, options of the kernel).
FORWARD: dict[str, tuple[int, int, int, int, int, int, str, dict[str, Any]]] = {
    "forward": (1, 256, 256, 1, 1, 128, "bfloat16", {}),
    "forward_causal": (1, 256, 256, 1, 1, 128, "bfloat16", {"is_causal": True}),
    "forward_d64_f16": (2, 128, 192, 1, 1, 64, "float16", {"q_stage": 1}),
    "forward_gqa": (1, 256, 128, 2, 1, 64, "bfloat16",
                    {"qhead_per_kvhead": 2, "pack_gqa": True, "q_stage": 1}),
    "forward_tail": (1, 200, 150, 1, 1, 64, "float16", {"is_static_persistent": False}),
}  # fmt: skip


class Hardware:
    """In place of CuTe DSL's query of the device."""

    def __init__(self, *_: Any) -> None: ...

    def get_device_multiprocessor_count(self) -> int:
        return MULTIPROCESSORS

    def get_max_active_clusters(self, size: int) -> int:
        return MULTIPROCESSORS // size


def forward(driver: Any, name: str, out: Path) -> None:
    import cuda.bindings.driver as cuda
    import cutlass
    import recording
    import torch
    from cutlass import cute
    from cutlass.cute.runtime import from_dlpack
    from flash_attn.cute.flash_fwd_sm100 import FlashAttentionForwardSm100

    batch, queries, keys, heads, key_heads, size, dtype, options = FORWARD[name]
    kind = getattr(torch, dtype)
    q, o = (torch.zeros(batch, queries, heads, size, dtype=kind) for _ in range(2))
    k, v = (torch.zeros(batch, keys, key_heads, size, dtype=kind) for _ in range(2))
    lse = torch.zeros(batch, heads, queries, dtype=torch.float32)
    tensors = [q, k, v, o, lse]
    args = [
        from_dlpack(t, assumed_align=4 if t is lse else 16).mark_layout_dynamic(t.ndim - 1)
        for t in tensors
    ]
    args.append(cutlass.Float32(size**-0.5))
    kernel = FlashAttentionForwardSm100(size, size, **({"qhead_per_kvhead": 1} | options))
    stream = cuda.CUstream(0)
    flags = "--gpu-arch sm_100a --keep-ptx"
    compiled = cute.compile(kernel, *args, stream=stream, options=flags)
    text = compiled.__ptx__
    recorder = recording.Recorder(driver, lambda _entry: text, MULTIPROCESSORS)
    for tensor in tensors:
        recorder.allocated(tensor.data_ptr(), tensor.numel() * tensor.element_size())
    compiled(*args, stream=stream)
    (launch,) = recorder.launches
    (out / f"{name}.ptx").write_text(text)
    (out / f"{name}.json").write_text(json.dumps(launch | {"forward": FORWARD[name]}))


def main(out: Path, names: list[str]) -> None:
    import recording

    with tempfile.TemporaryDirectory() as folder:
        library = recording.build(Path(folder))
        os.environ["CUTE_DSL_LIBS"] = str(library)
        os.environ["CUTE_DSL_ARCH"] = "sm_100a"
        driver = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        import cutlass
        from cutlass.cutlass_dsl import cuda_jit_executor

        cutlass.utils.HardwareInfo = Hardware
        cuda_jit_executor.CudaDialectJitCompiledFunction.num_devices = 1
        for name in names or FORWARD:
            try:
                forward(driver, name, out)
            except Exception as error:
                traceback.print_exc()
                (out / f"{name}.json").write_text(json.dumps({"error": f"{error!r}"[:300]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
