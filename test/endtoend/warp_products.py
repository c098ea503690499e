"""Whole `matmul-warp` kernels that TMA feeds, on silicon and on the machine.

    python -m endtoend.warp_products DIR   # in test/: a bundle of each; run DIR/*/run.py on a GPU

warp_products.json holds digests of what an H200 wrote for these inputs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tcir.ptxrun.program_bundle import write_program

from .test_matmul_warp import SMALL, Case

HERE = Path(__file__).resolve().parent
SEED = 3
TMA = {**SMALL, "copy": "tma"}


def _case(*sizes: Any, **how: Any) -> Case:
    return Case(*sizes, **{"options": TMA, **how})


CASES = {
    str(case): case
    for case in (
        *(_case(72, 56, 200, "f16", a, b) for a in ("mk", "km") for b in ("kn", "nk")),
        _case(72, 56, 200, "bf16", "mk", "kn"),
        _case(72, 56, 200, "bf16", "km", "nk", out="bf16"),
        _case(68, 36, 100, "f32", "mk", "nk"),
        _case(68, 36, 208, "f8E4M3FN", "mk", "nk"),
        _case(68, 36, 208, "f8E5M2", "mk", "nk", other="f8E4M3FN"),
        _case(68, 36, 208, "i8", "mk", "nk"),
        _case(40, 56, 72, "f16", batch=3, out="f16"),
        _case(136, 264, 136, "f16", options={"copy": "tma"}),
    )
}


def write(name: str, folder: Path) -> str:
    """Writes the bundle of a case; the digest of the result that the machine expects."""
    case = CASES[name]
    folder.mkdir(parents=True)
    program = folder.parent / f"{folder.name}.mlir"
    program.write_text(case.text)
    write_program(
        folder, str(program), "matmul-warp", seed=SEED, inputs="random", target=case.target,
        **case.options,
    )  # fmt: skip
    buffers = json.loads((folder / "launch.json").read_text())["buffers"]
    (found,) = (b["expected_sha256"] for b in buffers if b["written"])
    return str(found)


def main(folder: Path) -> None:
    """Writes all bundles and their digests."""
    digests = {name: write(name, folder / f"case{i}") for i, name in enumerate(CASES)}
    (folder / "digests.json").write_text(json.dumps(digests, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
