"""Registers of tcgen05.ld around tcgen05.wait::ld; where tcgen05.alloc puts its columns."""

from __future__ import annotations

from typing import Any

import pytest

from tcir.machine import Assumptions

from .tcgen05_kernel import collective, issued, launch

WAIT = " tcgen05.wait::ld.sync.aligned;\n"
LOAD = " tcgen05.ld.sync.aligned.32x32b.x2.b32 {%d0, %d1}, [%t1];\n"
STORE = """
 ld.param.u64 %o0, [out]; mad.lo.u32 %w6, %w2, 128, %w0; mul.wide.u32 %o1, %w6, 32;
 add.s64 %o0, %o0, %o1; st.global.v2.b32 [%o0], {%d2, %d3};
"""


def found(body: str, **options: Any) -> list[tuple[str, str]]:
    report, _ = launch(collective(body + STORE), **options)
    assert not report.errors and not report.incomplete, str(report)
    return [(f.severity, f.code) for f in report.findings]


USES = {
    "add": " add.u32 %d2, %d0, 1; add.u32 %d3, %d1, 1;\n",
    "pack": " mov.b64 %o2, {%d0, %d1}; mov.b64 {%d2, %d3}, %o2;\n",
    "predicated": " setp.gt.u32 %p6, %w0, 7; mov.b32 %d2, 0; mov.b32 %d3, 0;\n"
    " @%p6 add.u32 %d2, %d0, 1; @!%p6 add.u32 %d3, %d1, 1;\n",
}


@pytest.mark.parametrize("use", USES)
def test_use_before_the_wait_is_a_warning(use: str, assemble: Any) -> None:
    """One for each load: the values are the right ones all the same."""
    body = LOAD + USES[use] + WAIT
    assert found(body) == [("warning", "registers-before-wait")]
    assert launch(collective(body + STORE))[0].ok
    assert found(LOAD + WAIT + USES[use]) == []
    assert found(body, hazards="off") == []
    assert assemble(collective(body))


REFILL = (
    " tcgen05.st.sync.aligned.32x32b.x2.b32 [%t1], {%d2, %d3};\n tcgen05.wait::st.sync.aligned;\n"
)


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_use_comes_after_its_load(seed: int | None) -> None:
    """As in FlashAttention-4: the first use waits for the load, and so does what follows it."""
    used = LOAD + USES["add"] + REFILL
    assert found(used, order_seed=seed) == [("warning", "registers-before-wait")]
    by_documents = found(used, order_seed=seed, ordering="isa")
    assert set(by_documents) == {("warning", "registers-before-wait"), ("error", "race")}
    unused = LOAD + " mov.b32 %d2, 0; mov.b32 %d3, 0;\n" + REFILL
    assert found(unused, order_seed=seed) == [("error", "race")]
    other = LOAD + LOAD.replace("d0, %d1", "d4, %d5") + USES["add"] + REFILL
    assert ("error", "race") in found(other, order_seed=seed)


OVERWRITES = {
    "mov": " mov.b32 %d0, 5;\n",
    "add": " add.u32 %d1, %w0, 7;\n",
    "some lanes": " setp.gt.u32 %p6, %w0, 7; @%p6 mov.b32 %d0, 5;\n",
    "shared": " ld.shared.b32 %d0, [%m1];\n",
}


@pytest.mark.parametrize("write", OVERWRITES)
def test_a_register_overwritten_before_the_wait(write: str) -> None:
    """The load may come after the other value."""
    use = " mov.b32 %d2, %d0; mov.b32 %d3, %d1;\n"
    assert found(LOAD + WAIT + OVERWRITES[write] + use) == []
    for profile in ("silicon", "isa"):
        early = found(LOAD + OVERWRITES[write] + WAIT + use, ordering=profile)
        assert early == [("error", "register-overwritten")]


COPIES = {
    "mov": " mov.b32 %d2, %d0; mov.b32 %d3, %d1;\n",
    "shfl": " shfl.sync.idx.b32 %d2, %d0, 0, 31, -1; shfl.sync.idx.b32 %d3, %d1, 0, 31, -1;\n",
}


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_waits_with_its_source(copy: str) -> None:
    """A copy is no use; that of a register that waits has its value after the same wait."""
    assert found(LOAD + COPIES[copy] + WAIT) == []
    use = " add.u32 %d2, %d2, 1;\n"
    assert found(LOAD + COPIES[copy] + use + WAIT) == [("warning", "registers-before-wait")]


def test_an_undefined_register_is_none_that_waits() -> None:
    use = " mov.b32 %d0, %d9;\n mov.b32 %d2, 0; add.u32 %d3, %d0, 1;\n"
    early = ("error", "register-overwritten")
    assert found(LOAD + use + WAIT) == [early, ("error", "undefined-register")]
    assert found(LOAD + WAIT + use) == [("error", "undefined-register")]


# --- tcgen05.alloc -------------------------------------------------------------------------------


ANY = Assumptions(alloc_place="any")


def smaller(text: str, columns: int) -> str:
    """The kernel with fewer columns, of which it fills only those."""
    lines = text.replace("512", str(columns)).splitlines()
    starts = [f"[%t1+{column}]" for column in range(0, 512, 128) if column + 128 > columns]
    return "\n".join(line for line in lines if not any(start in line for start in starts))


@pytest.mark.parametrize("group", [1, 2])
def test_where_columns_lie_is_not_the_programs_to_know(group: int) -> None:
    """Any, where alloc_place says so and there is a seed: at a multiple of their number, alike in a
    pair."""
    text = smaller(collective(" mov.b32 %d2, %t0; mov.b32 %d3, 0;\n" + STORE), 64)
    text = text.replace("cta_group::1", f"cta_group::{group}")
    bases = []
    for seed in (None, *range(12)):
        report, out = launch(text, group, order_seed=seed, assumptions=ANY)
        assert report.ok and not report.findings, str(report)
        (base,) = set(map(int, out[:, 0]))
        bases.append(base)
    assert bases[0] == 0 and len(set(bases)) > 3
    assert all(base % 64 == 0 and base < 512 for base in bases)


def test_a_kernel_that_ignores_the_address_is_noticed() -> None:
    """It counts on column 0, which it gets only where the lowest columns are taken."""
    right = smaller(issued(" tcgen05.shift.cta_group::1.down [%t0];"), 256)
    wrong = right.replace("ld.shared.b32 %t0, [%m1];", "mov.b32 %t0, 0;")
    seeds = (None, *range(8))
    assert all(launch(right, order_seed=seed, assumptions=ANY)[0].ok for seed in seeds)
    found = [launch(wrong, order_seed=seed, assumptions=ANY)[0] for seed in seeds]
    codes = [{error.code for error in report.errors} for report in found]
    assert codes[0] == set() and {"tensor-memory-columns"} in codes


def test_a_commit_on_an_address_of_shared_memory(assemble: Any) -> None:
    """Without a state space it takes a generic address, of which the hardware uses the low half."""
    spaced = """.shared::cluster.multicast::cluster.b64
   [%m0], %h1;"""
    ptx = issued(" cvt.u64.u32 %o1, %m0;")
    assert ptx.count(spaced) == 1
    of_shared = ptx.replace(spaced, ".b64 [%o1];")
    generic = of_shared.replace("%m0;\n", "%m0; cvta.shared.u64 %o1, %o1;\n", 1)
    assert assemble(of_shared) and generic != of_shared
    for text, silicon, isa in ((generic, [], []), (of_shared, ["warning"], ["error"])):
        for ordering, wanted in (("silicon", silicon), ("isa", isa)):
            report, _ = launch(text, ordering=ordering)
            found = [f.severity for f in report.findings if f.code == "commit-address"]
            assert not report.errors and found == wanted, str(report)
