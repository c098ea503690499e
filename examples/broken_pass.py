"""What tcir says of a pass with a bug: the ResNet-50 layer with one `.ashift` dropped.

    python examples/broken_pass.py

A pass of our own runs after `tile-conv-shift-reuse` and clears `ashift` on the first mma it finds,
so that one filter tap multiplies pixels that have not moved on. Everything still compiles. The
report names the pass, and the lane and pixel of the first wrong result.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import tcir
from tcir.mlir import ir

LAYER = Path(__file__).with_name("resnet50_conv2_3x3.mlir")


@dataclass(frozen=True)
class DropOneShift(tcir.Pass):
    """Clears `ashift` on the first shifting `tc.mma` of the kernel: the bug."""

    name: ClassVar[str] = "drop-one-shift"

    def run(self, module: ir.Module) -> None:
        """Edits the first shifting mma in place."""

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name == "tc.mma" and ir.BoolAttr(op.attributes["ashift"]).value:
                op.attributes["ashift"] = ir.BoolAttr.get(False)
                return ir.WalkResult.INTERRUPT
            return ir.WalkResult.ADVANCE

        with module.context:
            module.operation.walk(visit)


def main() -> int:
    """Runs the pipeline with the broken pass in it and prints the report as it grows."""
    pipeline = tcir.named_pipeline("conv-shift-reuse")
    pipeline = pipeline.insert(DropOneShift(), after="tile-conv-shift-reuse")
    report = tcir.validate(LAYER, pipeline, on_line=print)
    print(report.summary())
    return report.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
