"""Converts the caller's arguments to kernel parameters. Arguments are buffers, scalars and tensor
maps; the variables of the PTX module are bound here as well.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcir.errors import LaunchError
from tcir.interp.ptx.layout import AddressLayout
from tcir.interp.ptx.syntax import (
    Function,
    Imm,
    IntegerTable,
    PtxModule,
    Symbol,
    Variable,
    count_of,
)
from tcir.machine import TensorMap
from tcir.machine.memory.memories import ArrayPlace
from tcir.machine.tma.tensor_limits import alignment as alignment_of
from tcir.storage import outermost

#: CUDA C++ Programming Guide, "Function Parameters": 32,764 bytes from sm_70 on.
MAX_PARAMETER_BYTES = 32764
#: Bytes of one module variable on this machine, far above what kernels declare.
MAX_VARIABLE = 1 << 28


@dataclass(frozen=True, eq=False)
class Uninitialized:
    """An output buffer whose initial contents the kernel may not read: such a read is reported."""

    array: np.ndarray

    def __post_init__(self) -> None:
        if not isinstance(self.array, np.ndarray):
            raise LaunchError(
                f"Uninitialized: expected a numpy array, got {type(self.array).__name__}"
            )


class BoundArrays:
    """Binds the caller's arrays to addresses; arrays that overlap are bound through their common
    base.

    addressed: arrays that keep their CPU addresses
    written:   arrays that are partly initialised, each with a mask of its initialised bytes
    promises:  the alignment that the kernel assumes for each array, by the array's `id`; with
               `placement` "adverse" the address has exactly that alignment and no larger one
    """

    def __init__(
        self,
        machine: Any,
        args: Sequence[Any],
        addressed: Sequence[np.ndarray] = (),
        written: Sequence[tuple[np.ndarray, np.ndarray]] = (),
        promises: Mapping[int, int] | None = None,
    ) -> None:
        self.machine = machine
        self.promises = promises or {}
        self.bound: list[tuple[np.ndarray, int]] = []
        self.masks = [_mask(array, mask) for array, mask in written]
        self.partial: list[tuple[np.ndarray, np.ndarray]] = []
        """Parts of the masks, and the copies that the machine writes."""
        self.read_only: list[tuple[np.ndarray, np.ndarray, str]] = []
        """Read-only arrays, the copies that the kernel gets, and their names."""
        parts = [part for a in args for part in (a if isinstance(a, list | tuple) else (a,))]
        self.arrays = [_array(a) for a in parts if _array(a) is not None]
        self.undefined = [
            a.array
            for a in parts
            if isinstance(a, Uninitialized) or isinstance(a, TensorMap) and a.uninitialized
        ]
        if not isinstance(addressed, list | tuple) or not all(
            isinstance(each, np.ndarray) for each in addressed
        ):
            raise LaunchError(f"addressed: expected a list of numpy arrays, got {addressed!r}")
        for array in addressed:
            at = array.__array_interface__["data"][0]
            defined = self._defined(array)
            machine.memory.bind(
                array, defined=defined, name=f"the array at {at:#x}", place=ArrayPlace(at)
            )
            self.bound.append((array, at))

    def address(self, array: np.ndarray, name: str) -> int:
        """Returns the address of an array argument. name: name of its buffer in reports"""
        if array.dtype.hasobject:
            raise LaunchError("argument: expected an array of numbers, got one of Python objects")
        # Who has a masked array has imported it; another thread may be about to.
        masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())
        if isinstance(array, masked):
            raise LaunchError(f"{name}: expected an array without a mask, got one; pass a.data")
        if not array.dtype.isnative:
            raise LaunchError(
                f"{name}: expected little-endian elements, got {array.dtype.str}; convert them: "
                "a.astype(a.dtype.newbyteorder('<'))"
            )
        if not array.flags.c_contiguous:
            raise LaunchError("argument: expected a C-contiguous array, got one with other strides")
        start = array.__array_interface__["data"][0]
        for known, base in self.bound:
            offset = start - known.__array_interface__["data"][0]
            if 0 <= offset and offset + array.nbytes <= known.nbytes and array.nbytes:
                return base + offset
        whole = array
        if any(o is not array and np.may_share_memory(o, array) for o in self.arrays):
            whole = outermost(array)
            if not whole.flags.c_contiguous:
                raise LaunchError("argument: expected overlapping arrays to be views of one buffer")
        undefined = any(u is whole for u in self.undefined)
        given = whole
        if not whole.flags.writeable:
            given = np.array(whole)
            self.read_only.append((whole, given, name))
        place = ArrayPlace(offset=_offset(whole))
        if self.machine.placement.adverse and whole is array:
            place = ArrayPlace(alignment=max(self.promises.get(id(array), 1), array.itemsize))
        at: int = self.machine.memory.bind(
            given, initialized=not undefined, defined=self._defined(whole), name=name, place=place
        )
        self.bound.append((whole, at))
        return at + start - whole.__array_interface__["data"][0]

    def unfinished(self, memory: Sequence[np.ndarray]) -> None:
        """Marks the bytes of these arrays, and no others, as unfinished: in a programmatic
        dependent launch, earlier launches may still write them.
        """
        spans = [np.lib.array_utils.byte_bounds(each) for each in memory]
        for array, at in self.bound:
            start, buffer = (
                array.__array_interface__["data"][0],
                self.machine.memory.find(at, at, None),
            )
            parts = ((max(low - start, 0), min(high - start, array.nbytes)) for low, high in spans)
            buffer.unfinished = [
                slice(low // buffer.granule, -(-high // buffer.granule))
                for low, high in parts
                if low < high
            ]

    def _defined(self, array: np.ndarray) -> np.ndarray | None:
        """Mask of the initialised bytes; None: all."""
        start = array.__array_interface__["data"][0]
        for base, mask in self.masks:
            part = mask[start - base :][: array.nbytes] if start >= base else mask[:0]
            if len(part) == array.nbytes and not part.all():
                self.partial.append((part, part.copy()))
                return self.partial[-1][1]
        return None

    def keep_written(self) -> None:
        """Adds the bytes that the kernel wrote to the caller's masks of initialised bytes."""
        for part, after in self.partial:
            part[...] = after

    def written(self) -> Iterator[tuple[str, int]]:
        """Read-only arguments that the kernel wrote: the name of each, and its first written
        byte.
        """
        for before, after, name in self.read_only:
            kept = before.reshape(-1).view(np.uint8) == after.reshape(-1).view(np.uint8)
            if not kept.all():
                yield name, int(np.argmin(kept))


def _mask(array: np.ndarray, mask: np.ndarray) -> tuple[int, np.ndarray]:
    """Address of the array, and mask of its initialised bytes."""
    if mask.dtype != bool or mask.shape != (array.nbytes,):
        raise LaunchError(
            f"written: expected a bool for each of {array.nbytes} bytes, got {mask.dtype} of shape "
            f"{mask.shape}"
        )
    return array.__array_interface__["data"][0], mask


def _offset(array: np.ndarray) -> int:
    """Bytes between the array that this one is a view of, or itself, and its first element."""
    start: int = array.__array_interface__["data"][0]
    return start - int(outermost(array).__array_interface__["data"][0])


def promised(function: Function, args: Sequence[object]) -> dict[int, int]:
    """Alignment in bytes that each array in the arguments needs, by the array's `id`. A kernel
    parameter or a tensor map states the alignment; if several do, the largest counts.

    Raises LaunchError if the arguments are not a list.
    """
    if not isinstance(args, Sequence) or isinstance(args, str | bytes):
        raise LaunchError(
            "args: expected a list with one argument for each parameter of the kernel, got "
            f"{args!r:.80}"
        )
    found: dict[int, int] = {}
    for variable, arg in zip(function.params, args, strict=False):
        for part in arg if isinstance(arg, list | tuple) else (arg,):
            array = _array(part)
            if array is not None:
                step = (
                    alignment_of(part.fields) if isinstance(part, TensorMap) else variable.pointee
                )
                found[id(array)] = max(step, found.get(id(array), 1))
    return found


def _array(arg: Any) -> np.ndarray | None:
    """The device buffer that an argument names, if any."""
    if isinstance(arg, TensorMap | Uninitialized):
        return arg.array
    return arg if isinstance(arg, np.ndarray) else None


def _called(n: int, variable: Variable) -> str:
    """An argument, as reports call it: with its name, unless a compiler made it up."""
    made_up = re.search(r"_param_\d+$", variable.name)
    return f"argument {n}" if made_up else f"argument {n} ({variable.name})"


def _struct(n: int, variable: Variable, parts: Sequence[Any], buffers: BoundArrays) -> bytes:
    """The parts of a by-value parameter, concatenated; padding is a part as well."""
    what, out = _what(n, variable), b""
    for place, part in enumerate(parts):
        here = f"{what}, part {place} at byte {len(out)}"
        name = f"{_called(n, variable)}, part {place}"
        if isinstance(part, TensorMap):
            if variable.align < 64 or len(out) % 64:
                raise LaunchError(
                    f"{here}: expected a tensor map at a multiple of 64 bytes of a parameter with "
                    f".align 64 or more, got .align {variable.align}; bytes(n) pads"
                )
            out += part.encode(buffers.address(part.array, name))
        elif isinstance(part, np.ndarray | Uninitialized) and not isinstance(part, np.generic):
            array = part.array if isinstance(part, Uninitialized) else part
            out += buffers.address(array, name).to_bytes(8, "little")
        elif isinstance(part, bytes | bytearray):
            out += bytes(part)
        elif isinstance(part, np.generic):
            out += part.tobytes()
        else:
            raise LaunchError(
                f"{here}: expected bytes, a numpy array or scalar or a TensorMap, got "
                f"{type(part).__name__}"
            )
    if len(out) != variable.size:
        raise LaunchError(f"{what}: expected parts of {variable.size} bytes in all, got {len(out)}")
    return out


def _what(n: int, variable: Variable) -> str:
    return f"argument {n} ({variable.name}: .{variable.type.name}, {variable.size} bytes)"


def _parameter(n: int, variable: Variable, arg: Any, buffers: BoundArrays) -> bytes:
    what, name = _what(n, variable), _called(n, variable)
    if isinstance(arg, list | tuple):
        return _struct(n, variable, arg, buffers)
    if isinstance(arg, np.ndarray | Uninitialized) and not isinstance(arg, np.generic):
        if variable.size != 8:
            raise LaunchError(f"{what}: expected a value of that size, got an array (a pointer)")
        array = arg.array if isinstance(arg, Uninitialized) else arg
        address = buffers.address(array, name)
        if address % variable.pointee:
            raise LaunchError(
                f"{what}: expected an address that is a multiple of {variable.pointee}, as its "
                f".ptr .align promises, got a view that begins {_offset(array)} bytes into its "
                "array; pass a copy"
            )
        return address.to_bytes(8, "little")
    if isinstance(arg, TensorMap):
        if variable.size != 128 or variable.align < 64:
            raise LaunchError(f"{what}: expected .align 64 .b8 [128] for a tensor map")
        return arg.encode(buffers.address(arg.array, name))
    if isinstance(arg, int | float) and not isinstance(arg, np.generic):
        arg = _number(what, variable, arg)
    if isinstance(arg, bytes | bytearray):
        if len(arg) != variable.size:
            raise LaunchError(f"{what}: expected {variable.size} bytes, got {len(arg)}")
        return bytes(arg)
    if isinstance(arg, np.generic):
        if arg.itemsize != variable.size:
            raise LaunchError(f"{what}: got a {arg.dtype} scalar of {arg.itemsize} bytes")
        integer = arg.dtype.kind in "iub"
        if variable.type.kind == "f" and integer or variable.type.kind in "us" and not integer:
            raise LaunchError(f"{what}: got a {arg.dtype} scalar")
        return arg.tobytes()
    raise LaunchError(
        f"{what}: expected a numpy array, a number, bytes, a TensorMap or a tuple of "
        f"such parts, got {type(arg).__name__}"
    )


def _number(what: str, variable: Variable, value: float) -> np.generic:
    """A number of Python as the parameter's type; of .b types an integer is unsigned."""
    kind, size = variable.type.kind, variable.type.size
    whole = isinstance(value, int)
    if variable.array or kind in "us" and not whole or size < 2 - whole:
        raise LaunchError(f"{what}: got {value!r}")
    dtype = np.dtype(f"{'f' if not whole or kind == 'f' else 'i' if kind == 's' else 'u'}{size}")
    if dtype.kind != "f" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise LaunchError(f"{what}: got {value}, which does not fit")
    return dtype.type(value)


def bind_variables(
    module: PtxModule, machine: Any, kept: dict[str, np.ndarray] | None = None
) -> dict[str, int]:
    """Binds the global and constant variables of the module to addresses, and initialises them
    (with zeros if the text gives no value).

    kept: bytes of the variables that earlier launches have bound, by name. These bytes stay as they
    are, except those of variables initialised with addresses; variables bound now are added. A
    variable that is among the arrays with CPU addresses is bound at its CPU address.
    """
    bound: dict[str, int] = {}
    images: dict[str, np.ndarray] = {}
    for variable in module.variables.values():
        if variable.space not in ("global", "const") or variable.extern:
            continue  # a use of what is only declared is named as incomplete
        if variable.size > MAX_VARIABLE:
            raise LaunchError(
                f"variable {variable.name}: expected at most {MAX_VARIABLE} bytes, "
                f"got {variable.size}"
            )
        known = (kept or {}).get(variable.name)
        image = np.zeros(variable.size, np.uint8) if known is None else known
        if known is None or holds_addresses(variable):
            images[variable.name] = image
        elif machine.memory.holds(known.ctypes.data, known.ctypes.data + known.nbytes):
            bound[variable.name] = known.ctypes.data  # the caller has its address
            continue
        alignment = variable.align if machine.placement.adverse else 256
        bound[variable.name] = machine.memory.bind(
            image,
            result=False,
            kept=kept is not None,
            constant=variable.space == "const",
            name=f"variable {variable.name}",
            place=ArrayPlace(alignment=alignment),
        )
    for name, image in images.items():
        initialise(image, module.variables[name], bound, module)
    if kept is not None:
        kept |= images
    return bound


def holds_addresses(variable: Variable) -> bool:
    """Whether a variable's initial value names other variables or functions."""
    return any(isinstance(value, Symbol) for value in variable.initial or ())


def initialise(
    image: np.ndarray, variable: Variable, bound: Mapping[str, int], module: PtxModule
) -> None:
    """Writes the initial value of a variable. bound: the addresses of the module's variables, by
    name
    """
    name, size, initial = variable.name, variable.type.size, variable.initial or ()
    if count_of(initial) * size > variable.size:
        raise LaunchError(f"variable {name}: expected at most {variable.size} bytes of values")

    def data(value: Imm | Symbol | IntegerTable) -> bytes:
        if isinstance(value, IntegerTable):
            return _table(value, size)
        if isinstance(value, Symbol):
            bits = _address(name, value, bound, module)
        else:
            bits = _initial(variable, value)
        return (bits & (1 << 8 * size) - 1).to_bytes(size, "little")

    written = b"".join(map(data, initial))
    image[: len(written)] = np.frombuffer(written, np.uint8)


def _table(table: IntegerTable, size: int) -> bytes:
    """Bytes of the table's numbers, `size` bytes each."""
    low = table.values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :size]
    found = np.zeros((len(low), size), np.uint8)
    found[:, : low.shape[1]] = low
    return found.tobytes()


def _address(name: str, symbol: Symbol, bound: Mapping[str, int], module: PtxModule) -> int:
    """An initial value that is the address of a variable or function, or some bits of it."""
    base = bound.get(symbol.name, module.address(symbol.name))
    if base is None:
        raise LaunchError(f"variable {name}: {symbol.name} has no address")
    address = base + symbol.offset
    if symbol.mask is None:
        return address
    lowest = (symbol.mask & -symbol.mask).bit_length() - 1 if symbol.mask else 0
    return (address & symbol.mask) >> lowest


def _initial(variable: Variable, value: Imm) -> int:
    """The bits of a constant, as ptxas writes them: of type .b64 a decimal float is an f64, of
    narrower ones an f32."""
    bits = int(value.value)
    if value.kind == "int":
        return bits
    size = variable.type.size
    if value.kind == "f32" and (variable.type.kind == "b" or size == 4):
        return bits
    if value.kind == "f64" and size == 8:
        return bits
    number = (
        np.uint64(bits).view(np.float64)
        if value.kind == "f64"
        else (np.uint32(bits).view(np.float32))
    )
    return int(np.float64(number).view("u8") if size == 8 else np.float32(number).view("u4"))


def parameters(
    function: Function, layout: AddressLayout, args: Sequence[Any], buffers: BoundArrays
) -> bytes:
    if len(args) != len(function.params):
        names = ", ".join(p.name for p in function.params) or "none"
        raise LaunchError(f"args: expected {len(function.params)} ({names}), got {len(args)}")
    if layout.param_bytes > MAX_PARAMETER_BYTES:
        raise LaunchError(
            f"parameters: expected at most {MAX_PARAMETER_BYTES} bytes, got {layout.param_bytes}"
        )
    out = bytearray(layout.param_bytes)
    for n, (variable, arg) in enumerate(zip(function.params, args, strict=True)):
        at = layout.params[variable.name]
        out[at : at + variable.size] = _parameter(n, variable, arg, buffers)
    return bytes(out)
