"""The generated halves of docs/reference/peers.md, of recorded launches, and of peers-calls.md, of
libraries' calls."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Collection
from pathlib import Path

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


def of_calls(outcome: Outcome) -> bool:
    return bool(SOURCES[outcome.source].package)


def kernels(outcomes: list[Outcome]) -> list[list[Outcome]]:
    """The outcomes of each kernel: its own, or those of all calls that launch it."""
    found: dict[tuple[str, str], list[Outcome]] = {}
    for o in outcomes:
        for name in o.kernels if of_calls(o) else [o.name]:
            found.setdefault((o.source, name), []).append(o)
    return list(found.values())


def counts(outcomes: list[Outcome]) -> tuple[int, int, int, int]:
    """Kernels; of these, those whose values are right, that have no error as issued, and none under
    any seed. A kernel counts if every call that launches it does."""
    each = kernels([o for o in outcomes if ran(o)])
    return (
        len(each),
        sum(all(right(o.issued) for o in group) for group in each),
        sum(all(o.issued.good for o in group) for group in each),
        sum(all(o.good for o in group) for group in each),
    )


def kernel_table(outcomes: list[Outcome], folder: Path) -> str:
    found = [f"findings, {profile}" for profile in PROFILES]
    calls = bool(outcomes) and of_calls(outcomes[0])
    head = ("call", "kernels") if calls else ("kernel",)
    rows = [(*head, "what its PTX exercises", "values", "as issued", "seeds", *found, "s")]
    for o in outcomes:
        ptx = folder / o.source / f"{o.name}.ptx"
        exercised = features(ptx.read_text()) if ptx.exists() else ""
        columns = [kinds(run) for run in runs(o)] or ["–"]
        columns += ["–"] * (len(found) - len(columns))
        name = (o.name, str(len(o.kernels))) if calls else (o.name,)
        columns += [f"{o.seconds:.1f}"]
        rows.append((*name, exercised, o.issued.values, o.issued.verdict, o.seeded, *columns))
    return table(rows)


def kind_table(outcomes: list[Outcome]) -> str:
    """How many findings of a kind, in how many kernels, per profile."""
    seen: dict[str, list[collections.Counter[str]]] = {}
    for outcome in outcomes:
        for place, run in enumerate(runs(outcome)):
            for name, count in run.kinds.items():
                columns = seen.setdefault(name, [collections.Counter() for _ in PROFILES])
                columns[place]["findings"] += count
                columns[place]["kernels"] += 1
    what = "calls" if outcomes and of_calls(outcomes[0]) else "kernels"
    heads = [f"{p}: findings, {what}" for p in PROFILES]
    rows: list[tuple[str, ...]] = [("severity", "kind", *heads)]
    for name in sorted(seen):
        severity, code = name.split()
        rows.append((severity, code, *(f"{c['findings']}, {c['kernels']}" for c in seen[name])))
    return table(rows)


def by_source(outcomes: list[Outcome]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.source, []).append(outcome)
    return {name: groups[name] for name in SOURCES if name in groups}


#: Verdict of a kernel for which there was no time.
NOT_RUN = "not run"


def left_out(name: str, source: str) -> Outcome:
    return Outcome(name, source, Run("–", NOT_RUN))


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
        rows.append((title, whose, *map(str, counts(listed_too))))
    return table(rows)


def count_line(outcomes: list[Outcome], skipped: Collection[str] = ()) -> str:
    """The last line of a run and of the page."""
    left = [o for o in outcomes if not ran(o)]
    outcomes = [o for o in outcomes if ran(o)]
    theirs = [o for o in outcomes if not SOURCES[o.source].ours]
    ours = [o for o in outcomes if SOURCES[o.source].ours]
    total, *_, good = counts(theirs)
    true = sum(bool(expected(o)) for o in outcomes)
    failing = sum(not o.good and not expected(o) and not not_started(o) for o in outcomes)
    line = f"{total} kernels of {len({o.source for o in theirs})} libraries"
    if calls := sum(map(of_calls, theirs)):
        line += f" in {calls} calls"
    line += f", {good} of them right and without an error; "
    if ours or not calls:
        own, *_, right_too = counts(ours)
        line += f"{own} of ours through others' compilers, {right_too} so; "
    line += f"true findings: {true}, failing: {failing}"
    if calls:
        refused = sum(o.issued.verdict in REFUSALS for o in theirs)
        line += f", refused: {refused}, not started: {sum(map(not_started, theirs))}"
    line += f"; not run: {len(left)}" if left else ""
    return f"{line}; sources skipped: {len(skipped)}" if skipped else line


#: Verdicts of a call that the door or the machine refuses by name.
REFUSALS = ("refused", "incomplete", "rejected")


def not_started(outcome: Outcome) -> bool:
    """Whether a call ended in the library itself."""
    return outcome.issued.verdict == "not started"


def listed(outcomes: list[Outcome], why: Callable[[Outcome], str]) -> str:
    lines = [f"- {SOURCES[o.source].title} `{o.name}`: {why(o)}" for o in outcomes if why(o)]
    return "\n".join(lines) + "\n"


def reason(outcome: Outcome) -> str:
    """Of a kernel that failed."""
    if outcome.good or not ran(outcome) or expected(outcome):
        return ""
    bad = next((r for r in [outcome.issued, *outcome.seeds.values()] if not r.good), outcome.issued)
    return f"{bad.verdict}: {bad.why}"[:400].replace("\n", " ").replace("|", "\\|")


def failure(outcome: Outcome) -> str:
    return "" if not_started(outcome) else reason(outcome)


def library(outcome: Outcome) -> str:
    """Why a library itself ended a call."""
    return reason(outcome) if not_started(outcome) else ""


def generated(outcomes: list[Outcome], folder: Path) -> str:
    """The half of the page below the mark."""
    parts = [summary_table(outcomes), "### Findings by kind\n", kind_table(outcomes)]
    for title, why in (("True findings", expected), ("Failing", failure), ("Not started", library)):
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


COLUMNS = "{:<11}{:<28}{:<16}{:<26}{:<10}{:>9}{:>8}{:>7}"


def row(o: Outcome) -> str:
    """A line of a run's table."""
    warnings = sum(n for kind, n in o.issued.kinds.items() if kind.startswith("warning"))
    line = COLUMNS.format(
        o.source, o.name, o.issued.values[:15], o.issued.verdict[:25], o.seeded[:9],
        warnings, o.issued.instructions, f"{o.seconds:.1f}",
    )  # fmt: skip
    return line if o.good else f"{line}  {reason(o)[:300]}"
