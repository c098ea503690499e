"""Block-scaled and narrow mma of an agent, and decompressing cp: values, poison, order."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.machine import Agent, Assumptions, Machine, MachineError, SharedDesc, TmemAddr

from .bench import at_column_0
from .issue import issue_mma_bits, issue_mma_scaled

M, N = 128, 32
A_AT, B_AT, SFA_AT, SFB_AT, DONE, WORD, SMEM = 0, 0x4000, 0x6000, 0x6200, 0x7000, 0x7008, 0x7100
D, A_TMEM, SFA, SFB = 0, 64, 80, 96
"""Columns."""
CONSTANT = 1 << 46
VALUES = {
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}
CODE = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
BITS = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}
Program = Callable[[Agent], Generator[Any, Any, None]]


def plain(at: int, rows: int) -> int:
    """No swizzle, K-major: 8 rows × 16 bytes; 16-byte columns rows·16 apart."""
    return at >> 4 | (rows * 16 >> 4) << 16 | (128 >> 4) << 32 | CONSTANT


def placed(rows: np.ndarray) -> np.ndarray:
    """Bytes [rows, 32] in the order that `plain` describes."""
    return rows.reshape(len(rows), 2, 16).transpose(1, 0, 2).reshape(-1, 16)


def padded(codes: np.ndarray, bits: int, fill: int = 0) -> np.ndarray:
    """Codes [rows, K] as bytes [rows, K]: 16 elements densely at the start of each 16 bytes."""
    if bits == 8:
        return codes
    out = np.full((len(codes), codes.shape[1] // 16, 16), fill, np.uint8)
    for row, units in enumerate(codes.reshape(len(codes), -1, 16)):
        for u, unit in enumerate(units):
            number = sum(int(c) << (bits * i) for i, c in enumerate(unit))
            out[row, u, : 2 * bits] = list(number.to_bytes(2 * bits, "little"))
    return out.reshape(codes.shape)


def pairs(codes: np.ndarray) -> np.ndarray:
    return codes[:, ::2] | codes[:, 1::2] << 4


def small(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> np.ndarray:
    """Codes of small numbers, so that sums are exact."""
    values = np.array([0.5, 1, 1.5, 2, 3, -0.5, -1, -1.5, -2, -3], np.float32)
    return rng.choice(values, shape).astype(VALUES[name]).view(np.uint8)


def scale_block(codes: np.ndarray) -> np.ndarray:
    """Scales [rows ≤ 128, ≤ 4] as the 32 × 16 bytes of a block."""
    full = np.full((128, 4), 0x7F, np.uint8)
    full[: len(codes), : codes.shape[1]] = codes
    return full.reshape(4, 32, 4).transpose(1, 0, 2).reshape(32, 16)


def put(agent: Agent, at: int, data: np.ndarray) -> None:
    agent.memory.store("shared", at + 16 * np.arange(len(data)), data, site="put")


def run(body: Program, seed: int | None = None, **options: Any) -> tuple[Machine, dict[str, Any]]:
    """One warp; `body` issues, then D is waited for and read."""
    machine = Machine(
        grid=(1, 1, 1),
        block=(128, 1, 1),
        dynamic_smem=SMEM,
        options=at_column_0(seed, **options),
    )
    seen: dict[str, Any] = {"d": np.zeros((M, N), np.float32)}

    def warp(agent: Agent) -> Generator[Any, Any, None]:
        if agent.warp == 0:
            yield from agent.tmem.alloc(WORD, 128, site="alloc")
            agent.mbarrier.init(DONE, 1, site="init")
            agent.fence("mbarrier_init", site="fence")
            agent.fence("tcgen05.before", site="before")
        yield from agent.barrier.sync(0, None, site="meet")
        agent.fence("tcgen05.after", site="after")
        if agent.warp == 0:
            yield from body(agent)
            agent.tensor_core.commit(DONE, site="commit")
        yield from agent.mbarrier.wait(DONE, 0, site="wait")
        agent.fence("tcgen05.after", site="after")
        words = agent.tmem.ld(agent.warp << 21 | D, "32x32b", N, site="ld D")
        agent.tmem.wait("ld", site="wait ld")
        rows = slice(32 * agent.warp, 32 * agent.warp + 32)
        seen["d"][rows] = np.ascontiguousarray(words.T).view(np.float32)
        agent.fence("tcgen05.before", site="before")
        yield from agent.barrier.sync(0, None, site="part")
        agent.fence("tcgen05.after", site="after")
        if agent.warp == 0:
            agent.tmem.dealloc(0, 128, site="dealloc")

    machine.run(lambda cta: [cta.agent(f"warp {w}", warp=w, body=warp) for w in range(4)])
    return machine, seen


def codes_of(machine: Machine) -> list[str]:
    return [f.code for f in machine.findings]


# --- narrow operands and decompression ---------------------------------------------------------


@pytest.mark.parametrize("a_type", VALUES)
@pytest.mark.parametrize("b_type", ["e2m1", "e3m2", "e5m2"])
@pytest.mark.parametrize("from_tmem", [False, True])
def test_narrow_operands(a_type, b_type, from_tmem):
    rng = np.random.default_rng([CODE[a_type], CODE[b_type]])
    a, b = small(rng, a_type, (M, 32)), small(rng, b_type, (N, 32))
    idesc = 1 << 4 | CODE[a_type] << 7 | CODE[b_type] << 10 | N // 8 << 17 | M // 16 << 24

    def body(agent: Agent) -> Generator[Any, Any, None]:
        # Padding holds garbage here: it must not matter.
        put(agent, A_AT, placed(padded(a, BITS[a_type], 0xA5)))
        put(agent, B_AT, placed(padded(b, BITS[b_type], 0x5A)))
        agent.fence("proxy.async", site="fence")
        operand: Any = SharedDesc(plain(A_AT, M))
        if from_tmem:
            form = {4: "b4x16_p64", 6: "b6x16_p32", 8: None}[BITS[a_type]]
            agent.tensor_core.cp(A_TMEM, SharedDesc(plain(A_AT, M)), decompress=form, site="cp A")
            operand = TmemAddr(A_TMEM)
        issue_mma_bits(
            agent, D, operand, plain(B_AT, N), idesc, "f8f6f4", enable_input_d=False, site="mma"
        )
        yield from ()

    expected = (
        a.view(VALUES[a_type]).astype(np.float32) @ b.view(VALUES[b_type]).astype(np.float32).T
    )
    for seed in (None, 1):
        machine, seen = run(body, seed)
        assert codes_of(machine) == []
        np.testing.assert_array_equal(seen["d"], expected)


def test_padding_need_not_be_written_but_elements_must():
    rng = np.random.default_rng(1)
    a, b = small(rng, "e2m1", (M, 32)), small(rng, "e2m1", (N, 32))
    idesc = 1 << 4 | 5 << 7 | 5 << 10 | N // 8 << 17 | M // 16 << 24

    def program(missing: int | None) -> Program:
        def body(agent: Agent) -> Generator[Any, Any, None]:
            for at, codes in ((A_AT, a), (B_AT, b)):
                data = placed(padded(codes, 4))[:, :8]
                where = at + 16 * np.arange(len(data))
                keep = np.ones(len(data), bool)
                if missing is not None and at == A_AT:
                    keep[missing] = False
                agent.memory.store("shared", where[keep], data[keep], site="put")
            agent.fence("proxy.async", site="fence")
            agent.tensor_core.cp(
                A_TMEM, SharedDesc(plain(A_AT, M)), decompress="b4x16_p64", site="cp A"
            )
            issue_mma_bits(
                agent,
                D,
                TmemAddr(A_TMEM),
                plain(B_AT, N),
                idesc,
                "f8f6f4",
                enable_input_d=False,
                site="mma",
            )
            yield from ()

        return body

    assert codes_of(run(program(None))[0]) == []
    assert "undefined-read" in codes_of(run(program(77))[0])


@pytest.mark.parametrize(
    ("shape", "multicast", "rows", "width"),
    [
        ("128x256b", None, 128, 32),
        ("128x128b", None, 128, 16),
        ("4x256b", None, 4, 32),
        ("64x128b", "warpx2::02_13", 64, 16),
        ("64x128b", "warpx2::01_23", 64, 16),
        ("32x128b", "warpx4", 32, 16),
    ],
)
@pytest.mark.parametrize("form", [None, "b4x16_p64", "b6x16_p32"])
def test_every_shape_of_cp(shape, multicast, rows, width, form):
    rng = np.random.default_rng(rows)
    source = rng.integers(0, 256, (rows, width)).astype(np.uint8)
    want = source.copy()
    if form:
        bits = int(form[1])
        for row in range(rows):
            for u in range(0, width, 16):
                number = int.from_bytes(source[row, u : u + 16].tobytes(), "little")
                for i in range(16):
                    code = number >> (bits * i) & ((1 << bits) - 1)
                    want[row, u + i] = code << {4: 2, 6: 1}[bits]
    lanes: dict[int, int] = {}
    for i in range(rows):  # the table of PTX ISA 9.7.16.9, row by row
        targets = {
            "128x256b": [i],
            "128x128b": [i],
            "4x256b": [3 + 32 * i],
            "64x128b": [i, i + 64]
            if multicast == "warpx2::02_13"
            else [i % 32 + 64 * (i // 32), i % 32 + 64 * (i // 32) + 32],
            "32x128b": [i + 32 * p for p in range(4)],
        }[shape]
        lanes |= dict.fromkeys(targets, i)

    def body(agent: Agent) -> Generator[Any, Any, None]:
        data = source.reshape(rows, -1, 16).transpose(1, 0, 2).reshape(-1, 16)
        put(agent, A_AT, data)
        agent.fence("proxy.async", site="fence")
        taddr = A_TMEM | (3 << 16 if shape == "4x256b" else 0)
        agent.tensor_core.cp(
            taddr, SharedDesc(plain(A_AT, rows)), shape, multicast, form, site="cp"
        )
        put(agent, B_AT, np.zeros((64, 16), np.uint8))
        yield from ()
        got = agent.cta.tmem
        for lane, row in lanes.items():
            words = got.words[lane, A_TMEM : A_TMEM + width // 4]
            np.testing.assert_array_equal(words.view(np.uint8), want[row])
        others = np.setdiff1d(np.arange(128), list(lanes))
        assert not got.defined[others, A_TMEM : A_TMEM + width // 4].any()
        agent.tmem.st(D, "32x32b", N, np.zeros((N, 32), np.uint32), site="st")
        agent.tmem.wait("st", site="wait st")

    run(body)


def test_unknown_source_format_is_refused():
    def body(agent: Agent) -> Generator[Any, Any, None]:
        agent.tensor_core.cp(A_TMEM, SharedDesc(plain(A_AT, M)), decompress="b5x16", site="cp")
        yield from ()

    with pytest.raises(MachineError, match="expected a source format in b4x16_p64, b6x16_p32"):
        run(body)


# --- block scale -------------------------------------------------------------------------------


FORMS = [
    ("mxf8f6f4", 1, "ue8m0", "e4m3", "e5m2"),
    ("mxf8f6f4", 1, "ue8m0", "e2m1", "e3m2"),
    ("mxf4", 2, "ue8m0", "e2m1", "e2m1"),
    ("mxf4nvf4", 2, "ue8m0", "e2m1", "e2m1"),
    ("mxf4nvf4", 4, "ue8m0", "e2m1", "e2m1"),
    ("mxf4nvf4", 4, "ue4m3", "e2m1", "e2m1"),
]


class Case:
    """Operands of one block-scaled instruction, and the program that runs it."""

    def __init__(self, kind, scales, name, a_type="e2m1", b_type="e2m1"):
        rng = np.random.default_rng([scales, CODE[a_type]])
        self.kind, self.scales, self.name, self.fp4 = kind, scales, name, kind != "mxf8f6f4"
        self.types = a_type, b_type
        k = 64 if self.fp4 else 32
        self.a, self.b = small(rng, a_type, (M, k)), small(rng, b_type, (N, k))
        low = {"ue8m0": 125, "ue4m3": 0x36}[name]
        self.sa, self.sb = (
            rng.integers(low, low + 6, (r, scales)).astype(np.uint8) for r in (M, N)
        )

    def expected(self) -> np.ndarray:
        dtype = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}[self.name]
        values = []
        for codes, scale, element in zip((self.a, self.b), (self.sa, self.sb), self.types):
            factors = scale.view(dtype).astype(np.float64)
            factors = np.repeat(factors, codes.shape[1] // self.scales, axis=1)
            values.append(codes.view(VALUES[element]).astype(np.float64) * factors)
        return (values[0] @ values[1].T).astype(np.float32)

    def idesc(self, sf_id: int = 0) -> int:
        codes = (1, 1) if self.fp4 else tuple(CODE[t] for t in self.types)
        return (
            codes[0] << 7 | codes[1] << 10 | N // 8 << 17 | (self.name == "ue8m0") << 23
            | 1 << 27 | sf_id << 29 | sf_id << 4
        )  # fmt: skip

    def stored(self) -> list[np.ndarray]:
        if self.fp4:
            return [pairs(self.a), pairs(self.b)]
        return [padded(c, BITS[t]) for c, t in zip((self.a, self.b), self.types)]

    def program(
        self,
        sf_id: int = 0,
        accumulate: bool = False,
        from_tmem: bool = False,
        change: Callable[[Agent], Any] | None = None,
        copies: bool = True,
        high: int = 0,
        wait: bool = True,
    ) -> Program:
        def body(agent: Agent) -> Generator[Any, Any, None]:
            a, b = self.stored()
            put(agent, A_AT, placed(a))
            put(agent, B_AT, placed(b))
            for at, scale in ((SFA_AT, self.sa), (SFB_AT, self.sb)):
                put(agent, at, scale_block(np.roll(np.pad(scale, ((0, 0), (0, 4 - self.scales))),
                                                   sf_id, axis=1)))  # fmt: skip
            agent.fence("proxy.async", site="fence")
            for column, at in ((SFA, SFA_AT), (SFB, SFB_AT)):
                if copies:
                    agent.tensor_core.cp(
                        column, SharedDesc(plain(at, 32)), "32x128b", "warpx4", site="cp scales"
                    )
                else:
                    agent.tensor_core.cp(
                        column,
                        SharedDesc(plain(at, 64)),
                        "64x128b",
                        "warpx2::02_13",
                        site="cp scales",
                    )
            if from_tmem:
                agent.tensor_core.cp(A_TMEM, SharedDesc(plain(A_AT, M)), site="cp A")
            if change:
                change(agent)
            operand: Any = TmemAddr(A_TMEM) if from_tmem else SharedDesc(plain(A_AT, M))
            for step in range(1 + accumulate):
                issue_mma_scaled(
                    agent,
                    D,
                    operand,
                    plain(B_AT, N),
                    self.idesc(sf_id),
                    SFA | high,
                    SFB | high,
                    self.kind,
                    scales=self.scales,
                    enable_input_d=bool(step),
                    site="mma",
                )
            yield from ()

        return body


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", [None, 3])
def test_block_scaled(form, seed):
    case = Case(*form)
    machine, seen = run(case.program(), seed)
    assert codes_of(machine) == []
    np.testing.assert_array_equal(seen["d"], case.expected())
    machine, seen = run(case.program(accumulate=True), seed)
    np.testing.assert_array_equal(seen["d"], 2 * case.expected())
    _, seen = run(case.program(), seed, numerics="fast")
    np.testing.assert_array_equal(seen["d"], case.expected())
    if case.fp4 or BITS[case.types[0]] == 8:
        machine, seen = run(case.program(from_tmem=True), seed)
        assert codes_of(machine) == []
        np.testing.assert_array_equal(seen["d"], case.expected())


@pytest.mark.parametrize(("form", "ids"), [(FORMS[0], (1, 2, 3)), (FORMS[2], (2,))])
def test_scale_factor_id_picks_the_bytes(form, ids):
    case = Case(*form)
    for sf_id in ids:
        # CUTLASS leaves the id in the upper bits of the address: ignored.
        machine, seen = run(case.program(sf_id, high=sf_id << 30))
        assert codes_of(machine) == []
        np.testing.assert_array_equal(seen["d"], case.expected())


def test_scales_in_every_quarter():
    case = Case(*FORMS[5])
    assert codes_of(run(case.program())[0]) == []
    # Rows 0..31 of the block are in lanes 0..31 and 64..95 only, other rows in the others.
    machine, _ = run(case.program(copies=False))
    assert {"undefined-read", "scale-copies"} & set(codes_of(machine))

    def smear(agent: Agent) -> None:
        agent.cta.tmem.words[40, SFA] ^= 1

    assert "scale-copies" in codes_of(run(case.program(change=smear))[0])


def test_scales_have_to_be_there_and_to_stay():
    case = Case(*FORMS[4])

    def forget(agent: Agent) -> None:
        agent.cta.tmem.defined[5, SFB] = False

    assert "undefined-read" in codes_of(run(case.program(change=forget))[0])

    def overwrite(column: int) -> Program:
        def body(agent: Agent) -> Generator[Any, Any, None]:
            yield from case.program()(agent)
            # The mma may still read the scales: cp over them has to wait for it.
            agent.tensor_core.cp(
                column, SharedDesc(plain(SFB_AT, 32)), "32x128b", "warpx4", site="cp over"
            )

        return body

    for column in (SFA, SFB):
        machine, _ = run(overwrite(column), 1)
        assert any("mma" in f.first and "cp over" in f.second for f in machine.findings)

    def elsewhere(agent: Agent) -> Generator[Any, Any, None]:
        yield from case.program()(agent)
        agent.tensor_core.cp(
            SFB + 8, SharedDesc(plain(SFB_AT, 32)), "32x128b", "warpx4", site="cp beside"
        )

    assert codes_of(run(elsewhere, 1)[0]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": 2}, "scale_vec: expected 2X or 4X|SF[AB] id|scale type"),
        ({"sfa": SFA | 32 << 16}, "expected SFA at lane 0, got 32"),
        ({"sfb": 510}, "column"),
        ({"idesc": 1 << 31}, "K = 96 needs sm_103a"),
        ({"kind": "f16"}, "block-scaled kind"),
        ({"cta_group": 2}, "cta_group"),
    ],
)
def test_wrong_block_scale_is_refused(options, message):
    case = Case(*FORMS[5])

    def body(agent: Agent) -> Generator[Any, Any, None]:
        yield from case.program()(agent)
        values: dict[str, Any] = {"sfa": SFA, "sfb": SFB, "kind": case.kind, "scales": 4}
        values |= options
        idesc = case.idesc() | values.pop("idesc", 0)
        issue_mma_scaled(
            agent,
            D,
            SharedDesc(plain(A_AT, M)),
            plain(B_AT, N),
            idesc,
            enable_input_d=True,
            site="mma",
            **values,
        )

    with pytest.raises((MachineError, RuntimeError), match=message):
        run(body)


# --- open questions ------------------------------------------------------------------------------


def f8f6f4(a, b, a_type, **mma: Any) -> Program:
    """One mma of A through tensor memory, D zero before."""
    idesc = 1 << 4 | CODE[a_type] << 7 | CODE["e4m3"] << 10 | N // 8 << 17 | M // 16 << 24

    def body(agent: Agent) -> Generator[Any, Any, None]:
        put(agent, A_AT, placed(padded(a, BITS[a_type])))
        put(agent, B_AT, placed(b))
        agent.fence("proxy.async", site="fence")
        form = {4: "b4x16_p64", 6: "b6x16_p32", 8: None}[BITS[a_type]]
        agent.tensor_core.cp(A_TMEM, SharedDesc(plain(A_AT, M)), decompress=form, site="cp A")
        issue_mma_bits(
            agent,
            D,
            TmemAddr(A_TMEM),
            plain(B_AT, N),
            idesc,
            "f8f6f4",
            enable_input_d=False,
            site="mma",
            **mma,
        )
        yield from ()

    return body


@pytest.mark.parametrize(("holder", "shift"), [("6..1", 1), ("5..0", 0)])
def test_where_six_bits_are_held(holder, shift):
    rng = np.random.default_rng(8)
    a, b = small(rng, "e3m2", (M, 32)), small(rng, "e4m3", (N, 32))

    def body(agent: Agent) -> Generator[Any, Any, None]:
        yield from f8f6f4(a, b, "e3m2")(agent)
        held = agent.cta.tmem.words[:, A_TMEM : A_TMEM + 8]
        np.testing.assert_array_equal(np.ascontiguousarray(held).view(np.uint8), a << shift)

    _, seen = run(body, assumptions=Assumptions(fp6_holder=holder))
    expected = (
        a.view(VALUES["e3m2"]).astype(np.float32) @ b.view(VALUES["e4m3"]).astype(np.float32).T
    )
    np.testing.assert_array_equal(seen["d"], expected)


def test_exponents_of_zero_terms():
    """2^-140 less 2^-158: with zeros at -133 what lies below 2^-158 is cut, and nothing borrows."""
    case = Case("mxf8f6f4", 1, "ue8m0", "e4m3", "e4m3")
    one = np.array(1, VALUES["e4m3"]).view(np.uint8)
    small_one = np.array(2.0**-9, VALUES["e4m3"]).view(np.uint8)
    case.a[:], case.b[:] = 0, 0
    case.a[:, 0], case.b[:, 0] = one, one
    case.a[:, 1], case.b[:, 1] = small_one | 0x80, small_one
    case.sa[:], case.sb[:] = 57, 57  # 2^-140
    got = {}
    for choice in ("none", "-126", "-133"):
        _, seen = run(case.program(), assumptions=Assumptions(zero_terms=choice))
        got[choice] = float(seen["d"][0, 0])
    # The second product is 2^-158: within the window of -133, not in that of -126.
    assert got == {"none": 2.0**-140 - 2.0**-149, "-126": 2.0**-140, "-133": 2.0**-140 - 2.0**-149}
    case.sa[:] = 56
    for choice in got:
        _, seen = run(case.program(), assumptions=Assumptions(zero_terms=choice))
        got[choice] = float(seen["d"][0, 0])
    assert got == {"none": 2.0**-141 - 2.0**-149, "-126": 2.0**-141, "-133": 2.0**-141}


def test_the_two_rules_of_fp4_sums():
    """Groups of four products, or of sixteen, at the edge of the window."""
    case = Case("mxf4nvf4", 4, "ue4m3")
    case.a[:], case.b[:] = 0, 0
    half = np.array(0.5, VALUES["e2m1"]).view(np.uint8)
    case.a[:, :2], case.b[:, :2] = [half, half | 8], half  # cancel, at the largest scale
    case.a[:, 16:48:4], case.b[:, 16:48:4] = half, half  # one in each group of four
    case.sa[:], case.sb[:] = [0x7E, 1, 1, 1], [0x7E, 1, 1, 1]
    values = {}
    for rule in ("products", "scales"):
        _, seen = run(case.program(), assumptions=Assumptions(fp4_sums=rule))
        values[rule] = float(seen["d"][0, 0])
    # Each product is 2^-20. The window ends at 2^(16 - 35): only sums of several are seen.
    assert values == {"products": 0.0, "scales": 8 * 2.0**-20}


@pytest.mark.parametrize(("choice", "steps"), [("exact", 3), ("rounded", 2)])
def test_rounding_of_the_scaled_input_d(choice, steps):
    """In steps of 2^-149: 3 · 2^-1 + 1 + 1/2 is 3, and 2 when 3 · 2^-1 becomes 1 first."""
    a, b = np.zeros((M, 16), np.uint16), np.zeros((N, 16), np.uint16)
    a[:, :2] = 1  # bf16 2^-133
    b[:, :2] = [(127 - 16) << 7, (127 - 17) << 7]
    idesc = 1 << 4 | 1 << 7 | 1 << 10 | N // 8 << 17 | M // 16 << 24

    def body(agent: Agent) -> Generator[Any, Any, None]:
        put(agent, A_AT, placed(a.view(np.uint8)))
        put(agent, B_AT, placed(b.view(np.uint8)))
        agent.fence("proxy.async", site="fence")
        agent.cta.tmem.words[:, D : D + N] = 3
        agent.cta.tmem.defined[:, D : D + N] = True
        issue_mma_bits(
            agent,
            D,
            SharedDesc(plain(A_AT, M)),
            plain(B_AT, N),
            idesc,
            "f16",
            enable_input_d=True,
            scale_input_d=1,
            site="mma",
        )
        yield from ()

    _, seen = run(body, assumptions=Assumptions(scale_input_d=choice))
    assert (seen["d"].view(np.uint32) == steps).all()
