"""Modules as graphs of ATen ops whose weights are arguments, cut into parts, and as MLIR."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

import torch
from torch.fx.passes.split_module import split_module
from torch.utils._pytree import TreeSpec

from tcir._mlir import import_bindings
from tcir.errors import InputError
from tcir.torch.decompositions import decompositions

DECOMPOSITIONS: dict[torch._ops.OperatorBase, Callable[..., torch.Tensor]] = {}
"""tcir's own ops as ATen's: each file that defines one adds it."""


class _Functional(torch.nn.Module):
    """A module whose parameters and buffers are its last arguments."""

    def __init__(self, module: torch.nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.__dict__.update(inner=module, names=names)  # no submodule: it would own the weights

    def forward(self, *values: torch.Tensor) -> object:
        count = len(values) - len(self.names)
        weights = dict(zip(self.names, values[count:], strict=True))
        return torch.func.functional_call(self.inner, weights, values[:count])


def weights_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def exported(
    module: torch.nn.Module, inputs: Sequence[torch.Tensor], weights: Mapping[str, torch.Tensor]
) -> tuple[torch.fx.GraphModule, TreeSpec]:
    """The module as ATen ops on `inputs` and then `weights`, for shapes as the examples', and how
    what it returns is put together."""
    given = (*inputs, *(value.detach() for value in weights.values()))
    try:
        program = torch.export.export(_Functional(module, list(weights)), given, strict=False)
        program = program.run_decompositions(DECOMPOSITIONS)  # and replaces what is done in place
    except Exception as error:
        raise InputError(
            f"torch.compile: expected a module that torch.export takes, got {_first(error)}"
        ) from error
    if program.graph_signature.buffers_to_mutate or program.graph_signature.user_inputs_to_mutate:
        raise InputError(
            "torch.compile: expected a module that changes none of its arguments and buffers: a "
            "kernel's inputs are read only; call module.eval() first, or return the new values"
        )
    graph = program.module(check_guards=False)  # `Compiled` checks its inputs
    return graph, program.call_spec.out_spec


Unit = tuple[torch.fx.Node, ...]
"""An op, with what takes its results apart."""


def units(graph: torch.fx.Graph) -> list[Unit]:
    """The ops of the graph in their order."""
    found: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is operator.getitem and node.args[0] in found:
            found[node.args[0]].append(node)
        else:
            found[node] = [node]
    return [tuple(nodes) for nodes in found.values()]


def cut(module: torch.fx.GraphModule, parts: Sequence[Sequence[Unit]]) -> torch.fx.GraphModule:
    """The module as a chain of submodules ``submod_0``, ``submod_1`` …, one for each part."""
    place = {node: number for number, part in enumerate(parts) for unit in part for node in unit}
    return split_module(module, None, lambda node: place[node], keep_original_order=True)


def examples(part: torch.fx.GraphModule) -> list[torch.Tensor]:
    """Tensors of the shapes and types of a part's arguments."""
    values = [node.meta["val"] for node in part.graph.nodes if node.op == "placeholder"]
    if not all(isinstance(value, torch.Tensor) for value in values):
        raise InputError("takes an argument that is no tensor")
    return [torch.zeros(value.shape, dtype=value.dtype) for value in values]


def mlir_of(part: torch.fx.GraphModule) -> str:
    """The part as `linalg` text, by the importer of torch-mlir."""
    given = examples(part)
    table = import_bindings("extras.fx_decomp_util").get_decomposition_table()
    table.update(decompositions())
    try:
        return str(
            import_bindings("fx").export_and_import(
                part, *given, output_type="linalg-on-tensors", decomposition_table=table
            )
        )
    except Exception as error:
        raise InputError(f"torch-mlir has no linalg for it: {_first(error)}") from error


def _first(error: BaseException) -> str:
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
