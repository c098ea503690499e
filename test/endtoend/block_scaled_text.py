"""Block-scaled contractions as MLIR text, in plain linalg and as the op."""

from __future__ import annotations

from dataclasses import dataclass, replace

F4, F6A, F6B, F8A, F8B = "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E4M3FN", "f8E5M2"
UE8M0, UE4M3 = "f8E8M0FNU", "f8E4M3FN"


def tensor(*shape: int | None, of: str) -> str:
    """A tensor type; None among the sizes counts for nothing."""
    return "tensor<" + "".join(f"{n}x" for n in shape if n is not None) + of + ">"


@dataclass(frozen=True)
class BlockScaled:
    """One contraction.

    n: columns of B, None for a vector. batch: None for none. split: k as two loops. swapped: B
    before A. order: the loops, as permuted names. alpha: global scales "no", "in" the sum or
    "after" it. scaling: arith.scaling_extf instead of extf and mulf. blocked: whose scales are in
    the 128x4 layout, in linalg, and the dimensions of a block's 512 bytes: "a3b1".
    """

    m: int = 16
    n: int | None = None
    k: int = 64
    batch: int | None = None
    a: str = F4
    b: str = F4
    scale: str = UE4M3
    block: int = 16
    out: str = "f32"
    split: bool = False
    swapped: bool = False
    order: str = ""
    alpha: str = "no"
    scaling: bool = False
    blocked: str = ""

    def __str__(self) -> str:
        flags = [f for f in ("split", "swapped", "scaling") if getattr(self, f)]
        size = f"{self.batch or 1}x{self.m}x{self.n or 'vector'}x{self.k}"
        words = [size, self.a, self.b, self.scale, str(self.block), self.out, self.alpha]
        words += [self.blocked] * bool(self.blocked)
        return "-".join([*words, *flags, self.order]).rstrip("-")

    @property
    def loops(self) -> list[str]:
        """Loops of the sum, as they are written."""
        names = ["l"] * (self.batch is not None) + ["m"] + ["n"] * (self.n is not None)
        names += ["kb", "ki"] if self.split else ["k"]
        return self.order.split() if self.order else names

    def operands(self) -> list[tuple[str, str, str, list[str]]]:
        """(name, tensor type, element type, dims of its map) of elements and scales."""
        k: tuple[int, ...] = (self.k // self.block, self.block) if self.split else (self.k,)
        batch = ["l"] * (self.batch is not None)
        inner = ["kb", "ki"] if self.split else ["k"]
        blocks = ["kb"] if self.split else [f"k floordiv {self.block}"]
        scales = self.k // self.block
        found = []
        for name, rows, dim, of in (("a", self.m, "m", self.a), ("b", self.n, "n", self.b)):
            dims = batch + ([dim] if rows is not None else [])
            shape = tensor(self.batch, rows, *k, of=of)
            found.append((name, shape, of, dims + inner))
            shape = tensor(self.batch, rows, scales, of=self.scale)
            where = dims + blocks
            if name in self.blocked:
                dims_of_block = int(self.blocked[self.blocked.index(name) + 1])
                row = dim if rows is not None else "0"
                extents, where = self._image(row, blocks[0], dims_of_block)
                blocks_of = (-(-(rows or 1) // 128), -(-scales // 4))
                shape = tensor(self.batch, *blocks_of, *extents, of=self.scale)
                where = batch + where
            found.append((f"s{name}", shape, self.scale, where))
        return found[2:] + found[:2] if self.swapped else found

    @staticmethod
    def _image(row: str, scale: str, inner: int) -> tuple[list[int], list[str]]:
        """Dimensions of a block, and the map into the 128x4 layout; each in another spelling."""
        block = [f"{row} floordiv 128", f"({scale}) floordiv 4"]
        if inner == 3:
            parts = [f"{row} mod 32", f"({row} mod 128) floordiv 32", f"({scale}) mod 4"]
            return [32, 4, 4], block + parts
        quarter = f"(({row} floordiv 32) mod 4) * 4"
        if inner == 2:
            return [32, 16], [*block, f"{row} mod 32", f"{quarter} + ({scale}) mod 4"]
        return [512], [*block, f"({scale}) mod 4 + {quarter} + ({row} mod 32) * 16"]

    @property
    def result(self) -> str:
        return tensor(self.batch, self.m, self.n, of=self.out)

    def linalg(self) -> str:
        """The program in plain linalg."""
        operands = self.operands()
        inside, after = self.alpha == "in", self.alpha == "after"
        if inside:
            operands += [(f"g{n}", "tensor<f32>", "f32", []) for n in "ab"]
        loops = ", ".join(self.loops)
        out_dims = [d for d in ("l", "m", "n") if d in self.loops]
        maps = [
            f"affine_map<({loops}) -> ({', '.join(dims)})>"
            for dims in [*(o[3] for o in operands), out_dims]
        ]
        kinds = ['"reduction"' if d[0] == "k" else '"parallel"' for d in self.loops]
        arguments = [f"%{o[0]}: {o[1]}" for o in operands]
        arguments += [f"%g{n}: tensor<f32>" for n in "ab" if after]
        f32 = tensor(self.batch, self.m, self.n, of="f32")
        lines = [
            f"func.func @f({', '.join(arguments)}, %init: {f32}) -> {self.result} {{",
            "%zero = arith.constant 0.0 : f32",
            f"%i = linalg.fill ins(%zero : f32) outs(%init : {f32}) -> {f32}",
            f"%y = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{', '.join(kinds)}]}}",
            f"ins({', '.join('%' + o[0] for o in operands)} : "
            f"{', '.join(o[1] for o in operands)}) outs(%i : {f32}) {{",
            f"^bb0({', '.join(f'%x{o[0]}: {o[2]}' for o in operands)}, %sum: f32):",
            *self._body([(o[0], o[2]) for o in operands]),
            f"}} -> {f32}",
        ]
        value = "%y"
        rank = len(out_dims)
        dims = ", ".join(f"d{n}" for n in range(rank))
        same = f"affine_map<({dims}) -> ({dims})>"
        parallel = ", ".join(['"parallel"'] * rank)
        if after:
            scalar = f"affine_map<({dims}) -> ()>"
            lines += [
                f"%e = tensor.empty() : {f32}",
                f"%z = linalg.generic {{indexing_maps = [{same}, {scalar}, {scalar}, {same}], "
                f"iterator_types = [{parallel}]}} ins(%y, %ga, %gb : {f32}, tensor<f32>, "
                f"tensor<f32>) outs(%e : {f32}) {{",
                "^bb0(%x: f32, %p: f32, %q: f32, %o: f32):",
                "%alpha = arith.mulf %p, %q : f32 %r = arith.mulf %x, %alpha : f32",
                f"linalg.yield %r : f32 }} -> {f32}",
            ]
            value = "%z"
        if self.out != "f32":
            lines.append(f"%t = arith.truncf {value} : {f32} to {self.result}")
            value = "%t"
        return "\n".join([*lines, f"return {value} : {self.result}", "}"])

    def _body(self, names: list[tuple[str, str]]) -> list[str]:
        lines, wide = [], []
        of = dict(names)
        for name, kind in names:
            if kind == "f32":
                wide.append(f"%x{name}")
            elif self.scaling and name in ("a", "b"):
                wide.append(f"%w{name}")
                lines.append(
                    f"%w{name} = arith.scaling_extf %x{name}, %xs{name} : {kind}, "
                    f"{of[f's{name}']} to f32"
                )
            elif not (self.scaling and name in ("sa", "sb")):
                wide.append(f"%w{name}")
                lines.append(f"%w{name} = arith.extf %x{name} : {kind} to f32")
        product, *rest = wide
        for n, factor in enumerate(rest):
            lines.append(f"%p{n} = arith.mulf {product}, {factor} : f32")
            product = f"%p{n}"
        return [*lines, f"%s = arith.addf %sum, {product} : f32", "linalg.yield %s : f32"]

    def op(self, a_layout: str = "row_major", b_layout: str = "row_major") -> str:
        """The program as ``tc.block_scaled_matmul``."""
        found = {
            name: kind for name, kind, _, _ in replace(self, split=False, blocked="").operands()
        }
        for side, rows, layout in (("a", self.m, a_layout), ("b", self.n or 1, b_layout)):
            if layout != "row_major":
                blocks = (-(-rows // 128), -(-self.k // self.block // 4), 512)
                found[f"s{side}"] = tensor(self.batch, *blocks, of=self.scale)
        names = ["a", "sa", "b", "sb"]
        if self.alpha != "no":
            found |= {"ga": "tensor<f32>", "gb": "tensor<f32>"}
            names += ["ga", "gb"]
        sizes = ", ".join(["1"] * len(names) + ["0"] * (6 - len(names)))
        return f"""
func.func @f({", ".join(f"%{n}: {found[n]}" for n in names)}) -> {self.result} {{
  %y = "tc.block_scaled_matmul"({", ".join("%" + n for n in names)}) {{block = {self.block} : i64,
      a_scale_layout = "{a_layout}", b_scale_layout = "{b_layout}",
      operandSegmentSizes = array<i32: {sizes}>}}
      : ({", ".join(found[n] for n in names)}) -> {self.result}
  return %y : {self.result}
}}"""


def from_codes(case: BlockScaled, text: str, sides: str = "ab") -> str:
    """The program over codes one to a byte: the operands of `sides` are packed first."""
    for name, kind, element, _ in case.operands():
        if name in sides:
            codes = kind.replace(element, "i8")
            packing = f'%{name} = "tc.pack_codes"(%c{name}) : ({codes}) -> {kind}'
            text = text.replace(f"%{name}: {kind}", f"%c{name}: {codes}")
            text = text.replace(" {\n", f" {{\n{packing}\n", 1)
    return text
