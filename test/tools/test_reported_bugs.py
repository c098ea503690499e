"""Bugs that readers of the first version reported: the command, its exit status, and what it says.

Each of them was a traceback, a hang, a wrong status, a wrong answer or a message that did not help.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from commands import CLOSED, UNREAD, Setting, run

ROOT = Path(__file__).parents[2]
F = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n"
PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
import tcir

@tcir.register_pass
@dataclass(frozen=True)
class Mine(tcir.Pass):
    name: ClassVar[str] = "{name}"

    def run(self, module) -> None:
        {body}
"""
ERASE = "for op in list(module.body.operations): op.erase()"
DIALECT = """
import tcir
from tcir.mlir import ext, ir
from tcir.dialect.base import Dialect
from tcir.dialect.operation import Op
from tcir.interp.tensor import evaluate

class My(Dialect, name="my"):
    "Of this page."

class Same(Op, dialect=My, name="same"):
    x: {field}
    y: ext.Result[ir.RankedTensorType]

@evaluate("my.same")
def same(interpreter, op, x):
    return {results}
"""
OPERAND = "ext.Operand[ir.RankedTensorType]"
UPSTREAM = """
from tcir.mlir import ext

class My(ext.Dialect, name="my"):
    pass

My.load()
"""
LOST = """
func.func @f(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "linalg.matmul"(%a, %a, %b) <{operandSegmentSizes = array<i32: 2, 1>}> ({
  ^bb0(%x: f32, %y: f32, %z: f32):
    %1 = "arith.mulf"(%x, %y) {mine} : (f32, f32) -> f32
    %2 = "arith.addf"(%z, %1) : (f32, f32) -> f32
    "linalg.yield"(%2) : (f32) -> ()
  }) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
"""
DEAD = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k()
{
 .reg .b32 %r<4>; .reg .pred %p<4>;
 .shared .align 8 .b64 full;
 .shared .align 8 .b64 done;
 mov.u32 %r1, %tid.x;
 setp.ne.u32 %p1, %r1, 0;
 @%p1 bra MEET;
 mbarrier.init.shared.b64 [full], 1;
 mbarrier.init.shared.b64 [done], 1;
MEET:
 bar.sync 0;
 @%p1 bra WAIT_DONE;
WAIT_FULL:
 mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
 @!%p2 bra WAIT_FULL;
 mbarrier.arrive.shared.b64 _, [done];
WAIT_DONE:
 mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;
 @!%p3 bra WAIT_DONE;
 ret;
}
"""
ALLOC = """.version {version}
.target {target}
.address_size 64
.visible .entry k()
{{
 .shared .align 8 .b32 where;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 32;
 ret;
}}
"""
COUNT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
 .reg .b32 %r<4>; .reg .b64 %rd<4>;
 ld.param.u64 %rd1, [out];
 ld.global.u32 %r1, [%rd1];
 add.u32 %r1, %r1, 1;
 st.global.u32 [%rd1], %r1;
 ret;
}
"""
DYNAMIC = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 16 .b8 buffer[];
.visible .entry k()
{
 .reg .b32 %r<4>;
 mov.u32 %r1, buffer;
 st.shared.u32 [%r1], %r1;
 ret;
}
"""
PRODUCT = (ROOT / "examples/matmul.mlir").read_text()
LARGE = re.sub(r"tensor<\d+x\d+x", "tensor<100000x100000x", PRODUCT)
WIDE = PRODUCT.replace("200x", "3x").replace("328x", "2147483647x").replace("136x", "8x")
TALL = PRODUCT.replace("200x", "8589934592x").replace("328x", "16x").replace("136x", "2x")
TALL = TALL.replace("xf16>", "xf8E4M3FN>")
CONVOLUTION = (ROOT / "examples/resnet50_conv2_3x3.mlir").read_text()
IMAGES = CONVOLUTION.replace("tensor<1x", "tensor<2147483647x")
TYPO = COUNT.replace(" ret;", " tcgen05.comit.cta_group::1.mbarrier::arrive::one.b64 [%rd1]; ret;")
MAP = {
    "array": "m.npy", "mode": "tiled", "dtype": "f16", "dims": [64, 128],
    "strides_bytes": [128], "box": [64, 128], "swizzle": "128B",
}  # fmt: skip


@cache
def _made() -> dict[str, bytes]:
    saxpy = (ROOT / "examples/saxpy.ptx").read_text()
    texts = {
        "f.mlir": F,
        "matmul.mlir": PRODUCT,
        "pretty.mlir": F.replace("return %a", '%b = tc.repack %a map="x" : tensor<4xf32>'),
        "deep.mlir": "module {" * 20000 + "}" * 20000,
        "canonicalize.py": PLUGIN.format(name="canonicalize", body="pass"),
        "prints.py": PLUGIN.format(name="mine", body="print('from my pass')"),
        "erases.py": PLUGIN.format(name="mine", body=ERASE),
        "divides.py": PLUGIN.format(name="mine", body="1 / 0"),
        "crashes.py": PLUGIN.format(name="mine", body="import os; os.kill(os.getpid(), 11)"),
        "dialect.py": DIALECT.format(field=OPERAND, results="[x]"),
        "array.py": DIALECT.format(field=OPERAND, results="x"),
        "field.py": DIALECT.format(field="object", results="[x]"),
        "upstream.py": UPSTREAM,
        "same.mlir": F.replace(
            "return %a", '%b = "my.same"(%a) : (tensor<4xf32>) -> tensor<4xf32>\n  return %b'
        ),
        "lost.mlir": LOST,
        "imports.py": "import json\nimport no_such_module\n",
        "saxpy.ptx": saxpy,
        "fma.ptx": saxpy.replace("fma.rn.f32", "fma.f32"),
        "reqntid.ptx": saxpy.replace(")\n{", ")\n.reqntid 128\n{"),
        "dead.ptx": DEAD,
        "count.ptx": COUNT,
        "lanes.ptx": COUNT.replace("add.u32 %r1, %r1, 1", "mov.u32 %r1, %tid.x"),
        "poison.ptx": COUNT.replace(" ld.param.u64 %rd1, [out];\n", ""),
        "sm_90.ptx": ALLOC.format(version="8.8", target="sm_90"),
        "sm_100.ptx": ALLOC.format(version="8.8", target="sm_100"),
        "old.ptx": ALLOC.format(version="7.0", target="sm_100a"),
        "typo.ptx": TYPO,
        "globl.ptx": COUNT.replace("st.global", "st.globl"),
        "dynamic.ptx": DYNAMIC,
        "large.mlir": LARGE,
        "conv.mlir": CONVOLUTION,
        "wide.mlir": WIDE,
        "tall.mlir": TALL,
        "images.mlir": IMAGES,
        "junk.bin": "\u00e4",
        "list.json": "[]",
    }
    return {name: text.encode("latin-1") for name, text in texts.items()} | {"empty": b""}


def _files(folder: Path) -> None:
    for name, data in _made().items():
        (folder / name).write_bytes(data)
    np.save(folder / "x.npy", np.arange(1, 1001, dtype="f4"))
    np.save(folder / "m.npy", np.ones((128, 64), "f2"))
    np.save(folder / "big.npy", np.arange(1000, dtype=">f4"))
    np.save(folder / "want.npy", np.zeros(1000, "f4"))
    np.savez(folder / "two.npz", a=np.ones(3), b=np.ones(2))
    (folder / "empty.npy").write_bytes(b"")
    (folder / "junk.npy").write_bytes(b"\xe4\x00junk")


S = "tc-run saxpy.ptx --grid 8 --block 128 --arg x.npy --arg zeros=f32,1000 --arg f32=1.5 "
U = S + "--arg u32=1000 "
ANY = "tc-run saxpy.ptx --grid 1 --block 32 --arg "


def tensor_map(**changes: object) -> str:
    return ANY + shlex.quote("map=" + json.dumps({**MAP, **changes}))


PLAIN = Setting()


@dataclass(frozen=True)
class Case:
    """A command, its status, a pattern of its standard error, and one of its standard output."""

    words: str
    status: int
    err: str = ""
    out: str = ""
    setting: Setting = PLAIN


FULL = Setting(stdout="/dev/full")
NO_STDOUT, NO_STDIN = Setting(stdout=CLOSED), Setting(stdin=CLOSED)
NO_READER, NO_STDERR = Setting(stdout=UNREAD), Setting(stderr=CLOSED)
CANNOT = "error: cannot write standard output: "

TC_RUN = {
    "a deadlock names its culprit first": Case(
        "tc-run dead.ptx --grid 1 --block 32", 1,
        out=r"lane 0 waits for parity 0 of mbarrier at full (?s:.*) lanes 1 to 31 wait"),
    "a first difference is no success": Case(
        U + "--break-at first-difference=1=want.npy", 1, out="argument 1 at"),
    "a stop is no success": Case(U + "--break-at 40", 2, out="stopped: breakpoint"),
    "tcgen05 for sm_90": Case("tc-run sm_90.ptx --grid 1 --block 32", 3,
        r"sm_90.ptx:7:2: .*got sm_90: ptxas refuses it"),
    "tcgen05 for sm_100 without a": Case("tc-run sm_100.ptx --grid 1 --block 32", 3, "got sm_100:"),
    "tcgen05 in PTX 7.0": Case("tc-run old.ptx --grid 1 --block 32", 3, "got 7.0: ptxas refuses"),
    "fma.f32 without rounding": Case(
        U.replace("saxpy.ptx", "fma.ptx"), 3, r"fma.ptx:39:5: fma.f32: expected a rounding modif"),
    "nobody reads": Case(U, 0, setting=NO_READER),
    "nobody reads the assumptions": Case("tc-run --list-assumptions", 0, setting=NO_READER),
    "a full disk": Case("tc-run --list-assumptions", 3, CANNOT + "No space left", setting=FULL),
    "a closed output": Case(U, 3, CANNOT + "Bad file descriptor", setting=NO_STDOUT),
    "a closed input": Case("tc-run - --grid 1 --block 1", 3, "cannot read standard input: Bad file",
        setting=NO_STDIN),
    "no standard error": Case("tc-run --grid abc", 3, setting=NO_STDERR),
    "a grid that is no number": Case("tc-run saxpy.ptx --grid abc", 3, r"expected X\[,Y,Z\]"),
    "a seed that is no number": Case("tc-run saxpy.ptx --seed abc", 3, "expected a number from 0"),
    "an unknown flag": Case("tc-run saxpy.ptx --nosuch", 3, "unrecognized arguments: --nosuch"),
    "more memory than there is": Case(
        ANY + "zeros=f32,100000x1000000000", 3, "tc-run: out of memory: Unable to allocate"),
    "an empty .npy": Case(ANY + "empty.npy", 3, "empty.npy: expected a .npy file of numbers"),
    "a .npy of something else": Case(ANY + "junk.npy", 3, "junk.npy: expected a .npy file"),
    "an archive": Case(ANY + "two.npz", 3, r"expected one array \(.npy\), got an archive of a, b"),
    "a number as a part": Case(ANY + "'parts=[7]'", 3, "expected a list of arguments such as"),
    "another byte order": Case(
        U.replace("x.npy", "big.npy"), 3, "expected little-endian elements, got >f4"),
    "u32 that is too large": Case(S + "--arg u32=5000000000", 3, "expected 0..4294967295"),
    "a negative u32": Case(S + "--arg u32=-1", 3, "expected 0..4294967295, got -1"),
    "f32 that is too large": Case(ANY + "f32=1e60", 3, "the largest float32, got 1e60"),
    "dims as text": Case(tensor_map(dims="64"), 3, "dims: expected integers, got '64'"),
    "a misspelt mode": Case(tensor_map(mode="tild"), 3, "expected mode tiled, im2col"),
    "the array of no argument": Case(tensor_map(array=7), 3, "the number of an argument before"),
    "--dump alone": Case(U + "--dump mbarriers", 3, "--dump: expected also --break-at"),
    "--target of PTX": Case(U + "--target sm_999", 3, "--target: expected --bundle DIR"),
    "--pipeline of PTX": Case(U + "--pipeline conv", 3, "--pipeline: expected also --bundle DIR"),
    "--selftest with more": Case("tc-run --selftest --seed 1", 3, "expected no other argument"),
    "--save to a text file": Case(U + "--save 1=o.txt", 3, "a file name that ends in .npy"),
    "hit=0": Case(U + "--break-at 40,hit=0", 3, "expected hit=1 or more, got 0"),
    "a warp too many": Case(U + "--break-at 40,warp=9", 3, r"expected warp 0..3, got 9"),
    "a CTA too many": Case(U + "--break-at 40,cta=8.0.0", 3, "a CTA of 0.0.0 to 7.0.0"),
    "a line too many": Case(U + "--break-at 9999", 3, r"expected a line of 1..\d+, got 9999"),
    "--json where nothing can be": Case(U + "--json /no/such/f", 3, "there is no directory '/no/"),
    "--save where nothing can be": Case(U + "--save 1=/no/f.npy", 3, "there is no directory '/no'"),
    "a dump of nothing": Case(U + "--break-at 40 --dump x", 3, "dump: expected registers"),
    "no shared memory": Case(
        "tc-run dead.ptx --grid 1 --block 32 --dynamic-smem x", 3, "expected a number from 0"),
    "shared memory without its flag": Case(
        "tc-run dynamic.ptx --grid 1 --block 1", 1, out=r"no dynamic_smem \(--dynamic-smem\)"),
    "the block is known": Case("tc-run reqntid.ptx", 3, "expected --grid: no file next to"),
    "CTAs race, not warps": Case(
        "tc-run count.ptx --grid 2 --block 64 --arg zeros=u32,1", 1,
        out=r"(?s)between two CTAs of a launch.*summary: \d+ errors"),
    "an instruction that is misspelt": Case(
        "tc-run typo.ptx --grid 1 --block 32 --arg zeros=u32,1", 2,
        out="no rule for it; did you mean 'tcgen05.commit'"),
    "a modifier that is misspelt": Case(
        "tc-run globl.ptx --grid 1 --block 32 --arg zeros=u32,1", 2,
        out="no rule for modifier .globl; did you mean '.global'"),
    "lanes of one store": Case(
        "tc-run lanes.ptx --grid 1 --block 32 --arg zeros=u32,2x4", 1,
        out=r"warp 0, lane 0 and warp 0, lane 1 of CTA .* of argument 0 \(out\): \[0, 0\]"),
    "a load of nothing": Case(
        "tc-run poison.ptx --grid 1 --block 32 --arg zeros=u32,1", 1, out="got poison"),
    "an MLIR program": Case("tc-run matmul.mlir --grid 1 --block 32", 3, "got MLIR; compile it"),
    "a bundle of what": Case("tc-run matmul.mlir --bundle D", 3, "expected --pipeline NAME"),
    "bytes": Case("tc-run junk.bin --grid 1 --block 1", 3, "junk.bin: expected PTX text, got"),
}  # fmt: skip
TC_OPT = {
    "nobody reads a list": Case("tc-opt --list-passes", 0, setting=NO_READER),
    "nobody reads the IR": Case("tc-opt f.mlir", 0, setting=NO_READER),
    "no standard output": Case("tc-opt --list-passes", 3, CANNOT + "Bad file", setting=NO_STDOUT),
    "a full disk": Case("tc-opt --show-dialects", 3, CANNOT + "No space", setting=FULL),
    "nothing to read": Case("tc-opt", 3, "cannot read standard input: Bad", setting=NO_STDIN),
    "nowhere to complain": Case("tc-opt --nosuch", 3, setting=NO_STDERR),
    "steps when nothing was compared": Case(
        "tc-opt f.mlir --validate-each", 0, "held: executed, no pass to compare"),
    "a pass that erases the function": Case(
        "tc-opt f.mlir --validate-each --load-pass-plugin=erases.py --mine", 1,
        r"1  mine .* different .* f.mlir: expected one function with a body"),
    "a pass of an upstream name": Case(
        "tc-opt f.mlir --load-pass-plugin=canonicalize.py --canonicalize", 3,
        "expected a new pass name, got 'canonicalize', taken by MLIR"),
    "a pass that prints": Case(
        "tc-opt f.mlir --load-pass-plugin=prints.py --mine", 0, "from my pass", r"\Amodule \{"),
    "an exception in a plugin": Case(
        "tc-opt f.mlir --load-pass-plugin=divides.py --mine", 4,
        r"divides.py:12: ZeroDivisionError: division by zero .* in 'mine'"),
    "a plugin that cannot be imported": Case(
        "tc-opt f.mlir --load-pass-plugin=imports.py", 3,
        r"cannot load the plugin 'imports.py': .*imports.py:2: ModuleNotFoundError"),
    "the reproducer's command": Case(
        "tc-opt f.mlir --load-pass-plugin=divides.py --mine "
        "--mlir-pass-pipeline-crash-reproducer=r.mlir", 4,
        r"tc-opt --load-pass-plugin=divides.py --run-reproducer r.mlir"),
    "the reproducer's command after a crash": Case(
        "tc-opt f.mlir --load-pass-plugin=crashes.py --mine "
        "--mlir-pass-pipeline-crash-reproducer=r.mlir", 4,
        r"SIGSEGV(?s:.*)tc-opt --load-pass-plugin=crashes.py --run-reproducer r.mlir"),
    "the form for people": Case(
        "tc-opt pretty.mlir", 3, r"pretty.mlir:2:8: error: 'tc.repack' op attribute .permut"),
    "a name with a hyphen": Case(
        "tc-opt matmul.mlir --pipeline=gemm{nn-tile=64}", 3, "did you mean 'n-tile'"),
    "two pipelines": Case(
        "tc-opt matmul.mlir --pipeline=matmul --pipeline=conv", 3, "expected one --pipeline"),
    "orders of nothing": Case("tc-opt f.mlir --orders=5", 3, "--orders: expected --validate-each"),
    "a generalized fill": Case(
        "tc-opt matmul.mlir --linalg-generalize-named-ops --raise-to-tc", 0, out=r'"tc.matmul"'),
    "a billion elements": Case(
        "tc-opt large.mlir --pipeline=gemm --validate-each", 2,
        r"memory, got at least 960 GB for arrays of 3\d+ elements \(would take about 105 days\)"),
    "rows of two billion numbers": Case(
        "tc-opt wide.mlir --pipeline=gemm --validate-each", 2, "got at least 756 GB for arrays of"),
    "eight billion rows": Case(
        "tc-opt tall.mlir --pipeline=gemm --validate-each", 2, "got at least 4.95 TB for arrays"),
    "two billion images": Case(
        "tc-opt images.mlir --pipeline=conv --validate-each", 2, "or execute smaller shapes"),
    "a schedule that is not the cheapest": Case(
        "tc-opt conv.mlir --pipeline=conv-shift-reuse", 0,
        r"n-tile=64 is built and takes .* us; the cheapest .* n-tile=16, takes .* us"),
    "a negative seed": Case("tc-opt f.mlir --seed=-1 --validate-each", 3, "a seed of at least 0"),
    "20,000 modules": Case("tc-opt deep.mlir", 3, "brackets are nested 20000 deep"),
    "a dialect of a plugin": Case(
        "tc-opt same.mlir --load-pass-plugin=dialect.py -cse -validate-each -verify-roundtrip", 0,
        r"1 pass changed nothing: cse", r'"my.same"\(%arg0\)'),
    "a rule that returns an array": Case(
        "tc-opt same.mlir --load-pass-plugin=array.py -validate-each", 3,
        "my.same: expected its @evaluate rule to return a list of 1, got ndarray"),
    "a field of a dialect that is no type": Case(
        "tc-opt same.mlir --load-pass-plugin=field.py", 3,
        r"dialect 'my': expected ops whose fields are ext.Operand\[TYPE\].*<class 'object'>"),
    "a dialect that loads itself": Case(
        "tc-opt same.mlir --load-pass-plugin=upstream.py", 3,
        "upstream.py:7: .*; derive the dialect from tcir.dialect.base.Dialect"),
    "text that loses an attribute": Case(
        "tc-opt lost.mlir --verify-roundtrip", 3, "--verify-roundtrip: text: expected '"),
    "the version": Case("tc-opt --version", 0, out=r"tc-opt \d"),
}  # fmt: skip
TC_VIZ = {
    "a bitmap": Case("tc-viz scale-factors -o x.png", 3, "that ends in .svg, .html, .typ or .txt"),
    "a PDF": Case("tc-viz scale-factors -o x.pdf", 3, "got .pdf"),
    "a million atoms": Case(
        "tc-viz fragment mma.m16n8k16 --atoms 1000,1000,1", 3, "1 to 32 in all, the"),
    "atoms of a copy": Case(
        "tc-viz fragment ldmatrix.x4 --operand A --atoms 2,2,1", 3, "expected an mma"),
    "what +1 is": Case(
        "tc-viz fragment mma.m16n8k16 --atoms 2,2,1", 0, out="that many more threads"),
    "the form for people": Case(
        "tc-viz tmem pretty.mlir", 3, "pretty.mlir:2:8: error: 'tc.repack' op attribute"),
    "20,000 modules": Case(
        "tc-viz tmem deep.mlir", 4, "reading deep.mlir: the native library died"),
    "a closed pipe": Case("tc-viz scale-factors", 0, setting=NO_READER),
    "a full disk": Case("tc-viz scale-factors", 3, CANNOT + "No space left", setting=FULL),
    "a file on a full disk": Case(
        "tc-viz scale-factors -o /dev/full", 3, "cannot write '/dev/full': No space left"),
    "a picture where nothing can be": Case(
        "tc-viz scale-factors -o /no/x.svg", 3, "cannot write '/no/x.svg': there is no directory"),
    "a negative half split": Case(
        "tc-viz ld 16x32bx2.x1 --half-split -5", 3, "a half_split of at least 0 columns, got -5"),
    "values that are none": Case(
        "tc-viz fragment mma.m16n8k16 --values junk.npy", 3, "junk.npy: expected a .npy file"),
    "a report that is a list": Case("tc-viz report list.json", 3, "expected a report of schema"),
}  # fmt: skip
PAGE = "tc-opt matmul.mlir --pipeline=gemm --emit=ptx -o k.ptx --mlir-print-ir-tree-dir=tree "


def test_the_report_page_shows_the_ptx(tmp_path: Path) -> None:
    _files(tmp_path)
    program = (ROOT / "examples/tf32_one_tile.mlir").read_bytes()
    (tmp_path / "matmul.mlir").write_bytes(program)
    ended = run(shlex.split(PAGE + "--validate-each=report.json"), tmp_path)
    assert ended.status == 0, ended
    steps = json.loads((tmp_path / "report.json").read_text())["passes"]
    (number,) = (step["index"] for step in steps if step["name"] == "llvm-to-ptx")
    ptx = (tmp_path / "k.ptx").read_text()
    assert (tmp_path / f"tree/{number}_llvm-to-ptx.ptx").read_text() == ptx
    page = "tc-viz report report.json --tree tree --input matmul.mlir -o page.html"
    assert run(shlex.split(page), tmp_path).status == 0
    shown = (tmp_path / "page.html").read_text()
    section = shown.partition(f'<section id="pass-{number}"')[2].partition("</section>")[0]
    assert "no IR of this step" not in section and ".visible .entry" in section


CASES = {
    f"{tool}: {name}": case
    for tool, cases in (("tc-run", TC_RUN), ("tc-opt", TC_OPT), ("tc-viz", TC_VIZ))
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_what_the_command_says_now(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python would keep the bytecode of a plugin beside it; the command is a fork of this process.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    case = CASES[name]
    _files(tmp_path)
    before = set(os.listdir(tmp_path))
    ended = run(shlex.split(case.words), tmp_path, replace(case.setting, seconds=100))
    assert ended.status == case.status, ended
    assert re.search(case.err, ended.err) and re.search(case.out, ended.out), ended
    assert "Traceback" not in ended.err and "internal" not in ended.err
    assert not ended.hung and not ended.orphans
    assert set(os.listdir(tmp_path)) - before <= {"r.mlir"}
