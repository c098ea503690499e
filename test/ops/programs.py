"""Kernels of one CTA around the op under test, and their execution at every level below tensors.

A kernel loads its operands by TMA, multiplies and stores; a test writes out the roles that contain
the op. Memory is planned and roles are assigned, as before `convert-tc-to-nvvm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tcir import codegen
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.kernel.verify import verify_kernel
from tcir.interp import Outcome, OutputSpec
from tcir.interp import thread as thread_level
from tcir.interp import tile as tile_level
from tcir.passes.nvvm.convert_tc_to_nvvm import ConvertTcToNvvm
from tcir.passes.nvvm.lower_to_llvm import LOWER_TO_LLVM
from tcir.passmanager.pipeline import Pipeline
from tcir.program.execution import run_kernel
from tcir.program.launch import Launch
from tcir.run_options import RunOptions

ORDERS = (None, 1, 2, 3)
Array = np.ndarray[Any, Any]
SPANS = {"128B": 128, "64B": 64, "32B": 32, "NONE": 16}


def tensor_map(
    name: str,
    of: str,
    shape: Sequence[int],
    kind: str,
    box: Sequence[int],
    swizzle: str = "128B",
    dtype: str = "",
) -> str:
    """``%name``: the map of a row-major tensor; `box` is innermost first."""
    width = {"f32": 4, "i32": 4, "f16": 2, "bf16": 2}.get(kind, 1)
    dims = list(reversed(shape))
    strides = [width * int(np.prod(dims[: i + 1])) for i in range(len(dims) - 1)]
    arrays = {"dims": dims, "strides": strides, "box": box, "element_strides": [1] * len(dims)}
    spelled = ", ".join(f"{n} = array<i64: {', '.join(map(str, v))}>" for n, v in arrays.items())
    spelled += f', dtype = "{dtype}"' if dtype else ""
    type_ = f"memref<{'x'.join(map(str, shape))}x{kind}>"
    return (
        f'%{name} = "tc.make_tensor_map"(%{of}) {{mode = "tiled", {spelled}, '
        f'corners = array<i64>, swizzle = "{swizzle}"}} : ({type_}) -> !tc.tensor_map'
    )


@dataclass
class Kernel:
    """Text of a kernel ``@f``: arguments, what is set up, then the bodies of its roles.

    setup: ops before the CTA barrier. roles: (kind, warps, threads, body). smem: bytes of tiles;
    mbarriers follow. arrivals: mbarriers by name, each with its count of arrivals.
    """

    arguments: Sequence[str]
    setup: Sequence[str]
    roles: Sequence[tuple[str, Sequence[int], str, Sequence[str]]]
    smem: int
    columns: int = 0
    arrivals: dict[str, int] = field(default_factory=dict)
    tiles: Sequence[str] = ()
    """Tensor-memory tiles of ``%base``."""
    attributes: str = "tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>"
    constants: Sequence[int] = (*range(0, 257, 16), 1, 2, 3, 4, 8)
    pair: bool = False
    """Whether two CTAs execute it together, the leader the role of kind mma."""

    def text(self) -> str:
        """The module."""
        end = self.smem + 8 * len(self.arrivals) + 8
        group = ", cta_group = 2 : i64" if self.pair else ""
        barrier = f'"tc.{"cluster" if self.pair else "cta"}_barrier"() : () -> ()'
        lines = [
            f"func.func @f({', '.join(self.arguments)}) attributes {{tc.kernel, tc.async, "
            f'tc.target = "sm_100a", {self.attributes}, tc.smem_bytes = {end} : i64'
            + (f", tc.tmem_columns = {self.columns} : i64" if self.columns else "")
            + "} {",
            *(f"%c{v} = arith.constant {v} : index" for v in sorted(set(self.constants))),
            "%true = arith.constant true",
            "%false = arith.constant false",
            *self.setup,
        ]
        for i, (name, count) in enumerate(self.arrivals.items()):
            lines.append(
                f'%{name} = "tc.mbarrier_init"() {{arrivals = {count} : i64, '
                f"offset = {self.smem + 8 * i} : i64}} : () -> !tc.mbarrier"
            )
        lines.append('"tc.fence"() {kind = "mbarrier_init"} : () -> ()')
        if self.columns:
            lines += [
                f'%base = "tc.tmem_alloc"() {{columns = {self.columns} : i64, '
                f"address_slot = {end - 8} : i64, warp = 5 : i64{group}}} : () -> !tc.tmem_base",
                f'"tc.tmem_relinquish"() {{warp = 5 : i64{group}}} : () -> ()',
                '"tc.fence"() {kind = "tcgen05.before"} : () -> ()',
            ]
        lines.append(barrier)
        if self.columns:
            lines += ['"tc.fence"() {kind = "tcgen05.after"} : () -> ()', *self.tiles]
        for kind, warps, threads, body in self.roles:
            leads = "leader, " if self.pair and kind == "mma" else ""
            lines += [
                '"tc.role"() ({',
                "^bb0(%me: index):",
                *body,
                f'}}) {{kind = "{kind}", {leads}warps = array<i64: {", ".join(map(str, warps))}>, '
                f'threads = "{threads}"}} : () -> ()',
            ]
        if self.columns:
            lines.append('"tc.fence"() {kind = "tcgen05.before"} : () -> ()')
        lines.append(barrier)
        if self.columns:
            lines.append(
                f'"tc.tmem_dealloc"(%base) {{columns = {self.columns} : i64, warp = 5 : i64'
                f"{group}}} : (!tc.tmem_base) -> ()"
            )
        return "\n".join([*lines, "return }"])


def tile(name: str, column: int, type_: str) -> str:
    """A tensor-memory tile of ``%base``."""
    return (
        f'%{name} = "tc.tmem_tile"(%base) {{column = {column} : i64, '
        f"operandSegmentSizes = array<i32: 1>}} : (!tc.tmem_base) -> {type_}"
    )


def smem(name: str, offset: int, type_: str) -> str:
    """A shared tile."""
    return f'%{name} = "tc.smem_tile"() {{offset = {offset} : i64}} : () -> {type_}'


def load(
    map_: str,
    coords: Sequence[str],
    into: str,
    type_: str,
    nbytes: int,
    bar: str = "full",
    row: int = 0,
    more: str = "",
) -> list[str]:
    """Announces and loads one box."""
    indices = ", ".join(f"%{c}" for c in coords)
    types = ", ".join(["index"] * len(coords))
    return [
        f'"tc.mbarrier_expect_tx"(%{bar}) {{nbytes = {nbytes} : i64}} : (!tc.mbarrier) -> ()',
        f'"tc.tma_load"(%{map_}, {indices}, %{into}, %{bar}) {{row = {row} : i64, nbytes = {nbytes}'
        f" : i64, operandSegmentSizes = array<i32: 1, {len(coords)}, 0, 1, 1>{more}}} : "
        f"(!tc.tensor_map, {types}, {type_}, !tc.mbarrier) -> ()",
    ]


def wait(bar: str, parity: str = "c0") -> str:
    return f'"tc.mbarrier_wait"(%{bar}, %{parity}) : (!tc.mbarrier, index) -> ()'


def commit(bar: str) -> str:
    return f'"tc.commit"(%{bar}) : (!tc.mbarrier) -> ()'


def fence(kind: str) -> str:
    return f'"tc.fence"() {{kind = "{kind}"}} : () -> ()'


def store(
    d: str, columns: int, row: str, column: str, out: str, kind: str, tile_: str = "d"
) -> list[str]:
    """Stores a warp's lanes of D from row `row` and column `column` on."""
    vector = f"vector<32x{columns}xf32>"
    return [
        f'%v{tile_} = "tc.tmem_ld"(%{tile_}, %quarter, %c0) : ({d}, index, index) -> {vector}',
        '"tc.tmem_wait"() {kind = "ld"} : () -> ()',
        f'"tc.store_rows"(%v{tile_}, %{out}, {row}, {column}) {{rows = 32 : i64, '
        f"row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>}} : "
        f"({vector}, {kind}, index, index) -> ()",
    ]


def kernel(
    operands: Sequence[tuple[str, str, tuple[int, int], str]],
    tiles: Sequence[str],
    mma: Sequence[str],
    epilogue: Sequence[str],
    out: tuple[int, int],
) -> Kernel:
    """A product: `operands` (name, element, shape, swizzle), each loaded whole to a K-major tile at
    most a swizzle span wide; the bodies of the roles that multiply and store."""
    arguments, setup, loads, offset = [], [], [], 0
    for name, element, shape, swizzle in operands:
        span = SPANS[swizzle]
        wide = span // {"i32": 4, "i8": 1}.get(element, 2)
        type_ = f'!tc.smem<array<i64: {shape[0]}, {shape[1]}>, {element}, "K", "{swizzle}">'
        arguments.append(f"%{name}: memref<{shape[0]}x{shape[1]}x{element}>")
        dtype = "u8" if element == "i8" else ""
        setup.append(tensor_map(f"m{name}", name, shape, element, (wide, shape[0]), swizzle, dtype))
        setup.append(smem(f"s{name}", offset, type_))
        loads += load(f"m{name}", ["c0", "c0"], f"s{name}", type_, shape[0] * span)
        offset += -(-shape[0] * span // 1024) * 1024
    arguments.append(f"%out: memref<{out[0]}x{out[1]}xf32>")
    end = [wait("done"), fence("tcgen05.after"), *epilogue, fence("tcgen05.before")]
    return Kernel(
        arguments=arguments,
        setup=setup,
        roles=[
            ("producer", [4], "one", loads),
            ("mma", [5], "one", [wait("full"), fence("tcgen05.after"), *mma, commit("done")]),
            ("epilogue", [0, 1, 2, 3], "warp", ["%quarter = arith.addi %me, %c0 : index", *end]),
        ],
        smem=offset,
        columns=256,
        arrivals={"full": len(operands), "done": 1},
        tiles=tiles,
    )


def outcomes(
    text: str,
    inputs: Sequence[Array],
    outputs: Sequence[OutputSpec],
    orders: Sequence[int | None] = ORDERS,
) -> list[tuple[str, Outcome]]:
    """The program executed on tiles, as threads, and as PTX of LLVM, under several orders."""
    found: list[tuple[str, Outcome]] = []
    context = ir.Context()
    tc.load(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        broken = [m for op in module.body.operations for m in verify_kernel(op)]
        assert not broken, broken
        for seed in orders:
            outcome = tile_level.run(module, "f", inputs, outputs, RunOptions(seed))
            found.append((f"tiles, order {seed}", outcome))
        ConvertTcToNvvm().apply(module)
        module.operation.verify()
        for seed in orders[:2]:
            outcome = thread_level.run(module, "f", inputs, outputs, RunOptions(seed))
            found.append((f"threads, order {seed}", outcome))
        launch = Launch.from_module(module)
        Pipeline(LOWER_TO_LLVM).run(module)
        ptx = codegen.emit_ptx(codegen.translate(module))
    assert codegen.assemble(ptx).spill_bytes == 0
    for seed in orders:
        outcome = run_kernel(ptx, launch, inputs, outputs, RunOptions(seed))
        found.append((f"PTX, order {seed}", outcome))
    return found


def check(
    text: str, inputs: Sequence[Array], expected: Array, orders: Sequence[int | None] = ORDERS
) -> None:
    """Every level gives `expected`, complete and without a finding."""
    spec = [OutputSpec(expected.shape, expected.dtype)]
    for where, outcome in outcomes(text, inputs, spec, orders):
        assert not outcome.incomplete, (where, outcome.incomplete)
        assert not outcome.findings, (where, [str(f) for f in outcome.findings][:3])
        np.testing.assert_array_equal(outcome.outputs[0], expected, err_msg=where)
