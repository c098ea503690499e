"""Finds the weights of a module at each call without a walk through all its submodules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from tcir.errors import InputError
from tcir.torch.exported import weights_of
from tcir.torch.snapshot import Snapshot

Slot = tuple[dict[str, Any], str, Any]
"""A dict of a module (`_parameters`, `_buffers`, `_modules`), a name in it, and its value."""


class Weights:
    """The plain tensors of a module's parameters and buffers (`weights_of`), in the order that
    their names had when the module was compiled.

    A call returns the tensors of the previous call if every attribute that held a tensor or a
    submodule still holds the same object. A pickle or copy walks through the module again.

    read: indices of the weights that a `snapshot` covers
    last: the snapshot of the previous call
    """

    def __init__(self, module: torch.nn.Module, read: Sequence[int]) -> None:
        self.module, self.read, self.names = module, read, tuple(weights_of(module))
        self.clear()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_found": None, "last": None}

    def clear(self) -> None:
        """Forgets the weights of the previous call."""
        self._found: tuple[tuple[Slot, ...], tuple[torch.Tensor, ...]] | None = None
        self.last: Snapshot | None = None

    def snapshot(self, weights: Sequence[torch.Tensor], frozen: bool) -> Snapshot:
        """The snapshot of these weights: that of the previous call if it is still valid, otherwise
        a new one.
        """
        found = self.last
        if found is None or not found.is_of(weights):
            self.last = None  # its memory
            found = self.last = Snapshot(weights, self.read, frozen)
        return found

    def __call__(self) -> tuple[torch.Tensor, ...]:
        """Returns the weights; InputError if the module has other parameters or buffers than it was
        compiled with."""
        if self._found is not None:
            slots, tensors = self._found
            for place, name, value in slots:
                if place.get(name) is not value:
                    break
            else:
                return tensors
        slots = _slots(self.module)
        found = weights_of(self.module)
        if tuple(found) != self.names:
            raise InputError(
                "expected the parameters and buffers of the module that was compiled, got "
                f"{_difference(self.names, tuple(found))}; compile again"
            )
        tensors = tuple(found.values())
        whole = not any(is_traceable_wrapper_subclass(value) for *_, value in slots)
        self._found = (slots, tensors) if whole else None
        return tensors


def _slots(module: torch.nn.Module) -> tuple[Slot, ...]:
    """Every place of a tensor or of a module below `module`."""
    return tuple(
        (place, name, value)
        for each in module.modules()
        for place in (each._parameters, each._buffers, each._modules)
        for name, value in place.items()
    )


def _difference(before: Sequence[str], after: Sequence[str]) -> str:
    lost, new = (sorted({*a} - {*b}) for a, b in ((before, after), (after, before)))
    words = [f"without {', '.join(lost[:4])}"] if lost else []
    words += [f"with {', '.join(new[:4])}"] if new else []
    return " and ".join(words) or "others in another order"
