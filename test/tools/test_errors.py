"""One family of errors: whatever the package raises on purpose is a `tcir.Error`."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator

import numpy as np
import pytest

import tcir

INTERNAL = {
    "Mismatch": "caught by the pass that matches",
    "Stopped": "ends a run at a breakpoint",
    "NotRaised": "becomes a remark at the op",
    "UnevenError": "an element that no expression has is a leaf",
    "_NotFused": "becomes a PassError at the op",
    "NoBoundError": "the result has no bound; the report says so",
    "_Stays": "a call that is not inlined",
    "Incomplete": "collected in RunReport.incomplete",
    "Abandoned": "the launch runs again without lockstep",
    "TogetherError": "the launch runs in one process",
    "NoReplay": "the launch runs without lockstep",
    "Untraceable": "the instruction is executed by numpy alone",
    "FollowerLeft": "a CTA that runs on the machine, not in lockstep with the leader",
    "LockstepDivergence": "a mistake in lockstep: a warning, and the launch runs without it",
    "UnreadableError": "becomes an MLIRError at the line",
    "NotComputedError": "the operand stays a launch; becomes a remark at the op",
    "NoDigitsError": "becomes a NotComputedError",
    "NotNative": "numpy replays what a CTA did, not compiled kernels",
}
"""Control flow: never leaves the function that catches it."""

EXTRAS = {"cutlass", "jax", "onnx", "torch", "triton"}
"""What modules behind an extra import."""


def exceptions() -> Iterator[type[BaseException]]:
    """Every exception class that a module of the package defines."""
    for found in pkgutil.walk_packages(tcir.__path__, "tcir."):
        if ".dev" in found.name or found.name.endswith("._mlir_dialects.linalg"):
            continue
        try:
            module = importlib.import_module(found.name)
        except ModuleNotFoundError as missing:
            if missing.name not in EXTRAS:
                raise
            continue
        for value in vars(module).values():
            own = inspect.isclass(value) and value.__module__ == found.name
            if own and issubclass(value, BaseException):
                yield value


def test_every_exception_class_is_an_error_of_tcir() -> None:
    found = set(exceptions())
    assert len(found) > 20
    strangers = {each.__name__ for each in found if not issubclass(each, tcir.Error)}
    assert strangers <= set(INTERNAL)


def test_errors_of_public_functions_are_exported() -> None:
    for name in ("Error", "InputError", "PassError", "IncompleteError", "LaunchError", "Refusal",
                 "PtxSyntaxError", "LayoutError", "MachineError", "NotModelled", "Deadlock",
                 "HazardError", "MissingDependencyError", "NativeCrashError"):  # fmt: skip
        assert name in tcir.__all__
        assert issubclass(getattr(tcir, name), tcir.Error)


def documented(function: object) -> set[str]:
    r"""Names of error classes in a docstring: ``Raises LaunchError`` or ``\`InputError\` when``."""
    words = re.findall(r"\b([A-Z]\w*(?:Error|Refusal|Modelled|Deadlock))\b", function.__doc__ or "")
    return set(words)


def test_errors_that_public_docstrings_name_are_public() -> None:
    seen = set()
    for name in tcir.__all__:
        value = getattr(tcir, name)
        members = vars(value).values() if inspect.isclass(value) else ()
        for each in (value, *members):
            if callable(each) and not (inspect.isclass(each) and issubclass(each, Exception)):
                seen |= documented(each)
    assert {"LaunchError", "PtxSyntaxError", "PassError", "HazardError"} <= seen
    for name in seen:
        assert issubclass(getattr(tcir, name), tcir.Error), name


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: tcir.run_ptx("nonsense", grid=1, block=1), tcir.PtxSyntaxError),
        (lambda: tcir.run_ptx(".version 8.8\n.target sm_100a\n.address_size 64\n", grid=1, block=1),
         tcir.LaunchError),
        (lambda: tcir.compile("func.func @f() {", "matmul"), tcir.InputError),
        (lambda: tcir.compile("func.func @f() { return }", "no-such"), tcir.UnknownNameError),
        (lambda: tcir.validate("module {}", "matmul"), tcir.InputError),
        (lambda: tcir.TensorMap.tiled(np.zeros((4, 3), "f2"), dtype="f16", dims=[3, 4],
                                      strides_bytes=[6], box=[3, 4]), tcir.Refusal),
        (lambda: tcir.named_pipeline("matmul{n-tile=x}"), tcir.InputError),
        (lambda: tcir.formats.decode([0], "no-such"), tcir.Error),
    ],
)  # fmt: skip
def test_one_except_clause_is_enough(call, error) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(tcir.Error) as caught:
        call()
    assert isinstance(caught.value, error)
