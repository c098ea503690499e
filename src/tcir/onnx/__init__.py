"""Compiles ONNX models to tcir's kernels. torch-mlir imports a model, which is then either lowered
as a whole or rejected.

    model = tcir.onnx.compile("model.onnx", {"x": x})
    print(model.table)            # the ops, and their launches
    y = model({"x": x})["y"]      # on the simulated machine
    print(model.validate())       # executes the program after the import and every pass

The command ``python -m tcir.onnx model.onnx`` does the same. Needs the extra ``onnx``.
"""

import importlib.util

if importlib.util.find_spec("onnx") is None:
    raise ModuleNotFoundError("tcir.onnx needs onnx: pip install 'tcir[onnx]'", name="onnx")

from tcir.onnx.compiled import Compiled
from tcir.onnx.entry import compile

__all__ = ["Compiled", "compile"]
