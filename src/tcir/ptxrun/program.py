"""Programs that have a launch file next to the PTX; to launch them, only arrays are needed as
arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcir.program.inputs import poison
from tcir.program.launch import Call
from tcir.program.launch_file import Argument, LaunchFile
from tcir.program.memory_image import image_spec, is_image, to_memory
from tcir.run import LaunchError


def bind(file: LaunchFile, given: Sequence[object]) -> list[object]:
    """Values of all arguments: inputs come from `given`, in order; results are filled with poison;
    constants come from the launch file. Raises LaunchError for a wrong number of inputs.
    """
    wanted = [a for a in file.arguments if a.access != "write" and a.data is None]
    if len(given) != len(wanted):
        listed = ", ".join(a.words for a in wanted) or "none"
        raise LaunchError(f"--arg: expected {len(wanted)} ({listed}), got {len(given)}")
    values = iter(given)

    def value(argument: Argument) -> object:
        if argument.access == "write":
            return poison(image_spec(argument.spec))
        return _fit(argument, next(values)) if argument.data is None else argument.data.copy()

    return [value(each) for each in file.arguments]


def calls(file: LaunchFile, values: Sequence[object]) -> tuple[list[Call], list[np.ndarray]]:
    """The launches with their arguments, and the workspaces that they share."""
    spaces = [np.full(size, 0xCB, np.uint8) for size in file.launches.workspaces.sizes]
    written = [n for n, a in enumerate(file.arguments) if a.access == "write"]
    written += range(len(values), len(values) + len(spaces))
    return list(file.launches.calls([*values, *spaces], written)), spaces


def _fit(argument: Argument, value: object) -> object:
    """The memory image of a value, which must have the argument's type and shape. Types that .npy
    does not support, such as bfloat16, are given as bytes of their size."""
    spec = argument.spec
    if isinstance(value, np.generic) and not argument.scalar and not spec.shape:
        value = np.array(value)
    if argument.scalar and isinstance(value, np.generic) and value.dtype == spec.dtype:
        return value
    if isinstance(value, np.ndarray) and not argument.scalar:
        if is_image(value, spec):
            return value
        bits = value.dtype.kind in "Vu" and value.dtype.itemsize == spec.dtype.itemsize
        if value.shape == spec.shape and (bits or value.dtype == spec.dtype):
            return to_memory(value.view(spec.dtype))
    got = repr(value)
    if isinstance(value, np.ndarray | np.generic):
        got = f"{value.dtype.name}{list(value.shape)}"
    raise LaunchError(f"--arg: expected {argument.words}, got {got}")
