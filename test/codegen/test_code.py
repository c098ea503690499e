"""From a planned kernel with roles to SASS: what the assembler and disassembler say about it."""

from __future__ import annotations

import re

import pytest

from tcir import codegen
from tcir._mlir import ir
from tcir.errors import Error, InputError, MissingDependencyError, UnknownNameError

from .kernels import convert, lower, parsed
from .role_kernels import ShiftReuse

KERNELS = [
    ShiftReuse(),
    ShiftReuse(filter="fhwc", element="bf16", out="bf16", n_tile=48, k=40),
    ShiftReuse(c=16, r=1, s=5, pads=(0, 0, 2, 2), stages=1, out="f16"),
    ShiftReuse(c=72, k=100, n_tile=64, s=1, pads=(1, 1, 0, 0), filter="fhwc"),
]


def _ptx(kernel: ShiftReuse) -> str:
    with parsed(kernel.text()) as module:
        lower(module)
        return codegen.emit_ptx(codegen.translate(module))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_counts_in_sass_are_those_of_the_program(kernel: ShiftReuse) -> None:
    cubin = codegen.assemble(_ptx(kernel))
    counts = codegen.sass_counts(codegen.disassemble(cubin.data))
    slices = (64 if kernel.c > 32 else 32 if kernel.c > 16 else 16) // 16
    assert counts["UTCHMMA"] == slices * kernel.s
    assert counts.get("UTCHMMA.ASHIFT", 0) == slices * (kernel.s - 1)
    assert counts["UTCCP"] == slices
    assert counts["UTCBAR"] == 2
    assert counts["LDTM"] >= 1
    assert cubin.spill_bytes == 0
    assert cubin.registers <= 64
    assert cubin.shared_bytes == 0  # all of it is dynamic


def test_a_dropped_ashift_is_one_less() -> None:
    whole, broken = (
        codegen.sass_counts(codegen.disassemble(codegen.assemble(_ptx(kernel)).data))
        for kernel in (ShiftReuse(), ShiftReuse(drop_ashift=True))
    )
    assert whole["UTCHMMA.ASHIFT"] - broken["UTCHMMA.ASHIFT"] == 1
    assert whole["UTCHMMA"] == broken["UTCHMMA"]


def test_ptx_is_8_8_for_sm_100a_and_carries_source_lines() -> None:
    ptx = _ptx(ShiftReuse())
    assert ".version 8.8" in ptx and ".target sm_100a\n" in ptx
    assert re.search(r"\.loc\s+1 \d+ \d+", ptx)
    assert ".extern .shared .align 1024 .b8 smem[];" in ptx
    assert ".param .align 64 .b8 f_param_0[128]" in ptx


def test_loaded_registers_are_not_used_before_the_wait() -> None:
    ptx = _ptx(ShiftReuse(out="f16"))
    load = re.search(r"tcgen05\.ld\S+ \{([^}]*)\}", ptx)
    assert load is not None
    between = ptx[load.end() : ptx.index("tcgen05.wait::ld", load.end())]
    for register in load[1].split(", "):
        assert not re.search(rf"{re.escape(register)}\b", between), between


def test_stores_are_as_wide_as_the_pitch_allows() -> None:
    def stores(kernel: ShiftReuse) -> set[str]:
        return set(re.findall(r"st\.global(\S*)", _ptx(kernel)))

    assert stores(ShiftReuse(k=32)) == {".v2.b64"}
    assert stores(ShiftReuse(k=36, n_tile=48, filter="fhwc", out="f16")) == {".b64"}
    assert stores(ShiftReuse(k=38, n_tile=48, filter="fhwc", out="f16")) == {".b32"}
    assert stores(ShiftReuse(k=33, n_tile=48, filter="fhwc", out="f16")) == {".b16"}
    assert stores(ShiftReuse(k=33, n_tile=48, filter="fhwc")) == {".b32"}


ADDRESS = r"getelementptr %arg2\[%\d+\] : \(!llvm.ptr<1>, i64\)"


def test_byte_offsets_are_64_bits_wide_only_where_2_gib_can_be_passed() -> None:
    small = ShiftReuse(h=5)
    large = ShiftReuse(h=500_000)  # 5e5 * 40 * 32 * 4 bytes
    for kernel, wide in ((small, False), (large, True)):
        with parsed(kernel.text()) as module:
            convert(module)
            wide_index = re.search(ADDRESS, str(module))
            assert bool(wide_index) == wide


def test_unlowered_module_is_refused_by_name() -> None:
    with parsed(ShiftReuse().text()) as module:
        with pytest.raises(InputError, match=r"expected exactly one gpu.module, got 0"):
            codegen.translate(module)
        convert(module)
        with pytest.raises(InputError, match=r"got 'arith.constant'"):
            codegen.translate(module)


def test_unknown_target_suggests_one() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'sm_100a'"):
        codegen.emit_ptx("", target="sm_100")


def test_an_intrinsic_the_back_end_does_not_know_is_an_error() -> None:
    with pytest.raises(Error, match=r"no instruction for llvm\.nvvm\.tcgen05\.made\.up"):
        codegen.emit_ptx(
            "declare void @llvm.nvvm.tcgen05.made.up()\n"
            "define ptx_kernel void @f() { call void @llvm.nvvm.tcgen05.made.up()\n ret void }"
        )


def test_llvm_that_does_not_parse_is_an_error_with_llvm_s_words() -> None:
    with pytest.raises(Error, match=r"(?s)emit_ptx: .*expected type"):
        codegen.emit_ptx("define void @f( {")


def test_ptxas_says_why_it_refuses() -> None:
    with pytest.raises(Error, match=r"ptxas rejected the kernel: .*Unknown modifier '.bogus'"):
        codegen.assemble(_ptx(ShiftReuse()).replace("tcgen05.mma.", "tcgen05.mma.bogus.", 1))


SETMAXNREG = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry f() {BOUND
{
  setmaxnreg.inc.sync.aligned.u32 240;
  ret;
}
"""


def test_a_directive_that_ptxas_ignores_is_an_error() -> None:
    with pytest.raises(Error, match=r"ptxas dropped something: .*setmaxnreg"):
        codegen.assemble(SETMAXNREG.replace("{BOUND", ""))
    assert codegen.assemble(SETMAXNREG.replace("{BOUND", ".maxnreg 128 .reqntid 384")).data


def test_missing_assembler_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcir.codegen import tools

    tools.find_tool.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="pip install nvidia-cuda-nvcc"):
        tools.find_tool("ptxas")
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(MissingDependencyError, match="Linux x86-64 and aarch64 only, got darwin"):
        tools.find_tool("ptxas")
    tools.find_tool.cache_clear()


def test_sass_counts() -> None:
    text = """
        /*0550*/                   UTCHMMA.ASHIFT tmem[UR14], gdesc[UR4], UPT ;
        /*0560*/              @!P1 UTCHMMA gdesc[UR4], gdesc[UR4], UPT ;
        /*10570*/             @UP0 UTCBAR [UR9], URZ ;
        /*0580*/                   IADD3 R1, R2, R3 ;  // UTCCP
    """
    assert codegen.sass_counts(text) == {"UTCBAR": 1, "UTCHMMA": 2, "UTCHMMA.ASHIFT": 1}


def test_two_kernels_in_one_module() -> None:
    two = ShiftReuse().text() + ShiftReuse(out="f16").text().replace("func.func @f", "func.func @g")
    with parsed(two) as module:
        lower(module)
        ptx = codegen.emit_ptx(codegen.translate(module))
    assert len(re.findall(r"\.visible \.entry", ptx)) == 2
    assert codegen.assemble(ptx).data
    assert ir.Context.current is None
