"""Instructions of sm_100a that are known but not executed: each is reported with its line and a
reason.
"""

from __future__ import annotations

from tcir.interp.ptx.registry import DECODERS, REFUSED

_REDUCED = "reductions in surfaces are not modelled; use red on global memory"
_OPAQUE = "kinds of opaque variables are not modelled; pass texture and surface objects"
_MULTIMEM = "addresses of several GPUs (multimem) are not modelled; reduce in global memory"
_GROSS = (
    "an approximation by 20 bits of the mantissa, whose error the ISA leaves open; use div or sqrt"
)

_WHY: dict[str, str] = {
    "istypep": _OPAQUE,
    "sured": _REDUCED,
    **dict.fromkeys(("multimem.ld_reduce", "multimem.st", "multimem.red"), _MULTIMEM),
    **dict.fromkeys(("multimem.cp.async.bulk", "multimem.cp.reduce.async.bulk"), _MULTIMEM),
    **dict.fromkeys(("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64"), _GROSS),
}

REFUSED.update({name: why for name, why in _WHY.items() if name not in DECODERS})
