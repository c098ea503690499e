"""Attention written with plain ``linalg`` ops, in several ways."""

from __future__ import annotations

from dataclasses import dataclass, replace

ID4 = "affine_map<(b, h, i, j) -> (b, h, i, j)>"
ROW4 = "affine_map<(b, h, i, j) -> (b, h, i)>"
FOUR = '["parallel", "parallel", "parallel", "parallel"]'
LAST = '["parallel", "parallel", "parallel", "reduction"]'
CAUSAL = """
    %row = linalg.index 2 : index
    %key = linalg.index 3 : index
    %off = arith.constant {offset} : index
    %last = arith.addi %row, %off : index
    %kept = arith.cmpi sle, %key, %last : index"""


@dataclass(frozen=True)
class Written:
    """An attention of b batches, h heads (g of keys), m rows, n keys, d and e elements.

    mask:    body that makes %masked of %s and the arguments of the scores' op
    extra:   a fourth argument of the function, and its type
    dims:    which of b, h, i, j index it; the last ones if not given
    guarded: zeros for rows whose scores are all -inf
    """

    b: int = 2
    h: int = 4
    g: int = 4
    m: int = 8
    n: int = 16
    d: int = 16
    e: int = 16
    kind: str = "f16"
    scale: str = "arith.mulf %in, %scale"
    number: float = 0.25
    mask: str = "%masked = arith.addf %scaled, %nothing : f32"
    divide: str = "%w = arith.divf %p, %l : f32"
    power: str = "%p = math.exp %x : f32"
    guarded: bool = False
    named: bool = False
    rows_first: bool = False
    extra: str = ""
    dims: str = ""
    target: str = "sm_90a"

    def but(self, **changes: object) -> Written:
        """A copy with other fields."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def causal(self, offset: int, *, by: str = "select") -> Written:
        """A copy with a causal mask: keys up to row + offset."""
        how = {
            "select": "%masked = arith.select %kept, %scaled, %minus : f32",
            "add": """%bias = arith.select %kept, %nothing, %minus : f32
    %masked = arith.addf %bias, %scaled : f32""",
        }[by]
        return self.but(mask=CAUSAL.format(offset=offset) + "\n    " + how)

    @property
    def text(self) -> str:
        """The module."""
        w = self
        heads, rows = (w.h, w.m) if not w.rows_first else (w.m, w.h)
        q = f"tensor<{w.b}x{heads}x{rows}x{w.d}x{w.kind}>"
        keys, per = (w.g, w.n) if not w.rows_first else (w.n, w.g)
        k = f"tensor<{w.b}x{keys}x{per}x{w.d}x{w.kind}>"
        v = f"tensor<{w.b}x{keys}x{per}x{w.e}x{w.kind}>"
        out = f"tensor<{w.b}x{heads}x{rows}x{w.e}x{w.kind}>"
        sums = out.replace(w.kind, "f32")
        of_q = "b, h, i, d" if not w.rows_first else "b, i, h, d"
        head = "h" if w.h == w.g else f"h floordiv {w.h // w.g}"
        share = self._repeated(k, v) if w.h != w.g else ""
        kk, vv = ("%k", "%v") if w.h == w.g else ("%kr", "%vr")
        kr = k.replace(f"x{w.g}x", f"x{w.h}x", 1) if w.g != w.h else k
        vr = v.replace(f"x{w.g}x", f"x{w.h}x", 1) if w.g != w.h else v
        head = "h"
        of_k = f"b, {head}, j, d" if not w.rows_first else f"b, j, {head}, d"
        of_v = f"b, {head}, j, e" if not w.rows_first else f"b, j, {head}, e"
        of_o = "b, h, i, e" if not w.rows_first else "b, i, h, e"
        s = f"tensor<{w.b}x{w.h}x{w.m}x{w.n}xf32>"
        r = f"tensor<{w.b}x{w.h}x{w.m}xf32>"
        more = f", {w.extra}" if w.extra else ""
        name, _, kind = w.extra.partition(":")
        ins, types = (f", {name}", f", {kind}") if w.extra else ("", "")
        body_argument = f", %m: {kind.rstrip('> ').rpartition('x')[2]}" if w.extra else ""
        five = ", ".join(['"parallel"'] * 4)
        return f"""
module attributes {{tc.target = "{w.target}"}} {{
func.func @f(%q: {q}, %k: {k}, %v: {v}{more}) -> {out} {{
  %zero = arith.constant 0.0 : f32
  %nothing = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %minus = arith.constant 0xFF800000 : f32
  %scale = arith.constant {w.number!r} : f32
  %true = arith.constant true
  {share}
  %es = tensor.empty() : {s}
  %fs = linalg.fill ins(%zero : f32) outs(%es : {s}) -> {s}
  %s = linalg.generic {{indexing_maps = [affine_map<(b, h, i, j, d) -> ({of_q})>,
      affine_map<(b, h, i, j, d) -> ({of_k})>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>],
      iterator_types = [{five}, "reduction"]}}
      ins(%q, {kk} : {q}, {kr}) outs(%fs : {s}) {{
  ^bb0(%x: {w.kind}, %y: {w.kind}, %acc: f32):
    %xx = arith.extf %x : {w.kind} to f32
    %yy = arith.extf %y : {w.kind} to f32
    %xy = arith.mulf %xx, %yy : f32
    %sum = arith.addf %acc, %xy : f32
    linalg.yield %sum : f32
  }} -> {s}
  %t = linalg.generic {{indexing_maps = [{ID4}{", " + self._extra_map if w.extra else ""}, {ID4}],
      iterator_types = {FOUR}}} ins(%s{ins} : {s}{types}) outs(%es : {s}) {{
  ^bb0(%in: f32{body_argument}, %o: f32):
    %scaled = {w.scale} : f32
    {w.mask}
    linalg.yield %masked : f32
  }} -> {s}
{self._softmax(s, r)}
  %eo = tensor.empty() : {sums}
  %fo = linalg.fill ins(%zero : f32) outs(%eo : {sums}) -> {sums}
  %o = linalg.generic {{indexing_maps = [affine_map<(b, h, i, e, j) -> (b, h, i, j)>,
      affine_map<(b, h, i, e, j) -> ({of_v})>, affine_map<(b, h, i, e, j) -> ({of_o})>],
      iterator_types = [{five}, "reduction"]}}
      ins(%w, {vv} : {s}, {vr}) outs(%fo : {sums}) {{
  ^bb0(%x: f32, %y: {w.kind}, %acc: f32):
    %yy = arith.extf %y : {w.kind} to f32
    %xy = arith.mulf %x, %yy : f32
    %sum = arith.addf %acc, %xy : f32
    linalg.yield %sum : f32
  }} -> {sums}
  %er = tensor.empty() : {out}
  %y = linalg.generic {{indexing_maps = [{ID4}, {ID4}], iterator_types = {FOUR}}}
      ins(%o : {sums}) outs(%er : {out}) {{
  ^bb0(%in: f32, %unread: {w.kind}):
    %z = arith.truncf %in : f32 to {w.kind}
    linalg.yield %z : {w.kind}
  }} -> {out}
  return %y : {out}
}}
}}"""

    def _repeated(self, k: str, v: str) -> str:
        """Keys and values once for each head that reads them."""
        w, found = self, []
        for name, kind, last in (("k", k, w.d), ("v", v, w.e)):
            five = f"tensor<{w.b}x{w.g}x{w.h // w.g}x{w.n}x{last}x{w.kind}>"
            whole = f"tensor<{w.b}x{w.h}x{w.n}x{last}x{w.kind}>"
            found.append(f"""%e{name} = tensor.empty() : {five}
  %b{name} = linalg.broadcast ins(%{name} : {kind}) outs(%e{name} : {five}) dimensions = [2]
  %{name}r = tensor.collapse_shape %b{name} [[0], [1, 2], [3], [4]] : {five} into {whole}""")
        return "\n  ".join(found)

    @property
    def _extra_map(self) -> str:
        rank = self.extra.count("x")
        names = self.dims or "bhij"[4 - rank :]
        return f"affine_map<(b, h, i, j) -> ({', '.join(names)})>"

    def _softmax(self, s: str, r: str) -> str:
        if self.named:
            return f"""
  %w = linalg.softmax dimension(3) ins(%t : {s}) outs(%es : {s}) -> {s}"""
        result = "%w" if not self.guarded else "%u"
        guard = (
            f"""
  %i1 = tensor.empty() : {s.replace("f32", "i1")}
  %is = linalg.generic {{indexing_maps = [{ID4}, {ID4}], iterator_types = {FOUR}}}
      ins(%t : {s}) outs(%i1 : {s.replace("f32", "i1")}) {{
  ^bb0(%in: f32, %o: i1):
    %lost = arith.cmpf oeq, %in, %minus : f32
    linalg.yield %lost : i1
  }} -> {s.replace("f32", "i1")}
  %i2 = tensor.empty() : {r.replace("f32", "i1")}
  %all0 = linalg.fill ins(%true : i1) outs(%i2 : {r.replace("f32", "i1")})
      -> {r.replace("f32", "i1")}
  %all = linalg.reduce {{ arith.andi }} ins(%is : {s.replace("f32", "i1")})
      outs(%all0 : {r.replace("f32", "i1")}) dimensions = [3]
  %w = linalg.generic {{indexing_maps = [{ROW4}, {ID4}, {ID4}], iterator_types = {FOUR}}}
      ins(%all, %u : {r.replace("f32", "i1")}, {s}) outs(%es : {s}) {{
  ^bb0(%dead: i1, %in: f32, %o: f32):
    %kept = arith.select %dead, %zero, %in : f32
    linalg.yield %kept : f32
  }} -> {s}"""
            if self.guarded
            else ""
        )
        return f"""
  %ea = tensor.empty() : {r}
  %fm = linalg.fill ins(%minus : f32) outs(%ea : {r}) -> {r}
  %most = linalg.reduce {{ arith.maximumf }} ins(%t : {s}) outs(%fm : {r}) dimensions = [3]
  %pw = linalg.generic {{indexing_maps = [{ID4}, {ROW4}, {ID4}], iterator_types = {FOUR}}}
      ins(%t, %most : {s}, {r}) outs(%es : {s}) {{
  ^bb0(%in: f32, %mm: f32, %o: f32):
    %x = arith.subf %in, %mm : f32
    {self.power}
    linalg.yield %p : f32
  }} -> {s}
  %fl = linalg.fill ins(%zero : f32) outs(%ea : {r}) -> {r}
  %total = linalg.reduce {{ arith.addf }} ins(%pw : {s}) outs(%fl : {r}) dimensions = [3]
  {result} = linalg.generic {{indexing_maps = [{ID4}, {ROW4}, {ID4}], iterator_types = {FOUR}}}
      ins(%pw, %total : {s}, {r}) outs(%es : {s}) {{
  ^bb0(%p: f32, %l: f32, %o: f32):
    {self.divide}
    linalg.yield %w : f32
  }} -> {s}{guard}"""
