"""Compiles the kernels, runs their PTX on the simulated machine, prints a table.

    python -m peers.run [NAME …] [--keep FOLDER] [--reuse FOLDER] [--details] [--write PAGE]

Triton is taken from this Python or from the one that TCIR_PEERS_TRITON names, CuTe DSL likewise
(TCIR_PEERS_CUTE): their packages need not be installed with tcir's. Exit status 0: every kernel
compiled, ran completely, was correct and had no finding of severity "error"; 1 otherwise; 2: no
compiler was found.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from peers import (  # noqa: F401  (they register the cases)
    cases_blackwell,
    cases_cute,
    cases_gluon,
    cases_triton,
)
from peers.case import CASES, Case, Launch
from tcir.run import LaunchError, PtxSyntaxError, RunReport, run_ptx

HERE = Path(__file__).parent
#: Script per compiler, the environment variable naming its Python, and the module it needs.
COMPILERS = {
    "triton": ("triton_kernels.py", "TCIR_PEERS_TRITON", "triton"),
    "gluon": ("gluon_kernels.py", "TCIR_PEERS_TRITON", "triton"),
    "cute": ("cute_kernels.py", "TCIR_PEERS_CUTE", "cutlass"),
}


def compile_with(compiler: str, out: Path) -> str | None:
    """Runs the compiler's script into `out`; returns the reason if the compiler is missing."""
    script, variable, module = COMPILERS[compiler]
    python = os.environ.get(variable, sys.executable)
    probe = [python, "-c", f"import {module}"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        return f"{python} cannot import {module}: install it, or name a Python with ${variable}"
    out.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(  # in `out`: CuTe DSL keeps its PTX in the current folder
        [python, HERE / script, out.resolve()], capture_output=True, text=True, check=False, cwd=out
    )
    (out / "log.txt").write_text(done.stdout + done.stderr)
    if done.returncode:
        return f"{script} failed:\n{(done.stdout + done.stderr)[-2000:]}"
    return None


def verdict(report: RunReport, launch: Launch) -> tuple[str, str]:
    """The verdict and its explanation."""
    if report.incomplete:
        names = collections.Counter(f"{i.instruction} ({i.why})" for i in report.incomplete)
        return "incomplete", "; ".join(names)
    if report.errors:
        return "error", str(report.errors[0])
    worst = 0.0
    for got, want, tolerance in launch.want:
        a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
        difference = np.abs(a - b)
        difference[(a == b) | np.isnan(a) & np.isnan(b)] = 0
        if not (difference <= tolerance).all():
            bad = int((~(difference <= tolerance)).sum())
            at = np.unravel_index(int(np.argmax(~(difference <= tolerance))), a.shape)
            where = tuple(int(n) for n in at)
            return "differs", f"{bad} of {a.size}, first {where}: {a[at]} for {b[at]}"
        worst = max(worst, float(difference.max(initial=0)))
    errors = [f for f in report.findings if f.severity == "error"]
    if errors:
        return "findings", f"{errors[0].code}: {errors[0].first} / {errors[0].second}"
    return ("exact", "") if worst == 0 else ("within", f"{worst:.2g}")


def run_case(case: Case, folder: Path) -> tuple[str, str, RunReport | None]:
    path = folder / case.compiler / f"{case.name}.json"
    if not path.exists():
        return "not compiled", "see log.txt", None
    meta: dict[str, Any] = json.loads(path.read_text())
    if "error" in meta:
        return "not compiled", meta["error"], None
    launch = case.build(meta)
    smem = meta.get("dynamic_smem", 0) if launch.dynamic_smem is None else launch.dynamic_smem
    try:
        report = run_ptx(
            path.with_suffix(".ptx").read_text(),
            entry=meta.get("entry"),
            grid=launch.grid,
            block=launch.block or tuple(meta["block"]),
            cluster=launch.cluster,
            dynamic_smem=smem,
            args=launch.args,
        )
    except (LaunchError, PtxSyntaxError) as error:
        return "rejected", str(error), None
    return (*verdict(report, launch), report)


#: What a kernel exercises, found in its PTX: a pattern and what to call it (or its groups).
FEATURES = {
    r"tcgen05\.mma\S*\.kind::(\w+)": "mma kind::",
    r"\.block_scale\.(block\d+)": "",
    r"tcgen05\.mma\S*\.ashift": ".ashift",
    r"tcgen05\.mma[^;]*\{": "lane mask operand",
    r"tcgen05\.mma\S* \[[^]]*\], \[": "A in tensor memory",
    r"tcgen05\.mma\S*(cta_group::2)": "",
    r"tcgen05\.cp\S*\.(\d+x\d+b)": "tcgen05.cp ",
    r"mma\.sync\.aligned\.(\w+)": "mma.sync ",
    r"cp\.async\.bulk\.tensor\S*\.shared\S*\.global": "TMA loads",
    r"cp\.async\.bulk\.tensor\S*\.global\S*\.shared": "TMA stores",
    r"cp\.reduce\.async\.bulk\.tensor": "TMA reductions",
    r"cp\.async\.c[ag]": "cp.async",
    r"(ldmatrix|stmatrix)\.": "",
    r"(setmaxnreg)": "",
    r"shfl\.sync\.(\w+)": "shfl ",
    r"(redux|vote)\.sync": "",
    r"\b(atom|red)\.(?:global|shared)": "",
    r"cvt\.\S*(e4m3x2|e5m2x2|e2m1x2)": "cvt ",
    r"(ex2|tanh|rsqrt|lg2|sqrt)\.approx": "",
    r"bar(?:rier)?\.sync": "bar.sync",
}
MARK = "<!-- written by python -m peers.run --write -->\n"


def features(ptx: str) -> str:
    found: list[str] = []
    for pattern, name in FEATURES.items():
        groups = re.findall(pattern, ptx)
        if re.compile(pattern).groups:
            found += [name + group for group in dict.fromkeys(groups)]
        elif groups:
            found.append(name)
    return ", ".join(found) or "loads and stores"


def write_page(page: Path, rows: list[tuple[str, ...]], summary: str) -> None:
    """Replaces everything after the mark in the page."""
    prose, mark, _ = page.read_text().partition(MARK)
    if not mark:
        raise SystemExit(f"{page}: expected the line {MARK.strip()}")
    head = ("kernel", "compiler", "what its PTX exercises", "verdict", "warnings")
    table = [head, ("---",) * len(head), *rows]
    lines = "".join("| " + " | ".join(row) + " |\n" for row in table)
    page.write_text(f"{prose}{MARK}\n{lines}\n{summary}.\n")


def _write(line: str) -> None:
    print(line, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="peers.run", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", type=Path, help="leave what the compilers wrote here")
    parser.add_argument("--reuse", type=Path, help="take what an earlier --keep left")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table there too")
    parser.add_argument("--details", action="store_true", help="print the reports")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.reuse or options.keep or Path(scratch)
        present = set(COMPILERS)
        for name in () if options.reuse else COMPILERS:
            missing = compile_with(name, folder / name)
            if missing:
                _write(f"{name}: {missing}")
                present.discard(name)
        if not present:
            return 2
        chosen = [c for c in CASES if not options.names or c.name in options.names]
        counts: collections.Counter[str] = collections.Counter()
        rows: list[tuple[str, ...]] = []
        heading = ("kernel", "compiler", "verdict", "warnings", "instr.", "s")
        _write("{:<26}{:<9}{:<13}{:>8}{:>9}{:>7}".format(*heading))
        for case in chosen:
            if case.compiler not in present:
                continue
            started = time.perf_counter()
            word, why, report = run_case(case, folder)
            counts[word] += 1
            warnings = sum(f.severity == "warning" for f in report.findings) if report else 0
            executed = report.instructions if report else 0
            seconds = time.perf_counter() - started
            line = f"{case.name:<26}{case.compiler:<9}{word:<13}{warnings:>8}{executed:>9}"
            _write(f"{line}{seconds:>7.2f}  {why[:300]}")
            ptx = folder / case.compiler / f"{case.name}.ptx"
            exercised = features(ptx.read_text()) if ptx.exists() else ""
            shown = f"{word}, {why}" if word == "within" else word
            rows.append((case.name, case.compiler, exercised, shown, str(warnings)))
            if options.details and report:
                _write(str(report))
        total = sum(counts.values())
        summary = f"{total} kernels: " + ", ".join(f"{n} {w}" for w, n in counts.most_common())
        _write(summary)
        if options.write:
            write_page(options.write, rows, summary)
        bad = set(counts) - {"exact", "within"}
        return 1 if bad or present != set(COMPILERS) else 0


if __name__ == "__main__":
    sys.exit(main())
