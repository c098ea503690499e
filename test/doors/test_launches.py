"""Launches of a program, one after the other."""

from __future__ import annotations

import io

import numpy as np

from tcir.doors.launches import Launch, Launches

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
    launch = Launch(PTX, "next", (1, 1, 1), (1, 1, 1), 0, True, [data], [data], [data], (32, 1, 1))
    launches.execute(launch)
    assert launches.status == 0 and not messages.getvalue()
    launches.execute(launch)
    assert launches.status == 1 and "a launch before this" in messages.getvalue()
    assert data.tolist() == list(range(2, 34))
