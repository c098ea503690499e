"""Arguments of a module's call: tensors may change from call to call; all other values are fixed at
compile time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from tcir.errors import InputError
from tcir.torch import objects

FIXED = (torch.Tensor, int, float, complex, str, type(None), torch.dtype, torch.device)
"""Types that an argument may have: a tensor, or a value that is fixed at compile time."""


@dataclass(frozen=True)
class Call:
    """Positional and keyword arguments, flattened.

    tensors: the tensors in any list, tuple, dict or registered class, in order
    others:  the other leaves (numbers, strings, None), with None in place of each tensor
    """

    tensors: tuple[torch.Tensor, ...]
    others: tuple[object, ...]
    are_tensors: tuple[bool, ...]
    spec: TreeSpec

    @classmethod
    def of(cls, args: Sequence[object], kwargs: Mapping[str, object]) -> Call:
        """Flattens arguments. InputError for a leaf that is neither a tensor, number, string nor
        None."""
        objects.register((args, kwargs))
        leaves, spec = tree_flatten((tuple(args), dict(sorted(kwargs.items()))))
        for each in leaves:
            if not isinstance(each, FIXED):
                way_out = "; torch.from_numpy makes one" if hasattr(each, "__array__") else ""
                raise InputError(
                    "expected tensors, numbers, strings or None as arguments, or lists, tuples and "
                    f"dicts of these, got {type(each).__module__}.{type(each).__name__}{way_out}"
                )
        are_tensors = tuple(isinstance(each, torch.Tensor) for each in leaves)
        tensors = tuple(each for each in leaves if isinstance(each, torch.Tensor))
        others = tuple(None if isinstance(each, torch.Tensor) else each for each in leaves)
        return cls(tensors, others, are_tensors, spec)

    def with_tensors(
        self, tensors: Sequence[torch.Tensor]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Positional and keyword arguments of the call, with its tensors replaced by `tensors`."""
        rest = iter(tensors)
        leaves = [
            next(rest) if tensor else other
            for tensor, other in zip(self.are_tensors, self.others, strict=True)
        ]
        args, kwargs = tree_unflatten(leaves, self.spec)
        return args, kwargs

    def without_data(self) -> Call:
        """The same call on meta tensors, which have no memory."""
        return replace(self, tensors=tuple(each.detach().to("meta") for each in self.tensors))

    def check(self, given: Call) -> None:
        """Rejects, with InputError, arguments that do not fit a module compiled for this call."""
        if given.spec != self.spec or given.are_tensors != self.are_tensors:
            raise InputError(
                f"expected arguments like the example's, {self._words()}, got {given._words()}; "
                "compile again for others"
            )
        for mine, other in zip(self.others, given.others, strict=True):
            if type(mine) is not type(other) or mine != other:
                raise InputError(
                    f"expected {mine!r}, as in the example's arguments, got {other!r}: only "
                    "tensors may vary between calls; compile again for another value"
                )
        shapes, got = (
            [(tuple(each.shape), each.dtype) for each in call.tensors] for call in (self, given)
        )
        if shapes != got:
            raise InputError(
                f"expected tensors {_words(shapes)}, as in the example inputs, got "
                f"{_words(got)}: shapes are fixed in a kernel; compile again for others"
            )

    def _words(self) -> str:
        marks = [
            "a tensor" if tensor else type(other).__name__
            for tensor, other in zip(self.are_tensors, self.others, strict=True)
        ]
        args, kwargs = tree_unflatten(marks, self.spec)
        named = [f"{name}={value}" for name, value in kwargs.items()]
        return "(" + ", ".join([*map(str, args), *named]) + ")"


def _words(shapes: Sequence[tuple[tuple[int, ...], torch.dtype]]) -> str:
    return ", ".join(f"{list(shape)} of {str(kind)[6:]}" for shape, kind in shapes) or "none"
