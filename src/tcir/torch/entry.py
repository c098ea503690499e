"""`tcir.torch.compile`."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tcir.errors import InputError
from tcir.passmanager.pipeline import as_pipeline
from tcir.session.session import check_name
from tcir.torch.compiled import Compiled, KernelModule, Part
from tcir.torch.exported import Unit, cut, exported, units, weights_of
from tcir.torch.lowering import Lowered, Outcome, attempt, is_own, lowered, name_of
from tcir.torch.tensors import target_of


def compile(
    module: torch.nn.Module,
    example_inputs: Sequence[torch.Tensor],
    *,
    pipeline: str = "layers",
    target: str | None = None,
) -> Compiled:
    """`module` with its ops lowered by `pipeline`, as far as it takes them.

    `torch.export` makes a graph of ATen ops for the shapes and types of `example_inputs`, and
    torch-mlir's importer makes `linalg` of it; weights are arguments of the kernels. The graph is
    cut at the ops that no pipeline takes: PyTorch runs those, and `Compiled.table` says why.
    f16, bf16 and f32 modules; f32 is multiplied as tf32. target: left out, that of the GPU which
    the example inputs are on, or sm_100a. InputError for a module in training mode, one that
    changes its arguments, and inputs that are no tensors of the CPU or of a GPU of a target.
    """
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"torch.compile: expected a torch.nn.Module, got {type(module).__name__}")
    if module.training and not isinstance(module, torch.fx.GraphModule):
        raise InputError(
            "torch.compile: expected a module that is evaluated, got one in training mode: "
            "kernels compute no gradients; call module.eval()"
        )
    for number, each in enumerate(example_inputs):
        if not isinstance(each, torch.Tensor):
            raise InputError(
                f"torch.compile: example input {number}: expected a tensor, got {each!r}"
            )
    as_pipeline(pipeline)
    found_target = target_of(example_inputs)
    target = found_target if target is None else target
    check_name(target)
    weights = weights_of(module)
    graph, results = exported(module, example_inputs, weights)
    ops = units(graph.graph)

    def one(part: Sequence[Unit]) -> Outcome:
        return attempt(graph, ops, part, pipeline, target)

    found = lowered(ops, one)
    whole = cut(graph, [part for part, _ in found]) if found else graph
    parts = []
    for number, (part, outcome) in enumerate(found):
        names = tuple(map(name_of, part))
        if isinstance(outcome, Lowered):
            name = f"submod_{number}"
            last = getattr(whole, name).graph.output_node().args[0]
            if not is_own(part[0]):
                several = isinstance(last, list | tuple)
                strides = [each.meta["val"].stride() for each in (last if several else [last])]
                setattr(whole, name, KernelModule(outcome.kernel, strides, several))
            parts.append(Part(names, outcome.kernel, outcome.mlir, outcome.pipeline))
        else:
            parts.append(Part(names, reason=outcome.reason))
    return Compiled(whole, parts, example_inputs, module, results, target)
