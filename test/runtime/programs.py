"""Small programs for the launcher, made without a compiler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tcir.codegen import assemble
from tcir.interp import OutputSpec
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.workspaces import Workspaces

ADD_ONE = """
.visible .entry {name}(.param .u64 from, .param .u64 to)
{{
 .reg .b32 %r<4>; .reg .b64 %d<4>;
 ld.param.u64 %d0, [from]; ld.param.u64 %d1, [to];
 mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4; add.s64 %d0, %d0, %d2; add.s64 %d1, %d1, %d2;
 ld.global.u32 %r1, [%d0]; add.u32 %r1, %r1, 1; st.global.u32 [%d1], %r1;
 ret;
}}
"""


def pointer(arg: int) -> dict[str, Any]:
    return {"kind": "pointer", "arg": arg}


def counted(
    names: tuple[str, ...], launches: tuple[Launch, ...], workspaces: tuple[int, ...]
) -> Any:
    """A program of u32[32] -> u32[32]."""
    spec = OutputSpec((32,), np.dtype(np.uint32))
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    ptx = head + "".join(ADD_ONE.format(name=name) for name in names)
    return SimpleNamespace(
        name="counted",
        ptx=ptx,
        signature=SimpleNamespace(inputs=(spec,), outputs=(spec,)),
        launches=LaunchSequence(launches, Workspaces.apart(workspaces)),
        cubin=assemble(ptx, target="sm_90").data,
    )
