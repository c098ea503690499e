"""Hand-written tile kernels: a shift-reuse convolution at each level from L2 to L6, as text.

Independent of the passes: what the executor must run is written here from the op definitions. Each
op has a tag, so a test can leave one out or change it.

L2 sequential program; L3 rings; L4 barriers, asynchronous; L5 planned memory; L6 roles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

SEGMENTS = "operandSegmentSizes = array<i32: {}>"


@dataclass(frozen=True)
class Conv:
    """A padded, stride-1 convolution, f16 (or bf16) in."""

    n: int = 1
    h: int = 5
    w: int = 40
    c: int = 32
    k: int = 16
    r: int = 3
    s: int = 3
    pad: int = 1
    kc: int = 16
    stages: int = 2
    out: str = "f32"
    element: str = "f16"

    @property
    def p(self) -> int:
        return self.h + 2 * self.pad - self.r + 1

    @property
    def q(self) -> int:
        return self.w + 2 * self.pad - self.s + 1

    @property
    def valid(self) -> int:
        return 32 - (self.s - 1)

    @property
    def blocks(self) -> int:
        return -(-self.q // self.valid)

    @property
    def ctas(self) -> int:
        return -(-self.n * self.p * self.blocks // 4)

    @property
    def steps(self) -> int:
        return self.r * -(-self.c // self.kc)

    @property
    def columns(self) -> int:
        """Columns of D and the ring of slabs, rounded up to what can be allocated."""
        return max(32, 1 << (self.k + self.stages * self.kc // 2 - 1).bit_length())

    @property
    def swizzle(self) -> str:
        return f"{2 * self.kc}B"


@dataclass
class Writer:
    """Collects lines; `drop` and `change` act on those with the given tags."""

    drop: Iterable[str] = ()
    change: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    count: int = 0
    used: set[str] = field(default_factory=set)

    def line(self, text: str, tag: str = "") -> None:
        self.used.add(tag)
        if tag not in self.drop:
            self.lines.append(self.change.get(tag, str)(text))

    def value(self, text: str, tag: str = "") -> str:
        self.count += 1
        self.line(f"%v{self.count} = {text}", tag)
        return f"%v{self.count}"

    def index(self, op: str, a: str, b: str | int) -> str:
        if isinstance(b, int):
            b = self.value(f"arith.constant {b} : index")
        return self.value(f"arith.{op} {a}, {b} : index")

    def constant(self, value: int) -> str:
        return self.value(f"arith.constant {value} : index")


def shift_conv(
    level: int,
    conv: Conv,
    drop: Iterable[str] = (),
    change: Mapping[str, Callable[[str], str]] | None = None,
) -> str:
    """The kernel at `level` (2..6)."""
    e = Writer(drop, change or {})
    _ShiftConv(e, level, conv).emit()
    unknown = (set(drop) | set(change or {})) - e.used
    assert not unknown, f"no op is tagged {unknown}"
    return "\n".join(e.lines)


def droppable(level: int, conv: Conv) -> list[str]:
    """Tags of the ops without results: one of them can be left out and the rest still parses."""
    e = Writer()
    _ShiftConv(e, level, conv).emit()
    return sorted(tag for tag in e.used if tag and not tag.startswith("map_"))


class _ShiftConv:
    def __init__(self, e: Writer, level: int, conv: Conv) -> None:
        self.e, self.level, self.conv = e, level, conv
        element = conv.element
        self.a_type = f'!tc.smem<array<i64: 128, {conv.kc}>, {element}, "K", "{conv.swizzle}">'
        # One panel of B: n_tile output channels of 2 bytes are one row.
        self.b_span = 2 * conv.k
        self.b_type = (
            f'!tc.smem<array<i64: {conv.k}, {conv.kc}>, {element}, "MN", "{self.b_span}B">'
        )
        self.d_type = f"!tc.tmem<array<i64: 128, {conv.k}>, f32>"
        self.ta_type = f"!tc.tmem<array<i64: 128, {conv.kc}>, {element}>"
        self.a_bytes, self.b_bytes = 128 * 2 * conv.kc, conv.kc * self.b_span
        self.x = f"memref<{conv.n}x{conv.h}x{conv.w}x{conv.c}x{element}>"
        self.w = f"memref<{conv.r}x{conv.s}x{conv.c}x{conv.k}x{element}>"
        self.out = f"memref<{conv.n}x{conv.p}x{conv.q}x{conv.k}x{conv.out}>"

    def ring(self, type_: str) -> str:
        return f"!tc.ring<{self.conv.stages} : i64, {type_}>"

    def emit(self) -> None:
        e, conv = self.e, self.conv
        attributes = (
            f"tc.kernel, tc.grid = array<i64: {conv.ctas}, 1, 1>, tc.block = array<i64: 192, 1, 1>"
        )
        if self.level >= 4:
            attributes += ", tc.async"
        if self.level >= 5:
            offsets = self.offsets()
            attributes += (
                f", tc.smem_bytes = {offsets['end']} : i64, tc.tmem_columns = {conv.columns} : i64"
            )
        e.line(
            f"func.func @f(%x: {self.x}, %w: {self.w}, %out: {self.out}) "
            f"attributes {{{attributes}}} {{"
        )
        self.zero, self.one = e.constant(0), e.constant(1)
        self.map_x = self.tensor_map(
            "%x", self.x, [conv.c, conv.w, conv.h, conv.n], [conv.kc, 32, 1, 1], conv.swizzle
        )
        self.map_w = self.tensor_map(
            "%w",
            self.w,
            [conv.k, conv.c, conv.s, conv.r],
            [conv.k, conv.kc, 1, 1],
            f"{self.b_span}B",
        )
        t = e.value("gpu.block_id x")
        self.first_unit = e.index("muli", t, 4)
        if self.level >= 3:
            self.rings()
        if self.level >= 4:
            self.barriers()
        if self.level < 5:
            self.d = e.value(f'"tc.tmem_tile"() {{{SEGMENTS.format(0)}}} : () -> {self.d_type}')
        if self.level == 6:
            self.role("producer", [4], "one", lambda _: self.loop({"producer"}))
            self.role("mma", [5], "one", self.mma_role)
            self.role("epilogue", [0, 1, 2, 3], "warp", self.epilogue_role)
        else:
            self.loop({"producer", "mma"})
            if self.level >= 4:
                self.commit_done()
                self.wait_done()
            quarter = self.begin_for("%quarter", e.constant(4), self.one)
            self.epilogue(quarter)
            e.line("}")
        if self.level >= 4:
            e.line('"tc.fence"() {kind = "tcgen05.before"} : () -> ()', "fence_before_end")
            e.line('"tc.cta_barrier"() : () -> ()', "barrier_end")
        if self.level >= 5:
            e.line(
                f'"tc.tmem_dealloc"({self.base}) {{columns = {conv.columns} : i64, warp = 5 : i64}}'
                " : (!tc.tmem_base) -> ()",
                "dealloc",
            )
        e.line("return }")

    # Set-up -----------------------------------------------------------------------------------

    def offsets(self) -> dict[str, int]:
        end, offsets = 0, {}
        for name in ("a", *(f"b{s}" for s in range(self.conv.s))):
            offsets[name] = end
            size = self.conv.stages * (self.a_bytes if name == "a" else self.b_bytes)
            end += -(-size // 1024) * 1024
        for name in ("full", "empty", "done"):
            offsets[name], end = end, end + 8 * self.conv.stages
        offsets["slot"], offsets["end"] = end, end + 4
        return offsets

    def place(self, name: str) -> str:
        return f"offset = {self.offsets()[name]} : i64" if self.level >= 5 else ""

    def tensor_map(
        self, tensor: str, type_: str, dims: list[int], box: list[int], swizzle: str
    ) -> str:
        strides, step = [], 2
        for n in dims[:-1]:
            step *= n
            strides.append(step)
        spell = {"dims": dims, "strides": strides, "box": box, "element_strides": [1] * 4}
        arrays = ", ".join(f"{k} = array<i64: {', '.join(map(str, v))}>" for k, v in spell.items())
        return self.e.value(
            f'"tc.make_tensor_map"({tensor}) {{mode = "tiled", {arrays}, corners = array<i64>, '
            f'swizzle = "{swizzle}"}} : ({type_}) -> !tc.tensor_map',
            f"map_{tensor[1:]}",
        )

    def smem(self, type_: str, name: str) -> str:
        return self.e.value(f'"tc.smem_tile"() {{{self.place(name)}}} : () -> {type_}')

    def rings(self) -> None:
        self.ring_a = self.smem(self.ring(self.a_type), "a")
        self.ring_b = [self.smem(self.ring(self.b_type), f"b{s}") for s in range(self.conv.s)]
        if self.level < 5:
            self.ring_t = self.e.value(
                f'"tc.tmem_tile"() {{{SEGMENTS.format(0)}}} : () -> {self.ring(self.ta_type)}'
            )

    def barriers(self) -> None:
        e = self.e
        bars = {
            "full": self.ring("!tc.mbarrier"),
            "empty": self.ring("!tc.mbarrier"),
            "done": "!tc.mbarrier",
        }
        for name, type_ in bars.items():
            place = self.place(name)
            place = f", {place}" if place else ""
            value = e.value(f'"tc.mbarrier_init"() {{arrivals = 1 : i64{place}}} : () -> {type_}')
            setattr(self, name, value)
        e.line('"tc.fence"() {kind = "mbarrier_init"} : () -> ()', "fence_init")
        if self.level >= 5:
            self.base = e.value(
                f'"tc.tmem_alloc"() {{columns = {self.conv.columns} : i64, warp = 5 : i64, '
                f"address_slot = {self.offsets()['slot']} : i64}} : () -> !tc.tmem_base"
            )
            e.line('"tc.tmem_relinquish"() {warp = 5 : i64} : () -> ()')
        e.line('"tc.cta_barrier"() : () -> ()', "barrier_setup")
        if self.level >= 5:
            tile = '"tc.tmem_tile"({}) {{column = {} : i64, {}}} : (!tc.tmem_base) -> {}'
            one = SEGMENTS.format(1)
            self.d = e.value(tile.format(self.base, 0, one, self.d_type))
            self.ring_t = e.value(tile.format(self.base, self.conv.k, one, self.ring(self.ta_type)))

    # Structure --------------------------------------------------------------------------------

    def begin_for(self, name: str, high: str, step: str) -> str:
        self.e.count += 1
        name = f"{name}{self.e.count}"
        self.e.line(f"scf.for {name} = {self.zero} to {high} step {step} {{")
        return name

    def role(self, kind: str, warps: list[int], threads: str, body: Callable[[str], None]) -> None:
        self.e.count += 1
        position = f"%w{self.e.count}"
        self.e.line(f'"tc.role"() ({{ ^bb0({position}: index):')
        body(position)
        self.e.line(
            f'}}) {{kind = "{kind}", warps = array<i64: {", ".join(map(str, warps))}>, '
            f'threads = "{threads}"}} : () -> ()'
        )

    def mma_role(self, _: str) -> None:
        self.loop({"mma"})
        self.commit_done()

    def epilogue_role(self, position: str) -> None:
        self.wait_done()
        self.epilogue(position)

    # The k loop -------------------------------------------------------------------------------

    def slot(self, ring: str, index: str, type_: str) -> str:
        return self.e.value(f'"tc.slot"({ring}, {index}) : ({self.ring(type_)}, index) -> {type_}')

    def loop(self, parts: set[str]) -> None:
        e, conv = self.e, self.conv
        i = self.begin_for("%i", e.constant(conv.steps), self.one)
        if self.level == 2:
            a = self.smem(self.a_type, "a")
            b = [self.smem(self.b_type, f"b{s}") for s in range(conv.s)]
            ta = e.value(f'"tc.tmem_tile"() {{{SEGMENTS.format(0)}}} : () -> {self.ta_type}')
        else:
            index = e.index("remui", i, conv.stages)
            a = self.slot(self.ring_a, index, self.a_type)
            b = [self.slot(r, index, self.b_type) for r in self.ring_b]
            ta = self.slot(self.ring_t, index, self.ta_type)
        full = empty = phase = ""
        if self.level >= 4:
            phase = e.index("remui", e.index("divui", i, conv.stages), 2)
            full = self.slot(self.full, index, "!tc.mbarrier")
            empty = self.slot(self.empty, index, "!tc.mbarrier")
        if "producer" in parts:
            self.loads(i, a, b, full, empty, phase)
        if "mma" in parts:
            self.multiply(i, a, b, ta, full, empty, phase)
        e.line("}")

    def unit(self, unit: str) -> tuple[str, str, str]:
        """n, p, first q of a unit."""
        e, conv = self.e, self.conv
        block = e.index("muli", e.index("remui", unit, conv.blocks), conv.valid)
        row = e.index("divui", unit, conv.blocks)
        return e.index("divui", row, conv.p), e.index("remui", row, conv.p), block

    def loads(self, i: str, a: str, b: list[str], full: str, empty: str, phase: str) -> None:
        e, conv = self.e, self.conv
        if self.level >= 4:
            self.wait(empty, e.index("subi", self.one, phase), "wait_empty")
            total = self.a_bytes + conv.s * self.b_bytes
            e.line(
                f'"tc.mbarrier_expect_tx"({full}) {{nbytes = {total} : i64}} '
                ": (!tc.mbarrier) -> ()",
                "expect",
            )
        per_row = -(-conv.c // conv.kc)
        r = e.index("divui", i, per_row)
        c0 = e.index("muli", e.index("remui", i, per_row), conv.kc)
        for quarter in range(4):
            n, p, q = self.unit(e.index("addi", self.first_unit, quarter))
            w = e.index("subi", q, conv.pad)
            h = e.index("addi", e.index("subi", p, conv.pad), r)
            self.load(
                self.map_x,
                [c0, w, h, n],
                a,
                self.a_type,
                32 * quarter,
                self.a_bytes // 4,
                full,
                f"load_a{quarter}",
            )
        for s in range(conv.s):
            coords = [self.zero, c0, e.constant(s), r]
            self.load(self.map_w, coords, b[s], self.b_type, 0, self.b_bytes, full, f"load_b{s}")

    def load(
        self,
        map_: str,
        coords: list[str],
        tile: str,
        type_: str,
        row: int,
        nbytes: int,
        full: str,
        tag: str,
    ) -> None:
        signal, signal_type = (f", {full}", ", !tc.mbarrier") if full else ("", "")
        segments = SEGMENTS.format(f"1, 4, 0, 1, {1 if full else 0}")
        self.e.line(
            f'"tc.tma_load"({map_}, {", ".join(coords)}, {tile}{signal}) '
            f"{{row = {row} : i64, nbytes = {nbytes} : i64, {segments}}} : "
            f"(!tc.tensor_map, index, index, index, index, {type_}{signal_type}) -> ()",
            tag,
        )

    def wait(self, bar: str, parity: str, tag: str) -> None:
        self.e.line(f'"tc.mbarrier_wait"({bar}, {parity}) : (!tc.mbarrier, index) -> ()', tag)

    def multiply(
        self, i: str, a: str, b: list[str], ta: str, full: str, empty: str, phase: str
    ) -> None:
        e, conv = self.e, self.conv
        if self.level >= 4:
            self.wait(full, phase, "wait_full")
            e.line('"tc.fence"() {kind = "tcgen05.after"} : () -> ()', "fence_after_full")
        later = e.value(f"arith.cmpi ne, {i}, {self.zero} : index")
        true = e.value("arith.constant true")
        for j in range(conv.kc // 16):
            e.line(
                f'"tc.cp"({a}, {ta}) {{slice = {j} : i64}} : ({self.a_type}, {self.ta_type}) -> ()',
                f"cp{j}",
            )
            for s in range(conv.s):
                accumulate = later if j == s == 0 else true
                shift = "true" if s < conv.s - 1 else "false"
                e.line(
                    f'"tc.mma"({self.d}, {ta}, {b[s]}, {accumulate}) {{a_slice = {j} : i64, '
                    f"b_slice = {j} : i64, ashift = {shift}}} : "
                    f"({self.d_type}, {self.ta_type}, {self.b_type}, i1) -> ()",
                    f"mma{j}{s}",
                )
        if self.level >= 4:
            e.line(f'"tc.commit"({empty}) : (!tc.mbarrier) -> ()', "commit_empty")

    # The epilogue -----------------------------------------------------------------------------

    def commit_done(self) -> None:
        self.e.line(f'"tc.commit"({self.done}) : (!tc.mbarrier) -> ()', "commit_done")

    def wait_done(self) -> None:
        self.wait(self.done, self.zero, "wait_done")
        self.e.line('"tc.fence"() {kind = "tcgen05.after"} : () -> ()', "fence_after_done")

    def epilogue(self, quarter: str) -> None:
        e, conv = self.e, self.conv
        n, p, q = self.unit(e.index("addi", self.first_unit, quarter))
        column = self.begin_for("%col", e.constant(conv.k), e.constant(16))
        value = e.value(
            f'"tc.tmem_ld"({self.d}, {quarter}, {column}) '
            f": ({self.d_type}, index, index) -> vector<32x16xf32>"
        )
        if self.level >= 4:
            e.line('"tc.tmem_wait"() {kind = "ld"} : () -> ()', "tmem_wait")
        if conv.out != "f32":
            value = e.value(f"arith.truncf {value} : vector<32x16xf32> to vector<32x16x{conv.out}>")
        e.line(
            f'"tc.store_rows"({value}, %out, {n}, {p}, {q}, {column}) {{rows = {conv.valid} : i64, '
            f"row_dim = 2 : i64, {SEGMENTS.format('1, 1, 4')}}} : "
            f"(vector<32x16x{conv.out}>, {self.out}, index, index, index, index) -> ()",
            "store",
        )
        e.line("}")
