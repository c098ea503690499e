"""Native object code: cached on disk, and linked into this process.

The cache file is next to the source file, or in the user's cache directory if the source's
directory is not writable. If neither directory is writable, each process compiles its own code.
Because the linked code is executed, the cache is a `tcir.cache.store.Store`, which accepts no file
that another user may have written.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from tcir.cache.store import Store, cache_store
from tcir.threads import LOCK

_LINKED: dict[str, llvm.ObjectFileRef] = {}


@cache
def target_machine() -> llvm.TargetMachine:
    """LLVM's target machine for the processor of this computer."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = _processor()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


def code_key(*of: object) -> str:
    """Cache key of object code: a digest of `of`, the version of llvmlite, the size of Python's
    object header, and the processor.
    """
    versions = llvmlite.__version__, object.__basicsize__
    made = "\0".join(map(str, (*of, *versions, *_processor())))
    return hashlib.sha256(made.encode()).hexdigest()[:40]


def link(source: Path, name: str, make: Callable[[], bytes]) -> None:
    """Links the object code called `name`; if the cache has none for `source`, ``make()`` compiles
    it.
    """
    link_all(source, {name: make})


def link_all(source: Path, made: Mapping[str, Callable[[], bytes]]) -> None:
    """Links several functions together, so that their code is adjacent in memory. If each function
    had a memory page of its own, the functions would compete for the same lines of the processor's
    cache.
    """
    with LOCK:
        new = [name for name in made if name not in _LINKED]
        for name in new:
            code = _kept(source, name)
            if code is None:
                code = made[name]()
                _keep(source, name, code)
            _LINKED[name] = llvm.ObjectFileRef.from_data(code)
            _engine().add_object_file(_LINKED[name])
        if new:
            _engine().finalize_object()


def link_texts(source: Path, texts: Mapping[str, str]) -> None:
    """Compiles and links functions given as LLVM IR, by name, adjacent in memory as `link_all`
    does.
    """
    link_all(
        source,
        {f"{name}-{code_key(text)}": partial(_assembled, text) for name, text in texts.items()},
    )


def _assembled(text: str) -> bytes:
    """Object code of LLVM IR."""
    module = llvm.parse_assembly(text)
    module.verify()
    return bytes(target_machine().emit_object(module))


def address(symbol: str) -> int:
    """Address of a linked function."""
    with LOCK:
        return int(_engine().get_function_address(symbol))


@cache
def converts_half() -> bool:
    """Whether this processor can convert half to float; if it cannot, LLVM would emit a call to a
    library function.
    """
    return "+f16c" in _processor()[1].split(",")


@cache
def _processor() -> tuple[str, str]:
    with LOCK:  # llvmlite has one of its own, which no child may find held
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _engine() -> llvm.ExecutionEngine:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())


def _stores(source: Path) -> list[Store]:
    """Where code of a source file is kept: beside it, where what its owner wrote counts, as who
    owns the source decides what runs; else in the user's cache directory."""
    with contextlib.suppress(OSError):
        found = source.stat()
        beside = source.parent / "__pycache__" / "native"
        return [Store(beside, owners=frozenset({found.st_uid})), cache_store("native")]
    return [cache_store("native")]


def _kept(source: Path, name: str) -> bytes | None:
    key = _key(name)
    return next(filter(None, (store.get(key) for store in _stores(source))), None)


def _keep(source: Path, name: str, code: bytes) -> None:
    """Keeps it in the first place that takes it."""
    key = _key(name)
    for store in _stores(source):
        store.put(key, code)
        if store.get(key) is not None:
            return


def _key(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
