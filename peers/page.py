"""docs/peers.md: its generated half."""

from __future__ import annotations

import collections
import re
from pathlib import Path

from peers.outcome import PROFILES, Outcome, Run
from peers.sources import SOURCES

MARK = "<!-- written by python -m peers.run --write -->\n"

#: What a kernel exercises, found in its PTX: a pattern and what to call it (or its groups).
FEATURES = {
    r"tcgen05\.mma\S*\.kind::(\w+)": "mma kind::",
    r"\.block_scale\.(block\d+)": "",
    r"tcgen05\.mma(\.sp)": "mma",
    r"tcgen05\.mma\S*\.ashift": ".ashift",
    r"tcgen05\.mma[^;]*\{": "lane mask operand",
    r"tcgen05\.mma\S* \[[^]]*\], \[": "A in tensor memory",
    r"tcgen05\.mma\S*(cta_group::2)": "",
    r"tcgen05\.cp\S*\.(\d+x\d+b)": "tcgen05.cp ",
    r"mma\.sync\.aligned\.(\w+)": "mma.sync ",
    r"cp\.async\.bulk\.tensor\S*\.shared\S*\.global\S*(\.im2col)": "TMA ",
    r"cp\.async\.bulk\.tensor\S*\.shared\S*\.global": "TMA loads",
    r"cp\.async\.bulk\.tensor\S*\.global\S*\.shared": "TMA stores",
    r"cp\.reduce\.async\.bulk\.tensor": "TMA reductions",
    r"(multicast::cluster)": "",
    r"(clusterlaunchcontrol)": "",
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


def features(ptx: str) -> str:
    found: list[str] = []
    for pattern, name in FEATURES.items():
        groups = re.findall(pattern, ptx)
        if re.compile(pattern).groups:
            found += [name + group for group in dict.fromkeys(groups)]
        elif groups:
            found.append(name)
    return ", ".join(found) or "loads and stores"


def table(rows: list[tuple[str, ...]]) -> str:
    """The first row is the head."""
    lines = [rows[0], ("---",) * len(rows[0]), *rows[1:]]
    return "".join("| " + " | ".join(row) + " |\n" for row in lines)


def kinds(run: Run) -> str:
    """Findings by kind; errors in bold."""
    listed = []
    for name, count in sorted(run.kinds.items()):
        severity, code = name.split()
        listed.append(f"**{code}** {count}" if severity == "error" else f"{code} {count}")
    return ", ".join(listed) or "–"


def runs(outcome: Outcome) -> list[Run]:
    """As issued, one for each profile."""
    return [outcome.issued, *outcome.profiles.values()]


def kernel_table(outcomes: list[Outcome], folder: Path) -> str:
    found = [f"findings, {profile}" if profile else "findings" for profile in PROFILES]
    head = ("kernel", "what its PTX exercises", "values", "as issued", "seeds", *found, "s")
    rows = [head]
    for o in outcomes:
        ptx = folder / o.source / f"{o.name}.ptx"
        exercised = features(ptx.read_text()) if ptx.exists() else ""
        columns = [kinds(run) for run in runs(o)] or ["–"]
        columns += ["–"] * (len(PROFILES) - len(columns))
        seconds = f"{o.seconds:.1f}"
        rows.append(
            (o.name, exercised, o.issued.values, o.issued.verdict, o.seeded, *columns, seconds)
        )
    return table(rows)


def kind_table(outcomes: list[Outcome]) -> str:
    """How many findings of a kind, in how many kernels, per profile."""
    counts: dict[str, list[collections.Counter[str]]] = {}
    for outcome in outcomes:
        for place, run in enumerate(runs(outcome)):
            for name, count in run.kinds.items():
                columns = counts.setdefault(name, [collections.Counter() for _ in PROFILES])
                columns[place]["findings"] += count
                columns[place]["kernels"] += 1
    heads = [f"{p}: findings, kernels" if p else "findings, kernels" for p in PROFILES]
    rows: list[tuple[str, ...]] = [("severity", "kind", *heads)]
    for name in sorted(counts):
        severity, code = name.split()
        rows.append((severity, code, *(f"{c['findings']}, {c['kernels']}" for c in counts[name])))
    return table(rows)


def by_source(outcomes: list[Outcome]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.source, []).append(outcome)
    return {name: groups[name] for name in SOURCES if name in groups}


def summary_table(outcomes: list[Outcome]) -> str:
    rows = [("source", "kernels", "values right", "no error as issued", "nor under any seed")]
    for name, group in by_source(outcomes).items():
        right = sum(o.issued.values.startswith(("exact", "within")) for o in group)
        issued = sum(o.issued.good for o in group)
        good = sum(o.good for o in group)
        rows.append((SOURCES[name].title, *map(str, (len(group), right, issued, good))))
    return table(rows)


def write(page: Path, outcomes: list[Outcome], folder: Path, summary: str) -> None:
    """Replaces everything after the mark in the page."""
    prose, mark, _ = page.read_text().partition(MARK)
    if not mark:
        raise SystemExit(f"{page}: expected the line {MARK.strip()}")
    parts = [summary_table(outcomes), "### Findings by kind\n", kind_table(outcomes)]
    for name, group in by_source(outcomes).items():
        parts += [f"### {SOURCES[name].title}\n", kernel_table(group, folder)]
    failing = [o for o in outcomes if not o.good]
    if failing:
        reasons = [f"- {SOURCES[o.source].title} `{o.name}`: {reason(o)}" for o in failing]
        parts += ["### Failing\n", "\n".join(reasons) + "\n"]
    page.write_text(prose + MARK + "\n" + "\n".join(parts) + f"\n{summary}.\n")


def reason(outcome: Outcome) -> str:
    bad = next((r for r in [outcome.issued, *outcome.seeds.values()] if not r.good), outcome.issued)
    return f"{bad.verdict}: {bad.why}"[:400].replace("\n", " ").replace("|", "\\|")
