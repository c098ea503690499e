"""Where the kernels come from: a compiler or library, what it needs, and how it is run."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Source:
    """`script OUT` writes OUT/NAME.ptx and OUT/NAME.json for each kernel.

    variable: environment variable that names the Python that has `module`. install: the command
    that makes such a Python. ours: the kernels are ours, only the compiler is others'.
    package: of a library whose calls run through tcir's door (`peers.calls` instead of a script):
    its name on the package index.
    """

    title: str
    script: str
    variable: str
    module: str
    install: str
    ours: bool = False
    package: str = ""

    def version(self) -> str:
        """Of the library, in the Python that runs this."""
        return importlib.metadata.version(self.package)

    @property
    def python(self) -> str:
        return os.environ.get(self.variable, sys.executable)

    @property
    def missing(self) -> str | None:
        """Why the script cannot run, and what to do."""
        find = f"import importlib.util as u; u.find_spec({self.module!r}) or exit(1)"
        if subprocess.run([self.python, "-c", find], capture_output=True, check=False).returncode:
            return (
                f"{self.python} has no module {self.module}: {self.install}, or name a Python that "
                f"has it with ${self.variable}"
            )
        return None


#: Libraries of Triton kernels that are called through the door: name, title, module, package, and
#: the variable that names their Python.
LIBRARIES = (
    ("flag_gems", "FlagGems", "flag_gems", "flag-gems", "TCIR_PEERS_TRITON_36"),
    ("liger", "Liger-Kernel", "liger_kernel", "liger-kernel", "TCIR_PEERS_TORCH"),
    ("fla", "flash-linear-attention", "fla", "fla-core", "TCIR_PEERS_TORCH"),
    ("bitsandbytes", "bitsandbytes", "bitsandbytes", "bitsandbytes", "TCIR_PEERS_TORCH"),
    ("conch", "Conch", "conch", "conch-triton-kernels", "TCIR_PEERS_TORCH"),
    (
        "cut_cross_entropy",
        "cut-cross-entropy",
        "cut_cross_entropy",
        "cut-cross-entropy",
        "TCIR_PEERS_TORCH",
    ),
    ("flash_attn_2", "flash-attn 2", "flash_attn", "flash-attn", "TCIR_PEERS_TORCH"),
    ("mamba", "mamba-ssm", "mamba_ssm", "mamba-ssm", "TCIR_PEERS_TORCH"),
    ("sageattention", "SageAttention", "sageattention", "sageattention", "TCIR_PEERS_TORCH"),
    ("lion", "lion-pytorch", "lion_pytorch", "lion-pytorch", "TCIR_PEERS_TORCH"),
    ("flashinfer", "FlashInfer", "flashinfer", "flashinfer-python", "TCIR_PEERS_TORCH"),
    ("vllm", "vLLM", "vllm", "vllm", "TCIR_PEERS_SERVING"),
    ("sglang", "SGLang", "sglang", "sglang", "TCIR_PEERS_SERVING"),
)
SOURCES = {
    "deep_gemm": Source(
        "DeepGEMM",
        "deep_gemm_kernels.py",
        "TCIR_PEERS_NVCC_HEADERS",
        "deep_gemm",
        "pip install --no-deps 'sgl-deep-gemm>=0.2.5,<0.3'",
    ),
    "cutlass": Source(
        "CUTLASS",
        "cutlass_kernels.py",
        "TCIR_PEERS_NVCC_HEADERS",
        "cutlass_library",
        "pip install --no-deps 'nvidia-cutlass>=4.2,<4.3' nvidia-curand",
    ),
    "flash_attn": Source(
        "FlashAttention-4",
        "flash_attn_kernels.py",
        "TCIR_PEERS_FLASH_ATTN",
        "flash_attn.cute",
        "pip install --pre 'flash-attn-4>=4.0.0b36,<4.1' 'torch>=2.13,<2.14'",
    ),
    "jax": Source(
        "JAX Mosaic GPU",
        "jax_kernels.py",
        "TCIR_PEERS_JAX",
        "jax_plugins.xla_cuda13",
        "pip install 'jax>=0.10,<0.11' absl-py nvidia-cuda-nvcc nvidia-nvvm && "
        "pip install --no-deps 'jax-cuda13-plugin>=0.10,<0.11' 'jax-cuda13-pjrt>=0.10,<0.11'",
    ),
    "quack": Source(
        "QuACK (CuTe DSL)",
        "quack_kernels.py",
        "TCIR_PEERS_FLASH_ATTN",
        "quack",
        "pip install 'quack-kernels>=0.6.5,<0.7' 'torch>=2.13,<2.14'",
    ),
    "triton": Source(
        "Triton",
        "triton_kernels.py",
        "TCIR_PEERS_TRITON",
        "triton",
        "pip install 'triton>=3.9,<3.10'",
        ours=True,
    ),
    "gluon": Source(
        "Gluon",
        "gluon_kernels.py",
        "TCIR_PEERS_TRITON",
        "triton",
        "pip install 'triton>=3.9,<3.10'",
        ours=True,
    ),
    "cute": Source(
        "CuTe DSL",
        "cute_kernels.py",
        "TCIR_PEERS_CUTE",
        "cutlass",
        "pip install 'nvidia-cutlass-dsl>=4.8,<4.9'",
        ours=True,
    ),
}
SOURCES |= {
    name: Source(
        title,
        "",
        variable,
        module,
        f"pip install 'tcir[triton]' && pip install --no-deps {package}",
        package=package,
    )
    for name, title, module, package, variable in LIBRARIES
}


def compile_with(name: str, out: Path) -> str | None:
    """Runs the source's script into `out`; returns the reason if it could not."""
    source = SOURCES[name]
    if missing := source.missing:
        return missing
    out.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(  # in `out`: CuTe DSL keeps its PTX in the current folder
        [source.python, HERE / source.script, out.resolve()],
        capture_output=True,
        text=True,
        check=False,
        cwd=out,
    )
    (out / "log.txt").write_text(done.stdout + done.stderr)
    if done.returncode:
        return f"{source.script} failed:\n{(done.stdout + done.stderr)[-2000:]}"
    return None
