"""What tc-run takes from the files beside the PTX: Triton's, CuTe DSL's; and from directives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.ptxrun.command import main
from tcir.ptxrun.metadata import LaunchMetadata, launch_metadata
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
