"""Records in `Allocations` the memory that torch allocates and writes, as far as scripts call
torch's functions by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.parameter import Parameter

from tcir.doors.memory import Allocations

_EMPTY = (
    torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted,
    torch.Tensor.new_empty, torch.Tensor.new_empty_strided,
)  # fmt: skip
ALIGNMENT = 512
"""Alignment in bytes of memory from PyTorch's GPU allocator."""
_ONE_OWNER = 2
"""Use count of a storage that one tensor owns: the tensor's own, and that of the storage object
queried here."""
_GIVEN = ("from_numpy", "frombuffer", "from_dlpack", "as_tensor", "asarray", "from_file")
_NO_WRITES = {
    f"{name}_"
    for name in ("as_strided", "detach", "requires_grad", "resize_as", "set", "share_memory",
                 "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze")
}  # fmt: skip
"""In-place functions that do not change the tensor's memory."""
_PARTS = ("fill_diagonal_", "index_", "masked_", "put_", "scatter_")
"""Prefixes of in-place functions that write part of the tensor; its contents show which part."""


def called(
    memory: Allocations,
    func: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> object:
    """Calls one of torch's functions and records its effects; returns its result.

    Writes by other code, and by torch functions that torch itself calls, are not recorded here;
    `Allocations` finds them later.
    """
    name, first = getattr(func, "__name__", ""), _plain(args[0]) if args else None
    before = first.untyped_storage().nbytes() if name == "resize_" and first is not None else 0
    if before and not first.untyped_storage().resizable():  # type: ignore[union-attr]
        first.data = first.clone()  # type: ignore[union-attr]
    made = func(*args, **kwargs)
    if kwargs.get("out") is None and name not in _GIVEN and not name.startswith("__"):
        for each in made if isinstance(made, tuple | list) else (made,):
            if all(each is not arg for arg in args):
                _align(each)
    if func in _EMPTY and kwargs.get("out") is None:
        _allocated(memory, made)
    elif first is not None and name == "resize_":
        if first.untyped_storage().nbytes() > before:
            _allocated(memory, first, before)
    elif first is not None and name == "__setitem__":
        if memory.mask(_start(first)) is not None:
            part = first[args[1]]
            if _start(part) == _start(first):
                _wrote(memory, part)
    elif first is not None and name == "copy_" and (source := _alike(first, args[1:])) is not None:
        memory.copied(first.data_ptr(), source.data_ptr(), first.nbytes)
    elif args and _writes_all(name):
        _wrote(memory, args[0])
    _wrote(memory, kwargs.get("out"))
    return made


def cloned(memory: Allocations, tensor: torch.Tensor) -> torch.Tensor:
    """Copy of a tensor; a byte of the copy is initialised if the tensor's byte is."""
    made = tensor.clone()
    _align(made)
    if _alike(made, [tensor]) is not None and memory.mask(tensor.data_ptr()) is not None:
        _allocated(memory, made)
        made.data.copy_(tensor.data)
        memory.copied(made.data_ptr(), tensor.data_ptr(), made.nbytes)
    return made


def _align(made: object) -> None:
    """Moves the memory of new tensors to a multiple of 512 bytes, as on a GPU.

    Memory with another owner stays where it is.
    """
    tensor = _plain(made)
    if tensor is None or tensor.layout != torch.strided or tensor._base is not None:
        return
    storage = tensor.untyped_storage()
    size, where = storage.nbytes(), storage.data_ptr()
    alone = torch._C._storage_Use_Count(storage._cdata) <= _ONE_OWNER
    if not size or where % ALIGNMENT == 0 or not alone:
        return
    room = np.empty(size + ALIGNMENT, np.uint8)
    first = -room.ctypes.data % ALIGNMENT
    moved = torch.as_tensor(room[first : first + size], device="cpu").untyped_storage()
    moved.copy_(storage)
    tensor.data = torch.empty(0, dtype=tensor.dtype, device="cpu").set_(
        moved, tensor.storage_offset(), tensor.shape, tensor.stride()
    )


def _writes_all(name: str) -> bool:
    """Whether the function of that name writes all of its first argument."""
    in_place = name.endswith("_") and not name.endswith("__")
    return in_place and name not in _NO_WRITES and not name.startswith(_PARTS)


def _plain(tensor: object) -> torch.Tensor | None:
    """The tensor if it has CPU memory, else None."""
    if not isinstance(tensor, torch.Tensor) or type(tensor) not in (torch.Tensor, Parameter):
        return None
    try:
        tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # of torch.func's transformations
        return None
    return tensor if tensor.device.type == "cpu" else None


def _start(tensor: torch.Tensor) -> int:
    """Address of the tensor's storage."""
    return tensor.untyped_storage().data_ptr()


def _alike(target: torch.Tensor, given: Sequence[object]) -> torch.Tensor | None:
    """The source of a copy into `target` if both are contiguous and have the same type and shape,
    else None."""
    source = _plain(given[0]) if given else None
    if source is None or (source.dtype, source.shape) != (target.dtype, target.shape):
        return None
    return source if source.is_contiguous() and target.is_contiguous() else None


def _allocated(memory: Allocations, given: object, kept: int = 0) -> None:
    if (tensor := _plain(given)) is not None:
        storage = tensor.untyped_storage()
        where, size = storage.data_ptr(), storage.nbytes()
        memory.allocated(where, size, partial(_there, StorageWeakRef(storage), where, size), kept)


def _there(reference: StorageWeakRef, where: int, size: int) -> bool:
    storage = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
    return storage is not None and (storage.data_ptr(), storage.nbytes()) == (where, size)


def _wrote(memory: Allocations, given: object) -> None:
    for tensor in given if isinstance(given, list | tuple) else (given,):
        known = _plain(tensor)
        if known is not None and known.nbytes and (found := memory.mask(known.data_ptr())):
            mask, at = found
            size = known.element_size()
            shape, strides = (*known.shape, size), (*(n * size for n in known.stride()), 1)
            np.lib.stride_tricks.as_strided(mask[at:], shape, strides)[...] = True
