"""Rewrites linear layers whose input rows are permuted, so that they multiply the rows in the order
of memory.
"""

from __future__ import annotations

from math import prod

import torch

from tcir.torch.aten import aten

VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)
PERMUTATIONS = (aten.transpose.int, aten.permute.default)
MOVES = (*VIEWS, *PERMUTATIONS, aten.clone.default)


def keep_rows(graph: torch.fx.GraphModule) -> None:
    """Permutes the results of linear layers instead of their input rows.

    ``nn.MultiheadAttention`` with batches first transposes rows and batches before and after its
    products. A product of permuted rows would need a copy of its input. A permuted result needs no
    copy, because the ops that read it, such as attention, read it in place.
    """
    for node in graph.graph.find_nodes(op="call_function", target=aten.linear.default):
        with graph.graph.inserting_before(node):
            made = _multiplied(node)
        if made is not None:
            node.replace_all_uses_with(made)
            _drop(node)
    graph.recompile()


def _multiplied(node: torch.fx.Node) -> torch.fx.Node | None:
    """The result of a linear layer of the rows as they are stored; None if none are permuted."""
    x = node.all_input_nodes[0]
    shape, width = _shape(node), _shape(x)[-1]
    flat = x.target in VIEWS and len(shape) == 2
    moved = x.all_input_nodes[0] if flat else x
    while moved.target is aten.clone.default:
        moved = moved.all_input_nodes[0]
    if moved.target not in PERMUTATIONS:
        return None
    source, order = moved.all_input_nodes[0], _order(moved)
    sizes = [_shape(source)[d] for d in order]
    rows = next((n for n in range(len(sizes)) if prod(sizes[n:]) == width), 0)
    first = sorted(order[:rows])
    if first == order[:rows] or not rows or (not flat and order[rows:] != [len(order) - 1]):
        return None
    stored = _call(node, aten.permute.default, source, [*first, *order[rows:]])
    stored = _call(node, aten.reshape.default, stored, [*(_shape(source)[d] for d in first), width])
    made = _call(node, aten.linear.default, stored, *node.args[1:])
    back = [*(first.index(d) for d in order[:rows]), rows]
    made = _call(node, aten.permute.default, made, back)
    made = _call(node, aten.clone.default, made, memory_format=torch.contiguous_format)
    return _call(node, aten.view.default, made, shape)


def _order(moved: torch.fx.Node) -> list[int]:
    """The dimension of its source that each dimension of a permutation is."""
    sizes = torch.empty([*range(1, len(_shape(moved)) + 1)], device="meta")
    assert isinstance(moved.target, torch._ops.OpOverload)
    return [n - 1 for n in moved.target(sizes, *moved.args[1:]).shape]


def _drop(node: torch.fx.Node) -> None:
    """Erases an op without users, and the moves before it that have no other."""
    before = node.all_input_nodes[0]
    node.graph.erase_node(node)
    if before.target in MOVES and not before.users:
        _drop(before)


def _shape(node: torch.fx.Node) -> list[int]:
    return list(node.meta["val"].shape)


def _call(
    like: torch.fx.Node, target: torch._ops.OpOverload, *args: object, **kwargs: object
) -> torch.fx.Node:
    """A new op with the origin of `like`, and with its value's shape, strides and type."""
    made = like.graph.create_node("call_function", target, args, kwargs)
    given = [each.meta["val"] if isinstance(each, torch.fx.Node) else each for each in args]
    made.meta = {**like.meta, "val": target(*given, **kwargs)}
    return made
