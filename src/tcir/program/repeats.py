"""Further launches of a kernel, on other buffers (pass share-kernels).

The module's attribute ``tc.repeats`` lists them: ``{name, kernel, order, of, args}``, where
``kernel`` is the ``tc.order`` of the function that is launched again as number ``order``, and its
buffer ``of[i]`` is there buffer ``args[i]``.
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
    """A further launch: its name in the program, its place, and its buffers.

    kernel: the place of the kernel's own launch
    buffers: number of each of its buffers in this launch, by that in the kernel's own
    """

    name: str
    kernel: int
    order: int
    buffers: tuple[tuple[int, int], ...]

    def here(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """The numbers, in this launch, of buffers of the kernel."""
        known = dict(self.buffers)
        return tuple(known[number] for number in numbers)

    def there(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """The other way round."""
        known = {here: there for there, here in self.buffers}
        return tuple(known[number] for number in numbers)


def repeats_of(module: ir.Module) -> list[Repeat]:
    """Repeats of a module. InputError for an attribute that the pass did not write."""
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
            f"share-kernels writes them, {{{', '.join(_FIELDS)}}}, each buffer of a kernel another "
            f"one in the launch, got {entry}"
        )
    return found
