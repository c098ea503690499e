"""Cases of those ops of torch-mlir's dialect that have no case in the other files."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tcir.tools.dev.aten.case import Argument, Case, Function, Index, Mask, Shape

ROW: Shape = (3, 37)
ROWS = (ROW, ROW)
IMAGE: Shape = (2, 6, 9, 11)
VOLUME: Shape = (1, 2, 5, 6, 7)
SQUARE: Shape = (5, 5)
BYTES = Index(ROW, 100)


def _scaled(x: torch.Tensor, y: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    left, right = (each.to(torch.float8_e4m3fn) for each in (x, y))
    one, other = (each.contiguous().float().abs() + 0.5 for each in (a, b))
    return torch._scaled_mm(left, right.t(), one, other, out_dtype=torch.bfloat16)


def _fake(x: torch.Tensor) -> torch.Tensor:
    return torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127)


def _fake_rows(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    zeros = torch.zeros(3, dtype=torch.int32)
    size = scale.float().abs() + 0.1
    return torch.fake_quantize_per_channel_affine(x, size, zeros, 0, -128, 127)


ELEMENTWISE: dict[str, tuple[Function, tuple[Argument, ...]]] = {
    "erfinv": (lambda x: torch.erfinv(x * 0.3), (ROW,)),
    "erfinv of tails": (lambda x: torch.erfinv(torch.tanh(x)), (ROW,)),
    "copysign number": (lambda x: torch.copysign(x, -0.0), (ROW,)),
    "heaviside": (torch.heaviside, ROWS),
    "ldexp": (lambda x, n: torch.ldexp(x, n - 3), (ROW, Index(ROW, 7))),
    "logaddexp2": (torch.logaddexp2, ROWS),
    "sgn": (torch.sgn, (ROW,)),
    "float_power": (lambda x: torch.float_power(x, 2).to(x.dtype), (ROW,)),
    "isclose": (torch.isclose, ROWS),
    "bitwise_xor": (torch.bitwise_xor, (Mask(ROW), Mask(ROW))),
    "type_as": (lambda x, y: x.type_as(y) * 2, (Index(ROW, 9), ROW)),
    "new_full": (lambda x: x + x.new_full((37,), 2), (ROW,)),
    "new_zeros": (lambda x: x + x.new_zeros(37), (ROW,)),
    "new_ones": (lambda x: x + x.new_ones(37), (ROW,)),
    "ones_like": (lambda x: x + torch.ones_like(x), (ROW,)),
    "fill": (lambda x: torch.fill(x, 2) + x, (ROW,)),
    "copy": (lambda x, y: x.clone().copy_(y) + x, ROWS),
    "rrelu": (lambda x: F.rrelu(x, training=False), (ROW,)),
    "poisson_nll_loss": (F.poisson_nll_loss, (ROW, ROW)),
}
PLAIN: dict[str, tuple[Function, tuple[Argument, ...]]] = {
    "bitwise_left_shift": (lambda n: n << 3, (BYTES,)),
    "bitwise_right_shift": (lambda n: (n - 50) >> 2, (BYTES,)),
    "bitwise_xor of integers": (lambda n: n ^ 21, (BYTES,)),
    "fake_quantize": (_fake, (ROW,)),
    "fake_quantize rows": (_fake_rows, (ROW, (3,))),
    "_int_mm": (
        lambda n, m: torch._int_mm((n - 50).to(torch.int8), (m - 50).to(torch.int8)),
        (Index((24, 40), 100), Index((40, 32), 100)),
    ),
    "_scaled_mm": (_scaled, ((16, 64), (32, 64), (), ())),
    "_scaled_mm rows": (_scaled, ((16, 64), (32, 64), (16, 1), (1, 32))),
    "scaled_dot_product_attention of masked rows": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m & (m.cumsum(-1) < 0)),
        (*((1, 2, 8, 16),) * 3, Mask((8, 8))),
    ),
    "weight_norm": (lambda v, g: torch._weight_norm(v, g, 0) + 1, ((5, 7), (5, 1))),
    "conv_tbc": (torch.conv_tbc, ((9, 2, 8), (3, 8, 16), (16,))),
    "adaptive_avg_pool3d": (lambda x: F.adaptive_avg_pool3d(x, 2), (VOLUME,)),
    "adaptive_max_pool3d": (lambda x: F.adaptive_max_pool3d(x, 2), (VOLUME,)),
    "max_unpool2d": (
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), ((2, 3, 8, 10),)),
    "frobenius_norm": (lambda x: torch.linalg.norm(x), (ROW,)),
    "matrix_norm": (lambda x: torch.linalg.matrix_norm(x), (ROW,)),
    "linalg_det": (torch.linalg.det, (SQUARE,)),
    "linalg_slogdet": (torch.linalg.slogdet, (SQUARE,)),
    "nll_loss2d": (
        lambda x, n: F.nll_loss(x.log_softmax(1), n), (IMAGE, Index((2, 9, 11), 6))),
    "renorm": (lambda x: torch.renorm(x, 2, 0, 1.0), (ROW,)),
    "kthvalue": (lambda x: torch.kthvalue(x, 5, -1).values, (ROW,)),
    "cummin": (lambda x: x.cummin(-1), (ROW,)),
    "copysign of integers": (lambda x, n: torch.copysign(x, n - 50), (ROW, BYTES)),
    "signbit of integers": (lambda n: torch.signbit(n - 50), (BYTES,)),
    "scatter_reduce amax": (
        lambda x, i, y: x.scatter_reduce(1, i, y, "amax"), (ROW, Index((3, 5), 37), (3, 5))),
    "scatter_reduce mean": (
        lambda x, i, y: x.scatter_reduce(1, i, y, "mean"), (ROW, Index((3, 5), 37), (3, 5))),
    "scatter_reduce amin alone": (
        lambda x, i, y: x.scatter_reduce(1, i, y, "amin", include_self=False),
        (ROW, Index((3, 40), 37), (3, 40))),
    "scatter_reduce sum alone": (
        lambda x, i, y: x.scatter_reduce(1, i, y, "sum", include_self=False),
        (ROW, Index((3, 9), 37), (3, 40))),
    "scatter_reduce prod": (
        lambda x, i, y: x.scatter_reduce(1, i, y, "prod"), (ROW, Index((3, 40), 37), (3, 40))),
    "scatter_reduce mean alone": (
        lambda x, i, y: x.scatter_reduce(0, i, y, "mean", include_self=False),
        (SQUARE, Index((9, 5), 5), (9, 5))),
    "scatter_reduce of NaN": (
        lambda x, i, y: x.scatter_reduce(1, i, torch.where(y > 1, torch.nan, y), "amax"),
        (ROW, Index((3, 40), 37), (3, 40))),
    "bincount": (lambda n: torch.bincount(n, minlength=100), (Index((37,), 100),)),
    "histc": (lambda n: torch.histc(n.float(), 9, 1, 13), (Index((5, 37), 17),)),
    "nonzero_static": (lambda x: torch.nonzero_static(x > 0, size=9), (ROW,)),
    "nonzero_static of few": (lambda x: torch.nonzero_static(x > 1.5, size=40), (SQUARE,)),
    "masked_scatter of rows": (
        lambda x, m, y: x.masked_scatter(m, y), (ROW, Mask((37,)), (3, 50))),
    "masked_select": (lambda x, m: x.masked_select(m), (ROW, Mask(ROW))),
    "as_strided": (lambda x: x.contiguous().as_strided((3, 5), (7, 2)) + 1, (ROW,)),
    "as_strided_scatter": (
        lambda x, y: x.contiguous().as_strided_scatter(y, (3, 5), (7, 1)), (ROW, (3, 5))),
    "diagonal_scatter": (torch.diagonal_scatter, (SQUARE, (5,))),
    "diagonal_scatter below": (
        lambda x, y: torch.diagonal_scatter(x, y, -2, 0, 2), ((7, 3, 4), (3, 4))),
    "diagonal_scatter above": (
        lambda x, y: torch.diagonal_scatter(x, y, 30, 0, 1), (ROW, (3,))),
    "col2im": (lambda x: F.fold(x, (8, 10), 2, stride=2), ((2, 12, 20),)),
    "col2im of windows that overlap": (
        lambda x: F.fold(x, (7, 9), 3, dilation=(1, 2), padding=(1, 0)), ((2, 18, 35),)),
    "unfold copy": (lambda x: x.unfold(1, 5, 3) + 1, (ROW,)),
    "column_stack": (lambda x, y: torch.column_stack((x, y)), ROWS),
    "hstack": (lambda x, y: torch.hstack((x, y)), ROWS),
    "atleast_2d": (lambda x: torch.atleast_2d(x) + 1, ((37,),)),
    "fliplr": (torch.fliplr, (ROW,)),
    "flipud": (torch.flipud, (ROW,)),
    "movedim": (lambda x: x.movedim(0, 2) + 1, ((3, 5, 7),)),
    "tensor_split": (lambda x: [each + 1 for each in x.tensor_split(3, 1)], (ROW,)),
    "diag": (lambda x: torch.diag(x) + 1, ((7,),)),
    "eye": (lambda x: x + torch.eye(5, dtype=x.dtype), (SQUARE,)),
    "linspace": (lambda x: x + torch.linspace(0, 1, 37, dtype=x.dtype), (ROW,)),
    "tril_indices": (lambda x: x[tuple(torch.tril_indices(5, 5))], (SQUARE,)),
    "triu_indices": (lambda x: x[tuple(torch.triu_indices(3, 37, 20))], (ROW,)),
    "hann_window": (lambda x: x * torch.hann_window(37, dtype=x.dtype), (ROW,)),
    "reflection_pad1d": (lambda x: F.pad(x, (2, 3), "reflect"), ((2, 3, 11),)),
    "reflection_pad3d": (lambda x: F.pad(x, (1, 2, 1, 1, 2, 1), "reflect"), (VOLUME,)),
    "replication_pad1d": (lambda x: F.pad(x, (2, 3), "replicate"), ((2, 3, 11),)),
    "replication_pad3d": (lambda x: F.pad(x, (1, 2, 1, 1, 2, 1), "replicate"), (VOLUME,)),
    "upsample_nearest1d": (lambda x: F.interpolate(x, scale_factor=2.0), ((2, 3, 11),)),
    "view_as_real": (lambda x, y: torch.view_as_real(torch.complex(x, y)), ROWS),
    "fft_rfft": (lambda x: torch.fft.rfft(x).abs(), (ROW,)),
    "stft": (
        lambda x: torch.stft(x, 8, window=torch.ones(8, dtype=x.dtype), return_complex=True).abs(),
        ((2, 37),),
    ),
}  # fmt: skip
MULTIPLIED = ("_int_mm", "_scaled_mm", "_scaled_mm rows", "conv_tbc",
              "scaled_dot_product_attention of masked rows")  # fmt: skip


def cases() -> list[Case]:
    """All cases of ops that are in no other file."""
    made = [Case(name, *call, elementwise=True) for name, call in ELEMENTWISE.items()]
    plain = [Case(name, *call, multiplied=name in MULTIPLIED) for name, call in PLAIN.items()]
    return [*made, *plain]
