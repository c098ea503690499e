"""Prepared launches: what a second call writes, and what it does after an interrupt."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from itertools import chain as chained
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tcir import runtime
from tcir.errors import Error, InputError
from tcir.program.frozen import split, with_scratch
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.workspaces import Workspaces
from tcir.runtime import launch_list
from tcir.runtime.launch_list import LaunchList
from tcir.runtime.module import LAUNCHED, LaunchFailedError, shared
from tcir.runtime.prepared import Prepared

from . import fake_driver
from .programs import counted, pointer

ONE = (1, 1, 1)


@pytest.fixture(autouse=True)
def afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # ends in front of it
    yield
    fake_driver.forget()


def step(name: str, *buffers: int) -> Launch:
    return Launch(name, ONE, (32, 1, 1), 0, tuple(map(pointer, buffers)))


def chain(monkeypatch: pytest.MonkeyPatch, *launches: Launch, workspaces: int = 0) -> Any:
    """A program of launches that add one, and the driver."""
    names = tuple(each.name for each in launches)
    program = counted(names, launches, (128,) * workspaces)
    fake = fake_driver.install(monkeypatch, {name: ([8, 8], program.ptx) for name in names})
    return program, fake


def memory(*values: int) -> list[runtime.DeviceArray]:
    return [runtime.to_device(np.full(32, value, np.uint32)) for value in values]


def test_only_new_addresses_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    program, fake = chain(monkeypatch, step("a", 0, 2), step("b", 2, 1))
    launches = LaunchList(program.launches.launches, shared(program.cubin, runtime.device()), 3)
    x, y, z, other = memory(5, 0, 0, 9)
    addresses = [x.pointer, y.pointer, z.pointer]
    launches(addresses)
    assert (y.numpy() == 7).all()
    written: list[int] = []

    class Words:
        def __setitem__(self, word: int, address: int) -> None:
            written.append(address)
            words[word] = address

    words, launches._words = launches._words, Words()  # type: ignore[assignment]
    launches(addresses)
    assert not written
    launches([other.pointer, *addresses[1:]])
    assert written == [other.pointer] and (y.numpy() == 11).all()
    assert [each.stream for each in fake.launches] == [3] * 6 and not fake.contexts[1:]


def test_an_interrupted_call_writes_all_addresses_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = chain(monkeypatch, step("a", 0, 1))
    launches = LaunchList(program.launches.launches, shared(program.cubin, runtime.device()))
    x, y, other, result = memory(5, 0, 9, 0)
    launches([x.pointer, y.pointer])

    class Words:
        def __setitem__(self, word: int, address: int) -> None:
            if address == result.pointer:
                raise KeyboardInterrupt
            words[word] = address

    words, launches._words = launches._words, Words()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        launches([other.pointer, result.pointer])
    launches._words = words
    launches([x.pointer, y.pointer])
    assert (y.numpy() == 6).all(), "the address of `other` was written, and is not any more"


def test_maps_are_encoded_once_for_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    map_of = {
        "kind": "tensor_map", "mode": "tiled", "arg": 0, "dtype": "u32", "dims": (32,),
        "strides": (), "box": (32,), "offset_bytes": 64,
    }  # fmt: skip
    program, fake = chain(monkeypatch, step("a", 0, 1))
    fake.kernels["a"] = ([8, 128], program.ptx)
    launch = Launch("a", ONE, (32, 1, 1), 0, (pointer(1), map_of))
    launches = LaunchList([launch], shared(program.cubin, runtime.device()))
    told: list[int] = []
    launches._encode = lambda fields, address: told.append(address) or bytes(128)  # type: ignore
    for address in (4096, 8192, 4096, 8192):
        launches._bind([address, 256])
        (places,) = launches._places[0].maps
        assert ctypes.addressof(launches._held) % 8 == 0 and places.at % 64 == 0
    assert told == [4096 + 64, 8192 + 64]
    monkeypatch.setattr(launch_list, "MOST_MAPS", 2)
    for address in range(4096, 4096 + 20 * 256, 256):
        launches._bind([address, 256])
        assert len(places.encoded) <= 2


def test_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    program, fake = chain(monkeypatch, step("a", 0, 4))
    on = shared(program.cubin, runtime.device())
    with pytest.raises(InputError, match=r"@a uses buffer 4, but there are 2 buffers"):
        LaunchList(program.launches.launches, on)([256, 512])
    value = Launch("a", ONE, ONE, 0, ({"kind": "value", "arg": 0},))
    with pytest.raises(InputError, match=r"parameter 0 of @a: expected a pointer or a .* 'value'"):
        LaunchList([value], on)
    with pytest.raises(InputError, match=r"expected parameters of \(8, 8\) bytes, got \(8,\)"):
        LaunchList([step("a", 0)], on)
    fake.fail["cuCtxPushCurrent"] = "CUDA_ERROR_INVALID_CONTEXT"
    with pytest.raises(runtime.CudaError, match="cuCtxPushCurrent: CUDA_ERROR_INVALID_CONTEXT"):
        LaunchList([step("a", 0, 1)], on)([256, 512])


def test_an_old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    program, fake = chain(monkeypatch, step("a", 0, 1))
    fake.__dict__["_cuGetProcAddress"] = lambda *_: (0, None)
    words = r"expected a CUDA driver with cuLaunchKernelEx of CUDA 11\.6, got one without"
    with pytest.raises(runtime.NoDeviceError, match=words):
        LaunchList(program.launches.launches, shared(program.cubin, runtime.device()))


def test_names_of_launches_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = chain(monkeypatch, step("a", 0, 1))
    launches = LaunchList(program.launches.launches, shared(program.cubin, runtime.device()))
    x, y = memory(1, 0)
    for _ in range(70):
        launches([x.pointer, y.pointer])
    assert len(LAUNCHED) == 64 and set(LAUNCHED) == {"a"}


def test_a_module_is_loaded_once_and_unloaded_after_its_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program, fake = chain(monkeypatch, step("a", 0, 1))
    first, second = (shared(program.cubin, runtime.device()) for _ in range(2))
    assert first is second is runtime.load(program.cubin, runtime.device())
    unloaded: list[object] = []
    fake.__dict__["_cuModuleUnload"] = lambda handle: unloaded.append(handle) or ()
    runtime.load.cache_clear()
    assert not unloaded
    del first, second
    assert len(unloaded) == 1 and len(fake.loaded) == 1


# --- launches whose addresses stay the same -------------------------------------------------------


def alone(launched: fake_driver.Launched) -> fake_driver.Launched:
    """The launch after the end of the one before it, for which these kernels do not wait."""
    made = copy(launched)
    made.programmatic = False
    return made


class Row:
    """Six launches that add one each, from buffer 0 over 2 to 6 to buffer 1, replayed."""

    names = "abcdef"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.launches = [
            replace(step(name, *places), programmatic=name != "a")
            for name, places in zip(self.names, pairwise((0, 2, 3, 4, 5, 6, 1)), strict=True)
        ]
        program, self.fake = chain(monkeypatch, *self.launches)
        self.module = shared(program.cubin, runtime.device())
        self.x, self.y, *self.between = memory(5, 0, 0, 0, 0, 0, 0)
        self.list = LaunchList(self.launches, self.module, 3, replay=True)
        execute = self.fake.execute
        self.fake.__dict__["execute"] = lambda each: execute(alone(each))

    def check(self, x: Any = None, y: Any = None, graph: str = "") -> None:
        """A call, and the kernels of its graph."""
        x, y = x or self.x, y or self.y
        y.copy_from(np.zeros(32, np.uint32))
        before = len(self.fake.launches)
        self.list([each.pointer for each in (x, y, *self.between)])
        assert (y.numpy() == x.numpy() + 6).all()
        made = self.fake.launches[before:]
        assert "".join(each.kernel for each in made) == self.names
        assert [each.programmatic for each in made] == [name != "a" for name in self.names]
        assert {each.stream for each in made} == {3}
        assert (
            "".join(each.kernel for each in chained.from_iterable(self.fake.graphs.values()))
            == graph
        )


def test_launches_in_a_row_are_a_graph_from_the_second_call_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = Row(monkeypatch)
    row.check()
    for _ in range(2):
        row.check(graph="abcdef")
    other, result = memory(9, 0)
    row.check(x=other)  # a new buffer moves: no graph is right
    for x in (row.x, other, row.x):
        row.check(x=x, graph="bcdef")
    row.check(x=other, y=result)
    row.check(graph="bcde")
    row.check(x=other, y=result, graph="bcde")
    row.between[1:2] = memory(0)
    row.check()  # and now "de" are too few
    row.check()
    row.check()
    monkeypatch.setattr(launch_list, "LEAST", 2)
    row.between[1:2] = memory(0)
    row.check()
    assert not row.fake.errors and not row.fake.contexts[1:]


def test_an_interrupted_call_has_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row(monkeypatch)
    row.check()
    row.check(graph="abcdef")
    (other,) = memory(9)
    words = row.list._words
    row.list._words = None  # type: ignore[assignment]
    with pytest.raises(TypeError):
        row.check(x=other)
    row.list._words = words
    row.check(x=other)
    row.check(x=other, graph="bcdef")


def test_what_the_driver_rejects_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row(monkeypatch)
    row.check()
    fail = row.fake.fail
    for name, words in (
        ("cuLaunchKernelEx", r"launch of @a \(grid .*INVALID_VALUE"),
        ("cuStreamBeginCapture", r"cuStreamBeginCapture: CUDA_ERROR_INVALID_VALUE"),
        ("cuGraphInstantiate", r"cuGraphInstantiate: CUDA_ERROR_INVALID_VALUE"),
    ):
        fail[name] = "CUDA_ERROR_INVALID_VALUE"
        with pytest.raises(Error, match=words):
            row.check()
        fail.clear()
        assert not row.fake.graphs and {int(c.hStream) for c in row.list._configs} == {3}
    row.check(graph="abcdef")
    fail["cuGraphLaunch"] = "CUDA_ERROR_INVALID_VALUE"
    with pytest.raises(LaunchFailedError, match=r"launch of @a, @b, .*, @f as a CUDA graph on"):
        row.check()


def test_graphs_end_with_their_list(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row(monkeypatch)
    for graph in ("", "abcdef"):
        row.check(graph=graph)
    row.fake.__dict__["_cuStreamDestroy"] = None  # every stream was destroyed when its graph was
    del row.list
    assert not row.fake.graphs


# --- what frozen inputs leave out -----------------------------------------------------------------


def test_launches_of_frozen_inputs_alone_run_once() -> None:
    """Buffers: inputs 0 and 1, a result 2, workspaces 3 to 7."""
    launches = (
        step("w", 1, 3), step("x", 0, 4), step("ww", 3, 5), step("both", 4, 5, 6),
        step("out", 5, 2), step("last", 6, 7),
    )  # fmt: skip
    sequence = LaunchSequence(launches, Workspaces((128,) * 5, (0, 256, 512, 0, 768)))
    parts = split(sequence, 3, (1,))
    assert [each.name for each in parts.once] == ["w", "ww"]
    assert [each.name for each in parts.each] == ["x", "both", "out", "last"]
    assert parts.kept == {3: 0, 5: 256} and parts.bytes == 384
    nothing = split(sequence, 3, ())
    assert nothing.each == launches and not nothing.once and not nothing.kept


def test_scratch_of_a_launch_is_a_workspace() -> None:
    scratch = {"kind": "workspace", "bytes": 100}
    launch = Launch("a", ONE, ONE, 0, (pointer(0), scratch, pointer(2), scratch))
    made = with_scratch(LaunchSequence((launch,), Workspaces((300,), (0,))), 2)
    assert made.launches[0].params == tuple(map(pointer, (0, 3, 2, 4)))
    assert made.workspaces == Workspaces((300, 100, 100), (0, 512, 768))


def test_kept_results_are_not_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspaces of the plan share bytes; what is kept has bytes of its own."""
    launches = (step("w", 1, 4), step("x", 0, 3), step("y", 3, 5), step("out", 4, 2))
    program, fake = chain(monkeypatch, *launches)
    program.signature.inputs *= 2
    planned = Workspaces((128, 128, 128), (0, 256, 256))
    program.launches = LaunchSequence(launches, planned)
    owned = []

    def allocate(size: int) -> tuple[object, int]:
        owned.append(runtime.empty((size,), np.uint8))
        return owned[-1], owned[-1].pointer

    prepared = Prepared(program, runtime.device(), 0, allocate, frozen=(1,))
    x, w, out = memory(5, 9, 0)
    state = object()
    for _ in range(3):
        prepared([x.pointer, w.pointer], [out.pointer], state)
        assert (out.numpy() == 11).all()
    w.copy_from(np.full(32, 19, np.uint32))
    prepared([x.pointer, w.pointer], [out.pointer], state)
    assert (out.numpy() == 11).all(), "nothing said that the weight is another one"
    for new in (object(), None):
        prepared([x.pointer, w.pointer], [out.pointer], new)
        assert (out.numpy() == 21).all()
    names = [each.kernel for each in fake.launches]
    assert names.count("w") == 3 and names.count("out") == 6
