"""An instruction is written once, as a numpy function: the machine code that is derived from it
computes the same bits."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from modes import MODES

from tcir.interp.ptx.kernels.derived import DerivedKernel, kernels
from tcir.interp.ptx.kernels.traced import RULES
from tcir.interp.ptx.lockstep.native.execution import Native
from tcir.interp.ptx.loops.running import Loops
from tcir.interp.ptx.registry import DECODERS
from tcir.run import run_ptx

from .conftest import HEADER
from .scalar import NUMPY_ONLY, SCALAR, computed

SPECIAL = {
    1: [0, 1],
    2: [0, 1, 2, 15, 16, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0,
        0xFFC1, 0x7F81, 0x0040, 0x8001, 0x7F7F],
    4: [0, 1, 2, 31, 32, 33, 63, 64, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF0000,
        0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001,
        0x00400000, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x34000000, 0x3F7FFFFF,
        0x4B800001, 0xCB7FFFFF, 0x12345678, 0x4F000000, 0xCF000000, 0x5F000000],
    8: [0, 1, 31, 63, 64, 65, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
        0x3FF0000000000000, 0xBFF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000,
        0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001, 0x000FFFFFFFFFFFFF,
        0x0010000000000000, 0x8000000000000001, 0x7FEFFFFFFFFFFFFF, 0x3CA0000000000000,
        0x47EFFFFFF0000000, 0x36A0000000000000, 0x43E0000000000000],
}  # fmt: skip
"""Small and extreme integers; as floats zeros, infinities, NaNs, subnormals, neighbours of powers
of two, and numbers at the edges of narrower formats."""
KERNELS = sorted(set(SCALAR) - NUMPY_ONLY)


def executed(kernel: DerivedKernel, sources: list[np.ndarray], out: np.dtype) -> np.ndarray:
    """What machine code computes of 32 lanes, or of several times as many."""
    values = [np.ascontiguousarray(one) for one in sources]
    count = len(values[0]) // 32
    found = np.zeros(32 * count, out)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 10)(kernel.address)
    operands = [(one.ctypes.data, 32 * one.itemsize) for one in (found, *values)]
    operands += [(0, 0)] * (4 - len(operands))
    call(*(number for pair in operands for number in pair), 0, count)
    return found


def compare(spelling: str, words: list[np.ndarray]) -> None:
    """numpy and machine code; words: the sources as unsigned numbers."""
    compute = computed(spelling)
    kinds, (out, *_) = compute.dtypes
    sources = [
        word.astype(bool) if kind.kind == "b" else word.astype(f"u{kind.itemsize}").view(kind)
        for word, kind in zip(words, kinds, strict=True)
    ]
    assert compute.kernels is not None, spelling
    with np.errstate(all="ignore"):
        found = compute.fn(*sources)
    want = np.asarray(found[0] if isinstance(found, tuple) else found).astype(out, casting="unsafe")
    have = executed(compute.kernels[0], sources, out)
    np.testing.assert_array_equal(have.view(np.uint8), want.view(np.uint8), spelling)


@pytest.mark.parametrize("group", sorted({spelling.split(".")[0] for spelling in KERNELS}))
def test_all_pairs_of_special_values(group: str) -> None:
    rng = np.random.default_rng(0)
    for spelling in (s for s in KERNELS if s.split(".")[0] == group):
        kinds = computed(spelling).dtypes[0]
        numbers = [np.array(SPECIAL[kind.itemsize], np.uint64) for kind in kinds[:2]]
        words = [one.ravel() for one in np.meshgrid(*numbers)]
        words = [np.resize(one, -(-words[0].size // 32) * 32) for one in words]
        for kind in kinds[2:]:
            words.append(rng.choice(np.array(SPECIAL[kind.itemsize], np.uint64), words[0].size))
        compare(spelling, words)


HALF = "cvt.rn.f16.f64"


@pytest.mark.skipif(HALF in NUMPY_ONLY, reason="the processor has no F16C")
def test_halves_are_rounded_once() -> None:
    """Ties between f16 numbers and the f64 numbers beside them, which f32 cannot tell apart."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        above = np.nextafter(halves, np.float16(np.inf)).astype(np.float64)
        ties = (above + halves.astype(np.float64)) / 2
    for numbers in (ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)):
        compare(HALF, [numbers.view(np.uint64)])


@st.composite
def operands(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    """An instruction and 32 lanes of each of its sources: special values, their neighbours, any."""
    spelling = draw(st.sampled_from(KERNELS))
    words = []
    for kind in computed(spelling).dtypes[0]:
        most = (1 << (1 if kind.kind == "b" else 8 * kind.itemsize)) - 1
        special = st.sampled_from(SPECIAL[kind.itemsize])
        near = st.builds(lambda n, step, most=most: (n + step) & most, special, st.integers(-2, 2))
        lane = st.one_of(special, near, st.integers(0, most))
        words.append(np.array(draw(st.lists(lane, min_size=32, max_size=32)), np.uint64))
    return spelling, words


@settings(max_examples=250, derandomize=True)
@given(operands())
def test_any_values(drawn: tuple[str, list[np.ndarray]]) -> None:
    compare(*drawn)


@pytest.mark.timeout(1800)
@settings(max_examples=10_000)
@given(operands())
def test_many_values(drawn: tuple[str, list[np.ndarray]]) -> None:
    compare(*drawn)


def test_what_only_numpy_executes() -> None:
    """An instruction that can no longer be traced is slow, and nothing else tells."""
    assert {s for s in SCALAR if computed(s).kernels is None} == NUMPY_ONLY


@pytest.mark.parametrize(
    ("right", "wrong", "spelling"),
    [
        (np.add, np.subtract, "add.u32"),
        (np.minimum, np.maximum, "min.s64"),
        (np.isnan, np.isinf, "fma.rn.f32"),
        (np.right_shift, np.left_shift, "shf.r.clamp.b32"),
        (np.less, np.less_equal, "setp.lt.f64"),
    ],
)
def test_a_wrong_rule_is_seen(
    right: np.ufunc, wrong: np.ufunc, spelling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RULES, right, RULES[wrong])
    compute = computed(spelling)
    compute.__dict__["kernels"] = kernels(
        lambda *operands: compute.fn(*operands), *compute.dtypes
    )  # a function of its own: what is derived is kept
    monkeypatch.setattr(f"{__name__}.computed", lambda _: compute)
    with pytest.raises(AssertionError):
        for _ in range(20):
            rng = np.random.default_rng(0)
            numbers = [np.array(SPECIAL[k.itemsize], np.uint64) for k in compute.dtypes[0]]
            compare(spelling, [rng.choice(one, 256) for one in numbers])


# --- what cannot be traced ----------------------------------------------------

WORD = (np.dtype("u4"),)


@pytest.mark.parametrize(
    "fn",
    [lambda a: a if (a > 3).any() else -a, lambda a: a[::-1], lambda a: np.sort(a),
     lambda a: np.cumsum(a), lambda a: a + np.arange(32, dtype=np.uint32), lambda a: a.sum(),
     lambda a: np.add.reduce(a), lambda a: np.exp2(a.astype(np.float64)).astype(np.uint32),
     lambda a: a.view(np.uint16), lambda a: 7, lambda a: np.where(a),
     lambda a: a.astype(np.float16) + np.float16(1), lambda a: a // a.astype(np.int32),
     lambda a: np.where(np.isnan(a), a, 1)],
)  # fmt: skip
def test_what_is_left_to_numpy(fn: Any) -> None:
    assert kernels(fn, WORD, WORD) is None


def test_functions_are_told_apart_by_what_they_close_over() -> None:
    def adding(number: Any) -> Any:
        return lambda a: a + number

    def name(number: Any) -> str:
        found = kernels(adding(number), WORD, (np.dtype("u8"),))
        assert found is not None
        return found[0].name

    assert name(1) == name(1) != name(2)
    assert name(np.uint64(1)) != name(np.uint32(1))  # another dtype of the sum
    assert name(True) != name(np.uint64(1))


@pytest.mark.parametrize("amount", [0, 1, 31, 32, 33, 1 << 31])
@pytest.mark.parametrize("kind", ["u4", "i4", "u8", "i8", "u2", "i2"])
def test_shifts_are_numpys(amount: int, kind: str) -> None:
    """Beyond the width, by numbers and by values."""
    dtype = np.dtype(kind)
    x = np.array(SPECIAL[dtype.itemsize][:16] * 2, f"u{dtype.itemsize}").view(dtype)
    y = np.full(32, amount % (1 << 8 * dtype.itemsize - 1), dtype)
    for shift in (np.left_shift, np.right_shift):
        (kernel,) = kernels(shift, (dtype, dtype), (dtype,)) or ()
        np.testing.assert_array_equal(executed(kernel, [x, y], dtype), shift(x, y))
        fixed = dtype.type(y[0])
        (kernel,) = kernels(lambda a, s=shift, n=fixed: s(a, n), (dtype,), (dtype,)) or ()
        np.testing.assert_array_equal(executed(kernel, [x], dtype), shift(x, fixed))


# --- an instruction from outside ----------------------------------------------------

TOP4 = """
import numpy as np

from tcir.interp.ptx.isa.values.elementwise import parts, same_type
from tcir.interp.ptx.registry import instruction


@instruction("top4")
def top4(d):
    '''The larger byte of each of the four pairs.'''
    kind = d.type("u32", "s32")
    byte = np.dtype("i1" if kind.kind == "s" else "u1")

    def run(a, b):
        return np.maximum(parts(a, byte), parts(b, byte)).view(a.dtype)

    return same_type(d, run, kind, 2)
"""
LOOP = f"""{HEADER}// an instruction from outside
.visible .entry k(.param .u64 x, .param .u64 y) {{
 .reg .pred %p1; .reg .b32 %r<9>; .reg .b64 %d<6>;
 ld.param.b64 %d1, [x]; ld.param.b64 %d2, [y]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
 mad.lo.u32 %r3, %r2, 64, %r1; mad.wide.u32 %d3, %r3, 4, %d1; mad.wide.u32 %d4, %r1, 4, %d1;
 mad.wide.u32 %d5, %r3, 8, %d2; mov.u32 %r4, 0; mov.u32 %r6, 0x80808080; mov.u32 %r8, 0;
AGAIN:
 ld.global.b32 %r5, [%d4]; top4.s32 %r6, %r6, %r5; add.u64 %d4, %d4, 256;
 add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 12; @%p1 bra AGAIN;
 ld.global.b32 %r7, [%d3]; top4.u32 %r7, %r7, 0x40302010;
 st.global.v2.b32 [%d5], {{%r6, %r7}}; ret; }}"""


@pytest.fixture
def top4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instruction as docs/how-to/extending.md adds one, in a file outside the package."""
    monkeypatch.setitem(DECODERS, "top4", DECODERS["add"])
    del DECODERS["top4"]
    (tmp_path / "plugin.py").write_text(TOP4)
    exec(compile(TOP4, str(tmp_path / "plugin.py"), "exec"), {"__name__": "plugin"})


def test_an_instruction_from_outside_is_fast_everywhere(
    top4: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bits in every mode; loops and the compiled replay execute it themselves."""
    x = np.random.default_rng(0).integers(0, 1 << 32, (12, 64), np.uint32)
    octets = x.view(np.uint8).reshape(12, 64, 4)
    want = np.stack([
        np.broadcast_to(octets.view(np.int8).max(axis=0).view(np.uint32), (12, 64, 1))[..., 0],
        np.maximum(octets, np.array([0x10, 0x20, 0x30, 0x40], np.uint8)).view(np.uint32)[..., 0],
    ], axis=2)  # fmt: skip
    counts, asides, loop, replay = [], [], Loops.run, Native.run

    def looped(self: Loops, *of: Any) -> Any:
        done = loop(self, *of)
        counts.append(done[0])
        return done

    def replayed(self: Native, *of: Any) -> bool:
        asides.append(len(self.lowered.out.asides))
        return replay(self, *of)

    monkeypatch.setattr(Loops, "run", looped)
    monkeypatch.setattr(Native, "run", replayed)
    for name, mode in {"as it is": lambda _: None, **MODES}.items():
        with monkeypatch.context() as patch:
            mode(patch)
            y = np.zeros((12, 64, 2), np.uint32)
            report = run_ptx(LOOP, grid=12, block=64, args=[x, y])
            assert report.ok, f"{name}: {report}"
            np.testing.assert_array_equal(y, want, name)
            if name == "as it is":
                assert report.lockstep == 11 and sum(counts) > 100
                assert asides and not any(asides)
