"""Compiles PyTorch models to tcir's kernels: the model is exported, pipelines lower the ops that
they support, and PyTorch runs the rest.

    model = tcir.torch.compile(module.eval(), (x,))
    print(model.table)      # which ops became launches, which PyTorch runs, and why
    y = model(x)            # on the simulated machine
    model.validate()        # every lowered part, executed after every pass

Alternatives are ``torch.compile(module, backend="tcir")`` after ``import tcir.torch``, and single
layers: `Linear`, `QuantizedLinear` (NVFP4, MX) or ``torch.ops.tcir.linear``. Needs the extra
``torch``.
"""

import importlib.util

if importlib.util.find_spec("torch") is None:
    raise ModuleNotFoundError("tcir.torch needs PyTorch: pip install 'tcir[torch]'", name="torch")

from tcir.torch.attention import attention
from tcir.torch.backend import backend
from tcir.torch.compiled import Compiled, Part
from tcir.torch.entry import compile
from tcir.torch.grouped_mm import grouped_mm
from tcir.torch.linear import Linear, linear
from tcir.torch.quantized_linear import QuantizedLinear, quantized_linear
from tcir.torch.tensors import machine
from tcir.torch.varlen import varlen_attention

__all__ = [
    "Compiled", "Linear", "Part", "QuantizedLinear", "attention", "backend", "compile",
    "grouped_mm", "linear", "machine", "quantized_linear", "varlen_attention",
]  # fmt: skip
