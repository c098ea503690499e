"""Small streams whose times are added up by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tcir.errors import LaunchError
from tcir.machine.events import Event, EventStream
from tcir.time import Constants, Surroundings, Timeline, simulate
from tcir.time.build import WarpTrack
from tcir.time.kernels import Gemm
from tcir.time.waves import loads_and_stores

C = Constants("sm_100a")
ISSUE, LATENCY = C["mma-issue"], C["mma-latency"]


def _cycles(stream: EventStream, **choices: str) -> float:
    return simulate(stream, Constants("sm_100a", choices)).cycles


def _mma(count: int, n: int = 256, a_in: str = "smem") -> EventStream:
    warp = WarpTrack(EventStream(), 0)
    warp.wait(warp.commit(*[warp.mma(n, a_in=a_in) for _ in range(count)]))
    return warp.stream


def test_an_mma_reads_a_then_takes_its_columns_then_is_signalled() -> None:
    assert _cycles(_mma(1)) == ISSUE + 4096 / 128 + 256 / 2 + LATENCY == 264
    assert _cycles(_mma(1, a_in="tmem")) == 232


def test_mma_in_a_row_follow_at_the_interval_of_the_slower_of_math_and_operands() -> None:
    assert _cycles(_mma(5)) - _cycles(_mma(4)) == 128
    assert _cycles(_mma(5, 64)) - _cycles(_mma(4, 64)) == (4096 + 2048) / 128
    assert _cycles(_mma(5, 64, "tmem")) - _cycles(_mma(4, 64, "tmem")) == 32


def test_the_answer_to_a_dispute_shifts_the_time() -> None:
    assert _cycles(_mma(1), **{"mma-latency": "th"}) == 354
    # what a commit takes is the rest of one measured round trip: the split does not matter
    assert _cycles(_mma(1), mbarrier="nv") == 264


def test_a_pair_occupies_both_tensor_pipes() -> None:
    stream = EventStream(ctas=(0, 1))
    first, second = WarpTrack(stream, 0, 0), WarpTrack(stream, 0, 1)
    mma = first.mma(256, m=256, group=2)
    other = second.mma(256)
    second.wait(second.commit(other))
    first.wait(first.commit(mma))
    line = simulate(stream, C)
    tracks = {span.track: span for span in line.spans if "tensor pipe" in span.track}
    assert set(tracks) == {"CTA 0 tensor pipe", "CTA 1 tensor pipe"}
    assert line.cycles == ISSUE + 128 + 32 + 128 + LATENCY  # the second waits for the pair's


def test_a_copy_delays_an_independent_mma_by_its_data_time() -> None:
    def both(**choices: str) -> float:
        warp = WarpTrack(EventStream(), 0)
        copied = warp.copy(4096)
        warp.wait(warp.commit(warp.mma(256), copied))
        return _cycles(warp.stream, **choices)

    assert both() == 264 + 4096 / 64
    assert both(**{"cp-rate": "port"}) == 264 + 4096 / 128
    assert both(**{"cp-blocks-mma": "overlap"}) == 264 + ISSUE


def test_tmem_loads_share_a_port_within_a_sub_partition_only() -> None:
    def two(other: int) -> float:
        stream = EventStream()
        for number in (0, other):
            warp = WarpTrack(stream, number)
            warp.op("tcgen05.wait", [warp.op("tcgen05.ld", columns=64)])
        return _cycles(stream)

    assert two(1) == 64 * 2 + 51
    assert two(4) == pytest.approx(2 * 64 * 2 + 51)


def test_a_load_alone_and_beside_other_sms() -> None:
    warp = WarpTrack(EventStream(), 0)
    warp.wait(warp.load(16 << 10))
    assert simulate(warp.stream, C).cycles == 460 + 16 * 6
    assert simulate(warp.stream, C, Surroundings(active_sms=148)).cycles == 460 + 16384 / 81
    cold = simulate(warp.stream, C, Surroundings(148, hbm_fraction=1.0))
    assert cold.cycles == pytest.approx(460 + 16384 * 148 / (7260 / 1.85) + 937, rel=1e-6)
    assert cold.limits["HBM"] > 0.3


@pytest.mark.parametrize(
    ("boxes", "rate"), [([16], 81), ([16, 16], 81), ([16, 24], 71.5), ([16, 32], 62), ([96], 62)]
)
def test_a_large_stage_is_loaded_more_slowly(boxes: list[int], rate: float) -> None:
    """By the loads of its CTA that one wait waits for, not by the boxes."""
    stream = EventStream()
    first, other = WarpTrack(stream, 0), WarpTrack(stream, 0, cta=1)
    neighbour = other.load(200 << 10)
    WarpTrack(stream, 1).wait(*[first.load(kb << 10) for kb in boxes], neighbour)
    (span,) = [
        s
        for s in simulate(stream, C, Surroundings(148)).spans
        if s.event == 1 and s.track.endswith("L2 to SM")
    ]
    assert span.end - span.start == pytest.approx((boxes[0] << 10) / rate)


def test_a_hopper_s_port_does_not_ask_for_stages() -> None:
    assert Constants("sm_90").l2_port(1 << 10) == Constants("sm_90").l2_port(1 << 20) == 64
    both = Constants("sm_100a", {"l2-port-large": "best"})
    assert both.l2_port(1 << 10) == both.l2_port(1 << 20) == 81


def test_short_rows_of_a_box_cost_their_sector() -> None:
    def load(inner: int) -> float:
        warp = WarpTrack(EventStream(), 0)
        warp.wait(warp.load(16 << 10, inner))
        return simulate(warp.stream, C, Surroundings(active_sms=148)).cycles

    assert load(16) - load(32) == pytest.approx(16384 / 81)
    assert load(32) == load(128)
    assert load(1024) - load(128) == 240


def test_a_wait_ends_by_the_last_arrival_and_its_flow_names_it() -> None:
    stream = EventStream()
    early, late, waiter = (WarpTrack(stream, number) for number in range(3))
    first = early.op("mbarrier.arrive")
    late.op("alu", count=500)
    second = late.op("mbarrier.arrive")
    waiter.wait(first, second)
    line = simulate(stream, C)
    assert line.cycles == 500 * C["alu"] + C["mbarrier"]
    (flow,) = line.flows
    assert line.spans[flow.source].event == second
    assert line.spans[flow.sink].event == len(stream) - 1


def test_a_wait_for_the_past_costs_its_own_instruction_only() -> None:
    stream = EventStream()
    other, waiter = WarpTrack(stream, 0), WarpTrack(stream, 1)
    arrival = other.op("mbarrier.arrive")
    waiter.op("alu", count=500)
    waiter.wait(arrival)
    assert simulate(stream, C).cycles == 1000 + C["wait-ready"]


def test_warps_meet_at_a_barrier_although_each_names_the_other() -> None:
    stream = EventStream(
        [
            Event(0, 0, "alu", {"count": 100}, (), 0),
            Event(0, 0, "bar.sync", {}, (2,), 0),
            Event(0, 1, "bar.sync", {}, (1,), 0),
            Event(0, 1, "alu", {"count": 10}, (), 0),
        ]
    )
    assert simulate(stream, C).cycles == 200 + C["bar-sync"] + 20


def test_a_circle_of_waits_is_refused() -> None:
    stream = EventStream(
        [Event(0, 0, "mbarrier.wait", {}, (1,), 0), Event(0, 1, "mbarrier.wait", {}, (0,), 0)]
    )
    with pytest.raises(LaunchError, match="got 2 that wait for one another: CTA 0 warp 0"):
        simulate(stream, C)


def test_an_operation_that_the_target_lacks_is_refused() -> None:
    with pytest.raises(LaunchError, match=r"tcgen05\.mma .*cannot be timed on sm_80"):
        simulate(_mma(1), "sm_80")


def test_schedulers_are_shared_by_the_warps_of_a_sub_partition() -> None:
    def warps(numbers: tuple[int, ...]) -> float:
        stream = EventStream()
        for number in numbers:
            WarpTrack(stream, number).op("alu", count=1000)
        return simulate(stream, C).cycles

    assert warps((0, 1, 2, 3)) == 2000  # each has its own; a warp alone uses half of it
    assert warps((0, 4)) == pytest.approx(2000, rel=0.01)
    assert warps((0, 4, 8, 12)) == pytest.approx(4000, rel=0.01)


def test_loads_are_waited_for_by_arithmetic_that_can_use_them() -> None:
    warp = WarpTrack(EventStream(), 0)
    warp.op("ld.global", bytes=512)
    warp.op("alu", count=2)  # the address of the next
    warp.op("ld.global", bytes=512)
    warp.op("alu", count=100)
    assert simulate(warp.stream, C).cycles == pytest.approx(380 + 200, abs=20)


def _overlaps(line: Timeline) -> list[str]:
    tracks: dict[str, list[tuple[float, float]]] = {}
    for span in line.spans:
        assert span.start <= span.end
        tracks.setdefault(span.track, []).append((span.start, span.end))
    return [
        track
        for track, spans in tracks.items()
        if any(b[0] < a[1] - 1e-6 for a, b in pairwise(sorted(spans)))
    ]


@pytest.mark.parametrize(
    "kernel",
    [
        Gemm("one warp", stages=2, roles=False, ahead=1, each=True),
        Gemm("roles", n=128),
        Gemm("pair, persistent", pair=True, accumulators=2, store="tiled", columns=32),
    ],
    ids=lambda k: k.name,
)
def test_no_warp_and_no_resource_overlaps_itself(kernel: Gemm) -> None:
    stream = kernel.stream(512, tiles=3 if kernel.accumulators > 1 else 1)
    line = simulate(stream, C, Surroundings(148))
    assert not _overlaps(line)
    assert {span.event for span in line.spans} == set(range(len(stream)))
    for flow in line.flows:
        source, sink = line.spans[flow.source], line.spans[flow.sink]
        assert source.event in stream[sink.event].after and source.start <= sink.end
    assert 0 < max(line.limits.values()) <= 1


def test_without_its_dependence_a_wait_does_not_wait() -> None:
    stream = _mma(8)
    cut = EventStream([*stream[:-1], Event(0, 0, "mbarrier.wait", {}, (), 0)])
    assert simulate(cut, C).cycles < simulate(stream, C).cycles


def test_loads_of_threads_take_whole_sectors_from_l2() -> None:
    """32 lanes with a word each: together 4 sectors, apart 32, the same word 1."""
    cycles = {}
    for sectors in (1, 4, 32):
        stream = EventStream(block=(32, 1, 1))
        warp = WarpTrack(stream, 0)
        for _ in range(100):
            warp.op("ld.global", bytes=128, lanes=32, sectors=sectors)
        line = simulate(stream, C, Surroundings(148))
        cycles[sectors] = line.limits["L2 to SM"] * line.cycles
        assert loads_and_stores(stream, C["sector"]) == (100 * 32 * sectors, 0)
    assert cycles == pytest.approx({n: 100 * 32 * n / C["l2-port"] for n in cycles})
