"""The bugs of `attack_*.py`, and those of them that nothing notices."""

from __future__ import annotations

from dataclasses import replace

from . import attack_chains, attack_epilogues, attack_layers, attack_shapes, attack_structure
from .planted import Planted

SURVIVORS = {
    ("std layer", "the variance is E(x^2) - E(x)^2"):
        "sums of f64: shows only where the mean is 2^15 times the deviation",
    ("pow_half layer", "-0 is -0"): "the sign of a function's zero is within its bound",
    ("argmax layer", "inf is not above the largest number"):
        "no row has both, the largest number first",
    ("simt nvfp4, columns", "ties toward zero"): "few digits make no tie above an odd number",
    ("constant, few", "sums cut to 20 bits"): "within the bound of sums in any order",
    ("constant, few", "subnormal bias is 0"):
        "sums are 0 in few rows only, the bias subnormal in few columns",
    ("constant two", "hidden layer: ties away from zero"):
        "the second product, by constants, rounds: within its bound",
    ("constant two", "the hidden layer's subnormals are 0"):
        "the hidden layer is never subnormal throughout",
    ("attention_masked layer", "maxima start at 0"): "no row has all its scores below -104",
    ("gemm mxfp8", "ue8m0 254 is 253 (B)"): "the largest scale is A's",
    ("padded stream-k", "ue8m0 254 is 253 (B)"): "the largest scale is A's",
    ("padded stream-k", "ue8m0 0 is 1 (B)"): "8 columns: the smallest scale is A's",
    ("simt nvfp4, columns", "ue4m3 448 is 416 (A)"): "448 is not drawn beside a vector",
}  # fmt: skip
"""Program and bug, and why it survives; all have inputs on which results differ."""
VALUES = [
    *attack_layers.BUGS, *attack_epilogues.BUGS, *attack_chains.BUGS, *attack_shapes.BUGS,
]  # fmt: skip
STRUCTURE = attack_structure.BUGS


def _as_noticed(bug: Planted) -> Planted:
    return replace(bug, by="") if (bug.program, bug.what) in SURVIVORS else bug


BUGS = [_as_noticed(bug) for bug in (*VALUES, *STRUCTURE)]
