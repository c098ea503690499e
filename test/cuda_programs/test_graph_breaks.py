"""Mistakes in the runtime's CUDA graphs, one at a time: the program of graphs ends otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tcir.codegen.cuda import compile_program
from tcir.cuda import program as door
from tcir.target import DEFAULT_TARGET

from .test_program import GRAPHS, PROGRAMS

pytestmark = pytest.mark.slow

BREAKS = {
    "nodes in reverse": (
        "node_t *n = graph->nodes[i];", "node_t *n = graph->nodes[graph->count - 1 - i];",
    ),
    "a launch leaves out the last node": (
        "i < graph->count && !error", "i < graph->count - 1 && !error",
    ),
    "arguments by address": (
        "memcpy(malloc(place[1]), params->arguments[i], place[1])", "params->arguments[i]",
    ),
    "captured work of the second stream is executed": (
        "captured_streams[stream_count++] = stream;\n  return", ";\n  return",
    ),
    "capture of any stream": (
        "among(captured_streams, stream_count, stream) ? captured : 0", "captured",
    ),
    "copies left out": ("if (n->kind == COPY) copy_box(&n->copy);", ""),
    "fills left out": ("if (n->kind == FILL) fill_elements(&n->fill);", ""),
    "fills of bytes": ("memcpy(row + i * f->size, &f->value, f->size)", "row[i] = f->value"),
    "calls left out": ("if (n->kind == CALL) n->call.call(n->call.data);", ""),
    "children left out": ("if (n->kind == CHILD) error = executed(n->child);", ""),
    "an update that changes nothing": ("*exec = *made, *made = old, ", ""),
    "an update by nodes of other kinds": (
        "same = exec->nodes[i]->kind == graph->nodes[i]->kind", "same = 1",
    ),
    "parameters of the wrong graph": (
        "cudaGraphKernelNodeSetParams(exec->nodes[node->number], p)",
        "cudaGraphKernelNodeSetParams((node_t *)node, p)",
    ),
    "a clone with the original's arguments": (
        "if (node->kind == KERNEL) set_kernel(node, &graph->nodes[i]->kernel);", "",
    ),
    "memory kept from launch to launch": ("remember(n->memory, n->bytes, DEVICE), 0", "0"),
    "memory allocated twice": ("memory_of(n->memory) ? INVALID_VALUE : ", ""),
    "memory never freed": ("if (n->kind == RELEASE) error = release(n->memory);", ""),
    "every node a root": ("all || !graph->nodes[i]->before", "1"),
    "a capture ended by another stream": ("!captured || captured_streams[0] != s", "!captured"),
}  # fmt: skip

RUN = """
import sys
from pathlib import Path
from tcir.cuda.host_library import compile_library
from tcir.cuda.program import ProgramDevice
from tcir.doors.launches import Launches
launches = Launches()
folder, library = map(Path, sys.argv[1:])
runtime = compile_library(folder / "driver.c", "libcuda.so.1")
run = ProgramDevice(launches).load(runtime, library, "graphs")
status = run([])
launches.close()
sys.exit(status or launches.status)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("graphs") / "program.so"
    compile_program(PROGRAMS / "graphs.cu", DEFAULT_TARGET.name, made, ["-DWRONG"])
    return made


def _ended(folder: Path, library: Path, old: str, new: str) -> tuple[int, list[str], int]:
    """Status, output and number of undefined reads of the program with an edited runtime."""
    for name in door.SOURCES:
        text = Path(door.__file__).with_name(name).read_text()
        if name == "graphs.c":
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (folder / name).write_text(text)
    ended = subprocess.run(
        [sys.executable, "-c", RUN, folder, library],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return ended.returncode, ended.stdout.splitlines(), ended.stderr.count("undefined-read")


def test_as_it_is(library: Path, tmp_path: Path) -> None:
    assert _ended(tmp_path, library, "// CUDA graphs", "// Graphs") == (1, GRAPHS, 1)


@pytest.mark.parametrize("name", BREAKS)
def test_a_mistake_is_seen(name: str, library: Path, tmp_path: Path) -> None:
    assert _ended(tmp_path, library, *BREAKS[name]) != (1, GRAPHS, 1)
