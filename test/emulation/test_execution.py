"""Emulated kernels on the simulated Hopper leave the bits that the originals leave on the simulated
Blackwell. On a GPU: `python -m tcir.testing.gpu --forms 800`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tcir.emulation import EmulatedLaunch, emulate
from tcir.emulation.rewriting import MOST_SHARED
from tcir.emulation.sequence import BOX, RESERVED
from tcir.run import Uninitialized, run_ptx
from tcir.testing.forms import SHARED, Form, random_form

SHIFT = Form(instruction="tcgen05.shift.cta_group::1.down [{d}];")
CORE = [
    Form(a="bf16", b="bf16", n=16, a_major="MN", b_major="MN", a_swizzle="64B", b_swizzle="32B"),
    Form(a_major="MN", b_major="MN", a_swizzle="NONE", b_swizzle="NONE", n=40, negate_a=True,
         mask=(1, 2, 4, 1 << 31)),
    Form(kind="tf32", a="tf32", b="tf32", n=16, a_major="MN", a_swizzle="128B_ATOM_32B"),
    Form(kind="i8", a="u8", b="s8", d="s32", n=16, saturate=True, wild=True, b_major="MN"),
    Form(ws=True, m=32, n=64, in_tmem=True, b_major="MN"),
    random_form(97), random_form(116),  # of bf16 and tf32, any bits
]  # fmt: skip
"""What mma.sync computes, in part or in whole."""
FORMS = [
    Form(m=64, n=8, wild=True),
    Form(kind="i8", a="u8", b="s8", d="s32", n=8, saturate=True, wild=True),
    Form(kind="mxf4nvf4", a="e2m1", b="e2m1", n=8, scales=4, scale_type="ue4m3"),
    Form(kind="mxf8f6f4", a="e4m3", b="e2m3", n=8, scales=1, in_tmem=True),
    Form(kind="tf32", a="tf32", b="tf32", n=8, sparse=True, b_swizzle="64B"),
    Form(in_tmem=True, ashift=True, n=8, mask=(1, 2, 4, 1 << 31)),
]
COPIES = [
    ("128x256b", 0), ("4x256b", 3), ("128x128b", 0), ("64x128b.warpx2::02_13", 0),
    ("64x128b.warpx2::01_23", 0), ("32x128b.warpx4", 0),
    ("128x256b.b8x16.b4x16_p64", 0), ("128x128b.b8x16.b6x16_p32", 0),
]  # fmt: skip


def both(form: Form, left: int = 1 << 20) -> tuple[np.ndarray, np.ndarray]:
    """Tensor memory afterwards: of the machine, and of the emulation on the simulated Hopper.

    left: bytes of shared memory that the launch leaves. Where it leaves none for the box, this is
    behind the kernel's own here, since the machine has no reserved shared memory.
    """
    shared, tensor = form.inputs()
    wanted, found = np.zeros_like(tensor), np.zeros_like(tensor)
    report = run_ptx(
        form.ptx, grid=1, dynamic_smem=SHARED, args=[shared, tensor, Uninitialized(wanted)]
    )
    assert report, report
    static = 24
    size = max(SHARED, MOST_SHARED - static - left)
    made = emulate(form.ptx, EmulatedLaunch((1, 1, 1), (128, 1, 1), (1, 1, 1), size))
    text, bytes_made = made.ptx, made.launch.dynamic_smem
    assert (RESERVED in text) == (bytes_made == size)
    if bytes_made == size:
        text, bytes_made = text.replace(RESERVED, f"tiles+{SHARED}"), SHARED + BOX
    report = run_ptx(
        text,
        grid=1,
        block=made.launch.block,
        dynamic_smem=bytes_made,
        args=[shared, tensor, found],
    )
    assert report, report
    return wanted, found


def test_shift_moves_a_quarter() -> None:
    wanted, found = both(SHIFT)
    np.testing.assert_array_equal(found, wanted)
    _, tensor = SHIFT.inputs()
    assert (wanted[:8, :31] == tensor[:8, 1:32]).all() and (wanted[:, 31:] == tensor[:, 31:]).all()


@pytest.mark.parametrize("form", [*CORE, *FORMS], ids=str)
def test_products(form: Form) -> None:
    wanted, found = both(form)
    np.testing.assert_array_equal(found, wanted)
    assert (wanted[: form.n] != form.inputs()[1][: form.n]).any()


def test_a_product_on_the_tensor_cores_of_the_gpu() -> None:
    form = Form(n=8)
    wanted, found = both(form)
    np.testing.assert_array_equal(found, wanted)
    assert (wanted[:8] != form.inputs()[1][:8]).any()


@pytest.mark.parametrize("left", [BOX, 0])
def test_commands_behind_tensor_memory(left: int) -> None:
    wanted, found = both(Form(n=8), left)
    np.testing.assert_array_equal(found, wanted)


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ex2.approx.ftz.f32": np.exp2,
    "lg2.approx.f32": np.log2,
    "tanh.approx.f32": np.tanh,
    "rsqrt.approx.f32": lambda x: 1 / np.sqrt(x),
    "rcp.approx.f32": lambda x: 1 / x,
    "sqrt.approx.f32": np.sqrt,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_defined_functions_are_those_of_f64_rounded_once(name: str) -> None:
    rng = np.random.default_rng(0)
    special = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-40, -1e-40, 3e38, -3e38, 0.17, 130, -150]
    x = np.array([*special, *rng.normal(size=50), *rng.uniform(-126, 127, 32)], np.float32)
    x = np.concatenate([x, np.exp2(rng.uniform(-140, 127, 128 - x.size)).astype(np.float32)])
    text = f""".version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 given, .param .u64 out)
{{
 .reg .b32 %r<4>; .reg .b64 %rd<5>;
 mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
 ld.param.u64 %rd1, [given]; ld.param.u64 %rd2, [out];
 add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
 ld.global.b32 %r2, [%rd1]; {name} %r3, %r2; st.global.b32 [%rd2], %r3; ret;
}}
"""
    made = emulate(text, EmulatedLaunch((1, 1, 1), (128, 1, 1)), defined=True)
    assert "approx" not in made.ptx.split(".entry")[1]
    found = np.zeros_like(x)
    assert run_ptx(made.ptx, grid=1, block=128, args=[x, found])
    with np.errstate(all="ignore"):
        given = np.where(np.abs(x) < 2**-126, np.copysign(0, x), x) if ".ftz" in name else x
        wanted = FUNCTIONS[name](given.astype(np.float64))
        if ".ftz" in name:
            wanted = np.where(np.abs(wanted) < 2**-126, 0, wanted)
        wanted = wanted.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(found[numbers].view(np.uint32), wanted[numbers].view(np.uint32))
    assert (found[np.isnan(found)].view(np.uint32) == 0x7FFFFFFF).all()


@pytest.mark.parametrize("element", ["bf16", "tf32"])
def test_near_zero_where_mma_sync_has_other_bits(element: str) -> None:
    kind = "tf32" if element == "tf32" else "f16"
    form = Form(kind=kind, a=element, b=element, n=16, add=False, tiny=True)
    wanted, found = both(form)
    np.testing.assert_array_equal(found, wanted)
    assert np.unique(wanted[:16]).size > 100


@pytest.mark.parametrize(("shape", "lane"), COPIES)
def test_copies(shape: str, lane: int) -> None:
    at = f"{{d}}+{lane << 16}" if lane else "{d}"
    form = Form(instruction=f"tcgen05.cp.cta_group::1.{shape} [{at}], {{a}};")
    wanted, found = both(form)
    np.testing.assert_array_equal(found, wanted)
    assert (wanted != form.inputs()[1]).any()


def test_random_forms_repeat() -> None:
    forms = [random_form(seed) for seed in range(50)]
    assert forms == [random_form(seed) for seed in range(50)]
    assert len({form.ptx for form in forms}) == 50
