"""Commands that README, docs/, the heads of examples/ and ``--help`` tell users to paste."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import textwrap
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tcir.opt.arguments as opt
import tcir.ptxrun.arguments as ptxrun
import tcir.reduce.arguments as reduce
import tcir.sweep.arguments as sweep
import tcir.viz.command as viz

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ("tc-bench", "tc-opt", "tc-reduce", "tc-run", "tc-viz", "python", "make", "git",
            "pip", ".ci")  # fmt: skip
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "extending.md"),
]
"""`test_extending.py` follows docs/how-to/extending.md, whose files depend on one another."""
EXAMPLES = sorted(
    path for path in (ROOT / "examples").rglob("*.*") if path.suffix not in (".py", ".pyc")
)
PARSERS = [opt.make_parser(), ptxrun.make_parser(), sweep.make_parser(), reduce.make_parser(),
           viz.parser()]  # fmt: skip
INSTALLS = ("make", "git", "pip", ".ci")
"""Commands that clone or install: continuous integration is what runs them."""
_MISTAKE = "tc-opt examples/mistakes/{} --pipeline=gemm"
STATUS = {
    "python examples/broken_pass.py": 1,
    "tc-opt examples/mistakes/producer_without_empty_wait.mlir "
    "--pass-pipeline='builtin.module(verify-tc-kernel)'": 3,
    _MISTAKE.format("scale_per_128_rows.mlir"): 3,
    _MISTAKE.format("unrounded_scale.mlir"): 3,
    "tc-opt examples/nvfp4_gemm.mlir --pipeline='gemm{n-tile=128 stages=20}'": 3,
    "python -m tcir.triton examples/triton_matmul.py --unmasked": 1,
    "python -m tcir.cute examples/cute_transpose.py --unsynchronised": 1,
    "tc-opt examples/matmul.mlir --pipeline=gemm --emit=ptx --prove=2 -o matmul.ptx": 2,
    "tc-bench validate examples/tf32_one_tile.mlir examples/reduce.cu examples/conv_5x5_bf16.mlir "
    "--pipeline=gemm": 3,
}
NEEDS = {"needs Triton": "triton", "needs PyTorch": "torch", "needs CuTe DSL": "cutlass",
          "needs sentryward": "sentryward", "needs onnx": "onnx", "needs JAX": "jax",
         "needs CuPy": "cupy"}  # fmt: skip
"""Reasons not to run a block where a package is missing."""
TALES = "docs/tutorials/debugging.md"
"""A page whose blocks go on from each other, up to the next heading."""
OUTCOMES = {"failed:": 1, "stopped: breakpoint": 2, "stopped: first difference": 1}
"""The status of a command in a tale, by the first words it is shown to print."""
_PLACEHOLDER = re.compile(r"…|\bFILE\b|\bDIR\b|\.\.\.")
_MARK = re.compile(r"<!-- not run: (.+) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block, or the head of an example."""

    file: str
    line: int
    kind: str  # of the fence; "head" of an example, "help" of a command
    text: str
    reason: str = ""  # why it is not run

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Commands in order, each with the output shown below it."""
        joined = re.sub(r"\\\n\s*", "", self.text)
        if "$ " in joined:
            parts = re.split(r"^\$ ", joined, flags=re.M)[1:]
            pairs = [part.partition("\n")[::2] for part in parts]
        else:
            pairs = [(line, "") for line in joined.splitlines()]
        found = [(re.sub(r"\s+# .*", "", line).strip(), output) for line, output in pairs]
        return [pair for pair in found if pair[0].startswith(PROGRAMS)]

    @property
    def runs(self) -> list[tuple[str, str]]:
        """The commands that are run."""
        return [
            (line, output)
            for line, output in self.commands
            if not line.startswith(INSTALLS) and not _PLACEHOLDER.search(line)
        ]

    @property
    def can_run(self) -> bool:
        """Whether there is something to run, and what it needs."""
        package = NEEDS.get(self.reason)
        there = importlib.util.find_spec(package) is not None if package else not self.reason
        session = self.text.startswith(">>>")  # of Python, which pytest's doctest runs
        return there and (bool(self.runs) or (self.kind == "python" and not session))


def examples(parser: ArgumentParser) -> str:
    """The lines of a command's help below `examples:`."""
    assert parser.epilog is not None
    return textwrap.dedent(parser.epilog.partition("examples:\n")[2].partition("\n\n")[0])


def blocks() -> list[Block]:
    """Every block with something to run, or marked as not to be run."""
    found = []
    for path in PAGES:
        text = path.read_text().splitlines()
        fences = [number for number, line in enumerate(text) if line.startswith("```")]
        for first, last in zip(fences[::2], fences[1::2], strict=True):
            mark = _MARK.search(text[first - 1])
            body = "\n".join(text[first + 1 : last])
            name, kind = str(path.relative_to(ROOT)), text[first].strip("`")
            found.append(Block(name, first + 1, kind, body, mark[1] if mark else ""))
    for path in EXAMPLES:
        head = re.match(r"(?://.*\n)+", path.read_text())
        text = re.sub(r"^// ?", "", head[0], flags=re.M) if head else ""
        text = re.sub(r"^  ", "", text, flags=re.M)
        found.append(Block(str(path.relative_to(ROOT)), 1, "head", text))
    found += [Block(f"{each.prog} --help", 1, "help", examples(each)) for each in PARSERS]
    return [block for block in found if block.reason or block.kind == "python" or block.commands]


BLOCKS = blocks()


def copy_checkout(folder: Path) -> Path:
    """The files of this checkout that a clone has."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def environment(programs: Path, **more: str) -> dict[str, str]:
    """This process's, with the commands of the folder `programs`."""
    return os.environ | {"PATH": os.pathsep.join([str(programs), os.environ["PATH"]])} | more


HERE = environment(Path(sys.executable).parent, PYTHONPATH=str(ROOT / "src"))
"""`import tcir` finds the package of this checkout, whose compiled kernels numba has cached."""


def run(folder: Path, command: str, variables: Mapping[str, str] = HERE) -> tuple[int, str]:
    """Status and output of a shell command in the copy."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=variables,
    )
    return done.returncode, done.stdout


def plain(output: str) -> str:
    """Without times, and with one blank between words."""
    return " ".join(re.sub(r"\d+\.\d\d s\b", "T s", output).split())


def shows(shown: str, printed: str) -> bool:
    """Whether a page's output is what was printed; ``...`` in it stands for anything."""
    parts = (re.escape(part.strip()) for part in plain(shown).split("..."))
    return re.search(".*".join(parts), plain(printed)) is not None


def tales() -> list[list[Block]]:
    """The blocks of each tale, in order."""
    page = (ROOT / TALES).read_text().splitlines()
    starts = [number for number, line in enumerate(page, 1) if line.startswith("## ")]
    found: dict[int, list[Block]] = {}
    for block in BLOCKS:
        if block.file == TALES:
            found.setdefault(max(n for n in starts if n < block.line), []).append(block)
    return list(found.values())


def follow(block: Block, copy: Path, variables: Mapping[str, str] = HERE) -> list[str]:
    """Runs a block; statuses and outputs are as expected. What each command printed."""
    if block.kind == "python":
        (copy / "pasted_block.py").write_text(block.text)
        status, output = run(copy, "python pasted_block.py", variables)
        assert status == 0, output
        return [output]
    printed = []
    for command, shown in block.runs:
        status, output = run(copy, command, variables)
        told = [code for words, code in OUTCOMES.items() if shown.lstrip().startswith(words)]
        assert status == STATUS.get(command, told[0] if told else 0), f"{command}\n{output}"
        output = output.replace(f"{copy}/", "")
        assert shows(shown, output), f"{command} shows something else:\n{output}"
        printed.append(output)
    return printed
