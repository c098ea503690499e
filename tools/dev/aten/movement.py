"""Cases of ops that move elements: shapes, views, padding, joins, gathers, scatters, and resized
images."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tcir.tools.dev.aten.case import Argument, Case, Function, Index, Mask, Shape

ROW: Shape = (3, 37)
ROWS = (ROW, ROW)
IMAGE: Shape = (2, 6, 9, 11)
CACHE: Shape = (2, 3, 9, 5)
CASES: dict[str, tuple[Function, tuple[Argument, ...]]] = {
    "transpose": (lambda x: x.transpose(0, 1) + 1, (ROW,)),
    "permute": (lambda x: x.permute(2, 0, 1) + 1, ((3, 5, 7),)),
    "view": (lambda x: x.reshape(37, 3) + 1, (ROW,)),
    "flatten": (lambda x: x.flatten(1) + 1, (IMAGE,)),
    "unflatten": (lambda x: x.unflatten(1, (2, 3)) + 1, (IMAGE,)),
    "squeeze": (lambda x: x.squeeze(1) + 1, ((3, 1, 7),)),
    "unsqueeze": (lambda x: x.unsqueeze(1) + 1, (ROW,)),
    "contiguous": (lambda x: x.t().contiguous() + 1, (ROW,)),
    "channels last": (lambda x: x.to(memory_format=torch.channels_last) + 1, (IMAGE,)),
    "expand": (lambda x: x.expand(5, 3, 37) + 1, (ROW,)),
    "expand alone": (lambda x: (x + 1).expand(5, 3, 37), (ROW,)),
    "broadcast_to": (lambda x: torch.broadcast_to(x, (4, 3, 37)) * 2, (ROW,)),
    "select": (lambda x: x[1] + 1, (ROW,)),
    "slice": (lambda x: x[:, 3:-2] + 1, (ROW,)),
    "slice of 2": (lambda x: x[:, 1::2] + 1, (ROW,)),
    "narrow": (lambda x: x.narrow(1, 5, 9) + 1, (ROW,)),
    "chunk": (lambda x: [part * 2 for part in x.chunk(2, -1)], (ROW,)),
    "split": (lambda x: [part * 2 for part in x.split([5, 30, 2], -1)], (ROW,)),
    "unbind": (lambda x: [part * 2 for part in x.unbind(0)], (ROW,)),
    "diagonal": (lambda x: x.diagonal() + 1, ((7, 9),)),
    "unfold": (lambda x: x.unfold(1, 5, 2) + 1, (ROW,)),
    "im2col": (lambda x: F.unfold(x, 3), (IMAGE,)),
    "cat": (lambda x, y: torch.cat([x, y], 1), (ROW, (3, 5))),
    "cat 0": (lambda x, y: torch.cat([x, y], 0), (ROW, (2, 37))),
    "stack": (lambda x, y: torch.stack([x, y], 1), ROWS),
    "repeat": (lambda x: x.repeat(2, 3), (ROW,)),
    "tile": (lambda x: torch.tile(x, (2, 1)), (ROW,)),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 0), (ROW,)),
    "roll": (lambda x: torch.roll(x, 3, -1), (ROW,)),
    "roll of two dims": (lambda x: torch.roll(x, (1, -3), (0, 1)), (ROW,)),
    "flip": (lambda x: x.flip(-1), (ROW,)),
    "rot90": (lambda x: torch.rot90(x), (ROW,)),
    "tril": (torch.tril, ((7, 9),)),
    "triu": (lambda x: torch.triu(x, 2), ((7, 9),)),
    "diag_embed": (torch.diag_embed, (ROW,)),
    "pad": (lambda x: F.pad(x, (1, 2, 3, 0), value=0.5), (IMAGE,)),
    "pad less": (lambda x: F.pad(x, (-1, 2)), (ROW,)),
    "pad reflect": (lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), (IMAGE,)),
    "pad replicate": (lambda x: F.pad(x, (1, 2, 2, 1), mode="replicate"), (IMAGE,)),
    "pad circular": (lambda x: F.pad(x, (1, 2, 2, 1), mode="circular"), (IMAGE,)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), ((1, 8, 3, 5),)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), ((1, 2, 6, 10),)),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 3), (IMAGE,)),
    "meshgrid": (lambda x, y: torch.meshgrid(x, y, indexing="ij"), ((5,), (7,))),
    "one_hot": (lambda i: F.one_hot(i, 11), (Index((3, 5), 11),)),
    "arange": (lambda x: x + torch.arange(37, dtype=x.dtype), (ROW,)),
    "upsample nearest": (lambda x: F.interpolate(x, scale_factor=2), (IMAGE,)),
    "upsample nearest to 13": (lambda x: F.interpolate(x, (13, 7)), (IMAGE,)),
    "upsample bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (IMAGE,)),
    "upsample bilinear corners": (
        lambda x: F.interpolate(x, (13, 7), mode="bilinear", align_corners=True), (IMAGE,)),
    "upsample bicubic": (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), (IMAGE,)),
    "grid_sample": (
        lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), (IMAGE, (2, 5, 7, 2))),
    "embedding": (F.embedding, (Index((3, 5), 11), (11, 7))),
    "embedding padding": (
        lambda i, w: F.embedding(i, w, padding_idx=0), (Index((3, 5), 11), (11, 7))),
    "embedding_bag": (lambda i, w: F.embedding_bag(i, w), (Index((3, 5), 11), (11, 7))),
    "gather": (lambda x, i: x.gather(1, i), (ROW, Index((3, 5), 37))),
    "gather 0": (lambda x, i: x.gather(0, i), (ROW, Index((2, 37), 3))),
    "take_along_dim": (lambda x, i: x.take_along_dim(i, 1), (ROW, Index((3, 5), 37))),
    "index_select": (lambda x, i: x.index_select(1, i), (ROW, Index((5,), 37))),
    "index_select 0": (lambda x, i: x.index_select(0, i), (ROW, Index((5,), 3))),
    "index": (lambda x, i: x[i], (ROW, Index((5,), 3))),
    "index of two dims": (lambda x, i, j: x[i, j], (ROW, Index((5,), 3), Index((5,), 37))),
    "index below 0": (lambda x, i: x[:, i - 37], (ROW, Index((5,), 37))),
    "index constant": (lambda x: x[:, [0, 2, 5]], (ROW,)),
    "index mask": (lambda x, m: x * m, (ROW, Mask(ROW))),
    "scatter": (lambda x, i, y: x.scatter(1, i, y), (ROW, Index((3, 1), 37), (3, 1))),
    "scatter number": (lambda x, i: x.scatter(1, i, 2.0), (ROW, Index((3, 5), 37))),
    "scatter_add": (lambda x, i, y: x.scatter_add(1, i, y), (ROW, Index((3, 5), 37), (3, 5))),
    "index_add": (lambda x, i, y: x.index_add(0, i, y), (ROW, Index((5,), 3), (5, 37))),
    "index_copy": (lambda x, i, y: x.index_copy(2, i, y), (CACHE, Index((1,), 9), (2, 3, 1, 5))),
    "index_put": (
        lambda x, i, y: x.index_put((i,), y), (ROW, Index((1,), 3), (1, 37))),
    "index_put add": (
        lambda x, i, y: x.index_put((i,), y, accumulate=True), (ROW, Index((5,), 3), (5, 37))),
    "index_fill": (lambda x, i: x.index_fill(1, i, 2.0), (ROW, Index((3,), 37))),
    "masked_scatter": (lambda x, m, y: x.masked_scatter(m, y), (ROW, Mask(ROW), ROW)),
    "select_scatter": (lambda x, y: x.select_scatter(y, 0, 1), (ROW, (37,))),
    "slice_scatter": (lambda x, y: x.slice_scatter(y, 1, 3, 8), (ROW, (3, 5))),
    "bucketize": (lambda x, b: torch.bucketize(x, b.sort().values), (ROW, (7,))),
}  # fmt: skip


def cases() -> list[Case]:
    """All cases that move elements."""
    return [Case(name, *call) for name, call in CASES.items()]
