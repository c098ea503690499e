"""Bundles: written by tc-run, sound, dry-run, damaged; run where there is a GPU."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from endtoend.block_scaled_text import F4, F8A, UE8M0, BlockScaled

from tcir.emulation.narrow import UNITS
from tcir.errors import Error, InputError
from tcir.machine.tma.map_fields import MapFields
from tcir.ptxrun.command import main as tc_run
from tcir.ptxrun.program_bundle import write_program
from tcir.run import Uninitialized
from tcir.runtime import bundle as bundles
from tcir.runtime import timing, visit
from tcir.runtime.bundle import BundledLaunch
from tcir.runtime.module import architecture
from tcir.runtime.replay import Bundle, replay, seal

from .fake_driver import forget, install
from .test_on_gpu import PTX as PAIRS

PTX = Path(__file__).with_name("saxpy.ptx")


def write(folder: Path, capsys: Any) -> Path:
    x = np.arange(1, 257, dtype=np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", x[::-1] * 0.37)
    out = folder / "out"
    arguments = ["--arg", "f32=1.5", "--arg", f"{folder}/x.npy", "--arg", f"{folder}/y.npy"]
    status = tc_run(
        [str(PTX), "--grid", "4", "--block", "64", *arguments, "--arg", "empty=u32,4",
         "--bundle", str(out), "--target", "sm_90a"]
    )  # fmt: skip
    assert status == 0, capsys.readouterr().err
    return out


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """run.py in a process that sees cuda-python and numpy of this environment, and the folder."""
    return subprocess.run(
        [sys.executable, str(folder / "run.py"), *words], capture_output=True, text=True, cwd="/"
    )


@pytest.fixture
def folder(tmp_path: Path, capsys: Any) -> Path:
    return write(tmp_path, capsys)


def test_holds_what_the_machine_computed(folder: Path) -> None:
    found = Bundle.read(folder)
    assert [launch["kernel"] for launch in found.launches] == ["saxpy"]
    x = np.arange(1, 257, dtype=np.float32)
    y = (np.float32(1.5) * x + x[::-1] * np.float32(0.37)).astype(np.float32)
    expected = found.expected[1].view(np.float32)
    assert np.allclose(expected, y, rtol=1e-6)
    assert found.expected[2].view(np.uint32).tolist() == [0, 1, 2, 3]
    assert set(found.expected) == {1, 2}  # x is not written
    assert (folder / "kernel.ptx").read_text() == PTX.read_text()


def test_dry_run_needs_no_gpu(folder: Path) -> None:
    done = run(folder, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "4 parameters of [4, 8, 8, 8] bytes" in done.stdout


def test_carries_all_it_imports(folder: Path) -> None:
    """The runner takes no module of tcir from elsewhere, and none but numpy and cuda."""
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "from tcir.runtime import replay, devices, driver, dlpack, memory, module, timing, visit\n"
        "from tcir.runtime import tensor_map\n"
        "mine = [m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'tcir']\n"
        f"assert all(f.startswith({str(folder)!r}) for f in mine), mine\n"
        "third = {'ml_dtypes', 'numba', 'llvmlite', 'torch_mlir', 'torch'} & set(sys.modules)\n"
        "assert not third, third\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr


def test_without_a_gpu_one_sentence(folder: Path) -> None:
    done = run(folder)
    if done.returncode in (0, 1):
        pytest.skip("there is a GPU")
    assert done.returncode == 2 or "expected a cubin for" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_damage_is_noticed(folder: Path) -> None:
    cubin = bytearray((folder / "kernel.cubin").read_bytes())
    cubin[200] ^= 1
    (folder / "kernel.cubin").write_bytes(bytes(cubin))
    with pytest.raises(InputError, match=r"kernel\.cubin: expected SHA-256"):
        Bundle.read(folder)
    assert run(folder, "--dry-run").returncode == 3


def test_a_changed_expectation_is_noticed(folder: Path) -> None:
    with np.load(folder / "data.npz") as data:
        arrays = {name: data[name].copy() for name in data}
    arrays["expected1"][5] ^= 1
    np.savez_compressed(folder / "data.npz", **arrays)
    with pytest.raises(InputError, match="expected1: expected SHA-256"):
        Bundle.read(folder)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that tests copy."""
    place = tmp_path_factory.mktemp("sound")
    x = np.arange(64, dtype=np.float32)
    args = [np.float32(1.5), x, x[::-1].copy(), Uninitialized(np.zeros(1, np.uint32))]
    bundles.write(
        place / "out", PTX.read_text(), [BundledLaunch("saxpy", 1, 64, args=args)], target="sm_90a"
    )
    return place / "out"


def fields(change: Callable[[dict[str, Any]], object], sealed: bool = False) -> Any:
    """Changes launch.json, with a digest that fits where `sealed`."""

    def damage(folder: Path) -> None:
        description = json.loads((folder / "launch.json").read_text())
        change(description)
        if sealed:
            description["sha256"] = seal(description)
        (folder / "launch.json").write_text(json.dumps(description))

    return damage


def cut(name: str) -> Callable[[Path], object]:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size * 2 // 3)


def instead(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return damage


FILES = ("launch.json", "kernel.cubin", "kernel.ptx", "data.npz")
DAMAGE: dict[str, Callable[[Path], object]] = {
    **{f"{name} cut": cut(name) for name in FILES},
    **{f"{name} empty": instead(name, Path.touch) for name in FILES},
    **{f"{name} a FIFO": instead(name, os.mkfifo) for name in FILES},
    **{f"{name} endless": instead(name, lambda p: p.symlink_to("/dev/zero")) for name in FILES},
    **{f"{name} gone": lambda folder, name=name: (folder / name).unlink() for name in FILES[1:]},
    "no JSON": instead("launch.json", lambda p: p.write_text("{")),
    "a list": instead("launch.json", lambda p: p.write_text("[]")),
    "deep": instead("launch.json", lambda p: p.write_text("[" * 200000)),
    "no UTF-8": instead("kernel.ptx", lambda p: p.write_bytes(b"\xff" * 99)),
    "pickles": instead(
        "data.npz",
        lambda p: np.savez(open(p, "wb"), before0=np.array([{}])),  # noqa: SIM115
    ),
    "another size": fields(lambda d: d["launches"][0].update(grid=[2, 1, 1])),
    "a field gone": fields(lambda d: d.pop("target")),
    "a wrong type": fields(lambda d: d.update(buffers=7)),
    "a field gone, sealed": fields(lambda d: d.pop("buffers"), sealed=True),
    "a wrong type, sealed": fields(lambda d: d.update(buffers="x"), sealed=True),
    "an element's type, sealed": fields(lambda d: d.update(buffers=[None]), sealed=True),
    "a digest gone, sealed": fields(lambda d: d.pop("ptx_sha256"), sealed=True),
    "a size gone, sealed": fields(lambda d: d["launches"][0].pop("grid"), sealed=True),
    "a parameter's kind, sealed": fields(
        lambda d: d["launches"][0]["params"][0].update(kind="no"), sealed=True
    ),
    "a buffer too many, sealed": fields(
        lambda d: d["launches"][0]["params"][1].update(buffer=99), sealed=True
    ),
    "no digest": fields(lambda d: d.pop("sha256")),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_folder_is_damaged(
    sound: Path, tmp_path: Path, damage: Callable[[Path], object], capsys: Any
) -> None:
    """Status 3 and one sentence, never "different" (1), whatever is wrong with it."""
    folder = tmp_path / "out"
    shutil.copytree(sound, folder)
    damage(folder)
    signal.alarm(20)
    status = visit.main(folder, ["--dry-run"])
    signal.alarm(0)
    said = capsys.readouterr()
    assert status == 3 and said.out == ""
    assert "the folder is damaged: request it again" in said.err


def test_a_sound_copy_is_sound(sound: Path, tmp_path: Path, capsys: Any) -> None:
    shutil.copytree(sound, tmp_path / "out")
    assert visit.main(tmp_path / "out", ["--dry-run"]) == 0
    assert "the folder is sound" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            "{ .reg .f64 %e; mov.f64 %e, 0d4000000000000000; rcp.approx.ftz.f64 %e, %e; }",
            "no expected result",
        ),
        ("add.f32 %f3, %f3, %f0; st.global.u32 [%d2+4096], %r0;", "the machine has findings"),
    ],
)
def test_no_bundle_without_a_sound_run(tmp_path: Path, more: str, words: str) -> None:
    text = PTX.read_text().replace("st.global.f32", f"{more} st.global.f32")
    with pytest.raises(Error, match=words):
        call = BundledLaunch(
            "saxpy", 1, 1, args=[np.float32(1), *(np.zeros(4, "f4") for _ in range(3))]
        )
        bundles.write(tmp_path / "out", text, [call], target="sm_90a")
    assert not (tmp_path / "out").exists()


def test_folder_in_use_is_refused(tmp_path: Path, capsys: Any) -> None:
    write(tmp_path, capsys)
    with pytest.raises(InputError, match="new or empty folder"):
        bundles.write(tmp_path / "out", PTX.read_text(), [BundledLaunch("saxpy", 1, 1)])


MATMUL = """
func.func @matmul(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>) -> tensor<64x64xf32> {
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %out = linalg.matmul ins(%a, %b : tensor<64x32xf16>, tensor<32x64xf16>)
      outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %out : tensor<64x64xf32>
}
"""


def test_a_program_for_hopper(tmp_path: Path) -> None:
    program, out = tmp_path / "matmul.mlir", tmp_path / "matmul"
    program.write_text(MATMUL)
    write_program(out, str(program), "matmul-warp", target="sm_90")
    found = Bundle.read(out)
    assert found.description["target"] == "sm_90"
    a, b = (x.view(np.float16).astype(np.float32) for x in found.before[:2])
    expected = a.reshape(64, 32) @ b.reshape(32, 64)
    assert (found.expected[2].view(np.float32).reshape(64, 64) == expected).all()
    assert architecture(found.cubin) == "sm_90"


def test_constants_are_buffers_of_a_bundle(tmp_path: Path) -> None:
    program, out = tmp_path / "table.mlir", tmp_path / "table"
    table = np.arange(1, 25, dtype=np.float16)
    program.write_text(
        f"""func.func @f(%x: tensor<24xf16>) -> tensor<24xf16> {{
          %t = arith.constant dense<{table.tolist()}> : tensor<24xf16>
          %y = arith.addf %x, %t : tensor<24xf16>
          return %y : tensor<24xf16>
        }}"""
    )
    write_program(out, str(program), "simt-elementwise", target="sm_90")
    found = Bundle.read(out)
    values = {before.tobytes(): before.view(np.float16) for before in found.before}
    assert table.tobytes() in values
    (x,) = (each for each in found.before[:2] if each.tobytes() != table.tobytes())
    assert (found.expected[2].view(np.float16) == x.view(np.float16) + table).all()


# --- several launches ----------------------------------------------------------------------------

GEMV = """
func.func @gemv(%c: tensor<3x64xi8>, %sa: tensor<3x4xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
                %sb: tensor<4xf8E4M3FN>) -> tensor<3xf32> {
  %a = "tc.pack_codes"(%c) : (tensor<3x64xi8>) -> tensor<3x64xf4E2M1FN>
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64,
      a_scale_layout = "row_major", b_scale_layout = "row_major",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<3x64xf4E2M1FN>, tensor<3x4xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>)
      -> tensor<3xf32>
  return %y : tensor<3xf32>
}
"""
CONV = """
func.func @conv(%x: tensor<1x4x9x3xf16>, %w: tensor<2x3x3x16xf16>) -> tensor<1x3x7x16xf32> {
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x3x7x16xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x3x7x16xf32>) -> tensor<1x3x7x16xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x4x9x3xf16>, tensor<2x3x3x16xf16>)
      outs(%init : tensor<1x3x7x16xf32>) -> tensor<1x3x7x16xf32>
  return %y : tensor<1x3x7x16xf32>
}
"""
SPLIT = {"schedule": "split-k", "splits": 2}
PROGRAMS: dict[str, tuple[str, str, str, dict[str, Any], list[str]]] = {
    "codes": (GEMV, "gemv-simt", "sm_90", {}, ["gemv_pack0", "gemv"]),
    "split-k": (GEMV.replace("64", "512").replace("x4x", "x32x").replace("<4x", "<32x"),
                "gemv-padded-n", "sm_100a", SPLIT,
                ["gemv_pack0", "gemv_scales1", "gemv", "gemv_reduce"]),
    "repacked": (CONV, "conv-implicit-gemm", "sm_100a", {},
                 ["conv_repack0", "conv_repack1", "conv"]),
}  # fmt: skip


def bundle_of(name: str, folder: Path) -> Bundle:
    """The bundle of a program, as written with a seed."""
    text, pipeline, target, options, _ = PROGRAMS[name]
    program = folder / f"{name}.mlir"
    program.write_text(text)
    write_program(folder / "out", str(program), pipeline, target=target, seed=7, **options)
    return Bundle.read(folder / "out")


SLOW = ("split-k", "repacked")


@pytest.mark.parametrize("name", ["codes", *SLOW])
def test_launches_in_order(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written, dry-run in a process of its own, and run where the driver is the machine."""
    bundle = bundle_of(name, tmp_path)
    names = PROGRAMS[name][-1]
    assert [launch["kernel"] for launch in bundle.launches] == names
    assert bundle.description["origin"]["seed"] == 7
    spaces = [b["workspace"] for b in bundle.description["buffers"]]
    assert sum(spaces) == len(names) - 1
    done = run(bundle.folder, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[:-1]] == ["@" + n for n in names]
    ptx = (bundle.folder / "kernel.ptx").read_text()
    kernels = {
        launch["kernel"]: ([128 if p["kind"] == "tensor_map" else 8 for p in launch["params"]], ptx)
        for launch in bundle.launches
    }
    capability = (9, 0) if bundle.description["target"] == "sm_90" else (10, 0)
    fake = install(monkeypatch, kernels, capability)
    monkeypatch.setattr("tcir.runtime.tensor_map.encode", _encoder(fake))
    monkeypatch.setattr(timing, "measure", lambda launch, repeats: [1.0] * repeats)
    try:
        report = replay(bundle, 3)
    finally:
        forget()
    assert report["equal"] and report["kernels"] == names
    assert [launched.kernel for launched in fake.launches] == names
    assert sum("workspace_of" in b for b in report["buffers"]) == len(names) - 1


def _encoder(fake: Any) -> Any:
    def encode(fields: Any, address: int) -> bytes:
        key = (b"map" + len(fake.maps).to_bytes(2, "little")).ljust(128, b"\xff")
        fake.maps[key] = MapFields(**vars(fields)), address
        return key

    return encode


@pytest.mark.parametrize("several", [1, 2])
def test_a_program_for_sm_100a_on_a_hopper(
    tmp_path: Path, several: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program that is carried has no instruction of sm_100; the bytes are the original's."""
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    call = BundledLaunch("add", (1, 1, 1), (32, 1, 1), args=[x, np.float32(2).view(np.uint32), y])
    bundles.write(tmp_path / "out", PAIRS, [call] * several, emulate=True)
    bundle = Bundle.read(tmp_path / "out")
    assert bundle.description["target"] == "sm_90a" and architecture(bundle.cubin) == "sm_90"
    assert bundle.description["origin"] == {"emulated": "sm_100a"}
    assert "f32x2" not in bundle.ptx
    (expected,) = bundle.expected.values()
    assert (expected.view(np.float32) == x + 2).all()
    install(monkeypatch, {"add": ([8, 4, 8], bundle.ptx)}, (9, 0))
    monkeypatch.setattr(timing, "measure", lambda launch, repeats: [1.0])
    try:
        assert replay(bundle, 1)["equal"]
    finally:
        forget()


def test_the_helpers_are_in_the_launch_of_an_emulated_bundle(tmp_path: Path) -> None:
    program = tmp_path / "matmul.mlir"
    program.write_text(MATMUL)
    write_program(tmp_path / "out", str(program), "gemm", emulate=True)
    bundle = Bundle.read(tmp_path / "out")
    (launch,) = bundle.launches
    assert launch["block"] == [320, 1, 1] and "tcgen05" not in bundle.ptx
    a, b = (x.view(np.float16).astype(np.float32) for x in bundle.before[:2])
    expected = a.reshape(64, 32) @ b.reshape(32, 64)
    assert (bundle.expected[2].view(np.float32).reshape(64, 64) == expected).all()


def test_maps_of_narrow_elements_are_of_bytes_on_a_hopper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "scaled.mlir"
    program.write_text(BlockScaled(20, 140, 256, a=F4, b=F8A, scale=UE8M0, block=32).linalg())
    write_program(tmp_path / "out", str(program), "gemm", emulate=True)
    bundle = Bundle.read(tmp_path / "out")
    assert "%tcir_emulation_has" in bundle.ptx
    assert run(bundle.folder, "--dry-run").returncode == 0
    maps = [param for each in bundle.launches for param in each["params"] if "fields" in param]
    assert "u4_align16b" in {param["fields"]["dtype"] for param in maps}
    fake = install(
        monkeypatch,
        {
            each["kernel"]: (
                [128 if param["kind"] == "tensor_map" else 8 for param in each["params"]],
                bundle.ptx,
            )
            for each in bundle.launches
        },
        (9, 0),
    )
    encoded = []
    monkeypatch.setattr(
        "tcir.runtime.tensor_map.encode",
        lambda fields, address: encoded.append(fields.dtype) or bytes(128),
    )
    monkeypatch.setattr(fake, "_cuLaunchKernelEx", lambda *_: ())  # its maps are no hardware's
    monkeypatch.setattr(timing, "measure", lambda launch, repeats: [1.0])
    try:
        replay(bundle, 1)
    finally:
        forget()
    assert len(encoded) == len(maps) and UNITS.keys().isdisjoint(encoded)


def test_emulate_is_of_bundles(tmp_path: Path, capsys: Any) -> None:
    assert tc_run([str(PTX), "--grid", "1", "--emulate"]) == 3
    assert "--emulate: expected --bundle DIR; --gpu emulates" in capsys.readouterr().err
    words = [
        str(PTX),
        "--grid",
        "1",
        "--block",
        "64",
        "--bundle",
        str(tmp_path / "out"),
        "--emulate",
    ]
    for each in ("f32=1", "zeros=f32,64", "zeros=f32,64", "empty=u32,4"):
        words += ["--arg", each]
    assert tc_run(words) == 3
    assert "expected .target sm_100a or sm_100f, got sm_90" in capsys.readouterr().err


def test_a_launch_out_of_order_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace that another launch should have filled."""
    bundle = bundle_of("codes", tmp_path)
    bundle.launches.reverse()
    kernels = {
        name: ([8] * count, (bundle.folder / "kernel.ptx").read_text())
        for name, count in (("gemv_pack0", 2), ("gemv", 5))
    }
    install(monkeypatch, kernels)
    monkeypatch.setattr(timing, "measure", lambda launch, repeats: [1.0])
    try:
        report = replay(bundle, 1)
    finally:
        forget()
    different = [b["different"] > 0 for b in report["buffers"]]
    assert not report["equal"] and different == [False, True]  # the workspace is right


def test_an_unwritten_workspace_is_refused(tmp_path: Path) -> None:
    x, y, seen = np.ones(64, "f4"), np.ones(64, "f4"), np.zeros(4, np.uint32)
    call = BundledLaunch("saxpy", 1, 64, args=[np.float32(2), x, y, Uninitialized(seen)])
    with pytest.raises(Error, match=r"all 16 bytes of a workspace must .* 12 bytes are not"):
        bundles.write(tmp_path / "out", PTX.read_text(), [call], workspaces=[seen], target="sm_90a")
    assert not (tmp_path / "out").exists()


@pytest.mark.gpu
def test_runs(folder: Path) -> None:
    done = run(folder)
    if done.returncode in (2, 3):
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = json.loads((folder / "report.json").read_text())["bundles"]
    assert report["equal"] and report["milliseconds"]["median"] > 0


@pytest.mark.gpu
def test_reports_a_difference(folder: Path) -> None:
    """An expectation that is wrong, with its digest, so that only the comparison can notice."""
    with np.load(folder / "data.npz") as data:
        arrays = {name: data[name].copy() for name in data}
    arrays["expected1"][5] ^= 1
    np.savez_compressed(folder / "data.npz", **arrays)
    description = json.loads((folder / "launch.json").read_text())
    description["buffers"][1]["expected_sha256"] = bundles.digest(arrays["expected1"])
    description["sha256"] = seal(description)
    (folder / "launch.json").write_text(json.dumps(description))
    done = run(folder)
    if done.returncode in (2, 3):
        pytest.skip(done.stderr.strip())
    assert done.returncode == 1
    (report,) = json.loads((folder / "report.json").read_text())["bundles"]
    assert report["buffers"][0]["different"] == 1 and report["buffers"][0]["first"] == 5
