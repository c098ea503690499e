"""split-layers: divides a function of several products and other ops into one function for each
launch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from typing import ClassVar, TypeAlias

from tcir._mlir import func, ir, linalg, tensor
from tcir.dialect import tc
from tcir.dialect.attributes import integers_of, is_fill_only
from tcir.dialect.ops.epilogue import SCALAR_OPS
from tcir.dialect.upstream import RESHAPES, names
from tcir.dialect.walk import walk
from tcir.passes.analysis.contraction import (
    Conv,
    recognise,
    unaccepted,
    value,
)
from tcir.passes.analysis.cuda_cores import no_tensor_core
from tcir.passes.analysis.einsum import Einsum
from tcir.passes.analysis.few_rows import reads_narrow_matrix
from tcir.passes.analysis.frozen import FREE, FROZEN, computed_once
from tcir.passes.analysis.head_maps import views_of
from tcir.passes.analysis.moves import move_of
from tcir.passes.analysis.reductions import (
    element_of,
    factors_in,
    is_product,
    is_reduction,
    is_window,
    reads_once,
)
from tcir.passes.analysis.regroup import Groups, groups_of
from tcir.passes.analysis.row_chain import chain_of, goes_along, joint_chain, loads_of
from tcir.passes.analysis.scaled_contraction import is_scaled_contraction, other_scales
from tcir.passes.analysis.stored_scale import check_stored_scales
from tcir.passes.analysis.strided import view_ops
from tcir.passes.analysis.wrappers import is_zero_padding
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.calls import CHOOSE, inline_calls
from tcir.passes.emit.clone import clone, hold_constants
from tcir.passes.emit.diagnostics import SMALLEST_SIMT, is_op, match_failure
from tcir.passes.emit.functions import NAMES
from tcir.passes.emit.gpu_module import kernels_block, number_launches
from tcir.passes.emit.tensor_functions import (
    SIMT,
    check_numbers,
    erase_unread,
    functions_with_body,
    is_empty,
    tensor_bytes,
)
from tcir.passes.module.rewrites.half_sums import widen_half_sums
from tcir.passes.module.rewrites.long_pairs import divide_long_pairs
from tcir.passes.module.rewrites.long_rows import divide_long_rows
from tcir.passes.module.rewrites.numbers import read_in_bodies
from tcir.passes.module.rewrites.packs import lower_packs
from tcir.passes.module.rewrites.places import spread_places
from tcir.passes.module.rewrites.softmax import decompose_softmax
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark

Dims: TypeAlias = "Sequence[int] | None"
FOLDED = names("linalg.transpose", tensor.PadOp)
"""Ops between memory and a factor of a product that raise-to-tc folds into it."""


@register_pass
@dataclass(frozen=True)
class SplitLayers(Pass):
    """Divides a function on tensors into launches, each with one product or with ops for CUDA
    cores.

    simt: whether products also run on CUDA cores
    tf32: whether tensor cores multiply f32 factors, truncated to tf32; otherwise CUDA cores
        multiply them
    vectors: whether CUDA cores multiply matrices by vectors

    Before::

        func.func @f(%x, %w, %b, %v) {
          %c = linalg.matmul ins(%x, %w); %h = linalg.generic ins(%c, %b) { … arith.maximumf … }
          %m = linalg.reduce ins(%h) { arith.maximumf }
          %n = linalg.generic ins(%h, %m) { arith.subf }
          %y = linalg.matmul ins(%n, %v); return %y

    After (buffers 0 to 3 are the inputs, buffer 4 is the result, and buffers 5 to 7 are workspaces
    for %h, %m and %n)::

        builtin.module attributes {tc.workspaces = array<i64: …>}
        func.func @f_0_matmul(%x, %w, %b) {tc.order = 0, tc.args = array<i64: 0, 1, 2, 5>}
        func.func @f_1_reduce(%h) {tc.order = 1, tc.args = array<i64: 5, 6>, tc.simt}
        func.func @f_2_subf(%h, %m) {tc.order = 2, tc.args = array<i64: 5, 6, 7>, tc.simt}
        func.func @f_3_matmul(%n, %v) {tc.order = 3, tc.args = array<i64: 7, 3, 4>}

    Reductions over the rows of one tensor, and the elementwise ops around them, are one launch;
    examples are a softmax and a layer norm. A launch may have several results, such as a maximum
    and its index.

    A product's launch includes the following ops that fuse-epilogue can fuse, up to the first
    tensor that other launches read. CUDA cores compute convolutions that no tensor core supports
    (depthwise, thin groups), with the ops after them. Results, factors of products and results of
    reductions are in memory; elementwise ops between them are computed by every launch that reads
    them. A reshape needs no launch: it is another shape of a buffer. ``linalg.softmax``, ``pack``
    and ``unpack`` are decomposed; tensors without dimensions are read where their number is used.
    CUDA cores compute products that are neither convolutions nor matrix products. Sums of products
    in f16 and bf16 become sums of f32, rounded once. Each workspace is written by one launch. A
    result that is an argument, or that is returned twice, is copied. A remark describes each
    launch. A function of one product and its epilogue stays as it is, and so does a function with
    ops of ``tc`` other than ``tc.repack`` of results. If there are few long rows, they are reduced
    in parts, and then the results of the parts are reduced; a maximum is reduced together with the
    sum of a softmax, or with its index. Preserves every value, bit for bit, except for the order of
    such sums, and for their exponentials, relative to the maximum of a part.
    """

    name: ClassVar[str] = "split-layers"
    simt: bool = False
    tf32: bool = True
    vectors: bool = False

    def run(self, module: ir.Module) -> None:
        inline_calls(module)
        lower_packs(module)
        read_in_bodies(module)
        for op in walk(module.operation):
            if isinstance(op, tc.AttentionOp):
                hold_constants(op)
        functions = functions_with_body(module)
        for function in functions:
            check_numbers(function)
        _check_program(functions)
        if len(functions) != 1 or len(functions[0].regions[0].blocks) != 1:
            return  # raise-to-tc says what it expects
        (function,) = functions
        ours = [op for op in function.entry_block if op.operation.name.startswith("tc.")]
        if (
            all(isinstance(op, tc.RepackOp) or is_attention(op.operation) for op in ours)
            and "tc.args" not in function.attributes
        ):
            decompose_softmax(module)
            widen_half_sums(module)
            spread_places(module)
            divide_long_pairs(module)
            divide_long_rows(module)
            _Layers.of(function, self).split(module)


def _check_program(functions: list[func.FuncOp]) -> None:
    """Rejects one of several functions that would be several launches."""
    for function in functions if len(functions) > 1 else ():
        launches = [op for op in function.entry_block if _is_launch(op.operation)]
        if len(launches) > 1 and "tc.args" not in function.attributes:
            names = ", ".join(f"@{each.name.value}" for each in functions)
            raise match_failure(
                launches[1],
                "a program of several launches must be the only one in its module (buffers are "
                f"numbered once per module), got {names}; " + CHOOSE.format(function.name.value),
            )


@dataclass
class _Launch:
    """One launch: the tensor that it stores, what it computes, and the product it has.

    others: further results that it stores: the logarithms of an attention, reductions of the same
            rows
    whole: tensors that it reads in several shapes, which it makes itself
    views: ops that make operands of an attention from tensors whose memory these are in
    """

    result: ir.Value
    product: ir.Operation | None
    others: Sequence[ir.Value] = ()
    ops: list[ir.Operation] = field(default_factory=list)
    inputs: list[ir.Value] = field(default_factory=list)
    whole: set[ir.Value] = field(default_factory=set)
    views: set[ir.Operation] = field(default_factory=set)

    @property
    def root(self) -> ir.Operation:
        """The op that computes the result which the launch stores."""
        return self.result.owner

    @property
    def results(self) -> list[ir.Value]:
        """All tensors that the launch stores."""
        return [self.result, *self.others]

    @property
    def main(self) -> ir.Operation:
        """The op that determines which kernel the launch becomes."""
        return self.product or next(filter(_is_launch, self.ops), self.root)

    @property
    def what(self) -> str:
        """Name of the launch's op, as part of the launch's name."""
        op = self.main
        if op.name == "linalg.generic" and is_product(op):
            return "conv" if isinstance(recognise(op.opview), Conv) else "matmul"
        if op.name == "linalg.generic" and op == self.root:
            yielded = list(op.regions[0].blocks[0])[-1].operands[
                list(op.results).index(self.result)
            ]
            op = op if isinstance(yielded, ir.BlockArgument) else yielded.owner
        return op.name.rpartition(".")[2]


@dataclass
class _Layers:
    """A function and its cuts.

    ops:    in order, but the return
    sums:   those that are products, on whatever core
    tails:  each product and the ops that are fused after it
    stored: values in memory, besides arguments
    cores:  why CUDA cores compute a product
    alone:  tails found by `_tail_alone`, by the product and the number of `tails`
    joined: results that one launch stores
    """

    function: func.FuncOp
    ops: list[ir.Operation]
    sums: set[ir.Operation]
    returned: list[ir.Value]
    tails: dict[ir.Operation, list[ir.Operation]]
    stored: set[ir.Value]
    cores: dict[ir.Operation, str]
    alone: dict[tuple[ir.Operation, int], list[ir.Operation]] = field(default_factory=dict)
    joined: list[list[ir.Value]] = field(default_factory=list)

    @staticmethod
    def of(function: func.FuncOp, options: SplitLayers) -> _Layers:
        """Decides which ops of a function are fused and which values are stored, and drops ops
        whose results are unused."""
        erase_unread(function)
        _copy_results(function)
        *ops, end = (each.operation for each in function.entry_block)
        returned = list(end.operands)
        sums = [op for op in ops if _is_launch(op)]
        simt = options.simt
        reasons = {} if simt else {op: _no_tensor_core(op, options) for op in sums}
        cores = {op: words for op, words in reasons.items() if words}
        products = [] if simt else [op for op in sums if op not in cores]
        layers = _Layers(function, ops, set(sums), returned, {}, set(), cores)
        for product in products:
            if is_attention(product):
                layers.tails[product] = []
                continue
            later = products[products.index(product) + 1 :]
            layers.tails[product] = layers._tail(product, later=later)
        layers.stored = {_base(each) for each in returned}
        for product, tail in layers.tails.items():
            if is_attention(product):
                layers.stored.update(each for each in product.results[1:] if list(each.uses))
                layers.stored.add(product.results[0])
            layers.stored.update(layers._leaving([product, *tail]))
            layers.stored.update(layers._factors(product))
        for op in ops:
            if op in sums and op not in products:
                fused = [op, *layers._tail(op, views=True)]
                layers.stored.update(map(_base, layers._leaving(fused)))
                layers.stored.update(each for each in op.operands if _is_turned(each, op))
                layers.stored.update(_image(op))
            elif is_window(op) and op not in products and len(op.results) == 1:
                layers.stored.update(map(_base, layers._leaving(layers._pooled(op))))
            elif is_reduction(op) and op not in products:
                layers.stored.update(each for each in op.results if list(each.uses))
        layers.stored.update(map(_base, computed_once(function)))
        arguments = {each for each in layers.stored if isinstance(each, ir.BlockArgument)}
        layers.stored -= arguments | set(filter(is_empty, layers.stored))
        layers._hold_rows(products)
        return layers

    def split(self, module: ir.Module) -> None:
        """Replaces the function by its launches, unless it is a single launch already."""
        launches = self._launches()
        fused = [made for each in launches if each.product is not None for made in each.results]
        if not launches and self.returned and all(map(is_empty, self.returned)):
            kernels_block(module)
            self.function.operation.erase()
            return
        if not launches or (len(launches) == 1 and fused == [_base(r) for r in self.returned]):
            return
        check_stored_scales(self.function)  # of codes that leave this function
        self._check_ops()
        numbers = self._numbers(module, launches)
        functions = []
        for order, launch in enumerate(launches):
            functions.append(self._outline(launch, order, numbers))
            remark(launch.root.opview, self._words(launch, order, launches, numbers))
        number_launches(functions)
        self.function.operation.erase()

    @cached_property
    def places(self) -> dict[ir.Operation, int]:
        """The position of each op in the order of the ops."""
        return {op: place for place, op in enumerate(self.ops)}

    # --- what is fused -------------------------------------------------------------------------

    def _tail(
        self, product: ir.Operation, views: bool = False, later: Sequence[ir.Operation] = ()
    ) -> list[ir.Operation]:
        """The ops after a product that its epilogue computes: all up to one tensor that leaves; of
        a single sum, which has no epilogue, its rounding.

        views: whether reshapes are included: on CUDA cores an element has a number in every shape
        later: products that get an op which reads theirs as well, if fewer bytes are stored then
        """
        taken = {op for tail in self.tails.values() for op in tail}
        inside, best = [product], 1
        groups = _groups(product)
        made = {product.results[0]}
        readers = self._readers(product)
        while readers:  # in their order: each comes after all that it reads
            op = self.ops[heappop(readers)]
            if op in inside:
                continue
            view = views and isinstance(op.opview, RESHAPES) and op.operands[0] in made
            alone = product.results[0].type.rank == 0 and _names([op]) != "arith.truncf"
            fuses = (view or _fuses(op, made)) and _is_grouped(op, groups)
            if op in taken or not fuses or alone:
                continue
            if not any(self._stores_less(op, made, each) for each in self._behind(op, later)):
                inside.append(op)
                made.add(op.results[0])
                for place in self._readers(op):
                    heappush(readers, place)
                if len(self._leaving(inside)) == 1:
                    best = len(inside)
        return inside[1:best]

    def _pooled(self, window: ir.Operation) -> list[ir.Operation]:
        """A reduction of windows, and the ops after it that its threads compute: of the same
        elements, in no more bytes, and in another order if that of memory is one to read."""
        found = [window]
        while True:
            made = found[-1].results[0]
            readers = {_in_function(each.owner) for each in made.uses}
            if len(readers) != 1 or not self._goes_on(made, *readers):
                return found
            found += readers

    def _goes_on(self, made: ir.Value, op: ir.Operation) -> bool:
        """Whether `op` computes elements of the pooled `made`, each once, from it."""
        taken = any(op in tail for tail in self.tails.values())
        if op not in self.places or op in self.sums or taken or len(op.results) != 1:
            return False
        result = op.results[0]
        if isinstance(op.opview, RESHAPES):
            return True
        if not _computes(op) or tensor_bytes(result.type) > tensor_bytes(made.type):
            return False
        maps = _maps(op)
        read = [each for each, operand in zip(maps, op.operands) if operand == made]
        if not all(each.is_permutation for each in read):
            return False
        turned = any(each != maps[-1] for each in read)
        return not turned or goes_along(loads_of(result), result)

    def _hold_rows(self, products: Sequence[ir.Operation]) -> None:
        """Removes reductions from memory if the only launch that reads them holds their rows
        itself."""
        kept = {_base(each) for each in self.returned}
        for product in products:
            kept.update(self._factors(product))
        for op in reversed(self.ops):
            used = [each for each in op.results if list(each.uses)]
            if len(used) != 1 or used[0] not in self.stored or used[0] in kept:
                continue
            if op in self.sums or not is_reduction(op):
                continue
            roots = self._roots(used[0])
            if len(roots) != 1 or any(roots[0].owner in (p, *t) for p, t in self.tails.items()):
                continue
            others = self.stored - {used[0]}
            chain = chain_of(roots[0], others)
            if chain is not None and used[0] in [total for total, _ in chain.sums]:
                self.stored = others

    def _join_rows(self) -> None:
        """Joins results on CUDA cores whose reductions are over the same rows: one launch reads
        these once, and stores all of them."""
        fused = {op for product, tail in self.tails.items() for op in (product, *tail)}
        for op in self.ops:
            for each in op.results:
                if each in self.stored and op not in fused and op not in self.sums:
                    self._join_row(each)

    def _join_row(self, result: ir.Value) -> None:
        """Adds a stored result to the first others with which a launch can compute it."""
        mine = chain_of(result, self.stored - {result})
        if mine is None or mine.own:
            return
        for group in self.joined:
            together = [*group, result]
            chain = joint_chain(together, self.stored - {*together})
            if chain is not None and not any(
                self._depends(tensor, {*group}) for tensor, _ in chain.loads
            ):
                group.append(result)
                return
        self.joined.append([result])

    def _depends(self, tensor: ir.Value, made: set[ir.Value]) -> bool:
        """Whether a tensor is computed after launches that store `made`."""
        first = min(self.places[each.owner] for each in made)
        seen, waiting = set[ir.Value](), [tensor]
        while waiting:
            each = waiting.pop()
            if isinstance(each, ir.BlockArgument) or each in seen:
                continue
            if each in made:
                return True
            seen.add(each)
            waiting += self._with(each)
            if self.places[each.owner] > first:
                waiting += _operands(each.owner)
        return False

    def _with(self, result: ir.Value) -> list[ir.Value]:
        """The results that the launch of a stored one stores as well, in their order."""
        return next((group for group in self.joined if result in group), [result])

    def _roots(self, tensor: ir.Value) -> list[ir.Value]:
        """Stored values computed from a tensor without other stored values between; for products
        their result."""
        found: dict[ir.Value, None] = {}
        seen, waiting = set[ir.Operation](), [tensor]
        while waiting:
            for use in waiting.pop().uses:
                op = _in_function(use.owner)
                if op in seen or op not in self.places:
                    continue
                seen.add(op)
                for each in op.results:
                    if each in self.stored or op in self.sums:
                        found[each] = None
                    else:
                        waiting.append(each)
        return list(found)

    def _readers(self, op: ir.Operation) -> list[int]:
        """The places of the function's ops that have an op's result as an operand: a heap."""
        readers = {each.owner.operation for each in op.results[0].uses}
        return sorted(self.places[each] for each in readers if each in self.places)

    def _behind(self, op: ir.Operation, products: Sequence[ir.Operation]) -> list[ir.Operation]:
        """The `products` that an op reads, directly or through other ops."""
        seen, waiting = {op}, [op] * bool(products)
        while waiting:
            for each in waiting.pop().operands:
                made = None if isinstance(each, ir.BlockArgument) else each.owner.operation
                if made is not None and made not in seen:
                    seen.add(made)
                    if made not in self.sums and made.name not in FREE:
                        waiting.append(made)
        return [each for each in products if each in seen]

    def _stores_less(self, op: ir.Operation, made: set[ir.Value], product: ir.Operation) -> bool:
        """Whether an op that reads `made` is better fused after another product: its operand
        `made` has fewer bytes than the one from that product, whose epilogue can compute it."""
        rest = [each for each in op.operands if each not in made]
        if all(isinstance(e, ir.BlockArgument) or e.owner.name in FREE for e in rest):
            return False
        ours = [tensor_bytes(each.type) for each in op.operands if each in made]
        tail = self._tail_alone(product)
        behind = {each.results[0] for each in (product, *tail) if each != op}
        theirs = [tensor_bytes(each.type) for each in op.operands if each in behind]
        return op in tail and bool(theirs) and sum(ours) < sum(theirs)

    def _tail_alone(self, product: ir.Operation) -> list[ir.Operation]:
        """The tail of a product that gets every op which it can; it is compared for many ops, and
        it depends on the tails so far."""
        key = product, len(self.tails)
        if key not in self.alone:
            self.alone[key] = self._tail(product)
        return self.alone[key]

    def _leaving(self, ops: list[ir.Operation]) -> list[ir.Value]:
        """The results of `ops` that others read."""
        results, inside = [op.results[0] for op in ops], set(ops)
        return [r for r in results if any(_in_function(u.owner) not in inside for u in r.uses)]

    def _factors(self, product: ir.Operation) -> list[ir.Value]:
        """The tensors that a product multiplies, as they are in memory."""
        found = []
        if is_attention(product):
            views = views_of(product.opview)
            return [_base(views[e].base if e in views else e) for e in _operands(product)]
        for factor in list(product.operands)[:-1]:
            while is_folded(factor, product):
                factor = factor.owner.operands[0]
            found.append(_base(factor))
        return found

    # --- launches ------------------------------------------------------------------------------

    def _launches(self) -> list[_Launch]:
        """Launches in order, each after those whose results it reads."""
        before = -1
        launches: list[_Launch] = []
        while before != len(self.stored):
            before = len(self.stored)
            launches = self._launches_of_stored()
        self._join_rows()
        several = any(len(group) > 1 for group in self.joined)
        return _in_order(self._launches_of_stored()) if several else launches

    def _launches_of_stored(self) -> list[_Launch]:
        stored = [each for op in self.ops for each in op.results if each in self.stored]
        firsts = (each for each in stored if not _is_second(each))
        return [self._launch(each) for each in firsts if each == self._with(each)[0]]

    def _launch(self, result: ir.Value) -> _Launch:
        tails, root = self.tails.items(), result.owner
        product = next((p for p, tail in tails if root == p or root in tail), None)
        _, *others = self._with(result)
        inside = [each.owner for each in (result, *others)]
        if product is not None:
            inside = [product, *self.tails[product]]
        views = set(self._views(product))
        others += [each for each in root.results if each in self.stored and _is_second(each)]
        launch = _Launch(result, product, others, views=views)
        self._visit_results(launch, inside)
        read = [_base(each) for each in launch.inputs]
        if len(set(read)) < len(read):
            again = {each for each in read if read.count(each) > 1}
            launch = _Launch(result, product, others, whole=again, views=views)
            self._visit_results(launch, inside)
        return launch

    def _visit_results(self, launch: _Launch, inside: list[ir.Operation]) -> None:
        for each in launch.results:
            self._visit(each, launch, inside, range(each.type.rank))

    def _views(self, product: ir.Operation | None) -> Iterator[ir.Operation]:
        """The ops of the views that an attention reads."""
        if product is not None and is_attention(product):
            found = views_of(product.opview, self.stored.__contains__)
            for operand, view in found.items():
                yield from view_ops(operand, view.base)

    def _visit(
        self, tensor: ir.Value, launch: _Launch, inside: list[ir.Operation], dims: Dims
    ) -> None:
        """Adds the ops that compute `tensor` from memory; stores values that an epilogue cannot
        compute.

        dims: dimensions of the launch's result that index the tensor
        """
        op = tensor.owner
        if isinstance(tensor, ir.BlockArgument):
            if tensor not in launch.inputs and not is_fill_only(tensor):
                launch.inputs.append(tensor)
            return
        if op in launch.ops:
            return
        if op not in inside:
            in_memory = _base(tensor) in self.stored or isinstance(_base(tensor), ir.BlockArgument)
            view = isinstance(op.opview, RESHAPES) and launch.product is not None and in_memory
            whole = _base(tensor) in launch.whole
            if tensor in self.stored or (view and not whole):
                if tensor not in launch.inputs:
                    launch.inputs.append(tensor)
                return
            folded = launch.product is not None and (
                view or is_folded(tensor, launch.product) or op in launch.views
            )
            if (
                launch.product is not None
                and not folded
                and (
                    is_attention(launch.product)
                    or not (_computes(op) and self._reads_groups(op, launch, dims))
                )
            ):
                self.stored.add(_base(tensor))
                return
        read = dict(_indexed(op, dims))
        for operand in _operands(op):
            self._visit(operand, launch, inside, read.get(operand))
        launch.ops.append(op)

    def _reads_groups(self, op: ir.Operation, launch: _Launch, dims: Dims) -> bool:
        """Whether what an op in a product's epilogue reads is indexed by all or none of each group
        of dimensions of the result."""
        product, shape = launch.product, launch.result.type.shape
        if (
            product is None
            or not (groups := _groups(product))
            or shape != product.results[0].type.shape
        ):
            return True
        return all(
            groups_of([d for d in each if shape[d] != 1], groups) is not None
            for _, each in _indexed(op, dims)
            if each is not None
        )

    def _check_ops(self) -> None:
        """Rejects values that are not tensors of known size made by one op."""
        for op in self.ops:
            kinds = [each.type for each in op.results]
            shaped = [each for each in kinds if isinstance(each, ir.ShapedType)]
            if not kinds or any(not each.has_static_shape for each in shaped):
                got = ", ".join(map(str, kinds)) or "none"
                raise match_failure(
                    op.opview,
                    "expected ops with results of static shapes where a function is cut into "
                    f"launches (buffers between them are planned when it is compiled), got {got} "
                    f"of {op.name}; specialise the function: specialise-shapes{{batch=8}}",
                    SMALLEST_SIMT,
                )

    # --- buffers -------------------------------------------------------------------------------

    def _numbers(self, module: ir.Module, launches: list[_Launch]) -> dict[ir.Value, int]:
        """Numbers of buffers: inputs, results, and workspaces, whose sizes are written to the
        module."""
        inputs = [each for each in self.function.entry_block.arguments if not is_fill_only(each)]
        numbers: dict[ir.Value, int] = {}
        for each in (*inputs, *map(_base, self.returned)):
            numbers[each] = len(numbers)
        workspaces = []
        for each in (made for launch in launches for made in launch.results):
            if each not in numbers:
                numbers[each] = len(numbers)
                workspaces.append(tensor_bytes(each.type))
        module.operation.attributes["tc.workspaces"] = i64s(workspaces)
        if FROZEN in self.function.attributes:
            arguments = self.function.entry_block.arguments
            frozen = [arguments[n] for n in integers_of(self.function.attributes[FROZEN])]
            fixed = i64s([numbers[each] for each in frozen if each in numbers])
            module.operation.attributes[FROZEN] = fixed
        return numbers

    def _outline(self, launch: _Launch, order: int, numbers: dict[ir.Value, int]) -> func.FuncOp:
        """Outlines a launch as a function before this one."""
        results = launch.results
        args = [numbers[_base(each)] for each in (*launch.inputs, *results)]
        kinds = [[each.type for each in values] for values in (launch.inputs, results)]
        kind = ir.FunctionType.get(*kinds)
        with ir.InsertionPoint(self.function), launch.root.location:
            new = func.FuncOp(self._name(launch, order), kind)
            new.attributes["tc.args"] = i64s(args)
            if launch.product is None:
                new.attributes[SIMT] = ir.UnitAttr.get()
            block = new.add_entry_block([each.location for each in launch.inputs])
        known: dict[ir.Value, ir.Value] = dict(zip(launch.inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block), launch.root.location:
            for op in launch.ops:
                for each in _operands(op):
                    if isinstance(each, ir.BlockArgument) and each not in known:  # is_fill_only
                        known[each] = tensor.EmptyOp(each.type.shape, each.type.element_type).result
                clone(op.opview, known)
            func.ReturnOp([known[each] for each in results])
        return new

    def _name(self, launch: _Launch, order: int) -> str:
        return f"{self.function.name.value}_{order}_{launch.what}"

    def _words(
        self, launch: _Launch, order: int, launches: list[_Launch], numbers: dict[ir.Value, int]
    ) -> str:
        """Describes a launch, for its remark."""
        stored = sum(len(each.results) for each in launches)
        workspaces = len(numbers) - stored + len(self.returned)
        written = (
            f"{'result' if numbers[each] < workspaces else 'workspace'} {numbers[each]}, "
            f"{tensor_bytes(each.type)} bytes"
            for each in launch.results
        )
        words = f"launch {order + 1} of {len(launches)}, @{self._name(launch, order)}: "
        if launch.product is None:
            others = [op for op in launch.ops if op != launch.main and op.name not in FREE]
            words += f"{launch.main.name} on CUDA cores"
            words += f", with {_names(others)}" if others else ""
            if reason := next((self.cores[op] for op in launch.ops if op in self.cores), ""):
                words += f"; no tensor cores: {reason}"
            elif reason := self._reason(launch.root):
                words += f"; not fused behind a product: {reason}"
        else:
            tail = self.tails[launch.product]
            words += launch.product.name
            words += f", its epilogue {_names(tail)}" if tail else ", nothing fused behind it"
        return words + f"; writes {' and '.join(written)}"

    def _reason(self, root: ir.Operation) -> str:
        """Why no epilogue computes an op; "" if no product precedes it."""
        if not self.tails:
            return ""
        if is_reduction(root):
            return "it reads other elements than its own"
        made = {op.results[0]: p for p, tail in self.tails.items() for op in (p, *tail)}
        sums = [each for each in _operands(root) if each in made]
        if not sums:
            return "what it reads is computed on CUDA cores"
        if not _fuses(root, set(sums)):
            return f"no epilogue computes {root.name} like this"
        return "the sums are read by other ops as well"


def _in_order(launches: Sequence[_Launch]) -> list[_Launch]:
    """Launches in their order, but each after those whose results it reads."""
    waiting, found = list(launches), list[_Launch]()
    missing = {each for launch in launches for each in launch.results}
    while waiting:
        ready = (each for each in waiting if missing.isdisjoint(map(_base, each.inputs)))
        waiting.remove(launch := next(ready))
        missing -= {*launch.results}
        found.append(launch)
    return found


def _is_second(value: ir.Value) -> bool:
    """Whether a value is the second result of an attention, whose kernel stores both."""
    return is_attention(value.owner) and value != value.owner.results[0]


def is_attention(op: ir.Operation) -> bool:
    """Whether an op is always a separate launch."""
    return isinstance(op.opview, tc.AttentionOp | tc.AttentionBackwardOp)


def _is_launch(op: ir.Operation) -> bool:
    """Whether an op is one that a launch is for."""
    return is_attention(op) or is_product(op)


def _no_tensor_core(op: ir.Operation, options: SplitLayers) -> str:
    """Why no tensor core computes a product; "" if one does."""
    if is_attention(op):
        return ""
    if reason := no_tensor_core(op.opview, options.tf32):
        return reason
    if is_scaled_contraction(op):
        return other_scales(op.opview)
    if unaccepted(op.opview):
        return ""
    if options.vectors and reads_once(op) and not reads_narrow_matrix(op):
        return "each element of a factor is read once, which takes as long as all else"
    if not all(isinstance(element_of(each), ir.BlockArgument) for each in factors_in(op)):
        return "its factors are computed of elements, and tensor cores multiply them as they are"
    if recognise(op.opview) is not None:
        return ""
    maps = ", ".join(str(value(each)) for each in linalg.get_indexing_maps(op))
    return f"its maps, {maps}, are those of no convolution with channels and no matrix product"


def _is_turned(factor: ir.Value, product: ir.Operation) -> bool:
    """Whether a factor is an argument in another order, which a convolution reads again and
    again: the filter of a depthwise one (fold-layouts)."""
    if not isinstance(recognise(product.opview), Conv) or (move := move_of(factor)) is None:
        return False
    return move.is_permutation and isinstance(_base(move.source), ir.BlockArgument)


def _image(product: ir.Operation) -> list[ir.Value]:
    """The image of a convolution, if arithmetic computes it: windows would repeat that for every
    tap, such as a layer norm's divisions."""
    found = recognise(product.opview)
    if not isinstance(found, Conv):
        return []
    image = product.operands[found.x]
    image = _base(image.owner.operands[0] if is_op(image, "tensor.pad") else image)
    computed = not isinstance(image, ir.BlockArgument) and _computes(image.owner)
    return [image] if computed else []


def is_folded(factor: ir.Value, product: ir.Operation) -> bool:
    """Whether raise-to-tc folds an op between memory and a factor of a product. For a convolution
    it folds padding with a known number of zeros."""
    if is_attention(product):
        return False
    if is_op(factor, "tensor.pad"):
        return is_zero_padding(factor.owner) and isinstance(recognise(product.opview), Conv)
    if not is_op(factor, "linalg.transpose"):
        return False
    rank = factor.type.rank
    permutation = list(ir.DenseI64ArrayAttr(factor.owner.attributes["permutation"]))
    return permutation == [*range(rank - 2), rank - 1, rank - 2]


def _base(tensor: ir.Value) -> ir.Value:
    """The tensor before reshapes, which has the same bytes."""
    while not isinstance(tensor, ir.BlockArgument) and isinstance(tensor.owner.opview, RESHAPES):
        tensor = tensor.owner.operands[0]
    return tensor


def _copy_results(function: func.FuncOp) -> None:
    """Makes copies of results that are arguments, or one tensor twice: a buffer is written once."""
    *_, end = function.entry_block
    seen: set[ir.Value] = set()
    for number, returned in enumerate(end.operands):
        base = _base(returned)
        if is_empty(returned) or not (isinstance(base, ir.BlockArgument) or base in seen):
            seen.add(base)
            continue
        if not returned.type.has_static_shape:
            raise match_failure(
                end,
                "expected results that are arguments to be of static shapes (a launch copies them, "
                f"as a buffer is written once), got {returned.type}; specialise the function: "
                "specialise-shapes{batch=8}",
                SMALLEST_SIMT,
            )
        with ir.InsertionPoint(end), end.location:
            empty = tensor.EmptyOp(returned.type.shape, returned.type.element_type).result
            end.operands[number] = linalg.copy(returned, outs=[empty])


def _in_function(op: ir.Operation | ir.OpView) -> ir.Operation:
    """The op of the function's block that `op` is in, or is."""
    op = op.operation
    while op.parent.name != "func.func":
        op = op.parent.operation
    return op


def _operands(op: ir.Operation) -> list[ir.Value]:
    """Values of the function that an op reads, its regions included."""
    within = [each.operation for each in walk(op.opview)]
    own = {value for each in within if each != op for value in each.results}
    own |= {v for each in within for r in each.regions for block in r for v in block.arguments}
    read = [value for each in within for value in each.operands]
    return list(dict.fromkeys(each for each in read if each not in own))


def _maps(op: ir.Operation) -> list[ir.AffineMap]:
    """Indexing maps of an op of ``linalg`` with a scalar body; empty for other ops."""
    if not op.name.startswith("linalg.") or op.name in FREE or len(op.results) != 1:
        return []
    body = list(op.regions[0].blocks[0])[:-1] if len(op.regions) else []
    if not all(_is_scalar(each.operation.name) for each in body):
        return []
    return [value(each) for each in linalg.get_indexing_maps(op) or ()]


def _is_scalar(name: str) -> bool:
    return name in SCALAR_OPS or name in NAMES


def _computes(op: ir.Operation) -> bool:
    """Whether an epilogue can compute an op's elements from those of other tensors."""
    if op.name in FREE or _is_scalar(op.name):
        return True
    maps = _maps(op)
    return bool(maps) and maps[-1].is_permutation and all(map(_is_single, _indices(maps)))


def _indices(maps: Iterable[ir.AffineMap]) -> list[ir.AffineExpr]:
    return [index for each in maps for index in each.results]


def _is_single(index: ir.AffineExpr) -> bool:
    """Whether an index is a loop, or 0."""
    constant = isinstance(index, ir.AffineConstantExpr) and index.value == 0
    return isinstance(index, ir.AffineDimExpr) or constant


def _fuses(op: ir.Operation, sums: set[ir.Value]) -> bool:
    """Whether fuse-epilogue takes an op that reads one of `sums`, each at its own element."""
    if not any(operand in sums for operand in op.operands):
        return False
    if isinstance(op.opview, tc.RepackOp):  # a launch behind it, see split-launches
        return True
    if op.name == "tensor.extract_slice":  # gate or value
        return list(ir.DenseI64ArrayAttr(op.attributes["static_strides"]))[-1] == 2
    if not _computes(op) or any(_is_unread(each) for each in op.operands):
        return False
    maps = _maps(op)
    return all(each == maps[-1] for each, o in zip(maps, op.operands) if o in sums)


def _groups(product: ir.Operation) -> Groups:
    """The groups of dimensions of a matrix product's result; of others none."""
    found = recognise(product.opview)
    return found.groups if isinstance(found, Einsum) else ()


def _indexed(op: ir.Operation, dims: Dims) -> list[tuple[ir.Value, Dims]]:
    """The operands of an op whose result is indexed by `dims`, and what indexes each of them; None
    where that is not known."""
    maps = _maps(op)
    if dims is None or not maps:
        same = op.name.partition(".")[0] in ("arith", "math")
        return [(each, dims if same else None) for each in op.operands]
    loops = {e.position: d for d, e in zip(dims, maps[-1].results) if _is_dim(e)}
    return [
        (each, [loops[e.position] for e in read.results if _is_dim(e) and e.position in loops])
        for each, read in zip(op.operands, maps)
    ]


def _is_dim(expression: ir.AffineExpr) -> bool:
    return isinstance(expression, ir.AffineDimExpr)


def _is_grouped(op: ir.Operation, groups: Groups) -> bool:
    """Whether each operand of an op is indexed by all or none of the dimensions of each group that
    a product has as one."""
    maps, shape = _maps(op), op.results[0].type.shape
    if not groups or not maps:
        return True
    dims = {e.position: d for d, e in enumerate(maps[-1].results) if shape[d] != 1}
    read = [[e.position for e in each.results if isinstance(e, ir.AffineDimExpr)] for each in maps]
    indexed = ([dims[loop] for loop in loops if loop in dims] for loops in read)
    return all(groups_of(each, groups) is not None for each in indexed)


def _is_unread(tensor: ir.Value) -> bool:
    """Whether no epilogue reads a tensor: of i8."""
    if not isinstance(tensor.owner, ir.Block) and tensor.owner.name in FREE:
        return False
    return str(getattr(tensor.type, "element_type", "")) == "i8"


def _names(ops: list[ir.Operation]) -> str:
    """Names of the ops and of the ops in their bodies."""
    bodies = [
        each.operation.name
        for op in ops
        for region in op.regions
        for block in region
        for each in block
        if each.operation.name not in ("arith.constant", "linalg.yield", "tensor.yield")
    ]
    names = [op.name for op in ops if not len(op.regions) or not op.name.startswith("linalg.")]
    return ", ".join(dict.fromkeys([*bodies, *names])) or ", ".join(op.name for op in ops)
