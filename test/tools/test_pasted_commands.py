"""What README, docs/ and the heads of examples/ tell the reader to paste runs in a fresh copy.

So do the examples that the commands' ``--help`` ends with.

Every block of commands and of Python runs in a copy of its own (those of a tale of
docs/tutorials/debugging.md in one), and where a page shows output, the output is compared with what
was printed, times left out. Not run: lines with a placeholder (``FILE``, ``…``), doctests
(`test_docs.py` runs them), and blocks under a comment ``<!-- not run: REASON -->``;
`test_what_is_not_run` lists those; what needs a package runs where it is installed. `make test`
runs the quick ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pasted import BLOCKS, NEEDS, PARSERS, TALES, Block, copy_checkout, follow, shows, tales

RUN = [
    pytest.param(block, id=str(block)) for block in BLOCKS if block.file != TALES and block.can_run
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return copy_checkout(tmp_path / "clone")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", RUN)
def test_block(block: Block, copy: Path) -> None:
    follow(block, copy)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("tale", tales(), ids=lambda tale: str(tale[0]))
def test_tale(tale: list[Block], copy: Path) -> None:
    for block in tale:
        assert block.runs == block.commands  # none is left out
        follow(block, copy)


def test_there_are_two_tales() -> None:
    assert [len(tale) > 3 for tale in tales()] == [True, True]


def test_a_changed_word_is_noticed() -> None:
    printed = "1  raise-to-tc  3  0.03 s  equal\n2  cse  3  0.03 s  equal\nheld: 2 steps\n"
    assert shows("1  raise-to-tc   3  0.57 s  equal\n...\nheld: 2 steps\n", printed)
    assert not shows("1  raise-to-tc   3  0.03 s  different\n...\nheld: 2 steps\n", printed)


def test_what_is_not_run() -> None:
    """Placeholders and installations by their text; the rest has its reason in the page."""
    for block in BLOCKS:
        if block.reason:
            print(f"{block}: {block.reason}")
        for line, _ in set(block.commands) - set(block.runs):
            print(f"{block}: {line}")
    reasons = {block.reason for block in BLOCKS if block.reason}
    assert reasons <= {
        *NEEDS,
        "needs a GPU",
        "needs an H100 or H200",
        "a part of a program",
        "takes minutes",
    }


def test_the_blocks_are_found() -> None:
    files = {block.values[0].file for block in RUN}
    assert files >= {f"{parser.prog} --help" for parser in PARSERS}
    assert files >= {
        "README.md",
        "docs/reference/tc-run.md",
        "docs/explanation/gemv.md",
        "examples/matmul.mlir",
    }
    assert len(RUN) >= 12
