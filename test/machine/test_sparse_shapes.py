"""Sparse tcgen05.mma of every shape and kind, against numpy's product of the expanded A.

Operands and metadata are put into the memories directly; where they lie is computed here anew, from
PTX ISA 9.7.16.10.5 (data paths) and CUTLASS's tmem_e_frg and tmem_e_frg_ws (metadata).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.machine import Agent, Assumptions, Machine, MachineError, SharedDesc, TmemAddr

from .bench import at_column_0
from .issue import issue_mma_bits, issue_mma_scaled
from .test_clusters import meet

D, META, A_TMEM, SFA, SFB = 0, 256, 272, 304, 320
A_AT, B_AT, BAR, WORD = 1024, 8192, 64, 32
PAIRS = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3), (2, 1)]
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
K = {"tf32": 16, "f16": 32, "f8f6f4": 64, "i8": 64, "mxf8f6f4": 64, "mxf4": 128, "mxf4nvf4": 128}
CHUNK = {"tf32": 2, "mxf4": 8, "mxf4nvf4": 8}


@dataclass(frozen=True)
class Form:
    kind: str
    m: int = 128
    n: int = 64
    group: int = 1
    ws: bool = False
    in_tmem: bool = False
    selector: int = 0
    lane: int = 0
    element: str = ""
    scales: int = 0

    @property
    def half(self) -> bool:
        """Whether D uses half of the lanes: data paths F and C."""
        return not self.ws and self.m // self.group == 64

    @property
    def copies(self) -> int:
        return 128 // self.m if self.ws else 1

    def lanes(self, copy: int) -> np.ndarray:
        """Lane of each row of a CTA."""
        row = np.arange(self.m // self.group)
        if self.half:
            return row % 16 + 32 * (row // 16) + self.lane
        return row + copy * self.m

    def __str__(self) -> str:
        return "-".join(str(v) for v in vars(self).values() if v not in ("", 0, False))


def columns(raw: np.ndarray) -> np.ndarray:
    """Bytes of the 16-byte units of a matrix [rows, bytes], column of units by column."""
    rows, width = raw.shape
    return np.ascontiguousarray(raw.reshape(rows, width // 16, 16).transpose(1, 0, 2)).reshape(-1)


def descriptor(at: int, rows: int) -> int:
    return at >> 4 | rows << 16 | 128 >> 4 << 32 | 1 << 46


class Case:
    def __init__(self, form: Form, seed: int = 3) -> None:
        rng = np.random.default_rng(seed)
        self.form = form
        self.lost: np.ndarray = np.zeros((form.m, form.n), bool)
        self.origins: set[str] = set()
        self.k = K[form.kind]
        chunk = CHUNK.get(form.kind, 4)
        chunks = self.k // chunk
        if chunk == 2:
            keep = rng.integers(0, 2, (form.m, chunks))
            self.selectors = np.where(keep, 0xE, 0x4)
            where = 2 * np.arange(chunks)[None, :, None] + keep[..., None]
        else:
            two = np.array(PAIRS)[rng.integers(0, len(PAIRS), (form.m, chunks))]
            self.selectors = two[..., 0] | two[..., 1] << 2
            where = two if chunk == 4 else (2 * two[..., None] + [0, 1]).reshape(form.m, chunks, 4)
            where = where + chunk * np.arange(chunks)[None, :, None]
        a, self.a = self.values(rng, (form.m, self.k // 2))
        b, self.b = self.values(rng, (form.n, self.k))
        whole = np.zeros((form.m, self.k))
        np.put_along_axis(whole, where.reshape(form.m, -1), a, axis=1)
        if form.scales:
            self.sfa = rng.integers(126, 129, (form.m, form.scales)).astype(np.uint8)
            self.sfb = rng.integers(126, 129, (form.n, form.scales)).astype(np.uint8)
            step = self.k // form.scales
            whole = whole * np.repeat(2.0 ** (self.sfa - 127.0), step, axis=1)
            b = b * np.repeat(2.0 ** (self.sfb - 127.0), step, axis=1)
        self.product = whole @ b.T

    def values(self, rng: Any, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Numbers, and their bytes in memory [rows, bytes]."""
        kind, element = self.form.kind, self.form.element
        if kind in ("mxf4", "mxf4nvf4"):
            codes = rng.integers(0, 16, shape).astype(np.uint8)
            return FP4[codes], codes[:, ::2] | codes[:, 1::2] << 4
        if element == "e2m1":
            codes = rng.integers(0, 16, shape).astype(np.uint8)
            units = np.zeros((shape[0], shape[1] // 16, 16), np.uint8)
            packed = codes[:, ::2] | codes[:, 1::2] << 4
            units[..., :8] = packed.reshape(shape[0], -1, 8)
            return FP4[codes], units.reshape(shape[0], -1)
        dtype: Any = {"tf32": np.float32, "f16": np.float16, "i8": np.int8}.get(
            kind, ml_dtypes.float8_e4m3fn
        )
        numbers = rng.integers(-8, 9, shape)
        return numbers.astype(float), np.ascontiguousarray(numbers.astype(dtype)).view(np.uint8)

    @property
    def idesc(self) -> int:
        f = self.form
        if f.scales:
            code = (5 if f.element else 0) if f.kind == "mxf8f6f4" else 1
            return code << 7 | code << 10 | 1 << 23 | f.n // 8 << 17 | f.m // 128 << 27 | 4
        d, code = {"tf32": (1, 2), "i8": (2, 1)}.get(f.kind, (1, 5 if f.element == "e2m1" else 0))
        bits = d << 4 | code << 7 | code << 10 | f.n // 8 << 17 | f.m // 16 << 24
        return bits | 4 | f.selector

    def place(self, cta: Any, rank: int) -> None:
        """Fills the memories of one CTA."""
        f, tmem = self.form, cta.tmem
        rows = slice(rank * f.m // f.group, (rank + 1) * f.m // f.group)
        cols = slice(rank * f.n // f.group, (rank + 1) * f.n // f.group)
        for at, raw in ((A_AT, self.a[rows]), (B_AT, self.b[cols])):
            data = columns(raw)
            cta.smem.data[at : at + data.size] = data
            cta.smem.defined[at : at + data.size] = True
        own = self.selectors[rows]
        words = np.zeros((128, 4), np.uint32)
        per_word = 32 // 4
        for copy in range(f.copies):
            lanes = f.lanes(copy)
            for r, chunk in np.ndindex(own.shape):
                if f.kind in ("f16", "tf32"):
                    half = own.shape[1] // 2
                    lane = lanes[r - r % 16] + r % 8 + 8 * (chunk // half)
                    column, bit = f.selector, 4 * (chunk % half) + 16 * (r // 8 % 2)
                else:
                    lane, column, bit = lanes[r], chunk // per_word, 4 * (chunk % per_word)
                words[lane, column] |= np.uint32(own[r, chunk]) << np.uint32(bit)
            if f.in_tmem:
                slab = slice(A_TMEM, A_TMEM + 8)
                raw = self.a[rows]
                if f.element == "e2m1":  # a byte each, the code in bits 5..2
                    low = raw.reshape(len(raw), -1, 16)[..., :8]
                    codes = np.stack([low & 15, low >> 4], axis=-1).reshape(len(raw), -1)
                    raw = codes << 2
                tmem.words[lanes, slab] = np.ascontiguousarray(raw).view(np.uint32)
                tmem.defined[lanes, slab] = True
        tmem.words[:, META : META + 4] = words
        tmem.defined[:, META : META + 4] = True
        if f.scales:
            for at, codes in ((SFA, self.sfa[rows]), (SFB, self.sfb)):
                for r, p in np.ndindex(len(codes), 4):
                    four = np.zeros(4, np.uint8)
                    four[: f.scales] = codes[r]
                    tmem.words[r % 32 + 32 * p, at + r // 32] = four.view(np.uint32)[0]
                    tmem.defined[r % 32 + 32 * p, at + r // 32] = True

    def taken(self, cta: Any, rank: int, d: np.ndarray) -> None:
        """Copies D, and which of its words are undefined, because of what."""
        f = self.form
        lost = np.zeros(d.shape, bool)
        rows = f.m // f.group
        part = f.n // f.copies
        for copy in range(f.copies):
            where = slice(rank * rows, (rank + 1) * rows), slice(copy * part, (copy + 1) * part)
            d[where] = cta.tmem.words[f.lanes(copy), D : D + part]
            lost[where] = ~cta.tmem.defined[f.lanes(copy), D : D + part]
        self.lost = lost | self.lost
        self.origins |= {origin.place for _, origin in cta.tmem.stored_undefined()}


def run(
    case: Case,
    *,
    change: Any = None,
    ashift: bool = False,
    accumulate: bool = False,
    metadata: int = META,
    **options: Any,
) -> tuple[Machine, np.ndarray]:
    f = case.form
    ctas = (f.group, 1, 1)
    machine = Machine(
        grid=ctas,
        block=(32, 1, 1),
        cluster=ctas,
        dynamic_smem=32768,
        options=at_column_0(**options),
    )
    d = np.zeros((f.m, f.n), np.uint32)

    def body(agent: Agent) -> Any:
        rank, own = agent.cta.rank_in_cluster, agent.cta.window
        yield from meet(agent)
        yield from agent.tmem.alloc(own + WORD, 512, cta_group=f.group, site="alloc")
        case.place(agent.cta, rank)
        if change is not None:
            change(agent.cta)
        agent.mbarrier.init(own + BAR, 1, site="init")
        agent.fence("mbarrier_init", site="fence")
        yield from meet(agent)
        if rank == 0:
            rows, cols = f.m // f.group, f.n // f.group
            base = f.lane << 16
            a: Any = SharedDesc(descriptor(A_AT, rows))
            if f.in_tmem:
                a = TmemAddr(base | A_TMEM)
            b = descriptor(B_AT, cols)
            more: dict[str, Any] = {
                "metadata": base | metadata,
                "cta_group": f.group,
                "site": "mma",
            }
            for n in range(2):
                more["enable_input_d"] = n > 0 or accumulate
                if f.scales:
                    issue_mma_scaled(
                        agent, D, a, b, case.idesc, SFA, SFB, f.kind, scales=f.scales, **more
                    )
                else:
                    issue_mma_bits(
                        agent, base | D, a, b, case.idesc, f.kind, ws=f.ws, ashift=ashift, **more
                    )
            mask = 3 if f.group == 2 else None
            agent.tensor_core.commit(own + BAR, cta_mask=mask, cta_group=f.group, site="commit")
        yield from agent.mbarrier.wait(own + BAR, 0, site="done")
        agent.fence("tcgen05.after", site="after")
        case.taken(agent.cta, rank, d)
        yield from meet(agent)
        if f.group == 2:
            yield from agent.tmem.pair_dealloc(0, 512, site="dealloc")
        else:
            agent.tmem.dealloc(0, 512, site="dealloc")

    machine.run(lambda cta: [cta.agent("warp 0", warp=0, body=body)])
    return machine, d.view(np.int32 if f.kind == "i8" else np.float32)


SHAPES: list[dict[str, Any]] = [
    {"m": 128}, {"m": 64}, {"m": 64, "lane": 16}, {"m": 256, "group": 2}, {"m": 128, "group": 2},
    {"m": 128, "group": 2, "lane": 16}, {"m": 32, "ws": True}, {"m": 64, "ws": True},
    {"m": 128, "ws": True, "n": 128},
]  # fmt: skip
FORMS = [
    Form(kind, element=element, in_tmem=in_tmem, **shape)
    for kind, element in (("f16", ""), ("tf32", ""), ("i8", ""), ("f8f6f4", ""), ("f8f6f4", "e2m1"))
    for in_tmem in (False, True)
    for shape in SHAPES
]
FORMS += [Form(kind, selector=s) for kind in ("f16", "tf32") for s in (1, 2, 3)]
FORMS += [
    Form(kind, m=m, group=m // 128, in_tmem=in_tmem, scales=scales, element=element)
    for kind, scales, element in (("mxf8f6f4", 1, ""), ("mxf8f6f4", 1, "e2m1"), ("mxf4", 2, ""),
                                  ("mxf4nvf4", 2, ""), ("mxf4nvf4", 4, ""))
    for m in (128, 256)
    for in_tmem in (False, True)
]  # fmt: skip


@pytest.mark.parametrize(
    "form",
    FORMS,
    ids=str,
)
def test_product(form: Form) -> None:
    case = Case(form)
    machine, d = run(case)
    assert not machine.findings
    np.testing.assert_array_equal(d, 2 * case.product)


HALF = [Form("f16", 64), Form("i8", 64), Form("f16", 128, group=2)]


@pytest.mark.parametrize("form", HALF, ids=str)
def test_the_other_reading_of_half_the_lanes(form: Form) -> None:
    """With the metadata on lanes 0..63 a program written for D's lanes is wrong, or refused."""
    case = Case(form)
    try:
        _, d = run(case, assumptions=Assumptions(half_lane_metadata="packed"))
    except MachineError as error:
        assert "selector of row" in str(error)
    else:
        assert (d != 2 * case.product).any()


def test_the_other_reading_of_the_selector() -> None:
    two = Assumptions(sparsity_selector="two")
    assert (run(Case(Form("f16", selector=1)), assumptions=two)[1] != 0).any()
    with pytest.raises(MachineError, match="sparsity selector of 0 or 1"):
        run(Case(Form("f16", selector=2)), assumptions=two)


def test_only_f16_and_tf32_have_a_selector() -> None:
    with pytest.raises(MachineError, match="sparsity selector of kind i8: expected 0"):
        run(Case(Form("i8", selector=1)))


@pytest.mark.parametrize(("m", "copies"), [(64, 2), (32, 4)])
def test_copies_of_the_metadata_have_to_be_equal(m: int, copies: int) -> None:
    def change(cta: Any) -> None:
        cta.tmem.words[128 - m, META] ^= 0x4 ^ 0xE

    form = Form("tf32", m, ws=True)
    assert form.copies == copies
    machine, _ = run(Case(form), change=change)
    assert {f.code for f in machine.findings} == {"operand-copies"}


def test_sparse_mxf_of_a_pair_has_256_rows() -> None:
    with pytest.raises(MachineError, match="M: expected 256, got 128"):
        run(Case(replace(Form("mxf4", scales=2), group=2)))


@pytest.mark.parametrize("m", [128, 256])
def test_ashift_of_a_sparse_a(m: int) -> None:
    """The second mma sees every row's neighbour, with the selectors of the row itself."""
    case = Case(Form("i8", m, group=m // 128, in_tmem=True))
    case.selectors[:] = 0x4  # the lower two of four, in all rows
    _, d = run(case, ashift=True)
    kept = np.arange(64).reshape(16, 4)[:, :2].ravel()
    a, b = (x.view(np.int8).astype(np.int64) for x in (case.a, case.b))
    row = np.arange(m)
    shifted = a[np.where(row % 32 == 31, row, row + 1)]
    np.testing.assert_array_equal(d, (a + shifted) @ b[:, kept].T)


def other_lanes(value: int, lane: int) -> Any:
    """Fills the 16 lanes of each quarter that A does not use."""

    def change(cta: Any) -> None:
        lanes = np.arange(128).reshape(4, 2, 16)[:, 1 - lane // 16].ravel()
        cta.tmem.words[lanes, A_TMEM : A_TMEM + 8] = value * 0x01010101
        cta.tmem.defined[lanes, A_TMEM : A_TMEM + 8] = True

    return change


@pytest.mark.parametrize("lane", [0, 16])
@pytest.mark.parametrize("moves", ["lanes", "rows"])
def test_ashift_of_half_the_lanes(moves: str, lane: int) -> None:
    """The last of 16 rows gets what the lane behind it holds, which is lane 16 of its quarter."""
    case = Case(Form("i8", 128, group=2, in_tmem=True, lane=lane))
    case.selectors[:] = 0x4
    assumed = Assumptions(ashift_half_lanes=moves)
    machine, d = run(case, ashift=True, change=other_lanes(3, lane), assumptions=assumed)
    assert not machine.findings
    kept = np.arange(64).reshape(16, 4)[:, :2].ravel()
    a, b = (x.view(np.int8).astype(np.int64) for x in (case.a, case.b))
    row = np.arange(128)
    last = row % 16 == 15
    shifted = a[np.where(last, row, row + 1)]
    if moves == "lanes" and not lane:
        shifted[last] = 3
    np.testing.assert_array_equal(d, (a + shifted) @ b[:, kept].T)


def test_ashift_of_lanes_that_nothing_wrote() -> None:
    case = Case(Form("i8", 128, group=2, in_tmem=True))
    assert not run(case, ashift=True)[0].findings
    assert case.lost.any(axis=1).sum() == 8 and case.origins == {"A in tensor memory"}
    assumed = Assumptions(ashift_half_lanes="rows")
    case = Case(Form("i8", 128, group=2, in_tmem=True))
    assert not run(case, ashift=True, assumptions=assumed)[0].findings and not case.lost.any()


@pytest.mark.parametrize(("kind", "selector"), [("f16", 0), ("tf32", 2), ("i8", 0)])
def test_metadata_at_an_odd_column(kind: str, selector: int) -> None:
    """One column on: refused, or counted from there."""
    case = Case(Form(kind, selector=selector))

    def moved(cta: Any) -> None:
        cta.tmem.words[:, META + 1 : META + 5] = cta.tmem.words[:, META : META + 4].copy()
        cta.tmem.defined[:, META + 4] = True
        cta.tmem.defined[:, META] = False

    with pytest.raises(MachineError, match=r"multiple of \d.*metadata_column.*got 257"):
        run(case, change=moved, metadata=META + 1)
    added = Assumptions(metadata_column="added")
    machine, d = run(case, change=moved, metadata=META + 1, assumptions=added)
    assert not machine.findings
    np.testing.assert_array_equal(d, 2 * case.product)
