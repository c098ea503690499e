"""CTAs per SM, waves, global memory."""

from __future__ import annotations

import pytest

from tcir.errors import LaunchError
from tcir.machine.events import EventStream
from tcir.time import Constants, ctas_per_sm, modelled_time
from tcir.time.build import WarpTrack
from tcir.time.kernels import Gemm

C = Constants("sm_100a")


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "want"),
    [
        (128, 32, 0, 16),  # threads: 2048
        (32, 32, 0, 32),  # CTAs
        (256, 128, 0, 2),  # registers: 64 K
        (256, 129, 0, 1),  # registers come in units of 8 a thread
        (128, 32, 100 << 10, 2),  # shared memory: 228 KiB, 1 KiB of it reserved for each
        (128, 32, 114 << 10, 1),
        (1024, 64, 227 << 10, 1),
        (128, 0, 0, 16),  # registers unknown
    ],
)
def test_ctas_per_sm(threads: int, registers: int, shared: int, want: int) -> None:
    assert ctas_per_sm(threads, registers, shared, "sm_100a") == want


def test_a_cta_that_fits_on_no_sm_is_refused() -> None:
    with pytest.raises(LaunchError, match="got 128 threads with 64 registers and 233472 bytes"):
        ctas_per_sm(128, 64, 228 << 10, "sm_100a")


def test_a_launch_without_ctas_is_refused() -> None:
    with pytest.raises(LaunchError, match="at least one CTA, got 0"):
        modelled_time(_arithmetic(), C, 0)


def _arithmetic(shared: int = 200 << 10) -> EventStream:
    stream = EventStream(block=(32, 1, 1), registers=32, shared_bytes=shared)
    WarpTrack(stream, 0).op("alu", count=5000)
    return stream


def test_ctas_run_in_waves() -> None:
    times = {ctas: modelled_time(_arithmetic(), C, ctas) for ctas in (1, 148, 149, 296, 297)}
    assert {ctas: time.waves for ctas, time in times.items()} == {
        1: 1,
        148: 1,
        149: 2,
        296: 2,
        297: 3,
    }
    start, between = C["kernel-start"], C["cta-start"]
    assert times[1].cycles == times[148].cycles == 10000 + start
    assert times[149].cycles == times[296].cycles == 20000 + start + between


def test_ctas_of_an_sm_share_it() -> None:
    one = modelled_time(_arithmetic(0), C, 148)
    eight = modelled_time(_arithmetic(0), C, 148 * 8)
    assert (one.waves, eight.waves, eight.residents) == (1, 1, 32)
    assert eight.cycles == pytest.approx(one.cycles, rel=0.01)  # two on each scheduler
    full = modelled_time(_arithmetic(0), C, 148 * 32)
    assert full.cycles - C["kernel-start"] == pytest.approx(8 * 5000, rel=0.01)


def test_no_launch_is_faster_than_its_bytes() -> None:
    stream = EventStream(block=(32, 1, 1), registers=32)
    warp = WarpTrack(stream, 0)
    warp.wait(*[warp.load(64 << 10) for _ in range(16)])
    loaded = 16 * 148 * 64 << 10
    time = modelled_time(stream, Constants("sm_100a", {"l2-port": "best"}), 148)
    from_hbm = modelled_time(stream, C, 148, unique_bytes=loaded)
    assert time.bound == "L2 to SM" and from_hbm.bound == "HBM"
    assert from_hbm.microseconds >= loaded / 7260 / 1000
    # an array larger than what the launch moves is not moved as a whole
    assert modelled_time(stream, C, 148, unique_bytes=100 * loaded) == from_hbm


def test_pairs_take_two_sms() -> None:
    stream = Gemm("pair", pair=True).stream(256)
    assert [modelled_time(stream, C, ctas).waves for ctas in (2, 148, 150)] == [1, 1, 2]


def test_it_says_that_it_is_modelled_and_at_which_clock() -> None:
    text = str(modelled_time(_arithmetic(), Constants("sm_100a", {"clock": "power"}), 148))
    assert text.startswith("modelled: 8.20 us (12300 cycles at 1.5 GHz) on sm_100a, 1 wave")


def test_a_cta_that_ends_makes_room_for_the_next() -> None:
    """Of one long and many short CTAs on an SM, the short ones do not wait for a wave's end."""
    stream = EventStream(block=(32, 1, 1), registers=32, shared_bytes=100 << 10)  # two on an SM
    warp = WarpTrack(stream, 0)
    warp.op("alu", count=4)
    warp.wait(warp.load(16 << 10))
    times = {n: modelled_time(stream, C, 148 * n).cycles for n in (1, 2, 3, 4, 6, 8, 40)}
    one, pair = times[1] - C["kernel-start"], times[2] - C["kernel-start"]
    assert one < pair < one + 16384 / 64 + 50  # only the port is shared
    assert times[3] < times[4] < times[2] + pair + C["cta-start"] + 50
    steady = (times[8] - times[6]) / 2
    assert (times[40] - times[8]) / 32 == pytest.approx(steady, rel=0.02)
    assert steady >= 16384 / 64
