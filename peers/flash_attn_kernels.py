"""FlashAttention-4: `python flash_attn_kernels.py OUT` writes OUT/NAME.ptx and OUT/NAME.json.

The forward kernel of the package flash-attn-4 as shipped. CuTe DSL compiles it and its host code
launches on the recorder, in place of the DSL's runtime library.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

DTYPES = {"float16": "Float16", "bfloat16": "BFloat16"}
#: Name: (batch, queries, keys, heads, key heads, head size, type, options of the kernel).
FORWARD: dict[str, tuple[int, int, int, int, int, int, str, dict[str, Any]]] = {
    "forward": (1, 256, 256, 1, 1, 128, "bfloat16", {}),
    "forward_causal": (1, 256, 256, 1, 1, 128, "bfloat16", {"is_causal": True}),
    "forward_d64_f16": (2, 128, 192, 1, 1, 64, "float16", {"q_stage": 1}),
    "forward_gqa": (1, 256, 128, 2, 1, 64, "bfloat16",
                    {"qhead_per_kvhead": 2, "pack_gqa": True, "q_stage": 1}),
    "forward_tail": (1, 200, 150, 1, 1, 64, "float16", {"is_static_persistent": False}),
    "forward_d96": (1, 256, 128, 1, 1, 96, "bfloat16", {}),
    "forward_d32_f16": (1, 256, 256, 1, 1, 32, "float16", {}),
    "forward_heads": (2, 256, 128, 2, 2, 64, "bfloat16", {}),
    "forward_causal_f16": (1, 256, 384, 1, 1, 64, "float16", {"is_causal": True}),
    "forward_causal_gqa": (1, 128, 256, 4, 1, 64, "bfloat16",
                           {"qhead_per_kvhead": 4, "pack_gqa": True, "is_causal": True,
                            "q_stage": 2}),
    "forward_ping_pong": (1, 128, 384, 1, 1, 128, "bfloat16",
                          {"q_stage": 1, "use_s_ping_pong": True}),
    "forward_clc": (1, 256, 256, 2, 2, 64, "float16", {"use_clc_scheduler": True, "q_stage": 1}),
    "forward_pair": (1, 512, 256, 1, 1, 128, "bfloat16", {"use_2cta_instrs": True}),
}  # fmt: skip


def forward(driver: Any, name: str) -> tuple[str, Any]:
    import cute_recording
    import cutlass
    import torch
    from cutlass.cute.runtime import from_dlpack

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
    if os.environ["CUTE_DSL_ARCH"] == "sm_90a":
        kernel = hopper(getattr(cutlass, DTYPES[dtype]), size, **options)
    else:
        from flash_attn.cute.flash_fwd_sm100 import FlashAttentionForwardSm100

        kernel = FlashAttentionForwardSm100(size, size, **({"qhead_per_kvhead": 1} | options))
    text, record = cute_recording.launch(driver, kernel, args, tensors)
    return text, record | {"forward": FORWARD[name]}


def hopper(dtype: Any, size: int, is_causal: bool = False) -> Any:
    """The kernel for sm_90a, with the tiles that the library chooses."""
    from flash_attn.cute.flash_fwd_sm90 import FlashAttentionForwardSm90
    from flash_attn.cute.interface import _tile_size_fwd_sm90

    tile = _tile_size_fwd_sm90(size, size, is_causal, is_local=False)
    return FlashAttentionForwardSm90(
        dtype,
        size,
        size,
        is_causal=is_causal,
        pack_gqa=False,
        tile_m=tile.m_block_size,
        tile_n=tile.n_block_size,
        num_stages=2,
        num_threads=128 * (tile.m_block_size // 64 + 1),
        mma_pv_is_rs=tile.mma_pv_is_rs,
        intra_wg_overlap=tile.intra_wg_overlap,
    )


if __name__ == "__main__":
    import cute_recording

    cute_recording.record(sys.argv[2:] or FORWARD, forward, Path(sys.argv[1]))
