"""The flags of tc-reduce."""

from __future__ import annotations

import argparse
from typing import NoReturn

from tcir.errors import InputError
from tcir.version import Version

_EPILOG = """\
examples:
  tc-reduce broken.mlir --pipeline=gemm --load-pass-plugin=my_passes.py
  tc-reduce -o small.mlir broken.mlir --pass-pipeline='builtin.module(raise-to-tc,my-pass)'
  tc-reduce k.ptx                        (k.json, the launch file, beside it)
  tc-reduce k.ptx --grid=8 --block=32 --arg=a.npy --arg=empty=f32,1024
  tc-reduce --test='./crashes.sh' broken.mlir

The program of an MLIR file carries the passes that are left: tc-opt --run-reproducer FILE.
What is smallest so far is written at once: an interrupt loses nothing.

exit status:
  0  reduced
  3  bad input: file, flag, or a program that does not fail
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (tc-reduce --help)")


def make_parser() -> argparse.ArgumentParser:
    """All flags; those behind the file are of tc-opt or of tc-run."""
    parser = _Parser(
        prog="tc-reduce",
        usage="tc-reduce [-h] [--version] [-o FILE] [--test COMMAND] FILE [FLAG ...]",
        description="Shrinks a program that fails to the smallest one that fails in the same way: "
        "same pass, same verdict, same finding.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--version", action=Version)
    add("-o", dest="output", metavar="FILE", help="default: NAME.reduced.mlir or .ptx")
    add(
        "--test",
        metavar="COMMAND",
        help="as in mlir-reduce: gets each candidate's file; exit status 1 if it is of interest",
    )
    add("file", metavar="FILE", help="NAME.mlir or NAME.ptx")
    add("flags", nargs=argparse.REMAINDER, metavar="FLAG",
        help="of tc-opt for MLIR (executed after every pass), of tc-run for PTX")  # fmt: skip
    return parser
