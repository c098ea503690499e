"""Object code: kept on disk, linked into this process.

A file is written next to the source, or in the user's cache directory where that is not possible;
where neither is, each process compiles for itself. It appears as a whole, and its checksum is
compared, so any number of processes may share it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from tcir.threads import LOCK

_CHECKSUM = 32
_LINKED: dict[str, llvm.ObjectFileRef] = {}


@cache
def target_machine() -> llvm.TargetMachine:
    """Of this computer."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = _processor()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


def code_key(*of: object) -> str:
    """Names the object code that is made of this by these versions for this processor."""
    versions = llvmlite.__version__, object.__basicsize__
    made = "\0".join(map(str, (*of, *versions, *_processor())))
    return hashlib.sha256(made.encode()).hexdigest()[:24]


def link(source: Path, name: str, make: Callable[[], bytes]) -> None:
    """Links the object code `name`, which ``make()`` compiles where none is kept for `source`."""
    with LOCK:
        if name in _LINKED:
            return
        code = _read(source, name)
        if code is None:
            code = make()
            _write(source, name, code)
        _LINKED[name] = llvm.ObjectFileRef.from_data(code)
        _engine().add_object_file(_LINKED[name])
        _engine().finalize_object()


def assembled(text: str) -> bytes:
    """Object code of LLVM IR."""
    module = llvm.parse_assembly(text)
    module.verify()
    return bytes(target_machine().emit_object(module))


def address(symbol: str) -> int:
    """Of what has been linked."""
    with LOCK:
        return int(_engine().get_function_address(symbol))


@cache
def _processor() -> tuple[str, str]:
    with LOCK:  # llvmlite has one of its own, which no child may find held
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _engine() -> llvm.ExecutionEngine:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())


def _folders(source: Path) -> list[Path]:
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    beside = [source.parent / "__pycache__"] if source.is_file() else []
    return [*beside, Path(user) / "tcir" / "native"]


def _read(source: Path, name: str) -> bytes | None:
    for folder in _folders(source):
        try:
            content = (folder / f"{name}.o").read_bytes()
        except OSError:
            continue
        code, checksum = content[:-_CHECKSUM], content[-_CHECKSUM:]
        if hashlib.sha256(code).digest() == checksum:
            return code
    return None


def _write(source: Path, name: str, code: bytes) -> None:
    for folder in _folders(source):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=folder)
        except OSError:
            continue
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(code + hashlib.sha256(code).digest())
            os.chmod(draft, 0o644)
            os.replace(draft, folder / f"{name}.o")
            return
        except OSError:
            Path(draft).unlink(missing_ok=True)
