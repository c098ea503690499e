"""mamba-ssm: the Triton kernels of Mamba 2, against the package's own formulas in PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as fn
from mamba_ssm.ops.triton import ssd_bmm, ssd_chunk_scan, ssd_chunk_state, ssd_state_passing
from mamba_ssm.ops.triton.k_activations import SwiGLU
from mamba_ssm.ops.triton.layer_norm import layer_norm_fn, rms_norm_fn
from mamba_ssm.ops.triton.layernorm_gated import rmsnorm_fn
from mamba_ssm.ops.triton.selective_state_update import selective_state_update as update
from mamba_ssm.ops.triton.selective_state_update import selective_state_update_ref

from peers.calls import F16, Pair, both_ways, call, small, some

both_ways(
    "layer_norm",
    lambda x, w, b: layer_norm_fn(x, w, b, eps=1e-5),
    lambda x, w, b: fn.layer_norm(x, (256,), w, b),
    lambda: (some(4, 256), some(256), some(256)),
)
both_ways(
    "rms_norm",
    lambda x, w: rms_norm_fn(x, w, None, eps=1e-5),
    lambda x, w: fn.rms_norm(x, (256,), w, 1e-5),
    lambda: (some(4, 256, dtype=F16), some(256, dtype=F16)),
)
both_ways(
    "gated_rms_norm",
    lambda x, w, z: rmsnorm_fn(x, w, None, z, 1e-5, None, False),
    lambda x, w, z: fn.rms_norm(x * fn.silu(z), (256,), w, 1e-5),
    lambda: (some(4, 256), some(256), some(4, 256)),
)
both_ways(
    "swiglu",
    SwiGLU.apply,
    lambda x: fn.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1],
    lambda: (some(4, 512),),
)


@call
def selective_state_update() -> list[Pair]:
    state, x, dt, z = some(2, 64, 16), some(2, 64), torch.rand(2, 64), some(2, 64)
    a, b, c, d, bias = -torch.rand(64, 16), some(2, 16), some(2, 16), some(64), some(64)
    given = [t.double() for t in (state, x, dt, a, b, c, d, z, bias)]
    want = selective_state_update_ref(*given, dt_softplus=True)
    got = update(state, x, dt, a, b, c, d, z, bias, dt_softplus=True)
    return [(got, want), (state, given[0])]


def _decay() -> torch.Tensor:
    return -torch.rand(1, 2, 2, 64).cumsum(-1) / 16


@call
def chunk_cumsum() -> list[Pair]:
    dt, a = torch.rand(1, 128, 2), -torch.rand(2)
    got, step = ssd_chunk_state._chunk_cumsum_fwd(dt, a, 64)
    split = dt.double().reshape(1, 2, 64, 2).permute(0, 3, 1, 2)
    return [(step, split), (got, (split * a.double()[:, None, None]).cumsum(-1))]


@call
def chunk_state() -> list[Pair]:
    b, x, dt, decay = small(1, 128, 1, 64), small(1, 128, 2, 64), torch.rand(1, 2, 2, 64), _decay()
    want = ssd_chunk_state.chunk_state_ref(*(t.double() for t in (b, x, dt, decay)))
    return [(ssd_chunk_state._chunk_state_fwd(b, x, dt, decay), want, 60)]


@call
def chunk_product() -> list[Pair]:
    a, b = small(1, 128, 1, 64, dtype=F16), small(1, 128, 1, 64, dtype=F16)
    got = ssd_bmm._bmm_chunk_fwd(a, b, 64, output_dtype=torch.float32)
    left, right = (t.double().reshape(1, 2, 64, 1, 64).transpose(2, 3) for t in (a, b))
    return [(got, left @ right.mT)]


@call
def state_passing() -> list[Pair]:
    states, decay = some(1, 3, 2, 256), -torch.rand(1, 2, 3)
    got, last = ssd_state_passing._state_passing_fwd(states, decay)
    want = ssd_state_passing.state_passing_ref(states.double(), decay.double())
    return [(got, want[0]), (last, want[1])]


@call
def chunk_scan() -> list[Pair]:
    b, c, x = small(1, 128, 1, 64), small(1, 128, 1, 64), small(1, 128, 2, 64)
    dt, decay, states = torch.rand(1, 2, 2, 64), _decay(), small(1, 2, 2, 64, 64)
    want = ssd_chunk_scan.chunk_scan_ref(*(t.double() for t in (b, c, x, dt, decay, states)))
    product = ssd_bmm._bmm_chunk_fwd(c, b, 64)
    got, _ = ssd_chunk_scan._chunk_scan_fwd(product, x, dt, decay, c, states)
    return [(got, want, 60)]
