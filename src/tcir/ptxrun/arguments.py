"""The flags of tc-run."""

from __future__ import annotations

import argparse
from pathlib import Path

from tcir.commandline import Parser, check_on_gpu
from tcir.debug.command import FORMS
from tcir.errors import LaunchError
from tcir.files import refusal
from tcir.run_options import DEFAULT_MAX_INSTRUCTIONS
from tcir.target import DEFAULT_TARGET

_EPILOG = """\
missing sizes are taken from the files that the compiler wrote next to the PTX
  tc-opt --emit=ptx      NAME.json, the launch file (docs/reference/launch-file.md): sizes,
  parameters and
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
                         followed by shape and strides
  parts=["u32=5", "bytes=00ff…", "map={…}", "x.npy"]
                         a struct: its parts in order (arrays are pointers); padding is bytes=00…,
                         tensor maps must be at multiples of 64 bytes

examples:
  tc-run examples/saxpy.ptx --grid 8 --block 128 --arg zeros=f32,1000 --arg zeros=f32,1000 \\
         --arg f32=1.5 --arg u32=1000 --save 1=out.npy --counters
  tc-run examples/reduce.cu --grid 20 --block 256 --arg zeros=f32,5000 --arg zeros=f32,1 \\
         --arg s32=5000
  tc-run examples/tf32_one_tile.mlir --pipeline=gemm --bundle one_tile
  tc-run --list-assumptions

exit status:
  0  the run was ok
  1  illegal acts or hazards
  2  incomplete: something has no rule
  3  bad input
  4  internal error
"""


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
    """Parser of all flags of tc-run."""
    parser = Parser(
        "tc-run",
        usage="tc-run [FLAG ...] FILE",
        description="Executes a PTX kernel on the simulated machine.",
        epilog=_EPILOG,
        error=LaunchError,
    )
    parser.add_general()
    for group in (_launch, _execution, _results, _debugging, _on_a_gpu):
        group(parser)
    return parser


def _launch(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("launch").add_argument
    add("file", nargs="?", metavar="FILE", help="PTX text, CUDA C++ (.cu), or - for standard input")
    add("--entry", metavar="NAME", help="entry function, if the module has more than one")
    add("--grid", type=_sizes, metavar="X[,Y,Z]", help="CTAs")
    add("--block", type=_sizes, metavar="X[,Y,Z]", help="threads of a CTA")
    add("--cluster", type=_sizes, metavar="X[,Y,Z]", help="CTAs of a cluster (1)")
    add("--dynamic-smem", type=_count, metavar="BYTES", help="dynamic shared memory (0)")
    add("--arg", action="append", default=[], metavar="VALUE", help="see below; may be repeated")
    add("--ctas-per-sm", type=_count, default=1, metavar="N",
        help="CTAs that share tensor memory, and run side by side (1)")  # fmt: skip
    add(
        "--again",
        action="store_true",
        help="launch a second time on the same memory: outputs must be the same",
    )
    add(
        "--programmatic",
        action="store_true",
        help="the launch may start before the previous one has ended: accesses before "
        "griddepcontrol.wait are races with it",
    )


def _execution(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("execution").add_argument
    add("--hazards", choices=("report", "off"), default="report", help="(report)")
    add("--seed", type=_count, metavar="N", help="varies the order of completions and warps")
    add(
        "--no-lockstep",
        action="store_true",
        help="runs every CTA on its own (same results, slower)",
    )
    add("--jobs", type=_count, default=1, metavar="N",
        help="processes for blocks of a grid whose CTAs do not meet (1; same results)")  # fmt: skip
    add("--numerics", choices=("exact", "fast"), default="exact", help="fast is not bit-exact")
    add("--max-instructions", type=_count, default=DEFAULT_MAX_INSTRUCTIONS, metavar="N",
        help="limit after which a run is stopped (%(default)s)")  # fmt: skip
    add(
        "--ordering",
        choices=("silicon", "isa"),
        default="silicon",
        help="isa: what only shipping code supports is an error",
    )
    add("--assume", action="append", default=[], metavar="NAME=ANSWER",
        help="another answer to an open hardware question, see --list-assumptions")  # fmt: skip
    add("--list-assumptions", action="store_true", help="open hardware questions")


def _results(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("results").add_argument
    add("--save", action="append", default=[], metavar="N=FILE.npy",
        help="writes argument N (from 0) after the run")  # fmt: skip
    add("--out", action="append", default=[], metavar="FILE.npy",
        help="writes the results in order: with a launch file")  # fmt: skip
    add("--max-findings", type=_count, default=50, metavar="N",
        help="findings that are printed (%(default)s); --json has all")  # fmt: skip
    add(
        "--counters",
        action="store_true",
        help="prints a table of the counters with units, and the bank conflicts of each "
        "instruction",
    )
    add("--json", metavar="FILE", help="writes the report as JSON")
    add(
        "--trace",
        metavar="FILE",
        help="writes a trace of the first cluster for ui.perfetto.dev: what each warp does when, "
        "in cycles that are modelled; needs the package perfetto",
    )


def _debugging(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("debugging").add_argument
    add("--break-at", metavar="WHERE", help=f"stops and shows the state: {FORMS}")
    add("--dump", action="append", default=[], metavar="PART",
        help="what --break-at shows: registers[@WARP][:TYPE][=NAMES|all], smem[=FROM:TO], "
        "tmem[=LANE:LANE,COLUMN:COLUMN], mbarriers; may be repeated")  # fmt: skip
    add(
        "--interactive",
        action="store_true",
        help="reads commands at the first instruction and at each stop: step, continue, break, "
        "watch, print, dump, where, quit",
    )


def _on_a_gpu(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("on a GPU").add_argument
    add(
        "--gpu",
        action="store_true",
        help="launches on a GPU of this computer, not on the simulated machine; on an H100 or H200 "
        "the tensor core of sm_100a is emulated",
    )
    add(
        "--bundle",
        type=Path,
        metavar="DIR",
        help="writes a folder to run on a GPU; of a directory: of each MLIR program in it whose "
        "head has a command with --pipeline, and the self-test",
    )
    add(
        "--emulate",
        action="store_true",
        help="for --bundle: rewrite programs for sm_100a to run on an H100 or H200, with helper "
        "warps as the tensor core",
    )
    add(
        "--pipeline",
        metavar="NAME{options}",
        help="for --bundle of an MLIR program: how to compile it",
    )
    add("--debug-prefix-map", action="append", default=[], metavar="OLD=NEW",
        help="for --pipeline: how paths of sources begin in its PTX and cubin")  # fmt: skip
    add("--input-seed", type=_count, metavar="N", help="of the MLIR program's inputs (0)")
    add(
        "--target",
        metavar="NAME",
        help=f"of the bundle's cubin, and of CUDA C++ (default {DEFAULT_TARGET.name})",
    )
    add(
        "--selftest",
        action="store_true",
        help="tests the assumptions on a B200; writes selftest.json, or --json FILE",
    )


def check_flags(options: argparse.Namespace) -> None:
    """Raises LaunchError for flags that would have no effect, and for impossible sizes."""
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
    if options.gpu:
        check_on_gpu(options, make_parser(), _SIMULATED, LaunchError)
    if options.interactive and options.file == "-":
        raise LaunchError("--interactive: expected a file: standard input gives the commands")
    mlir, cuda = options.file.endswith(".mlir"), options.file.endswith(".cu")
    kit = bool(options.bundle) and Path(options.file).is_dir()
    if options.dump and not options.break_at:
        raise LaunchError("--dump: expected also --break-at: it shows the state at a stop")
    if options.target and not (options.bundle or cuda):
        raise LaunchError("--target: expected --bundle DIR, or CUDA C++ to compile")
    if options.emulate and not options.bundle:
        raise LaunchError("--emulate: expected --bundle DIR; --gpu emulates if the GPU needs it")
    for flag in ("pipeline", "input_seed", "debug_prefix_map"):
        wanted = options.bundle and (mlir or (kit and flag == "input_seed"))
        if getattr(options, flag) not in (None, []) and not wanted:
            name = flag.replace("_", "-")
            raise LaunchError(f"--{name}: expected also --bundle DIR and an MLIR file")
    if options.bundle and mlir and not options.pipeline:
        raise LaunchError(
            f"--bundle of {options.file}: expected --pipeline NAME, which compiles it"
        )
    for flag in ("json", "trace", "save", "out"):
        given = getattr(options, flag)
        for text in given if isinstance(given, list) else [given] if given else []:
            _check_place(f"--{flag}", text.partition("=")[2] if flag == "save" else text, flag)


_SIMULATED = (
    "seed", "no_lockstep", "jobs", "numerics", "ordering", "assume", "hazards", "again",
    "ctas_per_sm", "counters", "json", "trace", "break_at", "interactive", "bundle",
)  # fmt: skip
"""Flags that apply only to the simulated machine."""


def _check_ways(options: argparse.Namespace) -> None:
    """Raises LaunchError for more than one way of following a run, and for one together with an
    option that needs the whole run."""
    ways = [f for f in ("break_at", "interactive", "counters") if getattr(options, f)]
    if len(ways) > 1:
        flags = " and ".join(f"--{flag.replace('_', '-')}" for flag in ways)
        raise LaunchError(f"expected one of {flags}")
    if options.trace == "":
        raise LaunchError("--trace: expected a file name")
    if options.trace and (ways or options.bundle):
        other = ways[0].replace("_", "-") if ways else "bundle"
        raise LaunchError(
            f"--trace: expected no --{other}, which does not run the launch to its end"
        )
    if ways and options.jobs != 1:
        way = ways[0].replace("_", "-")
        raise LaunchError(f"--jobs: expected no --{way}, which needs all warps in one process")


def _check_place(flag: str, path: str, kind: str) -> None:
    """Raises LaunchError if a file that is to be written after the run cannot be written.

    kind: name of the option; `save` and `out` need the suffix .npy
    """
    place = Path(path)
    if kind in ("save", "out") and place.suffix != ".npy":
        raise LaunchError(f"{flag} {path}: expected a file name that ends in .npy")
    why = refusal(place)
    if why:
        raise LaunchError(f"{flag} {path}: {why}")
