"""What the machine cannot see, by docs/hazards.md: programs that lack an edge and are accepted."""

from __future__ import annotations

from tcir.run import RunReport

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
