"""Finds the modules that register passes and pipelines, by name or all at once.

The pass ``tile-gemm`` is in a file ``tile_gemm.py`` in a folder of `tcir.passes`, the pipeline
``conv-shift-reuse`` in ``conv_shift_reuse.py`` of `tcir.pipelines`; former and second names are in
`tcir.passmanager.renamed`. To find a name, only the module that registers it is imported. All
modules are imported only to list the names or to suggest one.
"""

from __future__ import annotations

import importlib
import os
from functools import cache


@cache
def import_named(package: str, name: str) -> None:
    """Imports the module of ``tcir.<package>`` that registers `name`, if there is one."""
    stem = name.replace("-", "_")
    if not stem.isidentifier():
        return
    parent = importlib.import_module(f"tcir.{package}")
    for folder in parent.__path__:
        rooms = ("", *sorted(entry.name for entry in os.scandir(folder) if entry.is_dir()))
        for room in rooms:
            if os.path.isfile(os.path.join(folder, room, f"{stem}.py")):
                importlib.import_module(".".join(filter(None, (parent.__name__, room, stem))))
                return


@cache
def import_all(package: str) -> None:
    """Imports every module of ``tcir.<package>``."""
    import pkgutil

    parent = importlib.import_module(f"tcir.{package}")
    for found in pkgutil.walk_packages(parent.__path__, f"{parent.__name__}."):
        importlib.import_module(found.name)
