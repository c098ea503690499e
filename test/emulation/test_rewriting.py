"""What becomes of PTX for sm_100a, and what is refused, by name and before any launch."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tcir.emulation import EmulatedLaunch, EmulationError, emulate, emulate_all
from tcir.emulation.rewriting import MOST_SHARED, MOST_THREADS, PLACE_BYTES, SMS
from tcir.emulation.sequence import BOX, COMMANDS, PREFIX
from tcir.interp.ptx.parser import parse
from tcir.tools.dev import emulation_ptx

HEAD = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 16 .b8 tiles[];
.visible .entry k(.param .u64 out)
"""
ALLOC = """
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tiles], 32;
 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
"""
ONE = EmulatedLaunch((1, 1, 1), (128, 1, 1))


def _kernel(body: str, directives: str = "") -> str:
    registers = (
        ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h<4>; .reg .b8 %b<4>;"
    )
    return f"{HEAD}{directives}{{\n {registers}{ALLOC}{body}\n ret;\n}}\n"


def _body(ptx: str) -> str:
    """Behind the prologue."""
    return ptx.split("$tcir_emulation_program:", 1)[1]


def test_the_shipped_code_is_made_of_the_source() -> None:
    assert emulation_ptx.PTX.read_text().splitlines()[0] == emulation_ptx.header()


def test_the_launch_has_the_helpers_and_their_box() -> None:
    made = emulate(
        _kernel("", ".reqntid 96, 1, 1\n"), EmulatedLaunch((3, 1, 1), (96, 1, 1), (1, 1, 1), 1000)
    )
    assert made.launch.block == (96 + 128, 1, 1) and made.launch.grid == (3, 1, 1)
    assert made.launch.dynamic_smem == 1008 + BOX + COMMANDS
    function = parse(made.ptx).functions["k"]
    assert function.reqntid == (224, 1, 1)
    assert parse(made.ptx).target == "sm_90a"


def test_a_barrier_of_all_threads_counts_those_of_the_program() -> None:
    text = _body(
        emulate(
            _kernel("bar.sync 0; barrier.sync 3, 64; bar.red.popc.u32 %r1, 1, %p1;"),
            EmulatedLaunch((1, 1, 1), (100, 1, 1)),
        ).ptx
    )
    assert "bar.sync 0, 128;" in text
    assert "barrier.sync 3, 64;" in text
    assert "bar.red.popc.u32 %r1, 1, 128, %p1;" in text


def test_sizes_are_those_that_the_program_would_see() -> None:
    body = "mov.u32 %r1, %ntid.x; mov.u32 %r2, %ntid.y; mov.u32 %r3, %nwarpid; mov.u32 %r4, %tid.y;"
    text = _body(emulate(_kernel(body), EmulatedLaunch((1, 1, 1), (32, 4, 1))).ptx)
    assert "mov.u32 %r1, 32;" in text and "mov.u32 %r2, 4;" in text and "mov.u32 %r3, 4;" in text
    assert "%tid.y" not in text


def test_lines_stay_where_they_are() -> None:
    given = _kernel("\n bar.sync 0;\n mov.u32 %r1, 7;")
    behind = len(given.split("mov.u32 %r1, 7;")[0].split("bar.sync")[1].splitlines())
    made = emulate(given, ONE).ptx
    assert len(made.split("mov.u32 %r1, 7;")[0].split("bar.sync 0, 128")[1].splitlines()) == behind


def test_other_kernels_of_the_module_are_left_out() -> None:
    two = _kernel("") + ".visible .entry other()\n{\n ret;\n}\n"
    assert set(parse(emulate(two, ONE, "k").ptx).functions) >= {"k"}
    assert "other" not in parse(emulate(two, ONE, "k").ptx).functions
    with pytest.raises(ValueError, match="expected its name, one of k, other"):
        emulate(two, ONE)


def test_a_kernel_without_a_tensor_core_keeps_its_threads() -> None:
    plain = f"{HEAD}{{\n .reg .b64 %rd<4>;\n add.rn.f32x2 %rd1, %rd2, %rd3;\n ret;\n}}\n"
    made = emulate(plain, ONE)
    assert made.launch == ONE and "f32x2" not in made.ptx.split(".entry k")[1]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("tcgen05.mma.cta_group::1.kind::f4 [%r1], %rd1, %rd2, %r2, %p1;", "expected a kind of"),
        ("tcgen05.cp.cta_group::1.99x1b [%r1], %rd1;", "expected a shape of 128x256b"),
        ("tcgen05.ld.red.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];", "expected no .red"),
        ("mov.u32 %r1, %total_smem_size;", "expected no %total_smem_size"),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes"
         ".cta_group::2 [%r1], [%rd1, {%r1, %r2, %r3, %r4, %r5}], [%r2];",
         "expected no multicast and no .cta_group::2 with four rows"),
        ("cp.async.bulk.tensor.3d.shared::cta.global.im2col::w::128.mbarrier::complete_tx::bytes "
         "[%r1], [%rd1, {%r1, %r2, %r3}], [%r2], {%h1, %h2};", "expected no .im2col::w and no"),
    ],
)  # fmt: skip
def test_what_is_not_emulated_is_named(body: str, words: str) -> None:
    with pytest.raises(EmulationError, match=rf"line \d+: .*{re.escape(words)}"):
        emulate(_kernel(body), ONE)


def test_too_many_threads() -> None:
    with pytest.raises(
        EmulationError, match="expected at most 896 threads, got 1024: 128 more emulate"
    ):
        emulate(_kernel(""), EmulatedLaunch((1, 1, 1), (MOST_THREADS, 1, 1)))


@pytest.mark.parametrize(
    ("left", "bytes_more", "reserved", "behind"),
    [
        (BOX + COMMANDS, BOX + COMMANDS, False, 1),
        (BOX + COMMANDS - 16, BOX, False, 0),
        (BOX, BOX, False, 0),
        (BOX - 16, 0, True, 0),
        (0, 0, True, 0),
    ],
)
def test_commands_and_box_are_where_the_launch_leaves_room(
    left: int, bytes_more: int, reserved: bool, behind: int
) -> None:
    size = MOST_SHARED - left
    made = emulate(_kernel(""), EmulatedLaunch((1, 1, 1), (128, 1, 1), (1, 1, 1), size))
    assert made.launch.dynamic_smem == size + bytes_more
    assert ("%reserved_smem_offset_1" in made.ptx) == reserved
    start = made.ptx.split(f"call {PREFIX}start")[0]
    assert start.endswith(f"_5], {behind}; ")
    body = "mov.u32 %r1, %reserved_smem_offset_1;"
    if reserved:
        with pytest.raises(EmulationError, match=r"expected no %reserved_smem_offset_1, got it"):
            emulate(_kernel(body), EmulatedLaunch((1, 1, 1), (128, 1, 1), (1, 1, 1), size))


@pytest.mark.parametrize("group", [1, 2])
def test_allocations_of_a_pair_meet(group: int) -> None:
    alloc = f"tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%r1], 64;"
    launch = EmulatedLaunch((2, 1, 1), (128, 1, 1), (2, 1, 1))
    text = _body(emulate(_kernel(f"\n{alloc}"), launch).ptx).splitlines()
    (line,) = (each for each in text if "64;" in each and "_alloc" in each)
    assert f"_4], {group - 1};" in line


def test_large_grids_have_tensor_memory_by_sm() -> None:
    def places(ctas: int, shared: int) -> int:
        made = emulate(_kernel(""), EmulatedLaunch((ctas, 1, 1), (128, 1, 1), (1, 1, 1), shared))
        found = re.search(rf"{PREFIX}memory\[(\d+)\]", made.ptx)
        assert found is not None
        return int(found[1]) // PLACE_BYTES

    assert places(3, 0) == 3
    assert places(144, 200000) == 144
    assert places(100000, 200000) == SMS  # one CTA an SM
    assert places(100000, 0) == 8 * SMS  # of 256 threads each


def test_a_multicast_of_a_pair_is_a_copy_for_each_cta() -> None:
    body = (
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%r1], [%rd1+128, {%r2, 7}], [%r6], %h1, %rd2;"
    )
    launch = EmulatedLaunch((8, 1, 1), (128, 1, 1), (4, 1, 1))
    text = _body(emulate(_kernel(body), launch).ptx)
    assert "multicast" not in text and "cta_group::2" not in text
    (copy,) = re.findall(r"cp.async.bulk.tensor\S+ (.*?);", text)
    assert re.fullmatch(r"\[%\w+\], \[%\w+, \{%r2, 7\}\], \[%\w+\], %rd2", copy)
    assert re.search(r"setp.lt.u32 %\w+, %\w+, 4;", text)  # so many CTAs


NAMES = ["exp2", "log2", "tanh", "rsqrt"]


LOAD = (
    "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes "
    "[%r1], [%rd1, {%r2, %r3}], [%r6];"
)
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r2, %r3}], [%r1];"


@pytest.mark.parametrize("copy", [LOAD, STORE])
def test_coordinates_of_narrow_elements_are_scaled_where_the_map_says_so(copy: str) -> None:
    text = _body(emulate(_kernel(copy), ONE, narrow=True).ptx)
    (column,) = re.findall(r"\{(%\w+), %r3\}", text)
    assert f"selp.b32 {column}, {column}, %r2, %tcir_emulation_has" in text
    assert copy in _body(emulate(_kernel(copy), ONE).ptx)


def test_narrow_elements_are_refused_where_no_helper_is() -> None:
    rows = (
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
        "[%rd1, {%r2, %r3, 7, %r4, %r5}], [%r1];"
    )
    words = "expected no maps of narrow elements in copies of four rows"
    with pytest.raises(EmulationError, match=words):
        emulate(_kernel(rows), ONE, narrow=True)
    with pytest.raises(EmulationError, match=words):
        emulate(_kernel(LOAD).replace(ALLOC, ""), ONE, narrow=True)


def test_defined_bits_have_no_approximations_and_no_fused_sums() -> None:
    body = (
        "ex2.approx.ftz.f32 %r1, %r2; lg2.approx.f32 %r1, %r2; rsqrt.approx.ftz.f32 %r1, %r2; "
        "tanh.approx.bf16x2 %r1, %r2; ex2.approx.f16 %h1, %h2; rcp.approx.ftz.f32 %r1, %r2; "
        "sqrt.approx.f32 %r1, %r2; div.full.f32 %r1, %r2, %r3; mul.ftz.f32 %r1, %r2, %r3; "
        "add.rz.f32 %r1, %r2, %r3; add.s32 %r1, %r2, %r3; sub.f32x2 %rd1, %rd2, %rd3;"
    )
    text = _body(emulate(_kernel(body), ONE, defined=True).ptx)
    assert not re.search(r"approx|full", text)
    assert [x for x in NAMES if f"{PREFIX}{x}" in text] == NAMES
    for each in ("rcp.rn.ftz.f32", "sqrt.rn.f32", "div.rn.f32", "mul.rn.ftz.f32", "add.rz.f32",
                 "add.s32", "sub.rn.f32"):  # fmt: skip
        assert f"{each} " in text, each
    plain = _body(emulate(_kernel(body), ONE).ptx)
    assert "ex2.approx.ftz.f32" in plain and " mul.ftz.f32" in plain


def test_another_target_needs_none() -> None:
    with pytest.raises(EmulationError, match=r"expected .target sm_100a or sm_100f, got sm_90a"):
        emulate(_kernel("").replace("sm_100a", "sm_90a").replace(ALLOC, ""), ONE)


@dataclass(frozen=True)
class Named:
    """A launch of a module with several kernels."""

    name: str
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (64, 1, 1)
    cluster: tuple[int, int, int] = (1, 1, 1)
    dynamic_smem: int = 0


def test_several_kernels_of_one_module() -> None:
    two = _kernel("") + ".visible .entry other()\n{\n bar.sync 0;\n ret;\n}\n"
    ptx, (first, second) = emulate_all(two, [Named("k"), Named("other")])
    assert (first.block, second.block) == ((192, 1, 1), (64, 1, 1))
    assert "bar.sync 0;" in ptx.split(".entry other")[1]


def test_a_kernel_that_is_launched_several_times_is_rewritten_once() -> None:
    small, large = Named("k"), Named("k", (5, 1, 1))
    ptx, made = emulate_all(_kernel(""), [small, large, small])
    assert ptx == emulate_all(_kernel(""), [large])[0]  # tensor memory for the largest grid
    assert [each.grid for each in made] == [(1, 1, 1), (5, 1, 1), (1, 1, 1)]
    assert {(each.block, each.dynamic_smem) for each in made} == {((192, 1, 1), BOX + COMMANDS)}
    with pytest.raises(EmulationError, match=r"equal block.*launches of @k.*one by one"):
        emulate_all(_kernel(""), [small, Named("k", block=(128, 1, 1))])


def test_four_rows_are_four_copies_one_behind_another() -> None:
    body = (
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
        ".cta_group::1 [%r1], [%rd1, {%r2, %r3, 7, %r4, %r5}], [%r6];\n"
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
        "[%rd1, {%r2, %r3, 7, %r4, %r5}], [%r1];"
    )
    text = _body(emulate(_kernel(body), ONE).ptx)
    assert re.findall(r"\[%rd1, \{%r2, (\S+)\}\]", text) == ["%r3", "7", "%r4", "%r5"] * 2
    assert text.count("[%rd1+64]") == 2  # the bytes of a row
    assert "gather4" not in text and "scatter4" not in text and "cta_group" not in text


def test_only_what_is_called_is_declared() -> None:
    plain = emulate(f"{HEAD}{{\n ret;\n}}\n", ONE).ptx
    assert [*parse(plain).functions] == ["k"]
    tensor = parse(emulate(_kernel(""), ONE).ptx).functions
    assert {"tcir_emulation_work", "tcir_emulation_sum_row"} <= {*tensor}
    assert "tcir_emulation_narrow" not in tensor


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
@pytest.mark.parametrize(
    ("seed", "defined"), [(None, False), (1, False), (None, True)], ids=["", "fuzz", "defined"]
)
def test_every_rewritten_form_assembles(tmp_path: Path, seed: int | None, defined: bool) -> None:
    body = """
 fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4; redux.sync.max.abs.NaN.f32 %r1, %r2, -1;
 cvt.rn.satfinite.e2m1x2.f32 %b1, %r1, %r2; cvt.rn.f16x2.e2m1x2 %r3, %b1;
 cvt.rz.satfinite.ue8m0x2.f32 %h1, %r1, %r2; cvt.rn.bf16x2.ue8m0x2 %r3, %h1;
 max.f32 %r1, %r2, %r3, %r4; fma.rn.f32.f16 %r1, %h1, %h2, %r3;
 ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1+32];
 st.global.v4.b64 [%rd1], {%rd1, %rd2, %rd3, %rd4}; st.bulk.weak.shared::cta [%rd1], 64, 0;
 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; setmaxnreg.inc.sync.aligned.u32 64;
 @!%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];
 cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group
   [%rd1, {%r2, %r3, 7, %r4, %r5}], [%r1];
 @%p1 tcgen05.ld.sync.aligned.16x64b.x2.pack::16b.b32 {%r1, _}, [%r2];
 tcgen05.st.sync.aligned.16x64b.x2.unpack::16b.b32 [%r2], {%r1, %r3};
 @%p2 bra X; tcgen05.wait::ld.sync.aligned; tcgen05.wait::st.sync.aligned;
X: tcgen05.wait::ld.sync.aligned; tcgen05.wait::st.sync.aligned;
 cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes
   .multicast::cluster.L2::cache_hint [%r1], [%rd1, {%r2, 7}], [%r6], %h1, %rd2;
 cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
   [%r1], [%rd1, {%r2, 7, %r3}], [%r6], {%h1};
 ex2.approx.ftz.f32 %r1, %r2; lg2.approx.f32 %r1, 0f40490FDB; rsqrt.approx.ftz.f32 %r1, %r2;
 tanh.approx.bf16x2 %r1, %r2; ex2.approx.f16 %h1, %h2; ex2.approx.ftz.bf16x2 %r1, %r2;
 rcp.approx.ftz.f32 %r1, %r2; sqrt.approx.f32 %r1, %r2; div.full.f32 %r1, %r2, %r3;
 ex2.approx.f16x2 %r1, %r2; lg2.approx.ftz.f32 %r1, %r2; mul.f32 %r1, %r2, %r3;
 sub.f16x2 %r1, %r2, %r3; add.ftz.f32 %r1, %r2, %r3; mul.f64 %rd1, %rd2, %rd3;
 @%p1 ret;
"""
    (tmp_path / "k.ptx").write_text(emulate(_kernel(body), ONE, seed=seed, defined=defined).ptx)
    command = ["ptxas", "-arch=sm_90a", tmp_path / "k.ptx", "-o", tmp_path / "k.cubin"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
