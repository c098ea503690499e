"""The flags of tc-opt."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from shlex import quote
from typing import Any

from tcir.codegen.cubin import ASSEMBLERS
from tcir.commandline import Parser
from tcir.errors import InputError, UnknownNameError, did_you_mean
from tcir.passmanager.pipeline import (
    Pipeline,
    UpstreamPass,
    make_pass,
    named_pipeline,
    suggested_passes,
)
from tcir.target import DEFAULT_TARGET, TARGETS

CODE = ("llvm", "ptx", "cubin", "sass")
"""Values of ``--emit`` that are generated code."""
_EMITS = ("mlir", "pretty", "launches", *CODE)

_EPILOG = """\
Every pass of tcir is a flag, --NAME or --NAME={option=value}, and so is every pass of MLIR;
flags run in the order given. Reports go to standard error, the result to -o.

examples:
  tc-opt examples/matmul.mlir --pipeline=gemm --emit=ptx -o matmul.ptx
  tc-opt examples/tf32_one_tile.mlir --pipeline='gemm{stages=2}' --validate-each --report=gemm.html
  tc-opt examples/matmul.mlir -raise-to-tc -cse -mlir-print-ir-after-all -mlir-print-ir-after-change
  tc-opt --list-pipelines

exit status:
  0  everything requested passed
  1  a pass changed the result, or the program has a hazard (or a diagnostic was not as expected)
  2  incomplete: something could not be executed, compared or assembled; sampled (--budget);
     with --strict: equal on small numbers only
  3  bad input: file, program, option, pass or pipeline
  4  internal error, or a crash of native code (a reproducer is saved)
"""


def make_parser() -> argparse.ArgumentParser:
    """Parser of all flags with fixed names. (`parse_arguments` also handles flags whose name is
    that of a pass.)
    """
    parser = Parser(
        prog="tc-opt",
        usage="tc-opt [FLAG | --PASS[={option=value}] ...] [FILE]",
        description="Runs passes over MLIR and, on request, executes the program after each.",
        epilog=_EPILOG,
    )
    parser.add_general()
    _add_program(parser)

    passes = parser.add_argument_group("passes")
    add = passes.add_argument
    add("--pipeline", metavar="NAME{options}", help="a named pipeline, see --list-pipelines")
    add("--pass-pipeline", metavar="TEXT", help="builtin.module(...), MLIR's passes and ours")
    add("--run-reproducer", action="store_true", help="run the pipeline the input file carries")
    add(
        "--load-pass-plugin",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file or module that registers passes, pipelines or rules",
    )
    add("--list-passes", action="store_true", help="our passes and their options")
    add("--list-pipelines", action="store_true", help="named pipelines, accepted input, options")
    add("--show-dialects", action="store_true", help="dialects this tool knows")

    execution = parser.add_argument_group("execution after every pass")
    add = execution.add_argument
    add(
        "--validate-each",
        nargs="?",
        const="",
        metavar="=REPORT.json",
        help="execute after every pass and compare; optionally save the report",
    )
    add("--report", metavar="FILE.html",
        help="execute after every pass, and write a page for a browser: verdicts, the IR before "
        "and after each pass, PTX, roofline, modelled timeline")  # fmt: skip
    add("--seed", type=int, default=0, metavar="N",
        help="of inputs and completion orders (default 0)")  # fmt: skip
    add("--inputs", choices=["integers", "random"], default="integers", help="kind of inputs")
    add("--orders", type=int, default=1, metavar="N", help="completion orders tried (default 1)")
    add("--jobs", type=int, default=1, metavar="N",
        help="processes for completion orders, or for blocks of a grid (default 1)")  # fmt: skip
    add("--budget", type=float, metavar="SECONDS",
        help="execute a sample of the CTAs if the estimate is longer (default: never)")  # fmt: skip
    add("--kinds", action="store_true",
        help="execute each kind of launch once; --budget then leaves out whole kinds")  # fmt: skip
    add("--strict", action="store_true",
        help="equal on small numbers does not count as success: exit status 2")  # fmt: skip
    add("--numerics", choices=["exact", "fast"], default="exact", help="fast is not bit-exact")
    add(
        "--max-instructions",
        type=int,
        metavar="N",
        help="of one execution (default: 20 times the level before, and 100000)",
    )
    add("--trace", metavar="FILE",
        help="a trace of the PTX for ui.perfetto.dev: what each warp of the first cluster does "
        "when, in cycles that are modelled; needs the package perfetto")  # fmt: skip
    add("--prove", nargs="?", const="", metavar="=CTAS",
        help="execute after every pass, and check every schedule of the PTX with sentryward, for "
        "all CTAs of each launch or the first CTAS; needs the package sentryward")  # fmt: skip
    add("--ordering", choices=["silicon", "isa"], default="silicon",
        help="isa: what only shipping code supports is an error")  # fmt: skip
    add("--assume", action="append", default=[], metavar="NAME=ANSWER",
        help="another answer to an open hardware question (tc-run --list-assumptions)")  # fmt: skip

    mlir = parser.add_argument_group("as in mlir-opt")
    add = mlir.add_argument
    add("--split-input-file", action="store_true", help="pieces between lines // -----")
    add("--verify-diagnostics", action="store_true", help="compare with // expected-error {{…}}")
    add("--verify-each", nargs="?", const="true", default="true",
        choices=["true", "false", "1", "0"],
        help="verify after every pass (default true)")  # fmt: skip
    add("--verify-roundtrip", action="store_true",
        help="the input, written as text and as bytecode, is read back as the same")  # fmt: skip
    add("--allow-unregistered-dialect", action="store_true", help="accept unknown ops")
    add("--mlir-print-op-generic", action="store_true", help="print the generic form")
    add("--mlir-print-debuginfo", action="store_true", help="print locations")
    add("--mlir-print-local-scope", action="store_true",
        help="print locations and attributes where they are, without aliases")  # fmt: skip
    add("--dump-pass-pipeline", action="store_true", help="the pipeline to standard error")
    add("--mlir-print-ir-before", action="append", default=[], metavar="PASS,...",
        help="IR to standard error before these passes")  # fmt: skip
    add("--mlir-print-ir-after", action="append", default=[], metavar="PASS,...",
        help="IR to standard error after these passes")  # fmt: skip
    add("--mlir-print-ir-before-all", action="store_true", help="before every pass")
    add("--mlir-print-ir-after-all", action="store_true", help="after every pass")
    add("--mlir-print-ir-after-change", action="store_true",
        help="with -after, -after-all: only after passes that changed the program")  # fmt: skip
    add("--mlir-print-ir-after-failure", action="store_true",
        help="IR to standard error after a pass that fails")  # fmt: skip
    add("--mlir-elide-elementsattrs-if-larger", type=int, metavar="N",
        help="leave out the elements of constants with more than N")  # fmt: skip
    add("--mlir-print-ir-tree-dir", metavar="DIR", help="IR after each pass to files in DIR")
    add("--mlir-timing", action="store_true", help="seconds of each pass to standard error")
    add(
        "--mlir-pass-pipeline-crash-reproducer",
        metavar="FILE",
        help="where the program before a failing or crashing pass is saved",
    )
    return parser


# Flags whose value is optional: only --flag=value gives one, never the next word.
_OPTIONAL_VALUE = {"--validate-each": "", "--verify-each": "true", "--prove": ""}


def _add_program(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("program and result").add_argument
    add("input", nargs="?", default="-", metavar="FILE", help="MLIR text; - is standard input")
    add("-o", dest="output", default="-", metavar="FILE", help="result; - is standard output")
    add("--emit", choices=_EMITS, default="mlir", help="form of the result (default mlir)")
    add(
        "--target",
        default=DEFAULT_TARGET.name,
        metavar="{" + ",".join(TARGETS) + "}",  # a plugin may add one
        help="architecture of PTX and cubin",
    )
    add("--assembler", choices=ASSEMBLERS, default=ASSEMBLERS[0],
        help="of --emit=cubin and sass; nvjitlink: the library nvJitLink, through cuda-python "
        "(default ptxas)")  # fmt: skip
    add("--debug-prefix-map", action="append", default=[], metavar="OLD=NEW",
        help="how paths of sources begin in LLVM IR, PTX and cubin, as compilers' "
        "-fdebug-prefix-map; may be repeated")  # fmt: skip
    add("--entry", metavar="NAME", help="the program, where a module has several public functions")


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parses flags to a namespace; ``pass_flags`` has the (name, options) of the flags whose name
    is that of a pass.
    """
    parser = make_parser()
    known = {option for action in parser._actions for option in action.option_strings}
    rest: list[str] = []
    flags: list[tuple[str, str]] = []
    words = [_two_dashes(word) for word in words]
    for position, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word == "--":
            rest += words[position:]
            break
        if name in _OPTIONAL_VALUE and not equals:
            rest.append(f"{name}={_OPTIONAL_VALUE[name]}")
        elif name.startswith("--") and name not in known:
            flags.append((name[2:], value if not value or value[0] == "{" else f"{{{value}}}"))
        else:
            rest.append(word)
    pipelines = [word for word in rest if word.partition("=")[0] == "--pipeline"]
    if len(pipelines) > 1:
        raise InputError("expected one --pipeline, got two or more")
    parsed = parser.parse_args(rest)
    _check_together(parsed)
    parsed.pass_flags = flags
    parsed.known_flags = sorted(known)
    return parsed


def _two_dashes(word: str) -> str:
    """Converts ``-canonicalize`` to ``--canonicalize``, since LLVM's commands accept both."""
    return f"-{word}" if re.fullmatch(r"-[a-zA-Z][\w-]+(=.*)?", word, re.DOTALL) else word


def _check_together(parsed: argparse.Namespace) -> None:
    """Rejects flags that have no meaning without others; a flag that needs execution enables
    it."""
    if parsed.report is not None:
        if not parsed.report.endswith(".html") or parsed.split_input_file:
            got = "--split-input-file" if parsed.split_input_file else repr(parsed.report)
            raise InputError(
                f"--report: expected a name that ends in .html, and one module, got {got}"
            )
        if parsed.validate_each is None:
            parsed.validate_each = ""
    if parsed.prove is not None:
        if parsed.emit not in CODE[1:]:
            raise InputError("--prove: expected --emit=ptx, cubin or sass: it judges the PTX")
        if not re.fullmatch(r"[1-9]\d*|", parsed.prove):
            raise InputError(
                f"--prove: expected a number of CTAs, at least 1, got {parsed.prove!r}"
            )
        if parsed.validate_each is None:
            parsed.validate_each = ""
    given = {"orders": parsed.orders != 1, "jobs": parsed.jobs != 1,
             "budget": parsed.budget is not None, "strict": parsed.strict,
             "kinds": parsed.kinds}  # fmt: skip
    for flag in (flag for flag, set_ in given.items() if set_ and parsed.validate_each is None):
        what = "tries them" if flag == "orders" else "executes the program"
        raise InputError(f"--{flag}: expected --validate-each, which {what}")
    printed = parsed.mlir_print_ir_after_all or parsed.mlir_print_ir_after
    if parsed.mlir_print_ir_after_change and not printed:
        raise InputError(
            "--mlir-print-ir-after-change: expected --mlir-print-ir-after-all, or -after=PASS, "
            "whose output it limits to passes that changed the program"
        )
    most = parsed.mlir_elide_elementsattrs_if_larger
    if most is not None and most < 0:
        raise InputError(
            f"--mlir-elide-elementsattrs-if-larger: expected at least 0 elements, got {most}"
        )
    if parsed.trace == "":
        raise InputError("--trace: expected a file name")
    if parsed.trace is not None and (parsed.validate_each is None or parsed.emit not in CODE[1:]):
        raise InputError(
            "--trace: expected --validate-each and --emit=ptx, cubin or sass: it traces the "
            "execution of the PTX"
        )


def plugin_flags(arguments: argparse.Namespace) -> str:
    """The flags that load the plugins of this command line, each followed by a space."""
    return "".join(f"--load-pass-plugin={quote(plugin)} " for plugin in arguments.load_pass_plugin)


def chosen_pipeline(arguments: argparse.Namespace, source: str) -> Pipeline:
    """The pipeline that the flags select; empty if they select no pass."""
    ways: dict[str, Any] = {
        "--pipeline": arguments.pipeline,
        "--pass-pipeline": arguments.pass_pipeline,
        "--run-reproducer": arguments.run_reproducer,
        "flags of single passes": arguments.pass_flags,
    }
    given = [way for way, value in ways.items() if value]
    flags = _pipeline_of_flags(arguments)
    if len(given) > 1:
        raise InputError(f"expected one way to name passes, got {' and '.join(given)}")
    if arguments.pipeline:
        return named_pipeline(arguments.pipeline).check()
    if arguments.pass_pipeline:
        return Pipeline.parse(arguments.pass_pipeline).check()
    if arguments.run_reproducer:
        return Pipeline.parse(_carried_pipeline(source)).check()
    return flags


def _pipeline_of_flags(arguments: argparse.Namespace) -> Pipeline:
    passes = []
    for name, options in arguments.pass_flags:
        item = make_pass(name, options)
        if isinstance(item, UpstreamPass):
            item = item.nested()
        try:
            passes.append(Pipeline([item]).check())
        except UnknownNameError:
            near = did_you_mean(
                f"--{name}",
                [*arguments.known_flags, *(f"--{known}" for known in suggested_passes())],
            )
            near = near if "did you mean" in near else " (tc-opt --help, tc-opt --list-passes)"
            raise UnknownNameError(f"unknown option or pass '--{name}'{near}") from None
    return Pipeline(item for part in passes for item in part)


def _carried_pipeline(source: str) -> str:
    found = re.search(r'pipeline: "((?:[^"\\]|\\.)*)"', source)
    if found is None:
        raise InputError("expected a reproducer: a file with mlir_reproducer at its end, got none")
    return re.sub(r"\\(.)", r"\1", found[1])
