"""st.async, red.async, st.bulk, 128-bit registers, cluster launch control, mbarrier forms.

Every program also goes through ptxas. What an H200 does with most of them: test/hopper/async.ptx.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

from .conftest import HEADER

HEAD = HEADER.replace("8.8", "9.0")


def entry(body: str, params: int = 1) -> str:
    """Kernel k(p0, …): pointers in %d0…, tid in %r0, the CTA's rank in %r1."""
    names = ", ".join(f".param .u64 p{n}" for n in range(params))
    loads = "\n".join(f"ld.param.u64 %d{n}, [p{n}];" for n in range(params))
    return f"""{HEAD}
.visible .entry k({names})
{{
.reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %d<32>; .reg .b128 %q<4>; .reg .b16 %h<4>;
.shared .align 8 .b64 bar[4]; .shared .align 128 .b8 sm[1024];
{loads}
mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, sm; mov.u32 %r3, bar;
{body}
ret;
}}
"""


def run(ptx: str, *args: Any, **sizes: Any) -> RunReport:
    return run_ptx(ptx, args=list(args), **{"grid": 1, "block": 1, **sizes})


WAIT = (
    "{loop}: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r3], {parity}; "
    "@!%p1 bra {loop};\n"
)
SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
BEGIN = (
    """setp.eq.u32 %p0, %r0, 0;
@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
mov.b32 %r9, 5; shl.b32 %r10, %r0, 4; add.u32 %r10, %r2, %r10;
st.shared.v4.b32 [%r10], {%r9, %r9, %r9, %r9};
"""
    + SYNC
)
PEER = """xor.b32 %r4, %r1, 1;
mapa.shared::cluster.u32 %r5, %r10, %r4; mapa.shared::cluster.u32 %r6, %r3, %r4;
"""


def exchange(store: str, nbytes: int, wait: bool = True) -> str:
    """Each of 32 threads of both CTAs sends to the peer; then each CTA writes what it got."""
    body = BEGIN + PEER
    body += f"@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {32 * nbytes};\n"
    body += "mad.lo.u32 %r11, %r1, 1000, %r0; add.u32 %r12, %r11, 7; cvt.u64.u32 %d9, %r11;\n"
    body += "neg.s32 %r13, %r11;\n" + store + "\n"
    if wait:
        body += WAIT.format(loop="again", parity=0)
    body += """ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r10];
mad.lo.u32 %r14, %r1, 32, %r0; mad.wide.u32 %d1, %r14, 16, %d0;
st.global.v4.b32 [%d1], {%r20, %r21, %r22, %r23};
"""
    return entry(body + SYNC)


ASYNC = ".shared::cluster.mbarrier::complete_tx::bytes"
M32 = (1 << 32) - 1
STORES = [
    (f"st.async.weak{ASYNC}.b32 [%r5], %r11, [%r6];", 4, lambda x: [x]),
    (f"st.async{ASYNC}.u64 [%r5], %d9, [%r6];", 8, lambda x: [x, 0]),
    (f"st.async{ASYNC}.v2.b32 [%r5], {{%r11, %r12}}, [%r6];", 8, lambda x: [x, x + 7]),
    (f"st.async{ASYNC}.v4.s32 [%r5], {{%r11, %r12, %r12, %r11}}, [%r6];", 16,
     lambda x: [x, x + 7, x + 7, x]),
    (f"st.async{ASYNC}.v2.b64 [%r5], {{%d9, %d9}}, [%r6];", 16, lambda x: [x, 0, x, 0]),
]  # fmt: skip
REDS = [
    (f"red.async.relaxed.cluster{ASYNC}.{op} [%r5], {value}, [%r6];", size, fn)
    for op, value, size, fn in (
        ("add.u32", "%r11", 4, lambda x: [5 + x]),
        ("add.s32", "%r13", 4, lambda x: [5 - x & M32]),
        ("min.u32", "%r11", 4, lambda x: [min(5, x)]),
        ("max.s32", "%r13", 4, lambda x: [max(5, -x)]),
        ("min.s32", "%r13", 4, lambda x: [min(5, -x) & M32]),
        ("and.b32", "%r11", 4, lambda x: [5 & x]),
        ("or.b32", "%r11", 4, lambda x: [5 | x]),
        ("xor.b32", "%r11", 4, lambda x: [5 ^ x]),
        ("inc.u32", "%r11", 4, lambda x: [0 if 5 >= x else 6]),
        ("dec.u32", "%r11", 4, lambda x: [x if 5 > x else 4]),
        ("add.u64", "%d9", 8, lambda x: [5 + x, 5]),
    )
]


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(
    "store,nbytes,oracle", STORES + REDS, ids=[s[0].split(" ")[0] for s in STORES + REDS]
)
def test_bytes_reach_the_peer(
    store: str, nbytes: int, oracle: Any, seed: Any, assemble: Any
) -> None:
    out = np.zeros((2, 32, 4), np.uint32)
    ptx = exchange(store, nbytes)
    report = run(ptx, out, grid=2, block=32, cluster=2, order_seed=seed)
    assert report.ok, report
    for rank in range(2):
        for lane in range(32):
            got = oracle(1000 * (1 - rank) + lane)
            assert out[rank, lane].tolist() == [*got, *[5] * (4 - len(got))]
    if seed is None:
        assemble(ptx)


def test_bytes_that_nobody_waits_for() -> None:
    out = np.zeros((2, 32, 4), np.uint32)
    report = run(exchange(STORES[0][0], 4, wait=False), out, grid=2, block=32, cluster=2)
    assert "race" in {f.code for f in report.findings if f.severity == "error"}


def test_reductions_of_one_word_come_in_any_order() -> None:
    store = REDS[0][0].replace("[%r5]", "[%r7]")
    body = "mapa.shared::cluster.u32 %r7, %r2, %r4;\n" + store
    for seed in (None, 3, 4):
        out = np.zeros((2, 32, 4), np.uint32)
        report = run(exchange(body, 4), out, grid=2, block=32, cluster=2, order_seed=seed)
        assert report.ok, report
        assert [int(out[r, 0, 0]) for r in (0, 1)] == [
            5 + sum(range(1000, 1032)),
            5 + sum(range(32)),
        ]


@pytest.mark.parametrize(
    "store,word",
    [
        (f"st.async{ASYNC}.v4.b64 [%r5], {{%d9, %d9, %d9, %d9}}, [%r6];", "16 bytes"),
        (f"red.async.relaxed.cluster{ASYNC}.min.u64 [%r5], %d9, [%r6];", "min"),
    ],
)
def test_forms_that_do_not_exist(store: str, word: str, assemble: Any) -> None:
    ptx = exchange(store, 8)
    with pytest.raises(ValueError, match=word):
        run(ptx, np.zeros((2, 32, 4), np.uint32), grid=2, block=32, cluster=2)
    with pytest.raises(AssertionError):
        assemble(ptx)


@pytest.mark.parametrize(
    "line,code",
    [("add.u32 %r5, %r5, 2;", "misaligned-address"), ("mov.u32 %r6, %r3;", "foreign-mbarrier")],
)
def test_addresses_of_st_async(line: str, code: str) -> None:
    # Rank 1 names its own mbarrier (rank 0's own address differs from the target's CTA, too).
    ptx = exchange(line + STORES[0][0], 4)
    report = run(ptx, np.zeros((2, 32, 4), np.uint32), grid=2, block=32, cluster=2)
    assert [e.code for e in report.errors] == [code]


def test_mmio_forms(assemble: Any) -> None:
    ptx = entry("""mov.b32 %r4, 9; mov.b16 %h1, 3;
st.async.mmio.release.sys.global.b32 [%d0], %r4;
st.async.mmio.release.sys.global.b16 [%d0+4], %h1;
red.async.mmio.release.sys.global.add.u32 [%d0+8], %r4;""")
    out = np.array([1, 1, 1], np.uint32)
    assert run(ptx, out).ok and out.tolist() == [9, 3, 10]
    assemble(ptx)


# --- st.bulk, b128 ----------------------------------------------------------------------------


def test_fill(assemble: Any) -> None:
    ptx = entry("""mov.b32 %r4, -1; st.shared.b32 [%r2], %r4; st.shared.b32 [%r2+64], %r4;
mov.u64 %d2, 64; st.bulk.weak.shared::cta [%r2], %d2, 0;
ld.shared.b32 %r5, [%r2+60]; ld.shared.b32 %r6, [%r2+64]; st.global.v2.b32 [%d0], {%r5, %r6};""")
    out = np.ones(2, np.uint32)
    assert run(ptx, out).ok and out.tolist() == [0, M32]
    assemble(ptx)
    report = run(ptx.replace("%d2, 64;", "%d2, 60;"), out)
    assert [e.code for e in report.errors] == ["bulk-size"]
    with pytest.raises(ValueError, match="expected 0"):
        run(ptx.replace("%d2, 0;", "%d2, 1;"), out)


def test_wide_registers(assemble: Any) -> None:
    ptx = entry("""ld.global.b128 %q1, [%d0]; mov.b128 {%d2, %d3}, %q1; mov.b128 %q2, {%d3, %d2};
st.shared.b128 [%r2], %q2; ld.shared.b128 %q3, [%r2]; mov.b128 %q0, %q3;
st.relaxed.gpu.global.b128 [%d0+16], %q0;""")
    data = np.arange(8, dtype=np.uint32)
    assert run(ptx, data).ok and data.tolist() == [0, 1, 2, 3, 2, 3, 0, 1]
    assemble(ptx)
    report = run(ptx.replace("[%d0];", "[%d0+8];"), data)
    assert [e.code for e in report.errors] == ["misaligned-address"]


def test_wide_atomics(assemble: Any) -> None:
    """Thread n swaps in n + 1 if it finds n; then all exchange."""
    ptx = entry("""cvt.u64.u32 %d4, %r0; add.u64 %d5, %d4, 1; mov.b64 %d6, 77;
mov.b128 %q1, {%d4, %d6}; mov.b128 %q2, {%d5, %d6};
atom.relaxed.gpu.global.cas.b128 %q3, [%d0], %q1, %q2;
mov.b128 {%d7, %d8}, %q3; mad.wide.u32 %d9, %r0, 8, %d0; st.global.b64 [%d9+16], %d7;
bar.sync 0; setp.ne.u32 %p1, %r0, 3; @%p1 bra end;
atom.global.exch.b128 %q3, [%d0], %q1; mov.b128 {%d7, %d8}, %q3; st.global.b64 [%d0+272], %d7;
end:""")
    data = np.zeros(36, np.uint64)
    data[:2] = 0, 77
    report = run(ptx, data, block=32)
    assert report.ok, report
    assert (
        data[2:34].tolist() == list(range(32)) and data[34] == 32 and data[:2].tolist() == [3, 77]
    )
    assemble(ptx)
    with pytest.raises(ValueError, match=r"\.exch or \.cas"):
        run(ptx.replace("exch.b128", "add.b128"), data, block=32)


# --- cluster launch control -------------------------------------------------------------------

COMPLETE = ".mbarrier::complete_tx::bytes"
CONTROL = (
    """setp.eq.u32 %p0, %r0, 0; @!%p0 bra end;
mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
"""
    + SYNC.replace(".aligned", "")
    + """
mov.u32 %r8, %ctaid.x; mov.u32 %r9, 0;
work: mov.u32 %r17, %cluster_ctarank; add.u32 %r18, %r8, %r17;
mad.wide.u32 %d1, %r18, 4, %d0; atom.global.add.u32 %r16, [%d1], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
{sync}{guard} clusterlaunchcontrol.try_cancel.async.shared::cta{complete}{many}.b128 [%r2], [%r3];
again: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], %r9; @!%p1 bra again;
xor.b32 %r9, %r9, 1; ld.shared.b128 %q1, [%r2]; fence.proxy.async.shared::cta;
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q1;
@%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%r8, %r19, %r20, _}}, %q1;
@%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r8, %q1;
@%p2 bra work;
{after}
end:
"""
)


def asked_by_the_first(many: str = ".multicast::cluster::all") -> str:
    """A cluster of two, whose first CTA asks."""
    sync = SYNC.replace(".aligned", "") + "setp.eq.u32 %p3, %r1, 0;\n"
    return CONTROL.format(
        complete=COMPLETE, guard="@%p3", many=many, sync=sync, after=SYNC.replace(".aligned", "")
    ).replace("mov.u32 %r8, %ctaid.x;", "mov.u32 %r8, %ctaid.x; sub.u32 %r8, %r8, %r1;")


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_every_cluster_once(seed: Any, assemble: Any) -> None:
    ptx = entry(CONTROL.format(complete=COMPLETE, guard="", many="", sync="", after=""))
    out = np.zeros(40, np.uint32)
    report = run(ptx, out, grid=40, block=1, order_seed=seed)
    assert report.ok and (out == 1).all(), report
    if seed is None:
        assemble(ptx)
        assert report.instructions < 40 * 25  # the first CTA did the work of all


def test_answers_go_to_the_whole_cluster(assemble: Any) -> None:
    body = asked_by_the_first()
    out = np.zeros(12, np.uint32)
    report = run(entry(body), out, grid=12, block=1, cluster=2)
    assert report.ok and (out == 1).all(), report
    assemble(entry(body))


def test_an_answer_of_the_cluster_is_awaited_in_each_cta() -> None:
    body = asked_by_the_first()
    early = body.replace("again: mbarrier", "@!%p3 bra read;\nagain: mbarrier").replace(
        "xor.b32 %r9", "read: xor.b32 %r9"
    )
    assert early != body
    report = run(entry(early), np.zeros(4, np.uint32), grid=4, block=1, cluster=2)
    assert "race" in [f.code for f in report.findings], report


def test_a_request_names_places_of_its_own_cta() -> None:
    body = asked_by_the_first("").replace(
        "@%p3 clusterlaunch",
        "mapa.shared::cluster.u32 %r2, %r2, 1; @%p3 clusterlaunch",
    )
    report = run(entry(body), np.zeros(4, np.uint32), grid=4, block=1, cluster=2)
    assert [e.code for e in report.errors] == ["foreign-shared-memory"]


def test_no_request_after_a_refusal() -> None:
    ptx = entry(CONTROL.format(complete=COMPLETE, guard="", many="", sync="", after="bra work;"))
    report = run(ptx, np.zeros(2, np.uint32), grid=2, block=1)
    assert [e.code for e in report.errors] == ["cancel-after-refusal"]


def test_coordinates_of_a_refusal() -> None:
    ptx = entry(
        CONTROL.format(complete=COMPLETE, guard="", many="", sync="", after="").replace(
            "@%p2 cluster", "cluster"
        )
    )
    report = run(ptx, np.zeros(2, np.uint32), grid=2, block=1)
    assert report.ok and not report.findings, "extracted and dropped, as CUTLASS does it"
    used = ptx.replace("@%p2 bra work;", "@%p2 bra work; st.global.u32 [%d1], %r8;")
    assert used != ptx
    report = run(used, np.zeros(2, np.uint32), grid=2, block=1)
    assert [f.code for f in report.findings] == ["launch-control-refused"]


# --- mbarriers --------------------------------------------------------------------------------

PHASE = """mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r3], {p}; selp.u32 %r9, 1, 0, %p1;
st.global.u32 [%d0+{at}], %r9;
"""


def phases(*steps: str) -> str:
    """After each step: whether the phase of parity 0 and that of parity 1 is over."""
    body = "mbarrier.init.shared::cta.b64 [%r3], 3;\n"
    for n, step in enumerate(steps):
        body += step + "\n" + PHASE.format(p=0, at=8 * n) + PHASE.format(p=1, at=8 * n + 4)
    return entry(body)


def test_drops(assemble: Any) -> None:
    """Three, then two, then one arrival a phase."""
    ptx = phases(
        "mbarrier.arrive_drop.shared::cta.b64 _, [%r3];",
        "mbarrier.arrive.shared::cta.b64 _, [%r3], 2;",
        "mbarrier.arrive_drop.noComplete.shared::cta.b64 %d1, [%r3], 1;",
        "mbarrier.arrive_drop.expect_tx.relaxed.cta.shared::cta.b64 _, [%r3], 64;",
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r3], 64;",
    )
    out = np.zeros((5, 2), np.uint32)
    report = run(ptx, out)
    assert report.ok, report
    assert out.tolist() == [[0, 1], [1, 0], [1, 0], [1, 0], [0, 1]]
    assemble(ptx)


def test_too_many_drops() -> None:
    report = run(
        phases("mbarrier.arrive_drop.shared::cta.b64 _, [%r3], 4;"), np.zeros(2, np.uint32)
    )
    assert [e.code for e in report.errors] == ["mbarrier-over-arrival"]
    last = "mbarrier.arrive.noComplete.shared::cta.b64 %d1, [%r3], 3;"
    assert [e.code for e in run(phases(last), np.zeros(2, np.uint32)).errors] == [
        "mbarrier-no-complete"
    ]


STATES = """mbarrier.init.shared::cta.b64 [%r3], 3;
mbarrier.arrive.release.cta.shared::cta.b64 %d1, [%r3];
mbarrier.pending_count.b64 %r4, %d1;
mbarrier.arrive.shared::cta.b64 %d2, [%r3], 2;
mbarrier.pending_count.b64 %r5, %d2;
mbarrier.test_wait.relaxed.cta.shared::cta.b64 %p1, [%r3], %d1;
mbarrier.arrive.shared::cta.b64 %d3, [%r3], {count};
mbarrier.try_wait.acquire.cta.shared::cta.b64 %p2, [%r3], {state}, 100;
selp.u32 %r6, 1, 0, %p1; selp.u32 %r7, 1, 0, %p2;
st.global.v4.u32 [%d0], {{%r4, %r5, %r6, %r7}};
"""


def test_states(assemble: Any) -> None:
    out = np.zeros(4, np.uint32)
    for state, count, want in (("%d2", 1, 1), ("%d3", 1, 0), ("%d3", 3, 1)):
        ptx = entry(STATES.format(state=state, count=count))
        assert run(ptx, out).ok and out.tolist() == [3, 2, 1, want]
        assemble(ptx)


def test_a_stale_state() -> None:
    report = run(entry(STATES.format(state="%d1", count=3)), np.zeros(4, np.uint32))
    assert [e.code for e in report.errors] == ["mbarrier-stale-state"]


RELAXED = """setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared::cta.b64 [%r3], 1; bar.sync 0;
shr.u32 %r4, %r0, 5; setp.eq.u32 %p1, %r4, 0; @!%p1 bra take;
setp.ne.u32 %p2, %r0, 0; @%p2 bra end;
st.shared.u32 [%r2], 6; {release}
mbarrier.arrive.{arrive}.cta.shared::cta.b64 _, [%r3]; bra end;
take: mbarrier.try_wait.parity.{wait}.cta.shared::cta.b64 %p3, [%r3], 0; @!%p3 bra take;
{acquire} ld.shared.u32 %r5, [%r2]; setp.eq.u32 %p4, %r0, 32; @%p4 st.global.u32 [%d0], %r5;
end:
"""
FENCE = "fence.acq_rel.cta;"


@pytest.mark.parametrize(
    "release,arrive,wait,acquire,fine",
    [("", "release", "acquire", "", True), (FENCE, "relaxed", "acquire", "", True),
     ("", "relaxed", "acquire", "", False), ("", "release", "relaxed", FENCE, True),
     ("", "release", "relaxed", "", False), (FENCE, "relaxed", "relaxed", FENCE, True)],
)  # fmt: skip
def test_relaxed_operations_need_fences(
    release: str, arrive: str, wait: str, acquire: str, fine: bool, assemble: Any
) -> None:
    ptx = entry(RELAXED.format(release=release, arrive=arrive, wait=wait, acquire=acquire))
    ptx = ptx.replace("st.shared.u32 [%r2], 6;", "mov.u32 %r6, 6; st.shared.u32 [%r2], %r6;")
    for seed in (None, 1, 5):
        out = np.zeros(1, np.uint32)
        report = run(ptx, out, block=64, order_seed=seed)
        assert report.ok == fine and not report.errors, report
        if not fine:
            assert {f.code for f in report.findings} == {"race"}
    assemble(ptx)
