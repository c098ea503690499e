"""lit: RUN lines in *.mlir. Run `lit -v test`."""

import importlib.util
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from command_server import start
from lit_format import ShTest

config.name = "tcir"  # noqa: F821 (lit puts config and lit_config into this file)
config = config  # noqa: F821
config.test_format = ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs", "layers"]

here = Path(__file__).parent
config.test_source_root = str(here)
config.test_exec_root = str(here.parent / "build" / "lit")

scripts = Path(sys.executable).parent
config.environment["PATH"] = os.pathsep.join([str(scripts), os.environ.get("PATH", "")])
if "PYTHONPATH" in os.environ:  # of another work tree than the installed one
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]

served = start(config.environment)
config.substitutions += [
    # For tests of the process itself: tc-opt as a user starts it.
    ("%own-tc-opt", f'"{sys.executable}" -m tcir.tools.tc_opt'),
    ("%tc-opt", f"{served} tc-opt"),
    ("%tc-run", f'"{sys.executable}" -m tcir.tools.tc_run'),
    ("%PYTHON", f'"{sys.executable}"'),
    ("%exits", f'"{sys.executable}" -I -S "{here / "exits.py"}"'),
    ("%filecheck", f"{served} filecheck"),
]


def has_tool(name: str) -> bool:
    """Whether the assembler of the declared dependency is there."""
    from tcir.codegen.tools import find_tool
    from tcir.errors import MissingDependencyError

    try:
        find_tool(name)
    except MissingDependencyError:
        return False
    return True


if has_tool("ptxas") and has_tool("nvdisasm"):
    config.available_features.add("ptxas")
if importlib.util.find_spec("torch") is not None:
    config.available_features.add("torch")
