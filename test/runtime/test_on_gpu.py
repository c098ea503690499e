"""`--gpu`: launches of any PTX on a driver without a GPU, and what is said where there is none."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tcir
from tcir import runtime
from tcir.doors.launches import DoorLaunch, Launches
from tcir.emulation import EmulatedLaunch, emulate
from tcir.errors import InputError
from tcir.machine import TensorMap
from tcir.program.launch import Launch as OneLaunch
from tcir.ptxrun.command import main as tc_run
from tcir.run import Uninitialized
from tcir.runtime import cubin, driver, launch_list, on_gpu

from . import fake_driver

PTX = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry add(.param .u64 x, .param .u32 n, .param .u64 out)
.reqntid 32
{
 .reg .b32 %r<4>; .reg .b64 %rd<9>; .reg .b64 %pair<4>;
 ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [out]; ld.param.u32 %r2, [n];
 mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 8; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
 mov.b64 %pair1, {%r2, %r2}; ld.global.b64 %pair0, [%rd1];
 add.rn.f32x2 %pair2, %pair0, %pair1; st.global.b64 [%rd2], %pair2;
 ret;
}
"""
ONE = EmulatedLaunch((1, 1, 1), (32, 1, 1))


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch) -> Iterator[fake_driver.FakeDriver]:
    """A device of compute capability 9.0 that has the emulated kernel."""
    fake = fake_driver.install(monkeypatch, {"add": ([8, 4, 8], emulate(PTX, ONE).ptx)}, (9, 0))
    monkeypatch.setattr(fake, "_cuEventElapsedTime", lambda *_: (0.25,), raising=False)
    yield fake
    fake_driver.forget()


def test_a_program_for_sm_100a_is_emulated(hopper: fake_driver.FakeDriver) -> None:
    whole = np.zeros((3, 64), np.float32)
    whole[0] = np.arange(64)
    x, out = whole[0], whole[2]  # two parts of one array
    found = on_gpu.run_on_gpu(PTX, "add", ONE, [x, np.float32(2), Uninitialized(out)], [whole])
    np.testing.assert_array_equal(whole[2], np.arange(64) + 2)
    assert str(found) == "0.250 ms on Fake (sm_90), emulated"
    assert b"f32x2" not in hopper.loaded[0].split(b".entry")[1]  # the driver compiles the PTX
    assert len([size for size in hopper.memory.values() if size.size == whole.nbytes]) == 1


@pytest.mark.parametrize("named", [True, False])
def test_parts_of_a_storage_share_its_copy(hopper: fake_driver.FakeDriver, named: bool) -> None:
    """Arrays that are views of no common array, as tensors of PyTorch are; not named, the first one
    is the storage of those inside it."""
    memory = bytearray(np.arange(128, dtype=np.float32).tobytes())
    first, second = (np.frombuffer(memory, np.float32, 64, 256 * n) for n in (0, 1))
    whole = np.frombuffer(memory, np.float32)
    out, storages = (second, [whole]) if named else (whole, [])
    on_gpu.run_on_gpu(PTX, "add", ONE, [out, np.float32(2), first], storages)
    given = np.arange(64, 128) if named else np.arange(64)
    np.testing.assert_array_equal(whole, [*(given + 2), *np.arange(64, 128)])
    copies = [size.size for size in hopper.memory.values()]
    assert copies.count(whole.nbytes) == 1 and copies.count(first.nbytes) == 0


def test_numbers_have_a_type(hopper: fake_driver.FakeDriver) -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(InputError, match=r"got int; np.int32\(…\) gives a number its type"):
        on_gpu.run_on_gpu(PTX, "add", ONE, [x, 2, x])


@pytest.mark.parametrize("target", ["sm_120a", "sm_103a", "sm_80a"])
def test_a_program_for_another_gpu(hopper: fake_driver.FakeDriver, target: str) -> None:
    with pytest.raises(InputError, match=rf"got .target {target}; the simulated machine"):
        on_gpu.run_on_gpu(PTX.replace("sm_100a", target), "add", ONE, [])


def test_which_programs_run_as_they_are(hopper: fake_driver.FakeDriver) -> None:
    on = runtime.devices.device()
    assert on_gpu.is_emulated(".target sm_100f\n", on)
    assert not on_gpu.is_emulated(".target sm_90a\n", on)
    assert not on_gpu.is_emulated(".target sm_80\n", on)


def _launch(x: np.ndarray, **more: object) -> DoorLaunch:
    args = [x, np.float32(1), x]
    return DoorLaunch(PTX, "add", (1, 1, 1), (1, 1, 1), 0, False, args, [x], **more)  # type: ignore[arg-type]


def test_a_door_launches_there(hopper: fake_driver.FakeDriver) -> None:
    said, x = io.StringIO(), np.arange(64, dtype=np.float32)
    launches = Launches(messages=said, gpu=True)
    launches.execute(_launch(x))
    launches.execute(_launch(x))
    launches.close()
    np.testing.assert_array_equal(x, np.arange(64) + 2)
    assert "tcir: add: 0.250 ms on Fake (sm_90), emulated" in said.getvalue()
    assert "2 launches executed on a GPU" in said.getvalue()


def test_what_a_door_does_not_carry_there_is_named(hopper: fake_driver.FakeDriver) -> None:
    x = np.zeros(64, np.float32)
    launches = Launches(messages=io.StringIO(), gpu=True)
    for more, words in (
        ({"addressed": [x]}, "addresses in its data"),
        ({"variables": {"v": x}}, "variables of its module"),
        ({"cooperative": True}, "a cooperative launch"),
    ):
        with pytest.raises(InputError, match=f"add: --gpu: .*got .*{words}.*leave --gpu out"):
            launches.execute(_launch(x, **more))


def test_a_tensor_map_names_the_copy(
    hopper: fake_driver.FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    monkeypatch.setattr(cubin, "encode", lambda fields, at: told.append(at) or bytes(128))
    x = np.zeros((8, 64), np.uint16)
    tensor = TensorMap.tiled(x, dtype="u16", dims=[64, 8], strides_bytes=[128], box=[64, 1])
    buffers = on_gpu._Stored([], runtime.devices.device())
    value = cubin.value_of((tensor, np.uint32(7)), buffers)
    assert value == bytes(128) + (7).to_bytes(4, "little")
    ((_, copy),) = buffers.copies.values()
    assert told == [copy.pointer] and buffers.address(x) == told[0]


@pytest.mark.parametrize("dtype", ["u8", "u4_align8b"])
def test_maps_of_narrow_elements_are_of_bytes(
    hopper: fake_driver.FakeDriver, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    asked = {}

    def value_of(argument: object, buffers: cubin.DeviceBuffers) -> bytes:
        monkeypatch.setattr(buffers, "address", lambda array: 4096)
        cubin.value_of(argument, buffers)
        raise KeyboardInterrupt  # before the launch

    def rewritten(*given: object, narrow: bool) -> object:
        asked["narrow"] = narrow
        return emulate(*given, narrow=narrow)  # type: ignore[arg-type]

    monkeypatch.setattr(
        cubin, "encode", lambda fields, at: asked.update(fields=fields) or bytes(128)
    )
    monkeypatch.setattr(on_gpu, "value_of", value_of)
    monkeypatch.setattr(on_gpu, "emulate", rewritten)
    x = np.zeros((8, 256), np.uint8)
    tensor = TensorMap.tiled(x, dtype=dtype, dims=[256, 8], strides_bytes=[256], box=[128, 1])
    with pytest.raises(KeyboardInterrupt):
        on_gpu.run_on_gpu(PTX, "add", ONE, [(tensor,), np.float32(2), x])
    assert asked["narrow"] == (dtype != "u8")
    assert asked["fields"].box == ((128, 1) if dtype == "u8" else (64, 1))


def test_a_launch_encodes_narrow_maps_as_bytes_on_a_hopper_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    param = {
        "kind": "tensor_map", "mode": "tiled", "arg": 0, "dtype": "u4_align8b", "dims": (512, 256),
        "strides": (256,), "element_strides": (1, 1), "box": (256, 128), "swizzle": "128B",
    }  # fmt: skip
    told = []
    monkeypatch.setattr(launch_list, "encode", lambda fields, at: told.append(fields) or bytes(128))
    monkeypatch.setattr(launch_list, "entry", lambda *_: 0)
    kernel = SimpleNamespace(
        handle=1,
        check_parameters=lambda sizes: None,
        configured=lambda **_: SimpleNamespace(getPtr=lambda: 0),
    )
    launch = OneLaunch("k", (1, 1, 1), (32, 1, 1), 0, (param,))
    for capability in ((9, 0), (10, 0)):
        on = SimpleNamespace(capability=capability, context=1)
        code = SimpleNamespace(device=on, function=lambda name: kernel)
        launch_list.LaunchList([launch], code)._bind([4096])  # type: ignore[arg-type]
    assert [(each.dtype, each.box) for each in told] == [
        ("u8", (128, 128)),
        ("u4_align8b", (256, 128)),
    ]


def test_without_a_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def none() -> None:
        raise driver.NoDeviceError("no CUDA driver on this computer")

    monkeypatch.setattr(on_gpu, "device", none)
    (tmp_path / "k.ptx").write_text(PTX)
    words = [str(tmp_path / "k.ptx"), "--grid", "1", "--arg", "zeros=f32,64", "--arg", "f32=1"]
    words += ["--arg", "zeros=f32,64", "--gpu"]
    assert tc_run(words) == 2
    said = capsys.readouterr().err
    assert "no CUDA driver on this computer. --gpu needs an NVIDIA GPU of compute" in said
    assert tc_run([*words, "--seed", "3"]) == 3
    assert "--gpu: expected no --seed, which applies only to" in capsys.readouterr().err


ADD = """
func.func @sum(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %empty = tensor.empty() : tensor<64xf32>
  %y = linalg.add ins(%a, %b : tensor<64xf32>, tensor<64xf32>)
      outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
"""


def test_an_emulated_kernel_is_compiled_by_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tcir.compile(ADD, "simt-elementwise")
    sizes = {
        each.name: ([8] * len(each.params), kernel.emulated.ptx)
        for each in kernel.launches.launches
    }
    fake = fake_driver.install(monkeypatch, sizes, (9, 0))
    try:
        a, b, out = np.arange(64, dtype=np.float32), np.ones(64, np.float32), np.zeros(64, "f4")
        kernel.launch(a, b, out, emulate=True)
        np.testing.assert_array_equal(out, a + b)
        assert fake.loaded[0].endswith(b"\0") and b".target sm_90a" in fake.loaded[0]
    finally:
        fake_driver.forget()


def test_tc_run_launches_and_saves(
    hopper: fake_driver.FakeDriver, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "k.ptx").write_text(PTX)
    np.save(tmp_path / "x.npy", np.arange(64, dtype=np.float32))
    out = tmp_path / "out.npy"
    words = [str(tmp_path / "k.ptx"), "--grid", "1", "--arg", str(tmp_path / "x.npy")]
    words += ["--arg", "f32=3", "--arg", "zeros=f32,64", "--gpu", "--save", f"2={out}"]
    assert tc_run(words) == 0
    np.testing.assert_array_equal(np.load(out), np.arange(64) + 3)
    assert "add: 0.250 ms on Fake (sm_90), emulated" in capsys.readouterr().out
