"""Peak rate of `mma.sync.m16n8k16` of f16 with f32 sums on a GPU: registers only, no memory.

    python bench/mma_peak.py            # here: assembles each variant, prints registers and SASS

`matmul_warp.py` measures them. A warp holds A fragments for `rows` x 16 rows, B fragments for
`columns` x 8 columns and an accumulator for each pair, as a warp of a matrix product does, and
multiplies them over and over. The operands are random: tensor cores run slower on them than on
zeros, as they do in a matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Variant:
    """A warp's tile in instructions, warps of a CTA, CTAs of a multiprocessor."""

    rows: int
    columns: int
    warps: int
    ctas: int

    @property
    def name(self) -> str:
        """The entry's name."""
        return f"peak_{self.rows}x{self.columns}_{self.warps}w_{self.ctas}c"

    def flops(self, steps: int, multiprocessors: int) -> int:
        """FLOP of a launch of `ctas` CTAs on every multiprocessor."""
        warps = self.warps * self.ctas * multiprocessors
        return 2 * 16 * 8 * 16 * self.rows * self.columns * UNROLL * steps * warps


UNROLL = 4
"""Number of rounds over the tile in the body of the loop."""
VARIANTS = (
    Variant(2, 4, 8, 2),
    Variant(4, 4, 4, 2),
    Variant(4, 4, 8, 2),
    Variant(4, 8, 4, 1),
    Variant(4, 8, 4, 2),
    Variant(4, 8, 8, 1),
)

_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_TEXT = """
.visible .entry {name}(.param .u64 source, .param .u64 out, .param .u32 steps)
.reqntid {threads}
.minnctapersm {ctas}
{{
 .reg .pred %p; .reg .b32 %a<{na}>, %b<{nb}>, %r<8>; .reg .f32 %c<{nc}>; .reg .b64 %d<8>;
 ld.param.u64 %d0, [source]; ld.param.u64 %d1, [out]; ld.param.u32 %r0, [steps];
 mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d0, %d0, %d2;
{loads}
LOOP:
{body}
 sub.u32 %r0, %r0, 1; setp.ne.u32 %p, %r0, 0; @%p bra LOOP;
{sums}
 mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, {threads}, %r1; mul.wide.u32 %d3, %r3, 4;
 add.s64 %d1, %d1, %d3; st.global.f32 [%d1], %c0;
 ret;
}}
"""


def _list(register: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{register}{first + n}" for n in range(count)) + "}"


def entry(v: Variant) -> str:
    """PTX of one variant; `source` has 4 KB for each fragment register of a CTA."""
    na, nb, nc = 4 * v.rows, 2 * v.columns, 4 * v.rows * v.columns
    loads = [f" ld.global.b32 %a{n}, [%d0+{1024 * n}];" for n in range(na)]
    loads += [f" ld.global.b32 %b{n}, [%d0+{1024 * (na + n)}];" for n in range(nb)]
    loads += [f" mov.f32 %c{n}, 0f00000000;" for n in range(nc)]
    body = []
    for _ in range(UNROLL):
        for j in range(v.columns):
            for i in range(v.rows):
                sums = _list("c", 4 * (i * v.columns + j), 4)
                operands = f"{_list('a', 4 * i, 4)}, {_list('b', 2 * j, 2)}"
                body.append(f" {_MMA} {sums}, {operands}, {sums};")
    adds = [f" add.f32 %c0, %c0, %c{n};" for n in range(1, nc)]
    return _TEXT.format(
        name=v.name,
        threads=32 * v.warps,
        ctas=v.ctas,
        na=na,
        nb=nb,
        nc=nc,
        loads="\n".join(loads),
        body="\n".join(body),
        sums="\n".join(adds),
    )


def ptx(target: str) -> str:
    """One module with all variants."""
    head = f".version 8.7\n.target {target}\n.address_size 64\n"
    return head + "".join(entry(v) for v in VARIANTS)


def main() -> None:
    """Prints registers and SASS of each variant."""
    import re

    from tcir.codegen import assemble, disassemble

    for v in VARIANTS:
        text = ".version 8.7\n.target sm_90\n.address_size 64\n" + entry(v)
        cubin = assemble(text, target="sm_90")
        sass = disassemble(cubin.data)
        loop = re.findall(r"\b(HMMA\S*|LDL\S*|STL\S*|MOV)\b", sass)
        counts = {name: loop.count(name) for name in sorted(set(loop))}
        print(f"{v.name}: {cubin.registers} registers, {cubin.spill_bytes} spilled, {counts}")


if __name__ == "__main__":
    main()
