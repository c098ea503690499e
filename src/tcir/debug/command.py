"""The argument of `tc-run --break-at`."""

from __future__ import annotations

import numpy as np

from tcir.debug.control import Breakpoint
from tcir.debug.difference import FirstDifference
from tcir.run import LaunchError

FORMS = (
    "LINE[,hit=N][,warp=N][,cta=X.Y.Z], first-hazard or "
    "first-difference=[N=]EXPECTED.npy[,within=T]"
)


def break_at(text: str) -> Breakpoint | FirstDifference | str:
    """What `tcir.debug.run` takes; raises LaunchError for anything else, and for no such file."""
    try:
        if text == "first-hazard":
            return text
        name, _, rest = text.partition("=")
        if name == "first-difference":
            rest, _, within = rest.partition(",within=")
            number, separator, file = rest.partition("=")
            if not separator or not number.isdigit():
                number, file = "", rest
            return FirstDifference(
                np.load(file), int(number) if number else None, float(within or 0)
            )
        line, *words = text.split(",")
        options = dict(word.split("=") for word in words)
        cta = options.pop("cta", "")
        numbers = {key: int(value) for key, value in options.items() if key in ("hit", "warp")}
        if len(numbers) == len(options) and int(line) > 0:
            x, y, z = (*(int(n) for n in cta.split(".") if cta), 0, 0, 0)[:3]
            return Breakpoint(
                int(line), numbers.get("hit", 1), numbers.get("warp"), (x, y, z) if cta else None
            )
    except ValueError:
        pass
    except OSError as error:
        raise LaunchError(f"--break-at {text}: {error}") from None
    raise LaunchError(f"--break-at: expected {FORMS}, got {text!r}")
