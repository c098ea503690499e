"""Which bytes of the device's memory hold values, and which a kernel may not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcir.doors.limits import Limits, RefusedError
from tcir.doors.memory import SHORTEST, SURE, Allocations
from tcir.doors.numpy_memory import noise_in_empty

APART = 256
"""Bytes between two allocations at least, as on a device."""


def allocated(memory: Allocations, size: int) -> np.ndarray:
    array = np.empty(size + APART, np.uint8)[:size]
    memory.allocated(array.ctypes.data, size)
    return array


def unwritten(memory: Allocations, array: np.ndarray) -> list[int]:
    """The bytes that hold no values."""
    found = memory.partial([array])
    return np.flatnonzero(~found[0][1]).tolist() if found else []


def test_what_the_runtime_writes_is_known_to_the_byte() -> None:
    memory = Allocations()
    a, b = allocated(memory, 16), allocated(memory, 16)
    at, other = a.ctypes.data, b.ctypes.data
    memory.wrote(at, 3)
    memory.wrote(at + 15, 100)
    assert unwritten(memory, a) == list(range(3, 15))
    memory.copied(other + 4, at, 8)
    b[4:12] = a[:8]
    memory.copied(other + 4, at, 8)
    assert unwritten(memory, b) == [0, 1, 2, 3, *range(7, 16)]
    memory.copied(other, np.zeros(16, np.uint8).ctypes.data, 16)
    assert unwritten(memory, b) == []
    memory.allocated(other, 16)
    assert len(unwritten(memory, b)) == 16
    memory.freed(other)
    assert unwritten(memory, b) == []


def test_a_copy_of_memory_that_the_host_wrote_by_itself() -> None:
    memory = Allocations()
    pinned, device = allocated(memory, 4096), allocated(memory, 4096)
    pinned.view(np.int32)[:512] = np.arange(512)
    device[:] = pinned
    memory.copied(device.ctypes.data, pinned.ctypes.data, 4096)
    assert (device.view(np.int32)[:512] == np.arange(512)).all()
    assert unwritten(memory, device) == list(range(2048 + SURE, 4096))
    pinned.view(np.int32)[:] = np.arange(1024)
    device[:] = pinned
    memory.copied(device.ctypes.data, pinned.ctypes.data, 4096)
    assert unwritten(memory, device) == []
    assert (device.view(np.int32) == np.arange(1024)).all()


def test_memory_that_is_gone_is_forgotten() -> None:
    memory, there = Allocations(), [True]
    array = np.empty(8, np.uint8)
    memory.allocated(array.ctypes.data, 8, lambda: there[0])
    assert len(unwritten(memory, array)) == 8
    there.clear()
    there.append(False)
    assert memory.mask(array.ctypes.data) is None and unwritten(memory, array) == []


def test_what_an_allocation_grew_by_is_not_written() -> None:
    array = np.arange(16, dtype=np.uint8)
    memory = Allocations()
    memory.allocated(array.ctypes.data, 16, kept=12)
    assert unwritten(memory, array) == [12, 13, 14, 15]
    assert array[:12].tolist() == list(range(12))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_writes_of_the_host_by_itself(data: st.DataObject) -> None:
    """No byte that it wrote is unwritten; what is far from its writes is."""
    size = data.draw(st.integers(1, 300))
    spans = data.draw(st.lists(st.tuples(st.integers(0, size), st.integers(0, 60)), max_size=4))
    seed = data.draw(st.integers(0, 99))
    memory = Allocations()
    array = allocated(memory, size)
    before = array.copy()
    written = np.zeros(size, bool)
    for low, length in spans:
        written[low : low + length] = True
    drawn = np.random.default_rng(seed + 1).integers(0, 256, size, np.uint8)
    array[written] = drawn[written]
    found = np.zeros(size, bool)
    found[unwritten(memory, array)] = True
    assert not (found & written).any()
    far = ~written
    for _ in range(SURE):
        far[1:-1] &= far[2:] & far[:-2]  # so far from what was written
    edges = np.flatnonzero(np.diff(~written, prepend=False, append=False)).reshape(-1, 2)
    for low, high in edges:
        if high - low >= SHORTEST + 2 and (before != array).any():
            assert found[low + SURE + 1 : high - SURE - 1].all()


def test_values_that_are_those_of_the_noise() -> None:
    """Beside others that the host wrote, they count as written."""
    memory = Allocations()
    array = allocated(memory, 64)
    array[:30] ^= 1
    assert unwritten(memory, array) == list(range(34, 64))  # it may have written 30 to 33


def test_single_elements_without_a_hidden_write() -> None:
    memory = Allocations()
    array = allocated(memory, 64)
    memory.wrote(array.ctypes.data, 60)
    array[:60] = 0
    assert unwritten(memory, array) == [60, 61, 62, 63]


PTX = """
.version 8.6
.target sm_100a
.address_size 64
.shared .align 4 .b8 part[4096];
.visible .entry k() .maxntid 64, 1, 1 { .reg .b32 %r<2>; ld.shared.u32 %r1, [part]; ret; }
"""


def test_the_runtime_s_limits() -> None:
    limits, one = Limits(PTX, "k"), (1, 1, 1)
    limits.check((64, 1, 1), (8, 1, 1), 45056)
    for block, cluster, shared, error in (
        ((65, 1, 1), one, 0, 1),
        (one, (9, 1, 1), 0, 912),
        (one, one, 45057, 1),
    ):
        with pytest.raises(RefusedError) as refused:
            limits.check(block, cluster, shared)
        assert refused.value.cuda == error
    with pytest.raises(RefusedError, match="expected 0 to 228352 bytes, got 228353"):
        limits.set(8, 228353)
    limits.set(8, 228352)
    limits.set(14, 1)
    limits.check(one, (4, 4, 1), 228352)


def test_arrays_of_numpy_that_nobody_filled() -> None:
    memory, plain = Allocations(), np.empty
    with noise_in_empty(memory):
        array, like = np.empty((4, 16), np.float32, order="F"), np.empty_like(np.zeros(64, np.int8))
        filled, objects = np.empty(16, np.int64), np.empty(2, object)
        filled[:] = range(16)
        inside = np.concatenate([np.ones(8), np.ones(8)])
    assert len(unwritten(memory, array)) == array.nbytes
    assert len(unwritten(memory, like[:1])) == 64, "a view reaches all of it"
    assert not unwritten(memory, filled) and not unwritten(memory, inside)
    assert objects.tolist() == [None, None] and np.empty is plain
    at = array.ctypes.data
    del array
    assert memory.mask(at) is None
