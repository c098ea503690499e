"""fold-layouts: folds transposes, casts and reshapes around a contraction into the contraction's
indexing maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import ClassVar

from tcir._mlir import arith, func, ir, linalg, passmanager, tensor
from tcir.dialect import tc
from tcir.dialect.operation import Op
from tcir.dialect.upstream import RESHAPES
from tcir.passes.analysis.affine import linear_forms
from tcir.passes.analysis.contraction import (
    Conv,
    is_contraction,
    recognise,
    unaccepted,
    value,
)
from tcir.passes.analysis.cuda_cores import no_tensor_core
from tcir.passes.analysis.moves import filling, inverse, is_widening, move_of, transpose
from tcir.passes.analysis.reductions import is_product
from tcir.passes.analysis.scaled_contraction import is_scaled_contraction
from tcir.passes.analysis.stored_tensors import (
    Stay,
    is_mark,
    mark,
    mark_joined,
    mark_of,
    mark_once,
    multiplied,
    repeat,
    unmark,
)
from tcir.passes.analysis.wrappers import starts_from_zeros
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.calls import inline_calls
from tcir.passes.emit.clone import clone
from tcir.passes.emit.diagnostics import is_op
from tcir.passes.emit.reshape import moves_only_units, reshape
from tcir.passes.emit.tensor_functions import functions_with_body, tensor_bytes
from tcir.passes.module.rewrites.half_sums import widen_half_sums
from tcir.passes.module.rewrites.numbers import read_in_bodies
from tcir.passes.module.rewrites.packs import lower_packs
from tcir.passes.module.rewrites.patches import multiply_patches
from tcir.passes.module.rewrites.phases import split_phases
from tcir.passes.module.rewrites.zero_points import correct_zero_points
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark

UPSTREAM = (
    "func.func(convert-elementwise-to-linalg,linalg-generalize-named-ops,"
    "linalg-fuse-elementwise-ops)"
)


@register_pass
@dataclass(frozen=True)
class FoldLayouts(Pass):
    """Folds ops that only move or widen elements into the indexing maps and body of a contraction.

    Before, as an importer of PyTorch writes a convolution, channels first::

        %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {…}
        %c = linalg.conv_2d_nchw_fchw ins(%p, %w) outs(%init)
        %r = linalg.generic … arith.truncf …
        return %r

    After: the sums in the order of the kernels, channels last, and a ``tc.repack`` of the result if
    its dimensions have another order::

        %c = linalg.generic {… -> (n, p, q, k)} ins(%p, %w) outs(%init')
        %r' = linalg.generic … arith.truncf …
        %r = "tc.repack"(%r') {permutation = array<i64: 0, 3, 1, 2>}
        return %r

    Upstream's ``convert-elementwise-to-linalg``, ``linalg-generalize-named-ops`` and
    ``linalg-fuse-elementwise-ops`` do the folding into maps; this pass first moves padding past
    transposes, and prevents those passes from fusing computed operands into a contraction. Between
    convolutions, images are stored with their channels last. A transposed convolution becomes one
    without zeros between its pixels, where possible; a convolution whose stride is larger than
    tensor maps allow becomes a product of patches (docs/explanation/convolution.md). If a function
    has several products, a transpose or broadcast that the maps of one of them cannot express stays
    before that product. Sums of f16 and bf16 become sums of f32, rounded once; quantised products
    become products of i8, corrected by their zero points. A function stays as it is if no such op
    surrounds its contractions. Preserves every value, up to the order of the f32 sums.
    """

    name: ClassVar[str] = "fold-layouts"

    def run(self, module: ir.Module) -> None:
        inline_calls(module)
        lower_packs(module)
        correct_zero_points(module)
        read_in_bodies(module)
        widen_half_sums(module)
        split_phases(module)
        multiply_patches(module)
        for function in functions_with_body(module):
            if len(function.regions[0].blocks) == 1 and _has_layouts(function):
                _fold(function)


def _fold(function: func.FuncOp) -> None:
    """Folds around the only product; or around all of several, if they have a form then."""
    if len(_products(function)) == 1:
        _fold_around(function, {})
        return
    stay: dict[int, Stay] = {}
    while True:
        with ir.InsertionPoint(function):
            folded = function.operation.clone().opview
        _fold_around(folded, stay)
        formless = [n for n, op in enumerate(_products(folded)) if recognise(op) is None]
        if not formless:
            function.operation.erase()
            return
        folded.operation.erase()
        if any(stay.get(n) == Stay.ALL for n in formless):
            return
        stay |= {n: Stay.ALL if n in stay else Stay.COMPUTED for n in formless}


def _fold_around(function: func.FuncOp, stay: Mapping[int, Stay]) -> None:
    """Folds moves of tensors in memory into the ops around them. stay: for each product, the moves
    that are not folded"""
    _expand_first(function)
    _pad_first(function)
    repeat(function)
    mark(function, _products(function), stay)
    mark_joined(function, _products(function))
    mark_once(function)
    _fuse(function)
    if _order_results(function):
        _pad_first(function)
        _fuse(function)
    _order_filters(function)
    unmark(function)
    _drop_unit_moves(function)
    _name_constants(function)


def _products(function: func.FuncOp) -> list[ir.OpView]:
    """The products for tensor cores, and beside them convolutions for CUDA cores, whose images are
    channels last, too; in order. A single contraction of two inputs whatever its body. On CUDA
    cores alone a thread follows layouts back element by element, except that it computes a
    depthwise convolution in the order of its image, if that is channels last."""
    found = [op for op in function.entry_block if is_contraction(op) and len(op.results) == 1]
    if len(found) > 1 or any(len(op.operands) == 2 for op in found):
        found = [op for op in found if is_product(op.operation) or multiplied(op)]
    multiplies = {op for op in found if not no_tensor_core(op)}
    if not multiplies:
        return [op for op in found if _is_depthwise_last(op)]
    return [op for op in found if op in multiplies or isinstance(recognise(op), Conv)]


def _is_depthwise_last(op: ir.OpView) -> bool:
    """Whether an op is a depthwise convolution of an image whose memory is channels last."""
    found = recognise(op)
    if not isinstance(found, Conv) or found.channels:
        return False
    image = list(found.image)
    if move := move_of(_unpadded(op.operands[found.x])):
        if not move.is_permutation:
            return False
        image = [move.dims.index(d) for d in image]
    return image == sorted(image)


def _has_layouts(function: func.FuncOp) -> bool:
    """Whether there is something to fold, and nothing that another pass is to see first."""
    ops = list(function.entry_block)
    foreign = any(isinstance(each, Op) and not isinstance(each, tc.AttentionOp) for each in ops)
    products = _products(function)
    if not products or foreign or any(map(is_scaled_contraction, ops)):
        return False
    if any(map(unaccepted, products)):
        return False
    if any(not _is_static(each) for op in products for each in op.operands):
        return False
    several = len(products) > 1
    return _moves(ops, several) or any(_has_layout(op, several) for op in products)


def _has_layout(op: ir.OpView, several: bool) -> bool:
    """Whether a product is channels first, or is the only one and reads another op's result."""
    found = recognise(op)
    if isinstance(found, Conv) and not found.is_channels_last:
        return True
    inputs = [_unpadded(each) for each in list(op.operands)[:-1]]
    return not several and (
        len(inputs) != 2 or any(not isinstance(each, ir.BlockArgument) for each in inputs)
    )


def _moves(ops: Sequence[ir.OpView], several: bool) -> bool:
    """Whether one of the ops is a reshape, a transpose, or a cast before several products."""
    results = [each.results[0] for each in ops if each.results]
    moved = [move for each in results if (move := move_of(each))]
    turned = [m for m in moved if m.is_permutation and m.dims != tuple(sorted(m.dims))]  # type: ignore[type-var]
    return (
        bool(turned)
        or any(isinstance(each, RESHAPES) for each in ops)
        or (several and any(map(is_widening, results)))
    )


def _is_static(operand: ir.Value) -> bool:
    kind = operand.type
    return not isinstance(kind, ir.RankedTensorType) or kind.has_static_shape


def _unpadded(operand: ir.Value) -> ir.Value:
    while not isinstance(operand, ir.BlockArgument) and operand.owner.name == "tensor.pad":
        operand = operand.owner.operands[0]
    return operand


def _fuse(function: func.FuncOp) -> None:
    passmanager.PassManager.parse(UPSTREAM).run(function.operation)


def _expand_first(function: func.FuncOp) -> None:
    """Pads an expanded tensor (channels to groups) after the expansion: the padding meets the
    contraction."""
    for op in list(function.entry_block):
        if not isinstance(op, tensor.ExpandShapeOp) or not is_op(op.src, "tensor.pad"):
            continue
        pad, groups = op.src.owner, [list(map(int, each)) for each in op.reassociation]
        low, high = (list(pad.attributes[f"static_{end}"]) for end in ("low", "high"))
        split = [d for d, group in enumerate(groups) if len(group) > 1]
        if len(pad.operands) != 1 or any(low[d] or high[d] for d in split):
            continue
        source, sizes = pad.operands[0], list(op.result.type.shape)
        for d, group in enumerate(groups):
            if d not in split:
                sizes[group[0]] = source.type.shape[d]
        dims = [d for d, group in enumerate(groups) for _ in group]
        with ir.InsertionPoint(op), op.location:
            op.result.replace_all_uses_with(_padded(pad, reshape(source, sizes), dims))
        op.operation.erase()


def _pad_first(function: func.FuncOp) -> None:
    """Moves the padding of a transposed tensor before the transpose, which is then next to the
    contraction."""
    for op in list(function.entry_block):
        if op.operation.name != "tensor.pad" or len(op.operands) != 1:
            continue
        move = move_of(op.operands[0])
        if move is None or not move.is_permutation:
            continue
        turned = [int(d) for d in move.dims if d is not None]
        with ir.InsertionPoint(op), op.location:
            padded = _padded(op.operation, move.source, turned)
            op.results[0].replace_all_uses_with(transpose(padded, inverse(turned)))
        op.operation.erase()


def _padded(pad: ir.Operation, source: ir.Value, dims: Sequence[int]) -> ir.Value:
    """Pads `source` as `pad` does, where dimension d of `source` is dimension ``dims[d]`` of the
    operand of `pad`. Several dimensions may stand for one without padding."""
    low, high = (
        [list(pad.attributes[f"static_{end}"])[d] for d in dims] for end in ("low", "high")
    )
    sizes = [a + n + b for a, n, b in zip(low, source.type.shape, high, strict=True)]
    made = ir.Operation.create(
        "tensor.pad",
        results=[ir.RankedTensorType.get(sizes, source.type.element_type)],
        operands=[source],
        attributes={
            **{name: pad.attributes[name] for name in pad.attributes},
            "static_low": ir.DenseI64ArrayAttr.get(low),
            "static_high": ir.DenseI64ArrayAttr.get(high),
        },
        regions=1,
    )
    _clone_body(pad.regions[0].blocks[0], made.regions[0], len(sizes))
    return made.result


def _clone_body(block: ir.Block, region: ir.Region, indices: int | None = None) -> None:
    """A copy of a block, without the ops in it that others define; of `tensor.pad` with so many
    indices, which no padding reads that is the same everywhere."""
    kinds = [each.type for each in block.arguments]
    kinds = kinds if indices is None else [ir.IndexType.get()] * indices
    body = region.blocks.append(*kinds)
    known = dict(zip(block.arguments, body.arguments))
    with ir.InsertionPoint(body):
        for each in block.operations:
            clone(each, known)


def _order_results(function: func.FuncOp) -> bool:
    """Gives the sums the dimension order of the stored result, or the result that of the sums;
    returns whether anything changed."""
    changed = [_order_result(function, op) for op in _products(function)]
    return any(changed)


def _order_result(function: func.FuncOp, op: ir.OpView) -> bool:
    end = _end(function, op.results[0])
    found = recognise(op)
    if end is None and isinstance(found, Conv) and not found.is_channels_last:
        _reorder(op, list(found.out))  # what reads the sums turns them
        return True
    if end is None or found is None:
        return False
    user, order = end
    wanted = list(found.out) if isinstance(found, Conv) else inverse(order)
    if isinstance(found, Conv):
        changed = wanted != sorted(wanted)
    else:
        changed = wanted != sorted(wanted) and recognise(op, wanted) is not None
        wanted = wanted if changed else sorted(wanted)
    if changed:
        _reorder(op, wanted)
    return _store_in(function, user, [order[d] for d in wanted]) or changed


def _order_filters(function: func.FuncOp) -> None:
    """Stores the filters of depthwise convolutions channels last, as their images are: a thread
    then loads those of adjacent channels at once."""
    for op in _products(function):
        found = recognise(op)
        if not isinstance(found, Conv) or found.channels or not found.is_channels_last:
            continue
        maps = [value(each) for each in linalg.get_indexing_maps(op.operation)]
        index, channel = list(maps[found.w].results), maps[-1].results[-1]
        if channel not in index or index[-1] == channel:
            continue
        order = [d for d in range(len(index)) if index[d] != channel] + [index.index(channel)]
        maps[found.w] = ir.AffineMap.get(maps[-1].n_dims, 0, [index[d] for d in order])
        with ir.InsertionPoint(op), op.location:
            op.operation.operands[found.w] = mark_of(transpose(op.operands[found.w], order))
        attributes = ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps])
        op.operation.attributes["indexing_maps"] = attributes


def _end(function: func.FuncOp, sums: ir.Value) -> tuple[ir.Operation, list[int]] | None:
    """The op that consumes the sums (a marker, the return, or reshapes leading to one), directly
    or after elementwise ops, and the dimension order that it uses."""
    for op in _ends(sums):
        if len(op.operands) != 1:
            continue
        user, result = op, op.operands[0]
        while not isinstance(result, ir.BlockArgument) and isinstance(
            result.owner.opview, RESHAPES
        ):
            user, result = result.owner, result.owner.operands[0]
        order = _order(result, sums, {})
        if order is not None and result.type.rank == len(order):  # not broadcast
            return user, order
    return None


def _ends(sums: ir.Value) -> list[ir.Operation]:
    """Markers and the return that read something made of the sums, in order."""
    found, seen, waiting = list[ir.Operation](), {sums}, [sums]
    while waiting:
        for use in waiting.pop().uses:
            op = use.owner.operation
            if is_mark(op) or op.name == "func.return":
                found.append(op)
            elif fresh := [each for each in op.results if each not in seen]:
                seen.update(fresh)
                waiting += fresh
    return sorted(dict.fromkeys(found), key=cmp_to_key(_in_order))


def _in_order(a: ir.Operation, b: ir.Operation) -> int:
    return -1 if a.is_before_in_block(b) else 1


def _store_in(function: func.FuncOp, user: ir.Operation, turned: list[int]) -> bool:
    """Stores the result by way of its dimensions in the order `turned`, and what is made of it
    element by element as well."""
    if turned == sorted(turned):
        return False
    result = user.operands[0]
    with ir.InsertionPoint(user), user.location:
        made = transpose(result, turned)
        if moves_only_units(made.type.shape, inverse(turned)):
            user.operands[0] = reshape(made, result.type.shape)
        elif is_mark(user):
            _follow(function, _turn_mark(user, made, inverse(turned)))
        else:
            user.operands[0] = tc.RepackOp(made, i64s(inverse(turned)), result.type).out
            remark(
                user.opview,
                f"the result is made with its dimensions in the order {turned}, so that lanes are "
                f"rows of the product; a separate kernel repacks it, {tensor_bytes(result.type)} "
                "bytes read and written",
            )
    return True


def _follow(function: func.FuncOp, stored: ir.Value) -> None:
    """Gives the results computed from a stored tensor its dimension order: elementwise ones and
    windows."""
    if end := _end(function, stored):
        _store_in(function, *end)
    for op in list(function.entry_block):
        order = _order_of_windows(op, stored)
        end = _end(function, op.results[0]) if order else None
        if order and end and is_mark(end[0]):
            pooled = _reorder(op, order)
            user, turned = _end(function, pooled) or end
            _store_in(function, user, turned)


def _order_of_windows(op: ir.OpView, stored: ir.Value) -> list[int] | None:
    """For each dimension of `stored` that of the result which goes on with it, where an op pools
    it, perhaps padded; None for any other op."""
    if not is_contraction(op) or is_product(op.operation) or len(op.results) != 1:
        return None
    order = _order(_unpadded(op.operands[0]), stored, {})
    if order is None:
        return None
    read, *_, out = (value(each) for each in linalg.get_indexing_maps(op.operation))
    places = {e.position: n for n, e in enumerate(out.results) if isinstance(e, ir.AffineDimExpr)}
    forms = linear_forms(read)
    if forms is None or len(forms) != len(order) or len(places) != len(out.results):
        return None
    along = [[places[loop] for loop in forms[d] if loop in places] for d in order]
    found = [each[0] for each in along if len(each) == 1]
    return found if sorted(found) == list(range(len(order))) == sorted(places.values()) else None


def _turn_mark(old: ir.Operation, made: ir.Value, back: list[int]) -> ir.Value:
    """Stores `made` in place of the marked tensor, whose dimensions are those of `made` in the
    order `back`; returns the stored value."""
    stored = mark_of(made)
    for use in list(old.results[0].uses):
        use.owner.operands[use.operand_number] = transpose(stored, back)
    old.erase()
    return stored


def _order(
    result: ir.Value, sums: ir.Value, known: dict[ir.Value, list[int] | None]
) -> list[int] | None:
    """For each dimension of `sums` that of `result` at which its index is; None if that depends on
    anything else."""
    if result == sums:
        return list(range(sums.type.rank))
    if isinstance(result, ir.BlockArgument):
        return None
    if result not in known:
        known[result] = _order_through(result.owner, sums, known)
    return known[result]


def _order_through(
    op: ir.Operation, sums: ir.Value, known: dict[ir.Value, list[int] | None]
) -> list[int] | None:
    maps = [value(each) for each in linalg.get_indexing_maps(op) or ()]
    if not maps:
        inner = (_order(each, sums, known) for each in op.operands)
        return next((o for o in inner if o), None) if op.name.startswith("arith.") else None
    if not maps[-1].is_permutation:
        return None
    loops = {e.position: n for n, e in enumerate(maps[-1].results)}
    for operand, affine_map in zip(op.operands, maps):
        before = _order(operand, sums, known)
        if before is not None:
            read = [affine_map.results[d] for d in before]
            if all(isinstance(each, ir.AffineDimExpr) for each in read):
                return [loops[each.position] for each in read]
    return None


def _reorder(op: ir.OpView, order: Sequence[int]) -> ir.Value:
    """Makes the contraction's result in other dimensions: d is dimension ``order[d]`` now; that
    result."""
    old = op.results[0]
    maps = [value(each) for each in linalg.get_indexing_maps(op.operation)]
    out = maps[-1]
    maps[-1] = ir.AffineMap.get(out.n_dims, 0, [out.results[d] for d in order])
    with ir.InsertionPoint(op), op.location:
        start = _reordered(list(op.operands)[-1], order)
        attributes = {name: op.attributes[name] for name in op.attributes}
        attributes.pop("linalg.memoized_indexing_maps", None)
        attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps])
        new = ir.Operation.create(
            "linalg.generic",
            results=[start.type],
            operands=[*list(op.operands)[:-1], start],
            attributes=attributes,
            regions=1,
        )
        _clone_body(op.regions[0].blocks[0], new.regions[0])
        old.replace_all_uses_with(transpose(new.result, inverse(order)))
    op.operation.erase()
    return new.result


def _reordered(start: ir.Value, order: Sequence[int]) -> ir.Value:
    """Transposes the initial value of the sums; zeros are created in the new order."""
    if starts_from_zeros(start):
        shape = [start.type.shape[d] for d in order]
        kind = ir.RankedTensorType.get(shape, start.type.element_type)
        floating = isinstance(kind.element_type, ir.FloatType)
        zero = (ir.FloatAttr if floating else ir.IntegerAttr).get(kind.element_type, 0)
        return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, zero)).result
    return transpose(start, order)


def _name_constants(function: func.FuncOp) -> None:
    """Makes constants of the ops that repeat a number, as the zeros from which sums start: each
    launch has its own, where it would read the result of another op."""
    for op in list(function.entry_block):
        number = _repeated(op) if len(op.results) == 1 else None
        if number is None:
            continue
        kind = op.results[0].type
        with ir.InsertionPoint(op), op.location:
            same = arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, number)).result
        op.results[0].replace_all_uses_with(same)
        op.operation.erase()


def _repeated(op: ir.OpView) -> ir.Attribute | None:
    """The number to which each element of an op's result is equal: a filled tensor, or a reshape or
    a move of such a constant."""
    moves = isinstance(op, RESHAPES) or move_of(op.results[0]) is not None
    if moves and is_op(op.operands[0], "arith.constant"):
        elements = op.operands[0].owner.attributes["value"]
        splat = isinstance(elements, ir.DenseElementsAttr) and elements.is_splat
        return elements.get_splat_value() if splat else None
    number = filling(op.results[0])
    constant = number is not None and is_op(number, "arith.constant")
    return number.owner.attributes["value"] if number is not None and constant else None


def _drop_unit_moves(function: func.FuncOp) -> None:
    """Moves of dimensions of one index are reshapes."""
    for op in list(function.entry_block):
        move = move_of(op.results[0]) if op.results else None
        if move is None or not move.is_view:
            continue
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(reshape(move.source, move.shape))
        op.operation.erase()
