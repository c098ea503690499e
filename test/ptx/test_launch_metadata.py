"""What tc-run takes from the files beside the PTX: Triton's, CuTe DSL's; and from directives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.machine import TensorMap
from tcir.ptxrun.command import main
from tcir.ptxrun.metadata import LaunchMetadata, launch_metadata
from tcir.ptxrun.tensor_descriptors import Pixels, descriptor
from tcir.run import LaunchError

from .conftest import HEADER

# Two pointers behind the user's one, as Triton appends them; each CTA adds to its own scratch.
KERNEL = """
.visible .entry twice(.param .u64 out, .param .u64 scratch, .param .u64 profile)
{
  .reg .b64 %rd<6>; .reg .b32 %r<6>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [scratch];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r4;
  ld.global.u32 %r5, [%rd4];
  add.s64 %rd5, %rd1, %rd3;
  st.global.u32 [%rd5], %r5;
  ret;
}
"""
TRITON = {"name": "twice", "num_warps": 2, "warp_size": 32, "num_ctas": 1, "shared": 48,
          "global_scratch_size": 256, "profile_scratch_size": 0}  # fmt: skip
CUTE = """
  func.func @host(%arg0: i64) -> i32 {
    %c2_i32 = arith.constant 2 : i32
    %c1_i32 = arith.constant 1 : i32
    %c64_i32 = arith.constant 64 : i32
    %c96_i64 = arith.constant 96 : i64
    %3 = cuda.launch_cfg.create<max_attrs = 17 : i32> (blockDim = (%c64_i32, %c1_i32, %c1_i32), \
dynamicSmemBytes = SMEM, gridDim = (%c2_i32, GRID_Y, %c1_i32), stream = %2) : i32
    cuda.launch_cfg.cluster_dim[%3] (%c2_i32, %c1_i32, %c1_i32) : i32
    %4 = cuda.launch_ex @kernels::@twice<%3> (%arg0)
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "twice.sm_100a.ptx"
    path.write_text(HEADER + KERNEL)
    return path


def triton(path: Path, **changed: Any) -> LaunchMetadata:
    path.with_suffix(".json").write_text(json.dumps(TRITON | changed))
    return launch_metadata(path, path.read_text(), None)


def cute(path: Path, smem: str = "%c96_i64", grid_y: str = "%c1_i32") -> LaunchMetadata:
    text = CUTE.replace("SMEM", smem).replace("GRID_Y", grid_y)
    path.with_name("cute_dsl_twice_clean.mlir").write_text(text)
    return launch_metadata(path, path.read_text(), None)


def test_triton(kernel: Path) -> None:
    known = triton(kernel, num_ctas=2)
    assert (known.entry, known.block, known.cluster) == ("twice", (64, 1, 1), (2, 1, 1))
    assert (known.grid, known.dynamic_smem, known.scratch) == (None, 48, (256, 0))
    assert [a.nbytes for a in known.scratch_arguments(1, ctas=3)] == [768, 8]
    assert known.scratch_arguments(3, ctas=3) == []


def test_triton_from_the_shell(kernel: Path, tmp_path: Path, capsys: Any) -> None:
    triton(kernel)
    out = tmp_path / "out.npy"
    command = [str(kernel), "--arg", "zeros=u32,128", "--save", f"0={out}"]
    assert main(command) == 3
    assert "--grid" in capsys.readouterr().err
    assert main([*command, "--grid", "2"]) == 0
    assert (np.load(out) == np.arange(128)).all()
    assert "block 64,1,1" in capsys.readouterr().err
    assert main([*command, "--grid", "2", "--block", "32"]) == 0  # the command line goes first
    assert (np.load(out)[64:] == 0).all()


def test_files_that_do_not_fit(kernel: Path) -> None:
    with pytest.raises(LaunchError, match="num_warps"):
        triton(kernel, num_warps="four")
    with pytest.raises(LaunchError, match="entry"):
        triton(kernel, name="another")
    other = kernel.with_suffix(".json")
    other.write_text('{"block": [7, 1, 1]}')  # somebody else's: passed over
    assert launch_metadata(kernel, kernel.read_text(), None).block is None
    other.write_text("{")
    with pytest.raises(LaunchError, match="remove it"):
        launch_metadata(kernel, kernel.read_text(), None)


def test_cute(kernel: Path) -> None:
    known = cute(kernel)
    assert (known.grid, known.block, known.cluster) == ((2, 1, 1), (64, 1, 1), (2, 1, 1))
    assert (known.entry, known.dynamic_smem, known.unknown) == ("twice", 96, None)
    assert cute(kernel, grid_y="%7").grid is None


def test_shared_memory_that_cute_does_not_say(kernel: Path, capsys: Any) -> None:
    assert cute(kernel, smem="%0").dynamic_smem is None
    command = [str(kernel), *["--arg", "zeros=u32,128"] * 3]
    assert main(command) == 3
    assert "--dynamic-smem" in capsys.readouterr().err
    assert main([*command, "--dynamic-smem", "0"]) == 0


def test_directives_of_the_entry() -> None:
    sized = (HEADER + KERNEL).replace("\n{", "\n.reqntid 64\n.reqnctapercluster 2\n{")
    known = launch_metadata(None, sized, None)
    assert (known.block, known.cluster) == ((64, 1, 1), (2, 1, 1))


# --- tensor descriptors --------------------------------------------------------------------------

# A tile of 4 x 8 halves at row 2, column 8; behind it what the descriptor's other parameters are.
TILE = """
.visible .entry tile(.param .align 64 .b8 map[128], .param .u32 rows, .param .u32 columns,
 .param .u64 row, .param .u64 column, .param .u64 out, .param .u64 scratch, .param .u64 profile)
{
  .reg .b32 %r<12>; .reg .b64 %rd<10>; .reg .pred %p<4>;
  .shared .align 128 .b8 data[64]; .shared .align 8 .b64 full;
  mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r2, data; mov.u32 %r3, full; ld.param.u64 %rd1, [out];
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
READY:
  bar.sync 0;
  @%p1 bra WAIT;
  mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2; mov.b32 %r4, 8; mov.b32 %r5, 2;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 64;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
    [%r2], [%rd2, {%r4, %r5}], [%r3];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
  @!%p2 bra WAIT;
  shl.b32 %r6, %r1, 2; add.u32 %r7, %r2, %r6;
  setp.ge.u32 %p3, %r1, 16;
  cvt.u64.u32 %rd3, %r6; add.s64 %rd3, %rd1, %rd3;
  @%p3 bra REST;
  ld.shared.u32 %r8, [%r7]; st.global.u32 [%rd3], %r8;
REST:
  @%p1 bra END;
  ld.param.u32 %r9, [rows]; st.global.u32 [%rd1+64], %r9;
  ld.param.u32 %r10, [columns]; st.global.u32 [%rd1+68], %r10;
  ld.param.u64 %rd4, [row]; st.global.u64 [%rd1+72], %rd4;
  ld.param.u64 %rd5, [column]; st.global.u64 [%rd1+80], %rd5;
END: ret;
}
"""
META = {"swizzle": 0, "elem_size": 2, "elem_type": 6, "block_size": [4, 8], "fp4_padded": False}


@pytest.fixture
def tile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.arange(6 * 24, dtype=np.float16).reshape(6, 24))
    path = tmp_path / "tile.ptx"
    path.write_text(HEADER + TILE)
    meta = {"name": "tile", "num_warps": 1, "shared": 0, "tensordesc_meta": [META],
            "target": {"backend": "cuda", "arch": 100, "warp_size": 32}, "launch_pdl": False,
            "global_scratch_size": 0, "profile_scratch_size": 0}  # fmt: skip
    path.with_suffix(".json").write_text(json.dumps(meta))
    return path


def test_a_descriptor_is_a_map_shape_and_strides(tile: Path, capsys: Any) -> None:
    command = [str(tile), "--grid", "1", "--arg", "desc=x.npy", "--arg", "zeros=u32,22"]
    assert main([*command, "--save", "5=out.npy", "--save", "0=again.npy"]) == 0, (
        capsys.readouterr()
    )
    out, x = np.load("out.npy"), np.load("x.npy")
    assert (out[:16].view(np.float16).reshape(4, 8) == x[2:6, 8:16]).all()
    assert out[16:18].tolist() == [6, 24] and out[18:].view(np.int64).tolist() == [24, 1]
    assert (np.load("again.npy") == x).all()


@pytest.mark.parametrize(
    ("arguments", "changed", "words"),
    [
        (["desc=x.npy", "desc=x.npy"], {}, "expected at most 1 descriptors"),
        (["desc=f32=1"], {}, "expected an array, got a scalar"),
        (["desc=zeros=f32,6x24"], {}, "expected an array of 2 dimensions and 2 bytes"),
        (["desc=zeros=f16,144"], {}, "expected an array of 2 dimensions and 2 bytes"),
        (["desc=x.npy"], {"is_im2col": True}, "has is_im2col, so it does not describe a tile"),
        (["desc=x.npy"], {"swizzle": "128B"}, "swizzle: expected numbers"),
        (["desc=x.npy"], {"swizzle": 4}, "unknown swizzle"),
        (["desc=x.npy"], {"block_size": [4, 512]}, "box"),
    ],
)
def test_descriptors_that_do_not_fit(
    arguments: list[str], changed: dict[str, Any], words: str, tile: Path, capsys: Any
) -> None:
    beside = tile.with_suffix(".json")
    known = json.loads(beside.read_text())
    known["tensordesc_meta"] = [META | changed]
    beside.write_text(json.dumps(known))
    flags = [word for text in arguments for word in ("--arg", text)]
    assert main([str(tile), "--grid", "1", *flags, "--arg", "zeros=u32,22"]) == 3
    assert words in capsys.readouterr().err


def test_the_fields_of_a_map() -> None:
    x = np.zeros((3, 40, 64), np.uint8)
    meta = {"swizzle": 3, "elem_size": 1, "elem_type": 14, "block_size": [1, 16, 128],
            "fp4_padded": True}  # fmt: skip
    tensor_map, *rest = descriptor(x, 0, [meta])
    fields = tensor_map.fields  # type: ignore[union-attr]
    assert (fields.dtype, fields.swizzle) == ("u4_align16b", "128B")
    assert (fields.dims, fields.strides_bytes) == ((128, 40, 3), (64, 2560))
    assert fields.box == (128, 16, 1)
    assert rest == [3, 40, 64, 2560, 64, 1]
    assert [type(n).__name__ for n in rest] == ["int32"] * 3 + ["int64"] * 3


def test_the_fields_of_a_map_of_pixels() -> None:
    """Triton has the outermost dimension first: N, H, W, C, and H, W of corners."""
    x = np.zeros((2, 9, 11, 64), np.float16)
    meta = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [32, 64],
            "fp4_padded": False, "is_im2col": True}  # fmt: skip
    pixels = Pixels([-1, -2], [-3, -4], [1, 2, 3, 1])
    tensor_map, *rest = descriptor(x, 0, [meta], pixels=pixels)
    want = TensorMap.im2col(
        x, dtype="f16", dims=[64, 11, 9, 2], strides_bytes=[128, 128 * 11, 128 * 99],
        lower_corner=[-2, -1], upper_corner=[-4, -3], channels_per_pixel=64, pixels_per_column=32,
        element_strides=[1, 3, 2, 1], swizzle="128B",
    )  # fmt: skip
    assert tensor_map.fields == want.fields  # type: ignore[union-attr]
    assert rest == [2, 9, 11, 64, 64 * 99, 64 * 11, 64, 1]
    with pytest.raises(LaunchError, match="expected an array of 4 dimensions and 2 bytes"):
        descriptor(x[0], 0, [meta], pixels=pixels)
    with pytest.raises(LaunchError, match="has is_im2col, so it does not describe a tile"):
        descriptor(x, 0, [meta])


def test_what_newer_and_older_files_say(kernel: Path) -> None:
    known = triton(kernel, cluster_dims=[2, 1, 1], launch_pdl=True)
    assert known.cluster == (2, 1, 1) and known.programmatic
    assert triton(kernel, cluster_dims=[1, 1, 1], num_ctas=4).cluster == (4, 1, 1)
    with pytest.raises(LaunchError, match="cluster_dims"):
        triton(kernel, cluster_dims=[2])
    with pytest.raises(LaunchError, match="tensordesc_meta"):
        triton(kernel, tensordesc_meta={"swizzle": 1})
