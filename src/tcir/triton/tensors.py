"""Converts arguments of a Triton kernel to the form that `tcir.run_ptx` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias, cast

import ml_dtypes
import numpy as np
import torch

from tcir.doors.launches import Argument
from tcir.errors import LaunchError
from tcir.ptxrun.tensor_descriptors import Pixels, descriptor

Kind: TypeAlias = "str | tuple[Kind, ...]"
"""A type of Triton's signatures."""
FLOATS = {
    torch.bfloat16: ml_dtypes.bfloat16,
    torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn,
    torch.float8_e5m2: ml_dtypes.float8_e5m2,
    torch.float8_e8m0fnu: ml_dtypes.float8_e8m0fnu,
    torch.float4_e2m1fn_x2: np.uint8,
}
"""numpy types for element types that torch cannot convert to numpy."""
SCALARS: dict[str, Callable[[float], np.generic]] = {
    "i1": np.int8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u1": np.uint8, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "fp16": np.float16, "fp32": np.float32, "f32": np.float32, "fp64": np.float64,
}  # fmt: skip
"""numpy types of scalars, by their names in Triton's signatures."""


class Addressed(Protocol):
    """An object that Triton accepts as a pointer."""

    def data_ptr(self) -> int:
        """Address of the data, as an integer."""


class HostDescriptor(Protocol):
    """A tensor descriptor created on the host by Triton or Gluon."""

    base: torch.Tensor
    shape: Sequence[int]
    strides: Sequence[int]
    padding: str
    round_f32_to_tf32: bool


def dtype_of(tensor: torch.Tensor) -> np.dtype:
    """numpy type of a tensor's elements."""
    return np.dtype(
        FLOATS.get(tensor.dtype) or torch.empty(0, dtype=tensor.dtype, device="cpu").numpy().dtype
    )


class Storages:
    """Memory of a launch's tensors: one array of bytes per storage, shared with torch."""

    def __init__(self) -> None:
        self._arrays: dict[int, np.ndarray] = {}

    def arrays(self) -> Iterable[np.ndarray]:
        """The bytes of each storage."""
        return self._arrays.values()

    def array(self, tensor: torch.Tensor) -> np.ndarray:
        """The elements of a tensor in the order of memory.

        A contiguous tensor that fills its storage keeps its shape, so that findings can name an
        element. For another tensor the array contains the whole storage from the tensor's first
        element on, because a kernel may access all of it.
        """
        tensor, storage = tensor.detach(), tensor.untyped_storage()
        if storage.device.type != "cpu":
            raise LaunchError(f"expected tensors on the CPU, got one on {storage.device}")
        if storage.data_ptr() not in self._arrays:
            raw = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage)
            self._arrays[storage.data_ptr()] = raw.numpy()
        data = self._arrays[storage.data_ptr()]
        kind = dtype_of(tensor)
        if tensor.is_contiguous() and tensor.nbytes == data.nbytes:
            return data.view(kind).reshape(tensor.shape)
        data = data[tensor.storage_offset() * kind.itemsize :]
        return data[: data.size // kind.itemsize * kind.itemsize].view(kind)


def arguments(
    signature: Sequence[Kind],
    values: Sequence[object],
    metadata: Sequence[Mapping[str, object]],
    storages: Storages,
) -> list[Argument]:
    """Kernel parameters for `values`, whose kinds are in the signature. Constants are left out,
    because they are part of the compiled code.

    metadata: metadata of the tensor maps, in order; empty if the kernel creates its descriptors
        itself
    storages: receives the memory of the tensors
    """
    return list(_Arguments(metadata, storages).made(tuple(signature), tuple(values)))


class _Arguments:
    def __init__(self, metadata: Sequence[Mapping[str, object]], storages: Storages) -> None:
        self.metadata, self.descriptors, self.storages = metadata, 0, storages

    def made(self, kind: Kind, value: object) -> Iterator[Argument]:
        """Parameters of the kernel for one argument."""
        if isinstance(kind, tuple):
            for each, inner in zip(kind, cast("tuple[object, ...]", value), strict=True):
                yield from self.made(each, inner)
        elif kind == "constexpr":
            return
        elif kind.startswith("tensordesc"):
            yield from self._descriptor(cast("HostDescriptor", value))
        elif kind.startswith("*"):
            yield self._pointer(value)
        elif kind in SCALARS:
            yield SCALARS[kind](cast("float", value))
        else:
            raise LaunchError(
                f"expected arguments of {', '.join(SCALARS)}, pointers or descriptors, got {kind}"
            )

    def _pointer(self, value: object) -> Argument:
        """A pointer: to a tensor, to memory at the address that any other object gives as its
        `data_ptr`, as Triton allows, or to nothing."""
        if isinstance(value, torch.Tensor):
            return self.storages.array(value)
        return np.uint64(0 if value is None else cast("Addressed", value).data_ptr())

    def _descriptor(self, value: HostDescriptor) -> Iterator[Argument]:
        base, shape, strides = self.storages.array(value.base), value.shape, value.strides
        if self.metadata:
            fill = "nan" if value.padding == "nan" else "zero"
            yield from descriptor(
                base, self.descriptors, self.metadata,
                shape=shape, strides=strides, oob_fill=fill, tf32=value.round_f32_to_tf32,
                pixels=_pixels(value),
            )  # fmt: skip
            self.descriptors += 1
            return
        yield base
        yield from map(np.int64, [*shape, *strides])
        yield from map(np.int8, [value.padding == "nan", value.round_f32_to_tf32])
        yield from map(np.int32, shape)
        yield from map(np.int64, strides)


def _pixels(value: HostDescriptor) -> Pixels | None:
    """Pixels of Gluon's `TensorDescriptorIm2Col`; None: `value` describes a tile."""
    lower, upper, strides = (
        getattr(value, name, None)
        for name in ("pixel_box_lower_corner", "pixel_box_upper_corner", "element_strides")
    )
    return None if lower is None or upper is None else Pixels(lower, upper, strides)
