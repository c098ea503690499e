"""A PTX instruction from a plugin file: it decodes, executes and is documented; no other change.

In processes of their own: what is registered stays registered.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent / "plugin"
RUN = """
import numpy as np
import tcir
from tcir.tools.dev.ptx_coverage import document

PTX = '''
.version 8.8
.target sm_100a
.address_size 64
.visible .entry kernel(.param .u64 p) {
    .reg .b32 %r<5>; .reg .b64 %rd<3>;
    mov.u32 %r1, %tid.x;
    mul.lo.u32 %r2, %r1, 0x01020304;
    sad4.u32.u32.u32FORM %r3, %r2, 0x10203040, 100;
    ld.param.u64 %rd1, [p];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r3;
    ret;
}'''
out = np.zeros(32, np.uint32)
report = tcir.run_ptx(PTX.replace("FORM", form), grid=1, block=32, args=[out])
print(report)
print([line for line in document().splitlines() if "`sad4`" in line])
if report.ok:
    a = (np.arange(32, dtype=np.uint32) * 0x01020304).view(np.uint8).reshape(32, 4)
    b = np.array([0x10203040], np.uint32).view(np.uint8)
    np.testing.assert_array_equal(out, 100 + np.abs(a.astype(int) - b.astype(int)).sum(axis=1))
"""


def run(setup: str, form: str) -> str:
    code = f"import sys\nsys.path.insert(0, {str(PLUGIN)!r})\n{setup}\nform = {form!r}\n{RUN}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_the_plugin_it_is_unknown() -> None:
    text = run("", ".add")
    assert text.startswith("incomplete") and "sad4.u32.u32.u32.add" in text
    assert text.splitlines()[-1] == "[]"


@pytest.mark.parametrize("setup", ["import sad", "import tcir.run, sad"])
def test_with_the_plugin_it_runs_and_is_documented(setup: str) -> None:
    text = run(setup, ".add")
    assert text.startswith("ok")
    (row,) = eval(text.splitlines()[-1])
    assert row == "| `sad4` | .add | .u32 | only with .add |"


@pytest.mark.parametrize("form", ["", ".sat", ".add.sat"])
def test_modifiers_that_it_does_not_take_are_incomplete(form: str) -> None:
    assert run("import sad", form).startswith("incomplete")


def test_a_second_decoder_of_one_name_is_an_error() -> None:
    from tcir.interp.ptx.registry import instruction

    with pytest.raises(ValueError, match="one decoder for add, got two"):
        instruction("add")(lambda d: d.plain(lambda w, m: None))
