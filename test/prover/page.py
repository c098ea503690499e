"""Writes docs/reference/prove.md from the tables of kernels and of faults.

    cd test && PYTHONPATH=. python -m prover.page [--check]

Nothing is executed here: each row is a test, which asserts what the page says of it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tcir.prover.proof import REFUTED
from tcir.tools.dev.generated_page import write_or_check

from .kernels import SUBJECTS
from .mutants import LEGAL, MUTANTS, Mutant

TARGET = Path(__file__).resolve().parents[2] / "docs" / "reference" / "prove.md"
INTRO = """\
<!-- Written by `python -m prover.page` in test/; edit that file and its tables instead. -->

# A second judge

The simulated machine executes a kernel in one order of completion, or in as many orders as you
request. [sentryward](https://github.com/gpu-verifier/sentryward) is an independent static verifier
of PTX for sm_100. It judges all orders at once, and shares no code with tcir. With `--prove`, both
the simulated machine and sentryward judge the PTX:

```console
$ pip install 'tcir[prove]'      # in a clone: .venv/bin/python -m pip install -e '.[prove]'
```

<!-- not run: needs sentryward -->
```console
$ tc-opt examples/matmul.mlir --pipeline=gemm --emit=ptx --prove=2 -o matmul.ptx
...
held: 13 steps; full range; special values
launch  CTAs   the machine  sentryward  took
matmul  2x1x1  equal        in part     1.27 s
sentryward, @matmul: no race, deadlock, use after release in any order, fences aside; 2 of 18 CTAs
...
```

With `--prove`, sentryward judges all CTAs of each launch; with `--prove=N` it judges the first N
CTAs, rounded to whole clusters. Its time and memory grow with the number of CTAs, and steeply with
the number of steps of the main loop: 18 CTAs with six steps each take 15 s, the 28 CTAs of a ResNet
convolution over a minute. sentryward gives up after 120 s or 8000 MiB per launch. The same in
Python:

<!-- not run: needs sentryward -->
```python
import tcir

kernel = tcir.compile("examples/matmul.mlir", "gemm", validate=True)
proofs = tcir.prove(kernel, ctas=2, timeout=60)
print(proofs)
proofs.launches[0].verdict, proofs.launches[0].why
```

`proofs` is true if all launches are proved; if not, `proofs.check()` raises `VerdictError`.

| verdict | sentryward's result | exit status |
|---|---|---|
| `proved` | `race_free`, for all CTAs | 0 |
| `in part` | `race_free`, for the first CTAs | 2 |
| `neighbour proved` | `race_free`, for a similar kernel; the report says how it differs | 2 |
| `refuted` | `not_wellsynced`, `potential_race`, `invalid_lifecycle`, with a reason | 1 |
| `incomplete` | any other: `unsupported`, `timeout`, `memory_budget_exceeded`, … | 2 |

The exit status of `tc-opt` is the worse of this status and that of the validation. A proof does not
say that the results are right, that fences are where the PTX ISA requires them, that addresses are
within their buffers, or that bytes were written before they are read.

## What it reads

sentryward gets the launch, an object for each buffer, the tensor maps, and the PTX with the changes
of this table. The first four changes do not change the kernel's meaning (a test executes the
changed kernels on the simulated machine). In the table, "it" is sentryward:

| changed | because | the kernel that is judged |
|---|---|---|
| a wait's `not` and branch become one `@!p bra` | it knows wait loops by form | is the same |
| `.collector::a::discard`, the default, is left out | it supports no collector | is the same |
| `mad.lo.s32` becomes `mul.lo.s32`, `add.s32` | it follows addresses through sums | is the same |
| negative 64-bit numbers are written without a sign | it reads only this form | is the same |
| `.ashift` is left out | it does not support it | reads A one row further down |
| lane masks of D are left out | it supports only masks of zeros | writes all lanes of D |
| im2col loads become tiled loads of as many bytes | it has no im2col | loads other pixels |
"""
KERNELS = """
## Kernels

The simulated machine finds no error in any of these kernels: the verdict for their PTX is `equal`.
sentryward 0.1.1 proves the helper launches of all kernels, which repack operands or scales. For the
main launches its results are these ("it" is sentryward):
"""
FAULTS = """
## Faults

Each row plants one fault in the PTX of one of these kernels. The simulated machine tries five
orders of completion. In the last column, "it" is sentryward.
"""


def rows() -> list[str]:
    """The lines of both tables."""
    lines = [KERNELS, "| kernel | pipeline | sentryward | why |", "|---|---|---|---|"]
    lines += [
        f"| {name} | `{each.pipeline}` | {each.verdict} | {each.because} |"
        for name, each in SUBJECTS.items()
    ]
    lines += [FAULTS, _counts(), ""]
    lines += [
        "| kernel | fault | the machine | sentryward | why they differ |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {m.subject} | {m.what} | {m.machine or 'nothing'} | `{m.prover}` | {m.because} |"
        for m in MUTANTS
    ]
    return lines


def _counts() -> str:
    faults = [each for each in MUTANTS if each.because != LEGAL]
    both = Counter((machine_finds(each), prover_finds(each)) for each in faults)
    return (
        f"Of {len(faults)} faults, both judges find {both[True, True]}; the machine alone finds "
        f"{both[True, False]}, sentryward alone {both[False, True]}, and neither judge finds "
        f"{both[False, False]}. A warning of the machine does not count as a find; `unsupported` "
        "counts if sentryward names the fault. "
        f"{len(MUTANTS) - len(faults)} edits are legal, and neither judge reports anything."
    )


def machine_finds(mutant: Mutant) -> bool:
    """Whether the verdict is `different`."""
    return bool(mutant.machine) and not mutant.machine.startswith("warning")


def prover_finds(mutant: Mutant) -> bool:
    """Whether the fault is named."""
    return mutant.prover in (*REFUTED, "unsupported")


def render() -> str:
    """The page."""
    return "\n".join([INTRO.rstrip(), *rows()]) + "\n"


if __name__ == "__main__":
    raise SystemExit(write_or_check(TARGET, render, "prover.page"))
