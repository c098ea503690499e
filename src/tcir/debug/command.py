"""The argument of `tc-run --break-at`."""

from __future__ import annotations

from tcir.debug.control import Breakpoint
from tcir.debug.difference import FirstDifference
from tcir.debug.watching import Watched, watch
from tcir.errors import InputError, LaunchError
from tcir.files import load_array

FORMS = (
    "PLACE[,hit=N][,warp=N][,cta=X.Y.Z] with a line, FILE:LINE of the source or a label for PLACE; "
    "watch=N[I,J][,hit=N], watch=0xADDRESS, watch=smem[0xADDRESS][,hit=N][,cta=X.Y.Z] or "
    "watch=tmem[LANE,COLUMN]; first-hazard; "
    "first-difference=[N=]EXPECTED.npy[,within=T]"
)


def break_at(text: str) -> Breakpoint | FirstDifference | Watched | str:
    """Parses the argument for `tcir.debug.run`; raises LaunchError for any other text or a
    missing file."""
    try:
        if text == "first-hazard":
            return text
        name, _, rest = text.partition("=")
        if name == "first-difference":
            return _difference(rest)
        if name == "watch":
            return watch(rest)
        return _breakpoint(text)
    except InputError as error:
        raise LaunchError(f"--break-at {text}: {error}") from None
    except ValueError:
        raise LaunchError(f"--break-at: expected {FORMS}, got {text!r}") from None


def _difference(text: str) -> FirstDifference:
    rest, _, within = text.partition(",within=")
    number, separator, file = rest.partition("=")
    if not separator or not number.isdigit():
        number, file = "", rest
    return FirstDifference(load_array(file), int(number) if number else None, float(within or 0))


def _breakpoint(text: str) -> Breakpoint:
    place, *more = text.split(",")
    options = dict(word.split("=") for word in more)
    cta = options.pop("cta", None)
    numbers = {key: int(value) for key, value in options.items()}
    if not place or not set(numbers) <= {"hit", "warp"}:
        raise ValueError(text)
    where = None
    if cta is not None:
        x, y, z = (*(int(n) for n in cta.split(".")), 0, 0)[:3]
        where = x, y, z
    line = int(place) if place.isdigit() else place
    return Breakpoint(line, numbers.get("hit", 1), numbers.get("warp"), where)
