"""``python -m tcir.onnx model.onnx``: compiles an ONNX model and can validate every pass."""

from __future__ import annotations

import argparse
import sys

import tcir.onnx
from tcir.doors.command import check_values
from tcir.errors import InputError
from tcir.exit_status import exit_status
from tcir.files import check_writable, write_atomic
from tcir.onnx.compiled import Compiled
from tcir.streams import guard_streams
from tcir.target import DEFAULT_TARGET
from tcir.version import Version

EPILOG = """
examples:
  python -m tcir.onnx model.onnx                                # its launches
  python -m tcir.onnx model.onnx --shape x=8x3x32x32            # with a shape for an input
  python -m tcir.onnx model.onnx --validate                     # every pass executed
  python -m tcir.onnx model.onnx --emit=cubin -o model.cubin    # or linalg, ptx

Exit status: 1 where the import or a pass is different, 2 where something was not executed, 3 for a
file that is no model, for other inputs than the model's, and for ops that are not lowered.
"""


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    given = _parser().parse_args(argv)
    check_values(given, "pipeline", "target", "emit", "o", "model")
    if [] in given.shape:
        raise InputError("--shape: expected a value, got '--'")
    if (given.emit is None) != (given.o is None):
        raise InputError("expected --emit and -o FILE together")
    if given.o is not None:
        check_writable(given.o)
    model = tcir.onnx.compile(
        given.model, dict(given.shape), pipeline=given.pipeline, target=given.target
    )
    print(*map(str, model.inputs), "->", *map(str, model.outputs))
    print(model.table)
    print(model.kernel.launch_table)
    if given.emit is not None:
        write_atomic(given.o, _code(model, given.emit))
    if not given.validate:
        return 0
    report = model.validate()
    print(report)
    return report.exit_code


def _code(model: Compiled, emit: str) -> bytes:
    if emit == "cubin":
        return model.kernel.cubin
    return (model.part.mlir if emit == "linalg" else model.kernel.ptx).encode()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m tcir.onnx",
        description="Compiles an ONNX model as a whole and prints the launches of its ops.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=Version)
    parser.add_argument(
        "--shape",
        action="append",
        type=_shape,
        default=[],
        metavar="INPUT=SIZES",
        help="shape of an input with dynamic dimensions, such as x=1x3x224x224; may be repeated",
    )
    parser.add_argument("--pipeline", default="layers", help="default: layers")
    parser.add_argument("--target", default=DEFAULT_TARGET.name, help=DEFAULT_TARGET.name)
    parser.add_argument(
        "--validate",
        action="store_true",
        help="execute the program after every pass, and compare the import with ONNX's evaluator",
    )
    parser.add_argument("--emit", choices=("linalg", "ptx", "cubin"), help="write it to -o")
    parser.add_argument("-o", metavar="FILE")
    parser.add_argument("model", help="the path of an ONNX model")
    return parser


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.rpartition("=")
    words = sizes.split("x") if sizes else []
    if not (equals and name and all(each.isdecimal() and len(each) < 19 for each in words)):
        raise argparse.ArgumentTypeError(
            f"expected INPUT=SIZES, such as x=1x3x224x224, got {text!r}"
        )
    return name, tuple(map(int, words))


if __name__ == "__main__":
    guard_streams()
    sys.exit(exit_status(main))
