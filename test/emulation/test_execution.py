"""Emulated kernels on the simulated Hopper leave the bits that the originals leave on the simulated
Blackwell. On a GPU: `python -m tcir.testing.gpu --forms 800`."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.emulation import EmulatedLaunch, emulate
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


def both(form: Form) -> tuple[np.ndarray, np.ndarray]:
    """Tensor memory afterwards: of the machine, and of the emulation on the simulated Hopper."""
    shared, tensor = form.inputs()
    wanted, found = np.zeros_like(tensor), np.zeros_like(tensor)
    report = run_ptx(form.ptx, grid=1, dynamic_smem=SHARED,
                     args=[shared, tensor, Uninitialized(wanted)])  # fmt: skip
    assert report, report
    launch = EmulatedLaunch((1, 1, 1), (128, 1, 1), (1, 1, 1), SHARED)
    made = emulate(form.ptx, launch)
    report = run_ptx(
        made.ptx, grid=1, block=made.launch.block, dynamic_smem=made.launch.dynamic_smem,
        args=[shared, tensor, found], hazards="off",
    )  # fmt: skip
    assert report, report
    return wanted, found


def test_shift_moves_a_quarter() -> None:
    wanted, found = both(SHIFT)
    np.testing.assert_array_equal(found, wanted)
    _, tensor = SHIFT.inputs()
    assert (wanted[:8, :31] == tensor[:8, 1:32]).all() and (wanted[:, 31:] == tensor[:, 31:]).all()


@pytest.mark.slow
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


@pytest.mark.parametrize("element", ["bf16", pytest.param("tf32", marks=pytest.mark.slow)])
def test_near_zero_where_mma_sync_has_other_bits(element: str) -> None:
    kind = "tf32" if element == "tf32" else "f16"
    form = Form(kind=kind, a=element, b=element, n=16, add=False, tiny=True)
    wanted, found = both(form)
    np.testing.assert_array_equal(found, wanted)
    assert np.unique(wanted[:16]).size > 100


@pytest.mark.slow
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
