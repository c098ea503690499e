"""Passes the memory of tensors to kernels; contiguous tensors are not copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Unpack

import ml_dtypes
import numpy as np
import torch

from tcir.errors import InputError, check_names
from tcir.interp.types import Array
from tcir.kernel import CallOptions, Kernel
from tcir.target import DEFAULT_TARGET, EMULATED, TARGETS, architecture_of

# Types that numpy has not, by integers of their size.
_BITS = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: (torch.uint8, ml_dtypes.float8_e5m2),
    torch.float8_e8m0fnu: (torch.uint8, ml_dtypes.float8_e8m0fnu),
}
_TORCH = {dtype: kind for kind, (_, dtype) in _BITS.items()}
_EMULATE: ContextVar[bool] = ContextVar("emulate", default=False)
_MACHINE: ContextVar[CallOptions | None] = ContextVar("machine", default=None)


def is_emulated() -> bool:
    """Whether, in the current context (`emulation`), kernels on a GPU run by emulation."""
    return _EMULATE.get()


@contextmanager
def emulation(emulate: bool) -> Iterator[None]:
    """Context in which kernels on a GPU run by emulation if `emulate` is set; this includes kernels
    of ops that choose their target themselves.
    """
    token = _EMULATE.set(emulate)
    try:
        yield
    finally:
        _EMULATE.reset(token)


@contextmanager
def machine(**options: Unpack[CallOptions]) -> Iterator[None]:
    """Context in which kernels of CPU tensors are executed with these options of
    `tcir.kernel.CallOptions`, for example ``jobs=2`` and ``hazards="off"``.

    Raises `UnknownNameError` for another option; the values are checked when a kernel is executed.
    """
    check_names("tcir.torch.machine", options, CallOptions)
    token = _MACHINE.set({**(_MACHINE.get() or {}), **options})
    try:
        yield
    finally:
        _MACHINE.reset(token)


def array_of(tensor: torch.Tensor) -> Array:
    """The tensor's memory as an array; a tensor that is not contiguous is copied by PyTorch."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype not in _BITS:
        return tensor.numpy()
    bits, dtype = _BITS[tensor.dtype]
    return tensor.view(bits).numpy().view(dtype)


def tensor_of(array: Array) -> torch.Tensor:
    """The array's memory as a tensor."""
    dtype = array.dtype.type
    if dtype not in _TORCH:
        return torch.from_numpy(array)
    bits = array.view("int16" if array.itemsize == 2 else "uint8")
    return torch.from_numpy(bits).view(_TORCH[dtype])


def as_bytes(tensor: torch.Tensor, kind: torch.dtype = torch.int8) -> torch.Tensor:
    """Returns a tensor of uint8 viewed as int8 or, if `kind` requires it, int8 viewed as uint8;
    returns other tensors unchanged. Kernels have one 8-bit integer type, which their instructions
    treat as signed or unsigned.
    """
    return tensor.view(kind) if {tensor.dtype, kind} == {torch.int8, torch.uint8} else tensor


def simulated(kernel: Kernel, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Runs the kernel on the simulated machine on CPU tensors; returns its results."""
    arrays = [np.zeros(spec.shape, spec.dtype) for spec in kernel.signature.outputs]
    given = [
        as_bytes(each) if spec.dtype == np.int8 else each
        for spec, each in zip(kernel.signature.inputs, tensors, strict=True)
    ]
    kernel(*map(array_of, given), *arrays, **(_MACHINE.get() or {}))
    return list(map(tensor_of, arrays))


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor."""
    return isinstance(value, torch.Tensor)


def has_strides(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether these are the strides of a contiguous tensor."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and stride != expected:
            return False
        expected *= max(size, 1)
    return True


def with_strides(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The tensor with these strides, in elements: the tensor itself, or a copy.

    If elements share memory because of a stride of 0 (`expand`), they also share it in the copy. If
    elements overlap in another way, as those of sliding windows do, the tensor is returned
    unchanged.
    """
    used = [d for d, size in enumerate(tensor.shape) if size > 1]
    if all(tensor.stride(d) == strides[d] for d in used) or not tensor.numel():
        return tensor
    once = tensor
    for d in used:
        if strides[d] == 0:
            once = once.narrow(d, 0, 1)
    if not is_injective(once.shape, strides):
        return tensor
    made = torch.empty_strided(once.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return made.copy_(once).expand(tensor.shape)


def is_injective(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether each element of a tensor with this shape and these strides has an address of its
    own."""
    extent = 1
    for stride, size in sorted((t, n) for n, t in zip(shape, strides, strict=True) if n > 1):
        if stride < extent:
            return False
        extent = stride * (size - 1) + extent
    return True


def target_of(tensors: Sequence[torch.Tensor]) -> str:
    """The target of kernels for these tensors. For GPU tensors it is the target of their GPU or, in
    `emulation`, the target that the GPU emulates; for CPU tensors it is the default target. Raises
    InputError for other devices.
    """
    device = tensors[0].device if tensors else torch.device("cpu")
    if device.type == "cpu":
        return DEFAULT_TARGET.name
    if device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        if _EMULATE.get() and (major, minor) == (9, 0):
            return EMULATED
        found = [name for name in TARGETS if architecture_of(name) == f"sm_{major}{minor}"]
        if found:
            return found[-1]
        got = name_of_gpu(device)
    else:
        got = str(device)
    raise InputError(
        f"expected tensors on the CPU, for the simulated machine, or on a GPU of "
        f"{', '.join(TARGETS)}, got tensors on {got}; move them with .cpu()"
    )


def name_of_gpu(device: torch.device) -> str:
    major, minor = torch.cuda.get_device_capability(device)
    return f"{torch.cuda.get_device_name(device)} (sm_{major}{minor})"


def kind_of(dtype: np.dtype[np.generic]) -> torch.dtype:
    """PyTorch's type for an element type of numpy."""
    return tensor_of(np.zeros((), dtype)).dtype
