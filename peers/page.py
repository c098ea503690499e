"""docs/reference/peers.md: its generated half."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Collection
from pathlib import Path

from peers.case import Case
from peers.outcome import PROFILES, Outcome, Run
from peers.sources import SOURCES
from peers.true_findings import TRUE_FINDINGS, WRONG_VALUES

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


#: Verdict of a kernel for which there was no time.
NOT_RUN = "not run"


def not_run(case: Case) -> Outcome:
    return Outcome(case.name, case.compiler, Run("–", NOT_RUN))


def ran(outcome: Outcome) -> bool:
    return outcome.issued.verdict != NOT_RUN


def right(run: Run) -> bool:
    return run.values.startswith(("exact", "within"))


def expected(outcome: Outcome) -> str:
    """Why an error is right, if all that was found is of this kernel's kinds."""
    codes, why = TRUE_FINDINGS.get((outcome.source, outcome.name), ((), ""))
    words = {"ok", *(f"error: {code}" for code in codes)}
    runs_of_it = [outcome.issued, *outcome.seeds.values()]
    found = all(
        r.verdict in words and (r.values == "–" or right(r) or WRONG_VALUES in codes)
        for r in runs_of_it
    )
    return why if found and not outcome.good else ""


def summary_table(outcomes: list[Outcome]) -> str:
    head = ("source", "whose kernels", "kernels", "values right", "no error as issued",
            "nor under any seed")  # fmt: skip
    rows: list[tuple[str, ...]] = [head]
    groups = {
        SOURCES[name].title: ("ours" if SOURCES[name].ours else "the library's", group)
        for name, group in by_source(outcomes).items()
    }
    theirs = [o for o in outcomes if not SOURCES[o.source].ours]
    groups["**libraries**"] = ("**others'**", theirs)
    for title, (whose, listed_too) in groups.items():
        group = [o for o in listed_too if ran(o)]
        counts = (
            len(group),
            sum(right(o.issued) for o in group),
            sum(o.issued.good for o in group),
            sum(o.good for o in group),
        )
        rows.append((title, whose, *map(str, counts)))
    return table(rows)


def count_line(outcomes: list[Outcome], skipped: Collection[str] = ()) -> str:
    """The last line of a run and of the page."""
    left = [o for o in outcomes if not ran(o)]
    outcomes = [o for o in outcomes if ran(o)]
    theirs = [o for o in outcomes if not SOURCES[o.source].ours]
    good, libraries = [o for o in theirs if o.good], {o.source for o in theirs}
    true = sum(bool(expected(o)) for o in outcomes)
    failing = sum(not o.good and not expected(o) for o in outcomes)
    line = (
        f"{len(theirs)} kernels of {len(libraries)} libraries, {len(good)} of them right and "
        f"without an error; {len(outcomes) - len(theirs)} of ours through others' compilers, "
        f"{sum(o.good for o in outcomes) - len(good)} so; "
        f"true findings: {true}, failing: {failing}"
    )
    line += f"; not run: {len(left)}" if left else ""
    return f"{line}; sources skipped: {len(skipped)}" if skipped else line


def listed(outcomes: list[Outcome], why: Callable[[Outcome], str]) -> str:
    lines = [f"- {SOURCES[o.source].title} `{o.name}`: {why(o)}" for o in outcomes if why(o)]
    return "\n".join(lines) + "\n"


def reason(outcome: Outcome) -> str:
    """Of a kernel that failed."""
    if outcome.good or not ran(outcome) or expected(outcome):
        return ""
    bad = next((r for r in [outcome.issued, *outcome.seeds.values()] if not r.good), outcome.issued)
    return f"{bad.verdict}: {bad.why}"[:400].replace("\n", " ").replace("|", "\\|")


def generated(outcomes: list[Outcome], folder: Path) -> str:
    """The half of the page below the mark."""
    parts = [summary_table(outcomes), "### Findings by kind\n", kind_table(outcomes)]
    for title, why in (("True findings", expected), ("Failing", reason)):
        if any(map(why, outcomes)):
            parts += [f"### {title}\n", listed(outcomes, why)]
    for name, group in by_source(outcomes).items():
        parts += [f"### {SOURCES[name].title}\n", kernel_table(group, folder)]
    return "\n".join(parts) + f"\n{count_line(outcomes)}.\n"


def write(page: Path, outcomes: list[Outcome], folder: Path) -> None:
    """Replaces everything after the mark in the page."""
    prose, mark, _ = page.read_text().partition(MARK)
    if not mark:
        raise SystemExit(f"{page}: expected the line {MARK.strip()}")
    page.write_text(prose + MARK + "\n" + generated(outcomes, folder))
