"""`tcir.torch.compile`: compiles a PyTorch module."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch
from torch.fx.passes.tools_common import stable_topological_sort
from torch.fx.passes.utils.fuser_utils import erase_nodes, fuse_as_graphmodule, insert_subgm

from tcir import progress
from tcir.errors import InputError
from tcir.passmanager.pipeline import as_pipeline
from tcir.session.apart import compilers
from tcir.session.session import check_target
from tcir.target import EMULATED
from tcir.torch.aliases import keep_aliases
from tcir.torch.calls import Call
from tcir.torch.compiled import Compiled, GpuOptions, KernelModule, Part
from tcir.torch.exported import exported, is_getitem, name_of, units, weights_of
from tcir.torch.layouts import keep_layouts
from tcir.torch.lowering import OWN, Lowered, Lowering, lower
from tcir.torch.rows import keep_rows
from tcir.torch.tensors import emulation, target_of


def compile(
    module: torch.nn.Module,
    example_inputs: torch.Tensor | Sequence[object],
    example_kwargs: Mapping[str, object] | None = None,
    *,
    pipeline: str = "layers",
    target: str | None = None,
    emulate: bool = False,
    graph: bool = False,
    freeze: bool | None = None,
    verbose: bool | None = None,
) -> Compiled:
    """Compiles `module`: `pipeline` lowers as many of its ops as it supports; PyTorch runs the
    rest.

    `torch.export` traces a graph of ATen ops for the shapes and types of the example tensors, and
    torch-mlir's importer converts it to `linalg`; weights are arguments of the kernels. Modules are
    f16, bf16 or f32 (multiplied as tf32). `Compiled.table` states why an op was not lowered.

    example_inputs: positional arguments; a single tensor is the only argument. Values other than
              tensors (None, numbers) are fixed
    example_kwargs: keyword arguments
    pipeline: name of the pipeline
    target:   default: the target of the GPU that holds the example tensors, or sm_100a
    emulate:  target sm_100a, with kernels that run by emulation on a GPU of compute capability 9.0
              (docs/explanation/emulation.md)
    graph:    on a GPU, calls of four launches or more replay CUDA graphs, one for each combination
              of argument addresses; results are copied out of them
    freeze:   on a GPU, keeps what kernels compute from weights alone until a weight is replaced,
              or written in a way that PyTorch counts (not through `.data`); default: True if no
              parameter requires a gradient
    verbose:  prints a line for each part on stderr; default: on a terminal, unless TCIR_PROGRESS is
              0

    Raises InputError for a module in training mode, a module that modifies its arguments, tensors
    that are neither on the CPU nor on a GPU of a target, and a target that cannot be emulated.
    """
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"torch.compile: expected a torch.nn.Module, got {type(module).__name__}")
    if module.training and not isinstance(module, torch.fx.GraphModule):
        raise InputError(
            "torch.compile: expected a module in evaluation mode, got one in training mode: "
            "kernels compute no gradients; call module.eval()"
        )
    if isinstance(example_inputs, torch.Tensor):
        example_inputs = (example_inputs,)
    if not isinstance(example_inputs, Sequence) or isinstance(example_inputs, str):
        raise InputError(
            "torch.compile: example inputs: expected a tensor, or a tuple of the arguments, got "
            f"{type(example_inputs).__name__}"
        )
    as_pipeline(pipeline)
    call = Call.of(example_inputs, example_kwargs or {})
    target = chosen_target(call, target, emulate)
    check_target(pipeline, target)
    options = GpuOptions(emulate, graph, _is_constant(module) if freeze is None else freeze)
    compilers().start()  # while PyTorch traces the module
    made = exported(module, call, weights_of(module))
    return compiled(module, made, call, pipeline, target, verbose, options)


def _is_constant(module: torch.nn.Module) -> bool:
    """Whether weights are frozen by default: none of them requires a gradient, and PyTorch counts
    the writes to each."""
    return not any(
        each.requires_grad or each.is_inference() for each in weights_of(module).values()
    )


def chosen_target(call: Call, target: str | None, emulate: bool) -> str:
    """Returns `target`; if it is None, the target of the call's tensors. Raises InputError if
    `emulate` is set and that target cannot be emulated.
    """
    with emulation(emulate):
        found = target_of(call.tensors)
    if emulate and (target or found) != EMULATED:
        raise InputError(
            f"emulate=True: expected target {EMULATED}, whose kernels a GPU of compute capability "
            f"9.0 emulates, got {target or found}; leave emulate out for a target's own GPU"
        )
    return target or found


def compiled(
    module: torch.nn.Module,
    graph: torch.fx.GraphModule,
    call: Call,
    pipeline: str,
    target: str,
    verbose: bool | None,
    options: GpuOptions,
) -> Compiled:
    """Compiles `module` from its graph of ATen ops. The inputs of the graph are the tensors of
    `call`, followed by the weights.
    """
    places = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    weights = places[len(call.tensors) :]
    frozen = weights if options.freeze else []
    keep_aliases(graph)
    keep_rows(graph)
    keep_layouts(graph, frozen)
    tell = _say if progress.wanted(verbose) else lambda line: None
    lowering = lower(graph, units(graph.graph), pipeline, target, tell, frozen)
    return Compiled(
        graph, table(graph, lowering, weights, options.freeze), call, module, target, options
    )


def _say(line: str) -> None:
    progress.say(f"tcir.torch: {line}")


def table(
    graph: torch.fx.GraphModule,
    lowering: Lowering,
    weights: Collection[str] = (),
    frozen: bool = False,
) -> list[Part]:
    """Lowers the graph and inserts the kernels into it; returns the parts of the graph in execution
    order.

    weights: names of the arguments of the graph that are weights
    frozen:  whether results that depend only on weights are kept between calls
    """
    regions = {f"kernel_{number}": region for number, region in enumerate(lowering.regions)}
    left = {node.name: reason for node, reason in lowering.left.items()}  # it makes new nodes
    for name, region in regions.items():
        _put(graph, name, region.nodes)
    stable_topological_sort(graph)
    graph.recompile()
    parts: list[Part] = []
    for node in graph.graph.nodes:
        if node.op == "call_module":
            region = regions[node.target]
            names = tuple(name_of((each,)) for each in region.nodes if not is_getitem(each))
            part = Part(names, region.kernel, region.mlir, region.pipeline, region.cut)
            if region.nodes[0].target not in OWN:
                part = replace(part, graph=getattr(graph, node.target))
                setattr(graph, node.target, _kernel_module(graph, node, region, weights, frozen))
            parts.append(part)
        elif (reason := left.get(node.name)) is not None:
            same = parts and parts[-1].kernel is None and parts[-1].reason == reason
            before = parts.pop().ops if same else ()
            parts.append(Part((*before, name_of((node,))), reason=reason))
    return parts


def _put(graph: torch.fx.GraphModule, name: str, nodes: Sequence[torch.fx.Node]) -> None:
    """Replaces ops by a call of a submodule.

    The ops keep the order of the import, which determines the order of arguments and results;
    `fuse_by_partitions` would use another order.
    """
    part, inputs, outputs = fuse_as_graphmodule(graph, list(nodes), name)
    insert_subgm(graph, part, inputs, outputs)
    erase_nodes(graph, list(nodes))


def _kernel_module(
    graph: torch.fx.GraphModule,
    node: torch.fx.Node,
    region: Lowered,
    weights: Collection[str],
    frozen: bool,
) -> KernelModule:
    last = getattr(graph, node.target).graph.output_node().args[0]
    several = isinstance(last, list | tuple)
    traced = [each.meta["val"] for each in (last if several else [last])]
    numbers = [number for number, given in enumerate(node.args) if str(given) in weights]
    return KernelModule(region.kernel, traced, several, numbers, frozen)
