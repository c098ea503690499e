"""Formats values of 32 lanes, bytes and words as lines of text."""

from __future__ import annotations

import numpy as np

from tcir.machine.order.involved import lane_words

_FULL = 0xFFFFFFFF


def ranges(flags: np.ndarray) -> list[tuple[int, int]]:
    """Half-open ranges of the indices at which a one-dimensional array is true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def lanes_of(values: np.ndarray, undefined: int) -> str:
    """Formats the values of 32 lanes: an array [32], or [32, 2] if each value has two halves. The
    result is one value if all lanes agree, the first value and the step if the values form an
    arithmetic sequence, and all 32 values otherwise. Lanes that no instruction wrote show poison.
    """
    if undefined == _FULL:
        return "poison: never written"
    known = [not undefined >> n & 1 for n in range(32)]
    live = values[np.array(known)]
    if (live == live[0]).all():
        return f"{one(live[0])} in {lane_words(_FULL & ~undefined)}" + _rest(undefined)
    if values.ndim == 1 and values.dtype.kind in "iu" and not undefined:
        steps = np.diff(values.astype(np.int64))
        if (steps == steps[0]).all():
            return f"{one(values[0])} + {int(steps[0])} * lane"
    shown = [one(v) if k else "poison" for v, k in zip(values, known, strict=True)]
    width = max(map(len, shown))
    per_line = 8 if width <= 10 else 4
    lines = [
        " ".join(f"{s:>{width}}" for s in shown[at : at + per_line])
        for at in range(0, 32, per_line)
    ]
    return ("\n" + " " * 4).join(["", *lines])


def _rest(undefined: int) -> str:
    return f"; poison in {lane_words(undefined)}" if undefined else ""


def one(value: np.ndarray | np.generic) -> str:
    """Formats one value, or its halves."""
    if isinstance(value, np.ndarray):
        return ":".join(one(half) for half in value)
    if value.dtype.kind == "b":
        return str(int(value))
    if value.dtype.kind in "fV":  # V: of ml_dtypes
        return f"{float(value):.9g}"
    number = int(value)
    return str(number) if -10000 < number < 10000 else hex(number)


def rows_of_bytes(start: int, data: np.ndarray, defined: np.ndarray) -> list[str]:
    """Formats 16 bytes per line with their address; unwritten bytes are dots."""
    lines = []
    for at in range(0, len(data), 16):
        shown = [
            f"{b:02x}" if d else ".."
            for b, d in zip(data[at : at + 16], defined[at : at + 16], strict=True)
        ]
        quads = [" ".join(shown[n : n + 4]) for n in range(0, len(shown), 4)]
        lines.append(f"  {start + at:#08x}  {'  '.join(quads)}")
    return lines


def rows_of_words(lane: int, column: int, words: np.ndarray, defined: np.ndarray) -> list[str]:
    """Formats one line per lane, with each word as f32; unwritten words are dots."""
    columns = range(column, column + words.shape[1])
    lines = ["  lane  " + " ".join(f"{c:>12}" for c in columns)]
    values = words.view(np.float32)
    for n in range(len(words)):
        shown = [f"{v:.6g}" if d else "." for v, d in zip(values[n], defined[n], strict=True)]
        lines.append(f"  {lane + n:>4}  " + " ".join(f"{s:>12}" for s in shown))
    return lines
