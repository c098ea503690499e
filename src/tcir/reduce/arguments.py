"""The flags of tc-reduce."""

from __future__ import annotations

import argparse

from tcir.commandline import Parser

_EPILOG = """\
examples:
  tc-reduce -o small.mlir examples/mistakes/producer_without_empty_wait.mlir \\
            --pass-pipeline='builtin.module(verify-tc-kernel)'
  tc-reduce -o small.ptx examples/saxpy.ptx --grid 8 --block 128 --arg zeros=f32,900 \\
            --arg zeros=f32,1000 --arg f32=1.5 --arg u32=1000
  tc-reduce -o small.mlir --test='! grep -q linalg.matmul' examples/mlp_bf16.mlir

The reduced MLIR file contains the remaining passes: tc-opt --run-reproducer FILE.
The smallest program so far is written at once: an interrupt loses nothing.

exit status:
  0  reduced
  3  bad input: file, flag, or a program that does not fail
"""


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of all flags. Flags after the file belong to tc-opt or tc-run."""
    parser = Parser(
        prog="tc-reduce",
        usage="tc-reduce [-h] [-o FILE] [--test COMMAND] FILE [FLAG ...]",
        description="Shrinks a program that fails to the smallest one that fails in the same way: "
        "same pass, same verdict, same finding.",
        epilog=_EPILOG,
    )
    parser.add_general()
    add = parser.add_argument_group("program and result").add_argument
    add("file", metavar="FILE", help="NAME.mlir or NAME.ptx")
    add(
        "flags",
        nargs=argparse.REMAINDER,
        metavar="FLAG",
        help="flags of tc-opt for MLIR (executed after every pass), of tc-run for PTX",
    )
    add("-o", dest="output", metavar="FILE", help="default: NAME.reduced.mlir or .ptx")
    add = parser.add_argument_group("failure").add_argument
    add(
        "--test",
        metavar="COMMAND",
        help="as in mlir-reduce: receives each candidate's file; exit status 1 if interesting",
    )
    return parser
