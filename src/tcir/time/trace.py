"""Writes timelines as a trace for the Perfetto viewer (https://ui.perfetto.dev), in protobuf.

There is a track for each warp, named by its role, for each resource and for each mbarrier; a flow
connects the event that ended a wait to the wait. A modelled cycle is a nanosecond of the trace.
Needs the package perfetto.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcir.errors import InputError
from tcir.time.engine import simulate
from tcir.time.phases import phases
from tcir.time.roles import roles, track_of
from tcir.time.timeline import Timeline

if TYPE_CHECKING:
    from tcir.machine.events import EventStream

CATEGORY = "modelled"
"""Category of every slice."""
SEQUENCE = 1


def check_perfetto() -> None:
    """Raises InputError, which names the ways to install perfetto, if the package is missing."""
    if importlib.util.find_spec("perfetto") is None:
        raise InputError(
            "--trace needs the package perfetto, which writes the trace: pip install "
            "'tcir[trace]', or pip install perfetto"
        )


def trace(streams: Iterable[EventStream], target: str) -> bytes:
    """Returns the trace of launches, one after the other in time. Raises LaunchError for an event
    that the model cannot time.
    """
    writer = _Writer()
    for stream in streams:
        if stream:
            writer.launch(stream, simulate(stream, target))
    return bytes(writer.builder.serialize())


@dataclass(frozen=True)
class _Slice:
    """A slice of a track. leaves: numbers of the flows that start at it; ends: numbers of the flows
    that end at it."""

    start: int
    end: int
    name: str
    details: Sequence[tuple[str, int | str]] = ()
    leaves: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


class _Writer:
    """Builds the packets of one trace; each launch starts where the previous one ends."""

    def __init__(self) -> None:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor, TrackEvent
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder

        self.builder = TraceProtoBuilder()
        self.event, self.descriptor = TrackEvent, TrackDescriptor
        self._tracks = self._flows = self._start = 0

    def launch(self, stream: EventStream, timeline: Timeline) -> None:
        """Appends the tracks of one launch."""
        root = self._track(
            f"@{stream.kernel}, CTA {', '.join(map(str, stream.ctas))} of "
            f"{'x'.join(map(str, stream.grid))}; {timeline}"
        )
        for name, slices in _by_track(stream, timeline, self._flows).items():
            self._fill(self._track(name, root), slices)
        self._flows += len(timeline.flows)
        self._start += round(timeline.cycles) + 1

    def _track(self, name: str, parent: int = 0) -> int:
        self._tracks += 1
        packet = self._packet(0)
        packet.track_descriptor.uuid = self._tracks
        packet.track_descriptor.name = name
        if parent:
            packet.track_descriptor.parent_uuid = parent
            packet.track_descriptor.sibling_order_rank = self._tracks
        else:
            packet.track_descriptor.child_ordering = self.descriptor.EXPLICIT
        return self._tracks

    def _fill(self, track: int, slices: list[_Slice]) -> None:
        for one in sorted(slices, key=lambda one: (one.start, one.end)):
            begin = self._packet(one.start).track_event
            begin.type, begin.track_uuid = self.event.TYPE_SLICE_BEGIN, track
            begin.name = one.name
            begin.categories.append(CATEGORY)
            for name, value in one.details:
                note = begin.debug_annotations.add()
                note.name = name
                if isinstance(value, int):
                    note.int_value = value
                else:
                    note.string_value = value
            # Flows leave and arrive where something ends: a wait begins before what it waits for.
            end = self._packet(one.end).track_event
            end.type, end.track_uuid = self.event.TYPE_SLICE_END, track
            end.flow_ids.extend(one.leaves)
            end.terminating_flow_ids.extend(one.ends)

    def _packet(self, cycle: int) -> Any:
        packet = self.builder.add_packet()
        packet.timestamp = self._start + cycle
        packet.trusted_packet_sequence_id = SEQUENCE
        return packet


def _by_track(stream: EventStream, timeline: Timeline, flows: int) -> dict[str, list[_Slice]]:
    """Returns the slices of each track: warps first, then resources, then mbarriers."""
    named = {
        track_of(*warp): f"{track_of(*warp)}: {name}" if name else track_of(*warp)
        for warp, name in roles(stream).items()
    }
    tracks: dict[str, list[_Slice]] = {name: [] for name in named.values()}
    slices = []
    for span in timeline.spans:
        event = stream[span.event]
        details = [("event", span.event), ("PTX line", event.line), *event.detail.items()]
        slices.append(_Slice(round(span.start), round(span.end), span.name, details))
        tracks.setdefault(named.get(span.track, span.track), []).append(slices[-1])
    for number, flow in enumerate(timeline.flows, flows + 1):
        slices[flow.source].leaves.append(number)
        slices[flow.sink].ends.append(number)
    for phase in phases(stream, timeline):
        one = _Slice(round(phase.start), round(phase.end), f"phase {phase.number}")
        tracks.setdefault(f"{phase.track}, by {phase.by}", []).append(one)
    return tracks
