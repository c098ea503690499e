"""Tensors of the CPU as arrays, and back, without copies where they are contiguous."""

from __future__ import annotations

import ml_dtypes
import torch

from tcir.interp.types import Array

# Types that numpy has not, by integers of their size.
_BITS = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: (torch.uint8, ml_dtypes.float8_e5m2),
    torch.float8_e8m0fnu: (torch.uint8, ml_dtypes.float8_e8m0fnu),
}
_TORCH = {dtype: kind for kind, (_, dtype) in _BITS.items()}


def array_of(tensor: torch.Tensor) -> Array:
    """The tensor's memory; of one that is not contiguous, a copy made by PyTorch."""
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
