"""Fuzz: what is late, and that it shows in wrong programs alone. On a GPU:
`python -m corpus.silicon FOLDER; python -m tcir.testing.gpu FOLDER --fuzz 100`."""

from __future__ import annotations

import numpy as np
import pytest
from corpus.program import HERE, NAMES, read
from corpus.silicon import open_buffers

from tcir.emulation import EmulatedLaunch, emulate
from tcir.emulation.fuzz import GARBAGE, SEED, plan
from tcir.emulation.source import SourceParser
from tcir.run import run_ptx

HEAD = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k()
{
 .reg .pred %p<4>; .reg .b32 %r<9>;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r8], 32;
"""
LD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];"
ST = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r1};"
WAIT_LD, WAIT_ST = (f"tcgen05.wait::{each}.sync.aligned;" for each in ("ld", "st"))
ONE = EmulatedLaunch((1, 1, 1), (32, 1, 1))


def _late(body: str) -> tuple[list[int], dict[int, list[int]]]:
    """Numbers of late accesses, and what each wait or end delivers, by numbers behind the alloc."""
    (function,) = SourceParser(f"{HEAD}{body}\n ret;\n}}\n").functions
    found = plan(function, 0)
    numbers = {late.number: n for n, late in found.late.items()}
    return [n - 1 for n in found.late], {
        at - 1: [numbers[late.number] - 1 for late in each] for at, each in found.at.items()
    }


def test_the_next_wait_delivers() -> None:
    assert _late(f"{LD} {LD} {WAIT_LD} {LD} {WAIT_LD}") == ([0, 1, 3], {2: [0, 1], 4: [3]})


def test_behind_a_branch_or_a_label_every_wait_may() -> None:
    assert _late(f"{LD} @%p1 bra X; {WAIT_LD} X: {WAIT_LD}") == ([0], {2: [0], 3: [0]})
    assert _late(f"{LD} X: {WAIT_LD}") == ([0], {1: [0]})


def test_a_load_without_a_wait_never_arrives_and_a_store_does_at_the_end() -> None:
    assert _late(f"{LD} {ST}") == ([0, 1], {2: [1]})
    assert _late(f"{LD} {WAIT_ST} {ST}") == ([0, 2], {1: [2], 3: [2]})


def test_registers_hold_garbage_until_the_wait() -> None:
    text = f"{HEAD}{LD} mov.u32 %r3, %r1; {WAIT_LD} ret;\n}}\n"
    late = emulate(text, ONE, seed=7).ptx
    body = late.split("tcir_emulation_program:")[1]
    garbage, read, load = (
        body.index(x) for x in (f"mov.b32 %r1, {GARBAGE}", "mov.u32 %r3, %r1", "ld.cg.b32 %r1")
    )
    assert garbage < read < load
    assert f"{SEED} = 7;" in late and "tcir_emulation_pause" in body
    plain = emulate(text, ONE).ptx
    assert GARBAGE not in plain and "tcir_emulation_pause" not in plain


def _outcome(name: str, text: str) -> bool:
    """Whether a program of the corpus gives its values under fuzz, on the simulated Hopper."""
    program = read(HERE / "wrong" / f"{name}.ptx")
    scope = dict(NAMES)
    args = []
    for each, expression in program.args.items():
        value = eval(expression, scope)
        scope[each] = getattr(value, "array", value)
        args.append(scope[each])
    sizes = eval(f"dict({program.fields['launch']})")
    launch = EmulatedLaunch((sizes["grid"], 1, 1), (sizes["block"], 1, 1))
    made = emulate(text, launch, seed=1)
    before = {each: np.array(scope[each]) for each in program.args}
    report = run_ptx(
        made.ptx,
        grid=1,
        block=made.launch.block,
        dynamic_smem=made.launch.dynamic_smem,
        args=args,
        hazards="off",
    )
    assert report, report
    return all(
        np.array_equal(scope[each], eval(wanted, NAMES | before))
        for each, wanted in program.expect.items()
    )


@pytest.mark.parametrize(
    "name",
    [
        "tcgen05_st_then_ld",
        "tcgen05_one_register_of_two_loads",
    ],
)
def test_a_wrong_program_shows_and_its_twin_does_not(name: str) -> None:
    program = read(HERE / "wrong" / f"{name}.ptx")
    assert _outcome(name, program.twin)
    assert not _outcome(name, program.text)


def test_open_buffers_are_named_by_their_number() -> None:
    program = read(HERE / "wrong" / "tcgen05_st_then_ld.ptx")
    assert open_buffers(program) == []
    program.expect = dict.fromkeys(program.args, "any")
    assert open_buffers(program) == list(range(len(program.args)))
