"""The flags of tc-run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from tcir.debug.command import FORMS
from tcir.errors import LaunchError
from tcir.files import refusal
from tcir.run_options import DEFAULT_MAX_INSTRUCTIONS
from tcir.target import DEFAULT_TARGET
from tcir.version import Version

_EPILOG = """\
missing sizes are taken from the files that the compiler wrote next to the PTX
  tc-opt --emit=ptx      NAME.json, the launch file (docs/launch-file.md): sizes, parameters and
                         several launches; --arg FILE.npy for each input, --out for each result
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
  desc=x.npy             a tensor descriptor of Triton's: the tensor map that NAME.json describes,
                         and shape and strides behind it
  parts=["u32=5", "bytes=00ff…", "map={…}", "x.npy"]
                         a struct: parts one behind the other (arrays are pointers); padding is
                         bytes=00…, tensor maps want multiples of 64 bytes
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise LaunchError(f"{message} (tc-run --help)")


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(n, 0) for n in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected X[,Y,Z], got {text!r}") from None


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, got {text!r}")
    return int(text)


def make_parser() -> argparse.ArgumentParser:
    """All flags."""
    p = _Parser(
        "tc-run",
        description="Executes a PTX kernel on the simulated machine.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    p.add_argument("--version", action=Version)
    p.add_argument("file", nargs="?", help="PTX text, CUDA C++ (.cu), or - for standard input")
    p.add_argument("--entry", help="entry function, if the module has more than one")
    p.add_argument("--grid", type=_sizes, metavar="X[,Y,Z]", help="CTAs")
    p.add_argument("--block", type=_sizes, metavar="X[,Y,Z]", help="threads of a CTA")
    p.add_argument("--cluster", type=_sizes, metavar="X[,Y,Z]", help="CTAs of a cluster (1)")
    p.add_argument("--ctas-per-sm", type=_count, default=1, metavar="N",
                   help="CTAs that share tensor memory, and run side by side (1)")  # fmt: skip
    p.add_argument("--programmatic", action="store_true",
                   help="the launch may start before the one in front of it has ended: what is not "
                   "behind griddepcontrol.wait is a race with it")  # fmt: skip
    p.add_argument("--dynamic-smem", type=_count, metavar="BYTES", help="(0)")
    p.add_argument("--arg", action="append", default=[], metavar="VALUE", help="see below")
    p.add_argument("--save", action="append", default=[], metavar="N=FILE.npy",
                   help="writes argument N (from 0) after the run")  # fmt: skip
    p.add_argument("--out", action="append", default=[], metavar="FILE.npy",
                   help="writes the results in order: with a launch file")  # fmt: skip
    p.add_argument("--hazards", choices=("report", "off"), default="report")
    p.add_argument("--seed", type=_count, help="varies the order of completions and warps")
    p.add_argument(
        "--no-lockstep",
        action="store_true",
        help="runs every CTA on its own (same results, slower)",
    )
    p.add_argument("--jobs", type=_count, default=1, metavar="N",
        help="processes for blocks of a grid whose CTAs do not meet (1; same results)")  # fmt: skip
    p.add_argument("--numerics", choices=("exact", "fast"), default="exact")
    p.add_argument("--max-instructions", type=_count, default=DEFAULT_MAX_INSTRUCTIONS)
    p.add_argument("--ordering", choices=("silicon", "isa"), default="silicon",
                   help="isa: what only shipping code proves is an error, too")  # fmt: skip
    p.add_argument("--assume", action="append", default=[], metavar="NAME=ANSWER",
                   help="another answer to an open hardware question, see "
                   "--list-assumptions")  # fmt: skip
    p.add_argument("--max-findings", type=_count, default=50, metavar="N",
                   help="findings that are printed (%(default)s); --json has all")  # fmt: skip
    p.add_argument("--json", metavar="FILE", help="writes the report as JSON")
    p.add_argument("--trace", metavar="FILE",
                   help="writes a trace of the first cluster for ui.perfetto.dev: what each warp "
                   "does when, in cycles that are modelled; needs the package "
                   "perfetto")  # fmt: skip
    p.add_argument("--break-at", metavar="WHERE", help=f"stops and shows the state: {FORMS}")
    p.add_argument("--dump", action="append", default=[], metavar="PART",
                   help="what --break-at shows: registers[@WARP][:TYPE][=NAMES|all], "
                   "smem[=FROM:TO], tmem[=LANE:LANE,COLUMN:COLUMN], mbarriers; "
                   "may be repeated")  # fmt: skip
    p.add_argument("--interactive", action="store_true",
                   help="asks at the first instruction and at each stop: step, continue, break, "
                   "watch, print, dump, where, quit")  # fmt: skip
    p.add_argument("--counters", action="store_true",
                   help="prints a table of the counters with units, and the bank conflicts of each "
                   "instruction")  # fmt: skip
    p.add_argument("--bundle", type=Path, metavar="DIR",
                   help="writes a folder to run on a GPU; of a directory: of each MLIR program in "
                   "it whose head has a command with --pipeline, and the self-test")  # fmt: skip
    p.add_argument(
        "--target",
        help=f"of the bundle's cubin, and of CUDA C++ (default {DEFAULT_TARGET.name})",
    )
    p.add_argument("--pipeline", help="for --bundle of an MLIR program: how to compile it")
    p.add_argument("--input-seed", type=_count, help="of the MLIR program's inputs (0)")
    p.add_argument(
        "--selftest",
        action="store_true",
        help="what a B200 says to the assumptions; writes selftest.json, or --json FILE",
    )
    p.add_argument("--list-assumptions", action="store_true", help="open hardware questions")
    return p


def check_flags(options: argparse.Namespace) -> None:
    """LaunchError for flags that would do nothing, and for sizes that cannot be."""
    if options.selftest or options.list_assumptions:
        name = "--selftest" if options.selftest else "--list-assumptions"
        default = make_parser().parse_args([name])
        if options.selftest:
            default.json = options.json
            _check_place("--json", options.json or "selftest.json", "json")
        if vars(options) != vars(default):
            but = " than --json FILE" if options.selftest else ""
            raise LaunchError(f"{name}: expected no other argument{but}")
        return
    if not options.file:
        raise LaunchError("expected a file (tc-run --help)")
    _check_ways(options)
    if options.interactive and options.file == "-":
        raise LaunchError("--interactive: expected a file: standard input gives the commands")
    mlir, cuda = options.file.endswith(".mlir"), options.file.endswith(".cu")
    kit = bool(options.bundle) and Path(options.file).is_dir()
    if options.dump and not options.break_at:
        raise LaunchError("--dump: expected --break-at, too: it shows the state at a stop")
    if options.target and not (options.bundle or cuda):
        raise LaunchError("--target: expected --bundle DIR, or CUDA C++ to compile")
    for flag in ("pipeline", "input_seed"):
        wanted = options.bundle and (mlir or (kit and flag == "input_seed"))
        if getattr(options, flag) is not None and not wanted:
            name = flag.replace("_", "-")
            raise LaunchError(f"--{name}: expected --bundle DIR and an MLIR file, too")
    if options.bundle and mlir and not options.pipeline:
        raise LaunchError(
            f"--bundle of {options.file}: expected --pipeline NAME, how to compile it"
        )
    for flag in ("json", "trace", "save", "out"):
        given = getattr(options, flag)
        for text in given if isinstance(given, list) else [given] if given else []:
            _check_place(f"--{flag}", text.partition("=")[2] if flag == "save" else text, flag)


def _check_ways(options: argparse.Namespace) -> None:
    """Of following a run one at most, and nothing beside it that needs the whole run."""
    ways = [f for f in ("break_at", "interactive", "counters") if getattr(options, f)]
    if len(ways) > 1:
        flags = " and ".join(f"--{flag.replace('_', '-')}" for flag in ways)
        raise LaunchError(f"expected one of {flags}")
    if options.trace == "":
        raise LaunchError("--trace: expected a file name")
    if options.trace and (ways or options.bundle):
        other = ways[0].replace("_", "-") if ways else "bundle"
        raise LaunchError(f"--trace: expected no --{other}, which runs no launch to its end")
    if ways and options.jobs != 1:
        raise LaunchError(f"--jobs: expected no --{ways[0].replace('_', '-')}, which follows warps")


def _check_place(flag: str, path: str, kind: str) -> None:
    """A file that is to be written when the run is over."""
    place = Path(path)
    if kind in ("save", "out") and place.suffix != ".npy":
        raise LaunchError(f"{flag} {path}: expected a file name that ends in .npy")
    why = refusal(place)
    if why:
        raise LaunchError(f"{flag} {path}: {why}")
