"""Launches on memory that is as it was before the last one repeat its effect."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tcir.doors import repeats
from tcir.doors.launches import DoorLaunch, Launches

from .test_launches import PTX

COPY = PTX.replace("add.u32 %r1, %r1, 1", "and.b32 %r1, %r1, 12")
"""Does the same again: the second launch changes nothing."""


@pytest.fixture(autouse=True)
def any_launch_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "RATE", 1e12)


def launched(ptx: str, data: np.ndarray) -> DoorLaunch:
    address = np.uint64(data.ctypes.data).tobytes()
    return DoorLaunch(
        ptx, "next", (1, 1, 1), (1, 1, 1), 0, False, [address], [data], [data], (32, 1, 1)
    )


def test_a_loop_that_changes_nothing_is_executed_twice() -> None:
    messages, data = io.StringIO(), np.arange(32, dtype=np.uint32)
    launches = Launches(messages=messages)
    for _ in range(5):
        launches.execute(launched(COPY, data))
    launches.close()
    assert data.tolist() == [n & 12 for n in range(32)]
    assert launches.launches == 5 and launches.repeats.count == 3
    assert "5 launches executed" in messages.getvalue()
    assert "(3 repeat an earlier one on the same memory)" in messages.getvalue()


@pytest.mark.parametrize("size", [32, 1000])
def test_an_effect_is_repeated_after_the_memory_was_restored(size: int) -> None:
    """Of a few bytes of the memory, or of many."""
    data = np.arange(size, dtype=np.uint32)
    launches = Launches(messages=io.StringIO())
    for _ in range(4):
        data[:] = np.arange(size)
        launches.execute(launched(PTX, data))
        assert data.tolist() == [*range(1, 33), *range(32, size)]
    assert launches.repeats.count == 2


def test_other_memory_or_another_place_is_executed() -> None:
    launches = Launches(messages=io.StringIO())
    data = np.arange(32, dtype=np.uint32)
    for n in range(4):
        launches.execute(launched(PTX, data))
        assert data.tolist() == list(range(n + 1, n + 33))
    other = np.arange(32, dtype=np.uint32)
    launches.execute(launched(PTX, other))
    assert other.tolist() == list(range(1, 33)) and launches.repeats.count == 0


WRITE = PTX.replace("ld.global.u32 %r1, [%rd2];", "mov.u32 %r1, 6;")


def test_what_an_effect_writes_is_initialised() -> None:
    launches, data = Launches(messages=io.StringIO()), np.zeros(32, np.uint32)
    for _ in range(4):
        launches.memory.allocated(data.ctypes.data, data.nbytes)  # noise again
        launches.execute(launched(WRITE, data))
        assert data.tolist() == [7] * 32
        assert all(mask.all() for _, mask in launches.memory.partial([data]))
    assert launches.repeats.count == 2 and launches.status == 0


@pytest.mark.parametrize("mistake", ["clock", "arrays"])
def test_what_is_executed_each_time(mistake: str) -> None:
    data = np.arange(32, dtype=np.uint32)
    launch = launched(COPY.replace(" ret;", " mov.u32 %r0, %clock; ret;"), data)
    if mistake == "arrays":
        launch = DoorLaunch(
            COPY, "next", (1, 1, 1), (1, 1, 1), 0, False, [data], [data], [data], (32, 1, 1)
        )
    launches = Launches(messages=io.StringIO())
    for _ in range(4):
        launches.execute(launch)
    assert launches.repeats.count == 0


@pytest.mark.parametrize("orders", [0, 1])
def test_a_launch_that_allocates_is_executed_each_time(orders: int) -> None:
    call = "call.uni (retval0), malloc, (param0);"
    body = f"{{ .param .b64 param0, retval0; st.param.b64 [param0], 8; {call} }} ret;"
    declared = ".extern .func (.param .b64 a) malloc (.param .b64 n);\n.visible .entry"
    ptx = COPY.replace(".visible .entry", declared).replace(" ret;", body)
    launches = Launches(messages=io.StringIO(), orders=orders)
    data = np.arange(32, dtype=np.uint32)
    for n in range(1, 5):
        launches.execute(launched(ptx, data))
        assert len(launches.heap.blocks) == 32 * n
    assert launches.repeats.count == launches.wrong == 0


def test_a_launch_that_frees_what_it_allocates_is_executed_each_time() -> None:
    """The heap is empty again, and the next launch gets other addresses."""
    declared = (
        ".extern .func (.param .b64 a) malloc (.param .b64 n);\n"
        ".extern .func free (.param .b64 p);\n.visible .entry"
    )
    body = (
        "{ .param .b64 param0, retval0; .reg .b64 %p; st.param.b64 [param0], 8; "
        "call.uni (retval0), malloc, (param0); ld.param.b64 %p, [retval0]; "
        "{ .param .b64 param1; st.param.b64 [param1], %p; call.uni free, (param1); } } ret;"
    )
    ptx = COPY.replace(".visible .entry", declared).replace(" ret;", body)
    launches = Launches(messages=io.StringIO())
    data = np.arange(32, dtype=np.uint32)
    for n in range(1, 5):
        launches.execute(launched(ptx, data))
        assert not launches.heap.blocks and len(launches.heap.freed) == 32 * n
    assert launches.repeats.count == launches.wrong == 0
