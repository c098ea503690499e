"""The command tc-opt: flags, listings, and one invocation in a child process.

The child (see `tcir.opt.containment`) turns a crash in native code into an error naming the pass.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence

from tcir.errors import Error
from tcir.opt.arguments import CODE, parse_arguments
from tcir.opt.containment import Checkpoint, Notes, run_contained
from tcir.streams import write_output


def main(words: Sequence[str]) -> int:
    """Runs tc-opt with the given command line; returns the exit status."""
    try:
        arguments = parse_arguments(words)
    except Error as error:
        return _print_error(error)
    return run_contained(
        lambda notes: _reporting(lambda: _run(arguments, notes)),
        lambda checkpoint, path: _reporting(lambda: _save(arguments, checkpoint, path)),
        arguments.mlir_pass_pipeline_crash_reproducer,
        arguments.validate_each,
    )


def _run(arguments: Namespace, notes: Notes) -> int:
    _load_native(arguments)
    _load_plugins(arguments)
    if arguments.list_passes or arguments.list_pipelines or arguments.show_dialects:
        from tcir.opt.listing import listing

        write_output(f"{listing(arguments)}\n".encode())
        return 0
    from tcir.opt.invocation import Invocation

    return Invocation(arguments, notes).run()


def _save(arguments: Namespace, checkpoint: Checkpoint, path: str) -> int:
    """Saves the program before the crash."""
    from tcir.opt.arguments import chosen_pipeline
    from tcir.opt.invocation import save_reproducer

    _load_plugins(arguments)
    pipeline = chosen_pipeline(arguments, checkpoint.text)
    save_reproducer(arguments, pipeline, checkpoint, path)
    return 0


def _load_native(arguments: Namespace) -> None:
    """Loads MLIR before anything that imports it, and LLVM meanwhile, in the worker's process."""
    from tcir import _mlir

    if arguments.validate_each is None:
        _mlir.load_without_numpy()
    if arguments.emit in CODE:
        from tcir import codegen

        codegen.start(fork=True)


def _load_plugins(arguments: Namespace) -> None:
    if arguments.load_pass_plugin:
        from tcir.opt.listing import load_plugin

        for plugin in arguments.load_pass_plugin:
            load_plugin(plugin)


def _reporting(work: Callable[[], int]) -> int:
    """The exit status of `work`; what it raises is printed."""
    try:
        return work()
    except Error as error:
        return _print_error(error)
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get("TCIR_TRACEBACK"):
            raise
        from tcir.opt.invocation import internal_error

        print(f"error: {internal_error(error)}", file=sys.stderr)
        return 4


def _print_error(error: Error) -> int:
    print(f"error: {error}", file=sys.stderr)
    return error.exit_code
