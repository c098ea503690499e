"""Depthwise convolutions of images with channels last. A thread computes a tile of pixels, for as
many channels as a 32-bit word holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from tcir._mlir import arith, func, ir, linalg
from tcir.dialect.attributes import integer_type
from tcir.dialect.upstream import RESHAPES
from tcir.passes.analysis.contraction import CHANNELS_LAST, Conv, body_problem, recognise, value
from tcir.passes.analysis.reductions import is_reduction
from tcir.passes.analysis.wrappers import is_zero_padding
from tcir.passes.emit import narrow, simt
from tcir.passes.emit.diagnostics import is_op
from tcir.passes.emit.element_epilogue import place_of
from tcir.passes.simt.elements import ThreadElements, digits
from tcir.passes.simt.slices import Index
from tcir.passmanager.remarks import remark

FEW, MANY = 32, 128
"""Threads of a CTA: of small images few, so that all SMs have as many warps."""
ENOUGH = 1 << 16
"""Threads that keep all SMs multiplying: 512 on each of 132 SMs or so."""
ACROSS = (7, 8, 6, 5, 4, 3, 2)
"""Pixels of a thread along a row, the most preferred first: images are 7, 14, 28, 56, 112 wide."""
DOWN = (4, 2, 1)
"""Rows of them: each input row is loaded and widened once for all."""
WORD = 4
"""Bytes of a load: a warp loads 128 adjacent ones."""
CHANNELS_BEHIND = (2, 0, 1)
"""Dimensions (g, r, s) of a filter that is stored channels last."""
TYPES = ("f16", "bf16", "f32")


@dataclass(frozen=True)
class Axis:
    """One dimension of an image.

    size, low, out:         extent of the input, padding before it, extent of the result
    taps, stride, dilation: parameters of the filter
    tile:                   results of a thread
    """

    size: int
    low: int
    out: int
    taps: int
    stride: int
    dilation: int
    tile: int

    @property
    def window(self) -> int:
        """Number of input positions that a tile reads."""
        return (self.tile - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    @property
    def beyond(self) -> int:
        """Number of input positions of the last tile that lie after the image."""
        last = (self.out - self.tile) * self.stride - self.low
        return max(0, last + self.window - self.size)

    @property
    def is_split(self) -> bool:
        """Whether the tiles at the ends handle all padding: only the first tile reads padding
        before the image, only the last tile reads padding after it, and the first window of each
        tile, without padding, begins inside the image."""
        step = self.tile * self.stride
        return step >= max(self.low, self.beyond) and self.window > self.low + self.beyond


@dataclass(frozen=True)
class Form:
    """A convolution that the kernel of this module computes.

    op:           the convolution
    x, w:         arguments that hold the image and the filter (r, s, c)
    rows, across: the two dimensions of the image
    """

    op: ir.Operation
    x: ir.Value
    w: ir.Value
    rows: Axis
    across: Axis

    @property
    def element(self) -> ir.Type:
        """The type of both factors."""
        return self.x.type.element_type

    @property
    def channels(self) -> int:
        """Number of channels of a thread."""
        return WORD * 8 // int(self.element.width)

    @property
    def threads(self) -> int:
        """Number of threads of a CTA."""
        return FEW if prod(self.counts) <= 2 * ENOUGH else MANY

    @property
    def counts(self) -> list[int]:
        """Numbers of threads along images, rows, columns and channels."""
        n, p, q, c = self.op.results[0].type.shape
        return [n, p // self.rows.tile, q // self.across.tile, c // self.channels]


def form_of(function: func.FuncOp, result: ir.Value) -> Form | None:
    """Describes a function whose only reduction is a depthwise convolution, and whose later ops
    have the same indices as the convolution; None for another function."""
    sums = [op.operation for op in function.entry_block if is_reduction(op.operation)]
    if len(sums) != 1 or len(sums[0].results) != 1:
        return None
    (op,) = sums
    found = recognise(op.opview)
    if (
        not isinstance(found, Conv)
        or (found.channels, found.filters, len(found.strides)) != (False, False, 2)
        or found.image != CHANNELS_LAST
        or found.out != CHANNELS_LAST
        or found.weights != CHANNELS_BEHIND
        or body_problem(op.opview)
        or not _goes_on(result, op.results[0])
    ):
        return None
    x, w, low = op.operands[found.x], op.operands[found.w], [0] * 4
    if is_op(x, "tensor.pad") and is_zero_padding(x.owner):
        low = list(ir.DenseI64ArrayAttr(x.owner.attributes["static_low"]))
        x = x.owner.operands[0]
    n, p, q, c = op.results[0].type.shape
    arguments = isinstance(x, ir.BlockArgument) and isinstance(w, ir.BlockArgument)
    if not arguments or str(x.type.element_type) not in TYPES or low[0] or low[3]:
        return None
    if x.type.element_type != w.type.element_type or x.type.shape[0] != n:
        return None
    if x.type.shape[3] != c or c % (WORD * 8 // x.type.element_type.width):
        return None
    per_row = prod((n, p, q, c)) * x.type.element_type.width // (8 * WORD)
    for across in (each for each in ACROSS if q % each == 0):
        fits = [d for d in DOWN if p % d == 0]
        down = next((d for d in fits if per_row // (across * d) >= ENOUGH), 1)
        axes = [
            Axis(size, before, out, taps, stride, dilation, tile)
            for size, before, out, taps, stride, dilation, tile in zip(
                x.type.shape[1:3],
                low[1:3],
                (p, q),
                w.type.shape,
                found.strides,
                found.dilations,
                (down, across),
            )
        ]
        if axes[1].is_split:
            return Form(op, x, w, *axes)
    return None


def _goes_on(tensor: ir.Value, sums: ir.Value) -> bool:
    """Whether each element of `tensor` depends on `sums` only at the same indices."""
    if tensor == sums:
        return True
    if isinstance(tensor, ir.BlockArgument) or tensor.type.shape != sums.type.shape:
        return False
    op = tensor.owner
    if isinstance(op.opview, RESHAPES):
        return False
    maps = [value(each) for each in linalg.get_indexing_maps(op) or ()]
    if not maps:
        parts = [each for each in op.operands if _depends(each, sums)]
        return op.name.startswith("arith.") and all(_goes_on(each, sums) for each in parts)
    read = [(o, m) for o, m in zip(op.operands, maps) if _depends(o, sums)]
    return maps[-1].is_permutation and all(m == maps[-1] and _goes_on(o, sums) for o, m in read)


def _depends(tensor: ir.Value, sums: ir.Value) -> bool:
    """Whether a value is computed from `sums`."""
    if tensor == sums or isinstance(tensor, ir.BlockArgument):
        return tensor == sums
    return any(_depends(each, sums) for each in tensor.owner.operands)


def convert(module: ir.Module, function: func.FuncOp, result: ir.Value, form: Form) -> None:
    """Turns a function with a depthwise convolution into a kernel.

    Before::

        func.func @f(%x: tensor<8x56x56x96xf16>, %w: tensor<7x7x96xf16>, %b: tensor<96xf16>)
          %p = tensor.pad %x low[0, 3, 3, 0] high[0, 3, 3, 0]
          %c = linalg.generic ins(%p, %w) outs(%bias) … arith.mulf … arith.addf
          %y = linalg.generic ins(%c) … arith.truncf

    After (a thread has two channels of 2 x 7 pixels)::

        for each of the 8 rows of %x, unrolled:
          %v:13 = llvm.load %x[%n, %row, %column …, %channels], zeros where that is padding
          for both rows of the tile, 7 taps, 7 pixels, 2 channels: %sum = fma(%v, %w, %sum)
        %y[…] = what follows the sums

    A warp loads 128 adjacent bytes. A row of the image is loaded and widened once for all windows
    of the tile that contain it, and a tap of the filter is loaded once for all pixels. Only columns
    of the first and of the last tile may be padding, so each of these tiles needs one condition.
    Taps are summed in the order of the reference. A product of f16 or bf16 numbers is exact in f32
    (for bf16 as long as it is neither too large nor too small for f32), so a fused multiply-add
    gives the same result as a product and a sum.
    """
    _Kernel(module, function, result, form).build()


@dataclass
class _Kernel:
    module: ir.Module
    function: func.FuncOp
    result: ir.Value
    form: Form

    def build(self) -> None:
        form, block = self.form, self.function.entry_block
        count = prod(form.counts)
        remark(
            form.op.opview,
            f"depthwise, {form.rows.taps} x {form.across.taps} taps: {count} threads, each "
            f"{form.rows.tile} x {form.across.tile} pixels of {form.channels} channels",
        )
        place = self.module, self.function, count, form.threads, form.op.location
        with simt.units_of(*place) as (number, pointers):
            self.pointers = dict(zip(block.arguments, pointers))
            self.elements = ThreadElements(self.pointers)
            self._begin(number)
            self._store(pointers[-1], self._sums())

    def _begin(self, number: ir.Value) -> None:
        """Computes the position of the thread's tile, and at which edges it reads padding."""
        form = self.form
        self.image, row, column, channel = digits(number, form.counts)
        self.row = simt.mul(row, form.rows.tile)
        self.column = simt.mul(column, form.across.tile)
        first = simt.mul(channel, form.channels)
        self.lanes = self.elements.run(first, form.channels)
        last = form.counts[2] - 1
        self.edges = {
            -1: arith.cmpi(arith.CmpIPredicate.ne, column, simt.constant(0)),
            1: arith.cmpi(arith.CmpIPredicate.ne, column, simt.constant(last)),
        }

    # --- the image and the filter --------------------------------------------------------------

    @cached_property
    def _pixel(self) -> int:
        """Bytes from a pixel to the next."""
        return int(self.form.x.type.shape[3]) * self.form.element.width // 8

    def _numbers(self, word: ir.Value) -> list[ir.Value]:
        """The channels in a word, widened to f32."""
        bits, kind = self.form.element.width, ir.F32Type.get()
        found = [
            simt.of_words([simt.right(word, bits * n)], self.form.element)
            for n in range(self.form.channels)
        ]
        return [each if each.type == kind else arith.extf(kind, each) for each in found]

    def _input_row(self, number: int) -> list[list[ir.Value]]:
        """The channels of the tile's columns in row `number` of its windows; 0 where padded."""
        form, rows, across = self.form, self.form.rows, self.form.across
        place = simt.add(simt.mul(self.row, rows.stride), number - rows.low)
        mask: ir.Value | None = None
        last = (rows.out - rows.tile) * rows.stride - rows.low + number
        if number < rows.low or last >= rows.size:
            mask = _mask(simt.less(place, rows.size))
            place = simt.smaller(place, rows.size - 1)
        zero = simt.constant(0)
        column = simt.mul(self.column, across.stride)
        at = (self.image, place, column, self.lanes[0])
        center = simt.at(
            self.pointers[form.x], narrow.byte(place_of(form.x.type, at), form.element)
        )
        sides = {0: (center, mask)}
        for side, amount in ((-1, across.low), (1, across.beyond)):
            back = simt.constant(-side * amount * self._pixel, 64)
            moved = arith.select(self.edges[side], simt.constant(0, 64), back)
            inside = _mask(self.edges[side])
            both = inside if mask is None else simt.both_bits(inside, mask)
            sides[side] = (simt.at(center, moved), both)
        found = []
        for j in range(across.window):
            side = -(j < across.low) + (j >= across.window - across.beyond)
            if side and form.counts[2] == 1:
                found.append(self._numbers(zero))
                continue
            pointer, allowed = sides[side]
            pointer = simt.behind(pointer, (j - across.low) * self._pixel)
            word = simt.load(pointer, integer_type(8 * WORD))
            found.append(self._numbers(word if allowed is None else simt.both_bits(word, allowed)))
        return found

    def _tap(self, r: int, s: int) -> list[ir.Value]:
        """The channels of a tap of the filter."""
        if (r, s) not in self.taps:
            form = self.form
            start = simt.at(
                self.pointers[form.w], narrow.byte(simt.wide(self.lanes[0]), form.element)
            )
            pointer = simt.behind(start, (r * form.across.taps + s) * self._pixel)
            self.taps[r, s] = self._numbers(simt.load(pointer, integer_type(8 * WORD)))
        return self.taps[r, s]

    # --- the sums --------------------------------------------------------------------------------

    def _at(self, row: int, column: int, lane: ir.Value) -> Index:
        """The index of an element of the tile."""
        p = simt.add(self.row, row) if row else self.row
        q = simt.add(self.column, column) if column else self.column
        return (self.image, p, q, lane)

    def _sums(self) -> dict[tuple[int, int], list[ir.Value]]:
        """The sums of each pixel of the tile, a value for each channel."""
        form, rows, across = self.form, self.form.rows, self.form.across
        self.taps: dict[tuple[int, int], list[ir.Value]] = {}
        tile = [(o, p) for o in range(rows.tile) for p in range(across.tile)]
        start = form.op.operands[len(form.op.operands) - 1]
        self.ats = {at: [self._at(*at, lane) for lane in self.lanes] for at in tile}
        sums = {at: [self.elements.element(start, each) for each in self.ats[at]] for at in tile}
        for i in range(rows.window):
            over = [
                (o, (i - o * rows.stride) // rows.dilation)
                for o in range(rows.tile)
                if (i - o * rows.stride) % rows.dilation == 0
                and 0 <= (i - o * rows.stride) // rows.dilation < rows.taps
            ]
            if not over:
                continue
            columns = self._input_row(i)
            for (o, r), s in ((each, s) for each in over for s in range(across.taps)):
                for p in range(across.tile):
                    x = columns[p * across.stride + s * across.dilation]
                    sums[o, p] = list(map(self._added, x, self._tap(r, s), sums[o, p]))
        return sums

    def _added(self, x: ir.Value, w: ir.Value, total: ir.Value) -> ir.Value:
        """Adds the product of `x` and `w` to `total`."""
        if self.form.element.width < 8 * WORD:
            return simt.fma(x, w, total)
        return arith.addf(total, arith.mulf(x, w))

    def _store(self, out: ir.Value, sums: dict[tuple[int, int], list[ir.Value]]) -> None:
        """Computes the result from the sums and stores it."""
        kind = self.result.type
        for at, totals in sums.items():
            for each, total in zip(self.ats[at], totals, strict=True):
                self.elements.learn(self.form.op.results[0], each, total)
        for at in sums:
            values = [self.elements.element(self.result, each) for each in self.ats[at]]
            place = place_of(kind, self.ats[at][0])
            if len(values) > 1:
                narrow.store_run(out, place, values, kind.element_type)
            else:
                narrow.store(out, place, values, kind.element_type)


def _mask(inside: ir.Value) -> ir.Value:
    """All bits of a word, or none."""
    return arith.ExtSIOp(integer_type(8 * WORD), inside).result
