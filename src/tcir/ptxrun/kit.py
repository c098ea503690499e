"""``tc-run FOLDER --bundle DIR``: bundles every program of a folder and the self-test, so that all
of them can be run on another computer's GPU in one session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tcir.errors import Error, InputError
from tcir.files import read_text
from tcir.program.source import split_chunks
from tcir.ptxrun.program_bundle import pack_program
from tcir.runtime.bundle import carry, check_new
from tcir.runtime.micro_kernels import micro_kernels
from tcir.runtime.questions import write_questions
from tcir.session.session import check_name
from tcir.target import DEFAULT_TARGET

_PIPELINE = re.compile(r"--pipeline[= ](?:'([^']+)'|(\S+))")


def programs(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Name, text and pipeline of each program of a folder's MLIR files.

    The pipeline is taken from the command in the comment lines at the top of the file.
    """
    for path in sorted(folder.glob("*.mlir")):
        text = read_text(path)
        head = re.match(r"(?://.*\n)*", text)
        found = _PIPELINE.search(head[0] if head else "")
        if found is None:
            continue
        chunks = split_chunks(text, str(path))
        for number, chunk in enumerate(chunks, 1):
            name = path.stem if len(chunks) == 1 else f"{path.stem}-{number}"
            yield name, chunk.text, found[1] or found[2]


def write_kit(
    folder: Path,
    source: Path,
    *,
    seed: int = 0,
    target: str = DEFAULT_TARGET.name,
    emulate: bool = False,
    say: Callable[[str], object] = print,
) -> int:
    """Writes a bundle for each program and each question of the self-test; returns their number.

    A program that cannot be bundled is left out and named. The questions are for B200s only.
    emulate: see `tcir.runtime.bundle.pack`.
    """
    check_new(folder)
    check_name(target)
    found = list(programs(source))
    if not found:
        raise InputError(
            f"{source}: expected MLIR files whose head has a command with --pipeline=NAME, got none"
        )
    written = 0
    for name, text, pipeline in found:
        try:
            pack_program(
                folder / name, text, pipeline, seed=seed, target=target, emulate=emulate, name=name
            )
        except Error as error:
            say(f"{name}: left out: {str(error).splitlines()[0]}")
            continue
        say(f"{name}: {pipeline}")
        written += 1
    if target == DEFAULT_TARGET.name and not emulate:
        for name, kernel in micro_kernels().items():
            written += len(write_questions(folder, name, kernel))
        say(f"{len(micro_kernels())} questions")
    if not written:
        raise InputError(f"{source}: no program can be bundled for {target}")
    carry(folder)
    return written
