"""ONNX models on tcir's kernels: imported by torch-mlir and lowered as a whole, or rejected.

    model = tcir.onnx.compile("model.onnx", {"x": x})
    print(model.table)            # the ops, and their launches
    y = model({"x": x})["y"]      # on the simulated machine
    print(model.validate())       # the import, and every pass, executed

Or ``python -m tcir.onnx model.onnx``. Needs the extra ``onnx``.
"""

import importlib.util

if importlib.util.find_spec("onnx") is None:
    raise ModuleNotFoundError("tcir.onnx needs onnx: pip install 'tcir[onnx]'", name="onnx")

from tcir.onnx.compiled import Compiled
from tcir.onnx.entry import compile

__all__ = ["Compiled", "compile"]
