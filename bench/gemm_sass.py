"""SASS of GEMM kernels beside Triton, Gluon and CuTe DSL: one tile, one ptxas, one run.

    python bench/gemm_sass.py [--peers PYTHON] [--write PAGE] [--keep FOLDER]

Two problems of 4096 x 4096 x 4096 in tiles of 128 x 128: f16 with 64 k a stage, and NVFP4 with 256
k a stage, scales in blocks of 128 x 4. Every compiler's PTX is assembled for sm_100a by the ptxas
of this toolchain; nothing is executed. Printed per kernel: instructions of the loop around the mma
for each mma in it, instructions of the whole kernel without padding, registers a thread, bytes
spilled. ``--peers`` names a Python that has triton and nvidia-cutlass-dsl; neither needs a GPU.
``$CUTLASS`` names a checkout of CUTLASS, for CuTe DSL's NVFP4 kernel. ``--write`` puts the table
into a page, ``--keep`` leaves PTX and SASS in a folder.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tcir
from tcir import codegen

HERE = Path(__file__).resolve().parent
MARK = "<!-- written by python bench/gemm_sass.py --write -->\n"
SIZE = 4096
INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)(.*)$")
LABEL = re.compile(r"^(\S+):\s*$")


@dataclass(frozen=True)
class Row:
    """Counts of one kernel."""

    compiler: str
    loop: int
    mma: int
    whole: int
    registers: int
    spilled: int

    @property
    def per_mma(self) -> float:
        return self.loop / self.mma


def instructions(sass: str) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Returns (mnemonic, operands) of the longest function in order, and the positions of its
    labels."""
    functions: list[tuple[list[tuple[str, str]], dict[str, int]]] = []
    for line in sass.splitlines():
        if line.startswith("\t.section"):
            functions.append(([], {}))
        elif functions and (match := INSTRUCTION.match(line)):
            functions[-1][0].append((match[2], match[3]))
        elif functions and (match := LABEL.match(line)):
            functions[-1][1][match[1]] = len(functions[-1][0])
    return max(functions, key=lambda function: len(function[0]))


def is_mma(mnemonic: str) -> bool:
    return re.match(r"UTC\w*MMA", mnemonic) is not None


def inner_loop(code: list[tuple[str, str]], labels: dict[str, int]) -> range:
    """The shortest stretch from a label to a branch back to it that holds an mma."""
    found = []
    for end, (mnemonic, operands) in enumerate(code):
        target = re.search(r"`\((\S+?)\)", operands) if mnemonic.startswith("BRA") else None
        begin = labels.get(target[1], end) if target else end
        if begin < end and any(is_mma(code[i][0]) for i in range(begin, end)):
            found.append(range(begin, end + 1))
    if not found:
        raise SystemExit("expected a loop around an mma, got none")
    return min(found, key=len)


def whole(code: list[tuple[str, str]]) -> int:
    """Number of instructions without the last cache line's padding: a branch to itself, NOPs."""
    end = len(code)
    while end and code[end - 1][0] == "NOP":
        end -= 1
    return end - 1 if code[end - 1][0] == "BRA" else end


def row(compiler: str, ptx: str, keep: Path | None) -> Row:
    """Assembles a kernel and counts."""
    if keep:
        (keep / f"{compiler}.ptx").write_text(ptx)
    cubin = codegen.assemble(ptx, target="sm_100a")
    sass = codegen.disassemble(cubin.data)
    if keep:
        (keep / f"{compiler}.sass").write_text(sass)
    code, labels = instructions(sass)
    loop = inner_loop(code, labels)
    mma = sum(is_mma(code[i][0]) for i in loop)
    return Row(compiler, len(loop), mma, whole(code), cubin.registers, cubin.spill_bytes)


SQUARE = f"tensor<{SIZE}x{SIZE}x"
SCALES = f"tensor<{SIZE // 128}x{SIZE // 64}x512xf8E4M3FN>"
F16 = f"""
func.func @f(%a: {SQUARE}f16>, %b: {SQUARE}f16>) -> {SQUARE}f16> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {SQUARE}f32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : {SQUARE}f32>) -> {SQUARE}f32>
  %c = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : {SQUARE}f16>, {SQUARE}f16>) outs(%init : {SQUARE}f32>) -> {SQUARE}f32>
  %r = arith.truncf %c : {SQUARE}f32> to {SQUARE}f16>
  return %r : {SQUARE}f16>
}}
"""
NVFP4 = f"""
func.func @f(%a: {SQUARE}f4E2M1FN>, %sa: {SCALES}, %b: {SQUARE}f4E2M1FN>, %sb: {SCALES})
    -> {SQUARE}f32> {{
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {{block = 16 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}}
      : ({SQUARE}f4E2M1FN>, {SCALES}, {SQUARE}f4E2M1FN>, {SCALES}) -> {SQUARE}f32>
  return %y : {SQUARE}f32>
}}
"""
PROBLEMS = {"f16": ("f16, 128 x 128 x 64", F16), "nvfp4": ("NVFP4, 128 x 128 x 256", NVFP4)}
PEERS = {
    "f16": (
        ("Triton", "gemm_triton.py", "f16"),
        ("Triton, warp-specialised", "gemm_triton.py", "f16-roles"),
        ("Gluon, warp-specialised", "gemm_gluon.py", "f16"),
        ("CuTe DSL", "gemm_cute.py", "f16"),
    ),
    "nvfp4": (
        ("Triton", "gemm_triton.py", "nvfp4"),
        ("Gluon, warp-specialised", "gemm_gluon.py", "nvfp4"),
        ("CuTe DSL", "gemm_cute.py", "nvfp4"),
    ),
}


def peer(python: str, script: str, problem: str) -> str | None:
    """PTX of a peer; None, with a printed reason, if it is not installed."""
    with tempfile.TemporaryDirectory(prefix="tcir-gemm-sass-") as folder:
        done = subprocess.run(
            [python, HERE / script, problem],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"left out: {script} {problem}: {(done.stderr.strip() or '?').splitlines()[-1]}")
            return None
        return Path(folder, "kernel.ptx").read_text()


def table(rows: list[Row]) -> str:
    """Returns the Markdown table; the least number of a column is bold."""
    columns = [(f"{r.per_mma:.1f}", r.whole, r.registers, r.spilled) for r in rows]
    least = [min(float(column[i]) for column in columns) for i in range(4)]
    lines = ["| compiler | loop, per mma | whole kernel | registers | spilled bytes |"]
    lines.append("|---|---|---|---|---|")
    for r, column in zip(rows, columns, strict=True):
        cells = [
            f"**{c}**" if float(c) == low else str(c) for c, low in zip(column, least, strict=True)
        ]
        cells[0] += f" ({r.loop} for {r.mma})"
        lines.append(f"| {r.compiler} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write(page: Path, text: str) -> None:
    """Puts `text` between the two marks of `page`."""
    before, _, after = page.read_text().split(MARK)
    page.write_text(f"{before}{MARK}{text}{MARK}{after}")


def main() -> None:
    """Compiles, counts and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", metavar="PYTHON", default=sys.executable)
    parser.add_argument("--write", metavar="PAGE", type=Path)
    parser.add_argument("--keep", metavar="FOLDER", type=Path)
    arguments = parser.parse_args()
    text = ""
    for problem, (title, program) in PROBLEMS.items():
        keep = arguments.keep / problem if arguments.keep else None
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
        rows = [row("tcir", tcir.compile(program, "gemm", n_tile=128).ptx, keep)]
        for compiler, script, argument in PEERS[problem]:
            if ptx := peer(arguments.peers, script, argument):
                rows.append(row(compiler, ptx, keep))
        text += f"\n{title}:\n\n{table(rows)}"
    print(text)
    if arguments.write:
        write(arguments.write, text + "\n")


if __name__ == "__main__":
    main()
