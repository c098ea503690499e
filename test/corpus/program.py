"""A program of the corpus: a file of PTX or CUDA C++ whose first comment says what it does and what
to expect.

    // Reverses 32 words through shared memory: each lane reads what another lane stored.
    // class:      lanes
    // missing:    bar.warp.sync between the stores and the loads
    // source:     PTX ISA 9.7.13.2 "bar.warp.sync", 8.7.1 "Conflict and data-races"
    // launch:     grid=1, block=32
    // arg x:      np.arange(32, dtype=np.uint32)
    // arg out:    undefined(32, np.uint32)
    // expect out: x[::-1]
    // silicon:    error race
    // isa:        error race

`launch` holds keywords of `run_ptx`; `arg` and `expect` are numpy expressions, `expect` over the
arguments as they were before the launch. A buffer without an `expect` has to keep its bytes; one
whose values are open says `any`. `buffer` is an argument that only tensor maps name.
`silicon` and `isa` are the outcome under the two profiles of ordering: `clean`, or a severity and
the kinds of finding that count, any of them (`race|deadlock`, `*` for all; `values`: those of the
buffers are not as expected). Right programs may name
a warning, and have to have it where `isa` names an error; wrong ones name an error, or a warning
where only the documents forbid the program.

A wrong program holds its legal twin: `// EDGE: text` lines come in, lines ending in `// WRONG` go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tcir.machine import TensorMap
from tcir.run import RunReport, Uninitialized, run_ptx

from .compile import compiled

HERE = Path(__file__).parent
FIELD = re.compile(r"// ([a-z]+)(?: (\w+))?: +(\S.*)")
FIELDS = {"class", "missing", "source", "launch", "arg", "buffer", "expect", "silicon", "isa"}

#: Warp instructions before a run is given up: the longest right program takes a fifth of it.
BUDGET = 30_000


def undefined(shape: Any, dtype: Any) -> Uninitialized:
    """A buffer that has to be written before it is read."""
    return Uninitialized(np.zeros(shape, dtype))


def tiled(array: np.ndarray, box: list[int], swizzle: str = "NONE", **options: Any) -> TensorMap:
    """A tensor map over a C-contiguous array; `box` innermost first."""
    names = {"float16": "f16", "float32": "f32", "uint8": "u8", "uint16": "u16", "uint32": "u32"}
    return TensorMap.tiled(
        array,
        dtype=options.pop("dtype", None) or names[array.dtype.name],
        dims=options.pop("dims", None) or array.shape[::-1],
        strides_bytes=options.pop("strides_bytes", None) or array.strides[-2::-1],
        box=box,
        swizzle=swizzle,
        **options,
    )


def ints(rows: int, columns: int, start: int = 0) -> np.ndarray:
    """A float16 matrix of numbers from -3 to 3: their sums are exact."""
    i, j = np.indices((rows, columns))
    return ((7 * i + 3 * j + i * j + start) % 7 - 3).astype(np.float16)


def core(matrix: np.ndarray) -> np.ndarray:
    """A [rows, k] operand as tcgen05.mma reads it K-major without swizzle.

    8 rows of 16 bytes lie together; behind them the next 8 rows (SBO 128), then the next 16 bytes
    of k (LBO 16·rows).
    """
    rows, k = matrix.shape
    unit = 16 // matrix.itemsize
    return matrix.reshape(rows // 8, 8, k // unit, unit).transpose(2, 0, 1, 3).copy()


NAMES = {
    "np": np,
    "ml_dtypes": ml_dtypes,
    "range": range,
    "ints": ints,
    "core": core,
    "tiled": tiled,
    "undefined": undefined,
}


@dataclass
class Outcome:
    """What a profile expects: no finding, or one of `kinds` with `severity`."""

    severity: str
    kinds: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> Outcome:
        severity, _, kinds = text.partition(" ")
        if severity not in ("clean", "warning", "error"):
            raise ValueError(f"expected clean, warning or error, got {severity!r}")
        return cls(severity, frozenset(kinds.strip().split("|")) - {""})

    def names(self, severity: str, kind: str) -> bool:
        return severity == self.severity and (kind in self.kinds or "*" in self.kinds)


@dataclass(eq=False)
class Program:
    path: Path
    what: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    args: dict[str, str] = field(default_factory=dict)
    buffers: set[str] = field(default_factory=set)
    expect: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def wrong(self) -> bool:
        return self.path.parent.name == "wrong"

    @cached_property
    def text(self) -> str:
        """Its PTX."""
        return compiled(self.path) if self.path.suffix == ".cu" else self.path.read_text()

    @cached_property
    def twin(self) -> str:
        """The program with the edge; line numbers stay."""
        lines = self.text.splitlines()
        for n, line in enumerate(lines):
            if line.rstrip().endswith("// WRONG"):
                lines[n] = ""
            lines[n] = re.sub(r"//\s*EDGE: ", "", lines[n])
        return "\n".join(lines) + "\n"

    @property
    def unpromised(self) -> bool:
        """Whether it relies on what only shipping code proves: both profiles have to say so."""
        return self.outcome("silicon") != self.outcome("isa")

    def outcome(self, profile: str) -> Outcome:
        return Outcome.parse(self.fields[profile])

    def run(self, text: str, seed: int | None, **options: Any) -> tuple[RunReport, list[str]]:
        """The report, and what is wrong with the buffers afterwards, one line each."""
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        for name, expression in self.args.items():
            scope = NAMES | {n: _buffer(v) for n, v in after.items()}
            after[name] = eval(expression, scope)
            before[name] = _buffer(after[name])
            if isinstance(before[name], np.ndarray):
                before[name] = before[name].copy()
        sizes = eval(f"dict({self.fields['launch']})", dict(NAMES))
        report = run_ptx(
            text,
            args=[v for n, v in after.items() if n not in self.buffers],
            order_seed=seed,
            max_instructions=BUDGET,
            **sizes,
            **options,
        )
        wrong = []
        for name, value in after.items():
            got = _buffer(value)
            if not isinstance(got, np.ndarray) or isinstance(value, TensorMap):
                continue
            if self.expect.get(name) == "any":
                continue
            want = eval(self.expect[name], NAMES | before) if name in self.expect else before[name]
            want = np.broadcast_to(np.asarray(want), got.shape)
            if not np.array_equal(got, want.astype(got.dtype), equal_nan=got.dtype.kind == "f"):
                wrong.append(f"{name}: expected {want.ravel()[:8]}…, got {got.ravel()[:8]}…")
        return report, wrong


def _buffer(value: Any) -> Any:
    return value.array if isinstance(value, Uninitialized) else value


def read(path: Path) -> Program:
    """The program of a file; ValueError says what its first comment lacks."""
    program = Program(path)
    for line in path.read_text().splitlines():
        if not line.startswith("//"):
            break
        found = FIELD.fullmatch(line.rstrip())
        if not found or found[1] not in FIELDS:
            program.what += line[2:].strip() + " "
        elif found[1] in ("arg", "buffer"):
            program.args[found[2]] = found[3]
            if found[1] == "buffer":
                program.buffers.add(found[2])
        elif found[1] == "expect":
            program.expect[found[2]] = found[3]
        else:
            program.fields[found[1]] = found[3]
    optional = {"arg", "buffer", "expect"} | (set() if program.wrong else {"missing", "source"})
    lacking = FIELDS - optional - set(program.fields)
    if lacking or not program.what.strip():
        raise ValueError(f"{path}: expected {', '.join(sorted(lacking)) or 'what it does'}")
    return program


def programs(folder: str) -> list[Program]:
    paths = [*(HERE / folder).glob("*.ptx"), *(HERE / "cuda" / folder).glob("*.cu")]
    return [read(path) for path in sorted(paths, key=lambda path: path.stem)]


def find(name: str) -> Program:
    """The program called `right/NAME` or `wrong/NAME`."""
    path = HERE / f"{name}.ptx"
    return read(path if path.exists() else HERE / "cuda" / f"{name}.cu")


def outcomes(report: RunReport) -> list[tuple[str, str]]:
    """(severity, kind) of all that was found; an illegal act is an error."""
    found = [(f.severity, f.code) for f in report.findings]
    found += [("error", e.code) for e in report.errors]
    return found + [("error", f"incomplete: {i.instruction}") for i in report.incomplete]


def verdict(case: Case, order: int | None, profile: str = "silicon") -> str:
    """Describes an error in the machine's verdict on the case; "" if there is none."""
    program = case.program
    report, wrong = program.run(case.text, order, ordering=profile)
    found = outcomes(report)
    if case.kind == "wrong":
        expected = program.outcome(profile)
        found += [("error", "values")] * bool(wrong)
        if any(expected.names(*outcome) for outcome in found):
            return ""
        wanted = f"{expected.severity} {'|'.join(sorted(expected.kinds))}"
        return f"missed: expected {wanted}, got {found or 'no finding'}"
    expected = program.outcome(profile) if case.kind == "right" else Outcome("clean", frozenset())
    if case.kind == "right" and program.unpromised and not any(expected.names(*f) for f in found):
        return f"missed: expected {expected.severity}, got {found or 'no finding'}"
    unexpected = sorted({outcome for outcome in found if not expected.names(*outcome)})
    if unexpected:
        return f"falsely reported: {unexpected}\n{report}"
    if expected.severity == "error":
        return ""  # another order, which the documents allow, gives other values
    return f"wrong values: {wrong[0]}" if wrong else ""


@dataclass(frozen=True)
class Case:
    """One text to run: a right program, a wrong one, or the legal twin of a wrong one."""

    kind: str
    program: Program

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.program.name}"

    @property
    def text(self) -> str:
        return self.program.twin if self.kind == "twin" else self.program.text


def cases() -> list[Case]:
    right = [Case("right", program) for program in programs("right")]
    wrong = [Case(kind, program) for program in programs("wrong") for kind in ("wrong", "twin")]
    return right + wrong


PROFILES = ("silicon", "isa")
"""The profiles of ordering."""


@dataclass(frozen=True)
class Gap:
    """A case on which today's machine is wrong: in which orders (None: all, by both profiles)."""

    orders: frozenset[str] | None
    why: str

    def covers(self, order: str) -> bool:
        """`order` as in gaps.txt; those of another profile than silicon begin with its name."""
        return self.orders is None or order in self.orders


def gaps() -> dict[str, Gap]:
    """Case name -> gap: the lines `NAME ORDERS WHY` of gaps.txt."""
    found = {}
    for line in (HERE / "gaps.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, orders, why = line.split(maxsplit=2)
            found[name] = Gap(None if orders == "all" else frozenset(orders.split(",")), why)
    return found


def order_name(order: int | None) -> str:
    return "issued" if order is None else str(order)
