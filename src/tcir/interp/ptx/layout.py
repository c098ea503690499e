"""Addresses of variables: kernel parameters, shared and local memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tcir.interp.ptx.syntax import (
    Address,
    Function,
    Module,
    Operand,
    Pair,
    Resume,
    Symbol,
    SystemCall,
    Variable,
    Vector,
)


def align_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


@dataclass
class Layout:
    """Addresses by name or key. dynamic_base: where dynamic shared memory begins. shared_names:
    shared variables as the program spells them."""

    params: dict[str, int]
    param_bytes: int
    shared: dict[str, int]
    dynamic_base: int
    local: dict[str, int]
    local_bytes: int
    shared_names: dict[str, int]


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


def lay_out(module: Module, function: Function) -> Layout:
    """Places parameters in order, static shared variables that are used, then the dynamic ones."""
    params, at = {}, 0
    for variable in function.params:
        at = align_up(at, variable.align)
        params[variable.name] = at
        at += variable.size
    used: dict[str, Variable] = {}
    for instruction in function.body or ():
        for name in _symbols(instruction.operands):
            variable_ = instruction.scope.variable(name) or module.variables.get(name)
            if variable_ is not None:
                used[variable_.key] = variable_
        used.update((v.key, v) for v in _saved(instruction.operands))
    shared: dict[str, int] = {}
    local: dict[str, int] = {}
    static = local_bytes = 0
    dynamic = []
    for key, variable in used.items():
        if variable.space == "shared" and variable.extern and variable.size == 0:
            dynamic.append((key, variable))
        elif variable.space == "shared":
            static = align_up(static, variable.align)
            shared[key] = static
            static += variable.size
        elif variable.space in ("local", "param"):
            local_bytes = align_up(local_bytes, variable.align)
            local[key] = local_bytes
            local_bytes += variable.size
    base = align_up(static, max([16, *(v.align for _, v in dynamic)])) if dynamic else static
    for key, _ in dynamic:
        shared[key] = base
    names = {used[key].name: address for key, address in shared.items()}
    return Layout(params, at, shared, base, local, local_bytes, names)
