"""cuRAND: pseudorandom numbers are numpy's and differ from a GPU's; quasirandom numbers are those
of a Sobol sequence.

NVIDIA's library supplies the tables of the generators that run in kernels, and the tables of Sobol
sequences with more than two dimensions. It needs no GPU for this.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from tcir.cuda.libraries.functions import HostCall, Objects, array, function, succeeds
from tcir.errors import MissingDependencyError

TYPE_ERROR, LENGTH_NOT_MULTIPLE, DIMENSIONS, JOE_KUO = 103, 105, 20_000, 101
_PSEUDO, _QUASI = (100, 101, 121, 141, 142, 161), (200, 201)
"""Types of generators; Sobol sequences of 32 bits."""


@dataclass
class Generator:
    """A generator of random numbers. dimensions: number of dimensions if it is quasirandom,
    otherwise 0.
    """

    dimensions: int
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    offset: int = 0

    def uniform(self, count: int) -> np.ndarray:
        """Numbers in (0, 1], as f64."""
        if not self.dimensions:
            return 1.0 - self.random.random(count)
        each = count // self.dimensions
        rows = [_sobol(n, self.offset, each) for n in range(self.dimensions)]
        self.offset += each
        return (np.concatenate(rows) + 0.5) / 2.0**32


def _sobol(dimension: int, first: int, count: int) -> np.ndarray:
    """Numbers `first` on of Sobol's sequence, 32 bits, in the order of the Gray code."""
    directions = _directions(dimension)
    gray = np.arange(first, first + count, dtype=np.uint64)
    gray ^= gray >> np.uint64(1)
    found = np.zeros(count, np.uint64)
    for n in range(32):
        direction = np.uint64(directions[n])
        found ^= np.where(gray >> np.uint64(n) & np.uint64(1), direction, np.uint64(0))
    return found.astype(np.float64)


def _directions(dimension: int) -> list[int]:
    """Direction numbers: of van der Corput, of the polynomial x + 1, then those of NVIDIA's table
    (Joe and Kuo)."""
    if dimension > 1:
        table = ctypes.c_void_p()
        _nvidia().curandGetDirectionVectors32(ctypes.byref(table), JOE_KUO)
        return array((table.value or 0) + 128 * dimension, 32, "<u4").tolist()
    numbers = [1] * 32
    for n in range(1, 32 if dimension else 0):
        numbers[n] = 2 * numbers[n - 1] ^ numbers[n - 1]
    return [number << 31 - n & 0xFFFFFFFF for n, number in enumerate(numbers)]


@cache
def _nvidia() -> ctypes.CDLL:
    """NVIDIA's library, of its package or of the system. Raises MissingDependencyError."""
    spec = importlib.util.find_spec("nvidia")
    roots = spec.submodule_search_locations or () if spec else ()
    found = [path for root in roots for path in Path(root).glob("cu*/lib/libcurand.so.*")]
    name = str(found[0]) if found else ctypes.util.find_library("curand")
    if name is None:
        raise MissingDependencyError(
            "the tables of Sobol generators are those of NVIDIA's library cuRAND, which is not "
            "installed; `pip install nvidia-curand`"
        )
    return ctypes.CDLL(name)


def _table(name: str, given: str) -> None:
    """Registers a function that returns the address of one of NVIDIA's tables."""

    def get(call: HostCall) -> int:
        numbers = (call.set,) if "set" in given else ()
        status: int = _nvidia()[name](ctypes.c_void_p(call.out), *numbers)
        return status

    function(name, given=given)(get)


for _bits in (32, 64):
    _table(f"curandGetDirectionVectors{_bits}", "out:p set:i")
    _table(f"curandGetScrambleConstants{_bits}", "out:p")

_KNOWN: Objects[Generator] = Objects()


@function("curandCreateGenerator", "curandCreateGeneratorHost", given="out:p kind:i")
def create(call: HostCall) -> int:
    """Creates a generator of a curandRngType."""
    quasi = call.kind in _QUASI
    if not quasi and call.kind not in _PSEUDO:
        return TYPE_ERROR
    return _KNOWN.made(call.out, Generator(int(quasi)))


succeeds("curandDestroyGenerator", given="generator:p")
succeeds("curandSetStream", given="generator:p stream:p")
succeeds("curandSetGeneratorOrdering", given="generator:p order:i")


@function("curandSetPseudoRandomGeneratorSeed", given="generator:p seed:l")
def seed(call: HostCall) -> int:
    """Restarts the generator from a seed."""
    _KNOWN[call.generator].random = np.random.default_rng(call.seed & (1 << 64) - 1)
    return 0


@function("curandSetQuasiRandomGeneratorDimensions", given="generator:p count:i")
def dimensions(call: HostCall) -> int:
    """Sets the number of dimensions of a quasirandom sequence."""
    if not 1 <= call.count <= DIMENSIONS:
        return TYPE_ERROR
    _KNOWN[call.generator].dimensions = call.count
    return 0


def _uniform(kind: str) -> Callable[[HostCall], int]:
    def generate(call: HostCall) -> int:
        known = _KNOWN[call.generator]
        if known.dimensions and call.n % known.dimensions:
            return LENGTH_NOT_MULTIPLE
        return call.write(array(call.out, call.n, kind), known.uniform(call.n))

    return generate


def _normal(kind: str) -> Callable[[HostCall], int]:
    def generate(call: HostCall) -> int:
        known = _KNOWN[call.generator]
        if known.dimensions:
            return TYPE_ERROR
        found = known.random.normal(call.mean, call.spread, call.n)
        return call.write(array(call.out, call.n, kind), found)

    return generate


for _name, _kind, _letter in (("", "<f4", "f"), ("Double", "<f8", "d")):
    function(f"curandGenerateUniform{_name}", given="generator:p out:p n:z", waits=True)(
        _uniform(_kind)
    )
    function(
        f"curandGenerateNormal{_name}",
        given=f"generator:p out:p n:z mean:{_letter} spread:{_letter}",
        waits=True,
    )(_normal(_kind))
