"""Mistakes in textures, surfaces and host functions of CUDA's libraries, one at a time: the checks
of their programs, in test_textures.py and test_libraries.py, see each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tcir.codegen.cuda import compile_program
from tcir.cuda.program import compile_runtime
from tcir.target import DEFAULT_TARGET

from . import test_textures as textures
from .test_libraries import check_output
from .test_program import PROGRAMS

pytestmark = pytest.mark.slow

CUBLAS, CUFFT, CUSPARSE, CURAND, NVRTC = (
    f"cuda/libraries/{name}.py" for name in ("cublas", "cufft", "cusparse", "curand", "nvrtc")
)
TEXTURES, SURFACE = "machine/textures.py", "interp/ptx/isa/surface.py"
BREAKS: dict[str, tuple[str, str, str]] = {
    "wrap instead of mirror": (TEXTURES, "size if mode == WRAP else 2 * size", "size"),
    "mirror that starts one early": (TEXTURES, "2 * size - 1 - at", "2 * size - at"),
    "wrap without normalized coordinates": (
        TEXTURES,
        "mode != CLAMP and self.normalized",
        "mode != CLAMP",
    ),
    "border as clamp": (TEXTURES, "self.buffer or mode == BORDER", "self.buffer"),
    "linear memory that clamps": (TEXTURES, "self.buffer or mode == BORDER", "mode == BORDER"),
    "coordinates scaled by another axis": (
        TEXTURES,
        "np.array(self.size[: len(coordinates)])",
        "np.array(self.size[len(coordinates) - 1 :: -1])",
    ),
    "coordinates never scaled": (
        TEXTURES,
        "coordinates * scale if self.normalized or self.faces else coordinates",
        "coordinates",
    ),
    "x and y swapped": (
        TEXTURES,
        "(self.texel, self.pitch, self.slice)",
        "(self.pitch, self.texel, self.slice)",
    ),
    "a filter half a texel off": (TEXTURES, "first = np.floor(x - 0.5)\n", "first = np.floor(x)\n"),
    "nearest instead of linear": (
        TEXTURES,
        "if not self.linear:\n            return self._texels",
        "if True:\n            return self._texels",
    ),
    "nearest that rounds": (TEXTURES, "np.floor(x).astype", "np.round(x).astype"),
    "weights without rounding": (TEXTURES, "+ tie >> 8", ">> 8"),
    "weights of another axis first": (
        TEXTURES,
        "((0,), (1, 0), (2, 0, 1))",
        "((0,), (0, 1), (2, 1, 0))",
    ),
    "no layers": (TEXTURES, "at = at + layer.clip(0, last) * self.slice", "pass"),
    "layers that wrap": (TEXTURES, "layer.clip(0, last)", "layer % (last + 1)"),
    "faces of another sign": (TEXTURES, "((-z, -y), (z, -y))", "((z, -y), (-z, -y))"),
    "colors in 256ths": (TEXTURES, "whole / (2**self.bits - 1)", "whole / 2**self.bits"),
    "a gather in rows": (
        TEXTURES,
        "[(0, 1), (1, 1), (1, 0), (0, 0)]",
        "[(0, 0), (1, 0), (0, 1), (1, 1)]",
    ),
    "surfaces with rows for columns": (
        SURFACE,
        "np.array([1, surface.pitch, surface.slice]",
        "np.array([surface.pitch, 1, surface.slice]",
    ),
    "surfaces that clamp": (SURFACE, 'inside | (self.outside == "clamp")', "inside | True"),
    "leading dimension of the rows": (
        CUBLAS,
        "matrix(address, *shape, leading, self.kind)",
        "matrix(address, *shape, shape[0], self.kind)",
    ),
    "leading dimension of the transposed": (
        CUBLAS,
        "matrix(address, *shape[::-1], leading, self.kind)",
        "matrix(address, *shape[::-1], shape[1], self.kind)",
    ),
    "transposes swapped": (CUBLAS, "x = self.operand(call.ta,", "x = self.operand(call.tb,"),
    "c by the leading dimension of a": (CUBLAS, "m, n, call.ldc", "m, n, call.lda"),
    "beta left out": (CUBLAS, "factor * out.astype", "out.astype"),
    "alpha left out": (CUBLAS, "self.scalar(call.alpha) * (x @ y)", "(x @ y)"),
    "gemv that is never transposed": (
        CUBLAS,
        "shape = (call.m, call.n) if call.form == _NO_TRANSPOSE else (call.n, call.m)",
        "shape = (call.m, call.n)",
    ),
    "negative steps from the start": (
        "cuda/libraries/functions.py",
        "found[::-1] if step < 0",
        "found if step < 0",
    ),
    "pivots from 0": (CUBLAS, "pivots[n] = row + 1", "pivots[n] = row"),
    "direction swapped": (CUFFT, "elif direction == FORWARD", "elif direction != FORWARD"),
    "an inverse that divides": (
        CUFFT,
        'np.fft.ifftn(given, axes=axes, norm="forward")',
        "np.fft.ifftn(given, axes=axes)",
    ),
    "an inverse to real numbers that divides": (
        CUFFT,
        'self.shape, axes, norm="forward"',
        "self.shape, axes",
    ),
    "rows in place without padding": (
        CUFFT,
        "if real[n] and call.x == call.y else shape",
        "if 0 else shape",
    ),
    "indices from 0": (CUSPARSE, "columns - self.base", "columns - 0"),
    "beta of a sparse product left out": (CUSPARSE, "kept * y.astype", "y.astype"),
    "alpha of a sparse product left out": (CUSPARSE, "by * matrix.times", "matrix.times"),
    "numbers of 0": (CURAND, "1.0 - self.random.random(count)", "self.random.random(count) * 0"),
    "a seed that is ignored": (CURAND, "default_rng(call.seed & (1 << 64) - 1)", "default_rng()"),
    "no progress after a call": (
        CURAND,
        "return 1.0 - self.random.random(count)",
        "return 1.0 - np.random.default_rng(0).random(count)",
    ),
    "dimensions interleaved": (
        CURAND,
        "np.concatenate(rows)",
        "np.stack(rows, axis=1).reshape(-1)",
    ),
    "points in natural order": (CURAND, "gray ^= gray >> np.uint64(1)", "pass"),
    "options left out": (NVRTC, "target, flags)", "target, [])"),
    "headers left out": (NVRTC, "{**known.headers,", "{"),
    "an error that is success": (NVRTC, "return COMPILATION", "return 0"),
    "a log that is empty": (NVRTC, "known.log = str(error)", 'known.log = ""'),
}

RUN = """
import importlib.machinery as machinery
import sys
from pathlib import Path

runtime, library, edited, old, new = sys.argv[1:]
code = machinery.SourceFileLoader.get_code

def get_code(loader, name):
    if not loader.path.endswith("/tcir/" + edited):
        return code(loader, name)
    text = Path(loader.path).read_text()
    assert text.count(old) == 1, old
    return compile(text.replace(old, new), loader.path, "exec")

machinery.SourceFileLoader.get_code = get_code
from tcir.cuda.program import ProgramDevice
from tcir.doors.launches import Launches

launches = Launches()
status = ProgramDevice(launches).load(Path(runtime), Path(library), "program")([])
launches.close()
sys.exit(status or launches.status)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("libraries")
    for name in ("libraries", "textures"):
        target = made / f"{name}.so"
        compile_program(PROGRAMS / f"{name}.cu", DEFAULT_TARGET.name, target)
    compile_runtime(made)
    return made


def _seen(folder: Path, edited: str, old: str, new: str) -> bool:
    """Whether the checks of the program fail with an edited file."""
    name = "textures" if edited in (TEXTURES, SURFACE) else "libraries"
    files = folder / "libcuda.so.1", folder / f"{name}.so"
    command = [sys.executable, "-c", RUN, *map(str, files), edited, old, new]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert "AssertionError" not in ended.stderr, ended.stderr
    try:
        if name == "libraries":
            check_output(ended.stdout, ended.returncode)
        else:
            textures.check_output(ended.stdout, ended.returncode)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("edited", [CUBLAS, TEXTURES])
def test_as_it_is(edited: str, folder: Path) -> None:
    assert not _seen(folder, edited, "from __future__", "from __future__")


@pytest.mark.parametrize("name", BREAKS)
def test_a_mistake_is_seen(name: str, folder: Path) -> None:
    assert _seen(folder, *BREAKS[name])
