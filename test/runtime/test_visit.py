"""A visit to a GPU: a process for each bundle, a watchdog, a report whatever happens."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.errors import InputError, UnknownNameError
from tcir.machine import Assumptions
from tcir.passmanager.pipeline import named_pipeline
from tcir.ptxrun.command import main as tc_run
from tcir.ptxrun.kit import programs, write_kit
from tcir.ptxrun.program_bundle import pack_program
from tcir.runtime import bundle as bundles
from tcir.runtime import selftest, timing, visit
from tcir.runtime.bundle import BundledLaunch
from tcir.runtime.micro_kernels import micro_kernels
from tcir.runtime.questions import write_questions
from tcir.runtime.replay import Bundle

from .fake_driver import FakeDriver, forget, install

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PTX = (HERE / "saxpy.ptx").read_text()
QUESTION = "flip_8b_lines"

Install = Callable[[Bundle], FakeDriver]


def pack(folder: Path) -> Bundle:
    x, y = np.arange(1, 65, dtype="f4"), np.full(64, 0.5, "f4")
    call = BundledLaunch("saxpy", 1, 64, args=[np.float32(1.5), x, y, np.zeros(4, np.uint32)])
    bundles.pack(folder, PTX, [call], target="sm_90a")
    return Bundle.read(folder)


def on_fake(monkeypatch: pytest.MonkeyPatch, bundle: Bundle) -> FakeDriver:
    """A GPU of the bundle's target whose kernels run on the machine."""
    first = bundle.launches[0]
    blank = [len(v) for v in bundle.parameters(first, [0] * len(bundle.before), visit._blank)]
    capability = (9, 0) if bundle.description["target"].startswith("sm_90") else (10, 0)
    fake = install(monkeypatch, {first["kernel"]: (blank, bundle.ptx)}, capability)
    monkeypatch.setattr("tcir.runtime.driver.bindings", lambda: fake)
    monkeypatch.setattr("tcir.runtime.tensor_map.encode", _encoder(fake))
    monkeypatch.setattr(timing, "measure", lambda launch, repeats: [1.0] * repeats)
    return fake


def _encoder(fake: FakeDriver) -> Any:
    from tcir.machine.tma.map_fields import MapFields

    def encode(fields: Any, address: int) -> bytes:
        key = (b"map" + len(fake.maps).to_bytes(2, "little")).ljust(128, b"\xff")
        fake.maps[key] = MapFields(**vars(fields)), address
        return key

    return encode


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    yield lambda bundle: on_fake(monkeypatch, bundle)
    forget()


# --- one bundle ----------------------------------------------------------------------------------


def test_equal(gpu: Install, tmp_path: Path) -> None:
    bundle = pack(tmp_path)
    gpu(bundle)
    found = visit.attempt(bundle, 3)
    assert found["outcome"] == "equal" and found["loaded"] == "cubin"
    assert found["device"]["device"] == "Fake (sm_90)" and found["device"]["multiprocessors"] == 148


def test_an_older_driver_compiles_the_ptx(gpu: Install, tmp_path: Path) -> None:
    bundle = pack(tmp_path)
    fake = gpu(bundle)
    fake.old = True
    found = visit.attempt(bundle, 3)
    assert found["outcome"] == "equal"
    assert found["loaded"].startswith("PTX, compiled by the driver (expected a driver of CUDA 13.0")
    assert fake.loaded == [bundle.cubin, bundle.ptx.encode() + b"\0"]


def test_a_driver_that_is_too_old_for_both(gpu: Install, tmp_path: Path) -> None:
    bundle = replace(pack(tmp_path), ptx=PTX.replace(".version 8.0", ".version 8.8"))
    assert bundle.ptx != PTX
    gpu(bundle).fail["cuModuleLoadData"] = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
    found = visit.attempt(bundle, 3)
    assert (found["outcome"], found["exit_code"]) == ("refused", 3)
    assert "expected a driver of CUDA 12.9 or later for this PTX" in found["message"]


def test_another_gpu_is_refused_without_trying_the_ptx(
    gpu: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = pack(tmp_path)
    fake = gpu(bundle)
    fake.capability = (10, 3)
    found = visit.attempt(bundle, 3)
    assert found["outcome"] == "refused" and "got one for sm_90" in found["message"]
    assert fake.loaded == [bundle.cubin]


def test_a_fault_has_a_report(gpu: Install, tmp_path: Path) -> None:
    bundle = pack(tmp_path)
    fake = gpu(bundle)
    launched = fake._cuLaunchKernelEx

    def launch_then_fault(*arguments: Any) -> Any:
        fake.fail["cuStreamSynchronize"] = "CUDA_ERROR_ILLEGAL_ADDRESS"
        return launched(*arguments)

    fake._cuLaunchKernelEx = launch_then_fault  # type: ignore[method-assign]
    found = visit.attempt(bundle, 3)
    assert found["outcome"] == "fault"
    assert "kernel @saxpy failed: CUDA_ERROR_ILLEGAL_ADDRESS" in found["message"]


# --- approximate functions -----------------------------------------------------------------------

RSQRT = """
func.func @f(%a: tensor<128xf32>) -> tensor<128x{type}> {{
  %e = tensor.empty() : tensor<128x{type}>
  %r = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}}
      ins(%a : tensor<128xf32>) outs(%e : tensor<128x{type}>) {{
  ^bb0(%x: f32, %o: {type}):
    %m = math.absf %x : f32
    %y = math.rsqrt %m : f32
    {last}
  }} -> tensor<128x{type}>
  return %r : tensor<128x{type}>
}}
"""
F32 = RSQRT.format(type="f32", last="linalg.yield %y : f32")
BF16 = RSQRT.format(
    type="bf16", last="%z = arith.truncf %y : f32 to bf16 linalg.yield %z : bf16"
).replace("bf16 linalg", "bf16\n    linalg")


@pytest.mark.parametrize(
    ("change", "units", "outcome"),
    [
        (0, 0.0, "equal"),
        (1, 0.0, "within bound"),
        (1, 64.0, "different"),
        (1, np.nan, "different"),
    ],
)
@pytest.mark.parametrize(("program", "width", "digits"), [(F32, 4, 23), (BF16, 2, 7)])
def test_results_of_approximate_functions_have_a_bound(
    gpu: Install,
    tmp_path: Path,
    program: str,
    width: int,
    digits: int,
    change: int,
    units: float,
    outcome: str,
) -> None:
    """change: of the bits of an element; units: how far its reference moves from what it was."""
    pack_program(tmp_path, program, "simt-elementwise", name="f", target="sm_90")
    bundle = Bundle.read(tmp_path)
    (number,) = bundle.near
    gpu(bundle)
    bits = bundle.expected[number].view(f"u{width}").copy()
    reference, errors = bundle.near[number]
    at = int(np.flatnonzero(np.isfinite(reference))[5])
    bits[at] ^= change
    reference[at] *= 1 + units * 2.0**-digits
    near = {number: (reference, errors)}
    found = visit.attempt(replace(bundle, expected={number: bits.view(np.uint8)}, near=near), 3)
    assert found["outcome"] == outcome, found


def test_a_type_whose_error_is_not_bounded(tmp_path: Path) -> None:
    program = BF16.replace("bf16", "f8E4M3FN")
    with pytest.raises(InputError, match="approximate functions must be f32, f16 or bf16"):
        pack_program(tmp_path, program, "simt-elementwise", name="f", target="sm_90")


# --- a visit -------------------------------------------------------------------------------------

RUN = """
import os, sys, time
from pathlib import Path
FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, {root!r})
import pytest
from runtime.test_visit import on_fake
from tcir.runtime import visit
from tcir.runtime.replay import Bundle

if "--child" in sys.argv:
    name = sys.argv[sys.argv.index("--only") + 1]
    fake = on_fake(pytest.MonkeyPatch(), Bundle.read(FOLDER / name))
    if name == "b-fault":
        fake._cuLaunchKernelEx = lambda *_: fake.fail.update(
            cuStreamSynchronize="CUDA_ERROR_LAUNCH_FAILED") or ()
    if name == "c-hang":
        fake._cuLaunchKernelEx = lambda *_: time.sleep(1000)
    if name == "d-dies":
        fake._cuLaunchKernelEx = lambda *_: os._exit(7)
    if name == "e-stray":
        fake._cuLaunchKernelEx = lambda *_: ()
sys.exit(visit.main(FOLDER))
"""


def visited(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    (folder / "run.py").write_text(RUN.format(root=str(HERE.parent)))
    done = subprocess.run(
        [sys.executable, str(folder / "run.py"), *words], capture_output=True, text=True, cwd="/"
    )
    report = folder / "report.json"
    assert report.exists() or done.returncode == 3, done.stdout + done.stderr
    return done, json.loads(report.read_text()) if report.exists() else {}


def test_the_rest_goes_on(tmp_path: Path) -> None:
    """A fault, a hang, a process that dies, wrong bits: each has its line, and so has the rest."""
    for name in ("a-good", "b-fault", "c-hang", "d-dies", "e-stray", "f-good"):
        pack(tmp_path / name)
    write_questions(tmp_path, QUESTION, micro_kernels()[QUESTION])
    done, report = visited(tmp_path, "--seconds", "45")
    assert done.returncode == 1, done.stdout + done.stderr
    assert {each["bundle"]: each["outcome"] for each in report["bundles"]} == {
        "a-good": "equal", "b-fault": "fault", "c-hang": "hang", "d-dies": "died",
        "e-stray": "different", "f-good": "equal", f"ask-{QUESTION}": "as assumed",
    }  # fmt: skip
    text = (tmp_path / "report.txt").read_text()
    assert text.strip() in done.stdout
    assert "kernel " in text and "CUDA_ERROR_LAUNCH_FAILED" in text
    assert "no answer within 45 seconds: its process was killed" in text
    assert "its process ended with status 7" in text
    assert (tmp_path / "e-stray" / "silicon1.npz").exists()
    assert report["host"]["python"] and report["started"].endswith("+00:00")
    assert "Traceback" not in done.stdout + done.stderr

    done, report = visited(tmp_path, "--only", "f-good")
    assert done.returncode == 0
    assert [each["outcome"] for each in report["bundles"]] == ["equal"]
    done, _ = visited(tmp_path, "--only", "g-good")
    assert done.returncode == 3 and "--only: expected one of a-good, ask-" in done.stderr


def test_an_interrupt_leaves_a_report(
    gpu: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for name in ("a", "b", "c"):
        pack(tmp_path / name)
    answers: list[Any] = [{"outcome": "equal", "device": {"device": "one"}}]

    def one(*_: Any) -> Any:
        if not answers:
            raise KeyboardInterrupt
        return answers.pop()

    monkeypatch.setattr(visit, "_in_process", one)
    assert visit.main(tmp_path, []) == 130
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["interrupted"] and report["device"] == {"device": "one"}
    assert [each["bundle"] for each in report["bundles"]] == ["a"]
    assert "interrupted" in (tmp_path / "report.txt").read_text()


def test_a_gpu_that_cannot_be_freed_ends_the_visit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        pack(tmp_path / name)
    stuck = {"outcome": "hang", "message": "the GPU needs a reset", "stuck": True}
    monkeypatch.setattr(visit, "_in_process", lambda *_: dict(stuck))
    assert visit.main(tmp_path, []) == 1
    assert len(json.loads((tmp_path / "report.json").read_text())["bundles"]) == 1


# --- questions -----------------------------------------------------------------------------------


def test_a_question_is_answered_by_bytes(gpu: Install, tmp_path: Path) -> None:
    (place,) = write_questions(tmp_path, QUESTION, micro_kernels()[QUESTION])
    bundle = Bundle.read(place)
    question = bundle.description["question"]
    assert len(set(question["answers"].values())) == len(question["answers"]) > 1
    gpu(bundle)
    found = visit.attempt(bundle, 3)
    visit._answer(found, question)
    assert found["outcome"] == "as assumed" and found["answers"] == [question["assumed"]]

    other = next(name for name in question["answers"] if name != question["assumed"])
    found = {"outcome": "equal", "written_sha256": question["answers"][other]}
    visit._answer(found, question)
    assert found["outcome"] == "other answer"
    assert found["message"] == f"assumed {question['assumed']}, silicon: {other}"
    found = {"outcome": "equal", "written_sha256": "0"}
    visit._answer(found, question)
    assert found["outcome"] == "other answer" and found["answers"] == []
    found = {"outcome": "hang", "message": "no answer"}
    visit._answer(found, question)
    assert found == {"outcome": "hang", "message": "no answer"}


@pytest.mark.parametrize(("answer", "status"), [("right", 0), ("other", 1), ("late", 2)])
def test_the_self_test_writes_its_file(
    answer: str, status: int, gpu: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = micro_kernels()[QUESTION]
    gpu(pack(tmp_path / "any"))
    entry = next(item for item in selftest.REGISTRY if item.name == QUESTION)
    others = [a for a in entry.alternatives if a != entry.default]

    def on_gpu(kernel: Any) -> bytes:
        if answer == "late":
            raise selftest.NotEndedError("no answer within 120 seconds")
        chosen = entry.default if answer == "right" else others[0]
        return selftest.on_machine(kernel, Assumptions(**{QUESTION: chosen}))

    monkeypatch.setattr(selftest, "micro_kernels", lambda: {QUESTION: kernel})
    monkeypatch.setattr(selftest, "_blackwell", lambda: None)
    monkeypatch.setattr(selftest, "on_gpu", on_gpu)
    assert tc_run(["--selftest", "--json", str(tmp_path / "answers.json")]) == status
    report = json.loads((tmp_path / "answers.json").read_text())
    assert report["device"]["device"] == "Fake (sm_90)"
    said = {"right": str(entry.default), "other": str(others[0]), "late": "not asked: no answer"}
    assert report["answers"][QUESTION]["silicon"].startswith(said[answer])
    assert "cannot be tested" in report["answers"]["alloc_content"]["silicon"]


# --- kits ----------------------------------------------------------------------------------------


def test_every_example_has_a_pipeline() -> None:
    found = list(programs(ROOT / "examples"))
    named = {name.split("-")[0] for name, _, _ in found}
    files = {path.stem for path in (ROOT / "examples").glob("*.mlir")}
    assert named == files
    for _, text, pipeline in found:
        assert "func.func" in text and named_pipeline(pipeline)


def test_a_folder_without_programs(tmp_path: Path) -> None:
    (tmp_path / "k.mlir").write_text("func.func @f() { return }\n")
    with pytest.raises(InputError, match=r"head has a command with --pipeline=NAME, got none"):
        write_kit(tmp_path / "kit", tmp_path)
    assert not (tmp_path / "kit").exists()


def test_an_unknown_target_is_refused_once(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"expected one of the targets .*, got 'sm_91'"):
        write_kit(tmp_path / "kit", ROOT / "examples", target="sm_91")
    assert not (tmp_path / "kit").exists()


def test_a_kit(tmp_path: Path, capsys: Any) -> None:
    """One small example, one that does not compile, the self-test; checked in a fresh process."""
    source = tmp_path / "programs"
    source.mkdir()
    text = (ROOT / "examples" / "tf32_one_tile.mlir").read_text()
    (source / "tile.mlir").write_text(text)
    (source / "broken.mlir").write_text(text.replace("tensor<8x8xf32>", "tensor<8x9xf32>"))
    assert tc_run([str(source), "--bundle", str(tmp_path / "kit")]) == 0
    said = capsys.readouterr().out
    assert "broken: left out: " in said and "tile: matmul-warp{" in said
    names = {path.parent.name for path in (tmp_path / "kit").glob("*/launch.json")}
    assert {name.removesuffix("-2") for name in names} == {
        "tile",
        *(f"ask-{name}" for name in micro_kernels()),
    }
    done = subprocess.run(
        [sys.executable, str(tmp_path / "kit" / "run.py"), "--dry-run"],
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.returncode == 0 and done.stdout.endswith("the folder is sound\n")
    readme = (tmp_path / "kit" / "README.md").read_text()
    for question in ("hang my GPU", "sent anywhere", "after a fault", "B300", "compute-sanitizer"):
        assert question in readme
