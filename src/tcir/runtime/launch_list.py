"""Sequences of launches that are prepared once and put on a stream many times."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, count, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from tcir.emulation.narrow import encoder
from tcir.errors import InputError
from tcir.runtime.driver import bindings, entry, failed
from tcir.runtime.launch_graph import LEAST, LaunchGraph
from tcir.runtime.module import LAUNCH, LAUNCHED, LaunchFailedError, Module
from tcir.runtime.tensor_map import MAP_BYTES, Encode, encode
from tcir.runtime.walk import STEP, walk

if TYPE_CHECKING:
    from tcir.program.launch import Launch

MAP_ALIGNMENT = 64
"""Alignment of a tensor map in bytes (CUDA driver API, CUtensorMap)."""
MOST_MAPS = 64
"""Maximum number of addresses for which a tensor map is kept encoded."""


@dataclass
class _Map:
    """A tensor map among the parameters: its first byte, its fields, the bytes from the buffer's
    address to the tensor's, and its encodings by address."""

    at: int
    fields: Any
    offset: int
    encoded: dict[int, bytes] = field(default_factory=dict)


@dataclass
class _Places:
    """Where the parameters hold the address of a buffer: numbers of 8-byte words, and maps."""

    words: list[int] = field(default_factory=list)
    maps: list[_Map] = field(default_factory=list)


_Put = tuple[ctypes.Array[ctypes.c_void_p], range, LaunchGraph | None]
"""A `STEP`, the numbers of its launches, and its graph."""


@dataclass
class _Sequence:
    """Steps for the compiled function, and the numbers of the launches of each."""

    steps: ctypes.Array[ctypes.Array[ctypes.c_void_p]]
    numbers: list[range]
    graphs: list[LaunchGraph]

    @staticmethod
    def of(made: Sequence[_Put]) -> _Sequence:
        """The sequence of these steps, each a `STEP`, with its launches and its graph."""
        steps = (STEP * len(made))(*[step for step, *_ in made])
        graphs = [graph for *_, graph in made if graph is not None]
        return _Sequence(steps, [numbers for _, numbers, _ in made], graphs)


class LaunchList:
    """Launches on one stream, with prepared configurations and with their parameters in one buffer.

    A call writes the addresses that differ from those of the previous call, and then puts all
    launches on the stream by one call of compiled code. Only one thread at a time may call it.

    replay: whether consecutive launches whose addresses stay the same are replayed as one CUDA
        graph, from the second call on; the stream must not be in capture mode
    """

    def __init__(
        self, launches: Sequence[Launch], module: Module, stream: int = 0, *, replay: bool = False
    ) -> None:
        self.module, self.stream, self._bound = module, stream, list[int]()
        self._names = [each.name for each in launches]
        self._functions = [module.function(each.name) for each in launches]
        self._configs = [
            function.configured(
                grid=each.grid,
                block=each.block,
                cluster=each.cluster,
                dynamic_smem=each.dynamic_smem,
                programmatic=each.programmatic,
                stream=stream,
            )
            for function, each in zip(self._functions, launches, strict=True)
        ]
        self._places: dict[int, _Places] = {}
        offsets = self._laid_out(launches)
        self._encode: Encode = encode
        # A program for sm_90a has no maps of narrow elements: one that has them is emulated.
        if module.device.capability[0] == 9:
            self._encode = encoder(encode)
        size = self._size + MAP_ALIGNMENT
        self._held = (ctypes.c_uint8 * size)()
        start = -ctypes.addressof(self._held) % MAP_ALIGNMENT
        self._bytes = memoryview(self._held).cast("B")[start : start + self._size]
        self._words = self._bytes.cast("Q")
        base = ctypes.addressof(self._held) + start
        self._pointers = [
            (ctypes.c_void_p * max(1, len(each)))(*(base + offset for offset in each))
            for each in offsets
        ]
        self._steps = [
            STEP(config.getPtr(), int(function.handle), ctypes.addressof(pointers))
            for config, function, pointers in zip(
                self._configs, self._functions, self._pointers, strict=True
            )
        ]
        replay_graph = ("cuGraphLaunch", 10000)
        driver = LAUNCH, replay_graph, ("cuCtxPushCurrent", 4000), ("cuCtxPopCurrent", 4000)
        context = int(module.device.context)
        self._walk = partial(walk(), *(entry(*each) for each in driver), context)
        self._used = [frozenset(each.buffers) for each in launches]
        self._moving = set[int]()
        self.replay, self._graphs_wait = replay, replay
        self._plain = _Sequence.of(self._single(range(len(launches))))
        self._sequence = self._plain

    def _laid_out(self, launches: Sequence[Launch]) -> list[list[int]]:
        """Offset of each parameter of each launch in the buffer; fills `_places`."""
        from tcir.program.launch import tensor_map

        end, offsets = 0, []
        for launch, function in zip(launches, self._functions, strict=True):
            sizes, mine = [], []
            for number, param in enumerate(launch.params):
                if param["kind"] not in ("pointer", "tensor_map"):
                    raise InputError(
                        f"parameter {number} of @{launch.name}: expected a pointer or a tensor "
                        f"map, got one of kind '{param['kind']}'"
                    )
                places = self._places.setdefault(param["arg"], _Places())
                if param["kind"] == "tensor_map":
                    end = -(-end // MAP_ALIGNMENT) * MAP_ALIGNMENT
                    made = tensor_map(param, np.empty(0, np.uint8))
                    places.maps.append(_Map(end, made.fields, made.offset_bytes))
                else:
                    places.words.append(end // 8)
                sizes.append(MAP_BYTES if param["kind"] == "tensor_map" else 8)
                mine.append(end)
                end += sizes[-1]
            function.check_parameters(tuple(sizes))
            offsets.append(mine)
        self._size = max(8, end)
        return offsets

    def __call__(self, addresses: list[int]) -> None:
        """Puts the launches on the stream. addresses: one for each buffer of the program.

        `LaunchFailedError` if the driver rejects a launch; those before it are on the stream.
        """
        moved = addresses != self._bound and self._bind(addresses)
        if self._graphs_wait and not moved:
            self._replay()
        self._put(self._sequence)
        LAUNCHED.extend(self._names)

    def _put(self, sequence: _Sequence) -> None:
        steps = sequence.steps
        number, status = divmod(self._walk(ctypes.addressof(steps), len(steps)), 1 << 32)
        if not status:
            return
        if number < 0:
            raise failed("cuCtxPushCurrent", status)
        first, *others = sequence.numbers[number]
        if others:
            names = ", ".join(f"@{self._names[n]}" for n in (first, *others))
            raise LaunchFailedError(
                f"launch of {names} as a CUDA graph on {self.module.device}: "
                f"{failed('cuGraphLaunch', status)}"
            )
        raise self._functions[first].rejected(self._configs[first], status)

    def _single(self, numbers: Sequence[int]) -> list[_Put]:
        return [(self._steps[n], range(n, n + 1), None) for n in numbers]

    def _replay(self) -> None:
        """Makes a graph of each row of launches whose addresses have not moved."""
        made: list[_Put] = []
        fixed = [self._moving.isdisjoint(used) for used in self._used]
        for still, row in groupby(range(len(fixed)), fixed.__getitem__):
            numbers = [*row]
            if still and len(numbers) >= LEAST:
                graph = LaunchGraph(self.module, partial(self._put_on, numbers))
                span = range(numbers[0], numbers[-1] + 1)
                made.append((STEP(int(graph.handle), self.stream, None), span, graph))
            else:
                made += self._single(numbers)
        self._sequence, self._graphs_wait = _Sequence.of(made), False

    def _put_on(self, numbers: Sequence[int], stream: int) -> None:
        """Puts some of the launches on another stream."""
        configs = [self._configs[n] for n in numbers]
        handle = bindings().CUstream
        try:
            for config in configs:
                config.hStream = handle(stream)
            self._put(_Sequence.of(self._single(numbers)))
        finally:
            for config in configs:
                config.hStream = handle(self.stream)

    def _bind(self, addresses: list[int]) -> bool:
        """Writes the addresses that are new; returns whether these are of buffers that had not
        moved before, so that there are no graphs. If this is interrupted, the next call writes all.
        """
        if (last := max(self._places, default=-1)) >= len(addresses):
            raise InputError(
                f"a parameter of {', '.join(f'@{name}' for name in self._names)} uses buffer "
                f"{last}, but there are {len(addresses)} buffers"
            )
        before, self._bound = self._bound, []
        changed = compress(count(), map(operator.ne, before, addresses)) if before else self._places
        used = [number for number in changed if number in self._places]
        moved = not before or not self._moving.issuperset(used)
        if moved:
            self._sequence, self._graphs_wait = self._plain, self.replay
        if before:
            self._moving.update(used)
        for number in used:
            places, address = self._places[number], addresses[number]
            for word in places.words:
                self._words[word] = address
            for each in places.maps:
                self._bytes[each.at : each.at + MAP_BYTES] = self._encoded(each, address)
        self._bound = list(addresses)
        return moved

    def _encoded(self, each: _Map, address: int) -> bytes:
        found = each.encoded.get(address)
        if found is None:
            if len(each.encoded) == MOST_MAPS:
                each.encoded.clear()
            found = each.encoded[address] = self._encode(each.fields, address + each.offset)
        return found
