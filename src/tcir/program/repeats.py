"""Further launches of a kernel, on other buffers than those of its own launch (pass share-kernels).

The module's attribute ``tc.repeats`` lists the further launches as ``{name, kernel, order, of,
args}``. ``kernel`` is the ``tc.order`` of the function that is launched again, as launch number
``order``. The function's buffer ``of[i]`` is buffer ``args[i]`` in this launch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcir.errors import InputError, format_location

if TYPE_CHECKING:
    from tcir._mlir import ir

REPEATS = "tc.repeats"
_FIELDS = ("name", "kernel", "order", "of", "args")


@dataclass(frozen=True)
class Repeat:
    """A further launch of a kernel: its name in the program, its order, and its buffers.

    kernel: order of the kernel's own launch
    buffers: pairs of a buffer's number in the kernel's own launch and its number in this one
    """

    name: str
    kernel: int
    order: int
    buffers: tuple[tuple[int, int], ...]

    def here(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Maps numbers of buffers in the kernel's own launch to those in this launch."""
        known = dict(self.buffers)
        return tuple(known[number] for number in numbers)

    def there(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Maps numbers of buffers in this launch to those in the kernel's own launch."""
        known = {here: there for there, here in self.buffers}
        return tuple(known[number] for number in numbers)


def repeats_of(module: ir.Module) -> list[Repeat]:
    """Returns the repeats of a module. InputError for an attribute that the pass did not write."""
    attributes = module.operation.attributes
    if REPEATS not in attributes:
        return []
    return [_repeat(module, entry) for entry in attributes[REPEATS]]


def _repeat(module: ir.Module, entry: ir.Attribute) -> Repeat:
    try:
        name, kernel, order, of, args = (entry[field] for field in _FIELDS)
        pairs = tuple(zip(map(int, of), map(int, args), strict=True))
        found = Repeat(str(name.value), int(kernel.value), int(order.value), pairs)
    except (AttributeError, KeyError, TypeError, ValueError):
        pairs = ()
    one_to_one = len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(set(pairs))
    if not pairs or not one_to_one:
        raise InputError(
            f"{format_location(module.operation.location)}tc.repeats: expected launches as "
            f"share-kernels writes them, {{{', '.join(_FIELDS)}}}, with a one-to-one mapping of "
            f"buffers, got {entry}"
        )
    return found
