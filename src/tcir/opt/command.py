"""The command tc-opt: flags, listings, and one invocation in a child process.

The child (see `tcir.opt.containment`) turns a crash in native code into an error naming the pass.
"""

from __future__ import annotations

import contextlib
import sys
from argparse import Namespace
from collections.abc import Sequence

from tcir.opt.arguments import CODE, parse_arguments, plugin_flags
from tcir.opt.containment import Checkpoint, Notes, run_contained
from tcir.streams import write_output


def main(words: Sequence[str]) -> int:
    """Runs tc-opt with the given command line; returns the exit status."""
    arguments = parse_arguments(words)
    return run_contained(
        lambda notes: _run(arguments, notes),
        lambda checkpoint, path: _save(arguments, checkpoint, path),
        arguments.mlir_pass_pipeline_crash_reproducer,
        {"json": arguments.validate_each, "html": arguments.report},
        plugin_flags(arguments),
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
    """Saves the program before the crash to a file; returns the exit status."""
    from tcir.opt.arguments import chosen_pipeline
    from tcir.opt.invocation import save_reproducer

    _load_plugins(arguments)
    pipeline = chosen_pipeline(arguments, checkpoint.text)
    save_reproducer(arguments, pipeline, checkpoint, path)
    return 0


def _load_native(arguments: Namespace) -> None:
    """Loads MLIR before any module that imports it, and meanwhile LLVM in the worker's process."""
    from tcir import _mlir

    if arguments.validate_each is None:
        _mlir.load_without_numpy()
    if arguments.emit in CODE:
        from tcir import codegen

        codegen.start(fork=True)


def _load_plugins(arguments: Namespace) -> None:
    if arguments.load_pass_plugin:
        from tcir.opt.listing import load_plugin

        with contextlib.redirect_stdout(sys.stderr):  # standard output is for the result
            for plugin in arguments.load_pass_plugin:
                load_plugin(plugin)
