"""``tc-run --selftest``: determines, for each assumption about the hardware, which alternative is
right.
"""

from __future__ import annotations

import datetime
import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tcir.errors import Error
from tcir.files import write_json
from tcir.machine import REGISTRY, Assumption, Assumptions
from tcir.machine.refusal import Refusal
from tcir.run import run_ptx
from tcir.runtime.micro_kernel import MicroKernel
from tcir.runtime.micro_kernels import NOT_ASKED, micro_kernels
from tcir.target import DEFAULT_TARGET

SECONDS = 120
"""Time limit of a micro-kernel. It takes a few seconds, including the start of its process and of
the driver."""
FAULT = b"fault"
"""Represents the output of a kernel that did not complete."""


class NotEndedError(Error):
    """Raised if a micro-kernel did not end in time."""


class NotModelledError(Error):
    """Raised if the simulated machine has no rule for an instruction of the micro-kernel."""


def on_machine(kernel: MicroKernel, assumptions: Assumptions) -> bytes:
    """The bytes that a micro-kernel writes on the simulated machine, or `FAULT` if the machine
    rejects an instruction.
    """
    return b"".join(launch_on_machine(launch, assumptions) for launch in kernel.launches())


def launch_on_machine(kernel: MicroKernel, assumptions: Assumptions) -> bytes:
    """The bytes that one launch writes on the simulated machine, or `FAULT`."""
    try:
        args, outputs = kernel.make()
        report = run_ptx(kernel.ptx, args=args, assumptions=assumptions, **kernel.sizes)
    except Refusal:
        return FAULT
    if report.incomplete:
        raise NotModelledError(str(report.incomplete[0]))
    if report.errors:
        return FAULT
    return b"".join(array.tobytes() for array in outputs)


def expected(name: str, kernel: MicroKernel) -> dict[Any, bytes]:
    """Maps each alternative of the assumption `name` to the bytes that its micro-kernel writes on
    the simulated machine under that alternative.
    """
    entry = next(item for item in REGISTRY if item.name == name)
    return {a: on_machine(kernel, Assumptions(**{name: a})) for a in entry.alternatives}


def on_gpu(kernel: MicroKernel, target: str = DEFAULT_TARGET.name) -> bytes:
    """The bytes that a micro-kernel writes on the GPU, or `FAULT` for a launch that fails.

    Every launch has its own process, because a fault makes the process's CUDA context unusable.
    Raises `NotEndedError` if the launch is still running after `SECONDS`.
    """
    from tcir.codegen.cubin import assemble

    return b"".join(
        in_process(_launch_on_gpu, assemble(launch.ptx, target=target).data, launch, launch.make())
        for launch in kernel.launches()
    )


def in_process(
    function: Callable[..., bytes], cubin: bytes, kernel: MicroKernel, made: Any
) -> bytes:
    """Calls ``function(cubin, sizes, made)`` in a new process, and returns the bytes that the
    function returns.
    """
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe(duplex=False)
    arguments = (there, function, cubin, kernel.sizes, made)
    process = spawn.Process(target=_child, args=arguments)
    process.start()
    there.close()
    try:
        if not here.poll(SECONDS):
            raise NotEndedError(f"no answer within {SECONDS} seconds")
        data, error = here.recv()
    except EOFError:
        raise Error("the process of the micro-kernel died") from None
    finally:
        process.join(1)  # a process that dies has something to say
        process.kill()
        process.join()
        here.close()
    if error is not None:
        raise Error(error)
    return bytes(data)


def _child(pipe: Any, function: Callable[..., bytes], *arguments: Any) -> None:
    try:
        pipe.send((function(*arguments), None))
    except Error as error:
        pipe.send((b"", f"{type(error).__name__}: {error}"))


def _launch_on_gpu(cubin: bytes, sizes: dict[str, Any], made: tuple[list[Any], list[Any]]) -> bytes:
    from tcir.runtime.cubin import run_cubin
    from tcir.runtime.module import LaunchFailedError

    args, outputs = made
    try:
        run_cubin(cubin, entry="ask", args=args, **sizes)
    except LaunchFailedError:
        return FAULT
    return b"".join(array.tobytes() for array in outputs)


def judge(outcomes: dict[Any, bytes], silicon: bytes) -> str:
    """Text that names the alternatives under which the simulated machine writes the same bytes as
    the hardware.
    """
    same = [str(a) for a, data in outcomes.items() if data == silicon]
    return " or ".join(same) if same else "neither: please report this"


def main(file: Path) -> int:
    """Runs the self-test; returns its exit status: 0 if the hardware agrees with every assumption
    that can be tested, 1 if it disagrees with an assumption, 2 if an assumption that can be tested
    was not tested. On a B200 the answers are written to `file`, to be sent to tcir's authors.
    """
    kernels = micro_kernels()
    ready = _blackwell()
    wrong = unasked = 0
    answers = {}
    for entry in REGISTRY:
        if entry.name not in kernels:
            answer = f"cannot be tested: {NOT_ASKED.get(entry.name, 'no kernel written yet')}"
        else:
            answer = "not asked" if ready is not None else _ask(entry, kernels[entry.name])
            unasked += answer.startswith("not asked")
            wrong += not answer.startswith("not asked") and not _agrees(entry, answer)
        answers[entry.name] = {"assumed": str(entry.default), "silicon": answer}
        print(f"{entry.name}: assumed {entry.default}; silicon: {answer}", flush=True)
    if ready is not None:
        print(ready, file=sys.stderr)
        return 2
    from tcir.runtime.replay import describe_device

    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    report = {"schema": 1, "time": now, "device": describe_device(), "answers": answers}
    write_json(file, report)
    print(f"{file}: please send it")
    return 1 if wrong else 2 if unasked else 0


def _agrees(entry: Assumption, answer: str) -> bool:
    """Whether the assumed alternative is among those that agree with the silicon."""
    return str(entry.default) in answer.split(" or ")


def _ask(entry: Assumption, kernel: MicroKernel) -> str:
    try:
        return judge(expected(entry.name, kernel), on_gpu(kernel))
    except Error as error:
        return f"not asked: {error}"


def _blackwell() -> str | None:
    """Why the self-test cannot run, in one sentence; None on a B200."""
    from tcir.runtime.devices import device

    try:
        found = device()
    except Error as error:
        return f"tc-run --selftest: the values above are assumed, not observed: {error}"
    if found.capability != (10, 0):
        return (
            f"tc-run --selftest: expected a B200 (sm_100), got {found}: the values above are "
            "assumed, not observed"
        )
    return None


if __name__ == "__main__":
    sys.exit(main(Path("selftest.json")))
