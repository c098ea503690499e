"""Records launches as files for `tcir.testing.gpu`: `--record-launches FOLDER` of pytest and
`peers.run`.

Launches for sm_100a are recorded if the machine executes them without a finding, with exact
numerics and the default assumptions; equal launches are recorded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

import tcir.run
from tcir.interp.ptx.arguments import BoundArrays, parameters
from tcir.interp.ptx.launch import LaunchState
from tcir.interp.ptx.layout import AddressLayout
from tcir.interp.ptx.program import DecodedEntry
from tcir.interp.ptx.syntax import Function
from tcir.machine import TensorMap
from tcir.run import Observer, RunReport, Uninitialized
from tcir.runtime.replay import Fields
from tcir.storage import outermost
from tcir.target import EMULATED, architecture_of
from tcir.testing.recorded import Bytes, RecordedLaunch

MOST_BYTES = 1 << 23
"""Maximum size of the buffers of a launch, in bytes."""


class ArgumentTable:
    """The distinct arrays of arguments, by number."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []

    def place(self, array: np.ndarray) -> dict[str, int]:
        whole = outermost(array, contiguous=True)
        start = whole.__array_interface__["data"][0]
        places = [(a.__array_interface__["data"][0], a.nbytes) for a in self.arrays]
        if (start, whole.nbytes) not in places:
            places.append((start, whole.nbytes))
            self.arrays.append(whole)
        n = places.index((start, whole.nbytes))
        return {"buffer": n, "offset": array.__array_interface__["data"][0] - start}

    def part(self, arg: object) -> Fields:
        if isinstance(arg, TensorMap):
            at = self.place(arg.array)
            at["offset"] += arg.offset_bytes
            return {"map": asdict(arg.fields), **at}
        array = arg.array if isinstance(arg, Uninitialized) else arg
        if isinstance(array, np.ndarray):
            at = self.place(array)
            return {"pointer": at["buffer"], "offset": at["offset"]}
        if not isinstance(array, np.generic | bytes):
            raise TypeError(type(array))
        return {"hex": (array if isinstance(array, bytes) else array.tobytes()).hex()}


def _bytes(arrays: list[np.ndarray]) -> list[Bytes]:
    return [np.frombuffer(array.tobytes(), np.uint8) for array in arrays]


def record(
    folder: Path, name: Callable[[], str], patch: Callable[[object, str, object], None] = setattr
) -> None:
    """Records all launches from now on.

    name:  returns the name of the test or program that is executed
    patch: replaces an attribute; a monkeypatch's `setattr` can be undone
    """
    given: list[tuple[list[np.ndarray], list[list[Fields]], list[Bytes]]] = []
    execute = tcir.run._execute_fastest

    def noted(
        function: Function, layout: AddressLayout, args: Sequence[object], buffers: BoundArrays
    ) -> bytes:
        addressed = bool(buffers.bound)
        found = parameters(function, layout, args, buffers)
        given[:] = []
        known = ArgumentTable()
        try:
            params = []
            for variable, arg in zip(function.params, args, strict=True):
                parts = arg if isinstance(arg, list | tuple) else (arg,)
                if any(isinstance(p, np.ndarray | Uninitialized | TensorMap) for p in parts):
                    params.append([known.part(p) for p in parts])
                else:
                    at = layout.params[variable.name]
                    params.append([{"hex": found[at : at + variable.size].hex()}])
        except (TypeError, ValueError):
            return found
        if not addressed and sum(a.nbytes for a in known.arrays) <= MOST_BYTES:
            given[:] = [(known.arrays, params, _bytes(known.arrays))]
        return found

    def executed(
        program: DecodedEntry,
        launch: LaunchState,
        text: str,
        report: RunReport,
        observer: Observer | None,
    ) -> None:
        execute(program, launch, text, report, observer)
        entry, _, ptx = text.partition("\0")
        options = launch.machine.options
        plain = options.numerics == "exact" and not options.changed_answers() and not options.sample
        emulated = f".target {architecture_of(EMULATED)}" in ptx
        if not (given and report and plain and emulated):
            return
        arrays, params, before = given[0]
        sizes = launch.sizes
        about = {
            "entry": entry, "grid": sizes.grid, "block": sizes.block, "cluster": sizes.cluster,
            "dynamic_smem": sizes.dynamic_smem, "programmatic": launch.machine.programmatic,
            "params": params, "test": name(),
        }  # fmt: skip
        RecordedLaunch(ptx, about, before, list(_bytes(arrays))).write(folder)

    patch(tcir.run, "parameters", noted)
    patch(tcir.run, "_execute_fastest", executed)
