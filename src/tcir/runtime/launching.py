"""Launches a compiled kernel on the caller's arrays."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tcir.errors import InputError
from tcir.interp import OutputSpec
from tcir.program.frozen import with_scratch
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.memory_image import PACKED_BITS, from_memory, image_spec, is_image, to_memory
from tcir.program.ways_out import to_type
from tcir.runtime import dlpack
from tcir.runtime.devices import Device, device
from tcir.runtime.driver import call
from tcir.runtime.launch_list import LaunchList
from tcir.runtime.memory import to_device
from tcir.runtime.module import load, synchronize
from tcir.runtime.prepared import Allocate, CompiledKernel, Prepared


def launch(kernel: CompiledKernel, *buffers: Any, stream: Any = None) -> None:
    """Runs `kernel` on a GPU. The buffers are the inputs, followed by the results, which are
    written in place.

    Buffers are C-contiguous arrays of the kernel's shapes and element types. Arrays in device
    memory with DLPack (PyTorch, CuPy, JAX, `tcir.runtime.empty`) are used in place. numpy (and
    ml_dtypes) arrays are copied to the device and back. Elements of 4 and 6 bits are packed on the
    device (`tcir.program.memory_image`); numpy arrays of such elements are packed when they are
    copied. `stream` is a handle, or a stream of PyTorch, CuPy or cuda.core; None is the current
    stream of the library of the first device array.

    If all buffers are device arrays, the call returns as soon as the launch is on the stream, and
    `tcir.runtime.synchronize` reports a fault of the kernel. If a numpy array is among the buffers,
    the call waits and reports a fault itself. Either report names the kernel. The first call copies
    constants of the program to the device, where they stay as long as the loaded code.
    """
    specs = (*kernel.signature.inputs, *kernel.signature.outputs)
    if len(buffers) != len(specs):
        words = ", ".join(f"{s.dtype.name}{list(s.shape)}" for s in specs)
        raise InputError(
            f"@{kernel.name}: expected {len(specs)} arrays ({words}), got {len(buffers)}"
        )
    handle = current_stream(buffers) if stream is None else stream_handle(stream)
    pointers: list[int | None] = []
    images: dict[int, np.ndarray[Any, Any]] = {}
    devices: set[int] = set()
    for number, (spec, buffer) in enumerate(zip(specs, buffers, strict=True)):
        what = f"@{kernel.name}: argument {number}"
        if isinstance(buffer, np.ndarray):
            if not is_image(buffer, spec):
                way_out = to_type(buffer, spec.dtype)
                words = buffer.dtype.name
                check(what, spec.shape, spec.dtype, buffer.shape, buffer.dtype, words, way_out)
            images[number] = to_memory(buffer)
            pointers.append(None)
            continue
        view = device_buffer(what, spec, buffer, handle)
        pointers.append(view.pointer)
        devices.add(view.device_id)
    if len(devices) > 1:
        raise InputError(
            f"@{kernel.name}: expected arrays on one device, got {sorted(devices)}; move them to "
            "the same GPU"
        )
    on = device(devices.pop() if devices else 0)
    if not kernel.launches.launches:  # all results are without elements
        return
    load(kernel.cubin, on)  # rejects a wrong architecture before anything is copied
    copies = {n: to_device(array, on) for n, array in images.items()}
    addresses = [copies[n].pointer if p is None else p for n, p in enumerate(pointers)]
    inputs = len(kernel.signature.inputs)
    with on_stream(on, handle) as allocate:
        Prepared(kernel, on, handle, allocate)(addresses[:inputs], addresses[inputs:])
    if copies:
        synchronize(handle)
    for n in range(len(kernel.signature.inputs), len(buffers)):
        if n in copies:
            result = copies[n].numpy(handle)
            buffers[n][...] = (
                result if is_image(buffers[n], specs[n]) else from_memory(result, specs[n])
            )


def launch_pointers(
    sizes: Launch, cubin: bytes, pointers: Sequence[int], on: Device, stream: int = 0
) -> None:
    """Launches a kernel on device addresses, one per buffer of the kernel's ABI.

    Parameters of kind ``workspace`` get memory of their own, allocated and freed on the stream.
    """
    one = with_scratch(LaunchSequence((sizes,)), len(pointers))
    with on_stream(on, stream) as allocate:
        arena = allocate(one.workspaces.arena)[1] if one.workspaces.arena else 0
        places = [arena + offset for offset in one.workspaces.offsets]
        LaunchList(one.launches, load(cubin, on), stream)([*pointers, *places])


@contextmanager
def on_stream(on: Device, stream: int) -> Iterator[Allocate]:
    """Memory that is allocated and freed in the order of a stream."""
    taken: list[Any] = []

    def allocate(size: int) -> tuple[None, int]:
        on.activate()
        taken.append(call("cuMemAllocAsync", size, stream))
        return None, int(taken[-1])

    try:
        yield allocate
    finally:
        for each in taken:
            call("cuMemFreeAsync", each, stream)


def device_buffer(what: str, spec: OutputSpec, buffer: Any, stream: int) -> dlpack.View:
    """Memory of another library's array. Raises `InputError` unless a GPU can access it and it is a
    C-contiguous buffer with the shape and type of `spec`.
    """
    view = device_view(what, buffer, stream)
    image = image_spec(spec)  # elements of 4 and 6 bits lie packed in bytes
    unsigned = spec.dtype in PACKED_BITS and view.dtype == np.uint8
    found = image.dtype if unsigned else view.dtype
    check(what, image.shape, image.dtype, view.shape, found, view.type_words)
    if not view.contiguous:
        raise InputError(
            f"{what}: expected a C-contiguous array, got strides {view.strides} (in elements) "
            f"for shape {list(view.shape)}; make a contiguous copy"
        )
    return view


def device_view(what: str, buffer: Any, stream: int) -> dlpack.View:
    """Device address of another library's array. Raises `InputError` unless a GPU can access the
    array.
    """
    if not hasattr(buffer, "__dlpack__"):
        raise InputError(
            f"{what}: expected a numpy array or one with __dlpack__ (PyTorch, CuPy, JAX), got "
            f"{type(buffer).__name__}"
        )
    kind, _ = buffer.__dlpack_device__()
    if kind not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        raise InputError(
            f"{what}: expected an array in CUDA device memory, got one of DLPack device type "
            f"{int(kind)}; move it to the device, or pass a numpy array, which is copied"
        )
    # DLPack's number of the legacy default stream is 1; 0 is ambiguous to it.
    return dlpack.view(buffer, stream or 1)


def check(
    what: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    got_shape: tuple[int, ...],
    got_dtype: np.dtype[Any] | None,
    words: str,
    way_out: str = "",
) -> None:
    """Raises `InputError` unless the shape and the element type are as expected."""
    if got_shape != tuple(shape) or got_dtype != dtype:
        got = got_dtype.name if got_dtype is not None else words
        raise InputError(
            f"{what}: expected an array {dtype.name}{list(shape)}, got {got}{list(got_shape)}"
            + (way_out and f"; {way_out}")
        )


def stream_handle(stream: Any) -> int:
    """The CUstream of an int or of a stream object (PyTorch, CuPy, cuda.core)."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):  # the protocol of cuda.core: (version, handle)
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise InputError(
        f"stream: expected a handle or a CUDA stream object, got {type(stream).__name__}"
    )


def current_stream(buffers: Sequence[Any]) -> int:
    """The current stream of the library of the first device array; 0 (the legacy default stream) if
    there is no device array.
    """
    for buffer in buffers:
        # A subclass of a library's array is one of its arrays.
        libraries = {each.__module__.split(".")[0] for each in type(buffer).__mro__}
        if "torch" in libraries and buffer.is_cuda:
            return int(sys.modules["torch"].cuda.current_stream(buffer.device).cuda_stream)
        if "cupy" in libraries:
            return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return 0
