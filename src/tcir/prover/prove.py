"""Runs the prover sentryward, which checks that every schedule is free of races and deadlocks, on
the launches of a kernel.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable, Sequence
from math import isfinite, prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tcir.errors import IncompleteError, InputError, MissingDependencyError
from tcir.program.launch import Launch
from tcir.prover.launch_input import Json, first_ctas, launch_input
from tcir.prover.proof import Proof, Proofs
from tcir.prover.reasons import reason
from tcir.prover.rewritings import only_entry, rewritten

if TYPE_CHECKING:
    from tcir.kernel import Kernel
    from tcir.validation.report import Report

Verify = Callable[..., Json]


def prove(
    kernel: Kernel,
    *,
    ctas: int | None = None,
    timeout: float = 120.0,
    memory_mib: int = 8000,
) -> Proofs:
    """Checks with sentryward that every schedule of a kernel is free of races and deadlocks.

    ctas:       number of CTAs of each launch that are judged, from the first on; None: all CTAs
    timeout:    seconds per launch
    memory_mib: memory limit of the prover, in MiB

    The returned object is true if everything is proved, and its text is a table. The table also
    shows the simulated machine's verdict, which comes from the kernel's report: compile with
    ``validate=True``. Needs the package sentryward (``pip install 'tcir[prove]'``).
    """
    if not hasattr(kernel, "launches"):
        raise InputError(f"prove: expected a kernel from tcir.compile, got {type(kernel).__name__}")
    return prove_launches(
        kernel.ptx, kernel.launches.launches, kernel.report, ctas, timeout, memory_mib
    )


def prove_launches(
    ptx: str,
    launches: Sequence[Launch],
    report: Report,
    ctas: int | None = None,
    timeout: float = 120.0,
    memory_mib: int = 8000,
) -> Proofs:
    """Checks PTX and its launches as `prove` does. report: has the verdict of the simulated
    machine
    """
    if ctas is not None and ctas < 1:
        raise InputError(f"expected at least one CTA to prove, got {ctas}")
    if not (isfinite(timeout) and timeout > 0):
        raise InputError(f"timeout: expected seconds, more than 0, got {timeout}")
    if memory_mib < 1:
        raise InputError(f"memory_mib: expected at least 1, got {memory_mib}")
    verify = find_prover()
    proofs = [_judged(verify, ptx, each, ctas, timeout, memory_mib) for each in launches]
    return Proofs(tuple(proofs), *machine_side(report))


def find_prover() -> Verify:
    """Returns sentryward's `verify`. Raises MissingDependencyError with installation
    instructions."""
    if importlib.util.find_spec("sentryward") is None:
        raise MissingDependencyError(
            "prove needs the package sentryward: pip install 'tcir[prove]', or pip install "
            "sentryward"
        )
    from sentryward import verify

    return verify


def machine_side(report: Report) -> tuple[str, tuple[str, ...]]:
    """Returns the simulated machine's verdict on the PTX, and its findings."""
    line = next((each for each in report.passes if each.name == "llvm-to-ptx"), None)
    if line is None or line.verdict == "-":
        return "not executed", ()
    findings = [f"{each['severity']} {each['code']}: {each['text']}" for each in line.findings]
    different = [str(line.difference)] if line.difference is not None else []
    return line.verdict, (*different, *findings)


def _judged(
    verify: Verify, ptx: str, launch: Launch, ctas: int | None, timeout: float, memory_mib: int
) -> Proof:
    grid = first_ctas(launch, ctas)
    text, rewritings = rewritten(only_entry(ptx, launch.name))
    started = time.perf_counter()
    try:
        config = launch_input(launch, grid)
    except IncompleteError as error:
        return Proof(launch.name, "unsupported", str(error), grid, launch.grid, rewritings, 0.0)
    with TemporaryDirectory(prefix="tcir-prove-") as folder:
        file, data = Path(folder, "kernel.ptx"), Path(folder, "input.json")
        file.write_text(text)
        data.write_text(json.dumps(config))
        found = verify(file, input=data, timeout_seconds=timeout, memory_limit_mib=memory_mib)
    result = str(found.get("result", "tool_failure"))
    why = reason(found, ptx.splitlines(), prod(launch.block))
    seconds = time.perf_counter() - started
    return Proof(launch.name, result, why, grid, launch.grid, rewritings, seconds)
