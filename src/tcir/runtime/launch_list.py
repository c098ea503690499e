"""Launches that are prepared once and put on a stream many times."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, count
from typing import TYPE_CHECKING, Any

import numpy as np

from tcir.emulation.narrow import encoder
from tcir.errors import InputError
from tcir.runtime.driver import entry, failed
from tcir.runtime.module import LAUNCH, LAUNCHED, Module
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


class LaunchList:
    """Launches on one stream, with prepared configurations and their parameters in one buffer.

    A call writes the addresses that differ from those of the previous call, and puts the launches
    on the stream by one call of compiled code. Only one thread at a time may call it.
    """

    def __init__(self, launches: Sequence[Launch], module: Module, stream: int = 0) -> None:
        self.module, self._bound = module, list[int]()
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
        steps = [
            STEP(config.getPtr(), int(function.handle), ctypes.addressof(pointers))
            for config, function, pointers in zip(
                self._configs, self._functions, self._pointers, strict=True
            )
        ]
        self._steps = (STEP * len(steps))(*steps)
        driver = LAUNCH, ("cuCtxPushCurrent", 4000), ("cuCtxPopCurrent", 4000)
        context, first = int(module.device.context), ctypes.addressof(self._steps)
        self._walk = partial(walk(), *(entry(*each) for each in driver), context, first, len(steps))

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
        if addresses != self._bound:
            self._bind(addresses)
        number, status = divmod(self._walk(), 1 << 32)
        LAUNCHED.extend(self._names)
        if status and number < 0:
            raise failed("cuCtxPushCurrent", status)
        if status:
            raise self._functions[number].rejected(self._configs[number], status)

    def _bind(self, addresses: list[int]) -> None:
        """Writes the addresses that are new. If this is interrupted, the next call writes all."""
        if (last := max(self._places, default=-1)) >= len(addresses):
            raise InputError(
                f"a parameter of {', '.join(f'@{name}' for name in self._names)} uses buffer "
                f"{last}, but there are {len(addresses)} buffers"
            )
        before, self._bound = self._bound, []
        changed = compress(count(), map(operator.ne, before, addresses)) if before else self._places
        for number in changed:
            if (places := self._places.get(number)) is None:
                continue
            address = addresses[number]
            for word in places.words:
                self._words[word] = address
            for each in places.maps:
                self._bytes[each.at : each.at + MAP_BYTES] = self._encoded(each, address)
        self._bound = list(addresses)

    def _encoded(self, each: _Map, address: int) -> bytes:
        found = each.encoded.get(address)
        if found is None:
            if len(each.encoded) == MOST_MAPS:
                each.encoded.clear()
            found = each.encoded[address] = self._encode(each.fields, address + each.offset)
        return found
