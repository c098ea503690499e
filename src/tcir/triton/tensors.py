"""Arguments of a Triton kernel as `tcir.run_ptx` takes them."""

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
"""Types that torch does not hand to numpy."""
SCALARS: dict[str, Callable[[float], np.generic]] = {
    "i1": np.int8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u1": np.uint8, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "fp16": np.float16, "fp32": np.float32, "f32": np.float32, "fp64": np.float64,
}  # fmt: skip
"""By the names of Triton's signatures."""


class Descriptor(Protocol):
    """A tensor descriptor of the host, Triton's or Gluon's."""

    base: torch.Tensor
    shape: Sequence[int]
    strides: Sequence[int]
    padding: str
    round_f32_to_tf32: bool


def dtype_of(tensor: torch.Tensor) -> np.dtype:
    """numpy's type of the elements."""
    return np.dtype(FLOATS.get(tensor.dtype) or torch.empty(0, dtype=tensor.dtype).numpy().dtype)


class Storages:
    """The memory of a launch's tensors, an array of bytes for each storage, shared with torch."""

    def __init__(self) -> None:
        self._arrays: dict[int, np.ndarray] = {}

    def arrays(self) -> Iterable[np.ndarray]:
        """The bytes of each."""
        return self._arrays.values()

    def array(self, tensor: torch.Tensor) -> np.ndarray:
        """The elements as they lie in memory.

        A contiguous tensor that is all of its storage keeps its shape, for findings that name an
        element; of another it is everything from its first element on: a kernel may reach it.
        """
        if tensor.device.type != "cpu":
            raise LaunchError(f"expected tensors of the CPU, got one on {tensor.device}")
        tensor, storage = tensor.detach(), tensor.untyped_storage()
        if storage.data_ptr() not in self._arrays:
            raw = torch.empty(0, dtype=torch.uint8).set_(storage)
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
    """What a kernel gets for `values`, whose kinds the signature has; constants are in its code.

    metadata: of the tensor maps, in order; empty: the kernel makes its descriptors
    storages: where the memory of the tensors is entered
    """
    return list(_Arguments(metadata, storages).made(tuple(signature), tuple(values)))


class _Arguments:
    def __init__(self, metadata: Sequence[Mapping[str, object]], storages: Storages) -> None:
        self.metadata, self.descriptors, self.storages = metadata, 0, storages

    def made(self, kind: Kind, value: object) -> Iterator[Argument]:
        """The parameters that an argument becomes."""
        if isinstance(kind, tuple):
            for each, inner in zip(kind, cast("tuple[object, ...]", value), strict=True):
                yield from self.made(each, inner)
        elif kind == "constexpr":
            return
        elif kind.startswith("tensordesc"):
            yield from self._descriptor(cast("Descriptor", value))
        elif kind.startswith("*"):
            yield (
                np.uint64(0) if value is None else self.storages.array(cast("torch.Tensor", value))
            )
        elif kind in SCALARS:
            yield SCALARS[kind](cast("float", value))
        else:
            raise LaunchError(
                f"expected arguments of {', '.join(SCALARS)}, pointers or descriptors, got {kind}"
            )

    def _descriptor(self, value: Descriptor) -> Iterator[Argument]:
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


def _pixels(value: Descriptor) -> Pixels | None:
    """Pixels of Gluon's `TensorDescriptorIm2Col`; None: `value` describes a tile."""
    lower, upper, strides = (
        getattr(value, name, None)
        for name in ("pixel_box_lower_corner", "pixel_box_upper_corner", "element_strides")
    )
    return None if lower is None or upper is None else Pixels(lower, upper, strides)
