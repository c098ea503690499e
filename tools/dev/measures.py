"""Measures the source: sizes, uses of `Any`, and imports between folders (rooms). `make check`
compares the measures with ceilings.

::

    python -m tcir.tools.dev.measures              # this tree, against [tool.measures]
    python -m tcir.tools.dev.measures BEFORE AFTER # two checkouts, with the compile walk

Ceilings are in pyproject.toml. A function that numba compiles may have any number of parameters,
and keyword-only parameters of the functions in `tcir.__all__` are not counted; such functions are
listed.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from tcir.tools.dev.import_graph import ImportGraph

ROOT = Path(__file__).resolve().parents[2]
PARAMETERS = 8
COMPLEXITY = 15
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ROOMS = (
    "dialect", "emulation", "interp/ptx", "interp/tile", "machine", "passes", "pipelines",
    "program", "session", "time", "tools", "torch", "validation",
)  # fmt: skip
"""Folders whose code lines have a ceiling, with a few per cent of room."""
_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip
_CLASSED = re.compile(r"(arith|func|memref|scf|tensor|vector)\.[a-z_]+")
"""Names of upstream's ops that have a class (`dialect/upstream.py` has the others)."""
_FOLDERS = ("dialect", "passes", "pipelines", "tools")


@dataclass(frozen=True)
class MeasuredFunction:
    """A function and its place (``file:line``)."""

    name: str
    place: str
    lines: int
    counted: int  # parameters, but self, cls and keyword-only ones of public functions
    parameters: int  # but self and cls
    compiled: bool  # by numba

    def __str__(self) -> str:
        return f"{self.name} ({self.place})"


class Tree:
    """The sources of the package in a checkout, whose layout may be `src/tcir` or `tcir`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "src" / "tcir" if (root / "src").is_dir() else root / "tcir"

    @cached_property
    def sources(self) -> dict[Path, str]:
        """Every source of the package by its path inside the package."""
        folders = {name: self.root / name for name in _FOLDERS}
        found = {}
        for base, prefix in [(self.package, Path()), *((p, Path(n)) for n, p in folders.items())]:
            for path in sorted(base.rglob("*.py")):
                found[prefix / path.relative_to(base)] = path.read_text()
        return found

    @cached_property
    def files(self) -> dict[Path, ast.Module]:
        """Every source file, parsed to a syntax tree."""
        return {path: ast.parse(text) for path, text in self.sources.items()}

    def code_lines(self, room: str) -> int:
        """Number of lines of code of a room (folder): comments, docstrings and empty lines are not
        counted."""
        return sum(
            _code_lines(self.sources[path], tree)
            for path, tree in self.files.items()
            if path.is_relative_to(room)
        )

    def below(self, area: str) -> Iterator[ast.Module]:
        """The sources below a folder of the package."""
        return (tree for path, tree in self.files.items() if path.is_relative_to(area))

    def anys(self, area: str) -> int:
        """Number of uses of `Any` in the sources of a folder; imports of it are not counted."""
        nodes = (node for tree in self.below(area) for node in ast.walk(tree))
        return sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes)

    @cached_property
    def functions(self) -> list[MeasuredFunction]:
        """Every function of the package."""
        return [
            function
            for path, tree in self.files.items()
            for function in _functions(tree, path, self._public)
        ]

    @cached_property
    def _public(self) -> frozenset[str]:
        """Names in `tcir.__all__`."""
        for node in ast.walk(self.files[Path("__init__.py")]):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_EXPORTS":
                return frozenset(ast.literal_eval(node.value))
        raise ValueError(f"expected a table _EXPORTS in {self.package / '__init__.py'}")

    @cached_property
    def names_twice(self) -> dict[str, list[str]]:
        """Names of public classes that several files define, with the files."""
        found: dict[str, set[str]] = {}
        for path, tree in self.files.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, set()).add(str(path))
        return {name: sorted(files) for name, files in sorted(found.items()) if len(files) > 1}

    @cached_property
    def ops_by_name(self) -> list[str]:
        """Places in module-level tables that list an op by name although the op has a class. The
        folders interp/ and viz/ are left out, because rules that execute ops are registered by
        name, and pictures are drawn without MLIR's bindings."""
        ours = {
            f"tc.{ast.literal_eval(keyword.value)}"
            for tree in self.below("dialect/ops")
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for keyword in node.keywords
            if keyword.arg == "name"
        }
        return [
            f"{name} ({path}:{line})"
            for path, tree in self.files.items()
            if path.parts[0] not in ("interp", "viz")
            for name, line in _listed(tree)
            if name in ours or _CLASSED.fullmatch(name)
        ]

    @cached_property
    def complex(self) -> list[str]:
        """Functions with a cyclomatic complexity over 15, by ruff's count."""
        folders = [self.package, *(self.root / name for name in _FOLDERS)]
        words = ["-m", "ruff", "check", "--isolated", "--select=C901", "--output-format=json"]
        words += [f"--config=lint.mccabe.max-complexity={COMPLEXITY}", *map(str, folders)]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        found = {
            (item["filename"], item["location"]["row"]): item["message"]
            for item in json.loads(done.stdout)
        }
        return [
            f"{message} ({Path(file).relative_to(self.root)}:{line})"
            for (file, line), message in sorted(found.items())
        ]

    @cached_property
    def folders(self) -> Counter[str]:
        """Number of source files in each folder."""
        return Counter(str(path.parent) for path in self.files)

    @cached_property
    def imports(self) -> ImportGraph:
        """Import graph, including imports inside functions and for type checkers."""
        return ImportGraph("tcir", self.files)


def _listed(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Strings in tuples, lists, sets and keys of the module's constants, and their lines."""
    for statement in tree.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        for node in ast.walk(statement.value):
            if isinstance(node, ast.Dict):
                parts = [key for key in node.keys if key]
            else:
                parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []
            for part in parts:
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value, part.lineno


def _code_lines(text: str, tree: ast.Module) -> int:
    documented = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(code - documented)


def _functions(tree: ast.Module, path: Path, public: frozenset[str]) -> Iterator[MeasuredFunction]:
    def visit(node: ast.AST, open_: bool) -> Iterator[MeasuredFunction]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _FUNCTIONS):
                yield _function(child, path, open_ or child.name in public)
                yield from visit(child, False)
            else:
                inside = isinstance(child, ast.ClassDef) and child.name in public
                yield from visit(child, open_ or inside)

    return visit(tree, False)


def _function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, path: Path, public: bool
) -> MeasuredFunction:
    arguments = node.args
    taken = [*arguments.posonlyargs, *arguments.args]
    positional = sum(argument.arg not in ("self", "cls") for argument in taken)
    keywords = len(arguments.kwonlyargs)
    decorators = {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}
    public = public and (node.name == "__init__" or not node.name.startswith("_"))
    return MeasuredFunction(
        node.name,
        f"{path}:{node.lineno}",
        (node.end_lineno or node.lineno) - node.lineno + 1,
        positional + (0 if public else keywords),
        positional + keywords,
        not decorators.isdisjoint({"jit", "njit", "numba.njit"}),
    )


@dataclass(frozen=True)
class Measure:
    """One line of the table of measures: a number, and the places that contribute to it."""

    value: int
    detail: tuple[str, ...] = ()


def measures(tree: Tree) -> dict[str, Measure]:
    """All measures of a tree by name; ceilings in pyproject.toml use these names."""
    longest = max(tree.functions, key=lambda function: function.lines)
    plain = [function for function in tree.functions if not function.compiled]
    widest = max(plain, key=lambda function: function.counted)
    many = [function for function in plain if function.counted > PARAMETERS]
    fullest, count = tree.folders.most_common(1)[0]
    rooms = tree.imports.rooms("passes")
    arrows = tuple(f"{a} -> {b}: {n}" for (a, b), n in sorted(rooms.items()))
    cycles = {area: tree.imports.cycles(area) for area in ("passes", "machine", "interp/ptx")}
    return {
        "any-passes": Measure(tree.anys("passes")),
        "any-interp": Measure(tree.anys("interp")),
        "any-machine": Measure(tree.anys("machine")),
        "any-dialect": Measure(tree.anys("dialect")),
        "any-all": Measure(tree.anys("")),
        "longest-function": Measure(longest.lines, (str(longest),)),
        "most-parameters": Measure(widest.counted, (str(widest),)),
        "functions-over-8-parameters": Measure(len(many), tuple(f"{f.counted} {f}" for f in many)),
        "complexity-over-15": Measure(len(tree.complex), tuple(tree.complex)),
        "class-names-twice": Measure(
            len(tree.names_twice),
            tuple(f"{name}: {', '.join(files)}" for name, files in tree.names_twice.items()),
        ),
        "ops-by-name": Measure(len(tree.ops_by_name), tuple(tree.ops_by_name)),
        "fmt-skip": Measure(sum(text.count("# fmt: skip") for text in tree.sources.values())),
        "files-in-one-folder": Measure(count, (f"{fullest}/",)),
        "arrows-between-passes-rooms": Measure(len(rooms), arrows),
        **{
            f"cyclic-files-{area.replace('/', '-')}": Measure(sum(map(len, found)), _names(found))
            for area, found in cycles.items()
        },
        **{f"code-lines-{r.replace('/', '-')}": Measure(tree.code_lines(r)) for r in ROOMS},
    }


def _names(cycles: list[list[str]]) -> tuple[str, ...]:
    return tuple(" <-> ".join(cycle) for cycle in cycles)


def check(root: Path = ROOT) -> int:
    """Prints the measures next to their ceilings; returns 1 if a measure is above its ceiling."""
    tree = Tree(root)
    ceilings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["measures"]
    found = measures(tree)
    if found.keys() != ceilings.keys():
        print(f"[tool.measures]: expected {sorted(found)}, got {sorted(ceilings)}")
        return 1
    above = [name for name, measure in found.items() if measure.value > ceilings[name]]
    for name, measure in found.items():
        print(f"{name:30} {measure.value:5} of at most {ceilings[name]}")
    excepted = [f for f in tree.functions if f.parameters > PARAMETERS and f.counted < f.parameters]
    compiled = [f for f in tree.functions if f.compiled and f.parameters > PARAMETERS]
    print(f"over {PARAMETERS} parameters, compiled by numba: {', '.join(map(str, compiled))}")
    print(f"over {PARAMETERS} parameters with keyword-only ones: {', '.join(map(str, excepted))}")
    for name in above:
        print(f"\n{name}: expected at most {ceilings[name]}, got {found[name].value}")
        print("\n".join(f"  {line}" for line in found[name].detail))
    return int(bool(above))


def compare(roots: list[Path]) -> None:
    """Prints a Markdown table with one column for each checkout."""
    trees = [Tree(root.resolve()) for root in roots]
    columns = [{n: m.value for n, m in measures(tree).items()} | walk(tree) for tree in trees]
    print("| measure |", " | ".join(str(root) for root in roots), "|")
    print("|---|" + "---|" * len(roots))
    for name in columns[0]:
        print(f"| {name} |", " | ".join(str(column[name]) for column in columns), "|")


def walk(tree: Tree) -> dict[str, int]:
    """Counts stays, rooms, moves and climbs in the walk of `tcir.compile` through the folders of
    the package (`compile_walk`)."""
    script = Path(__file__).with_name("compile_walk.py")
    words = [sys.executable, "-P", str(script), str(tree.root)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    steps = json.loads(done.stdout)
    floors = tree.imports.floors()
    moves = [(a, b) for a, b in pairwise(steps) if a != b]
    return {
        "walk-stays": len(moves) + 1,
        "walk-rooms": len(set(steps)),
        "walk-moves": len(moves),
        "walk-climbs": sum(floors[b] > floors[a] for a, b in moves),
    }


def main(words: list[str] | None = None) -> int:
    """Checks this checkout, or compares the checkouts in `words`."""
    parser = argparse.ArgumentParser(description="Measures of the source.")
    parser.add_argument("roots", nargs="*", type=Path, help="checkouts to compare")
    roots = parser.parse_args(words).roots
    if roots:
        compare(roots)
        return 0
    return check()


if __name__ == "__main__":
    sys.exit(main())
