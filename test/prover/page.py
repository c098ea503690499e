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

The machine executes a kernel in one order of completion, or in as many as you ask for.
[sentryward](https://github.com/gpu-verifier/sentryward), an independent static verifier of sm_100
PTX, judges all schedules, and shares no code with tcir. `--prove` has both judge the PTX:

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

`--prove` judges all CTAs of each launch, `--prove=N` the first N, whole clusters. Time and memory
grow with the CTAs, and steeply with the steps of the main loop: all 18 CTAs of six steps take 15 s,
the 28 of a ResNet convolution over a minute. It gives up after 120 s or 8000 MiB a launch. In
Python:

<!-- not run: needs sentryward -->
```python
import tcir

kernel = tcir.compile("examples/matmul.mlir", "gemm", validate=True)
proofs = tcir.prove(kernel, ctas=2, timeout=60)
print(proofs)
proofs.launches[0].verdict, proofs.launches[0].why
```

`proofs` is true if all is proved; `proofs.check()` raises `VerdictError` if not.

| verdict | sentryward's result | exit status |
|---|---|---|
| `proved` | `race_free`, of all CTAs | 0 |
| `in part` | `race_free`, of the first CTAs | 2 |
| `neighbour proved` | `race_free`, of a kernel that differs as the line says | 2 |
| `refuted` | `not_wellsynced`, `potential_race`, `invalid_lifecycle`, with a reason | 1 |
| `incomplete` | any other: `unsupported`, `timeout`, `memory_budget_exceeded`, … | 2 |

The worse of this status and that of the validation counts. What a proof does not say: that results
are right; that fences are where PTX wants them; that addresses are within their buffers; that what
is read was written.

## What it reads

It gets the launch, an object for each buffer, the tensor maps, and the PTX with these changes. The
first four mean the same (a test executes them on the machine):

| changed | because | the kernel that is judged |
|---|---|---|
| a wait's `not` and branch are one `@!p bra` | it knows wait loops by their form | is the same |
| `.collector::a::discard`, the default, is left out | it takes no collector | is the same |
| `mad.lo.s32` is `mul.lo.s32`, `add.s32` | it follows addresses through sums | is the same |
| negative 64-bit numbers have no sign | it takes them so | is the same |
| `.ashift` is left out | it does not know it | reads A one row further down |
| masks of lanes of D are left out | it takes zeros only | writes all lanes of D |
| im2col loads are tiles of as many bytes | it does not know im2col | loads other pixels |
"""
KERNELS = """
## Kernels

The machine finds nothing in any of them: the verdict of their PTX is `equal`. Their helper launches
(repacking, scales) are proved. With version 0.1.1:
"""
FAULTS = """
## Faults

One fault at a time in the PTX of such a kernel; the machine tries five orders of completion.
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
        f"Of {len(faults)} faults both find {both[True, True]}, the machine alone "
        f"{both[True, False]}, sentryward alone {both[False, True]} and neither "
        f"{both[False, False]} (a warning of the machine is no find; `unsupported` is one where it "
        f"names the fault). {len(MUTANTS) - len(faults)} edits are legal, and neither objects."
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
