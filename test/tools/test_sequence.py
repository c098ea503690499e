"""Programs of several launches: what each reads and writes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.errors import InputError
from tcir.interp import OutputSpec
from tcir.program.execution import run_sequence
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.workspaces import Workspaces

KERNEL = """
.visible .entry {name}(.param .u64 a, .param .u64 b) {{
  .reg .b32 %r<2>; .reg .b64 %d<4>; .reg .f32 %f<2>;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d1, %r1, 4;
  ld.param.u64 %d2, [a];
  ld.param.u64 %d3, [b];
  add.s64 %d2, %d2, %d1;
  add.s64 %d3, %d3, %d1;
  ld.global.f32 %f1, [%d2];
  add.rn.f32 %f1, %f1, %f1;
  st.global.f32 [%d3], %f1;
  ret;
}}
"""
"""Doubles the floats of a into b, one a thread."""
PTX = ".version 8.8\n.target sm_100a\n.address_size 64\n" + "".join(
    KERNEL.format(name=name) for name in ("one", "two")
)
OUT = OutputSpec((32,), np.dtype(np.float32))
X = np.arange(32, dtype=np.float32)


def launch(name: str, *buffers: int, threads: int = 32) -> Launch:
    params = tuple({"kind": "pointer", "arg": n} for n in buffers)
    return Launch(name, (1, 1, 1), (threads, 1, 1), 0, params)


def run(*launches: Launch, workspaces: tuple[int, ...] = (128,)) -> Any:
    return run_sequence(PTX, LaunchSequence(launches, Workspaces.apart(workspaces)), [X], [OUT])


def test_one_after_the_other() -> None:
    """Buffer 0 is the input, 1 the result, 2 the workspace."""
    outcome = run(launch("one", 0, 2), launch("two", 2, 1))
    assert (outcome.outputs[0] == 4 * X).all()
    assert not outcome.findings and outcome.counters["global_store"] == 2 * 128


def test_the_order_is_that_of_the_launches() -> None:
    outcome = run(launch("one", 0, 1), launch("two", 1, 2))
    assert (outcome.outputs[0] == 2 * X).all()
    with pytest.raises(InputError, match=r"@one: expected a kernel that writes .* got buffers"):
        run(launch("two", 2, 1), launch("one", 0, 2))  # reads the workspace, then writes it


def test_a_workspace_is_written_whole() -> None:
    (found,) = run(launch("one", 0, 2, threads=16), launch("two", 2, 1)).findings
    assert (found.severity, found.code) == ("error", "workspace-never-written")
    assert "a store to 64 of them" in found.missing


@pytest.mark.parametrize(
    ("launches", "workspaces", "words"),
    [
        ([("one", 0, 1), ("two", 0, 1)], (), "@two: expected a kernel that writes a result or a"),
        ([("one", 0, 2)], (128,), "expected a kernel that writes result 0, got none"),
        ([("one", 0, 3), ("two", 3, 1)], (128,), "no size for workspace 3"),
    ],
)
def test_refused(launches: Any, workspaces: tuple[int, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(*(launch(*each) for each in launches), workspaces=workspaces)


SPOILING = KERNEL.replace("ret;", "st.global.f32 [%d2], %f1;\n  ret;").format(name="two")
"""Like the others, and writes what it read."""


def spoiled(*launches: Launch) -> Any:
    head, clean = PTX.split(".visible .entry two")[0], launches
    return run_sequence(head + SPOILING, LaunchSequence(clean, Workspaces.apart([128])), [X], [OUT])


def test_a_launch_that_writes_what_it_should_read() -> None:
    """An input of the caller, or a workspace that an earlier launch wrote; `PTX` does neither."""
    for launches in (
        [launch("two", 0, 2), launch("one", 2, 1)],
        [launch("one", 0, 2), launch("two", 2, 1)],
    ):
        (found,) = spoiled(*launches).findings
        assert (found.severity, found.code) == ("error", "input-overwritten")
        assert "st.global.f32 [%d2], %f1;" in found.first
        assert "buffer 0 of @two, element [" in found.second and "expected" in found.second
        assert "of 128 changed" in found.missing
    assert (X == np.arange(32)).all()
