"""Finds the launches that compute only from frozen inputs, such as launches that repack weights."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tcir.program.launch import Launch, LaunchSequence
from tcir.program.workspaces import Workspaces, aligned


@dataclass(frozen=True)
class Split:
    """A launch sequence in two parts, which use the buffer numbers of the whole sequence.

    once:  the launches that run once, until a frozen input changes
    each:  the launches that run at every call
    kept:  for each workspace that `once` writes: its offset in separate memory, which no launch of
           `each` writes
    bytes: bytes of the separate memory
    """

    once: tuple[Launch, ...]
    each: tuple[Launch, ...]
    kept: dict[int, int]
    bytes: int


def split(sequence: LaunchSequence, callers: int, frozen: Collection[int]) -> Split:
    """Splits a sequence into the launches that depend only on frozen buffers, and all others.

    callers: number of buffers before the workspaces
    frozen:  numbers of the inputs and constants whose contents are the same at each call

    A launch writes those of its buffers that no earlier launch wrote (`LaunchSequence.calls`). A
    launch that writes a result of the caller runs at every call.
    """
    if not frozen:
        return Split((), sequence.launches, {}, 0)
    known, fixed = set(frozen), set(frozen)
    once: list[Launch] = []
    each: list[Launch] = []
    written: set[int] = set()
    for launch in sequence.launches:
        used = set(launch.buffers)
        new = {n for n in used if n >= callers and n not in written}
        written |= new
        if used - new <= fixed and new:
            fixed |= new
            once.append(launch)
        else:
            each.append(launch)
    numbers = sorted(fixed - known)
    sizes = [sequence.workspaces.sizes[n - callers] for n in numbers]
    places = Workspaces.apart(sizes)
    return Split(
        tuple(once), tuple(each), dict(zip(numbers, places.offsets, strict=True)), places.arena
    )


def with_scratch(sequence: LaunchSequence, callers: int) -> LaunchSequence:
    """Returns the sequence with the memory of single launches (parameters of kind ``workspace``)
    added to the workspaces; those parameters become pointers.
    """
    sizes, offsets = list(sequence.workspaces.sizes), list(sequence.workspaces.offsets)
    end = aligned(sequence.workspaces.arena)
    launches = []
    for launch in sequence.launches:
        params = []
        for param in launch.params:
            if param["kind"] == "workspace":
                sizes.append(param["bytes"])
                offsets.append(end)
                end += aligned(param["bytes"])
                param = {"kind": "pointer", "arg": callers + len(sizes) - 1}
            params.append(param)
        launches.append(replace(launch, params=tuple(params)))
    return replace(
        sequence, launches=tuple(launches), workspaces=Workspaces(tuple(sizes), tuple(offsets))
    )
