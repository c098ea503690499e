"""The implementation of tc-viz, which draws a view that is selected by its name and writes it as
text, SVG or HTML.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcir.commandline import Parser
from tcir.errors import Error, InputError
from tcir.files import check_writable, load_array, write_atomic
from tcir.layout import LayoutError
from tcir.streams import write_output
from tcir.target import DEFAULT_TARGET, TARGETS

from .picture import Picture

FORMATS = ("text", "svg", "html", "typst")
SUFFIXES = {"svg": "svg", "html": "html", "typ": "typst", "txt": "text", "text": "text", "": "text"}
WARPS = 32
"""Maximum number of warps of a CTA: 1024 threads."""


def _numbers(words: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in words.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers such as 2,2,1, got {words}") from None


def _cycles(words: str) -> tuple[int, int]:
    found = _numbers(words)
    if len(found) != 2 or not 0 <= found[0] < found[1]:
        raise argparse.ArgumentTypeError(f"expected two cycles such as 0,2000, got {words}")
    return found[0], found[1]


def _triple(words: str) -> tuple[int, int, int]:
    found = _numbers(words)
    if len(found) > 3:
        raise argparse.ArgumentTypeError(f"expected at most three numbers, got {words}")
    a, b, c = (*found, *(0, 0, 0)[len(found) :])
    return a, b, c


_EPILOG = """\
examples:
  tc-viz fragment mma.m16n8k16 --operand A
  tc-viz smem --columns 64 --swizzle 128B -o smem.svg
  tc-viz timeline examples/tf32_one_tile.mlir --pipeline=gemm -o timeline.html

exit status:
  0  drawn
  3  bad input: file, layout, atom, view
"""


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    top = Parser(
        prog="tc-viz",
        description="Draws layouts, fragments, memories, schedules and reports.",
        epilog=_EPILOG,
    )
    top.add_general()
    views = top.add_subparsers(dest="view", required=True, metavar="view")

    def view(name: str, words: str) -> argparse._ArgumentGroup:
        sub = views.add_parser(name, help=words, description=words, epilog=_EPILOG)
        shown: argparse._ArgumentGroup = sub.add_argument_group("what is shown")
        _add_picture(sub.add_argument_group("picture"), name == "report")
        return shown

    view("layout", "a shape:stride layout").add_argument("layout", help="e.g. '(4,8):(8,1)'")

    fragment = view("fragment", "which thread and register holds each element")
    fragment.add_argument("atom", help="e.g. mma.m16n8k16, mma.m16n8k8.tf32, ldmatrix.x4")
    product = view("mma", "A · B → C of an mma: which thread and register holds each element")
    product.add_argument("atom", help="e.g. mma.m16n8k16")
    copied = view("copy", "a copy made for an operand of an mma: both sides")
    copied.add_argument("copy", help="e.g. ldmatrix.x4, ldmatrix.x2.trans, stmatrix.x2, copy.b32")
    copied.add_argument("atom", help="the mma, e.g. mma.m16n8k16")
    for sub in (fragment, copied):
        sub.add_argument("--operand", choices=("A", "B", "C", "D"), default="A", help="(A)")
    for sub in (fragment, product, copied):
        sub.add_argument(
            "--atoms", type=_triple, default=(1, 1, 1), metavar="M,N,K", help="atoms over threads"
        )
        sub.add_argument("--tile", type=_triple, metavar="M,N,K", help="tile of the tiled mma")
    fragment.add_argument(
        "--values", metavar="FILE.npy", help="a matrix to list by threads instead of numbers"
    )

    smem = view("smem", "a tile in shared memory: swizzle, banks, conflicts of ldmatrix")
    smem.add_argument("--rows", type=int, default=16, metavar="N", help="(16)")
    smem.add_argument("--columns", type=int, default=64, metavar="N", help="(64)")
    smem.add_argument("--element-bytes", type=int, choices=(1, 2, 4), default=2, help="(2)")
    smem.add_argument(
        "--swizzle", default="128B", metavar="MODE", help="NONE, 32B, 64B, 128B, 128B_ATOM_32B"
    )
    smem.add_argument(
        "--unit", type=int, default=0, metavar="N", help="16 bytes of each row that are read"
    )

    view("moves", "what moves data into and out of tensor memory")
    view("scale-factors", "the 512-byte block of scale factors")

    ld = view("ld", "tcgen05.ld and st")
    ld.add_argument("shape", help="e.g. 16x256b.x1")
    ld.add_argument("--half-split", type=int, metavar="COLUMNS", help="of 16x32bx2; default num")

    for name, words in (
        ("tmem", "tensor memory over a kernel (IR after plan-memory)"),
        ("conv", "shift-reuse steps of a convolution (IR after tile-conv-shift-reuse)"),
        ("accesses", "what a warp of a kernel on CUDA cores loads and stores (IR of threads)"),
    ):
        sub = view(name, words)
        sub.add_argument("file", help="MLIR text; - is standard input")
        sub.add_argument(
            "--cta", type=_triple, default=(0, 0, 0), metavar="X,Y,Z", help="of the grid (0,0,0)"
        )
        if name == "conv":
            sub.add_argument("--filter-row", type=int, metavar="R", help="default: the middle one")
        if name == "accesses":
            sub.add_argument("--warp", type=int, default=0, metavar="W", help="of the CTA (0)")

    line = view("timeline", "when each warp and resource does what, modelled, and what overlaps")
    line.add_argument("file", help="MLIR text; - is standard input")
    line.add_argument(
        "--pipeline", required=True, metavar="NAME{options}", help="how it is compiled"
    )
    line.add_argument(
        "--target", default=DEFAULT_TARGET.name, choices=tuple(TARGETS), help="(%(default)s)"
    )
    line.add_argument("--entry", metavar="NAME", help="the launch, of several")
    line.add_argument(
        "--cycles", type=_cycles, metavar="FROM,TO", help="default: from the first to the last"
    )

    report = view("report", "the page of a --validate-each report")
    report.add_argument("file", help="the JSON of tc-opt --validate-each=FILE")
    report.add_argument("--tree", metavar="DIR", help="IR of --mlir-print-ir-tree-dir")
    report.add_argument("--input", metavar="FILE", help="the program as it came in")
    return top


def _add_picture(group: argparse._ArgumentGroup, report: bool) -> None:
    group.add_argument(
        "-o", metavar="FILE", dest="output", default="-", help="- is standard output"
    )
    if not report:
        group.add_argument(
            "--format", choices=FORMATS, help="default: by the name of FILE, else text"
        )
        group.add_argument(
            "--colour",
            choices=("auto", "always", "never"),
            default="auto",
            help="of text: auto, on a terminal",
        )


def _values(path: str | None) -> Any:
    if path is None:
        return None
    return load_array(path)


def kernel_picture(view: str, path: str, **options: Any) -> Picture:
    """Draws the view ``tmem``, ``conv`` or ``accesses`` of a file."""
    from tcir.program.source import load_module, mlir_context

    from .accesses import accesses_view
    from .conv_steps import conv_view
    from .tmem_map import tmem_view

    draw: Any = {"tmem": tmem_view, "conv": conv_view, "accesses": accesses_view}[view]
    with mlir_context() as context:
        picture: Picture = draw(load_module(path, context), **options)
    return picture


def timeline_picture(
    path: str,
    pipeline: str,
    target: str = DEFAULT_TARGET.name,
    entry: str | None = None,
    cycles: tuple[int, int] | None = None,
) -> Picture:
    """Draws the view ``timeline`` of the launches of a program."""
    from tcir.program.source import read_text
    from tcir.session.timeline import timelines

    from .timeline import timeline_view

    program = read_text(path)[0] if path == "-" else Path(path)
    return timeline_view(timelines(program, pipeline, target, entry), cycles)


def _check_atoms(arguments: argparse.Namespace) -> None:
    """LayoutError for more atoms than a CTA has warps, or for atoms of a copy, which takes none."""
    atoms, tile = getattr(arguments, "atoms", (1, 1, 1)), getattr(arguments, "tile", None)
    m, n, k = atoms
    if not 1 <= m * n * k <= WARPS or min(atoms) < 1:
        raise LayoutError(
            f"--atoms: expected 1 to {WARPS} in all, the warps of a CTA, got {m * n * k}"
        )
    copies = arguments.view == "fragment" and not arguments.atom.startswith("mma.")
    if copies and (atoms != (1, 1, 1) or tile):
        raise LayoutError(
            f"--atoms, --tile: expected an mma, which they tile, got {arguments.atom}"
        )


def picture(arguments: argparse.Namespace) -> Picture:
    """Draws the picture that the command line selects."""
    from . import fragments, layouts, moves, products

    _check_atoms(arguments)
    match arguments.view:
        case "layout":
            return layouts.layout_view(layouts.parse_layout(arguments.layout))
        case "fragment":
            return fragments.fragment_view(
                arguments.atom,
                arguments.operand,
                atoms=arguments.atoms,
                tile=arguments.tile or (None, None, None),
                values=_values(arguments.values),
            )
        case "mma":
            tile = arguments.tile or (None, None, None)
            return products.product_view(arguments.atom, arguments.atoms, tile)
        case "copy":
            tile = arguments.tile or (None, None, None)
            return products.copy_view(
                arguments.copy, arguments.atom, arguments.operand, arguments.atoms, tile
            )
        case "smem":
            return layouts.smem_view(
                arguments.rows,
                arguments.columns,
                arguments.element_bytes,
                arguments.swizzle,
                arguments.unit,
            )
        case "moves":
            return moves.moves_view()
        case "scale-factors":
            return layouts.scale_factor_view()
        case "ld":
            return fragments.ld_view(arguments.shape, arguments.half_split)
        case "timeline":
            return timeline_picture(
                arguments.file,
                arguments.pipeline,
                arguments.target,
                arguments.entry,
                arguments.cycles,
            )
        case "tmem":
            return kernel_picture("tmem", arguments.file, cta=arguments.cta)
        case "accesses":
            return kernel_picture(
                "accesses", arguments.file, cta=arguments.cta, warp=arguments.warp
            )
    return kernel_picture(
        "conv", arguments.file, cta=arguments.cta, filter_row=arguments.filter_row
    )


def render(drawn: Picture, form: str, colour: bool = False) -> str:
    """Returns the picture as ``text``, ``svg``, ``html`` or ``typst``."""
    from . import svg, text, typst

    if form == "text":
        return text.text(drawn, colour)
    if form == "typst":
        return typst.typst(drawn)
    return svg.svg(drawn) if form == "svg" else svg.html(drawn)


def _form(arguments: argparse.Namespace) -> str:
    suffix = Path(arguments.output).suffix.removeprefix(".")
    if arguments.view == "report":
        if arguments.output != "-" and suffix != "html":
            raise InputError(f"-o {arguments.output}: expected a name that ends in .html")
        return "html"
    if suffix not in SUFFIXES and arguments.output != "-" and not arguments.format:
        raise InputError(
            f"-o {arguments.output}: expected a name that ends in .svg, .html, .typ or .txt, got "
            f".{suffix}; a browser or rsvg-convert makes a bitmap or a PDF of an .svg"
        )
    return arguments.format or SUFFIXES.get(suffix, "text")


def _result(arguments: argparse.Namespace) -> str:
    form = _form(arguments)
    if arguments.view == "report":
        from .report import page_of_file

        return page_of_file(arguments.file, arguments.tree, arguments.input)
    terminal = arguments.output == "-" and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    colour = {"auto": terminal, "always": True, "never": False}[arguments.colour]
    return render(picture(arguments), form, colour)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns exit status 0, 3 for input that cannot be drawn, or the status of
    another error.
    """
    try:
        arguments = parser().parse_args(argv)
        if arguments.output != "-":
            check_writable(arguments.output)
        result = _result(arguments)
        if arguments.output == "-":
            write_output(result.encode())
        else:
            write_atomic(arguments.output, result.encode())
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0
