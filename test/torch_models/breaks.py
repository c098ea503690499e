"""Mistakes in the door, one at a time, as data: what is broken, on what it is tried, and what says
so. Read by `test_breaks.py`.

Of what is imported, the report's first line ("PyTorch → linalg") has to be `different`; of how a
module is called, a comparison with the module itself. `CHECKS` has those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
PLACES, SUMS, CHOICES = "tcir.torch.places", "tcir.torch.sums", "tcir.torch.choices"
DECOMPOSITIONS, LOSSES = "tcir.torch.decompositions", "tcir.torch.losses"


@dataclass(frozen=True)
class Break:
    """A mistake: `old` at `place` (see `edited.edit`) becomes `new`.

    tried: a function of tensors like `inputs`, or the name of a check in `CHECKS`
    quick: tried by the quick tests, too
    """

    what: str
    place: str
    old: str
    new: str
    tried: Callable[..., Any] | str
    inputs: tuple[torch.Tensor, ...] = ()
    quick: bool = False


def _numbers(*shape: int, kind: torch.dtype = F32) -> torch.Tensor:
    return torch.zeros(shape, dtype=kind)  # the check draws its own


def _whole(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int64)


LONG, SHORT, PAIR = (_numbers(2, 300),), (_numbers(3, 8),), (_numbers(3, 8), _numbers(3, 8))
NARROW, BRAIN = (_numbers(2, 300, kind=F16),), (_numbers(2, 300, kind=BF16),)
ROWS = (_numbers(4, 3), _whole(2), _numbers(2, 3))

IMPORTED = [
    # accumulation types
    Break("sums of f16 are of f16", f"{DECOMPOSITIONS}:_is_narrow", "value.dtype in NARROW",
          "value.dtype is torch.bfloat16", lambda x: x.sum(-1), NARROW, quick=True),
    Break("means of bf16 are of bf16", f"{DECOMPOSITIONS}:_is_narrow", "value.dtype in NARROW",
          "value.dtype is torch.float16", lambda x: x.mean(-1), BRAIN),
    Break("the partial sums of long sums of f32 are f32", f"{SUMS}:_is_long",
          "_count(x, dim) >= LONG", "_count(x, dim) < 0", lambda x: x.sum(), (_numbers(16384),)),
    # types
    Break("a sum of f16 is left in f32", f"{DECOMPOSITIONS}:_cast", "value.to(dtype)", "value",
          lambda x: x.sum(-1), NARROW, quick=True),
    Break("a mean of f32 is f64", f"{SUMS}:mean", ".to(x.dtype)", ".to(torch.float64)",
          lambda x: x.mean(-1), LONG),
    Break("a loss of f16 is left in f32", f"{LOSSES}:_reduced",
          "(each.mean() if reduction == MEAN else each.sum()).to(kind)",
          "each.mean() if reduction == MEAN else each.sum()",
          lambda x, y: F.huber_loss(x, y), tuple(x.half() for x in PAIR)),
    # wrong decompositions
    Break("a mean is divided by one less", f"{SUMS}:mean", "/ _count(x, dim)",
          "/ (_count(x, dim) - 1)", lambda x: x.mean(-1), LONG, quick=True),
    Break("a variance is divided by the count", f"{SUMS}:_var",
          "1 if correction is None else correction", "0", lambda x: x.var(-1), LONG),
    Break("a norm has no root", f"{SUMS}:vector_norm", ".sqrt()", "", lambda x: x.norm(dim=-1),
          LONG),
    Break("a layer norm has no eps", f"{SUMS}:_layer_norm", "variance + eps", "variance",
          lambda x: F.layer_norm(x, (300,), eps=1e-2), LONG),
    Break("a layer norm has no bias", f"{SUMS}:_layer_norm", "result + bias", "result",
          lambda x, b: F.layer_norm(x, (300,), None, b), (*LONG, _numbers(300))),
    Break("a layer norm has no weight", f"{SUMS}:_layer_norm", "result * weight", "result",
          lambda x, w: F.layer_norm(x, (300,), w), (*LONG, _numbers(300))),
    Break("a similarity is not divided by the second size", f"{SUMS}:_cosine_similarity",
          "(sizes[0] * sizes[1])", "sizes[0]", lambda x, y: F.cosine_similarity(x, y),
          (*LONG, *LONG)),
    Break("gelu has another constant", f"{DECOMPOSITIONS}:_gelu", "0.044715", "0.0447",
          lambda x: F.gelu(x, approximate="tanh"), SHORT, quick=True),
    Break("logsumexp does not add the maximum again", f"{DECOMPOSITIONS}:_logsumexp",
          ".log() + top", ".log()", lambda x: x.logsumexp(-1), SHORT),
    Break("an instance norm has the variance of a sample", f"{DECOMPOSITIONS}:_instance_norm",
          "correction=0", "correction=1", lambda x: F.instance_norm(x), (_numbers(1, 2, 8),)),
    Break("an instance norm does not subtract the mean", f"{DECOMPOSITIONS}:_instance_norm",
          "(a - mean)", "a", lambda x: F.instance_norm(x), (_numbers(1, 2, 8),)),
    Break("hardswish is divided by 5", f"{CHOICES}:_hardswish", "/ 6", "/ 5",
          lambda x: F.hardswish(x), SHORT),
    Break("hardsigmoid adds 2", f"{CHOICES}:_hardsigmoid", "wide(x) + 3", "wide(x) + 2",
          lambda x: F.hardsigmoid(x), SHORT),
    Break("logaddexp has the difference's other sign", f"{CHOICES}:_logaddexp",
          "torch.exp(-(a - b).abs())", "torch.exp((a - b).abs())", torch.logaddexp, PAIR),
    Break("lerp goes the other way", f"{CHOICES}:_lerp", "a + w * (b - a)", "a + w * (a - b)",
          lambda x, y: torch.lerp(x, y, torch.full_like(x, 0.25)), PAIR),
    Break("Huber's loss forgets delta", f"{LOSSES}:_huber", "delta * (size - 0.5 * delta)",
          "size - 0.5 * delta", lambda x, y: F.huber_loss(x, y, delta=0.5), PAIR),
    Break("a smooth loss forgets beta", f"{LOSSES}:_smooth_l1", "size - 0.5 * beta", "size",
          lambda x, y: F.smooth_l1_loss(x, y), PAIR),
    Break("a margin has the other sign", f"{LOSSES}:_soft_margin", "-b * a", "b * a",
          lambda x, y: F.soft_margin_loss(x, y), PAIR),
    Break("a mean of losses is a sum", f"{LOSSES}:_reduced", "reduction == MEAN",
          "reduction != MEAN", lambda x, y: F.mse_loss(x.half(), y.half()), PAIR),
    Break("windows of a pool end before they should", "tcir.torch.pools:_adaptive",
          "-(-(n + 1) * extent // count)", "(n + 1) * extent // count",
          lambda x: F.adaptive_avg_pool1d(x, 3), SHORT),
    # masks
    Break("nansum takes NaN alone", f"{DECOMPOSITIONS}:_nansum", "x != x", "x == x",
          lambda x: x.nansum(-1), SHORT, quick=True),
    Break("a maximum is the minimum", f"{CHOICES}:maximum", "(a > b)", "(a < b)", torch.maximum,
          PAIR),
    Break("bounds are exchanged", f"{CHOICES}:clamp", "((min, maximum), (max, minimum))",
          "((max, maximum), (min, minimum))", lambda x: x.clamp(-0.5, 0.5), SHORT),
    Break("a scatter keeps what it replaces", f"{PLACES}:_scatter",
          "torch.where(last > 0, found, moved)", "torch.where(last > 0, moved, found)",
          lambda x, i, s: x.scatter(1, i, s), (_numbers(3, 4), _whole(3, 2), _numbers(3, 2))),
    Break("a scattered number goes everywhere else", f"{PLACES}:_scatter_value",
          "> 0, number, moved", "> 0, moved, number",
          lambda x, i: x.scatter(1, i, 5.0), (_numbers(3, 4), _whole(3, 2))),
    Break("a copied slice is taken where there is none", f"{PLACES}:_index_copy",
          "_along(last > 0,", "_along(last < 1,", lambda x, i, s: x.index_copy(0, i, s), ROWS),
    # orders
    Break("sums are of what comes later", f"{PLACES}:_cumsum", "place[:, None] >= place",
          "place[:, None] <= place", lambda x: x.cumsum(-1), SHORT, quick=True),
    Break("sums are without the last", f"{PLACES}:_cumsum", "place[:, None] >= place",
          "place[:, None] > place", lambda x: x.cumsum(-1), SHORT),
    Break("sorted the other way round", f"{PLACES}:_order", "(other > mine) if descending",
          "(other < mine) if descending", lambda x: x.sort(descending=True), SHORT),
    Break("equal elements are sorted the other way round", f"{PLACES}:_order",
          "place < place[:, None]", "place > place[:, None]", lambda x: x.sort(stable=True)[1],
          (_whole(2, 6),)),
    Break("topk takes the smallest", f"{PLACES}:_topk", "dim, largest, k", "dim, not largest, k",
          lambda x: x.topk(2), SHORT),
    Break("of several sources the first is taken", f"{PLACES}:_last", ".amax(-1)",
          ".masked_fill(~hit, 1 << 20).amin(-1) % (1 << 20)",
          lambda x, i, s: x.scatter(1, i, s), (_numbers(3, 2), _whole(3, 6), _numbers(3, 6))),
    Break("added slices are not multiplied", f"{PLACES}:_index_add", " * alpha", "",
          lambda x, i, s: x.index_add(0, i, s, alpha=2), ROWS),
    Break("added slices replace", f"{PLACES}:_added", "x.movedim(dim, -1).to(kind) +", "",
          lambda x, i, s: x.index_add(0, i, s), ROWS),
    Break("rolled the other way", f"{PLACES}:_roll", "shift % count", "-shift % count",
          lambda x: x.roll(1, 1), SHORT),
    Break("reflected with the edge", f"{PLACES}:_pad", "2 * (count - 1) - place",
          "2 * count - 1 - place", lambda x: F.pad(x, (2, 2), "reflect"), (_numbers(1, 2, 5),)),
    Break("mean and deviation are exchanged", f"{DECOMPOSITIONS}:_std_mean",
          "x.std(dims, correction=correction, keepdim=keepdim), x.mean(dims, keepdim)",
          "x.mean(dims, keepdim), x.std(dims, correction=correction, keepdim=keepdim)",
          lambda x: torch.std_mean(x, -1), SHORT),
    Break("variance and mean are exchanged", f"{SUMS}:_var_mean",
          "variance, mean(x, dim, keepdim)", "mean(x, dim, keepdim), variance",
          lambda x: torch.var_mean(x, -1), LONG),
]  # fmt: skip
"""Caught by the first line of `validate`."""

CALLED = [
    # NaN and indices, which the check of the import does not draw
    Break("a maximum loses NaN", f"{CHOICES}:maximum", "(a > b) | _nan(a)", "a > b", "nan"),
    Break("indices below 0 are not counted from the end", f"{PLACES}:_index_put",
          "index + x.shape[dim], index)", "index, index)", "index"),
    Break("the bounds of an index are dropped", f"{PLACES}:_inside",
          "_places(count, index).index_select(0, index.reshape(-1).to(torch.int64))",
          "index.reshape(-1).to(torch.int64)", "outside"),
    # strides, orders, aliases
    Break("results are contiguous", "tcir.torch.tensors:with_strides", "or not tensor.numel()",
          "or True", "strides", quick=True),
    Break("results come the other way round", "tcir.torch.compiled:KernelModule.forward",
          "tuple(results) if self.several", "tuple(results)[::-1] if self.several", "results"),
    Break("arguments come the other way round", "tcir.torch.calls:Call.with_tensors",
          "iter(tensors)", "iter(tensors[::-1])", "arguments"),
    Break("keywords come as they are written", "tcir.torch.calls:Call.of",
          "dict(sorted(kwargs.items()))", "dict(kwargs)", "keywords"),
    Break("a result that is a view of another is a copy", "tcir.torch.aliases:keep_aliases",
          "if not views or", "if True or", "aliases"),
    Break("bf16 is read as f16", "tcir.torch.tensors:array_of", ".view(dtype)",
          ".view('float16').astype(dtype)", "bf16"),
    # weights
    Break("weights are those of the compilation", "tcir.torch.exported:_Functional.forward",
          "torch.func.functional_call(self.inner, weights, args, kwargs)",
          "self.inner(*args, **kwargs)", "weights", quick=True),
    Break("weights come the other way round", "tcir.torch.weights:Weights.__call__",
          "tuple(found.values())", "tuple(found.values())[::-1]", "weights"),
    Break("the state has names of its own", "tcir.torch.compiled:Compiled.state_dict",
          "self.module.state_dict(*args, **kwargs)",
          "{f'module.{n}': v for n, v in self.module.state_dict().items()}", "state"),
    Break("a checkpoint is not renamed", "tcir.torch.compiled:_with_prefix", "module.{name",
          "{name", "state"),
    # guards
    Break("shapes are not compared", "tcir.torch.calls:Call.check", "if shapes != got", "if False",
          "shapes"),
    Break("numbers are not compared", "tcir.torch.calls:Call.check",
          "type(mine) is not type(other) or mine != other", "False", "numbers"),
    Break("structures are not compared", "tcir.torch.calls:Call.check",
          "given.spec != self.spec or given.are_tensors != self.are_tensors", "False",
          "structures"),
    Break("a module in training is taken", "tcir.torch.entry:compile",
          "module.training and", "0 and", "training"),
    Break("a module that writes is taken", "tcir.torch.exported:exported",
          "program.graph_signature.user_inputs_to_mutate", "False", "writes"),
    Break("an integer has the kernel of another", "tcir.torch.backend:_Specialised.__call__",
          "(call.others, tuple(", "((), tuple(", "integers"),
    # what `torch.export` makes of our own ops, which is the reference of the import
    Break("a linear layer forgets its bias", "tcir.torch.linear:in_aten", "bias)", "None)",
          "linear"),
    # the check itself
    Break("the check allows anything", "tcir.validation.against_f64:compare", "if ratio > 1",
          "if False", "validate"),
    Break("the check forgets what failed", "tcir.imported.check:judge", "if found.failure",
          "if False", "validate"),
]  # fmt: skip
"""Caught by a comparison with the module, or by what is refused."""
