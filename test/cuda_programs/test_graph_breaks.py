"""Mistakes in the runtime's CUDA graphs and variables, one at a time: the program of graphs, or
that of conditions, ends otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tcir.codegen.cuda import compile_program
from tcir.cuda import program as door
from tcir.target import DEFAULT_TARGET

from .test_program import CONDITIONS, GRAPHS, PROGRAMS

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

OF_CONDITIONS = {
    "bodies that clones share": ("bodies ? copied(bodies[i])", "bodies ? bodies[i]"),
    "an if that is executed if not": ("value : !value", "value : value"),
    "a loop that is executed once": ("while (c->condition->value && !error)", "if (1)"),
    "a case after the last": ("number < c->count ? executed(c->bodies[number])",
                              "1 ? executed(c->bodies[number % c->count])"),
    "initial values for good": ("if (!capture_of(s)) return assign(exec), executed(exec);",
                                "if (!capture_of(s)) return executed(exec);"),
    "initial values without children": ("assign(c->bodies[b]);", ";"),
    "initial values of all": ("c->condition && c->condition->assigned",
                              "c->condition"),
    "bodies of no node": ("(p->kind == WHILE && p->count > 1)", "0"),
    "a capture into a graph of its own": ("free(captured), captured = graph, ", ""),
    "nodes to variables from the start": (
        "symbol(host, offset, bytes, &where);\n  return error ? result(error) : "
        "cudaGraphAddMemcpyNode1D(made, graph, before, count, where, from",
        "symbol(host, 0, bytes, &where);\n  return error ? result(error) : "
        "cudaGraphAddMemcpyNode1D(made, graph, before, count, where, from",
    ),
    "new parameters for the node alone": (
        "return cudaGraphMemcpyNodeSetParamsToSymbol(exec->nodes[node->number]",
        "return cudaGraphMemcpyNodeSetParamsToSymbol((node_t *)node",
    ),
    "captured copies at once": (
        "return capture_of(s) ? capture_copy(where, bytes, from",
        "return 0 ? capture_copy(where, bytes, from",
    ),
    "variables by the start": ("*where += offset, ", ""),
    "copies beyond variables": ("offset + bytes > size ? INVALID_VALUE : 0", "0"),
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


@pytest.fixture(scope="module", params=["graphs", "conditions"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("graphs") / f"{request.param}.so"
    compile_program(PROGRAMS / f"{request.param}.cu", DEFAULT_TARGET.name, made, ["-DWRONG"])
    return made


def _ended(folder: Path, library: Path, old: str, new: str) -> tuple[int, list[str], int]:
    """Status, output and number of findings of the program with an edited runtime."""
    texts = {name: Path(door.__file__).with_name(name).read_text() for name in door.SOURCES}
    assert sum(text.count(old) for text in texts.values()) == 1, old
    for name, text in texts.items():
        (folder / name).write_text(text.replace(old, new))
    try:
        ended = subprocess.run(
            [sys.executable, "-c", RUN, folder, library],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:  # a loop without its body
        return 124, [], 0
    findings = ended.stderr.count("undefined-read") + ended.stderr.count("race: ")
    return ended.returncode, ended.stdout.splitlines(), findings


SAID = {"graphs": GRAPHS, "conditions": CONDITIONS}


def test_as_it_is(library: Path, tmp_path: Path) -> None:
    said = SAID[library.stem]
    assert _ended(tmp_path, library, "// CUDA graphs", "// Graphs") == (1, said, 1)


@pytest.mark.parametrize(
    ("library", "name"),
    [*(("graphs", name) for name in BREAKS), *(("conditions", name) for name in OF_CONDITIONS)],
    indirect=["library"],
)
def test_a_mistake_is_seen(name: str, library: Path, tmp_path: Path) -> None:
    edit = (BREAKS | OF_CONDITIONS)[name]
    assert _ended(tmp_path, library, *edit) != (1, SAID[library.stem], 1)
