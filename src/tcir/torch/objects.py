"""Objects that contain tensors and that PyTorch cannot flatten by itself, such as transformers'
caches.

An object is flattened into its attributes. Attributes that contain tensors are arguments or results
of the module; the other attributes are fixed at compile time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch.utils._pytree import SUPPORTED_NODES, register_pytree_node, tree_leaves


@dataclass
class _Rest:
    """Context of a flattened object: the names of the attributes that hold tensors, and the other
    attributes."""

    names: tuple[str, ...]
    others: dict[str, object]


def register(value: object) -> None:
    """Registers the classes of those objects in `value` that contain tensors and that PyTorch's
    pytree does not know yet.

    A class is registered for the whole process, as `torch.utils._pytree.register_pytree_node` does.
    """
    for leaf in tree_leaves(value):
        kind = type(leaf)
        if isinstance(leaf, torch.Tensor | torch.nn.Module | type) or kind in SUPPORTED_NODES:
            continue
        if any(map(_holds, getattr(leaf, "__dict__", {}).values())) and kind not in SUPPORTED_NODES:
            register_pytree_node(kind, _taken_apart, _made(kind))


def _holds(value: object) -> bool:
    """Whether a structure contains a tensor, also inside of its objects."""
    register(value)
    return any(isinstance(each, torch.Tensor) for each in tree_leaves(value))


def _taken_apart(found: object) -> tuple[list[object], _Rest]:
    held = vars(found)
    names = tuple(name for name, value in held.items() if _holds(value))
    return [held[name] for name in names], _Rest(
        names, {name: value for name, value in held.items() if name not in names}
    )


def _made(kind: type) -> Callable[[object, _Rest], object]:
    """Function that rebuilds an object of a class without calling its `__init__`."""

    def made(children: object, rest: _Rest) -> object:
        found: object = object.__new__(kind)
        found.__dict__.update(_own(rest.others))
        found.__dict__.update(zip(rest.names, children, strict=True))  # type: ignore[call-overload]
        return found

    return made


def _own(values: Mapping[str, object]) -> dict[str, object]:
    """The values, with copies of lists, dicts and sets, which an object may modify in place."""
    return {
        name: copy.copy(value) if isinstance(value, list | dict | set) else value
        for name, value in values.items()
    }
