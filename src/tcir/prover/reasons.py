"""Text that explains why sentryward did not prove a launch, with lines of the PTX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcir.prover.launch_input import Json


def reason(found: Json, lines: Sequence[str], threads: int) -> str:
    """Describes the first race in sentryward's result; if there is none, its first diagnostic; ""
    if there is none either.

    lines:   lines of the PTX
    threads: number of threads of a CTA
    """
    races = found.get("races") or ()
    if races:
        first, second = (_access(races[0][side], lines, threads) for side in ("first", "second"))
        return f"{first} and {second} are not ordered: {_storage(races[0])}"
    for each in found.get("diagnostics") or ():
        text = str(each.get("message") or each.get("code") or "")
        details = each.get("details")
        number = details.get("ptx_line") if isinstance(details, Mapping) else None
        return f"{_line(number, lines)}: {text}" if isinstance(number, int) else text
    return ""


def _access(access: Json, lines: Sequence[str], threads: int) -> str:
    place = _line(int(access["location"]["line"]), lines)
    cta, thread = divmod(int(access["actor"]), threads)
    return f"{place} (a {access['mode']}, thread {thread} of CTA {cta})"


def _storage(race: Json) -> str:
    """Storage that both accesses of a race use: bytes of memory, or a register."""
    region = race.get("region")
    if not isinstance(region, Mapping):
        return f"register {race['first'].get('endpoint', {}).get('name', '')}".rstrip()
    space = str(region.get("address_space", ""))
    name = f" ({region['allocation']})" if space == "global" and "allocation" in region else ""
    return f"{region.get('bytes')} bytes of {space} memory{name} at {region.get('offset')}"


def _line(number: int, lines: Sequence[str]) -> str:
    text = lines[number - 1].strip() if 1 <= number <= len(lines) else ""
    return f"line {number}: {' '.join(text.split())}"
