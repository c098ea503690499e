"""Probes of wgmma whose text is edited: what orders the instruction is left out, or put in."""

from __future__ import annotations

import numpy as np

from .wgmma_cases import Probe
from .wgmma_forms import ptx
from .wgmma_machine import run

FENCE = " wgmma.fence.sync.aligned;\n"
COMMIT = " wgmma.commit_group.sync.aligned;\n"
WAIT = " wgmma.wait_group.sync.aligned 0;\n"
PROXY = "fence.proxy.async; bar.sync 0;"
#: Not of the hazards: every thread stores the image's address.
ADDRESS = " st.global.u32 [%d0+24], %r2;\n"
READ = " add.f32 %v0, %c0, %c1;\n"
WRITE_A = " mov.b32 %a0, 0;\n"
#: The first register of D.
ZERO = " mov.b32 %c0, 0;\n"
WRITE_METADATA = " mov.b32 %m, 0x44444444;\n"
OVERWRITE = " setp.eq.u32 %q, %r0, 0; @%q st.shared.b32 [%r2], %r0;\n"


def edits(probe: Probe, old: str, new: str) -> str:
    """The edited kernel."""
    text = ptx((probe.form.name,)).replace(ADDRESS, "")
    assert old in text
    return text.replace(old, new)


def edited(probe: Probe, old: str, new: str) -> tuple[bool, str, bool]:
    """Whether the machine accepts the edited kernel, its report, and whether D is right."""
    report, words = run(probe, edits(probe, old, new), hazards="report")
    assert not report.incomplete
    return report.ok, str(report), bool(np.array_equal(words, probe.expected))
