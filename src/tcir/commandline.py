"""Parts that the commands share: errors for bad flags, help, versions, and shell completion."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import NoReturn

from tcir.errors import Error, InputError, MissingDependencyError
from tcir.streams import write_output
from tcir.target import TARGETS
from tcir.version import Version

SHELLS = ("bash", "zsh", "tcsh")


class Parser(argparse.ArgumentParser):
    """Argument parser of a command; `ways.add_parser` creates the parser of a subcommand."""

    def __init__(
        self,
        prog: str,
        description: str = "",
        epilog: str = "",
        usage: str | None = None,
        error: type[Error] = InputError,
    ) -> None:
        super().__init__(
            prog,
            usage,
            description,
            epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._error = error

    def error(self, message: str) -> NoReturn:
        raise self._error(f"{message} ({self.prog} --help)")

    def add_general(self) -> None:
        """Adds the flags that every command has."""
        self.add_argument("--version", action=Version)
        self.add_argument("--print-completion", action=Completion)


def check_on_gpu(
    given: argparse.Namespace,
    parser: argparse.ArgumentParser,
    simulated: Sequence[str],
    error: type[Error] = InputError,
) -> None:
    """Raises `error` if a flag that applies only to the simulated machine is given with --gpu."""
    default = parser.parse_args([])
    for name in simulated:
        if getattr(given, name) != getattr(default, name):
            flag = name.replace("_", "-")
            raise error(f"--gpu: expected no --{flag}, which applies only to the simulated machine")


class Completion(argparse.Action):
    """Prints a completion script for a shell, and ends the command."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        words = "a script that completes this command's flags (extra completion)"
        super().__init__(option_strings, dest, choices=SHELLS, help=words)

    def __call__(
        self, parser: argparse.ArgumentParser, _: argparse.Namespace, shell: object, *__: object
    ) -> None:
        write_output(completion(parser, str(shell)).encode())
        parser.exit()


_SPLIT_AT_EQUALS = """
# bash splits --flag=value at the =.
_tcir_PROG() {
  local -a words=("${COMP_WORDS[@]}") kept=()
  local at cword=0
  for at in "${!words[@]}"; do
    if [[ ${words[at]} == "=" ]]; then
      (( at == COMP_CWORD )) && kept+=("")
    else
      kept+=("${words[at]}")
    fi
    (( at == COMP_CWORD )) && cword=$(( ${#kept[@]} - 1 ))
  done
  local -a COMP_WORDS=("${kept[@]}")
  local COMP_CWORD=$cword
  _shtab_PROG
}
complete -o bashdefault -F _tcir_PROG COMMAND
"""


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Completion script of `shell` for a command. Raises MissingDependencyError without shtab."""
    try:
        import shtab
    except ImportError:
        raise MissingDependencyError(
            "--print-completion needs the package shtab (pip install 'tcir[completion]')"
        ) from None
    if parser.prog == "tc-opt":  # whose flags are passes, too
        from tcir.passmanager.pipeline import suggested_passes

        for name in suggested_passes():
            parser.add_argument(f"--{name}", action="store_true", help="a pass")
    _give_values(parser, {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY})
    script: str = shtab.complete(parser, shell)
    if shell == "bash":
        name = parser.prog.replace("-", "_")
        script += _SPLIT_AT_EQUALS.replace("PROG", name).replace("COMMAND", parser.prog)
    return script


def _give_values(parser: argparse.ArgumentParser, files: Mapping[str, object]) -> None:
    """Adds completions of the flags' values: names of pipelines and targets, files, folders."""
    from tcir.passmanager.pipeline import registered_pipelines

    names = {"pipeline": [*registered_pipelines()], "target": [*TARGETS]}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for way in action.choices.values():
                _give_values(way, files)
        elif action.dest in names and action.choices is None:
            action.choices = names[action.dest]
        for word, complete in files.items():
            if word in str(action.metavar):
                action.complete = complete  # type: ignore[attr-defined]
