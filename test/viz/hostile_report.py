"""A report with every field that a page shows, and strings that would be markup or a script."""

from __future__ import annotations

from typing import Any

from tcir.viz.report import SCHEMA

LINE: dict[str, Any] = {
    "index": 1, "name": "tile", "ops": 10, "pass_seconds": 0.5, "execute_seconds": 0.25,
    "level": "tile", "verdict": "different", "compared": "bit for bit", "max_error": 1.0,
    "max_error_over_bound": 2.0, "rms_error_over_bound": 0.5,
    "difference": {"output": 0, "index": [1, 2], "site": "t:1:2", "expected": "1.0", "got": "2.0",
                   "count": 3, "total": 4},
    "findings": [{"severity": "error", "code": "race", "text": "op %a"}],
    "sites": [[1, "op %a"]], "incomplete": ["no.rule"], "counters": {"mma": 3},
    "remarks": ["slow"], "orders": 1, "drawn": 1, "drawn_of": 2,
}  # fmt: skip
REPORT: dict[str, Any] = {
    "schema": SCHEMA, "program": "f", "pipeline": "builtin.module(x)", "target": "sm_100a",
    "seed": 0, "inputs": "integers", "orders": 1, "numerics": "exact", "ordering": "silicon",
    "assumptions": {"place": "any"}, "max_instructions": 5, "budget": 1.0,
    "estimate": {"seconds": 2.0, "bytes": 3.0}, "verdict": "different", "exit_code": 1,
    "error": "it broke", "passes": [{**LINE, "index": 0, "name": "(input)"}, LINE],
    "notes": ["from the cache"],
    "code": {"registers": 5, "sass": {"UTCHMMA": 4}, "missing": ["ptxas"]},
    "roofline": {"flops": {"f16": 2048}, "hbm_bytes": 99, "moved_bytes": 9, "flop_per_byte": 1.5,
                 "limits_us": {"HBM": 1.0}, "bound": "HBM", "executed_limits_us": {"HBM": 2.0},
                 "modelled_us": 2.5, "limited_by": "latency", "share": 0.5},
}  # fmt: skip
PAYLOADS = (
    '<img src=x onerror="alert(1)">',
    '" onmouseover="alert(1)" x="',
    "' onfocus='alert(1)' autofocus x='",
    "</script><script>alert(1)</script>",
    "--><svg/onload=alert(1)>",
    "</style></title></pre><a href=javascript:alert(1)>x</a>",
)
NAMED = ("counters", "sass", "assumptions", "limits_us", "executed_limits_us", "flops")
"""Fields whose keys come from the program."""


def hostile(value: Any, payload: str, free: bool = False) -> Any:
    """A report with the payload as each of its texts but the schema's, and as each free key."""
    if isinstance(value, dict):
        return {
            payload if free else name: each
            if name == "schema"
            else hostile(each, payload, name in NAMED)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [hostile(each, payload) for each in value]
    return payload if isinstance(value, str) else value
