"""Launches of a program, one after the other."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tcir.doors.launches import DoorLaunch, Launches
from tcir.doors.sampling import Sampling
from tcir.errors import VerdictError

PTX = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry next(.param .u64 data)
{
 .reg .b32 %r<2>; .reg .b64 %rd<3>;
 ld.param.u64 %rd0, [data]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4;
 add.s64 %rd2, %rd0, %rd1;
 ld.global.u32 %r1, [%rd2]; add.u32 %r1, %r1, 1; st.global.u32 [%rd2], %r1;
 ret;
}
"""


def test_nothing_is_in_front_of_the_first_launch() -> None:
    """A programmatic one waits for what is in front of it; the second one does not."""
    messages, data = io.StringIO(), np.arange(32, dtype=np.uint32)
    launches = Launches(messages=messages)
    launch = DoorLaunch(
        PTX, "next", (1, 1, 1), (1, 1, 1), 0, True, [data], [data], [data], (32, 1, 1)
    )
    launches.execute(launch)
    assert launches.status == 0 and not messages.getvalue()
    launches.execute(launch)
    assert launches.status == 1 and "a launch before this" in messages.getvalue()
    assert data.tolist() == list(range(2, 34))


WAITS = PTX.replace(" ld.param", " griddepcontrol.wait; ld.param")


@pytest.mark.parametrize(
    ("before", "status"),
    [
        ([("waits", 0), ("waits", 1)], 0),  # the second has waited for the first
        ([("waits", 0), ("late", 1)], 1),
        ([("waits", 1), ("waits", 0)], 1),
        ([("waits", 0), ("ordinary", 1)], 0),
    ],
)
def test_what_launches_in_front_may_still_write(before: list[tuple[str, int]], status: int) -> None:
    """The last launch reads array 0 without a wait; those before it changed 0 or 1."""
    arrays = [np.arange(32, dtype=np.uint32) for _ in "01"]
    launches = Launches(messages=io.StringIO())
    for kind, n in [*before, ("late", 0)]:
        ptx = PTX if kind == "late" else WAITS
        given = [arrays[n]]
        sizes = ("next", (1, 1, 1), (1, 1, 1), 0, kind != "ordinary")
        launches.execute(DoorLaunch(ptx, *sizes, given, given, given, (32, 1, 1)))
    assert launches.status == status


@pytest.mark.parametrize(
    ("most", "shown", "rest"), [(0, 1, "5 more"), (2, 2, "4 more"), (9, 6, "")]
)
def test_instructions_without_a_rule_are_limited_like_findings(
    most: int, shown: int, rest: str
) -> None:
    calls = " { .param .b64 p; st.param.b64 [p], %rd0; call.uni lost, (p); }\n" * 6
    ptx = PTX.replace(" ret;\n", f"{calls} ret;\n")
    ptx = ptx.replace(".visible", ".extern .func lost(.param .b64 p);\n.visible")
    data = np.arange(32, dtype=np.uint32)
    launch = DoorLaunch(ptx, "next", (1, 1, 1), (1, 1, 1), 0, False, [data], [data], [], (32, 1, 1))
    with pytest.raises(VerdictError) as raised:
        Launches(at_most=most).execute(launch)
    assert str(raised.value).count("no body of lost here") == shown
    assert (rest in str(raised.value)) and ("--max-findings" in str(raised.value)) == bool(rest)


SCATTER = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry next(.param .u64 places, .param .u64 data)
{
 .reg .b32 %r<3>; .reg .b64 %d<5>;
 ld.param.u64 %d0, [places]; ld.param.u64 %d1, [data];
 mov.u32 %r0, %ctaid.x; mul.wide.u32 %d2, %r0, 4; add.s64 %d3, %d0, %d2;
 ld.global.u32 %r1, [%d3]; mul.wide.u32 %d4, %r1, 4; add.s64 %d4, %d1, %d4;
 st.global.u32 [%d4], %r0;
 add.u32 %r2, %r0, 1; st.global.u32 [%d3], %r2;
 ret;
}
"""


@pytest.mark.parametrize("sampled_before", [False, True])
def test_findings_that_a_sample_may_cause_are_marked(sampled_before: bool) -> None:
    """Indices that the CTAs left out would have computed count as 0: CTAs store to one place."""
    messages = io.StringIO()
    launches = Launches(messages=messages, sampling=Sampling(8))
    places, data = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    sizes = ((64, 1, 1), (1, 1, 1), 0, False, [places, data], [places, data], [], (1, 1, 1))
    if sampled_before:
        launches.execute(DoorLaunch(SCATTER, "next", *sizes))
        assert launches.status == 2 and not messages.getvalue()
    places[:] = 0
    launches.execute(DoorLaunch(SCATTER, "next", *sizes))
    assert launches.status == 1 and "race" in messages.getvalue()
    assert ("need a second look" in messages.getvalue()) == sampled_before


def test_an_error_that_is_not_ours_has_its_status() -> None:
    """3 for a lack of memory, 4 for an internal error."""
    launches = Launches()
    launches.failed(MemoryError("1 GiB"))
    assert launches.status == 3
    launches = Launches()
    launches.failed(KeyError("x"))
    assert launches.status == 4
