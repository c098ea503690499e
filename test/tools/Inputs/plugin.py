"""Passes from outside the package, as a user would add them; some misbehave on purpose."""

import os
import signal
from dataclasses import dataclass
from typing import ClassVar

import tcir
from tcir.mlir import ir

AFTER = "tcgen05.after"


@tcir.register_pass
@dataclass(frozen=True)
class Nothing(tcir.Pass):
    """Does nothing."""

    name: ClassVar[str] = "test-nothing"
    times: int = 1

    def run(self, module):
        pass


@tcir.register_pass
@dataclass(frozen=True)
class Scale(tcir.Pass):
    """Breaks a program: multiplies float constants by `factor`."""

    name: ClassVar[str] = "test-break-constants"
    factor: float = 2.0

    def run(self, module):
        def visit(operation):
            if operation.name == "arith.constant":
                value = operation.attributes["value"]
                if isinstance(value, ir.FloatAttr):
                    operation.attributes["value"] = ir.FloatAttr.get(
                        value.type, value.value * self.factor
                    )
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)


@tcir.register_pass
@dataclass(frozen=True)
class WideStep(tcir.Pass):
    """Breaks loops around tiles: the innermost ones take one step, as wide as all of them."""

    name: ClassVar[str] = "test-break-step"

    def run(self, module):
        def visit(operation):
            if operation.name == "scf.for":
                body = operation.regions[0].blocks[0].operations
                if all(op.operation.name != "scf.for" for op in body):
                    operation.operands[2] = operation.operands[1]
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)


@tcir.register_pass
@dataclass(frozen=True)
class DropFences(tcir.Pass):
    """Drops every tcgen05.fence::after_thread_sync, as Triton's kernels do without."""

    name: ClassVar[str] = "test-drop-fences"

    def run(self, module):
        found = []

        def visit(operation):
            if operation.name == "tc.fence" and operation.attributes["kind"].value == AFTER:
                found.append(operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for operation in found:
            operation.erase()


@tcir.register_pass
@dataclass(frozen=True)
class Refuse(tcir.Pass):
    """Refuses the first function."""

    name: ClassVar[str] = "test-refuse"

    def run(self, module):
        function = module.body.operations[0]
        raise tcir.PassError("expected something else, got a function", function.location)


@tcir.register_pass
@dataclass(frozen=True)
class Invalid(tcir.Pass):
    """Leaves invalid IR: a function whose body has no terminator."""

    name: ClassVar[str] = "test-invalid"

    def run(self, module):
        block = module.body.operations[0].regions[0].blocks[0]
        block.operations[len(block.operations) - 1].operation.erase()


@tcir.register_pass
@dataclass(frozen=True)
class Crash(tcir.Pass):
    """Dies like a native library would."""

    name: ClassVar[str] = "test-crash"

    def run(self, module):
        os.kill(os.getpid(), signal.SIGSEGV)


@tcir.register_pass
@dataclass(frozen=True)
class Raise(tcir.Pass):
    """Has a bug."""

    name: ClassVar[str] = "test-bug"

    def run(self, module):
        raise RuntimeError("a bug in a pass")


@dataclass(frozen=True)
class TestOptions:
    """Options of the pipeline `test-pipeline`."""

    times: int = 3


tcir.register_pipeline(
    tcir.NamedPipeline(
        "test-pipeline",
        "does nothing, then upstream's canonicalize",
        TestOptions,
        ("any function",),
        lambda options: tcir.Pipeline([Nothing(options.times), "canonicalize"]),
    )
)
