"""Kernels with planned memory and assigned roles, written out by hand, as texts of `tc` IR.

They are what the pipelines produce before `convert-tc-to-nvvm`, so that everything below that pass
can be tested without the passes above it.
"""

from __future__ import annotations

from dataclasses import dataclass

SPAN = {"128B": 128, "64B": 64, "32B": 32}


def _smem(mn: int, k: int, element: str, major: str, swizzle: str) -> str:
    return f'!tc.smem<array<i64: {mn}, {k}>, {element}, "{major}", "{swizzle}">'


def _ring(count: int, of: str) -> str:
    return f"!tc.ring<{count} : i64, {of}>"


@dataclass(frozen=True)
class ShiftReuse:
    """``conv2d`` with shift reuse, `rows` tiling, stride 1: ``x[n,h,w,c]``, filter hwcf or fhwc."""

    n: int = 1
    h: int = 5
    w: int = 40
    c: int = 64
    k: int = 32
    r: int = 3
    s: int = 3
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    element: str = "f16"
    out: str = "f32"
    filter: str = "hwcf"
    n_tile: int = 32
    stages: int = 2
    drop_ashift: bool = False

    @property
    def p(self) -> int:
        return self.h + self.pads[0] + self.pads[1] - self.r + 1

    @property
    def q(self) -> int:
        return self.w + self.pads[2] + self.pads[3] - self.s + 1

    @property
    def valid(self) -> int:
        return 32 - (self.s - 1)

    @property
    def blocks(self) -> int:
        return -(-self.q // self.valid)

    @property
    def grid(self) -> tuple[int, int, int]:
        return (-(-self.n * self.p * self.blocks // 4), -(-self.k // self.n_tile), 1)

    def text(self) -> str:
        kc = 64 if self.c > 32 else 32 if self.c > 16 else 16
        swizzle = {64: "128B", 32: "64B", 16: "32B"}[kc]
        t_a = _smem(128, kc, self.element, "K", swizzle)
        major = "MN" if self.filter == "hwcf" else "K"
        b_swizzle = "128B" if major == "MN" else swizzle
        t_b = _smem(self.n_tile, kc, self.element, major, b_swizzle)
        t_d = f"!tc.tmem<array<i64: 128, {self.n_tile}>, f32>"
        t_ta = f"!tc.tmem<array<i64: 128, {kc}>, {self.element}>"
        a_bytes = 128 * SPAN[swizzle]
        panels = -(-self.n_tile * 2 // 128) if major == "MN" else 1
        b_bytes = panels * kc * 128 if major == "MN" else self.n_tile * SPAN[swizzle]
        b_bytes = -(-b_bytes // 1024) * 1024
        n, h, w, c, k, r, s = self.n, self.h, self.w, self.c, self.k, self.r, self.s
        cblks = -(-c // kc)
        steps = r * cblks
        st = self.stages
        offset, b_offsets = st * a_bytes, []
        for _ in range(s):
            b_offsets.append(offset)
            offset += st * b_bytes
        bars = offset
        smem_bytes = bars + 8 * (2 * st + 1) + 8
        d_columns = self.n_tile
        columns = 32
        while columns < d_columns + st * kc // 2:
            columns *= 2
        if self.filter == "hwcf":
            w_type = f"memref<{r}x{s}x{c}x{k}x{self.element}>"
            w_map = self._map([k, c, s, r], [64, kc, 1, 1], b_swizzle)
        else:
            w_type = f"memref<{k}x{r}x{s}x{c}x{self.element}>"
            w_map = self._map([c, s, r, k], [kc, 1, 1, self.n_tile], b_swizzle)
        x_type = f"memref<{n}x{h}x{w}x{c}x{self.element}>"
        o_type = f"memref<{n}x{self.p}x{self.q}x{k}x{self.out}>"
        x_map = self._map([c, w, h, n], [kc, 32, 1, 1], swizzle)
        gx, gy, _ = self.grid
        tx = 4 * 32 * SPAN[swizzle] + s * (
            panels * kc * 128 if major == "MN" else self.n_tile * SPAN[swizzle]
        )
        bar, base = "!tc.mbarrier", "!tc.tmem_base"
        lines = [
            f"func.func @f(%x: {x_type}, %w: {w_type}, %out: {o_type}) attributes {{tc.kernel, "
            f"tc.async, tc.grid = array<i64: {gx}, {gy}, 1>, tc.block = array<i64: 192, 1, 1>, "
            f'tc.target = "sm_100a", tc.smem_bytes = {smem_bytes} : i64, '
            f"tc.tmem_columns = {columns} : i64}} {{",
        ]
        numbers = {0, 1, 2, 4, 16, st, steps, cblks, kc, self.n_tile, self.p, self.blocks}
        numbers |= {self.valid, self.pads[0], self.pads[2], 3, 64, *range(0, self.n_tile, 64)}
        numbers |= set(range(s))
        lines += [f"%c{v} = arith.constant {v} : index" for v in sorted(numbers)]
        lines += [
            "%true = arith.constant true",
            "%bx = gpu.block_id x",
            "%by = gpu.block_id y",
            f"%k0 = arith.muli %by, %c{self.n_tile} : index",
            "%u0 = arith.muli %bx, %c4 : index",
            f'%mx = "tc.make_tensor_map"(%x) {x_map} : ({x_type}) -> !tc.tensor_map',
            f'%mw = "tc.make_tensor_map"(%w) {w_map} : ({w_type}) -> !tc.tensor_map',
            f'%a = "tc.smem_tile"() {{offset = 0 : i64}} : () -> {_ring(st, t_a)}',
        ]
        lines += [
            f'%b{i} = "tc.smem_tile"() {{offset = {o} : i64}} : () -> {_ring(st, t_b)}'
            for i, o in enumerate(b_offsets)
        ]
        lines += [
            f'%full = "tc.mbarrier_init"() {{arrivals = 1 : i64, offset = {bars} : i64}} : () -> '
            f"{_ring(st, bar)}",
            f'%empty = "tc.mbarrier_init"() {{arrivals = 1 : i64, offset = {bars + 8 * st} : i64}}'
            f" : () -> {_ring(st, bar)}",
            f'%done = "tc.mbarrier_init"() {{arrivals = 1 : i64, offset = {bars + 16 * st} : i64}}'
            f" : () -> {bar}",
            f'%base = "tc.tmem_alloc"() {{columns = {columns} : i64, '
            f"address_slot = {bars + 16 * st + 8} : i64, warp = 5 : i64}} : () -> {base}",
            '"tc.tmem_relinquish"() : () -> ()',
            f'%d = "tc.tmem_tile"(%base) {{column = 0 : i64, '
            f"operandSegmentSizes = array<i32: 1>}} : ({base}) -> {t_d}",
            f'%tas = "tc.tmem_tile"(%base) {{column = {d_columns} : i64, '
            f"operandSegmentSizes = array<i32: 1>}} : ({base}) -> {_ring(st, t_ta)}",
            '"tc.fence"() {kind = "mbarrier_init"} : () -> ()',
            '"tc.fence"() {kind = "tcgen05.before"} : () -> ()',
            '"tc.cta_barrier"() : () -> ()',
            '"tc.fence"() {kind = "tcgen05.after"} : () -> ()',
        ]
        # epilogue
        lines += [
            '"tc.role"() ({',
            "^bb0(%quarter: index):",
            f'"tc.mbarrier_wait"(%done, %c0) : ({bar}, index) -> ()',
            '"tc.fence"() {kind = "tcgen05.after"} : () -> ()',
            *self._decode("e", "%quarter"),
            f"scf.for %col = %c0 to %c{self.n_tile} step %c16 {{",
            f'  %v = "tc.tmem_ld"(%d, %quarter, %col) : ({t_d}, index, index) -> vector<32x16xf32>',
            '  "tc.tmem_wait"() {kind = "ld"} : () -> ()',
        ]
        value, v_type = "%v", "vector<32x16xf32>"
        if self.out != "f32":
            lines.append(f"  %t = arith.truncf %v : {v_type} to vector<32x16x{self.out}>")
            value, v_type = "%t", f"vector<32x16x{self.out}>"
        lines += [
            "  %kk = arith.addi %k0, %col : index",
            f'  "tc.store_rows"({value}, %out, %ne, %pe, %qe, %kk) {{rows = {self.valid} : i64, '
            f"row_dim = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 4>}} : "
            f"({v_type}, {o_type}, index, index, index, index) -> ()",
            "}",
            '"tc.fence"() {kind = "tcgen05.before"} : () -> ()',
            '}) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()',
        ]
        slot = [
            f"%slot = arith.remui %i, %c{st} : index",
            f"%turn = arith.divui %i, %c{st} : index",
            "%phase = arith.remui %turn, %c2 : index",
            f'%fs = "tc.slot"(%full, %slot) : ({_ring(st, bar)}, index) -> {bar}',
            f'%es = "tc.slot"(%empty, %slot) : ({_ring(st, bar)}, index) -> {bar}',
            f'%as = "tc.slot"(%a, %slot) : ({_ring(st, t_a)}, index) -> {t_a}',
            *(
                f'%bs{i} = "tc.slot"(%b{i}, %slot) : ({_ring(st, t_b)}, index) -> {t_b}'
                for i in range(s)
            ),
        ]
        # producer
        lines += ['"tc.role"() ({', "^bb0(%me: index):"]
        for quarter in range(4):
            lines += [
                f"%u{quarter}_ = arith.addi %c0, %c{quarter if quarter in numbers else 0} : index",
                *self._decode(str(quarter), f"%u{quarter}_"),
                f"%w{quarter} = arith.subi %q{quarter}, %c{self.pads[2]} : index",
                f"%h{quarter} = arith.subi %p{quarter}, %c{self.pads[0]} : index",
            ]
        lines += [
            f"scf.for %i = %c0 to %c{steps} step %c1 {{",
            *slot,
            f"%r = arith.divui %i, %c{cblks} : index",
            f"%cb = arith.remui %i, %c{cblks} : index",
            f"%cc = arith.muli %cb, %c{kc} : index",
            "%other = arith.subi %c1, %phase : index",
            f'"tc.mbarrier_wait"(%es, %other) : ({bar}, index) -> ()',
            f'"tc.mbarrier_expect_tx"(%fs) {{nbytes = {tx} : i64}} : ({bar}) -> ()',
        ]
        for quarter in range(4):
            lines += [
                f"%hr{quarter} = arith.addi %h{quarter}, %r : index",
                self._load(
                    "%mx",
                    ["%cc", f"%w{quarter}", f"%hr{quarter}", f"%n{quarter}"],
                    "%as",
                    t_a,
                    32 * quarter,
                    32 * SPAN[swizzle],
                ),
            ]
        for tap in range(s):
            if major == "K":
                coords = ["%cc", f"%c{tap}", "%r", "%k0"]
                lines.append(
                    self._load("%mw", coords, f"%bs{tap}", t_b, 0, self.n_tile * SPAN[swizzle])
                )
                continue
            for panel in range(panels):
                lines += [
                    f"%kp{tap}_{panel} = arith.addi %k0, %c{64 * panel} : index",
                    self._load(
                        "%mw",
                        [f"%kp{tap}_{panel}", "%cc", f"%c{tap}", "%r"],
                        f"%bs{tap}",
                        t_b,
                        panel * kc,
                        kc * 128,
                    ),
                ]
        lines += [
            "}",
            '}) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()',
        ]
        # mma
        lines += [
            '"tc.role"() ({',
            "^bb0(%me: index):",
            f"scf.for %i = %c0 to %c{steps} step %c1 {{",
            *slot,
            f'%ta = "tc.slot"(%tas, %slot) : ({_ring(st, t_ta)}, index) -> {t_ta}',
            f'"tc.mbarrier_wait"(%fs, %phase) : ({bar}, index) -> ()',
            '"tc.fence"() {kind = "tcgen05.after"} : () -> ()',
            "%later = arith.cmpi ne, %i, %c0 : index",
        ]
        first = True
        for j in range(kc // 16):
            lines.append(f'"tc.cp"(%as, %ta) {{slice = {j} : i64}} : ({t_a}, {t_ta}) -> ()')
            for tap in range(s):
                ashift = tap < s - 1 and not (self.drop_ashift and tap == 0 and j == 0)
                lines.append(
                    f'"tc.mma"(%d, %ta, %bs{tap}, {"%later" if first else "%true"}) '
                    f"{{a_slice = {j} : i64, b_slice = {j} : i64, "
                    f"ashift = {'true' if ashift else 'false'}}} : "
                    f"({t_d}, {t_ta}, {t_b}, i1) -> ()"
                )
                first = False
        lines += [
            f'"tc.commit"(%es) : ({bar}) -> ()',
            "}",
            f'"tc.commit"(%done) : ({bar}) -> ()',
            '}) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()',
            '"tc.fence"() {kind = "tcgen05.before"} : () -> ()',
            '"tc.cta_barrier"() : () -> ()',
            '"tc.fence"() {kind = "tcgen05.after"} : () -> ()',
            f'"tc.tmem_dealloc"(%base) {{columns = {columns} : i64}} : ({base}) -> ()',
            "return",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _decode(self, name: str, quarter: str) -> list[str]:
        return [
            f"%un{name} = arith.addi %u0, {quarter} : index",
            f"%bl{name} = arith.remui %un{name}, %c{self.blocks} : index",
            f"%np{name} = arith.divui %un{name}, %c{self.blocks} : index",
            f"%p{name} = arith.remui %np{name}, %c{self.p} : index",
            f"%n{name} = arith.divui %np{name}, %c{self.p} : index",
            f"%q{name} = arith.muli %bl{name}, %c{self.valid} : index",
        ]

    def _map(self, dims: list[int], box: list[int], swizzle: str) -> str:
        strides, step = [], 2
        for extent in dims[:-1]:
            step *= extent
            strides.append(step)

        def array(values: list[int]) -> str:
            return f"array<i64: {', '.join(map(str, values))}>"

        return (
            f'{{mode = "tiled", dims = {array(dims)}, strides = {array(strides)}, '
            f"box = {array(box)}, element_strides = {array([1] * len(dims))}, "
            f'corners = array<i64>, swizzle = "{swizzle}"}}'
        )

    def _load(
        self, tensor_map: str, coords: list[str], tile: str, t: str, row: int, nbytes: int
    ) -> str:
        return (
            f'"tc.tma_load"({tensor_map}, {", ".join(coords)}, {tile}, %fs) '
            f"{{row = {row} : i64, nbytes = {nbytes} : i64, "
            f"operandSegmentSizes = array<i32: 1, {len(coords)}, 0, 1, 1>}} : "
            f"(!tc.tensor_map, {', '.join(['index'] * len(coords))}, {t}, !tc.mbarrier) -> ()"
        )
