"""Arguments and results whose dimensions have another order in memory, such as channels last."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from tcir.torch.aliases import KEPT

permute = torch.ops.aten.permute.default


def keep_layouts(graph: torch.fx.GraphModule, frozen: Collection[str] = ()) -> None:
    """Lets kernels use the memory of arguments and results in place, which otherwise each call
    would have to copy.

    A kernel's buffers are contiguous. If an argument is not contiguous but its elements do not
    overlap, PyTorch permutes it to contiguous order, which moves no data. An op of the graph, which
    becomes part of a kernel, permutes it back. For results the two steps are reversed.

    frozen: names of arguments that are left as they are, because they are copied only once
    """
    nodes = graph.graph
    for node in nodes.find_nodes(op="placeholder"):
        order = order_of(node)
        if order is None or node.name in frozen:
            continue
        with nodes.inserting_after(node):
            memory = _permuted(nodes, node, order, kept=True)
        with nodes.inserting_after(memory):
            again = _permuted(nodes, memory, _inverse(order))
        node.replace_all_uses_with(again, delete_user_cb=_is_computed)
    output = nodes.output_node()
    for node in output.all_input_nodes:
        order = order_of(node)
        if order is None or node.op != "call_function" or not _is_computed(node):
            continue
        with nodes.inserting_before(output):
            memory = _permuted(nodes, node, order)
            output.replace_input_with(node, _permuted(nodes, memory, _inverse(order), kept=True))
    graph.recompile()


def order_of(node: torch.fx.Node) -> list[int] | None:
    """Dimensions of a node's tensor in the order of memory; None if the tensor is contiguous, has
    gaps, or has overlapping elements.
    """
    tensor = node.meta.get("val")
    if not isinstance(tensor, torch.Tensor) or tensor.is_contiguous():
        return None
    if not all(isinstance(each, int) for each in (*tensor.shape, *tensor.stride())):
        return None
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    return order if tensor.permute(order).is_contiguous() else None


def _is_computed(user: torch.fx.Node) -> bool:
    """Whether a kernel may compute a node: not the results, nor ops that PyTorch always runs."""
    return user.op != "output" and KEPT not in user.meta


def _inverse(order: Sequence[int]) -> list[int]:
    return sorted(range(len(order)), key=order.__getitem__)


def _permuted(
    graph: torch.fx.Graph, node: torch.fx.Node, order: Sequence[int], kept: bool = False
) -> torch.fx.Node:
    """A permutation of a node's tensor; kept: PyTorch runs it."""
    made = graph.call_function(permute, (node, list(order)))
    made.meta = {"val": node.meta["val"].permute(order), **({KEPT: True} if kept else {})}
    return made
