"""Functions compiled with ``--enable-tvm-ffi``, which scripts call directly with tensors.

CuTe DSL's own TVM FFI wrapper calls the GPU's driver and accepts only tensors on a GPU. Therefore
the function is compiled without the wrapper here. A call does the work of the wrapper: it checks
its arguments against the compile-time arguments, and packs them in the same way.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import cast

from cuda.bindings import driver
from cutlass.cute import runtime
from cutlass.cute.typing import Int32, Int64, SymInt, Tensor

Compiled = Callable[..., object]


class DirectCalls:
    """A compiled function that is called directly. Its attributes are those of the function that
    CuTe DSL compiled.

    args, kwargs: arguments of `cute.compile`, including those for the compiler
    """

    def __init__(
        self, compiled: Compiled, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> None:
        expected = compiled.execution_args  # type: ignore[attr-defined]
        parameters = expected.signature.parameters
        examples = expected.get_rectified_args_from_original_args(args, kwargs)
        self._compiled = compiled
        self._examples = dict(zip(parameters, examples, strict=True))
        self._signature = inspect.Signature(
            [p for n, p in parameters.items() if not _is_callers_stream(self._examples[n])]
        )

    def __getattr__(self, name: str) -> object:
        return getattr(self._compiled, name)

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Calls the function. TypeError and ValueError for arguments that differ in kind from the
        compile-time arguments."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        symbols: dict[int, int] = {}
        return self._compiled(
            **{
                name: _converted(name, bound.arguments.get(name), example, symbols)
                for name, example in self._examples.items()
            }
        )


def _is_callers_stream(example: object) -> bool:
    """Whether a compile-time argument is torch's current stream, which calls do not pass."""
    return isinstance(example, runtime._FakeStream) and example.use_tvm_ffi_env_stream


def _converted(name: str, given: object, example: object, symbols: dict[int, int]) -> object:
    """Converts an argument to the form that the compiled function takes.

    symbols: sizes by the SymInt's id
    """
    if isinstance(example, Tensor) and given is not None:
        return _Packed(name, _tensor(given, example), example, symbols)
    if isinstance(example, runtime._FakeStream | driver.CUstream):
        return driver.CUstream(_stream(given))
    if isinstance(example, SymInt):
        size = int(cast("int", given))
        _check_size(name, size, example, symbols)
        return Int32(size) if example.width == 32 else Int64(size)
    if is_dataclass(example) and not isinstance(example, type) and is_dataclass(given):
        parts = {
            f.name: _converted(
                f"{name}.{f.name}", getattr(given, f.name), getattr(example, f.name), symbols
            )
            for f in fields(example)
        }
        return replace(given, **parts)  # type: ignore[type-var]
    if isinstance(example, list | tuple) and isinstance(given, Sequence):
        if len(given) != len(example):
            raise ValueError(f"{name}: expected {len(example)} elements, got {len(given)}")
        each = [
            _converted(f"{name}[{n}]", part, like, symbols)
            for n, (part, like) in enumerate(zip(given, example, strict=True))
        ]
        made: Callable[..., object] = type(example)
        return made(*each) if hasattr(example, "_fields") else made(each)
    return given


def _stream(given: object) -> int:
    """The number of a stream, given as a torch stream, a driver stream, or a number."""
    return int(cast("int", getattr(given, "cuda_stream", given) or 0))


def _tensor(given: object, example: Tensor) -> Tensor:
    """Converts an argument with `from_dlpack`, whatever its layout, to the element type of
    `example` if it has the same width."""
    if isinstance(given, Tensor):
        return given
    made = runtime.from_dlpack(given, assumed_align=example._assumed_align)
    packed = example.element_type
    if made.element_type.width == packed.width:  # such as tf32 in float32, e2m1 in bytes
        made.element_type = packed
    return made


def _check_size(name: str, size: int, example: SymInt, symbols: dict[int, int]) -> None:
    if size % example.divisibility:
        raise ValueError(f"{name}: expected a multiple of {example.divisibility}, got {size}")
    if symbols.setdefault(id(example), size) != size:
        raise ValueError(
            f"{name}: expected {symbols[id(example)]}, the size of its symbol in an earlier "
            f"argument, got {size}"
        )


@dataclass(frozen=True)
class _Dynamic:
    """A size that is passed at each call.

    bits: width of its integer
    """

    size: int
    bits: int


class _Packed:
    """A tensor in the form that compiled host code takes: its address, its dynamic shape, and its
    dynamic strides."""

    def __init__(self, name: str, tensor: Tensor, example: Tensor, symbols: dict[int, int]) -> None:
        if tensor.element_type != example.element_type:
            raise TypeError(
                f"{name}: expected elements of {example.element_type}, got {tensor.element_type}"
            )
        shape, stride = (cast("tuple[int, ...]", each) for each in (tensor.shape, tensor.stride))
        if len(shape) != len(cast("tuple[int, ...]", example.shape)):
            raise ValueError(f"{name}: expected {len(example.shape)} dimensions, got shape {shape}")
        align, address = example._assumed_align or 1, tensor.data_ptr
        if address % align:
            raise ValueError(f"{name}: expected a multiple of {align} as address, got {address:#x}")
        shapes = _sizes(
            f"{name}.shape", shape, example.shape, example.dynamic_shapes_mask, symbols, 32
        )
        wide = 32 if example._use_32bit_stride else 64
        free = [n == 1 for n in shape]  # the stride of one element is never used
        strides = _sizes(
            f"{name}.stride",
            stride,
            example.stride,
            example.dynamic_strides_mask,
            symbols,
            wide,
            free,
        )
        self._tensor = tensor
        self._image = _image(address, shapes, strides)

    def __c_pointers__(self) -> list[int]:
        return [ctypes.addressof(self._image)]


def _sizes(
    name: str,
    sizes: Sequence[int],
    expected: object,
    mask: Sequence[int],
    symbols: dict[int, int],
    bits: int,
    free: Sequence[bool] = (),
) -> list[_Dynamic]:
    """The dynamic sizes. ValueError for a static size that differs from the expected one.

    free: sizes that may be anything
    """
    found = []
    for n, (size, like, dynamic) in enumerate(
        zip(sizes, cast("tuple[object, ...]", expected), mask, strict=True)
    ):
        here = f"{name}[{n}]"
        if not dynamic:
            if size != like and not (free and free[n]):
                raise ValueError(f"{here}: expected {like}, got {size}")
        elif isinstance(like, SymInt):
            if not (free and free[n]):
                _check_size(here, size, like, symbols)
            found.append(_Dynamic(size, like.width))
        else:
            found.append(_Dynamic(size, bits))
    return found


def _image(address: int, *groups: Sequence[_Dynamic]) -> ctypes.Structure:
    """A C structure of the address, followed by one structure of integers per group."""
    kinds = {32: ctypes.c_int32, 64: ctypes.c_int64}

    def structure(parts: Sequence[tuple[type, object]]) -> ctypes.Structure:
        members = [(f"f{n}", kind) for n, (kind, _) in enumerate(parts)]
        made = type("Packed", (ctypes.Structure,), {"_fields_": members})
        return cast("ctypes.Structure", made(*(value for _, value in parts)))

    parts: list[tuple[type, object]] = []
    for group in groups:
        made = structure([(kinds[each.bits], each.size) for each in group])
        parts.append((type(made), made))
    sizes = structure(parts)
    return structure([(ctypes.c_uint64, address), (type(sizes), sizes)])
