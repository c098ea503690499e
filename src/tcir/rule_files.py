"""Loads packages whose files register ops, or rules for ops, when they are imported."""

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
