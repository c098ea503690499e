"""Text of `linalg` modules for tests: convolutions and matrix products, named or generic."""

from __future__ import annotations

from dataclasses import dataclass

ACC = "f32"


def _product(a: str, b: str) -> str:
    """Body of a contraction of elements `a` and `b`; u8 is i8 widened as unsigned."""
    total, kind = ("i32", "i") if a.endswith("8") and a[0] in "iu" else ("f32", "f")
    stored = [f"i{t[1:]}" if t[0] in "iu" else t for t in (a, b)]
    lines = [f"^bb0(%a: {stored[0]}, %b: {stored[1]}, %o: {total}):"]
    names = []
    for name, type_, held in zip("ab", (a, b), stored):
        widen = {"i8": "extsi", "u8": "extui", "f32": ""}.get(type_, "extf")
        names.append(f"%e{name}" if widen else f"%{name}")
        if widen:
            lines.append(f"    %e{name} = arith.{widen} %{name} : {held} to {total}")
    lines += [
        f"    %m = arith.mul{kind} {', '.join(names)} : {total}",
        f"    %s = arith.add{kind} %o, %m : {total}",
        f"    linalg.yield %s : {total}",
    ]
    return "\n".join(lines)


def _tensor(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def _finish(shape: tuple[int, ...], out: str) -> list[str]:
    """Rounding of the f32 result %sum to `out`, and the return."""
    if out in (ACC, "i32"):
        return [f"  return %sum : {_tensor(shape, out)}"]
    maps = ", ".join(f"d{i}" for i in range(len(shape)))
    kinds = ", ".join(['"parallel"'] * len(shape))
    identity = f"affine_map<({maps}) -> ({maps})>"
    return [
        f"  %narrow = tensor.empty() : {_tensor(shape, out)}",
        f"  %out = linalg.generic {{indexing_maps = [{identity}, {identity}], "
        f"iterator_types = [{kinds}]}}",
        f"      ins(%sum : {_tensor(shape, ACC)}) outs(%narrow : {_tensor(shape, out)}) {{",
        f"  ^bb0(%in: f32, %o: {out}):",
        f"    %t = arith.truncf %in : f32 to {out}",
        f"    linalg.yield %t : {out}",
        f"  }} -> {_tensor(shape, out)}",
        f"  return %out : {_tensor(shape, out)}",
    ]


@dataclass(frozen=True)
class Conv:
    """One convolution: NHWC input, `filter` layout hwcf or fhwc."""

    n: int
    h: int
    w: int
    c: int
    k: int
    r: int
    s: int
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    """top, bottom, left, right"""
    filter: str = "hwcf"
    element: str = "f16"
    out: str = "f32"
    generic: bool = False
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    w_element: str = ""
    """of the filter, when it is another"""

    @property
    def elements(self) -> tuple[str, str]:
        """Element types of input and filter; u8 is unsigned i8."""
        return self.element, self.w_element or self.element

    @property
    def p(self) -> int:
        """Output rows."""
        span = (self.r - 1) * self.dilations[0]
        return (self.h + self.pads[0] + self.pads[1] - span - 1) // self.strides[0] + 1

    @property
    def q(self) -> int:
        """Output columns."""
        span = (self.s - 1) * self.dilations[1]
        return (self.w + self.pads[2] + self.pads[3] - span - 1) // self.strides[1] + 1

    @property
    def name(self) -> str:
        """Short test id."""
        pads = "".join(map(str, self.pads))
        kind = "generic-" if self.generic else ""
        steps = ""
        if (self.strides, self.dilations) != ((1, 1), (1, 1)):
            steps = "-s{}{}d{}{}".format(*self.strides, *self.dilations)
        return (
            f"{kind}{self.n}x{self.h}x{self.w}x{self.c}-{self.k}-{self.r}x{self.s}-p{pads}"
            f"{steps}-{self.filter}-{self.element}{self.w_element}-{self.out}"
        )

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Shapes of input, filter, output."""
        w = (self.r, self.s, self.c, self.k)
        if self.filter == "fhwc":
            w = (self.k, self.r, self.s, self.c)
        return (self.n, self.h, self.w, self.c), w, (self.n, self.p, self.q, self.k)

    def text(self) -> str:
        """The module."""
        x, w, out = self.shapes
        top, bottom, left, right = self.pads
        padded = (self.n, self.h + top + bottom, self.w + left + right, self.c)
        e, f = (f"i{t[1:]}" if t[0] == "u" else t for t in self.elements)
        total, number = ("i32", "0") if e == "i8" else (ACC, "0.0")
        lines = [
            f"func.func @conv(%x: {_tensor(x, e)}, %w: {_tensor(w, f)}) "
            f"-> {_tensor(out, self.out)} {{"
        ]
        source = "%x"
        if any(self.pads):
            source = "%padded"
            lines += [
                f"  %zero = arith.constant {number} : {e}",
                f"  %padded = tensor.pad %x "
                f"low[0, {top}, {left}, 0] high[0, {bottom}, {right}, 0] {{",
                "  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):",
                f"    tensor.yield %zero : {e}",
                f"  }} : {_tensor(x, e)} to {_tensor(padded, e)}",
            ]
        lines += [
            f"  %empty = tensor.empty() : {_tensor(out, total)}",
            f"  %f0 = arith.constant {number} : {total}",
            f"  %init = linalg.fill ins(%f0 : {total}) outs(%empty : {_tensor(out, total)}) "
            f"-> {_tensor(out, total)}",
        ]
        operands = f"ins({source}, %w : {_tensor(padded, e)}, {_tensor(w, f)})"
        if self.generic or "u8" in self.elements:
            d = "(n, p, q, k, r, s, c)"
            (sh, sw), (dh, dw) = self.strides, self.dilations
            wmap = "(r, s, c, k)" if self.filter == "hwcf" else "(k, r, s, c)"
            lines += [
                f"  %sum = linalg.generic {{indexing_maps = [affine_map<{d} -> "
                f"(n, p * {sh} + r * {dh}, q * {sw} + s * {dw}, c)>, affine_map<{d} -> {wmap}>, "
                f"affine_map<{d} -> (n, p, q, k)>],",
                '      iterator_types = ["parallel", "parallel", "parallel", "parallel", '
                '"reduction", "reduction", "reduction"]}',
                f"      {operands} outs(%init : {_tensor(out, total)}) {{",
                "  " + _product(*self.elements),
                f"  }} -> {_tensor(out, total)}",
            ]
        else:
            lines += [
                f"  %sum = linalg.conv_2d_nhwc_{self.filter} "
                f"{{dilations = dense<{list(self.dilations)}> : tensor<2xi64>, "
                f"strides = dense<{list(self.strides)}> : tensor<2xi64>}}",
                f"      {operands} outs(%init : {_tensor(out, total)}) -> {_tensor(out, total)}",
            ]
        return "\n".join([*lines, *_finish(out, self.out), "}", ""])


@dataclass(frozen=True)
class Matmul:
    """One matrix product; `a_layout` mk or km, `b_layout` kn or nk, `batch` 0 for none."""

    m: int
    n: int
    k: int
    a_layout: str = "mk"
    b_layout: str = "kn"
    batch: int = 0
    element: str = "f16"
    out: str = "f32"

    @property
    def name(self) -> str:
        """Short test id."""
        batch = f"{self.batch}x" if self.batch else ""
        return (
            f"{batch}{self.m}x{self.n}x{self.k}-{self.a_layout}-{self.b_layout}"
            f"-{self.element}-{self.out}"
        )

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Shapes of a, b, out."""
        extent = {"m": self.m, "n": self.n, "k": self.k}
        lead = (self.batch,) if self.batch else ()

        def shape(order: str) -> tuple[int, ...]:
            return lead + tuple(extent[x] for x in order)

        return shape(self.a_layout), shape(self.b_layout), shape("mn")

    def text(self) -> str:
        """The module."""
        a, b, out = self.shapes
        e = self.element
        lines = [
            f"func.func @matmul(%a: {_tensor(a, e)}, %b: {_tensor(b, e)}) "
            f"-> {_tensor(out, self.out)} {{",
            f"  %empty = tensor.empty() : {_tensor(out, ACC)}",
            "  %f0 = arith.constant 0.0 : f32",
            f"  %init = linalg.fill ins(%f0 : f32) outs(%empty : {_tensor(out, ACC)}) "
            f"-> {_tensor(out, ACC)}",
        ]
        op = "batch_matmul" if self.batch else "matmul"
        maps = ""
        if (self.a_layout, self.b_layout) != ("mk", "kn"):
            lead = "z, " if self.batch else ""
            d = f"({lead}m, n, k)"
            where = ", ".join(
                f"affine_map<{d} -> ({lead}{', '.join(order)})>"
                for order in (self.a_layout, self.b_layout, "mn")
            )
            maps = f" indexing_maps = [{where}]"
        lines += [
            f"  %sum = linalg.{op}{maps} ins(%a, %b : {_tensor(a, e)}, {_tensor(b, e)})",
            f"      outs(%init : {_tensor(out, ACC)}) -> {_tensor(out, ACC)}",
        ]
        return "\n".join([*lines, *_finish(out, self.out), "}", ""])
