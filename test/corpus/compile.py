"""Makes the PTX of the CUDA C++ programs: `python test/corpus/compile.py --cccl DIR [NAME...]`.

Needs nvcc (nvidia-cuda-nvcc, -crt, -runtime, nvidia-nvvm), a host compiler, and the headers of
libcu++ and CUB (nvidia-cuda-cccl: DIR is the folder that holds cuda/ and cub/). cuda/FOLDER/NAME.cu
becomes FOLDER/NAME.ptx with the source's first comment on top. In a wrong program `EDGE("text")`
stands for the instruction that is missing; the PTX then holds it as an `// EDGE: text` line.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

from tcir.codegen.tools import find_tool

HERE = Path(__file__).parent
OPTIONS = ["-ptx", "-arch=compute_100a", "-std=c++17", "-O2", "--expt-relaxed-constexpr", "-w"]
EDGE = '-DEDGE(text)=asm volatile("// EDGE: " text ::: "memory")'


def header(source: str) -> str:
    lines = source.splitlines()
    end = next(n for n, line in enumerate(lines) if not line.startswith("//"))
    return "\n".join(lines[:end]) + "\n"


def compiled(path: Path, cccl: Path) -> str:
    """The PTX of a source, without nvcc's banner and its remarks around inline assembly."""
    source = path.read_text()
    debug = [] if "assert" in path.stem else ["-DNDEBUG"]
    nvcc = str(find_tool("ptxas").with_name("nvcc"))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "kernel.ptx"
        command = [nvcc, *OPTIONS, *debug, EDGE, f"-I{cccl}", str(path), "-o", str(target)]
        subprocess.run(command, check=True)
        ptx = target.read_text()
    ptx = ptx[ptx.index(".version") :]
    ptx = re.sub(r"[ \t]*//(?!\s*EDGE).*", "", ptx)
    ptx = re.sub(r"_INTERNAL_[0-9a-f]{8}", "_INTERNAL", ptx)
    return header(source) + "\n" + re.sub(r"\n\s*\n+", "\n", ptx)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cccl", type=Path, required=True)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    for path in sorted((HERE / "cuda").glob("*/*.cu")):
        if not given.names or path.stem in given.names:
            target = HERE / path.parent.name / f"{path.stem}.ptx"
            target.write_text(compiled(path, given.cccl))
            print(target.relative_to(HERE), flush=True)


if __name__ == "__main__":
    main()
