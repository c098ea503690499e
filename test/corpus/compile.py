"""PTX of the corpus's CUDA C++ programs: `cuda/FOLDER/NAME.cu`.

In a wrong program `EDGE("text")` stands for the instruction that is missing; the PTX contains it as
an `// EDGE: text` line.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from tcir.cache.keys import digest
from tcir.cache.store import cache_store
from tcir.codegen.cuda import compile_cuda

WHEELS = ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-runtime", "nvidia-cuda-cccl")
"""What the PTX depends on: compilers and headers."""
EDGE = '-DEDGE(text)=asm volatile("// EDGE: " text ::: "memory")'
FLAGS = ("-O2", "--expt-relaxed-constexpr", "-w", EDGE)


def compiled(path: Path) -> str:
    """The PTX of a source for sm_100a. nvcc is called once for a source; its result is kept in the
    user's cache directory."""
    flags = FLAGS if "assert" in path.stem else (*FLAGS, "-DNDEBUG")
    store = cache_store("corpus")
    key = digest(path.name, path.read_text(), flags, *map(version, WHEELS))
    kept = store.get(key)
    if kept is not None:
        return kept.decode()
    ptx = compile_cuda(path, "sm_100a", flags)
    store.put(key, ptx.encode())
    return ptx
