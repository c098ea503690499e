"""Cases of reductions, norms, softmax, normalisation, losses, pools, scans and sorts."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F

from tcir.tools.dev.aten.case import Argument, Case, Function, Index, Mask, Shape

ROW: Shape = (3, 37)
ROWS = (ROW, ROW)
LONG: Shape = (2, 1025)
IMAGE: Shape = (2, 6, 9, 11)


def _wide(x: torch.Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


REDUCTIONS = [
    "sum",
    "mean",
    "amax",
    "amin",
    "var",
    "std",
    "any",
    "all",
    "argmax",
    "argmin",
    "count_nonzero",
]
WHOLE = [
    "sum",
    "mean",
    "amax",
    "amin",
    "max",
    "min",
    "var",
    "std",
    "any",
    "all",
    "argmax",
    "argmin",
    "norm",
    "median",
]
LOSSES = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"]
MORE: dict[str, tuple[Function, tuple[Argument, ...]]] = {
    "sum long": (lambda x: x.abs().sum(-1), (LONG,)),
    "sum of two dims": (lambda x: x.sum((0, 2)), ((3, 7, 11),)),
    "sum to f32": (lambda x: x.sum(-1, dtype=_wide(x)), (ROW,)),
    "sum of a mask": (lambda m: m.sum(-1), (Mask(ROW),)),
    "mean of an image": (lambda x: x.mean((2, 3)), ((1, 2, 33, 31),)),
    "nansum": (lambda x: torch.nansum(x, -1), (ROW,)),
    "var biased": (lambda x: x.var(-1, correction=0), (ROW,)),
    "var far from 0": (lambda x: (x + 30).var(-1), (ROW,)),
    "var_mean": (lambda x: torch.var_mean(x, -1), (ROW,)),
    "std_mean": (lambda x: torch.std_mean(x, -1), (ROW,)),
    "max dim": (lambda x: torch.max(x, -1), (ROW,)),
    "min dim": (lambda x: torch.min(x, 0), (ROW,)),
    "aminmax": (lambda x: torch.aminmax(x, dim=-1), (ROW,)),
    "median": (lambda x: torch.median(x, -1)[0], (ROW,)),
    "median keepdim": (lambda x: torch.median(x, 0, keepdim=True)[0], ((8, 5),)),
    "logsumexp": (lambda x: x.logsumexp(-1), (ROW,)),
    "logsumexp keepdim": (lambda x: x.logsumexp(0, keepdim=True), (ROW,)),
    "prod dim": (lambda x: x.prod(-1), ((7, 5),)),
    "prod keepdim": (lambda x: x.prod(0, keepdim=True), ((5, 7),)),
    "prod of all": (torch.prod, ((3, 3),)),
    "norm": (lambda x: x.norm(dim=-1), (LONG,)),
    "norm 1": (lambda x: x.norm(p=1, dim=-1), (ROW,)),
    "norm 3": (lambda x: x.norm(p=3, dim=-1), (ROW,)),
    "norm inf": (lambda x: torch.linalg.vector_norm(x, float("inf"), dim=-1), (ROW,)),
    "norm 0": (lambda x: torch.linalg.vector_norm(x, 0, dim=-1), (ROW,)),
    "frobenius": (torch.linalg.matrix_norm, ((2, 7, 9),)),
    "normalize": (lambda x: F.normalize(x, dim=-1), (LONG,)),
    "normalize 1": (lambda x: F.normalize(x, p=1.0, dim=0), (ROW,)),
    "cosine_similarity": (lambda x, y: F.cosine_similarity(x, y, -1), (LONG, LONG)),
    "pairwise_distance": (F.pairwise_distance, ROWS),
    "cdist": (torch.cdist, ((5, 7), (6, 7))),
    "trace": (torch.trace, ((9, 9),)),
    "softmax": (lambda x: x.softmax(-1), (ROW,)),
    "softmax 0": (lambda x: x.softmax(0), (ROW,)),
    "softmax to f32": (lambda x: x.softmax(-1, dtype=_wide(x)), (ROW,)),
    "softmax masked": (
        lambda x, m: x.masked_fill(m, -torch.inf).softmax(-1), (ROW, Mask(ROW))),
    "log_softmax": (lambda x: x.log_softmax(-1), (ROW,)),
    "softmin": (lambda x: F.softmin(x, -1), (ROW,)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (37,), w, b), (ROW, (37,), (37,))),
    "layer_norm long": (lambda x: F.layer_norm(x + 3, (1025,)), (LONG,)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (1025,), w), (LONG, (1025,))),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (IMAGE, (6,), (6,))),
    "instance_norm": (F.instance_norm, (IMAGE,)),
    "batch_norm": (
        lambda x, m, v, w, b: F.batch_norm(x, m, v.abs() + 0.5, w, b), (IMAGE, *((6,),) * 4)),
    "local_response_norm": (lambda x: F.local_response_norm(x, 3), (IMAGE,)),
    "mse_loss each": (lambda x, y: F.mse_loss(x, y, reduction="none"), ROWS),
    "kl_div": (lambda x, y: F.kl_div(x, y.sigmoid(), reduction="batchmean"),
               ROWS),
    "binary_cross_entropy": (lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), ROWS),
    "binary_cross_entropy_with_logits": (
        lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), ROWS),
    "cross_entropy": (F.cross_entropy, (ROW, Index((3,), 37))),
    "cross_entropy soft": (lambda x, y: F.cross_entropy(x, y.softmax(-1)), ROWS),
    "nll_loss": (lambda x, y: F.nll_loss(x.log_softmax(-1), y), (ROW, Index((3,), 37))),
    "cosine_embedding_loss": (
        lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(3, dtype=x.dtype)), ROWS),
    "cumsum": (lambda x: x.cumsum(-1), (ROW,)),
    "cumsum 0": (lambda x: x.cumsum(0), ((5, 7),)),
    "cumsum long": (lambda x: x.cumsum(-1), (LONG,)),
    "cumprod": (lambda x: x.cumprod(-1), (ROW,)),
    "cumprod 0": (lambda x: x.cumprod(0), ((9, 5),)),
    "cummax": (lambda x: x.cummax(-1), (ROW,)),
    "logcumsumexp": (lambda x: x.logcumsumexp(-1), (ROW,)),
    "sort": (lambda x: x.sort(dim=-1, stable=True), (ROW,)),
    "argsort": (lambda x: x.argsort(dim=-1, stable=True), (ROW,)),
    "topk": (lambda x: x.topk(5, -1).values, (ROW,)),
    "topk indices": (lambda x: x.topk(1, 0).indices, ((7, 5),)),
    "topk smallest": (lambda x: x.topk(5, -1, largest=False).values, (ROW,)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3), ((2, 4, 29),)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), (IMAGE,)),
    "avg_pool2d padding not counted": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (IMAGE,)),
    "avg_pool2d ceil": (lambda x: F.avg_pool2d(x, 4, 3, ceil_mode=True), (IMAGE,)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), ((1, 2, 5, 6, 7),)),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3), ((2, 4, 29),)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), (IMAGE,)),
    "max_pool2d ceil": (lambda x: F.max_pool2d(x, 4, 3, ceil_mode=True), (IMAGE,)),
    "max_pool2d dilation": (lambda x: F.max_pool2d(x, 3, 1, 0, 2), (IMAGE,)),
    "max_pool2d indices": (lambda x: F.max_pool2d(x, 3, 2, return_indices=True), (IMAGE,)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), ((1, 2, 5, 6, 7),)),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 2, 3), (IMAGE,)),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 4), ((2, 4, 29),)),
    "adaptive_avg_pool2d 1": (lambda x: F.adaptive_avg_pool2d(x, 1), ((1, 2, 33, 31),)),
    "adaptive_avg_pool2d 3": (lambda x: F.adaptive_avg_pool2d(x, 3), (IMAGE,)),
    "adaptive_avg_pool2d 4 of 11": (lambda x: F.adaptive_avg_pool2d(x, 4), (IMAGE,)),
    "adaptive_max_pool1d": (lambda x: F.adaptive_max_pool1d(x, 4), ((2, 4, 29),)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 3), (IMAGE,)),
    "adaptive_max_pool2d 1": (lambda x: F.adaptive_max_pool2d(x, 1), (IMAGE,)),
    "adaptive_max_pool2d indices": (
        lambda x: F.adaptive_max_pool2d(x, (3, 4), return_indices=True), (IMAGE,)),
}  # fmt: skip


def _dim(name: str, x: torch.Tensor) -> object:
    return getattr(torch, name)(x, -1)


def _keepdim(name: str, x: torch.Tensor) -> object:
    return getattr(torch, name)(x, 0, keepdim=True)


def cases() -> list[Case]:
    """All cases of reductions."""
    made = []
    for name in REDUCTIONS:
        made.append(Case(f"{name} dim", partial(_dim, name), (ROW,)))
        if name != "count_nonzero":
            made.append(Case(f"{name} keepdim", partial(_keepdim, name), (ROW,)))
    made += [Case(f"{name} of all", getattr(torch, name), (ROW,)) for name in WHOLE]
    made += [Case(name, getattr(F, name), ROWS) for name in LOSSES]
    return [*made, *(Case(name, *call) for name, call in MORE.items())]
