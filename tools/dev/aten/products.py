"""Cases of matrix products, convolutions, attention and recurrences."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tcir.tools.dev.aten.case import Argument, Case, Function

IMAGE = (2, 8, 9, 11)
HEADS = ((1, 2, 24, 16),) * 3


def _experts(
    x: torch.Tensor, router: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor
) -> torch.Tensor:
    """A mixture of experts with two experts per token, whose weights are gathered."""
    chances = F.softmax(F.linear(x, router), -1, dtype=torch.promote_types(x.dtype, torch.float32))
    share, chosen = torch.topk(chances, 2)
    share = (share / share.sum(-1, keepdim=True)).to(x.dtype).reshape(-1)
    chosen, tokens = chosen.reshape(-1), x.repeat_interleave(2, 0)
    gate, up = torch.bmm(gate_up[chosen], tokens.unsqueeze(-1)).squeeze(-1).chunk(2, -1)
    made = torch.bmm(down[chosen], (F.silu(gate) * up).unsqueeze(-1)).squeeze(-1)
    return (made * share.unsqueeze(-1)).view(x.shape[0], 2, -1).sum(1)


CASES: dict[str, tuple[Function, tuple[Argument, ...]]] = {
    "linear": (F.linear, ((5, 72), (40, 72), (40,))),
    "linear without bias": (F.linear, ((5, 72), (40, 72))),
    "linear odd": (F.linear, ((5, 71), (33, 71), (33,))),
    "linear of 3 dims": (F.linear, ((2, 3, 72), (40, 72), (40,))),
    "bilinear": (F.bilinear, ((5, 7), (5, 9), (3, 7, 9))),
    "mm": (torch.mm, ((33, 71), (71, 29))),
    "bmm": (torch.bmm, ((3, 17, 71), (3, 71, 29))),
    "matmul": (torch.matmul, ((2, 3, 17, 40), (2, 3, 40, 24))),
    "matmul broadcast": (torch.matmul, ((2, 3, 17, 40), (40, 24))),
    "mv": (torch.mv, ((33, 71), (71,))),
    "dot": (torch.dot, ((71,), (71,))),
    "outer": (torch.outer, ((31,), (41,))),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), (
        (29,), (33, 71), (71, 29))),
    "baddbmm": (torch.baddbmm, ((3, 17, 29), (3, 17, 71), (3, 71, 29))),
    "addmv": (torch.addmv, ((33,), (33, 71), (71,))),
    "addbmm": (torch.addbmm, ((17, 29), (3, 17, 71), (3, 71, 29))),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->bik", x, y), ((4, 5, 70), (4, 30, 70))),
    "einsum of heads": (
        lambda x, y: torch.einsum("bqhd,bkhd->bhqk", x, y), ((1, 9, 2, 16), (1, 12, 2, 16))),
    "tensordot": (lambda x, y: torch.tensordot(x, y, 2), ((5, 6, 7), (6, 7, 9))),
    "chain_matmul": (lambda x, y, z: x @ y @ z, ((9, 17), (17, 31), (31, 8))),
    "products summed": (lambda x, y: (x * y).sum(-1), ((2, 900), (2, 900))),
    "kron": (torch.kron, ((3, 4), (5, 2))),
    "cross": (lambda x, y: torch.linalg.cross(x, y), ((7, 3), (7, 3))),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=1), ((2, 8, 19), (8, 8, 3))),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1), (IMAGE, (16, 8, 3, 3), (16,))),
    "conv2d 1 x 1": (F.conv2d, (IMAGE, (16, 8, 1, 1), (16,))),
    "conv2d stride": (lambda x, w: F.conv2d(x, w, stride=2, padding=1), (IMAGE, (16, 8, 3, 3))),
    "conv2d of 3 channels": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=1), ((1, 3, 11, 13), (16, 3, 3, 3))),
    "conv2d patches": (lambda x, w: F.conv2d(x, w, stride=4), ((1, 3, 12, 12), (16, 3, 4, 4))),
    "conv2d asymmetric": (
        lambda x, w: F.conv2d(F.pad(x, (0, 1, 0, 1)), w, stride=2), (IMAGE, (16, 8, 3, 3))),
    "conv2d same": (lambda x, w: F.conv2d(x, w, padding="same"), (IMAGE, (16, 8, 2, 2))),
    "conv2d dilated": (lambda x, w: F.conv2d(x, w, dilation=2), (IMAGE, (16, 8, 3, 3))),
    "conv2d grouped": (lambda x, w: F.conv2d(x, w, groups=2), (IMAGE, (16, 4, 3, 3))),
    "conv2d depthwise": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=8), (IMAGE, (8, 1, 3, 3))),
    "conv3d": (F.conv3d, ((1, 2, 5, 6, 7), (4, 2, 2, 2, 2))),
    "conv2d patches of a larger step": (
        lambda x, w: F.conv2d(x, w, stride=5), ((1, 3, 13, 14), (16, 3, 4, 3))),
    "conv1d patches": (lambda x, w: F.conv1d(x, w, stride=4), ((2, 3, 24), (16, 3, 4))),
    "conv2d dilated, asymmetric": (
        lambda x, w: F.conv2d(F.pad(x, (2, 0, 1, 3)), w, dilation=(1, 2)),
        (IMAGE, (16, 8, 3, 2))),
    "conv2d dilated, stride": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=2, dilation=2), (IMAGE, (16, 8, 3, 3))),
    "conv_transpose1d": (
        lambda x, w: F.conv_transpose1d(x, w, stride=2), ((2, 8, 9), (8, 4, 3))),
    "conv_transpose1d even": (
        lambda x, w: F.conv_transpose1d(x, w, stride=3, padding=1), ((2, 8, 9), (8, 4, 6))),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), (IMAGE, (8, 4, 2, 2))),
    "conv_transpose2d stride 1": (
        lambda x, w: F.conv_transpose2d(x, w, padding=1), (IMAGE, (8, 4, 3, 3))),
    "conv_transpose2d padding": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1), (IMAGE, (8, 4, 3, 3), (4,))),
    "conv_transpose2d even padding": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1), (IMAGE, (8, 4, 4, 4), (4,))),
    "conv_transpose2d two strides": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, (1, 3), (0, 2), (0, 1)),
        (IMAGE, (8, 4, 2, 6), (4,))),
    "conv_transpose2d larger step": (
        lambda x, w: F.conv_transpose2d(x, w, stride=3), (IMAGE, (8, 4, 2, 2))),
    "conv_transpose2d grouped": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, groups=2), (IMAGE, (8, 4, 2, 2), (8,))),
    "conv_transpose2d grouped, padding": (
        lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1, groups=2), (IMAGE, (8, 4, 3, 3))),
    "conv_transpose2d depthwise": (
        lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, groups=8), (IMAGE, (8, 1, 4, 4))),
    "conv_transpose2d dilated": (
        lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, dilation=2), (IMAGE, (8, 4, 3, 3))),
    "conv_transpose3d": (
        lambda x, w: F.conv_transpose3d(x, w, stride=2), ((1, 4, 3, 4, 2), (4, 2, 2, 2, 2))),
    "attention": (F.scaled_dot_product_attention, HEADS),
    "attention causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), HEADS),
    "attention bias": (
        lambda q, k, v, b: F.scaled_dot_product_attention(q, k, v, b), (*HEADS, (24, 24))),
    "attention grouped": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        ((1, 4, 12, 16), (1, 2, 12, 16), (1, 2, 12, 16))),
    "gru_cell": (
        lambda x, h, a, b: torch.gru_cell(x, h, a, b), ((2, 8), (2, 16), (48, 8), (48, 16))),
    "lstm_cell": (
        lambda x, h, c, a, b: torch.lstm_cell(x, (h, c), a, b),
        ((2, 8), (2, 16), (2, 16), (64, 8), (64, 16))),
    "gru": (
        lambda x, h, *w: torch.gru(x, h, w, True, 1, 0.0, False, False, True),
        ((2, 3, 8), (1, 2, 16), (48, 8), (48, 16), (48,), (48,))),
    "lstm of two directions": (
        lambda x, h, c, *w: torch.lstm(x, (h, c), w, False, 1, 0.0, False, True, False),
        ((2, 2, 8), (2, 2, 16), (2, 2, 16), *((64, 8), (64, 16)) * 2)),
    "rnn": (
        lambda x, h, *w: torch.rnn_tanh(
            x, h, [each * 0.25 for each in w], True, 1, 0.0, False, False, False),
        ((3, 2, 8), (1, 2, 16), (16, 8), (16, 16), (16,), (16,))),
    "gru long": (
        lambda x, h, *w: torch.gru(x, h, w, False, 1, 0.0, False, False, True),
        ((1, 65, 8), (1, 1, 8), (24, 8), (24, 8))),
    "experts of each token": (_experts, ((6, 16), (4, 16), (4, 48, 16), (4, 16, 24))),
}  # fmt: skip


def cases() -> list[Case]:
    """All cases of this file; their f32 factors are multiplied as tf32."""
    return [Case(name, *call, multiplied=True) for name, call in CASES.items()]
