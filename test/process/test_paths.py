"""Paths are no shell text, and a folder that is full is not the kernel's mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcir.codegen import cubin
from tcir.errors import Error, InputError
from tcir.opt.containment import Notes
from tcir.reduce.attempt import of_script


@pytest.mark.parametrize("name", ["plain", "my folder", "x;touch PWNED;", "$(touch PWNED)", "it's"])
def test_a_candidate_is_an_argument_of_the_test(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / name
    folder.mkdir()
    program, report = folder / "k.mlir", folder / "k.report"
    attempts = of_script("! grep -q linalg.matmul", ".mlir")
    for text, status in (("%0 = linalg.matmul", 1), ("%0 = linalg.fill", 0)):
        program.write_text(text)
        with Notes() as notes:
            assert attempts.run(program, report, notes) == status
    assert [path.name for path in tmp_path.iterdir()] == [name]


def fake_ptxas(tmp_path: Path, says: str) -> str:
    tool = tmp_path / "ptxas"
    tool.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 255\n")
    tool.chmod(0o755)
    return str(tool)


def test_a_full_temporary_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = fake_ptxas(tmp_path, "ptxas fatal   : Failed to write to outp file")
    monkeypatch.setattr(cubin, "find_tool", lambda name: tool)
    with pytest.raises(InputError, match=r"cannot write to the temporary folder .*TMPDIR"):
        cubin.assemble(".version 8.6")


def test_what_ptxas_rejects_is_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = fake_ptxas(tmp_path, "ptxas k.ptx, line 3; fatal   : Parsing error near x")
    monkeypatch.setattr(cubin, "find_tool", lambda name: tool)
    with pytest.raises(Error, match="ptxas rejected the kernel") as caught:
        cubin.assemble(".version 8.6")
    assert not isinstance(caught.value, InputError)
