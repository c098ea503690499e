"""tc-run: executes a PTX kernel on the simulated machine (`tcir.run_ptx` from the shell).

    tc-run saxpy.ptx --grid 8 --block 128 --arg x.npy --arg y.npy --arg f32=1.5 --arg u32=1000 \\
           --save 1=out.npy

Block, cluster, dynamic shared memory, entry and scratch arguments are taken from what Triton or
CuTe DSL left beside the file, and from the entry's directives (`tools/launch_metadata.py`); what
the command line says goes first.

``--break-at`` stops at a line, a hazard or a wrong result and shows registers and memories.
``--bundle DIR`` writes the kernel, its inputs and what the machine computes into a folder that runs
on somebody else's GPU; a program in MLIR is compiled first (``--pipeline``). ``--selftest`` asks a
B200 the questions of the machine's assumptions.

Exit status: 0 the run was ok, 1 illegal acts or hazards, 2 incomplete, 3 bad input, 4 internal,
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tcir import debug
from tcir.debug.command import FORMS, break_at
from tcir.errors import Error
from tcir.machine import REGISTRY, TensorMap
from tcir.machine.refusal import Refusal
from tcir.run import (
    DEFAULT_MAX_INSTRUCTIONS,
    LaunchError,
    PtxSyntaxError,
    Uninitialized,
    entry_name,
    run_ptx,
)
from tcir.target import DEFAULT_TARGET
from tcir.tools.launch_metadata import LaunchMetadata, launch_metadata

_DTYPES: dict[str, Any] = {
    **{
        f"{k}{n}": np.dtype(f"{'i' if k == 's' else k}{n // 8}")
        for k in "us"
        for n in (8, 16, 32, 64)
    },
    "f16": np.dtype("f2"),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}

_EPILOG = """\
sizes that are left out are taken from the files that the compiler wrote beside the PTX
  Triton, Gluon          NAME.json of the cache folder: block, cluster, dynamic shared memory,
                         entry, scratch arguments. Its grid counts clusters: --grid counts CTAs
  CuTe DSL               cute_dsl_NAME_clean.mlir (CUTE_DSL_KEEP=ir,ptx): block, cluster, grid
and from .reqntid and .reqnctapercluster.

arguments, one per kernel parameter, in order:
  FILE.npy               an array in device memory
  zeros=f32,128x64       an array of zeros; empty=f32,128x64: one whose reads are reported
  u32=5  f32=1.5         a scalar
  bytes=00ff…            a by-value parameter in hexadecimal
  map={"array": "x.npy", "mode": "tiled", "dtype": "f16", "dims": [64, 128],
       "strides_bytes": [128], "box": [64, 128], "swizzle": "128B"}
                         a tensor map (innermost dimension first); "array" may be the number of
                         another argument
  parts=["u32=5", "bytes=00ff…", "map={…}", "x.npy"]
                         a struct: parts one behind the other (arrays are pointers); padding is
                         bytes=00…, tensor maps want multiples of 64 bytes
"""


def _shape(text: str, arrays: str) -> np.ndarray:
    name, _, shape = text.partition(",")
    if name not in _DTYPES or not shape:
        raise LaunchError(f"{arrays}: expected TYPE,AxBxC with one of {', '.join(_DTYPES)}")
    return np.zeros([int(n) for n in shape.split("x")], _DTYPES[name])


def _array(value: Any) -> np.ndarray:
    return value.array if isinstance(value, Uninitialized) else value


def argument(text: str, earlier: Sequence[Any]) -> Any:
    """The Python value of one --arg. Raises LaunchError."""
    kind, separator, value = text.partition("=")
    try:
        if not separator:
            return np.ascontiguousarray(np.load(text))
        if kind == "zeros":
            return _shape(value, text)
        if kind == "empty":
            return Uninitialized(_shape(value, text))
        if kind == "bytes":
            return bytes.fromhex(value)
        if kind == "parts":
            return tuple(argument(part, earlier) for part in json.loads(value))
        if kind == "map":
            fields = json.loads(value)
            source = fields.pop("array")
            mode = fields.pop("mode", "tiled")
            array = _array(earlier[source]) if isinstance(source, int) else argument(source, ())
            build: Any = {"tiled": TensorMap.tiled, "im2col": TensorMap.im2col}[mode]
            return build(array, **fields)
        if kind in _DTYPES:
            dtype = _DTYPES[kind]
            number = int(value, 0) if dtype.kind in "iu" else float(value)
            return np.array(number).astype(dtype)[()]
    except (OSError, ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise LaunchError(f"--arg {text}: {error}") from None
    raise LaunchError(
        f"--arg {text}: expected FILE.npy, TYPE=VALUE, zeros=, empty=, bytes=, map= or parts="
    )


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(n, 0) for n in text.split(","))


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        "tc-run",
        description="Executes a PTX kernel on the simulated machine.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("file", nargs="?", help="PTX text, or - for standard input")
    p.add_argument("--entry", help="entry function, if the module has more than one")
    p.add_argument("--grid", type=_sizes, metavar="X[,Y,Z]", help="CTAs")
    p.add_argument("--block", type=_sizes, metavar="X[,Y,Z]", help="threads of a CTA")
    p.add_argument("--cluster", type=_sizes, metavar="X[,Y,Z]", help="CTAs of a cluster (1)")
    p.add_argument("--ctas-per-sm", type=int, default=1, metavar="N",
                   help="CTAs that share tensor memory, and run side by side (1)")  # fmt: skip
    p.add_argument("--dynamic-smem", type=int, metavar="BYTES", help="(0)")
    p.add_argument("--arg", action="append", default=[], metavar="VALUE", help="see below")
    p.add_argument("--save", action="append", default=[], metavar="N=FILE.npy",
                   help="writes argument N (from 0) after the run")  # fmt: skip
    p.add_argument("--hazards", choices=("report", "off"), default="report")
    p.add_argument("--seed", type=int, help="varies the order of completions and warps")
    p.add_argument("--numerics", choices=("exact", "fast"), default="exact")
    p.add_argument("--max-instructions", type=int, default=DEFAULT_MAX_INSTRUCTIONS)
    p.add_argument("--json", metavar="FILE", help="writes the report as JSON")
    p.add_argument("--break-at", metavar="WHERE", help=f"stops and shows the state: {FORMS}")
    p.add_argument("--dump", action="append", default=[], metavar="PART",
                   help="what --break-at shows: registers[@WARP][=NAMES|all], smem[=FROM:TO], "
                   "tmem[=LANE:LANE,COLUMN:COLUMN], mbarriers; may be repeated")  # fmt: skip
    p.add_argument("--bundle", type=Path, metavar="DIR", help="writes a folder to run on a GPU")
    p.add_argument(
        "--target",
        default=DEFAULT_TARGET.name,
        help="of the bundle's cubin (default %(default)s)",
    )
    p.add_argument("--pipeline", help="for --bundle of an MLIR program: how to compile it")
    p.add_argument("--input-seed", type=int, default=0, help="of the MLIR program's inputs (0)")
    p.add_argument("--selftest", action="store_true", help="what a B200 says to the assumptions")
    p.add_argument("--list-assumptions", action="store_true", help="open hardware questions")
    return p


def list_assumptions() -> str:
    """The registry in words: the question, what is assumed, what else it could be, and why."""
    return "\n".join(
        f"{a.name}: {a.question}\n"
        f"    assumed   {a.default} (out of {', '.join(map(str, a.alternatives))})\n"
        f"    evidence  {a.evidence}\n"
        f"    used by   {a.used_by}"
        for a in REGISTRY
    )


def progress() -> Callable[[int, int], None] | None:
    """Rewrites one line of a terminal's standard error, at most five times a second."""
    if not sys.stderr.isatty():
        return None
    last = 0.0

    def show(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done == total:
            sys.stderr.write("\r\x1b[K")
        elif now - last > 0.2:
            last = now
            sys.stderr.write(f"\r{done} of {total} CTAs")
            sys.stderr.flush()

    return show


def complete(options: argparse.Namespace, path: Path | None, ptx: str) -> LaunchMetadata:
    """Fills in the sizes that the command line left out. Raises LaunchError, PtxSyntaxError."""
    known = launch_metadata(path, ptx, options.entry)
    taken = []
    for name in ("entry", "grid", "block", "cluster", "dynamic_smem"):
        value = getattr(known, name)
        if getattr(options, name) is None and value is not None:
            setattr(options, name, value)
            taken.append(name)
    if options.dynamic_smem is None and known.unknown:
        raise LaunchError(
            f"expected --dynamic-smem: {known.sources[0]} does not say {known.unknown}"
        )
    if not (options.grid and options.block):
        raise LaunchError("expected --grid and --block: nothing beside the file says them")
    if taken:
        print(f"launch from {known}", file=sys.stderr)
    options.cluster = options.cluster or (1, 1, 1)
    options.dynamic_smem = options.dynamic_smem or 0
    return known


def main(argv: Sequence[str] | None = None) -> int:
    options = parser().parse_args(argv)
    if options.selftest:
        from tcir.runtime.selftest import main as selftest

        return selftest()
    if options.list_assumptions:
        print(list_assumptions())
        return 0
    try:
        if options.bundle and options.pipeline and options.file:
            from tcir.runtime.bundle import write_program

            write_program(
                options.bundle,
                options.file,
                options.pipeline,
                seed=options.input_seed,
                target=options.target,
            )
            print(f"{options.bundle}: python run.py")
            return 0
        if not options.file:
            raise LaunchError("expected a file")
        path = None if options.file == "-" else Path(options.file)
        ptx = path.read_text() if path else sys.stdin.read()
        known = complete(options, path, ptx)
        args: list[Any] = []
        for text in options.arg:
            args.append(argument(text, args))
        args += known.scratch_arguments(len(args), math.prod(options.grid))
        saves = []
        for text in options.save:
            number, _, name = text.partition("=")
            if not (number.isdigit() and name and int(number) < len(args)):
                raise LaunchError(f"--save {text}: expected the number of an argument and a file")
            array = _array(args[int(number)])
            if not isinstance(array, np.ndarray):
                raise LaunchError(f"--save {text}: argument {number} is no array")
            saves.append((name, array))
        if options.bundle:
            from tcir.runtime.bundle import Call, write

            call = Call(
                entry_name(ptx, options.entry),
                options.grid,
                options.block,
                options.cluster,
                options.dynamic_smem,
                args,
            )
            write(
                options.bundle,
                ptx,
                [call],
                target=options.target,
                origin={"program": Path(options.file).name, "arguments": options.arg},
            )
            print(f"{options.bundle}: python run.py")
            return 0
        launch: dict[str, Any] = {
            "entry": options.entry,
            "grid": options.grid,
            "block": options.block,
            "cluster": options.cluster,
            "ctas_per_sm": options.ctas_per_sm,
            "dynamic_smem": options.dynamic_smem,
            "args": args,
            "hazards": options.hazards,
            "order_seed": options.seed,
            "numerics": options.numerics,
            "max_instructions": options.max_instructions,
        }
        if options.break_at:
            stop = debug.run(ptx, break_at=break_at(options.break_at), **launch)
            print(f"{stop.where_text()}\n{stop.dump(options.dump)}")
            report = stop.report
        else:
            report = run_ptx(ptx, **launch, progress=progress())
        for name, array in saves:
            np.save(name, array)
        if options.json:
            Path(options.json).write_text(json.dumps(report.as_dict(), indent=2) + "\n")
    except PtxSyntaxError as error:
        print(f"{options.file}:{error}", file=sys.stderr)
        return 3
    except (LaunchError, Refusal, OSError, UnicodeDecodeError) as error:
        print(f"tc-run: {error}", file=sys.stderr)
        return 3
    except Error as error:
        print(f"tc-run: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("tc-run: interrupted", file=sys.stderr)
        return 130
    print(report)
    return 0 if report.ok else 2 if report.incomplete else 1


if __name__ == "__main__":
    sys.exit(main())
