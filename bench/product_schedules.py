"""What each schedule of NVFP4 products costs: ``python bench/product_schedules.py [--top 6]``.

GEMM: equal tiles of every legal width, and 1 to 8 parts of K, by the cost model that the pipeline
asks (`tcir.passes.emit.cost`), whose counts a test compares with the simulated machine's. GEMV:
the schedules of ``gemv-padded-n`` by the model of ``bench/gemv.py``. Behind each stands what would
be chosen under another answer to a constant on which sources disagree. Modelled; nothing was
measured on a B200.
"""

from __future__ import annotations

import argparse
import runpy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path

import tcir
from tcir.dialect.tc import BlockScaledMatmulOp
from tcir.passes.emit.cost import DEFAULT, launch_behind, under_other_answers
from tcir.passes.emit.tensor_functions import tensor_ops
from tcir.passes.gemm.schedules import GemmCandidate, GemmSchedules
from tcir.passes.gemm.split_k import SplitK
from tcir.program.source import load_module, mlir_context
from tcir.time.constants import Constants

GEMM_SHAPES = ((128, 7168, 16384), (128, 4096, 7168), (128, 7168, 2048))
GEMV_SHAPES = ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))
PARTS = range(1, 9)
STAGE_K, MMA_K = 256, 64
GEMV = runpy.run_path(str(Path(__file__).with_name("gemv.py")))


@dataclass(frozen=True)
class Schedule:
    """A schedule's name, its modelled microseconds as a function of constants, and the reason if it
    is not legal."""

    name: str
    cost: Callable[[Constants], float]
    reason: str = ""
    default: bool = False

    def microseconds(self, constants: Constants = DEFAULT) -> float:
        """Modelled microseconds under `constants`."""
        return self.cost(constants)


def program(m: int, n: int, k: int) -> str:
    """The program of an NVFP4 GEMM with blocked scales and an f16 result."""
    blocks = -(-k // MMA_K)
    a, sa = f"tensor<{m}x{k}xf4E2M1FN>", f"tensor<{-(-m // 128)}x{blocks}x512xf8E4M3FN>"
    b, sb = f"tensor<{n}x{k}xf4E2M1FN>", f"tensor<{-(-n // 128)}x{blocks}x512xf8E4M3FN>"
    c = f"tensor<{m}x{n}xf16>"
    return f"""func.func @gemm(%a: {a}, %sa: {sa}, %b: {b}, %sb: {sb}) -> {c} {{
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {{block = 16 : i64,
    a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4",
    operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}} : ({a}, {sa}, {b}, {sb}) -> {c}
  return %c : {c}
}}"""


def gemm_schedules(m: int, n: int, k: int) -> list[Schedule]:
    """Schedules with equal tiles of every legal width, and parts of K in whole stages."""
    found = []
    for parts in (p for p in PARTS if -(-k // STAGE_K) % p == 0):
        with mlir_context() as context:
            module = load_module(program(m, n, k), context)
            SplitK(splits=parts).apply(module)
            (op,) = (each for each in tensor_ops(module) if isinstance(each, BlockScaledMatmulOp))
            ranked = GemmSchedules(op).ranked()
        for each in ranked:
            name = f"n-tile {each.work.n_tile}, split-k {parts}"
            cost = partial(gemm_microseconds, m * n, parts, each)
            found.append(Schedule(name, cost, default=parts == 1 and each is ranked[0]))
    return found


def gemm_microseconds(
    outputs: int, parts: int, first: GemmCandidate, constants: Constants
) -> float:
    """Modelled time of all launches; with parts of K a second launch adds them."""
    behind = launch_behind(outputs * (4 * parts + 2), constants) if parts > 1 else 0.0
    return first.microseconds(constants) + behind


def gemv_schedules(m: int, k: int, batch: int) -> list[Schedule]:
    """Schedules ``single``, ``split-k`` in 2 to 8 parts, and ``stream-k``."""
    options = ["single", *(f"split-k splits={p}" for p in PARTS if p > 1), "stream-k"]
    usual = GEMV["Compiled"](m, k, batch)
    found = []
    for option in options:
        compiled = replace(usual, options=f"schedule={option}")
        try:
            plan = compiled.plan(compiled.requested)
        except tcir.Error as error:
            found.append(Schedule(option, lambda _: inf, str(error).splitlines()[0]))
            continue
        same = compiled.kernel.ptx == usual.kernel.ptx
        found.append(Schedule(option, partial(gemv_microseconds, plan.seconds), "", same))
    return found


def gemv_microseconds(seconds: Callable[[float], float], constants: Constants) -> float:
    """Modelled time of a plan, which depends on the achieved bandwidth."""
    return seconds(constants["hbm"] * 1e9) * 1e6


@dataclass(frozen=True)
class Product:
    """A problem, and its schedules."""

    name: str
    schedules: list[Schedule]

    def ranked(self, constants: Constants = DEFAULT) -> list[Schedule]:
        """Legal schedules, cheapest first."""
        legal = [each for each in self.schedules if not each.reason]
        return sorted(legal, key=lambda each: each.microseconds(constants))

    def choices(self) -> dict[str, Schedule]:
        """Cheapest schedule under each other answer to a disputed constant."""
        return under_other_answers(lambda constants: self.ranked(constants)[0])


def products() -> Iterator[Product]:
    """The three GEMM and the three GEMV shapes."""
    for shape in GEMM_SHAPES:
        yield Product(f"GEMM (M, N, K) = {shape}", gemm_schedules(*shape))
    for shape in GEMV_SHAPES:
        yield Product(f"GEMV (M, K, L) = {shape}", gemv_schedules(*shape))


def rows(product: Product, top: int) -> Iterator[str]:
    """Markdown rows: the cheapest, the default, and choices under other constants."""
    ranked = product.ranked()
    changed: dict[str, list[str]] = {}
    for answer, each in product.choices().items():
        if each is not ranked[0]:
            changed.setdefault(each.name, []).append(answer)
    words = "; ".join(f"{name} under {', '.join(answers)}" for name, answers in changed.items())
    for place, each in enumerate(ranked):
        if place >= top and not each.default:
            continue
        marks = ["least"] * (place == 0) + ["chosen"] * each.default
        head = f"| {product.name if not place else ''} | {each.name} "
        tail = words or "the same" if not place else ""
        yield f"{head}| {each.microseconds():.2f} | {', '.join(marks)} | {tail} |"


def table(found: list[Product], top: int) -> str:
    """The tables of docs/explanation/gemm.md and docs/explanation/gemv.md."""
    lines = [
        "| problem, NVFP4 | schedule | us, modelled | | under other answers |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *(row for product in found for row in rows(product, top))])


def illegal(product: Product) -> Iterator[str]:
    """Lines with the schedules that are not legal, by reason."""
    reasons: dict[str, list[str]] = {}
    for each in product.schedules:
        if each.reason:
            reason = each.reason.rpartition(", got ")[0] or each.reason
            reasons.setdefault(reason.partition(": ")[2] or reason, []).append(each.name)
    for reason, names in reasons.items():
        yield f"{product.name}: {reason}: not legal: {'; '.join(names)}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--top", type=int, default=3, help="schedules of each problem")
    arguments = parser.parse_args()
    found = list(products())
    print(
        table(found, arguments.top),
        "",
        *(line for each in found for line in illegal(each)),
        sep="\n",
    )


if __name__ == "__main__":
    main()
