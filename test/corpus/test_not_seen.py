"""What the machine cannot see, by docs/explanation/hazards.md: programs that lack an edge and are
accepted."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

from .program import HERE, read


def changed(name: str, *changes: tuple[str, str]) -> RunReport:
    """A wrong program of the corpus with other lines in place of some."""
    program = read(HERE / f"wrong/{name}.ptx")
    text = program.text
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    report, _ = program.run(text, None)
    return report


def test_a_fence_of_one_lane_counts_for_its_warp() -> None:
    name, fence = "tcgen05_no_fence_after", "tcgen05.fence::after_thread_sync;"
    of_lane_0 = (
        f"{{ .reg .pred %q; .reg .b32 %l; and.b32 %l, %t, 31; setp.eq.u32 %q, %l, 0; @%q {fence} }}"
    )
    assert {f.code for f in changed(name).findings} == {"missing-fence-after"}
    assert changed(name, (f"// EDGE: {fence}", of_lane_0)).findings == []


ELECTED = {
    "lanes_lane_0_taken_for_the_leader": "race",
    "lanes_two_elections_of_other_masks": "mbarrier-init-race",
}


@pytest.mark.parametrize("name", ELECTED)
def test_lanes_taken_for_the_elected_one(name: str) -> None:
    """Nothing with the lowest lane elected; `--validate-each` elects the highest. There buffers lie
    at the least alignment that is promised, too."""
    program = read(HERE / f"wrong/{name}.ptx")

    def found(text: str, placement: str) -> set[str]:
        aligned = text.replace(".param .u64 ", ".param .u64 .ptr .global .align 16 ")
        report, _ = program.run(aligned, None, placement=placement)
        assert not report.errors and not report.incomplete, str(report)
        return {f.code for f in report.findings}

    assert not found(program.text, "usual")
    assert found(program.text, "adverse") == {ELECTED[name]}
    assert not found(program.twin, "adverse")


THREE = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 word, .param .u64 done)
{
  .reg .pred %p<3>; .reg .b32 %r<3>; .reg .b64 %word, %done; .reg .b32 %c;
  ld.param.u64 %word, [word]; ld.param.u64 %done, [done]; mov.u32 %c, %ctaid.x;
  setp.eq.u32 %p1, %c, 3; @%p1 bra WRITER;
  ld.global.u32 %r1, [%word]; setp.eq.u32 %p2, %c, SILENT; @%p2 bra DONE;
  red.release.gpu.global.add.u32 [%done], 1; bra DONE;
WRITER: ld.acquire.gpu.global.u32 %r2, [%done]; setp.lt.u32 %p1, %r2, 2; @%p1 bra WRITER;
  st.global.u32 [%word], 6;
DONE: ret;
}
"""


@pytest.mark.parametrize("silent", [0, 1, 2])
def test_of_three_readers_the_first_is_forgotten(silent: int) -> None:
    """Nothing orders the reads. Under a seed CTAs take turns, so another is the first."""

    def found(seed: int | None) -> bool:
        words = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
        text = THREE.replace("SILENT", str(silent))
        report = run_ptx(text, args=list(words), grid=4, block=1, order_seed=seed)
        assert {f.code for f in report.findings} <= {"race"}
        return not report.ok

    assert found(None) == (silent != 0)
    assert any(found(seed) for seed in range(7))
