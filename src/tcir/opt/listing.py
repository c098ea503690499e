"""Listings that tc-opt prints (passes, pipelines, dialects), and plugins that add to them."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from argparse import Namespace
from pathlib import Path

from tcir.errors import Error, InputError
from tcir.exit_status import plugin_line
from tcir.passmanager.options import describe_options
from tcir.passmanager.pipeline import registered_passes, registered_pipelines
from tcir.program.source import mlir_context


def load_plugin(plugin: str) -> None:
    """Imports a Python file or a module, which registers its passes, pipelines and dialects."""
    try:
        if not plugin.endswith(".py"):
            importlib.import_module(plugin)
            return
        spec = importlib.util.spec_from_file_location(f"tcir_plugin_{Path(plugin).stem}", plugin)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    except Error:
        raise
    except Exception as error:
        what = f"{plugin_line(error)}{type(error).__name__}: {error}"
        if "is_dialect_loaded" in str(error):  # ext.Dialect.load(), which needs a context
            what += "; derive the dialect from tcir.dialect.base.Dialect: each context loads it"
        raise InputError(f"cannot load the plugin '{plugin}': {what}") from error


def listing(arguments: Namespace) -> str:
    """The output of --list-passes, --list-pipelines or --show-dialects."""
    if arguments.list_passes:
        rows = []
        for name, cls in registered_passes().items():
            words = (cls.__doc__ or "").strip().split("\n\n")[0].split()
            rows.append(f"--{name}\n    {' '.join(words)}")
            options = describe_options(cls)
            rows += [f"    options  {options}"] if options else []
        return "\n".join(rows)
    if arguments.list_pipelines:
        return "\n".join(p.describe() for p in registered_pipelines().values())
    return "Available Dialects: " + ", ".join(_dialects())


def _dialects() -> list[str]:
    from tcir import _mlir
    from tcir.dialect.base import DIALECTS

    folder = importlib.import_module(f"{_mlir.root()}.dialects").__path__
    candidates = {m.name for m in pkgutil.iter_modules(folder) if not m.name.startswith("_")}
    candidates |= {"acc", "async", "omp", *DIALECTS}
    found = []
    with mlir_context() as context:
        context.load_all_available_dialects()
        found = [name for name in candidates if context.is_dialect_loaded(name)]
    return sorted(found)
