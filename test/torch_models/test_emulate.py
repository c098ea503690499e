"""`emulate=True`: kernels for sm_100a on a Hopper GPU, here on a fake driver whose launches run on
the simulated Hopper."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from runtime import fake_driver
from torch import nn

import tcir
import tcir.torch
from tcir.kernel import Kernel
from tcir.torch.compiled import Compiled
from tcir.torch.tensors import EMULATED, emulation, target_of

from .fake_cuda import FakeCuda, FakeRuntime, OnGpu

Install = Callable[[list[Kernel]], fake_driver.FakeDriver]


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a GPU of compute capability 9.0 there that knows some kernels, emulated."""

    def install(kernels: list[Kernel]) -> fake_driver.FakeDriver:
        known = {
            each.name: ([_bytes(param) for param in each.params], kernel.emulated.ptx)
            for kernel in kernels
            for each in kernel.launches.launches
        }
        FakeCuda.driver = fake_driver.install(monkeypatch, known, (9, 0))
        return FakeCuda.driver

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Fake")
    FakeRuntime(monkeypatch)
    with OnGpu():
        yield install
    fake_driver.forget()


def _bytes(param: dict[str, object]) -> int:
    return 128 if param["kind"] == "tensor_map" else 8


class Layer(nn.Module):
    """A product on the tensor core, and an op that PyTorch runs. A parameter would be none of a
    subclass of tensors."""

    weight: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(32, 64).half())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sort(torch.relu(x @ self.weight.t()), dim=-1).values


def made(emulate: bool) -> tuple[Compiled, torch.Tensor]:
    torch.manual_seed(0)
    model, x = Layer().eval(), torch.randint(-2, 3, (48, 64)).half()
    return tcir.torch.compile(model, (x,), emulate=emulate), x


def moved(compiled: Compiled, x: torch.Tensor) -> torch.Tensor:
    """The call with all tensors on the GPU."""
    compiled.module._apply(FakeCuda)
    result = compiled(FakeCuda(x))
    assert isinstance(result, FakeCuda)
    return result.held


def test_a_model_for_sm_100a_is_emulated(hopper: Install) -> None:
    compiled, x = made(emulate=True)
    assert compiled.target == "sm_100a" and "tcgen05.mma" in compiled.kernels[0].ptx
    simulated = compiled(x)
    fake = hopper(compiled.kernels)
    result = moved(compiled, x)
    assert torch.equal(result, simulated)
    assert [each.kernel for each in fake.launches] == [
        each.name for each in compiled.kernels[0].launches.launches
    ]
    assert {each.stream for each in fake.launches} == {7}
    assert b".target sm_90a" in fake.loaded[0] and b"tcgen05" not in fake.loaded[0]


def test_without_emulate_the_error_names_it(hopper: Install) -> None:
    compiled, x = made(emulate=False)
    hopper(compiled.kernels)
    with pytest.raises(tcir.InputError, match=r"got one for sm_100: .*emulate=True runs it here"):
        moved(compiled, x)


def test_another_gpu_does_not_emulate(hopper: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, x = made(emulate=True)
    hopper(compiled.kernels)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (10, 0))
    with pytest.raises(tcir.InputError, match=r"emulate=True: .* 9.0 .*got tensors on Fake \(sm_1"):
        moved(compiled, x)


def test_another_target_is_not_emulated() -> None:
    with pytest.raises(tcir.InputError, match=r"emulate=True: expected target sm_100a.*got sm_90a"):
        tcir.torch.compile(
            Layer().eval(), torch.zeros(48, 64).half(), target="sm_90a", emulate=True
        )


def test_the_target_of_tensors_of_a_hopper(hopper: Install) -> None:
    """Ops of tcir's choose it when they are called."""
    x = FakeCuda(torch.zeros(2))
    assert target_of([x]) == "sm_90a"
    with emulation(True):
        assert target_of([x]) == EMULATED
    assert target_of([x]) == "sm_90a"


def test_backend_of_torch_compile() -> None:
    seen = []

    class Recorded(Compiled):
        def __init__(self, *args: object) -> None:
            seen.append(args[-1].emulate)
            super().__init__(*args)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tcir.torch.entry.Compiled", Recorded)
        model, x = Layer().eval(), torch.ones(48, 64).half()
        run = torch.compile(model, backend="tcir", options={"emulate": True})
        assert torch.allclose(run(x), model(x), rtol=1e-2, atol=1e-2)
    assert seen == [True]
