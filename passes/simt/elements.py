"""Elements of tensors on CUDA cores: a thread computes an element from elements in memory.

Ops on tensors (elementwise ops, broadcasts, transposes, padding, slices, insertions into slices,
and reshapes) are traced back to memory element by element, so no intermediate tensor is stored. A
reduction is a loop over its points in lexicographic order, which is the order of the reference. An
element may be an index (`tensor.extract`): a thread traps if it is out of bounds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TypeAlias

from tcir._mlir import arith, ir, linalg, scf, tensor
from tcir.dialect.ops.epilogue import SCALAR_OPS
from tcir.dialect.upstream import RESHAPES, names
from tcir.passes.analysis.reductions import loop_sizes
from tcir.passes.emit import element_epilogue, narrow, simt
from tcir.passes.emit.diagnostics import SMALLEST_SIMT, is_op, match_failure
from tcir.passes.emit.fp8 import FP8
from tcir.passes.emit.functions import NAMES, constant_number, divided
from tcir.passes.emit.functions.division import Divisor
from tcir.passes.emit.small import EXPONENT, SMALL
from tcir.passes.simt.slices import Index, covers, in_inserted, in_slice

Loops: TypeAlias = "Mapping[int, ir.Value]"
"""The point of a structured op's loops."""
Totals: TypeAlias = "Mapping[int, ir.Value | None]"
"""Partial results by the number of the result."""

STORED = (
    "f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "i4", "i2", "i1", *FP8, *SMALL, EXPONENT
)  # fmt: skip
"""Types of elements in memory."""
UNROLLED = 16
"""Most points of a reduction that a thread unrolls."""
INDEX_OPS = names(
    arith.IndexCastOp, arith.IndexCastUIOp, "cf.assert", "linalg.index", tensor.ExtractOp,
)  # fmt: skip
"""Ops that bodies may have besides arithmetic: an index is an i64."""
DIVISIONS = tuple(
    f"arith.{name}" for name in ("ceildivsi", "divsi", "divui", "floordivsi", "remsi", "remui")
)
"""Divisions of integers, by constants."""
TAKEN = (
    "expected linalg ops with indexing maps (elementwise, broadcasts, transposes, reductions, "
    f"pooling), arith ops, {', '.join(NAMES)}, tensor.pad, tensor.extract_slice, "
    "tensor.insert_slice, tensor.concat, reshapes"
)
"""Ops that the kernels here can compute."""
LEFT = (
    "no other pipeline takes it: gemm, matmul-warp and the convolutions have contractions, gemm "
    "with elementwise ops behind them"
)


def digits(number: ir.Value, shape: Sequence[int]) -> Index:
    """The indices of the element with row-major number `number` in a tensor."""
    found: list[ir.Value] = []
    for place, extent in reversed(list(enumerate(shape))):
        if extent == 1:
            found.insert(0, simt.constant(0))
        elif prod(shape[:place]) == 1:
            found.insert(0, number)
        else:
            found.insert(0, simt.rest(number, extent))
            number = simt.divide(number, extent)
    return tuple(found)


def joined(indices: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    """The row-major number of the element with these indices."""
    number: ir.Value | None = None
    for index, extent in zip(indices, shape, strict=True):
        if extent != 1:
            number = index if number is None else simt.add(simt.mul(number, extent), index)
    return simt.constant(0) if number is None else number


@dataclass(frozen=True)
class ThreadElements:
    """Elements that one thread has computed.

    pointers: pointers of the function's arguments
    known:    computed elements, by tensor and indices
    runs:     for each index, the run of consecutive indices that it belongs to. The first index of
              a run is a multiple of its length; elements of a run are computed together
    shifted:  results of `shift`, by the original index
    views:    for a run and a shape, the indices of the run's elements before the reshape to that
              shape
    computed: results of ops in bodies, by the op and its operands, so that an op with the same
              operands for all elements of a run is computed, and asserted, once
    divisors: divisors by which several elements are divided
    """

    pointers: Mapping[ir.Value, ir.Value]
    known: dict[tuple[ir.Value, Index], ir.Value] = field(default_factory=dict)
    runs: dict[ir.Value, tuple[ir.Value, ...]] = field(default_factory=dict)
    shifted: dict[tuple[ir.Value, int, int], ir.Value] = field(default_factory=dict)
    views: dict[tuple[object, ...], list[Index]] = field(default_factory=dict)
    computed: dict[tuple[object, ...], ir.Value | None] = field(default_factory=dict)
    divisors: dict[ir.Value, Divisor] = field(default_factory=dict)

    def element(self, tensor: ir.Value, at: Index) -> ir.Value:
        """The element of `tensor` at the indices `at`; a scalar is its own element."""
        key = self._key(tensor, at)
        if key not in self.known:
            self.known[key] = self._new(tensor, at)
        return self.known[key]

    def learn(self, tensor: ir.Value, at: Index, element: ir.Value) -> None:
        """Remembers the element of `tensor` at the indices `at`."""
        self.known[self._key(tensor, at)] = element

    def run(self, first: ir.Value, count: int) -> tuple[ir.Value, ...]:
        """The indices of a run: `count` consecutive indices from `first` on, where `first` is a
        multiple of `count`."""
        members = (first, *(simt.add(first, n) for n in range(1, count)))
        if count > 1:
            self.runs.update(dict.fromkeys(members, members))
        return members

    def within(self) -> ThreadElements:
        """Returns a copy for the ops of a region, because elements that are computed in the region
        are not available outside it."""
        kept = (self.known, self.runs, self.shifted, self.views, self.computed)
        found = (*kept, self.divisors)
        return ThreadElements(self.pointers, *map(dict, found))

    def shift(self, index: ir.Value, by: int, extent: int) -> ir.Value:
        """`index` plus `by`, clamped to the last index of `extent`. A run of indices stays a run if
        each run lies entirely inside or entirely outside."""
        run = self.runs.get(index, (index,))
        if by % len(run) or extent % len(run):
            run = (index,)
        if (index, by, extent) not in self.shifted:
            first = simt.add(run[0], by) if by > 0 else simt.sub(run[0], -by) if by else run[0]
            members = self.run(simt.smaller(first, extent - len(run)), len(run))
            for old, new in zip(run, members, strict=True):
                self.shifted[old, by, extent] = new
        return self.shifted[index, by, extent]

    def _through_view(self, op: ir.Operation, at: Index) -> Index:
        """Returns the indices before a reshape, of each group of dimensions alone."""
        source, result = op.operands[0].type.shape, op.results[0].type.shape
        groups = [
            [ir.IntegerAttr(d).value for d in each] for each in op.attributes["reassociation"]
        ]
        if op.name == "tensor.expand_shape":
            return tuple(self._join([at[d] for d in g], [result[d] for d in g]) for g in groups)
        if not groups:  # to a scalar
            return tuple(simt.constant(0) for _ in source)
        parts = zip(at, groups, strict=True)
        return tuple(each for i, g in parts for each in self._digits(i, [source[d] for d in g]))

    def _join(self, indices: Index | list[ir.Value], shape: list[int]) -> ir.Value:
        """Returns the number of an element; the numbers of a run are a run."""
        sized = [n for n, size in enumerate(shape) if size != 1]
        run = self.runs.get(indices[sized[-1]]) if len(sized) > 1 else None
        if run is None or shape[sized[-1]] % len(run):
            return joined(indices, shape)
        *outer, last = (indices[n] for n in sized)
        key = (*outer, run[0], *shape)
        if key not in self.views:
            first = joined([*outer, run[0]], [shape[n] for n in sized])
            self.views[key] = [(each,) for each in self.run(first, len(run))]
        return self.views[key][run.index(last)][0]

    def _digits(self, number: ir.Value, shape: list[int]) -> Index:
        """Returns the indices of an element by its number; the last ones of a run are a run."""
        sized = [n for n, size in enumerate(shape) if size != 1]
        run = self.runs.get(number) if len(sized) > 1 else None
        if run is None or shape[sized[-1]] % len(run):
            return digits(number, shape)
        key = (run[0], *shape)
        if key not in self.views:
            first, place = digits(run[0], shape), sized[-1]
            self.views[key] = [
                (*first[:place], each, *first[place + 1 :])
                for each in self.run(first[place], len(run))
            ]
        return self.views[key][run.index(number)]

    @staticmethod
    def _key(tensor: ir.Value, at: Index) -> tuple[ir.Value, Index]:
        """Indices of dimensions of size 1 are all 0."""
        shape = tensor.type.shape if at else ()
        return tensor, tuple(index for index, size in zip(at, shape, strict=True) if size != 1)

    def _together(self, at: Index) -> list[Index]:
        """All combinations of the members of the runs that the indices in `at` belong to; `at`
        alone if there are none."""
        runs = {self.runs[index][0]: self.runs[index] for index in at if index in self.runs}
        found = []
        for members in product(*runs.values()):
            of_run = dict(zip(runs, members, strict=True))
            found.append(tuple(of_run[self.runs[i][0]] if i in self.runs else i for i in at))
        return found

    def _new(self, tensor: ir.Value, at: Index) -> ir.Value:
        if isinstance(tensor, ir.BlockArgument):
            return self._load(tensor, at)
        op = tensor.owner
        with op.location:
            if op.name == "arith.constant":
                return _constant(op)
            if op.name == "linalg.fill":
                return self.element(op.operands[0], ())
            if isinstance(op.opview, RESHAPES):
                return self.element(op.operands[0], self._through_view(op, at))
            if op.name == "tensor.extract_slice":
                return self.element(op.operands[0], in_slice(op, at, self.shift))
            if op.name == "tensor.pad":
                return self._padded(op, at)
            if op.name == "tensor.insert_slice":
                return self._inserted(op, at)
            if op.name == "tensor.concat":
                return self._joined(op, at)
            if op.name.startswith("linalg.") and linalg.get_indexing_maps(op) is not None:
                return self._structured(op, at, list(op.results).index(tensor))
            if op.name in SCALAR_OPS or op.name in NAMES:
                return narrow.computed(op.opview, [self.element(each, at) for each in op.operands])
        raise match_failure(
            op.opview, f"{TAKEN}, got {op.name}; {LEFT}; write it with the ops above", SMALLEST_SIMT
        )

    def _load(self, tensor: ir.BlockArgument, at: Index) -> ir.Value:
        kind = tensor.type
        sized = [n for n, size in enumerate(kind.shape) if size != 1]
        last = sized[-1] if sized else 0
        run = self.runs.get(at[last]) if sized else None
        if (
            run is None
            or any(self.runs.get(at[n]) == run for n in sized[:-1])
            or kind.shape[last] % len(run)
            or not narrow.has_runs(kind.element_type)
        ):
            return element_epilogue.element(self.pointers[tensor], kind, at)
        ats = [(*at[:last], each, *at[last + 1 :]) for each in run]
        place = element_epilogue.place_of(kind, ats[0])
        elements = narrow.load_run(self.pointers[tensor], place, len(ats), kind.element_type)
        for each, element in zip(ats, elements, strict=True):
            self.learn(tensor, each, element)
        return self.known[self._key(tensor, at)]

    def _padded(self, op: ir.Operation, at: Index) -> ir.Value:
        """The element or the padding. Loads never leave the tensor: at an edge they read an element
        that is then not used."""
        (yielded,) = list(op.regions[0].blocks[0])[-1].operands
        low, high = (
            list(ir.DenseI64ArrayAttr(op.attributes[f"static_{end}"])) for end in ("low", "high")
        )
        if len(op.operands) != 1 or yielded.owner == op.regions[0].blocks[0] or min(low) < 0:
            raise match_failure(
                op.opview,
                "expected tensor.pad with one number, by sizes of at least 0 that are known, got "
                "another; make low, high and the number constants",
            )
        inside, places = simt.constant(1, 1), list[ir.Value]()
        shape = op.operands[0].type.shape
        for index, first, last, extent in zip(at, low, high, shape, strict=True):
            if not first and not last:
                places.append(index)
                continue
            place = simt.sub(index, first) if first else index  # below 0: a large number
            inside = simt.both_bits(inside, simt.less(place, extent))
            places.append(self.shift(index, -first, extent))
        element, other = (self.element(op.operands[0], tuple(places)), self.element(yielded, ()))
        fixed = (n for n, i in enumerate(at) if not low[n] and not high[n] and at.count(i) == 1)
        dim = next((n for n in fixed if at[n] in self.runs), None)
        if dim is None or narrow.halved(element, other) is None:
            return arith.SelectOp(inside, element, other).result
        run = self.runs[at[dim]]
        ats = [(*places[:dim], each, *places[dim + 1 :]) for each in run]
        elements = [self.element(op.operands[0], each) for each in ats]
        for each, value in zip(run, narrow.chosen_run(inside, elements, other), strict=True):
            self.learn(op.results[0], (*at[:dim], each, *at[dim + 1 :]), value)
        return self.known[self._key(op.results[0], at)]

    def _inserted(self, op: ir.Operation, at: Index) -> ir.Value:
        """The element of the inserted slice or of the target. Loads never leave the slice, as for
        padding."""
        source, target = op.operands[:2]
        inside, places = in_inserted(op, at, self.shift)
        element = self.element(source, places)
        if is_op(target, "tensor.empty") and covers(op):
            return element  # others are not read
        return arith.SelectOp(inside, element, self.element(target, at)).result

    def _joined(self, op: ir.Operation, at: Index) -> ir.Value:
        """The element of the part that contains the index. Loads never leave a part, as for
        padding."""
        dim = ir.IntegerAttr(op.attributes["dim"]).value
        found: ir.Value | None = None
        begin = 0
        for part in op.operands:
            extent = part.type.shape[dim]
            place = self.shift(at[dim], -begin, extent)
            element = self.element(part, (*at[:dim], place, *at[dim + 1 :]))
            before = None if found is None else simt.less(at[dim], begin)
            found = element if found is None else arith.SelectOp(before, found, element).result
            begin += extent
        assert found is not None, "an op of one part or more"
        return found

    def _structured(self, op: ir.Operation, at: Index, number: int) -> ir.Value:
        """The element of result `number` at the indices `at`."""
        maps = [ir.AffineMapAttr(each).value for each in linalg.get_indexing_maps(op)]
        outs = [list(each.results) for each in maps[-len(op.results) :]]
        parallel = [{e.position for e in each if isinstance(e, ir.AffineDimExpr)} for each in outs]
        if not all(_is_single(e) for e in outs[number]) or any(p != parallel[0] for p in parallel):
            raise match_failure(
                op.opview,
                f"expected results indexed by the same single loops, or by 0, got {op.name} with "
                f"the map {maps[-1]}; {LEFT}; split it into ops of one result",
            )
        loops = {d: at[n] for n, d in _dims_of(outs[number])}
        sums = [dim for dim in range(maps[-1].n_dims) if dim not in loops]
        if not sums:
            return self._elementwise(op, at, number, maps)
        carried, ats = _carried(op, number), self._together(at)
        points: list[Loops] = []
        starts: list[Totals] = []
        for each in ats:
            point = {d: each[n] for n, d in _dims_of(outs[number])}
            points.append(point)
            starts.append(
                {
                    c: self.element(
                        op.operands[len(op.operands) - len(outs) + c],
                        tuple(_place(op, e, point) for e in outs[c]),
                    )
                    for c in carried
                }
            )
        found = self._reduced(op, maps, points, sums, starts)
        for each, totals in zip(ats, found, strict=True):
            self.learn(op.results[number], each, totals[number])
        return self.known[self._key(op.results[number], at)]

    def _elementwise(
        self, op: ir.Operation, at: Index, number: int, maps: list[ir.AffineMap]
    ) -> ir.Value:
        """The element of a result without reductions; where a body divides, with those of its run,
        as quotients by one divisor are cheaper together."""
        block = op.regions[0].blocks[0]
        ats = self._together(at) if any(e.operation.name == "arith.divf" for e in block) else [at]
        places = _dims_of(list(maps[len(op.operands) - len(op.results) + number].results))
        points: list[tuple[Loops, Totals]] = [
            ({d: each[n] for n, d in places}, {number: None}) for each in ats
        ]
        wanted = [list(block)[-1].operation.operands[number]]
        found = self.numbers_at(op, maps, points, wanted)
        for each, (value,) in zip(ats, found, strict=True):
            self.learn(op.results[number], each, value)
        return self.known[self._key(op.results[number], at)]

    def _reduced(
        self,
        op: ir.Operation,
        maps: list[ir.AffineMap],
        points: Sequence[Loops],
        dims: list[int],
        totals: Sequence[Totals],
    ) -> list[dict[int, ir.Value]]:
        """At each point `totals` and what the loops `dims` add to them, the last innermost.

        A few points, such as a window's, have no loop, so that all of their loads are in flight.
        """
        if not dims:
            return [self._body(op, maps, *each) for each in zip(points, totals, strict=True)]
        dim, *inner = dims
        extent = _extent(op, maps, dim)
        if prod(_extent(op, maps, each) for each in dims) <= UNROLLED:
            done = [dict(each) for each in totals]
            for index in map(simt.constant, range(extent)):
                here = [{**each, dim: index} for each in points]
                done = self._reduced(op, maps, here, inner, done)
            return done
        bounds = (simt.constant(n) for n in (0, extent, 1))
        loop = scf.ForOp(*bounds, [value for each in totals for value in each.values()])
        with ir.InsertionPoint(loop.body):
            here = [{**each, dim: loop.induction_variable} for each in points]
            so_far = _like(totals, loop.inner_iter_args)
            added = self.within()._reduced(op, maps, here, inner, so_far)
            scf.YieldOp([value for each in added for value in each.values()])
        return _like(totals, loop.results)

    def _body(
        self, op: ir.Operation, maps: list[ir.AffineMap], loops: Loops, totals: Totals
    ) -> dict[int, ir.Value]:
        """What the body yields at one point for the results of `totals`.

        totals: the outputs' elements so far, by the number of the result; None: as in memory
        """
        last = list(op.regions[0].blocks[0])[-1].operation.operands
        values = self.numbers(op, maps, loops, [last[n] for n in totals], totals)
        return dict(zip(totals, values, strict=True))

    def numbers(
        self,
        op: ir.Operation,
        maps: Sequence[ir.AffineMap],
        loops: Loops,
        wanted: Sequence[ir.Value],
        totals: Totals,
    ) -> list[ir.Value]:
        """Emits an op's body at one point and returns the `wanted` numbers. totals: as in
        `_body`"""
        return self.numbers_at(op, maps, [(loops, totals)], wanted)[0]

    def numbers_at(
        self,
        op: ir.Operation,
        maps: Sequence[ir.AffineMap],
        points: Sequence[tuple[Loops, Totals]],
        wanted: Sequence[ir.Value],
    ) -> list[list[ir.Value]]:
        """Emits an op's body at several points, each with its own totals, and returns the `wanted`
        numbers. Each op of the body is emitted for all points, and all quotients by the same
        divisor are emitted together."""
        block = op.regions[0].blocks[0]
        ops, arguments = _needed(block, wanted)
        inner = [self._arguments(op, maps, arguments, *each) for each in points]
        repeated = {block.arguments[n] for n in arguments if _is_repeated(maps[n], maps[-1])}
        for each in ops:
            name = each.operation.name
            if name not in (*SCALAR_OPS, *NAMES, *INDEX_OPS, *DIVISIONS):
                raise match_failure(
                    each,
                    f"{TAKEN}, got {name} in a body; {LEFT}; write it with the ops above",
                    SMALLEST_SIMT,
                )
            given = [self._operands(each, values) for values in inner]
            by = each.operands[1] if name == "arith.divf" else None
            with each.location:
                if by is not None and (by in repeated or constant_number(by) is not None):
                    results: list[ir.Value | None] = [*self._quotients(each, given)]
                else:
                    results = [
                        self._computed(each, operands, loops)
                        for operands, (loops, _) in zip(given, points, strict=True)
                    ]
            if len(each.operation.results):
                for values, result in zip(inner, results, strict=True):
                    values[each.operation.results[0]] = result
        return [
            [v[each] if each in v else self.element(each, ()) for each in wanted] for v in inner
        ]

    def _arguments(
        self,
        op: ir.Operation,
        maps: Sequence[ir.AffineMap],
        arguments: Sequence[int],
        loops: Loops,
        totals: Totals,
    ) -> dict[ir.Value, ir.Value]:
        """The numbers that a body is given at a point, by its argument."""
        inputs, found = len(op.operands) - len(op.results), dict[ir.Value, ir.Value]()
        for number in arguments:
            total = totals.get(number - inputs)
            if total is None:
                at = tuple(_place(op, e, loops) for e in maps[number].results)
                total = self.element(op.operands[number], at)
            found[op.regions[0].blocks[0].arguments[number]] = total
        return found

    def _operands(self, op: ir.OpView, inner: Mapping[ir.Value, ir.Value]) -> list[ir.Value]:
        """The numbers and tensors that an op of a body reads."""
        return [
            o
            if isinstance(o.type, ir.ShapedType)
            else inner[o]
            if o in inner
            else self.element(o, ())
            for o in op.operands
        ]

    def _computed(self, op: ir.OpView, operands: list[ir.Value], loops: Loops) -> ir.Value | None:
        """An op of a body at one point, computed once for its operands."""
        given = [loops[_loop(op)]] if op.operation.name == "linalg.index" else operands
        key = (op.operation, *given)
        if key not in self.computed:
            self.computed[key] = self._inner(op, operands, loops)
        return self.computed[key]

    def _quotients(self, op: ir.OpView, given: Sequence[Sequence[ir.Value]]) -> list[ir.Value]:
        """Quotients by divisors that adjacent elements have, those by the same one together."""
        keys = [(op.operation, *operands) for operands in given]
        new = {key: key[1:] for key in keys if key not in self.computed}
        for divisor in dict.fromkeys(by for _, by in new.values()):
            mine = {key: number for key, (number, by) in new.items() if by == divisor}
            self.computed.update(
                zip(mine, self._divided(list(mine.values()), divisor), strict=True)
            )
        return [self.computed[key] for key in keys]

    def _divided(self, numbers: Sequence[ir.Value], divisor: ir.Value) -> list[ir.Value]:
        if not isinstance(divisor.type, ir.F32Type):
            return [divided(number, divisor) for number in numbers]
        if divisor not in self.divisors:
            self.divisors[divisor] = Divisor.of(divisor)
        return self.divisors[divisor].divides(numbers)

    def _inner(self, op: ir.OpView, operands: list[ir.Value], loops: Loops) -> ir.Value | None:
        """An op of a body at one point; None for an assertion."""
        match op.operation.name:
            case "arith.constant":
                return _constant(op.operation)
            case "cf.assert":
                simt.check(operands[0], ir.StringAttr(op.attributes["msg"]).value)
                return None
            case "linalg.index":
                return simt.wide(loops[_loop(op)])
            case "tensor.extract":
                return self.element(operands[0], self._inside(op, operands[1:], loops))
            case name if name in DIVISIONS:
                return _divided(op, *operands)
        return narrow.computed(op, operands)

    def _inside(self, op: ir.OpView, indices: Sequence[ir.Value], loops: Loops) -> Index:
        """The indices of a `tensor.extract`. One made of elements of a tensor is checked: a thread
        with one that is outside traps, and loads nothing from there."""
        found = []
        shape = op.operands[0].type.shape
        for given, index, extent in zip(op.operands[1:], indices, shape, strict=True):
            if is_op(given, "linalg.index"):
                found.append(loops[_loop(given.owner)])
                continue
            key = (op.operation, index, extent)
            if key not in self.computed:
                self.computed[key] = _bounded(index, 0 if _of_loops(given) else extent)
            found.append(self.computed[key])
        return tuple(found)


def has_loop(op: ir.Operation) -> bool:
    """Whether a thread computes a reduction by a loop."""
    maps = [ir.AffineMapAttr(each).value for each in linalg.get_indexing_maps(op)]
    kept = {d for _, d in _dims_of(list(maps[-1].results))}
    sums = (_extent(op, maps, dim) for dim in range(maps[-1].n_dims) if dim not in kept)
    return prod(sums) > UNROLLED


def _dims_of(indices: Sequence[ir.AffineExpr]) -> list[tuple[int, int]]:
    """Positions of the indices that are single loops, each with the number of its loop."""
    return [(n, e.position) for n, e in enumerate(indices) if isinstance(e, ir.AffineDimExpr)]


def _is_repeated(read: ir.AffineMap, out: ir.AffineMap) -> bool:
    """Whether elements adjacent along the last dimension of a result read the same element."""
    kept = {e.position for e in out.results[-1:] if isinstance(e, ir.AffineDimExpr)}
    dims = {e.position for e in read.results if isinstance(e, ir.AffineDimExpr)}
    return bool(kept) and not kept & dims and all(map(_is_single, read.results))


def _like(totals: Sequence[Totals], values: Sequence[ir.Value]) -> list[dict[int, ir.Value]]:
    """Distributes `values` to the elements of `totals`, in order."""
    given = iter(values)
    return [{number: next(given) for number in each} for each in totals]


def _needed(block: ir.Block, wanted: Collection[ir.Value]) -> tuple[list[ir.OpView], list[int]]:
    """The ops that the values `wanted` of a body come from, and the arguments' numbers."""
    *ops, _ = block.operations
    reached = set(wanted)
    kept: list[ir.OpView] = []
    for op in reversed(ops):
        results = op.operation.results
        if not len(results) or results[0] in reached:  # what has none, such as an assert, acts
            kept.insert(0, op)
            reached.update(op.operation.operands)
    return kept, [n for n, argument in enumerate(block.arguments) if argument in reached]


def _carried(op: ir.Operation, number: int) -> list[int]:
    """The results that a reduction has to carry for one of them, in order."""
    inputs = len(op.operands) - len(op.results)
    wanted: set[int] = set()
    more = {number}
    while more != wanted:
        wanted = more
        last = list(op.regions[0].blocks[0])[-1].operation.operands
        _, arguments = _needed(op.regions[0].blocks[0], [last[n] for n in wanted])
        more = wanted | {each - inputs for each in arguments if each >= inputs}
    return sorted(wanted)


def _divided(op: ir.OpView, number: ir.Value, divisor: ir.Value) -> ir.Value:
    """A division or a remainder of integers by a positive constant; floor and ceiling by both."""
    by, kind = constant_number(divisor), op.operation.results[0].type
    if by is None or by <= 0 or narrow.is_byte(kind):
        got = f"{kind} by {'another number' if by is None else f'{by:g}'}"
        raise match_failure(
            op,
            f"expected {op.operation.name} by a positive constant, of i16, i32, i64 or index, got "
            f"{got} (a quotient by 0 has no value); make it a constant",
        )
    name = op.operation.name.removeprefix("arith.")
    if name not in ("floordivsi", "ceildivsi"):
        return narrow.computed(op, [number, divisor])
    quotient = arith.DivSIOp(number, divisor).result
    rest, zero = arith.RemSIOp(number, divisor).result, simt.constant(0, number.type.width)
    below, above = arith.CmpIPredicate.slt, arith.CmpIPredicate.sgt
    off = arith.CmpIOp(below if name == "floordivsi" else above, rest, zero).result
    step = simt.constant(-1 if name == "floordivsi" else 1, number.type.width)
    return simt.add(quotient, arith.SelectOp(off, step, zero).result)


def _is_single(index: ir.AffineExpr) -> bool:
    """Whether an index is a loop, or 0."""
    zero = isinstance(index, ir.AffineConstantExpr) and index.value == 0
    return isinstance(index, ir.AffineDimExpr) or zero


def _loop(op: ir.OpView | ir.Operation) -> int:
    """Number of the loop whose index a `linalg.index` returns."""
    return ir.IntegerAttr(op.attributes["dim"]).value


def _bounded(index: ir.Value, extent: int) -> ir.Value:
    """An index as an i32, checked against `extent`; 0: it needs no check."""
    if extent:
        simt.check(simt.less(index, extent), f"expected an index from 0 to {extent - 1}")
        index = simt.smaller(index, extent - 1)
    return narrow.resized(index, 32)


def _of_loops(number: ir.Value) -> bool:
    """Whether a number is made of `linalg.index` and constants."""
    if isinstance(number.owner, ir.Block):
        return False
    return number.owner.name != "tensor.extract" and all(map(_of_loops, number.owner.operands))


def _constant(op: ir.Operation) -> ir.Value:
    attribute, kind = op.attributes["value"], op.results[0].type
    if isinstance(kind, ir.ShapedType):
        if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
            raise match_failure(
                op.opview,
                f"expected a constant of one number, got one of {kind}: weights are read from "
                "memory; make it an argument, or run constants-to-arguments first",
            )
        kind, attribute = kind.element_type, attribute.get_splat_value()
    return narrow.constant(kind, attribute)


def _place(op: ir.Operation, expression: ir.AffineExpr, loops: Loops) -> ir.Value:
    """An affine expression at a point of the loops."""
    if isinstance(expression, ir.AffineDimExpr):
        return loops[expression.position]
    if isinstance(expression, ir.AffineConstantExpr):
        return simt.constant(expression.value)
    if isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        first, second = (_place(op, each, loops) for each in (expression.lhs, expression.rhs))
        if isinstance(expression, ir.AffineAddExpr):
            return (
                second
                if _is_zero(first)
                else first
                if _is_zero(second)
                else simt.add(first, second)
            )
        return first if _is_zero(first) else simt.mul(first, second)
    if isinstance(expression, ir.AffineFloorDivExpr | ir.AffineModExpr):
        loop, by = expression.lhs, expression.rhs
        if isinstance(loop, ir.AffineDimExpr) and isinstance(by, ir.AffineConstantExpr):
            whole = isinstance(expression, ir.AffineFloorDivExpr)
            return (simt.divide if whole else simt.rest)(loops[loop.position], by.value)
    raise match_failure(
        op.opview,
        f"expected indices made of loops, sums, products and a loop's quotients by a constant, got "
        f"{expression}; index by a loop of its own",
    )


def _is_zero(index: ir.Value) -> bool:
    """Whether an index is the constant 0, as that of a dimension of size 1."""
    return constant_number(index) == 0


def _extent(op: ir.Operation, maps: list[ir.AffineMap], dim: int) -> int:
    """The trip count of a loop."""
    if (size := loop_sizes(op, maps).get(dim)) is not None:
        return size
    raise match_failure(
        op.opview,
        f"expected an operand with a dimension whose index is loop d{dim} alone, got none; add "
        "such an operand",
    )
