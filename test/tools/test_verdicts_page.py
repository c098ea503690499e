"""docs/reference/verdicts.md, which `python test/verdicts.py` writes."""

from __future__ import annotations

import re

from verdicts import FOLDERS, ROOT, TARGET, options_of, programs

_ROW = re.compile(r"^\| ([\w/.]+?)(?:, \d+)? \| `(.+?)` \| (.+?) \|$", re.M)


def test_each_program_has_a_row_and_held() -> None:
    rows = _ROW.findall(TARGET.read_text())
    files = {str(path.relative_to(ROOT)): path for path in programs()}
    assert {file for file, _, _ in rows} == set(files) and len(files) > 100
    assert all(any(file.startswith(folder) for folder in FOLDERS) for file in files)
    for file, options, words in rows:
        assert options == options_of(files[file].read_text()), file
        held = words.startswith("held: ") and "full range" in words and "small" not in words
        assert held, (file, words)


def test_options_come_from_the_head() -> None:
    assert options_of("//   tc-opt x.mlir --target sm_80 --pipeline='a{b=c d=e}'\n") == (
        "--pipeline='a{b=c d=e}' --target=sm_80"
    )
    assert options_of("func.func @f() { return }") == "--pipeline=layers"
