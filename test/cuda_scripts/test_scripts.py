"""Scripts of libraries that launch CUDA kernels from Python: ``python -m tcir.cuda script.py``."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tcir.cuda.fat_binary import MAGIC
from tcir.cuda.module import Module
from tcir.errors import InputError

SCRIPTS = Path(__file__).parent / "scripts"
ONE = "tcir: {} launches executed in "


def needs(*names: str) -> pytest.MarkDecorator:
    """Skips a test unless all of these modules are installed."""
    missing = [name for name in names if not _there(name)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def _there(name: str) -> bool:
    if name in ("nvrtc", "curand"):
        return bool(libraries(name))
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def libraries(name: str) -> list[Path]:
    """Libraries of that name in NVIDIA's wheels."""
    spec = importlib.util.find_spec("nvidia")
    roots = spec.submodule_search_locations or () if spec else ()
    return [path for root in roots for path in Path(root).glob(f"cu*/lib/lib{name}.so.*")]


def run(script: str, *words: str, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Ended, with what it wrote."""
    return subprocess.run(
        [sys.executable, "-m", "tcir.cuda", *flags, str(SCRIPTS / script), *words],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


@needs("cuda.bindings")
def test_the_driver_under_its_bindings() -> None:
    ended = run("driver_api.py", "outside", flags=("--target", "sm_100a"))
    assert ended.stdout.splitlines() == [
        "simulated B200",
        "CUDA_ERROR_NOT_FOUND",
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "(8, 4) CUDA_ERROR_INVALID_VALUE",
        "right",
    ]
    assert ended.returncode == 1 and ONE.format(2) in ended.stderr
    assert "iota: out-of-bounds" in ended.stderr and "CUDA_ERROR_LAUNCH_FAILED" in ended.stderr


@needs("cuda.core", "nvrtc")
def test_cuda_core_compiles_a_template_and_launches_it() -> None:
    ended = run("core_axpy.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert ONE.format(1) in ended.stderr and ", 0 with a result" in ended.stderr


@needs("numba_cuda", "nvrtc")
@pytest.mark.parametrize("race", [False, True])
def test_numba_kernels_and_their_race(race: bool) -> None:
    ended = run("numba_sum.py", *["race"] * race)
    assert (ended.returncode, ended.stdout) == (int(race), "right\n"), ended.stderr
    assert ("race: " in ended.stderr and "(numba_sum.py:" in ended.stderr) == race


@needs("cupy", "nvrtc")
def test_cupy_kernels_and_a_sort_that_is_machine_code() -> None:
    ended = run("cupy_raw.py", "sort")
    assert ended.stdout.startswith("right\n") and ended.returncode, ended.stderr
    assert "cudaErrorInvalidDeviceFunction" in ended.stderr, ended.stderr


@pytest.mark.slow
@pytest.mark.timeout(1200)  # PyTorch's headers are parsed four times: 90 CPU seconds
@needs("torch", "ninja")
def test_an_inline_extension_of_pytorch() -> None:
    ended = run("inline_extension.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert ONE.format(2) in ended.stderr


@pytest.mark.slow
@needs("tilelang", "torch")
def test_a_tilelang_product() -> None:
    ended = run("tilelang_gemm.py")
    assert ended.stdout.endswith("right\n") and ONE.format(1) in ended.stderr, ended.stderr


@needs("jax", "triton")
def test_pallas_by_triton() -> None:
    ended = run("pallas_triton.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert ONE.format(2) in ended.stderr
    ended = run("pallas_triton.py", "outside")
    assert ended.returncode == 1 and "double_kernel: out-of-bounds" in ended.stderr, ended.stderr


@needs("jax", "jax_plugins.xla_cuda13", "absl")
def test_pallas_by_mosaic_gpu() -> None:
    ended = run("pallas_mosaic.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert ONE.format(2) in ended.stderr and "error" not in ended.stderr


@needs("curand", "torch")
def test_tables_of_sobol_generators() -> None:
    """PyTorch's sequence is of the same direction numbers. A scrambled one has as many points in
    each sixteenth of a dimension."""
    from torch.quasirandom import SobolEngine

    headers = libraries("curand")[0].parents[1] / "include"
    ended = run("sobol.cu", flags=(f"--nvcc=-I{headers}",))
    assert ended.returncode == 0 and ONE.format(3) in ended.stderr, ended.stderr
    found = {
        name: np.array(numbers, float).reshape(5, 24)
        for name, *numbers in map(str.split, ended.stdout.splitlines())
    }
    points = SobolEngine(5).draw(24).numpy().T
    for name in ("kernel", "kernel64", "host"):
        np.testing.assert_allclose(found[name], points, atol=1e-6)
    assert not np.allclose(found["scrambled"], points, atol=0.01)
    parts = np.sort((found["scrambled"][:, :16] * 16).astype(int))
    assert (parts == np.arange(16)).all()


def test_what_is_no_script() -> None:
    ended = run("none.py")
    assert ended.returncode == 3 and "none.py: expected the path of a Python script" in ended.stderr
    ended = run("driver_api.py", flags=("--nvcc=-g",))
    assert ended.returncode == 3 and "--nvcc: expected a .cu file" in ended.stderr


@pytest.mark.parametrize("image", [b"\x7fELF" + bytes(60), MAGIC + bytes(60), b"\xff\xfe", b"no"])
def test_images_without_ptx(image: bytes) -> None:
    with pytest.raises(InputError):
        Module.from_image(image)
