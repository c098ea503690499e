"""Colours that people with any kind of colour vision can distinguish.

Categories: Okabe and Ito, "Color Universal Design" (2008). Quantities: viridis (matplotlib). Colour
is never the only cue: cells contain text, and special cells also a mark.
"""

from __future__ import annotations

ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#999999"
OKABE_ITO = (ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILLION, PURPLE, GREY)
"""The colours of eight categories; grey instead of black, which would hide text."""
PAPER, EMPTY, INK = "#FFFFFF", "#F4F4F4", "#000000"

_VIRIDIS = (
    "#440154", "#482878", "#3E4A89", "#31688E", "#26828E",
    "#1F9E89", "#35B779", "#6DCD59", "#B4DE2C", "#FDE725",
)  # fmt: skip


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def mix(colour: str, other: str, part: float) -> str:
    """Mixes ``part`` (0 to 1) of ``other`` into ``colour``."""
    pairs = zip(_channels(colour), _channels(other))
    return "#" + "".join(f"{round(a + (b - a) * part):02X}" for a, b in pairs)


def light(colour: str) -> str:
    """Returns a lighter tint of a colour, on which black text is easy to read."""
    return mix(colour, PAPER, 0.45)


def viridis(value: float) -> str:
    """Returns the viridis colour of ``value`` from 0 (dark violet) to 1 (yellow)."""
    place = min(max(value, 0.0), 1.0) * (len(_VIRIDIS) - 1)
    low = min(int(place), len(_VIRIDIS) - 2)
    return mix(_VIRIDIS[low], _VIRIDIS[low + 1], place - low)


def category(index: int) -> str:
    """Returns one of eight tints."""
    return light(OKABE_ITO[index % len(OKABE_ITO)])


def thread(number: int) -> str:
    """Returns the colour of a thread, one of 32: the hue identifies its quad, the lightness its
    position in the quad."""
    return mix(OKABE_ITO[number // 4 % 8], PAPER, (0.25, 0.42, 0.59, 0.76)[number % 4])


def luminance(colour: str) -> float:
    """Returns the relative luminance, 0 to 1 (WCAG 2.1)."""
    linear = [
        c / 12.92 if (c := v / 255) <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for v in _channels(colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """Returns the contrast ratio of two colours, 1 to 21 (WCAG 2.1)."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def ink_on(colour: str) -> str:
    """Returns black or white, whichever text reads better on ``colour``."""
    return max((INK, PAPER), key=lambda ink: contrast(ink, colour))
