"""Parses places to stop at, as users write them: lines of the text or of its source, and labels."""

from __future__ import annotations

from tcir.errors import LaunchError, did_you_mean
from tcir.interp.ptx.launch import Triple
from tcir.interp.ptx.syntax import BlockScope, Function, PtxModule


def lines_at(place: int | str, module: PtxModule) -> frozenset[int]:
    """Lines of the text that a place stands for: a line, `FILE:LINE` of the source, or a label.

    A line without an instruction stands for the next line that has one. Raises LaunchError.
    """
    sites = [i.site for f in module.functions.values() for i in f.body or ()]
    if isinstance(place, int):
        known = sorted({site.line for site in sites})
        at = [line for line in known if line >= place > 0]
        if not at:
            last = known[-1] if known else 0
            raise LaunchError(f"breakpoint: expected a line of 1..{last}, got {place}")
        return frozenset(at[:1])
    file, colon, number = place.rpartition(":")
    if not (colon and number.isdigit()):
        return _label(place, module)
    sources = [site.source.rpartition(":") for site in sites]
    listed = sorted({name for name, _, _ in sources if name})
    if file not in listed:
        near = did_you_mean(file, listed) if listed else "; the text has no .loc"
        raise LaunchError(f"breakpoint: no instruction comes from the source {file!r}{near}")
    behind = [int(n) for name, _, n in sources if name == file and int(n) >= int(number)]
    if not behind:
        raise LaunchError(f"breakpoint: no instruction comes from {file}, line {number} or later")
    found = zip(sites, sources, strict=True)
    return frozenset(s.line for s, (f, _, n) in found if f == file and int(n) == min(behind))


def _label(name: str, module: PtxModule) -> frozenset[int]:
    labels: dict[str, int] = {}
    for function in module.functions.values():
        labels |= _labels(function)
    if name not in labels:
        raise LaunchError(
            f"breakpoint: expected a line, FILE:LINE or a label, got {name!r}"
            + did_you_mean(name, labels)
        )
    return frozenset({labels[name]})


def _labels(function: Function) -> dict[str, int]:
    """Line of the first instruction after each label."""
    body = function.body or []
    found: dict[str, int] = {}
    for instruction in body:
        scope: BlockScope | None = instruction.scope
        while scope is not None:
            found |= {n: body[at].site.line for n, at in scope.labels.items() if at < len(body)}
            scope = scope.parent
    return found


def check_numbers(hit: int, warp: int | None, cta: Triple | None, grid: Triple, warps: int) -> None:
    """Raises LaunchError for a hit, a warp or a CTA that the launch does not have."""
    if hit < 1:
        raise LaunchError(f"breakpoint: expected hit=1 or more, got {hit}")
    if warp is not None and not 0 <= warp < warps:
        raise LaunchError(f"breakpoint: expected warp 0..{warps - 1}, got {warp}")
    if cta is not None and not all(0 <= c < g for c, g in zip(cta, grid, strict=True)):
        top = ".".join(str(g - 1) for g in grid)
        got = ".".join(map(str, cta))
        raise LaunchError(f"breakpoint: expected a CTA of 0.0.0 to {top}, got {got}")
