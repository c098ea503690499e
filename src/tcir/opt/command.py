"""The command tc-opt: flags, listings, and one invocation in a child process.

The child (see `tcir.opt.containment`) makes an error that names the pass of a crash in native code.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence

from tcir.errors import Error
from tcir.opt.arguments import parse_arguments
from tcir.opt.containment import Notes, run_contained


def main(words: Sequence[str]) -> int:
    """Runs tc-opt with the given command line; returns the exit status."""
    try:
        arguments = parse_arguments(words)
    except Error as error:
        return _print_error(error)
    return run_contained(
        lambda notes: _run(arguments, notes), arguments.mlir_pass_pipeline_crash_reproducer
    )


def _run(arguments: Namespace, notes: Notes) -> int:
    from tcir.opt.invocation import Invocation, internal_error

    try:
        if arguments.load_pass_plugin:
            from tcir.opt.listing import load_plugin

            for plugin in arguments.load_pass_plugin:
                load_plugin(plugin)
        if arguments.list_passes or arguments.list_pipelines or arguments.show_dialects:
            from tcir.opt.listing import listing

            print(listing(arguments))
            return 0
        return Invocation(arguments, notes).run()
    except Error as error:
        return _print_error(error)
    except Exception as error:
        if os.environ.get("TCIR_TRACEBACK"):
            raise
        print(f"error: {internal_error(error)}", file=sys.stderr)
        return 4


def _print_error(error: Error) -> int:
    print(f"error: {error}", file=sys.stderr)
    return error.exit_code
