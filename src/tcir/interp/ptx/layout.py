"""Assigns addresses to kernel parameters, and to variables in shared and local memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tcir.interp.ptx.syntax import (
    Address,
    Function,
    Operand,
    Pair,
    PtxModule,
    Resume,
    Symbol,
    SystemCall,
    Variable,
    Vector,
)
from tcir.machine.memory.shared_names import SharedNames
from tcir.machine.placement import RESERVED, Placement


def align_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


@dataclass
class AddressLayout:
    """Addresses of variables, by name or key. Addresses in shared memory count from the start of
    the CTA's shared memory.

    shared_start: first byte of shared memory that the kernel may use
    dynamic_base: start of the dynamic shared memory
    shared_names: shared variables as the program spells them
    """

    params: dict[str, int]
    param_bytes: int
    shared: dict[str, int]
    dynamic_base: int
    local: dict[str, int]
    local_bytes: int
    shared_start: int = 0
    shared_names: dict[str, int] = field(default_factory=dict)

    def names(self) -> SharedNames:
        """Names of the shared variables, by their addresses."""
        return SharedNames(self.shared_names)

    @property
    def static_bytes(self) -> int:
        """Bytes of static shared memory, including the padding that aligns the dynamic shared
        memory.
        """
        return self.dynamic_base - self.shared_start


def _symbols(operands: Iterable[Operand | None]) -> Iterable[str]:
    for operand in operands:
        if isinstance(operand, Symbol):
            yield operand.name
        elif isinstance(operand, Vector):
            yield from _symbols(operand.items)
        elif isinstance(operand, Pair):
            yield from _symbols((operand.first, operand.second))
        elif isinstance(operand, Address):
            yield from _symbols((operand.base, *(operand.coordinates or ())))


def _saved(operands: Iterable[Operand | None]) -> Iterable[Variable]:
    """Variables that a recursive call saves, or copies, or that the driver's functions take."""
    for operand in operands:
        if isinstance(operand, SystemCall):
            yield from (*operand.arguments, *operand.results)
        if isinstance(operand, Resume):
            yield from operand.frame.variables
            yield from (v for pair in (*operand.arguments, *operand.results) for v in pair)


def lay_out(
    module: PtxModule, function: Function, placement: Placement | None = None, dynamic: int = 0
) -> AddressLayout:
    """Assigns addresses to the parameters in order, to the static shared variables that are used,
    and then to the dynamic shared variables.

    placement: None: the addresses of a launch in issue order. dynamic: bytes of dynamic shared
    memory.
    """
    params, param_bytes = _in_order({v.name: v for v in function.params})
    used = _used(module, function)
    static: dict[str, Variable] = {}
    extern: dict[str, Variable] = {}
    local: dict[str, Variable] = {}
    for key, variable in used.items():
        if variable.space == "shared":
            (extern if variable.extern and variable.size == 0 else static)[key] = variable
        elif variable.space in ("local", "param"):
            local[key] = variable
    alignment = max([16, *(v.align for v in extern.values())]) if extern else 1
    start = RESERVED
    shared, end = _in_order(static, start)
    base = align_up(end, alignment)
    if placement is not None:
        start = placement.shared_start(base - start + dynamic)
        _, end = _in_order(static, start)
        base = align_up(end, alignment)
        shared, end = _in_order(
            {key: static[key] for key in placement.shuffled(list(static))}, start
        )
        if end > base:  # it moves nothing else
            shared, end = _in_order(static, start)
    shared |= dict.fromkeys(extern, base)
    names = {used[key].name: address for key, address in shared.items()}
    return AddressLayout(params, param_bytes, shared, base, *_in_order(local), start, names)


def _used(module: PtxModule, function: Function) -> dict[str, Variable]:
    """The variables that the function names, by key."""
    used: dict[str, Variable] = {}
    for instruction in function.body or ():
        for name in _symbols(instruction.operands):
            variable = instruction.scope.variable(name) or module.variables.get(name)
            if variable is not None:
                used[variable.key] = variable
        used.update((v.key, v) for v in _saved(instruction.operands))
    return used


def _in_order(variables: Mapping[str, Variable], at: int = 0) -> tuple[dict[str, int], int]:
    """Places variables consecutively from `at` on; returns their addresses and the end."""
    places = {}
    for key, variable in variables.items():
        places[key] = at = align_up(at, variable.align)
        at += variable.size
    return places, at
