"""Handles each launch of a program: executes it in one or more orders, records it, and models its
time."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO, TypeAlias

import numpy as np

from tcir.doors.causes import causes, shown_name
from tcir.doors.device import SimulatedDevice
from tcir.doors.limits import check_cooperative
from tcir.doors.memory import Allocations
from tcir.doors.repeats import Repeats
from tcir.doors.sampling import LACKING, Sampling
from tcir.doors.unfinished import Unfinished
from tcir.errors import Error, InputError, LaunchError, VerdictError
from tcir.exit_status import explain
from tcir.files import write_atomic
from tcir.interp.ptx.special_registers import GRID_WORKSPACE
from tcir.machine.events import EventStream, Recording
from tcir.machine.memory.heap import Heap
from tcir.machine.numerics.products import Products
from tcir.machine.sample import Sample
from tcir.machine.tma.tensor_map import TensorMap
from tcir.run import RunReport, Uninitialized, ptx_target, run_ptx
from tcir.target import DEFAULT_TARGET
from tcir.time import ModelledTime, in_sequence, modelled_time
from tcir.time.trace import trace

Argument: TypeAlias = "np.ndarray | np.generic | TensorMap | Uninitialized | bytes"
Triple = tuple[int, int, int]
ORDINARY = (
    "the kernel has the barrier of a grid, grid.sync(), which traps unless the launch is "
    "cooperative: cudaLaunchCooperativeKernel"
)
WAITS = (
    "a launch is executed within its call: nothing of the host, and no later launch, can write "
    "what the kernel waits for"
)


@dataclass(frozen=True)
class DoorLaunch:
    """One launch of a program.

    cluster: shape of a cluster in CTAs
    shared:  bytes of dynamic shared memory
    block:   None: the block that the kernel declares
    memory:  every storage that the kernel may access
    addressed, variables: see `tcir.run_ptx`
    """

    ptx: str
    name: str
    grid: Triple
    cluster: Triple
    shared: int
    programmatic: bool
    args: Sequence[Argument]
    memory: Sequence[np.ndarray]
    addressed: Sequence[np.ndarray] = ()
    block: Triple | None = None
    variables: dict[str, np.ndarray] | None = None
    cooperative: bool = False


@dataclass
class Launches:
    """The launches of a program so far, and the options of their execution.

    order_seed, ordering, numerics, jobs: as in `tcir.run_ptx`
    orders:   number of further execution orders, whose results must be the same
    at_most:  maximum number of causes that are printed for a launch's findings
    warnings: whether findings are printed that kernels in production show to be harmless
    trace:    file for the recorded launches
    gpu:      executes the launches on a GPU; None: on the simulated machine
    seen:     called with each launch that was executed, and its report
    messages: stream to which findings and messages are printed
    memory:   records which parts of the device's memory are initialised
    device:   the device that programs see
    repeats:  effects of earlier launches
    heap:     memory of malloc in device code
    sampling: selects some CTAs of each launch to execute; None: all CTAs are executed
    """

    order_seed: int | None = None
    orders: int = 0
    numerics: str = "exact"
    jobs: int = 1
    at_most: int = 5
    warnings: bool = False
    trace: Path | None = None
    messages: TextIO = field(default_factory=lambda: sys.stderr)
    memory: Allocations = field(default_factory=Allocations)
    device: SimulatedDevice = field(default_factory=SimulatedDevice)
    gpu: bool = False
    ordering: str = "silicon"
    sampling: Sampling | None = None
    seen: Callable[[DoorLaunch, RunReport], None] = lambda _launch, _report: None
    launches: int = 0
    wrong: int = 0
    hidden: int = 0
    seconds: float = 0.0
    said: set[str] = field(default_factory=set)
    repeats: Repeats = field(default_factory=Repeats)
    heap: Heap = field(default_factory=Heap)
    streams: list[EventStream] = field(default_factory=list)
    _unfinished: Unfinished = field(default_factory=Unfinished)
    _times: list[ModelledTime | None] | None = None
    _failed: int = 0
    _dry: bool = False
    _device: threading.RLock = field(default_factory=threading.RLock)

    @property
    def status(self) -> int:
        """Exit status of a command if its program itself succeeds."""
        return self._failed or (1 if self.wrong else 2 if self._incomplete else 0)

    @property
    def _incomplete(self) -> bool:
        return self.sampling is not None and self.sampling.launches > 0

    def ended(self, status: int) -> int:
        """Exit status of a command whose program ended with `status`; `status` is ignored if
        launches were sampled.
        """
        return self.status if self._incomplete else status or self.status

    def failed(self, error: Exception) -> None:
        """Records an error: the command exits with its status, although the program continues."""
        code = error.exit_code if isinstance(error, Error) else explain(error)[1]
        self._failed = self._failed or code

    def execute(self, launch: DoorLaunch) -> None:
        """Executes a launch and prints its findings; only one launch is executed at a time. Raises
        VerdictError if a finding ends the launch.
        """
        with self._device:
            if self._dry:
                return
            try:
                self._execute(launch)
            except InputError:  # refused; whoever called is told
                raise
            except Exception as error:
                self.failed(error)
                raise

    def _execute(self, launch: DoorLaunch) -> None:
        if launch.cooperative:
            check_cooperative(launch.grid, launch.block or (32, 1, 1), launch.shared)
        if self._times is not None:
            self._times.append(self._modelled(launch))
            return
        if self.gpu:
            self._on_gpu(launch)
            return
        first = not self.launches
        lacking = self._incomplete
        running = launch.programmatic and not first and self._unfinished.memory
        partial = self.memory.partial(launch.memory)
        before = _contents(launch) if self.orders else []
        masks = [(array, mask.copy()) for array, mask in partial] if self.orders else []
        events = Recording() if self.trace is not None else None
        products = Products() if self.orders else None
        heap = self.heap.copy() if self.orders else self.heap

        def execute() -> RunReport:
            return self._run(launch, running, self.order_seed, products, partial, self.heap, events)

        once = events is None and not self.orders and not self.heap.blocks
        report = self._unfinished.run(
            launch, first, lambda: self.repeats.run(launch, partial, execute) if once else execute()
        )
        self.launches += 1
        if events is not None:
            self.streams += events.streams
        sys.stdout.write(report.output)
        wrong = self._say_findings(launch, report)
        if wrong and lacking:
            self.say(f"{shown_name(launch.name)}: {LACKING}")
        after = _contents(launch) if self.orders else []
        for seed in range(1, self.orders + 1):
            _restore(launch, before)
            again = [(array, mask.copy()) for array, mask in masks]
            report = self._run(launch, running, seed, products, again, heap.copy())
            wrong |= self._say_findings(launch, report)
            if _contents(launch) != after:
                self.say(f"{shown_name(launch.name)}: the result differs with --order-seed {seed}")
                wrong = True
        _restore(launch, after)
        self.wrong += wrong

    def _on_gpu(self, launch: DoorLaunch) -> None:
        """Launches on a GPU; rejects, by name, features of a launch that are not supported
        there."""
        from tcir.emulation import EmulatedLaunch
        from tcir.interp.ptx.parser import parse
        from tcir.runtime.on_gpu import run_on_gpu

        name = shown_name(launch.name)
        lacking = {
            "arrays that it reaches by addresses in its data": launch.addressed,
            "variables of its module": launch.variables,
            "a cooperative launch": launch.cooperative,
        }
        for what, there in lacking.items():
            if there:
                raise InputError(
                    f"{name}: --gpu: arguments must be arrays, numbers and tensor maps, got "
                    f"{what}, which exist only on this computer; leave --gpu out"
                )
        block = launch.block or parse(launch.ptx).functions[launch.name].reqntid
        if block is None:
            raise InputError(f"{name}: --gpu: expected .reqntid in its PTX, got none")
        sizes = EmulatedLaunch(launch.grid, block, launch.cluster, launch.shared)
        found = run_on_gpu(launch.ptx, launch.name, sizes, launch.args, launch.memory)
        for _, mask in self.memory.partial(launch.memory):
            mask[...] = True  # nobody says which bytes were written
        self.launches += 1
        self.seconds += found.milliseconds / 1000
        self.say(f"{name}: {found}")

    def _run(
        self,
        launch: DoorLaunch,
        running: bool | list[np.ndarray],
        seed: int | None,
        products: Products | None,
        written: Sequence[tuple[np.ndarray, np.ndarray]],
        heap: Heap,
        events: Recording | None = None,
    ) -> RunReport:
        sampling = self.sampling
        report = run_ptx(
            launch.ptx, entry=launch.name, grid=launch.grid, block=launch.block,
            cluster=launch.cluster, dynamic_smem=launch.shared, args=launch.args,
            programmatic=running, order_seed=seed, numerics=self.numerics,
            jobs=self.jobs, events=events, products=products, addressed=launch.addressed,
            written=written, variables=launch.variables, cooperative=launch.cooperative,
            ordering=self.ordering, heap=heap,
            sample=sampling.of(launch.grid, launch.cluster) if sampling is not None else None,
        )  # fmt: skip
        self.seconds += report.seconds
        if sampling is not None:
            sampling.finished(report, launch.grid, [*written, *heap.blocks.values()])
            if report.whole:
                self.say(f"{shown_name(launch.name)}: all CTAs were executed: {report.whole}")
        self.seen(launch, report)
        return report

    def _say_findings(self, launch: DoorLaunch, report: RunReport) -> bool:
        """Prints the findings of a launch, by cause, errors first; returns whether there is a
        hazard."""
        name = shown_name(launch.name)
        bad = [each for each in report.findings if each.severity == "error"]
        others = [each for each in report.findings if each.severity != "error"]
        shown = [*bad, *(others if self.warnings else ())]
        found = causes(shown)
        for cause in found[: self.at_most]:
            self.say(f"{name}: {cause}")
        if len(found) > self.at_most:
            self.say(f"{name}: {len(found) - self.at_most} more causes (--max-findings)")
        self.hidden += len(report.findings) - len(shown)
        if report.errors or report.incomplete:
            all_said = [*map(str, report.errors), *map(str, report.incomplete)]
            said = all_said[: max(self.at_most, 1)]
            if len(all_said) > len(said):
                said.append(f"{len(all_said) - len(said)} more (--max-findings)")
            if not launch.cooperative and any(each.code == "trap" for each in report.errors):
                said += [ORDINARY] * any(name in launch.ptx for name in GRID_WORKSPACE)
            said += [WAITS] * any("waits for global bytes" in str(each) for each in report.errors)
            raise VerdictError(f"{name}: " + "; ".join(said), report.exit_code)
        return bool(bad)

    def modelled_ms(self, call: Callable[[], object]) -> float:
        """The modelled milliseconds of the launches that `call` issues; only a sample of each
        launch's CTAs is executed.

        NaN if a launch cannot be modelled, or nothing is launched.
        """
        with self._timed() as times:
            call()
        known = [time for time in times if time is not None]
        return in_sequence(known)[0] / 1000 if known and len(known) == len(times) else math.nan

    def tried(self, call: Callable[[], object]) -> None:
        """Calls `call`; the launches that it issues are not executed."""
        with self._device:
            outer, self._dry = self._dry, True
            try:
                call()
            finally:
                self._dry = outer

    @contextmanager
    def _timed(self) -> Iterator[list[ModelledTime | None]]:
        outer, self._times = self._times, []
        try:
            yield self._times
        finally:
            self._times = outer

    def _modelled(self, launch: DoorLaunch) -> ModelledTime | None:
        """Modelled time of a launch, from the events of its first cluster; tensors are
        unchanged."""
        before = _contents(launch)
        events = Recording()
        report = run_ptx(
            launch.ptx, entry=launch.name, grid=launch.grid, block=launch.block,
            cluster=launch.cluster, dynamic_smem=launch.shared, args=launch.args,
            programmatic=launch.programmatic, hazards="off", numerics="fast",
            sample=Sample(0.0, 0), events=events, addressed=launch.addressed,
            variables=launch.variables, heap=self.heap.copy(),
        )  # fmt: skip
        self.seconds += report.seconds
        self._say_findings(launch, report)
        _restore(launch, before)
        moved = sum(array.nbytes for array in launch.memory)
        target, ctas = ptx_target(launch.ptx), math.prod(launch.grid)
        try:
            return modelled_time(events.streams[0], target, ctas, unique_bytes=moved)
        except LaunchError as error:
            self.say(f"{shown_name(launch.name)}: no modelled time: {error}")
            return None

    def close(self) -> None:
        """Prints a summary of the launches and writes the trace."""
        if self.hidden:
            self.say(f"{self.hidden} warnings (--warnings shows them)")
        where = "on a GPU " if self.gpu else ""
        timing = "" if self.gpu else f", {self.wrong} with a result that depends on timing"
        if self.repeats.count:
            timing = f" ({self.repeats.count} repeat an earlier one on the same memory){timing}"
        print(
            f"tcir: {self.launches} launches executed {where}in {self.seconds:.1f} s{timing}",
            file=self.messages,
        )
        if self.sampling is not None and self._incomplete:
            self.say(str(self.sampling))
        if self.trace is not None:
            write_atomic(self.trace, trace(self.streams, DEFAULT_TARGET.name))

    def say(self, words: str) -> None:
        """Prints a line; a line that was printed before is not repeated."""
        if words not in self.said:
            self.said.add(words)
            print(f"tcir: {words}", file=self.messages)


def _contents(launch: DoorLaunch) -> list[bytes]:
    """Contents of the memory that the launch may reach."""
    return [array.tobytes() for array in launch.memory]


def _restore(launch: DoorLaunch, contents: Sequence[bytes]) -> None:
    for array, data in zip(launch.memory, contents, strict=False):
        array.reshape(-1).view(np.uint8)[...] = np.frombuffer(data, np.uint8)


def scratch(size: int) -> Argument:
    """Returns `size` bytes of uninitialised scratch memory for a launch; a null pointer if the size
    is 0.
    """
    return Uninitialized(np.zeros(size, np.uint8)) if size else np.uint64(0)
