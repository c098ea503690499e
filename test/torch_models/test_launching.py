"""Calls on a GPU: prepared launches, frozen weights and CUDA graphs.

The driver is a fake one, whose launches run on the simulated Hopper.
"""

from __future__ import annotations

import copy
import gc
import importlib.util
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from runtime import fake_driver
from torch import nn

import tcir
import tcir.torch
from tcir.runtime import launch_list
from tcir.runtime.launch_list import LaunchList
from tcir.runtime.prepared import Prepared
from tcir.torch import graphs, launching
from tcir.torch.compiled import Compiled, GpuOptions, KernelModule, pays
from tcir.torch.graphs import Graphs
from tcir.torch.snapshot import Snapshot
from tcir.torch.weights import Weights

from .fake_cuda import FakeCuda, FakeRuntime, OnGpu

REPACK = "main_0_conv_repack1"
"""The launch that computes from the weight alone."""


class Conv(nn.Module):
    """A convolution, whose weight a launch repacks, and an op that PyTorch runs. A parameter would
    be none of a subclass of tensors."""

    weight: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-2, 3, (16, 16, 3, 3)).half())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.conv2d(x, self.weight, padding=1).float()
        return torch.complex(y, -y).imag.clone()


@pytest.fixture(scope="module")
def text() -> bytes:
    """The compiled module, pickled."""
    model = Conv().eval()
    compiled = tcir.torch.compile(model, (image(0),), target="sm_90a", freeze=True)
    assert [len(kernel.launches.launches) for kernel in compiled.kernels] == [5]
    assert compiled.kernels[0].cubin
    return pickle.dumps(compiled)


def image(seed: int) -> torch.Tensor:
    return torch.randint(-2, 3, (1, 16, 8, 8), generator=torch.Generator().manual_seed(seed)).half()


def right(compiled: Compiled, x: torch.Tensor) -> torch.Tensor:
    """What PyTorch computes from the elements that the weight has now; integers, so exact."""
    weight = compiled.module.weight
    held = weight.held if isinstance(weight, FakeCuda) else weight
    assert isinstance(held, torch.Tensor)
    sums = nn.functional.conv2d(x.double(), held.double(), padding=1)
    return -sums.float()


class Gpu:
    """A compiled module on a GPU, and its driver."""

    def __init__(
        self, text: bytes, patch: pytest.MonkeyPatch, graph: bool = False, freeze: bool = True
    ) -> None:
        self.compiled: Compiled = pickle.loads(text)
        self.compiled.options = GpuOptions(graph=graph, freeze=freeze)
        self.compiled._graphs = Graphs(freeze) if graph else None
        self.kernel = self.compiled.kernels[0]
        for module in self.compiled.graph.modules():
            if isinstance(module, KernelModule):
                self.part = module
        if not freeze:
            self.part.launcher.frozen = False
        known = {
            each.name: (
                [128 if p["kind"] == "tensor_map" else 8 for p in each.params],
                self.kernel.ptx,
            )
            for each in self.kernel.launches.launches
        }
        self.driver = FakeCuda.driver = fake_driver.install(patch, known, (9, 0))
        self.cuda = FakeRuntime(patch)
        self.module.weight = FakeCuda(self.module.weight)

    @property
    def module(self) -> Any:
        return self.compiled.module

    def call(self, x: torch.Tensor) -> torch.Tensor:
        """The result for an argument of the CPU or the GPU."""
        result = self.compiled(x if isinstance(x, FakeCuda) else FakeCuda(x))
        assert isinstance(result, FakeCuda)
        return result.held

    def check(self, x: torch.Tensor) -> None:
        held = x.held if isinstance(x, FakeCuda) else x
        assert torch.equal(self.call(x), right(self.compiled, held))

    def launched(self, since: int = 0) -> list[str]:
        return [each.kernel for each in self.driver.launches[since:]]

    def captured(self) -> list[launching.Ready]:
        """The kernels that are prepared for graphs of the one stream."""
        assert self.compiled._graphs is not None
        (stream,) = self.compiled._graphs._streams.values()
        return [ready for each in stream.ready.values() for ready in each.values()]


@pytest.fixture
def make(text: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Gpu]]:
    with OnGpu():
        yield lambda **options: Gpu(text, monkeypatch, **options)
    FakeCuda.driver.captured = None
    fake_driver.forget()


# --- prepared launches ---------------------------------------------------------------------------


def test_a_second_call_makes_nothing(
    make: Callable[..., Gpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, made = make(freeze=False), []
    monkeypatch.setattr(
        launching.Ready,
        "_allocate",
        lambda self, size, real=launching.Ready._allocate: made.append(size) or real(self, size),
    )
    x = FakeCuda(image(0))
    gpu.check(x)
    first = len(gpu.driver.launches)
    assert len(made) == 1 and not gpu.driver.workspaces
    for name in ("__init__", "_encoded"):
        monkeypatch.setattr(LaunchList, name, None if name == "__init__" else LaunchList._encoded)
    maps = len(gpu.driver.maps)
    gpu.check(x)
    assert len(made) == 1 and len(gpu.driver.maps) == maps
    before, after = gpu.driver.launches[:first], gpu.driver.launches[first:]
    assert [each.values for each in before[:3]] == [each.values for each in after[:3]]
    assert {each.stream for each in gpu.driver.launches} == {7}


def test_new_addresses_are_written(make: Callable[..., Gpu]) -> None:
    gpu = make(freeze=False)
    inputs = [FakeCuda(image(seed)) for seed in range(3)]
    for x in (*inputs, *inputs):
        gpu.check(x)
    gpu.module.weight = FakeCuda(gpu.module.weight.held + 1)
    gpu.check(inputs[0])
    gpu.module.weight.held.mul_(-1)  # in place: kernels read it at each call
    gpu.check(inputs[1])


@pytest.mark.parametrize("freeze", [False, True])
def test_launches_whose_addresses_stay_are_a_graph(
    make: Callable[..., Gpu], monkeypatch: pytest.MonkeyPatch, freeze: bool
) -> None:
    monkeypatch.setattr(launch_list, "LEAST", 1)
    gpu = make(freeze=freeze)
    x, other = FakeCuda(image(0)), FakeCuda(image(1))
    for each in (x, x, x, other, other, x, other):
        gpu.check(each)
    assert gpu.driver.graphs
    gpu.module.weight.mul_(2)
    gpu.check(x)
    gpu.module.weight = FakeCuda(gpu.module.weight.held + 1)
    for each in (x, other, x):
        gpu.check(each)
    gpu.compiled.clear()
    assert not gpu.driver.graphs


def test_captured_launches_are_in_no_other_graph(
    make: Callable[..., Gpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_list, "LEAST", 1)
    gpu = make(graph=True)
    x = FakeCuda(image(0))
    for _ in range(3):
        gpu.check(x)
    assert not gpu.driver.graphs
    assert not any(each.prepared._each.replay for each in gpu.captured() if each.prepared)


def test_results_are_new_tensors(make: Callable[..., Gpu]) -> None:
    gpu = make()
    first = gpu.call(image(0))
    kept = first.clone()
    gpu.call(image(1))
    assert torch.equal(first, kept)


def test_another_layout_is_prepared_again(make: Callable[..., Gpu]) -> None:
    gpu = make()
    gpu.check(image(0))
    x = image(1).contiguous(memory_format=torch.channels_last)
    assert not x.is_contiguous()
    gpu.check(x)
    gpu.check(image(2))
    with pytest.raises(tcir.InputError, match="shapes are fixed in a kernel"):
        gpu.call(image(0).expand(2, 16, 8, 8))
    with pytest.raises(tcir.InputError, match="shapes are fixed in a kernel"):
        gpu.call(image(0).bfloat16())
    gpu.module.weight = FakeCuda(torch.zeros(16, 16, 3, 5).half())
    with pytest.raises(tcir.InputError, match=r"argument 1: expected an array float16\[16, 16, 3"):
        gpu.call(image(0))
    gpu.module.weight = FakeCuda(torch.zeros(16, 16, 3, 3))
    with pytest.raises(tcir.InputError, match=r"argument 1: expected .* got float32"):
        gpu.call(image(0))
    gpu.module.weight = torch.zeros(16, 16, 3, 3).half()
    with pytest.raises(tcir.InputError, match="expected tensors on one device, got"):
        gpu.call(image(0))


def test_a_part_takes_weights_of_other_strides(make: Callable[..., Gpu]) -> None:
    """Same address, shape and type; `.data` counts no version."""
    gpu = make()
    gpu.check(image(0))
    held = gpu.module.weight.held
    gpu.module.weight = FakeCuda(held.transpose(0, 1))
    gpu.check(image(0))


def test_a_weight_changes_its_strides(make: Callable[..., Gpu]) -> None:
    """Object, address and version stay."""
    gpu = make()
    gpu.check(image(0))
    weight, version = gpu.module.weight, gpu.module.weight._version
    other = FakeCuda(weight.held.transpose(0, 1))
    weight.data, weight.held = other, other.held
    assert weight._version == version and weight.stride() == other.stride()
    gpu.check(image(0))


def test_each_stream_has_workspaces_of_its_own(make: Callable[..., Gpu]) -> None:
    gpu = make(freeze=False)
    gpu.check(image(0))
    with torch.cuda.stream(torch.cuda.Stream()):
        gpu.check(image(1))
    gpu.check(image(2))
    here, there, again = (gpu.driver.launches[n : n + 5] for n in (0, 5, 10))
    assert [each[0].stream for each in (here, there, again)] == [7, 100, 7]
    between = [each[0].values[-1] for each in (here, there, again)]
    assert between[0] == between[2] != between[1]


def test_few_streams_are_kept(make: Callable[..., Gpu]) -> None:
    gpu = make()
    for _ in range(launching.MOST_STREAMS + 3):
        with torch.cuda.stream(torch.cuda.Stream()):
            gpu.check(image(0))
    assert len(gpu.part.launcher._ready) == launching.MOST_STREAMS


def test_what_is_kept_is_freed(make: Callable[..., Gpu]) -> None:
    for how in ("clear", "to", "del"):
        gpu = make()
        gpu.check(image(0))
        (ready,) = gpu.part.launcher._ready.values()
        owned = [ready.prepared._arena, ready.prepared._kept, ready.prepared.module]
        alive = [weakref.ref(each) for each in owned]
        assert all(each() is not None for each in alive)
        del ready, owned
        if how == "clear":
            gpu.compiled.clear()
        elif how == "to":
            gpu.compiled._apply(lambda tensor: tensor)
        else:
            del gpu
        assert all(each() is None for each in alive[:2]), f"{how}: memory, without a collection"
        gc.collect()
        assert alive[2]() is None, f"{how}: code"


def test_copies_prepare_for_themselves(make: Callable[..., Gpu]) -> None:
    gpu = make(graph=True)
    gpu.check(image(0))
    gpu.module.weight = gpu.module.weight.held
    for other in (copy.deepcopy(gpu.compiled), pickle.loads(pickle.dumps(gpu.compiled))):
        assert not other._graphs._streams
        (part,) = (each for each in other.graph.modules() if isinstance(each, KernelModule))
        assert not part.launcher._ready and part.launcher.frozen and part.launcher.weights == (1,)


@pytest.mark.parametrize("graph", [False, True])
def test_a_failed_launch_leaves_nothing_behind(make: Callable[..., Gpu], graph: bool) -> None:
    gpu = make(graph=graph)
    gpu.driver.fail["cuLaunchKernelEx"] = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
    for _ in range(2):
        with pytest.raises(tcir.Error, match=f"launch of @{REPACK}.*OUT_OF_RESOURCES"):
            gpu.call(image(0))
    gpu.driver.fail.clear()
    assert not gpu.driver.contexts[1:], "contexts that were pushed are popped"
    gpu.check(image(0))


def test_an_interrupt_between_launches(
    make: Callable[..., Gpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call launches the frozen part again: it was not complete."""
    gpu = make()
    gpu.check(image(0))
    gpu.module.weight.mul_(2)
    real = LaunchList.__call__
    calls = iter([True, False])

    def interrupted(self: LaunchList, addresses: list[int]) -> None:
        if next(calls, False):
            raise KeyboardInterrupt
        real(self, addresses)

    monkeypatch.setattr(LaunchList, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gpu.call(image(0))
    gpu.check(image(0))


def test_threads_do_not_mix_their_launches(
    make: Callable[..., Gpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = make()
    gpu.check(image(0))
    inputs = [image(seed) for seed in range(6)]
    wanted = [right(gpu.compiled, x) for x in inputs]
    got: dict[int, torch.Tensor] = {}
    start = len(gpu.driver.launches)

    def work(number: int) -> None:
        with OnGpu():
            got[number] = gpu.call(inputs[number])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(inputs))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(torch.equal(got[n], want) for n, want in enumerate(wanted))
    names = gpu.launched(start)
    assert names == names[:4] * len(inputs)


# --- frozen weights ------------------------------------------------------------------------------


def test_weights_are_repacked_once(make: Callable[..., Gpu]) -> None:
    gpu = make()
    for seed in range(3):
        gpu.check(image(seed))
    assert gpu.launched().count(REPACK) == 1 and len(gpu.launched()) == 1 + 3 * 4
    assert not make(freeze=False).part.launcher.frozen


def test_new_addresses_are_written_and_frozen(make: Callable[..., Gpu]) -> None:
    gpu = make()
    for seed in (0, 1, 0):
        gpu.check(image(seed))


@pytest.mark.parametrize("how", ["in place", "replaced", "equal address", "data"])
@pytest.mark.parametrize("graph", [False, True])
def test_a_new_weight_is_repacked(make: Callable[..., Gpu], graph: bool, how: str) -> None:
    gpu = make(graph=graph)
    x = FakeCuda(image(0))
    gpu.check(x)
    weight = gpu.module.weight
    if how == "in place":
        weight.mul_(2)
    elif how == "replaced":
        gpu.module.weight = FakeCuda(weight.held + 1)
    elif how == "equal address":  # another tensor on the same memory, whose versions begin anew
        weight.held.add_(1)
        gpu.module.weight = FakeCuda(weight.held)
    else:
        weight.held = weight.held - 1  # what `weight.data = …` does: object and version stay
    before = gpu.launched().count(REPACK)
    gpu.check(x)
    assert gpu.launched().count(REPACK) > before
    again = len(gpu.driver.launches)
    gpu.check(x)
    assert REPACK not in gpu.launched(again)


def test_old_weights_keep_their_memory(make: Callable[..., Gpu]) -> None:
    """A new weight cannot have the identity and address of the one that was repacked."""
    gpu = make()
    gpu.check(image(0))
    weight = weakref.ref(gpu.module.weight)
    gpu.module.weight = FakeCuda(gpu.module.weight.held + 1)
    gc.collect()
    assert weight() is not None
    gpu.check(image(0))
    gc.collect()
    assert weight() is None


def test_weights_without_versions_are_not_frozen(make: Callable[..., Gpu]) -> None:
    gpu = make()
    with torch.inference_mode():
        gpu.module.weight = FakeCuda(gpu.module.weight.held.clone())
    assert gpu.module.weight.is_inference()
    with pytest.raises(tcir.InputError, match=r"freeze=True: .*inference_mode.*freeze=False"):
        gpu.call(image(0))


def test_what_is_frozen_by_default() -> None:
    model = nn.Linear(16, 16).half().eval()
    x = torch.zeros(16, 16).half()
    assert not tcir.torch.compile(model, (x,)).options.freeze
    frozen = tcir.torch.compile(model.requires_grad_(False), (x,))
    assert frozen.options.freeze and not frozen.options.graph
    (part,) = (each for each in frozen.graph.modules() if isinstance(each, KernelModule))
    assert part.launcher.frozen and part.launcher.weights == (1, 2)
    assert not tcir.torch.compile(model, (x,), freeze=False).options.freeze
    with torch.inference_mode():
        other = nn.Linear(16, 16).half().eval().requires_grad_(False)
    assert not tcir.torch.compile(other, (x,)).options.freeze


# --- CUDA graphs ---------------------------------------------------------------------------------


def test_calls_replay_a_graph(make: Callable[..., Gpu]) -> None:
    gpu = make(graph=True)
    x = FakeCuda(image(0))
    first = gpu.call(x)
    assert torch.equal(first, right(gpu.compiled, x.held))
    kept, launches = first.clone(), len(gpu.driver.launches)
    x.held.copy_(image(1))
    gpu.check(x)
    assert torch.equal(first, kept), "results are copies"
    (graph,) = gpu.cuda.graphs
    assert graph.replays == 2 and len(gpu.driver.launches) == launches
    assert {each.stream for each in graph.work if not callable(each)} == {100}
    assert REPACK not in [each.kernel for each in graph.work if not callable(each)]


def test_a_replay_comes_before_the_check(
    make: Callable[..., Gpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, done = make(graph=True), list[int]()
    x = FakeCuda(image(0))
    gpu.check(x)
    (graph,) = gpu.cuda.graphs
    real = Snapshot.is_of
    monkeypatch.setattr(
        Snapshot, "is_of", lambda *given: done.append(graph.replays) or real(*given)
    )
    gpu.check(x)
    assert done == [2] and graph.replays == 2


def test_two_launches_are_no_graph() -> None:
    x = torch.zeros(16, 16).half()
    model = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16)).half().eval()
    few = tcir.torch.compile(model, (x,), graph=True)
    assert few.options.graph and few._graphs is None and not pays(few.graph)


@pytest.mark.parametrize("freeze", [False, True])
def test_other_addresses_have_other_graphs(make: Callable[..., Gpu], freeze: bool) -> None:
    gpu = make(graph=True, freeze=freeze)
    inputs = [FakeCuda(image(seed)) for seed in range(3)]
    for x in (*inputs, *inputs):
        gpu.check(x)
    assert len(gpu.cuda.graphs) == 3
    gpu.module.weight = FakeCuda(gpu.module.weight.held + 1)
    gpu.check(inputs[0])
    assert len(gpu.cuda.graphs) == 4


def test_few_graphs_are_kept(make: Callable[..., Gpu]) -> None:
    gpu = make(graph=True)
    inputs = [FakeCuda(image(seed)) for seed in range(graphs.MOST_GRAPHS + 2)]
    for x in inputs:
        gpu.check(x)
    (stream,) = gpu.compiled._graphs._streams.values()  # type: ignore[union-attr]
    assert len(stream.graphs) == graphs.MOST_GRAPHS and len(gpu.captured()) == 1


def test_another_layout_at_the_same_address(make: Callable[..., Gpu]) -> None:
    gpu = make(graph=True)
    held = image(0)
    gpu.check(FakeCuda(held))
    gpu.check(FakeCuda(held.transpose(2, 3)))
    gpu.check(FakeCuda(held))


def test_weights_of_other_strides_have_another_graph(make: Callable[..., Gpu]) -> None:
    gpu = make(graph=True, freeze=False)
    x, held = FakeCuda(image(0)), gpu.module.weight.held
    gpu.check(x)
    gpu.module.weight = FakeCuda(held.transpose(0, 1))
    gpu.check(x)
    assert len(gpu.cuda.graphs) == 2


def test_a_graph_keeps_what_it_uses(make: Callable[..., Gpu]) -> None:
    """A kernel that is prepared for another layout has other workspaces; the graph has the old."""
    gpu = make(graph=True)
    x, other = FakeCuda(image(0)), FakeCuda(image(1).transpose(2, 3))
    gpu.check(x)
    (ready,) = gpu.captured()
    alive = [weakref.ref(each) for each in (ready.prepared._arena, ready.prepared._kept)]
    del ready
    gpu.check(other)
    gc.collect()
    assert all(each() is not None for each in alive)
    gpu.check(x)


def test_a_weight_that_comes_back(make: Callable[..., Gpu]) -> None:
    """Its graph is there, and its repacked filter is overwritten by that of the other weight."""
    gpu = make(graph=True)
    x, first = FakeCuda(image(0)), gpu.module.weight
    second = FakeCuda(first.held + 1)
    for weight in (first, second, first, second):
        gpu.module.weight = weight
        gpu.check(x)
        gpu.check(x)


def test_weights_that_are_not_frozen_are_read_at_each_replay(make: Callable[..., Gpu]) -> None:
    gpu = make(graph=True, freeze=False)
    x = FakeCuda(image(0))
    gpu.check(x)
    gpu.module.weight.held.mul_(2)
    gpu.check(x)
    assert len(gpu.cuda.graphs) == 1


def test_each_stream_has_graphs_of_its_own(make: Callable[..., Gpu]) -> None:
    gpu = make(graph=True)
    x = FakeCuda(image(0))
    gpu.check(x)
    with torch.cuda.stream(torch.cuda.Stream()):
        gpu.check(x)
    assert len(gpu.cuda.graphs) == 2
    gpu.check(x)
    assert len(gpu.cuda.graphs) == 2
    one, two = gpu.compiled._graphs._streams.values()  # type: ignore[union-attr]
    assert one.side.cuda_stream != two.side.cuda_stream
    assert one.side.waited == [7] and len(gpu.cuda.current.waited) == 1


@pytest.mark.parametrize("error", [RuntimeError("operation not permitted"), KeyboardInterrupt()])
def test_a_failed_capture_leaves_nothing_behind(
    make: Callable[..., Gpu], monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    gpu = make(graph=True)
    real = Prepared.__call__

    def failing(self: Prepared, *given: Any) -> None:
        if gpu.cuda.capturing is not None:
            raise error
        real(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Prepared, "__call__", failing)
        kind = tcir.InputError if isinstance(error, RuntimeError) else KeyboardInterrupt
        with pytest.raises(kind) as caught:
            gpu.call(image(0))
    if kind is tcir.InputError:
        assert "graph=True: expected ops that a CUDA graph can hold" in str(caught.value)
        assert "compile with graph=False" in str(caught.value)
    assert gpu.cuda.capturing is None and gpu.driver.captured is None and gc.isenabled()
    assert not gpu.compiled._graphs._streams  # type: ignore[union-attr]
    gpu.check(image(0))


def test_results_that_share_memory_are_refused(make: Callable[..., Gpu]) -> None:
    gpu = make(graph=True)
    x = FakeCuda(image(0))
    given, nothing = gpu.compiled._graphs, Snapshot((), (), True)
    assert given is not None
    with pytest.raises(tcir.InputError, match=r"got result 1, which shares memory with an arg"):
        given(lambda: (x + 1, x.view(-1)), [x], nothing, x.device)
    y = x + 1
    with pytest.raises(tcir.InputError, match="got result 1"):
        given(lambda: [y, y.view(-1)], [x], nothing, x.device)
    assert not given._streams


@pytest.mark.parametrize("graph", [False, True])
def test_in_a_graph_of_the_caller(make: Callable[..., Gpu], graph: bool) -> None:
    """It holds every launch, with memory of its own, so that replays see weights as they are."""
    gpu = make(graph=graph)
    x = FakeCuda(image(0))
    gpu.check(x)
    kept = len(gpu.part.launcher._ready)
    mine = torch.cuda.CUDAGraph()
    mine.capture_begin(capture_error_mode="thread_local")
    result = gpu.compiled(x)
    mine.capture_end()
    held = [each.kernel for each in mine.work if not callable(each)]  # type: ignore[attr-defined]
    assert held.count(REPACK) == 1 and len(held) == 5
    assert len(gpu.part.launcher._ready) == kept
    x.held.copy_(image(3))
    gpu.module.weight.held.add_(1)
    mine.replay()
    assert isinstance(result, FakeCuda)
    assert torch.equal(result.held, right(gpu.compiled, x.held))
    (pinned,) = launching._CAPTURED
    assert pinned.handle is not None
    launching._CAPTURED.clear()


# --- weights by name -----------------------------------------------------------------------------


def test_weights_are_found_again(make: Callable[..., Gpu]) -> None:
    gpu = make()
    gpu.check(image(0))
    weights = gpu.compiled._weights
    assert weights() is weights()
    weight = gpu.module.weight
    del gpu.module.weight
    gpu.module.register_buffer("scale", weight)
    with pytest.raises(tcir.InputError, match=r"got without weight and with scale; compile again"):
        gpu.call(image(0))
    del gpu.module.scale
    gpu.module.inner = nn.Module()
    gpu.module.inner.register_buffer("weight", weight)
    with pytest.raises(tcir.InputError, match=r"got without weight and with inner\.weight"):
        gpu.call(image(0))
    del gpu.module.inner
    gpu.module.register_buffer("weight", FakeCuda(weight.held + 1))
    gpu.check(image(0))


def test_tied_weights_that_are_untied() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
            self.two.weight = self.one.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.two(self.one(x))

    model = Tied()
    weights = Weights(model, range(3))
    assert len(weights()) == 3 and weights() is weights()
    model.two.weight = nn.Parameter(torch.zeros(4, 4))
    with pytest.raises(tcir.InputError, match=r"got with two\.weight; compile again"):
        weights()
    model.two = model.one
    with pytest.raises(tcir.InputError, match=r"got without two\.bias; compile again"):
        weights()
