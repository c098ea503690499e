"""Launch files: JSON files stored next to a PTX file, which describe its launches, so that it can
be run given only arrays.

`tc-opt --emit=ptx -o k.ptx` writes `k.json`, and `tc-run k.ptx` reads it.
docs/reference/launch-file.md describes the format, also for other launchers.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tcir.errors import InputError
from tcir.files import open_regular, read_bytes
from tcir.interp import OutputSpec
from tcir.program.launch import Launch, LaunchSequence
from tcir.program.memory_image import image_spec
from tcir.program.signature import Signature
from tcir.program.workspaces import Workspaces

if TYPE_CHECKING:
    from tcir.interp.types import Array

FORMAT, VERSION = "tcir launch", 1
ACCESSES = ("read", "write", "read-write")
_SIZES = ("grid", "block", "cluster")
_OURS = re.compile(rf'\s*\{{\s*"format"\s*:\s*"{FORMAT}"')
_PAGE = "docs/reference/launch-file.md"
_MAP_KEYS = {"strides": "strides_bytes"}


def check_place(path: Path) -> None:
    """Raises InputError if a launch file would overwrite a file that is not a launch file."""
    if path.is_file():
        with open_regular(path) as file:
            ours = _OURS.match(file.read(100).decode(errors="replace"))
        if not ours:
            raise InputError(
                f"cannot write '{path}', the launch file next to the PTX: another file has this "
                "name and is kept; give the PTX another name, or move that file away"
            )


@dataclass(frozen=True)
class Argument:
    """An argument of the caller, or a constant. It is an array, or a scalar (without a shape).

    access: how the kernels access the argument, see `ACCESSES`
    data:   memory image of a constant, which no caller passes; None for other arguments
    """

    name: str
    spec: OutputSpec
    access: str
    scalar: bool = False
    data: Array | None = field(default=None, compare=False)

    @property
    def words(self) -> str:
        """Name and type, such as "a: float16[128, 64]"."""
        shape = "" if self.scalar else list(self.spec.shape)
        return f"{self.name}: {self.spec.dtype.name}{shape}"


@dataclass(frozen=True)
class LaunchFile:
    """The arguments of a program, and its launches."""

    arguments: tuple[Argument, ...]
    launches: LaunchSequence
    target: str = ""

    @staticmethod
    def of(signature: Signature, launches: LaunchSequence, target: str) -> LaunchFile:
        """Returns the launch file of a compiled program: its inputs, its constants, its results."""
        inputs = [Argument(f"input{n}", s, "read") for n, s in enumerate(signature.inputs)]
        results = [Argument(f"result{n}", s, "write") for n, s in enumerate(signature.outputs)]
        constants = [
            Argument(f"constant{n}", OutputSpec(each.shape, each.dtype), "read", data=each)
            for n, each in enumerate(launches.constants)
        ]
        return LaunchFile((*inputs, *constants, *results), launches, target)

    def text(self) -> str:
        """Returns the file's text, JSON."""
        fields = {
            "format": FORMAT,
            "version": VERSION,
            "target": self.target,
            "arguments": [
                {
                    "name": a.name,
                    "dtype": a.spec.dtype.name,
                    **({} if a.scalar else {"shape": list(a.spec.shape), "access": a.access}),
                    **({} if a.data is None else {"data": _encoded(a.data)}),
                }
                for a in self.arguments
            ],
            "workspaces": list(self.launches.workspaces.sizes),
            "workspace_offsets": list(self.launches.workspaces.offsets),
            "launches": [
                {
                    "entry": launch.name,
                    **({"symbol": launch.symbol} if launch.symbol else {}),
                    **{name: list(getattr(launch, name)) for name in _SIZES},
                    "dynamic_smem": launch.dynamic_smem,
                    "programmatic": launch.programmatic,
                    **({"unwritten": True} if launch.unwritten else {}),
                    "params": [_param(p) for p in launch.params],
                }
                for launch in self.launches.launches
            ],
        }
        text = json.dumps(fields, indent=1)
        lists = re.sub(r"\[\s+(-?\d[^]{}]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)
        return f"{lists}\n"

    @staticmethod
    def read(path: Path) -> LaunchFile | None:
        """Reads a launch file; None if the JSON file is not a launch file. Raises InputError for an
        invalid file.
        """
        try:
            fields = json.loads(read_bytes(path))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: {error}; remove it or launch a copy of the PTX") from None
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            return None
        if fields.get("version") != VERSION:
            raise InputError(f"{path}: expected version {VERSION}, got {fields.get('version')!r}")
        try:
            arguments = tuple(_argument(n, each) for n, each in enumerate(fields["arguments"]))
            launches = tuple(_launch(each) for each in fields["launches"])
            spaces = _workspaces(fields)
        except KeyError as error:
            raise InputError(f"{path}: expected the field {error}, see {_PAGE}") from None
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(f"{path}: {error}, see {_PAGE}") from None
        result = next((a for a in arguments if a.access != "read" and 0 not in a.spec.shape), None)
        if not launches and (result is not None or not arguments):
            name = "" if result is None else f" that writes {result.name}"
            raise InputError(f"{path}: expected a launch{name}, got none")
        known = len(arguments) + len(spaces.sizes)
        for launch in launches:
            strange = [n for n in launch.buffers if not 0 <= n < known]
            if strange:
                raise InputError(
                    f"{path}: @{launch.name}: expected arguments 0 to {known - 1}, workspaces "
                    f"included, got {strange[0]}"
                )
        spaces.check([(each.name, each.buffers) for each in launches], len(arguments))
        return LaunchFile(arguments, LaunchSequence(launches, spaces), fields.get("target", ""))


def _workspaces(fields: Mapping[str, Any]) -> Workspaces:
    sizes = tuple(int(n) for n in fields.get("workspaces", ()))
    offsets = fields.get("workspace_offsets")
    if offsets is None:
        return Workspaces.apart(sizes)
    return Workspaces(sizes, tuple(int(n) for n in offsets))


def _param(param: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a launch's parameter with the file's field names."""
    words = {_MAP_KEYS.get(key, key): value for key, value in param.items() if key != "arg"}
    return (
        {"kind": words.pop("kind"), "argument": param["arg"], **words} if "arg" in param else words
    )


def _argument(number: int, fields: Mapping[str, Any]) -> Argument:
    name, access = str(fields.get("name", f"argument {number}")), fields.get("access", "read")
    if access not in ACCESSES:
        raise InputError(f"{name}: expected access {' or '.join(ACCESSES)}, got {access!r}")
    word, shape = fields["dtype"], fields.get("shape")
    sizes = tuple(int(n) for n in shape or ())
    spec = OutputSpec(sizes, _dtype(name, word))
    data = _decoded(name, spec, access, fields["data"]) if "data" in fields else None
    return Argument(name, spec, access, shape is None, data)


def _dtype(name: str, word: object) -> np.dtype[Any]:
    """Returns the number type called `word`; ValueError if there is none."""
    try:
        found = np.dtype(getattr(ml_dtypes, str(word), str(word)))
    except (TypeError, ValueError, SyntaxError):
        found = np.dtype("V")
    if not isinstance(word, str) or not (hasattr(ml_dtypes, found.name) or found.kind in "biuf"):
        raise ValueError(f"{name}: expected a dtype such as float16 or float8_e4m3fn, got {word!r}")
    return found


def _encoded(array: Array) -> str:
    return b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _decoded(name: str, spec: OutputSpec, access: str, data: object) -> Array:
    """Decodes the memory image of a constant."""
    if access != "read":
        raise ValueError(f"{name}: expected access read of an argument with data, got {access!r}")
    image = image_spec(spec)
    nbytes = prod(image.shape) * image.dtype.itemsize
    raw = b64decode(str(data), validate=True)
    if len(raw) != nbytes:
        raise ValueError(f"{name}: expected {nbytes} bytes of data, got {len(raw)}")
    return np.frombuffer(raw, image.dtype).reshape(image.shape)


def _launch(fields: Mapping[str, Any]) -> Launch:
    def sizes(name: str) -> tuple[int, int, int]:
        given: Sequence[int] = fields.get(name, (1, 1, 1)) if name == "cluster" else fields[name]
        x, y, z = (*(int(n) for n in given), 1, 1, 1)[:3]
        return x, y, z

    params = []
    for param in fields["params"]:
        words = {key: value for key, value in param.items() if key != "argument"}
        if param["kind"] not in ("pointer", "tensor_map", "value", "workspace"):
            raise InputError(
                "params: expected kind pointer, tensor_map, value or workspace, got "
                f"{param['kind']!r}"
            )
        if param["kind"] != "workspace" and type(param["argument"]) is not int:
            raise ValueError(f"params: argument: expected a number, got {param['argument']!r}")
        params.append(
            words if param["kind"] == "workspace" else {**words, "arg": param["argument"]}
        )
    return Launch(
        str(fields["entry"]), sizes("grid"), sizes("block"), int(fields.get("dynamic_smem", 0)),
        tuple(params), sizes("cluster"), bool(fields.get("programmatic", False)),
        str(fields.get("symbol", "")), bool(fields.get("unwritten", False)),
    )  # fmt: skip
