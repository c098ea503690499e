"""A module of CUDA kernels, loaded once and launched on the simulated machine many times."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np

from tcir.codegen.cuda import compile_cuda
from tcir.cuda.fat_binary import MAGIC as FAT_BINARY
from tcir.cuda.fat_binary import ptx_of
from tcir.doors.causes import source_name
from tcir.errors import InputError, LaunchError, UnknownNameError, did_you_mean
from tcir.files import read_bytes
from tcir.interp.ptx.arguments import holds_addresses, initialise
from tcir.interp.ptx.syntax import Function
from tcir.interp.ptx.syntax import PtxModule as Syntax
from tcir.machine import Assumptions
from tcir.machine.events import Recording
from tcir.machine.memory.heap import Heap
from tcir.run import RunReport, parsed, run_ptx
from tcir.target import DEFAULT_TARGET

WAY_OUT = (
    "the simulated machine executes PTX: compile the source with nvcc -ptx -lineinfo "
    "-arch=sm_100a k.cu -o k.ptx, or, where the program embeds PTX, cuobjdump -ptx PROGRAM > "
    'k.ptx; then tcir.cuda.Module.from_ptx("k.ptx")'
)
"""Way out for users who have only machine code."""
ELF = b"\x7fELF"
"""First bytes of a cubin or program."""


class Options(TypedDict, total=False):
    """Options of a launch; see `tcir.run_ptx`."""

    cluster: Sequence[int] | int | None
    dynamic_smem: int
    hazards: str
    order_seed: int | None
    numerics: str
    max_instructions: int
    assumptions: Assumptions | None
    ordering: str
    ctas_per_sm: int
    programmatic: bool
    lockstep: bool
    jobs: int
    events: Recording | None
    addressed: Sequence[np.ndarray]


@dataclass(frozen=True)
class Module:
    """PTX with its kernels, and the values of its variables (``__device__``), which persist between
    launches.

    variables: bytes of each variable that has been used so far; see `variable`
    heap:      memory of its kernels' malloc
    """

    ptx: str
    variables: dict[str, np.ndarray] = field(default_factory=dict)
    heap: Heap = field(default_factory=Heap)

    @classmethod
    def from_ptx(cls, ptx: str | Path) -> Module:
        """Loads a module from PTX text or a PTX file.

        Raises PtxSyntaxError, and `InputError` for a file that is missing or not PTX.
        """
        if isinstance(ptx, str) and ("\n" in ptx or not ptx.strip()):
            text = ptx
        else:
            data = read_bytes(ptx)
            if data.startswith((ELF, FAT_BINARY)):
                raise _machine_code(str(ptx), data)
            try:
                text = data.decode()
            except UnicodeDecodeError as error:
                raise InputError(f"{ptx}: expected PTX text: {error}") from None
        parsed(text)
        return cls(text)

    @classmethod
    def from_image(cls, image: bytes) -> Module:
        """Loads an image in a form that the CUDA driver accepts: PTX text, optionally ended by NUL,
        or a fat binary that contains PTX.

        Raises PtxSyntaxError, and `InputError` for machine code.
        """
        if image.startswith(FAT_BINARY):
            return cls.from_ptx(ptx_of(image))
        if image.startswith(ELF):
            raise _machine_code("cuModuleLoadData", image)
        try:
            return cls.from_ptx(image.rstrip(b"\0").decode() + "\n")
        except UnicodeDecodeError as error:
            raise InputError(f"cuModuleLoadData: expected PTX text: {error}") from None

    @classmethod
    def from_source(cls, path: str | Path, target: str = DEFAULT_TARGET.name) -> Module:
        """Compiles a CUDA C++ file with nvcc, with source lines, and loads it.

        Raises `InputError` with nvcc's message.
        """
        return cls.from_ptx(compile_cuda(Path(path), target))

    @classmethod
    def from_cubin(cls, cubin: bytes | str | Path) -> Module:
        """Always raises `InputError`: the machine executes PTX; a cubin is machine code."""
        name, data = "cubin", cubin
        if not isinstance(data, bytes):
            name, data = str(cubin), read_bytes(data)
        raise _machine_code(name, data)

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The module's kernels, by name in the PTX."""
        return {f.name: Kernel(self, f.name) for f in self._entries()}

    def kernel(self, name: str) -> Kernel:
        """Returns a kernel by its name in the PTX, or by its C++ name if that is unique.

        Raises `UnknownNameError`.
        """
        _check_name("kernel", name)
        known = [f.name for f in self._entries()]
        called = [name] if name in known else [k for k in known if source_name(k) == name]
        if len(called) == 1:
            return Kernel(self, called[0])
        if called:
            raise UnknownNameError(
                f"kernel: expected the name of one kernel, got {name!r} of {', '.join(called)}"
            )
        raise UnknownNameError(
            f"kernel: expected a kernel of the module, got {name!r}{did_you_mean(name, known)}"
        )

    def variable(self, name: str) -> np.ndarray:
        """Bytes of a variable, to read and write in place between launches.

        Raises `UnknownNameError`, and `LaunchError` for a variable that holds addresses.
        """
        _check_name("variable", name)
        found = self.syntax.variables
        if name not in found:
            raise UnknownNameError(
                f"variable: expected one of the module, got {name!r}{did_you_mean(name, found)}"
            )
        if holds_addresses(found[name]):
            raise LaunchError(
                f"variable {name}: it contains addresses, which differ between launches; only "
                "variables with numbers can be read and written"
            )
        if name not in self.variables:
            image = np.zeros(found[name].size, np.uint8)
            initialise(image, found[name], {}, self.syntax)
            self.variables[name] = image
        return self.variables[name]

    @property
    def syntax(self) -> Syntax:
        """The parsed text."""
        return parsed(self.ptx)

    def _entries(self) -> list[Function]:
        return [f for f in self.syntax.functions.values() if f.entry and f.body is not None]


@dataclass(frozen=True)
class Kernel:
    """A kernel of a module; calling it executes it."""

    module: Module
    name: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of its parameters in the PTX."""
        return tuple(p.name for p in self.module.syntax.functions[self.name].params)

    def __call__(
        self,
        *args: object,
        grid: Sequence[int] | int,
        block: Sequence[int] | int | None = None,
        **options: Unpack[Options],
    ) -> RunReport:
        """Executes the kernel as `launch` does, and prints its output to standard output.

        Raises `VerdictError` with the report's text for an illegal act, a hazard, or an instruction
        that is not modelled.
        """
        report = self.launch(*args, grid=grid, block=block, **options)
        sys.stdout.write(report.output)
        return report.check()

    def launch(
        self,
        *args: object,
        grid: Sequence[int] | int,
        block: Sequence[int] | int | None = None,
        **options: Unpack[Options],
    ) -> RunReport:
        """Executes the kernel on the simulated machine; the returned report contains its errors and
        hazards.

        args:    one per parameter: numpy arrays, written in place, and numbers
        grid, block: launch sizes
        options: those of `tcir.run_ptx`, where other kinds of arguments are also described
        """
        return run_ptx(
            self.module.ptx, entry=self.name, grid=grid, block=block, args=args,
            variables=self.module.variables, heap=self.module.heap, **options,
        )  # fmt: skip


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise UnknownNameError(f"{what}: expected a name, got {type(name).__name__}")


def _machine_code(name: str, data: bytes) -> InputError:
    """The error for a file of machine code, with a way out."""
    from tcir.runtime.module import architecture

    if data.startswith(FAT_BINARY):
        return InputError(f"{name}: expected PTX, got a fat binary; {WAY_OUT}")
    try:
        what = f"a cubin, which is machine code (SASS) of {architecture(data)} alone"
    except InputError as error:
        return InputError(f"{name}: {error}; in any case {WAY_OUT}")
    return InputError(f"{name}: expected PTX, got {what}; {WAY_OUT}")
