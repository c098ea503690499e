"""`run_ptx`: executes a PTX kernel, ours or anyone's, on the simulated machine.

The machine gets the text, the launch sizes and the buffers, and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from tcir.interp.ptx.arguments import (
    Buffers,
    LaunchError,
    Uninitialized,
    bind_variables,
    parameters,
)
from tcir.interp.ptx.calls import inline_calls
from tcir.interp.ptx.decode import Incomplete
from tcir.interp.ptx.parser import parse
from tcir.interp.ptx.program import Run, decode, lay_out
from tcir.interp.ptx.syntax import Function, Module, PtxSyntaxError, Site
from tcir.interp.ptx.warp import Warp
from tcir.machine import Assumptions, Finding, Machine, MachineError, NotModelled
from tcir.machine.refusal import Refusal
from tcir.target import DEFAULT_TARGET

__all__ = ["LaunchError", "PtxSyntaxError", "RunReport", "Uninitialized", "entry_name", "run_ptx"]

#: Limits of one launch, compute capability 10.0 (CUDA C++ Programming Guide, "Technical
#: Specifications per Compute Capability").
MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_GRID = ((1 << 31) - 1, 65535, 65535)
MAX_CLUSTER = 16
#: More CTAs than this are refused: a simulated launch of them would not end.
MAX_CTAS = 1 << 24
#: Bytes of local memory a thread may use on this machine, far above what kernels declare.
MAX_LOCAL = 64 << 10

DEFAULT_MAX_INSTRUCTIONS = 500_000_000


@dataclass
class RunReport:
    """What happened in one launch.

    ok: everything was executed, nothing illegal, no finding of severity "error".
    incomplete: instructions without a rule, by name and line: then nothing was executed, or the run
    ended at a form of an instruction that the machine does not model.
    errors: illegal acts of the program, which end the run. findings: hazards, which do not.
    instructions: executed warp instructions. numerics: "exact", or "fast" (float32, not bit-exact).
    """

    findings: list[Finding] = field(default_factory=list)
    errors: list[MachineError] = field(default_factory=list)
    incomplete: list[Incomplete] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    instructions: int = 0
    seconds: float = 0.0
    numerics: str = "exact"
    order_seed: int | None = None

    @property
    def ok(self) -> bool:
        bad = any(f.severity == "error" for f in self.findings)
        return not (self.errors or self.incomplete or bad)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, with a schema number that changes when fields change meaning."""
        return {
            "schema": 1,
            "ok": self.ok,
            "incomplete": [
                {"instruction": i.instruction, "line": i.line, "why": i.why}
                for i in self.incomplete
            ],
            "errors": [
                {"code": e.code, "message": str(e), "site": str(e.site)} for e in self.errors
            ],
            "findings": [
                {
                    "severity": f.severity,
                    "code": f.code,
                    "first": f.first,
                    "second": f.second,
                    "missing": f.missing,
                    "cta": list(f.cta) if isinstance(f.cta, tuple) else f.cta,
                }
                for f in self.findings
            ],
            "counters": dict(self.counters),
            "instructions": self.instructions,
            "seconds": self.seconds,
            "numerics": self.numerics,
            "order_seed": self.order_seed,
        }

    def __str__(self) -> str:
        verdict = "ok" if self.ok else "incomplete" if self.incomplete else "failed"
        rate = self.instructions / self.seconds if self.seconds else 0.0
        lines = [
            f"{verdict}: {self.instructions} warp instructions in {self.seconds:.2f} s "
            f"({rate / 1000:.0f} k/s), numerics {self.numerics}, "
            f"order {'as issued' if self.order_seed is None else f'seed {self.order_seed}'}"
        ]
        lines += [f"incomplete: {i}" for i in self.incomplete]
        lines += [f"error: {e}" for e in self.errors]
        for f in self.findings:
            lines.append(f"{f.severity}: {f.code}: {f.first}")
            lines += [f"    {text}" for text in (f.second, f.missing) if text]
        used = {k: v for k, v in self.counters.items() if v}
        if used:
            lines.append("counters: " + ", ".join(f"{k} {v}" for k, v in used.items()))
        return "\n".join(lines)


class Observer(Protocol):
    """Looks on while a kernel runs, as the debugger does (`tcir.debug`)."""

    def attach(self, machine: Machine, run: Run, report: RunReport) -> None:
        """Called once before the first CTA starts; `report` is filled in when the run ends."""

    def follow(self, warp: Warp) -> Generator[Any, Any, None]:
        """Called for each warp: the generator that runs it, such as `warp.main()`."""


def _triple(
    value: Sequence[int] | int, what: str, limits: tuple[int, int, int]
) -> tuple[int, int, int]:
    numbers = tuple(value) if isinstance(value, Sequence | np.ndarray) else (value,)
    if not 1 <= len(numbers) <= 3 or not all(isinstance(n, int | np.integer) for n in numbers):
        raise LaunchError(f"{what}: expected one to three integers, got {value!r}")
    x, y, z = (int(n) for n in (*numbers, 1, 1)[:3])
    for axis, n, limit in zip("xyz", (x, y, z), limits, strict=True):
        if not 1 <= n <= limit:
            raise LaunchError(f"{what}.{axis}: expected 1..{limit}, got {n}")
    return x, y, z


@lru_cache(maxsize=16)
def _parsed(ptx: str) -> Module:
    return parse(ptx)


def _entry(module: Module, name: str | None) -> Function:
    entries = {f.name: f for f in module.functions.values() if f.entry and f.body is not None}
    listed = ", ".join(entries) or "none"
    if name is not None:
        if name not in entries:
            raise LaunchError(f"entry: expected one of {listed}, got {name!r}")
        return entries[name]
    if len(entries) != 1:
        raise LaunchError(f"entry: expected its name when the module has not just one: {listed}")
    return next(iter(entries.values()))


def entry_name(ptx: str, name: str | None = None) -> str:
    """Name of the entry that `run_ptx` would run. Raises LaunchError and PtxSyntaxError."""
    return _entry(_parsed(ptx), name).name


def _check_sizes(
    function: Function,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    cluster: tuple[int, int, int],
) -> None:
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS:
        raise LaunchError(f"block: expected at most {MAX_THREADS} threads, got {threads}")
    if function.reqntid is not None and block != function.reqntid:
        raise LaunchError(f"block: expected .reqntid {function.reqntid}, got {block}")
    if function.maxntid is not None and threads > function.maxntid:
        raise LaunchError(f"block: expected at most .maxntid {function.maxntid}, got {threads}")
    ctas = grid[0] * grid[1] * grid[2]
    if ctas > MAX_CTAS:
        raise LaunchError(f"grid: expected at most {MAX_CTAS} CTAs on this machine, got {ctas}")
    if cluster[0] * cluster[1] * cluster[2] > MAX_CLUSTER:
        raise LaunchError(f"cluster: expected at most {MAX_CLUSTER} CTAs, got {cluster}")
    if function.reqcluster is not None and cluster != function.reqcluster:
        raise LaunchError(
            f"cluster: expected .reqnctapercluster {function.reqcluster}, got {cluster}"
        )
    for axis, g, c in zip("xyz", grid, cluster, strict=True):
        if g % c:
            raise LaunchError(f"grid.{axis}: expected a multiple of the cluster's {c}, got {g}")


def _check_residency(ctas: int, threads: int, shared: int) -> None:
    """LaunchError unless an SM holds so many CTAs (CUDA C++ Programming Guide, 10.0)."""
    sm = DEFAULT_TARGET
    for what, limit, each in (
        ("CTAs", 32, 1),
        ("threads", 2048, threads),
        (
            "bytes of shared memory, 1024 of a CTA's the driver's",
            sm.smem_per_sm,
            shared + sm.smem_reserved,
        ),
    ):
        if not 1 <= ctas <= limit // each:
            raise LaunchError(
                f"ctas_per_sm: expected 1 to {limit // each}, got {ctas}: an SM has {limit} {what}"
            )


def _check_options(dynamic_smem: int, limit: int, hazards: str, numerics: str) -> None:
    if not isinstance(limit, int | np.integer) or limit < 1:
        raise LaunchError(f"max_instructions: expected an integer of at least 1, got {limit!r}")
    if not isinstance(dynamic_smem, int | np.integer):
        raise LaunchError(f"dynamic_smem: expected a number of bytes, got {dynamic_smem!r}")
    if hazards not in ("report", "off"):
        raise LaunchError(f"hazards: expected 'report' or 'off', got {hazards!r}")
    if numerics not in ("exact", "fast"):
        raise LaunchError(f"numerics: expected 'exact' or 'fast', got {numerics!r}")


def run_ptx(
    ptx: str,
    *,
    entry: str | None = None,
    grid: Sequence[int] | int,
    block: Sequence[int] | int,
    cluster: Sequence[int] | int = (1, 1, 1),
    dynamic_smem: int = 0,
    args: Sequence[Any] = (),
    hazards: str = "report",
    order_seed: int | None = None,
    numerics: str = "exact",
    max_instructions: int = DEFAULT_MAX_INSTRUCTIONS,
    progress: Callable[..., None] | None = None,
    assumptions: Assumptions | None = None,
    observer: Observer | None = None,
    ctas_per_sm: int = 1,
) -> RunReport:
    """Runs a kernel of a PTX module on the simulated machine.

    args: one per kernel parameter: C-contiguous numpy arrays (device buffers, written in place), or
    `Uninitialized(array)` for an output that has to be written before it is read; numpy scalars;
    bytes for by-value parameters; `TensorMap`; or a tuple of such parts, one behind the other
    without padding, for a struct. dynamic_smem: bytes. hazards: "report" or "off".
    order_seed: varies completion and warp order; None is the order of issue. numerics: "exact" or
    "fast" (float32). max_instructions: warp instructions before the run is given up. assumptions:
    other answers to the open questions about the hardware. observer: see `tcir.debug`. ctas_per_sm:
    so many CTAs, one behind the other in the grid, run side by side and share tensor memory.

    Raises PtxSyntaxError (not PTX) and LaunchError (sizes or arguments that do not fit). What the
    program does wrong is in the report.
    """
    started = time.perf_counter()
    module = _parsed(ptx)
    function = inline_calls(module, _entry(module, entry))
    sizes = _triple(grid, "grid", MAX_GRID)
    threads = _triple(block, "block", MAX_BLOCK)
    clusters = _triple(cluster, "cluster", (MAX_CLUSTER,) * 3)
    _check_sizes(function, sizes, threads, clusters)
    _check_options(dynamic_smem, max_instructions, hazards, numerics)
    layout = lay_out(module, function)
    total = layout.dynamic_base + dynamic_smem
    most = DEFAULT_TARGET.smem_per_cta
    if dynamic_smem < 0 or total > most:
        raise LaunchError(
            f"shared memory: expected at most {most} bytes, got {layout.dynamic_base} static "
            f"and {dynamic_smem} dynamic"
        )
    _check_residency(ctas_per_sm, threads[0] * threads[1] * threads[2], total)
    if layout.local_bytes > MAX_LOCAL:
        raise LaunchError(
            f"local memory: expected at most {MAX_LOCAL} bytes a thread on this machine, got "
            f"{layout.local_bytes}"
        )
    machine = Machine(
        grid=sizes,
        block=threads,
        cluster=clusters,
        dynamic_smem=dynamic_smem,
        static_smem=layout.dynamic_base,
        hazards=hazards,
        order_seed=order_seed,
        numerics=numerics,
        progress=progress,
        assumptions=assumptions,
        tmem_anywhere=True,
        ctas_per_sm=ctas_per_sm,
    )
    report = RunReport(numerics=numerics, order_seed=order_seed)
    try:
        params = parameters(function, layout, args, Buffers(machine, args))
        program = decode(module, function, layout, bind_variables(module, machine))
        if program.incomplete:
            report.incomplete = program.incomplete
            return report
        run = Run(
            machine,
            program,
            grid=sizes,
            block=threads,
            cluster=clusters,
            dynamic_smem=dynamic_smem,
            total_smem=total,
            params=params,
            max_instructions=max_instructions,
        )
        warps = -(-run.threads // 32)
        follow: Callable[[Warp], Generator[Any, Any, None]] = Warp.main
        if observer is not None:
            observer.attach(machine, run, report)
            follow = observer.follow

        def start(cta: Any) -> list[Any]:
            return [
                cta.agent(
                    f"warp {n}",
                    warp=n,
                    threads=min(32, run.threads - 32 * n),
                    body=lambda agent, n=n: follow(Warp(program, run, agent, n)),
                )
                for n in range(warps)
            ]

        try:
            with np.errstate(all="ignore"):
                machine.run(start)
        except MachineError as error:
            report.errors.append(error)
        except NotModelled as missing:
            site = missing.site if isinstance(missing.site, Site) else Site(0, str(missing.site))
            report.incomplete.append(Incomplete(site.text, site, missing.what))
        except Refusal as refusal:
            report.errors.append(MachineError(refusal.code, str(refusal), site="unknown"))
        report.findings = list(machine.findings)
        report.counters = machine.counters.as_dict()
        report.instructions = run.instructions
    finally:
        report.seconds = time.perf_counter() - started
    return report
