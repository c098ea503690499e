"""``convert-tc-to-nvvm``: converts one program per CTA to one program per thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir, llvm
from tcir.dialect import tc
from tcir.dialect.attributes import integers, optional_integer, string
from tcir.dialect.limits import SMEM_TILE_ALIGNMENT, WARP, launch_registers
from tcir.dialect.multicast import cluster_ctas
from tcir.dialect.operation import traits_of
from tcir.dialect.ops.tma import map_dtype
from tcir.errors import PassError
from tcir.passes.emit.gpu_module import (
    buffer_number,
    is_converted,
    kernels_block,
    pointer_type,
)
from tcir.passes.emit.kernel_ops import CTAS_PER_SM
from tcir.passes.nvvm.converter import Converter, GlobalTensor
from tcir.passmanager.pipeline import Pass, register_pass

SMEM_SYMBOL = "smem"

MAP_BYTES = 128
MAP_ALIGNMENT = 64
"""Size and alignment of a tensor map (CUDA driver API, CUtensorMap)."""

POINTER_ALIGNMENT = 16
"""Alignment that vector stores need of the caller's buffers; device allocations have 256."""

_MAP_ATTRIBUTES = (
    f"{{llvm.byval = !llvm.array<{MAP_BYTES // 8} x i64>, nvvm.grid_constant, "
    f"llvm.align = {MAP_ALIGNMENT} : i64}}"
)
_POINTER_ATTRIBUTES = f"{{llvm.align = {POINTER_ALIGNMENT} : i64}}"


@register_pass
@dataclass(frozen=True)
class ConvertTcToNvvm(Pass):
    """Rebuilds every kernel, whose memory must be planned and whose roles must be assigned, as a
    program of one thread.

    Before::

        func.func @f(%x: memref<...>, %out: memref<...>) attributes {tc.kernel, tc.grid, tc.block} {
          %map = "tc.make_tensor_map"(%x) {...}
          "tc.role"() ({ ... }) {kind = "producer", warps = array<i64: 4>, threads = "one"}
        }

    After::

        gpu.module @kernels {
          llvm.mlir.global external @smem() {addr_space = 3, alignment = 1024}
          llvm.func @f(%map: !llvm.ptr {llvm.byval, nvvm.grid_constant}, %out: !llvm.ptr<1>)
              attributes {nvvm.kernel, nvvm.reqntid, tc.params, tc.grid, tc.smem_bytes} { ... }
        }

    The body consists of scf, arith, llvm and nvvm ops. Index arithmetic becomes i32; a tile
    ``vector<32xNxT>`` becomes the row ``vector<NxT>`` of a thread. ``tc.params`` describes for each
    kernel parameter how a launch makes it from the buffer of that number (``tc.args``, or the
    argument's own): a tensor map (the arguments of the driver's encode call) or a pointer. Kernels
    are appended to an existing `gpu.module`. Preserves the order of effects of each role, and the
    values stored.
    """

    name: ClassVar[str] = "convert-tc-to-nvvm"

    def run(self, module: ir.Module) -> None:
        """Replaces each kernel of `module` by one in ``gpu.module @kernels``."""
        tc.load(module.context)
        kernels = [op for op in module.body.operations if "tc.kernel" in op.operation.attributes]
        if is_converted(module):
            return
        if not kernels:
            raise PassError(
                "expected a func.func with the attribute tc.kernel, got none; "
                "the tile-* passes make one",
                module.operation.location,
            )
        with ir.InsertionPoint(kernels_block(module)):
            dynamic = ir.Type.parse("!llvm.array<0 x i8>")
            symbol = _smem_symbol(module)
            llvm.mlir_global(symbol, dynamic, space=3, alignment=SMEM_TILE_ALIGNMENT)
            for kernel in kernels:
                with kernel.location:
                    _convert_kernel(kernel, symbol)
        for kernel in kernels:
            kernel.operation.erase()


def _smem_symbol(module: ir.Module) -> str:
    """The name of the kernels' shared memory, which none of them has."""
    names = {name.value for op in module.body if (name := op.attributes.get("sym_name"))}
    names |= {op.attributes["sym_name"].value for op in kernels_block(module)}
    symbol = SMEM_SYMBOL
    while symbol in names:
        symbol += "_"
    return symbol


def _convert_kernel(kernel: func.FuncOp, smem_symbol: str) -> None:
    """Builds the llvm.func of `kernel` at the insertion point, and converts the body into it."""
    old_entry = kernel.regions[0].blocks[0]
    parameters = _Parameters(_tensor_maps(old_entry), _used_directly(old_entry))
    entry = _declare(kernel, parameters)
    converter = _converter(kernel, parameters, entry)
    with ir.InsertionPoint(entry):
        converter.begin(entry, smem_symbol)
        *body, terminator = old_entry.operations
        for op in body:
            converter.convert_op(op)
        with terminator.location:
            llvm.return_()


@dataclass(frozen=True)
class _Parameters:
    """Parameters of the kernel: tensor maps, then pointers (by number of the argument)."""

    maps: list[tc.MakeTensorMapOp]
    pointers: list[int]

    @property
    def spaces(self) -> list[int]:
        """The address space of each parameter."""
        return [0] * len(self.maps) + [1] * len(self.pointers)

    @property
    def attributes(self) -> list[ir.Attribute]:
        """Argument attributes of the llvm.func."""
        return [ir.Attribute.parse(_MAP_ATTRIBUTES)] * len(self.maps) + [
            ir.Attribute.parse(_POINTER_ATTRIBUTES)
        ] * len(self.pointers)

    def at_launch(self, kernel: func.FuncOp) -> ir.ArrayAttr:
        """The attribute ``tc.params``: how a launch makes each parameter from a buffer."""
        return ir.ArrayAttr.get(
            [_map_parameter(kernel, op) for op in self.maps]
            + [_pointer_parameter(kernel, number) for number in self.pointers]
        )


def _declare(kernel: func.FuncOp, parameters: _Parameters) -> ir.Block:
    """The llvm.func with its attributes; returns its empty entry block."""
    attributes = _launch_attributes(kernel) | {"tc.params": parameters.at_launch(kernel)}
    types = [pointer_type(space) for space in parameters.spaces]
    name = ir.StringAttr(kernel.attributes["sym_name"]).value
    return llvm.func(name, types, parameters.attributes, attributes)


def _launch_attributes(kernel: func.FuncOp) -> dict[str, ir.Attribute]:
    """The CTA's and cluster's shape for NVVM, and the ``tc.`` attributes a launch reads."""
    source = kernel.operation.attributes
    attributes = {
        "nvvm.kernel": ir.UnitAttr.get(),
        "nvvm.reqntid": ir.DenseI32ArrayAttr.get([_threads(kernel), 1, 1]),
        "tc.grid": _required(kernel, "tc.grid"),
        "tc.smem_bytes": _required(kernel, "tc.smem_bytes"),
    }
    words = "order", "target", "tmem_columns", "cluster", "programmatic", "unwritten"
    for name in (f"tc.{word}" for word in words):
        if name in source:
            attributes[name] = source[name]
    if "tc.cluster" in source:
        cluster = list(ir.DenseI64ArrayAttr(source["tc.cluster"]))
        attributes["nvvm.cluster_dim"] = ir.DenseI32ArrayAttr.get(cluster)
    if (optional_integer(kernel, CTAS_PER_SM) or 1) > 1:
        attributes["nvvm.minctasm"] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(32), optional_integer(kernel, CTAS_PER_SM)
        )
    if any(isinstance(op, tc.WarpgroupRegistersOp) for op in kernel.regions[0].blocks[0]):
        registers = launch_registers(_threads(kernel))
        attributes["nvvm.maxnreg"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), registers)
    return attributes


def _threads(kernel: func.FuncOp) -> int:
    """Threads of a CTA."""
    block = list(ir.DenseI64ArrayAttr(_required(kernel, "tc.block")))
    if block[1:] != [1, 1] or block[0] % WARP:
        raise PassError(
            f"expected a one-dimensional CTA of whole warps, got {block}", kernel.location
        )
    return block[0]


def _converter(kernel: func.FuncOp, parameters: _Parameters, entry: ir.Block) -> Converter:
    """A converter that knows the kernel's parameters, arguments and, at the warp level, warps."""
    maps = len(parameters.maps)
    arguments = list(entry.arguments)
    converter = Converter(
        arguments[:maps], dict(zip(parameters.pointers, arguments[maps:], strict=True))
    )
    for number, argument in enumerate(kernel.regions[0].blocks[0].arguments):
        memref = ir.MemRefType(argument.type)
        if not memref.has_static_shape:
            raise PassError(f"expected static shapes, got argument {number} of type {memref}")
        converter.values[argument] = GlobalTensor(number, tuple(memref.shape), memref.element_type)
    converter.ctas = cluster_ctas(kernel)
    if "tc.warps" in kernel.attributes:
        warps_m, warps_n = ir.DenseI64ArrayAttr(kernel.attributes["tc.warps"])
        converter.of_warps = True
        converter.warps = warps_m, warps_n
        converter.threads = warps_m * warps_n * WARP
    return converter


def _required(kernel: func.FuncOp, name: str) -> ir.Attribute:
    if name not in kernel.operation.attributes:
        raise PassError(
            f"expected attribute '{name}' on the kernel, got none; "
            "run the tile, plan-memory and assign-roles passes first",
            kernel.location,
        )
    return kernel.operation.attributes[name]


def _tensor_maps(entry: ir.Block) -> list[tc.MakeTensorMapOp]:
    return [op for op in entry.operations if isinstance(op, tc.MakeTensorMapOp)]


def _argument_of(tensor: ir.Value) -> int:
    """The kernel argument that a tensor is a view of."""
    while not isinstance(tensor.owner, ir.Block):
        tensor = tensor.owner.operands[0]
    return ir.BlockArgument(tensor).arg_number


def _used_directly(entry: ir.Block) -> list[int]:
    """Arguments stored to (or loaded from) without a tensor map, in order."""
    found: set[int] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        traits = traits_of(op)
        for name in (traits.stores, traits.loads):
            tensor = getattr(op.opview, name) if name else None
            if tensor is not None and isinstance(tensor.type, ir.MemRefType):
                found.add(_argument_of(tensor))
        if op.name == "memref.load":
            found.add(_argument_of(op.operands[0]))
        return ir.WalkResult.ADVANCE

    for op in entry.operations:
        op.operation.walk(visit)
    return sorted(found)


def _pointer_parameter(kernel: func.FuncOp, argument: int) -> ir.Attribute:
    number = _int(buffer_number(kernel, argument))
    return ir.DictAttr.get({"kind": ir.StringAttr.get("pointer"), "arg": number})


def _int(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _map_parameter(kernel: func.FuncOp, op: tc.MakeTensorMapOp) -> ir.Attribute:
    """The arguments of the driver's encode call, innermost dimension first."""
    mode = string(op, "mode")
    box = integers(op, "box")
    corners = integers(op, "corners")
    fields: dict[str, ir.Attribute] = {
        "kind": ir.StringAttr.get("tensor_map"),
        "arg": _int(buffer_number(kernel, _argument_of(op.tensor))),
        "mode": op.attributes["mode"],
        "dtype": ir.StringAttr.get(map_dtype(op)),
        "dims": op.attributes["dims"],
        "strides": op.attributes["strides"],
        "element_strides": op.attributes["element_strides"],
        "swizzle": op.attributes["swizzle"],
    }
    if mode == "tiled":
        fields["box"] = op.attributes["box"]
    elif mode == "im2col":
        spatial = len(corners) // 2
        fields["lower_corner"] = ir.DenseI64ArrayAttr.get(corners[:spatial])
        fields["upper_corner"] = ir.DenseI64ArrayAttr.get(corners[spatial:])
        fields["channels_per_pixel"] = _int(box[0])
        fields["pixels_per_column"] = _int(box[1])
    elif mode in ("im2col_w", "im2col_w128"):
        fields["lower_corner_width"], fields["upper_corner_width"] = map(_int, corners)
        fields["channels_per_pixel"] = _int(box[0])
        fields["pixels_per_column"] = _int(box[1])
    else:
        raise PassError(f'expected a mode of tc.make_tensor_map, got "{mode}"', op.location)
    return ir.DictAttr.get(fields)
