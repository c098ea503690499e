"""Loads folders whose files register what they define: ops, and rules of ops."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def load_folder(package: str) -> None:
    """Imports every file of a package, once."""
    path = importlib.import_module(package).__path__
    for file in pkgutil.iter_modules(path, f"{package}."):
        importlib.import_module(file.name)
