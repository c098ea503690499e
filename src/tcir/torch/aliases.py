"""Results that share memory with an argument or with another result."""

from __future__ import annotations

from collections import Counter

import torch
from torch.utils._pytree import tree_leaves

KEPT = "tcir_kept"
"""Key in the metadata of an op that PyTorch always runs."""


def keep_aliases(graph: torch.fx.GraphModule) -> None:
    """Lets PyTorch compute the results that are views of an argument or share memory with another
    result.

    A kernel would write each result to separate memory, and a write to one tensor would not be
    visible in the other. Because the ops are views, PyTorch runs them at no cost.
    """
    output = graph.graph.output_node()
    results = [each for each in output.all_input_nodes if _memory(each) is not None]
    shared = Counter(_memory(each) for each in results)
    shared.update(_memory(node) for node in graph.graph.nodes if node.op == "placeholder")
    for result in results:
        *views, base = _views(result)
        if not views or shared[_memory(result)] < 2:
            continue
        output.replace_input_with(result, _again(graph.graph, base, views[::-1]))
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _again(graph: torch.fx.Graph, base: torch.fx.Node, views: list[torch.fx.Node]) -> torch.fx.Node:
    """Recreates some views of a base at the end of the graph; returns the last of them."""
    copies = {base: base}
    with graph.inserting_before(graph.output_node()):
        for view in views:
            made = graph.node_copy(view, lambda node: copies.get(node, node))
            made.meta = {**view.meta, KEPT: True}
            copies[view] = made
    return made


def _views(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The node, followed by the chain of nodes of which it is a view; the last one is the base."""
    chain = [node]
    while chain[-1].op == "call_function" and chain[-1].all_input_nodes:
        source = chain[-1].all_input_nodes[0]
        if _memory(source) != _memory(node):
            break
        chain.append(source)
    return chain


def _memory(node: torch.fx.Node) -> int | None:
    """Storage of a node's tensors; None if there are several or none."""
    values = tree_leaves(node.meta.get("val"))
    found = {each.untyped_storage()._cdata for each in values if isinstance(each, torch.Tensor)}
    return found.pop() if len(found) == 1 else None
