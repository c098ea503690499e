"""Compiles JAX functions to tcir's kernels. A function is traced, and is then either lowered as a
whole or rejected.

    model = tcir.jax.compile(function, params, x)
    print(model.table)            # the primitives, and their launches
    y = model(params, x)          # on the simulated machine
    print(model.validate())       # the import, and every pass, executed

Needs the extra ``jax``.
"""

import importlib.util

if importlib.util.find_spec("jax") is None:
    raise ModuleNotFoundError("tcir.jax needs JAX: pip install 'tcir[jax]'", name="jax")

from tcir.jax.compiled import Compiled
from tcir.jax.entry import compile

__all__ = ["Compiled", "compile"]
