"""CUTLASS examples: `python cutlass_kernels.py OUT [NAME …]` writes OUT/NAME.ptx and OUT/NAME.json.

Each example is compiled as the package nvidia-cutlass ships it and its `main` runs on the
recorder: what it would have launched is the launch. Compilations take minutes; the cache of
`nvcc.py` keeps them.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TUTORIAL = "cute/tutorial/blackwell"
FMHA = "77_blackwell_fmha/77_blackwell_fmha.cu"
#: Name: (source below examples/, arguments of its main, multiprocessors, the kernel's name).
EXAMPLES: dict[str, tuple[str, str, int, str]] = {
    "tutorial_01": (f"{TUTORIAL}/01_mma_sm100.cu", "256 256 128", 4, "gemm_device"),
    "tutorial_02": (f"{TUTORIAL}/02_mma_tma_sm100.cu", "256 256 128", 4, "gemm_device"),
    "tutorial_03": (f"{TUTORIAL}/03_mma_tma_multicast_sm100.cu", "512 1024 128", 4, "gemm_device"),
    "tutorial_04": (f"{TUTORIAL}/04_mma_tma_2sm_sm100.cu", "512 1024 128", 4, "gemm_device"),
    "tutorial_05": (f"{TUTORIAL}/05_mma_tma_epi_sm100.cu", "512 1024 128", 4, "gemm_device"),
    "70_fp16_gemm": ("70_blackwell_gemm/70_blackwell_fp16_gemm.cu",
                     "--m=256 --n=128 --k=256 --iterations=0", 2, "device_kernel"),
    "72a_nvfp4_bf16_gemm": ("72_blackwell_narrow_precision_gemm/72a_blackwell_nvfp4_bf16_gemm.cu",
                            "--m=256 --n=256 --k=256 --iterations=0", 2, "device_kernel"),
    "72c_mixed_mxfp8_bf16_gemm": (
        "72_blackwell_narrow_precision_gemm/72c_blackwell_mixed_mxfp8_bf16_gemm.cu",
        "--m=256 --n=256 --k=256 --iterations=0", 2, "device_kernel"),
    "76_conv_fprop": ("76_blackwell_conv/76_blackwell_conv_fprop.cu",
                      "--n=1 --h=8 --w=16 --c=64 --k=128 --r=3 --s=3 --iterations=0", 2,
                      "device_kernel"),
    "77_fmha_64": (FMHA, "--b=1 --h=1 --q=256 --k=512 --d=64 --iterations=0", 1, "device_kernel"),
    "77_fmha_128": (FMHA, "--b=1 --h=1 --q=256 --k=512 --d=128 --iterations=0", 1,
                    "device_kernel"),
}  # fmt: skip
#: The end of the example's classes. What follows instantiates all masks, tiles and schedulers,
#: which takes a compiler an hour.
CLASSES_END = "int main_result = 0;"
#: One kernel: no mask, a tile for each CTA.
ONE_KERNEL = """
#endif
int main(int argc, char const **args) {
  Options options;
  options.parse(argc, args);
  cutlass::KernelHardwareInfo hw_info;
  hw_info.sm_count = 1;
  FwdRunner<false, Shape<_256, _128, Int<%s>>, void, NoMask, Option<Tag::kIsPersistent, false_type>>
      runner;
  return runner.run(options, hw_info).passed ? 0 : 1;
}
"""


def compile_example(name: str) -> tuple[Path, str]:
    import nvcc

    example, arguments, *_ = EXAMPLES[name]
    source = original = examples() / example
    headers, version = nvcc.package("nvidia-cutlass", "cutlass_library/source")
    curand, _ = nvcc.package("nvidia-curand", "nvidia/cu13/include")
    folders = ["include", "tools/util/include", "examples/common"]
    include = [*(headers / f for f in folders), original.parent, curand]
    flags = ["-std=c++17", "--expt-extended-lambda"]
    if example == FMHA:
        size = arguments.partition("--d=")[2].partition(" ")[0]
        source = nvcc.cache() / f"fmha_{size}.cu"
        source.parent.mkdir(parents=True, exist_ok=True)
        classes = original.read_text().partition(CLASSES_END)[0]
        source.write_text(classes + ONE_KERNEL % size)
        flags.append("--use_fast_math")  # as in its CMakeLists.txt
    return nvcc.program(source, include, version, *flags)


def record(name: str, out: Path) -> None:
    """Runs in a process of its own: the example ends it."""
    import recording

    _, arguments, multiprocessors, wanted = EXAMPLES[name]
    try:
        library, text = compile_example(name)
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr)
    (out / f"{name}.ptx").write_text(text)
    with tempfile.TemporaryDirectory() as scratch:
        driver = ctypes.CDLL(str(recording.build(Path(scratch))), ctypes.RTLD_GLOBAL)
        recorder = recording.Recorder(driver, lambda _entry: text, multiprocessors)

        def seen(launch: dict[str, Any]) -> None:
            if wanted in launch["entry"]:
                contents = recorder.contents()
                (out / f"{name}.json").write_text(json.dumps(launch | {"contents": contents}))
                sys.stdout.flush()
                os._exit(0)

        recorder.on_launch = seen
        program = ctypes.CDLL(str(library))
        argv = [name.encode(), *(a.encode() for a in arguments.split())]
        program.main(len(argv), (ctypes.c_char_p * (len(argv) + 1))(*argv, None))
    sys.exit(f"{name}: launched no kernel {wanted!r}")


def examples() -> Path:
    import nvcc

    return nvcc.package("nvidia-cutlass", "cutlass_library/source/examples")[0]


def main(out: Path, names: list[str]) -> None:
    examples()
    for name in names or EXAMPLES:
        command = [sys.executable, __file__, str(out), "--record", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr)
        if done.returncode:
            why = re.sub(r"\s+", " ", done.stderr + done.stdout)[-300:]
            (out / f"{name}.json").write_text(json.dumps({"error": why}))


if __name__ == "__main__":
    if "--record" in sys.argv:
        record(sys.argv[3], Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
