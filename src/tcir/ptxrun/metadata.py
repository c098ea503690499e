"""Reads launch sizes of a kernel from files that its compiler wrote next to the PTX.

Triton and Gluon: `NAME.json` next to `NAME.ptx` in Triton's cache folder: `name`, `num_warps` and
`warp_size` (or `target.warp_size`), `num_ctas` (CTAs of a cluster; formerly also `cluster_dims`),
`shared` (dynamic shared memory in bytes), `launch_pdl`, `tensordesc_meta` (descriptor arguments),
and the sizes of the scratch buffers whose pointers are the kernel's last parameters.

CuTe DSL: `cute_dsl_NAME_clean.mlir` next to `NAME.sm_100a.ptx`, both of which it writes when
`CUTE_DSL_KEEP=ir,ptx` is set: `cuda.launch_cfg.create` with the block, the grid and the dynamic
shared memory, `cuda.launch_cfg.cluster_dim`. A size in this file is used only if it is a constant;
the dynamic shared memory often is not constant (`cute.kernel_smem_size`).

Any PTX: `.reqntid` and `.reqnctapercluster` of the entry (PTX ISA 11.4).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tcir.files import read_bytes, read_text
from tcir.interp.ptx.parser import parse
from tcir.ptxrun.tensor_descriptors import check_metadata
from tcir.run import LaunchError, entry_name

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class LaunchMetadata:
    """Launch sizes in CTAs, threads and bytes; None: unknown.

    scratch:      bytes per CTA of each buffer whose pointer the compiler appended to the parameters
    programmatic: as the flag --programmatic of tc-run
    descriptors:  entries of `tensordesc_meta`, which describe descriptor arguments
    parameters:   number of parameters of the entry
    unknown:      the size that the files do not state, and why
    """

    sources: tuple[str, ...] = ()
    entry: str | None = None
    grid: Sizes | None = None
    block: Sizes | None = None
    cluster: Sizes | None = None
    dynamic_smem: int | None = None
    scratch: tuple[int, ...] = ()
    programmatic: bool = False
    descriptors: tuple[Mapping[str, object], ...] = ()
    parameters: int = 0
    unknown: str | None = None

    def scratch_arguments(self, given: int, ctas: int) -> list[np.ndarray | np.uint64]:
        """Arguments for the scratch parameters that the compiler appended, if the caller gave all
        arguments but these: a buffer for each parameter, or null for an empty buffer.
        """
        if given + len(self.scratch) != self.parameters:
            return []
        return [np.zeros(n * ctas, np.uint8) if n else np.uint64(0) for n in self.scratch]

    def __str__(self) -> str:
        said = [
            f"{name} {','.join(map(str, value)) if isinstance(value, tuple) else value}"
            for name in ("entry", "grid", "block", "cluster", "dynamic_smem")
            if (value := getattr(self, name)) is not None
        ]
        return f"{' and '.join(self.sources)}: {'; '.join(said)}"


def _triton(path: Path) -> LaunchMetadata | None:
    try:
        fields = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise LaunchError(f"{path}: {error}; remove it or launch a copy of the PTX") from None
    if not isinstance(fields, dict) or "num_warps" not in fields:
        return None

    def number(name: str, otherwise: int) -> int:
        value = fields.get(name, otherwise)
        if not isinstance(value, int) or value < 0:
            raise LaunchError(f"{path}: {name}: expected a number, got {value!r}")
        return value

    pointers = ("global_scratch_size", "profile_scratch_size")
    target = fields.get("target")
    lanes = target.get("warp_size", 32) if isinstance(target, dict) else 32
    ctas = number("num_ctas", 1)
    dims = fields.get("cluster_dims") or [ctas, 1, 1]
    if not (isinstance(dims, list) and len(dims) == 3 and all(type(n) is int for n in dims)):
        raise LaunchError(f"{path}: cluster_dims: expected three numbers, got {dims!r}")
    if dims == [1, 1, 1]:
        dims = [ctas, 1, 1]
    return LaunchMetadata(
        sources=(path.name,),
        entry=str(fields["name"]) if "name" in fields else None,
        block=(number("num_warps", 0) * number("warp_size", lanes), 1, 1),
        cluster=tuple(dims),
        dynamic_smem=number("shared", 0),
        scratch=tuple(number(name, 0) for name in pointers if name in fields),
        programmatic=bool(fields.get("launch_pdl")),
        descriptors=check_metadata(fields.get("tensordesc_meta") or []),
    )


_CONSTANT = re.compile(r"(%\w+) = arith\.constant (\d+) : i(?:32|64)\b")


def _cute(path: Path) -> LaunchMetadata | None:
    text = read_text(path)
    configurations = re.findall(r"cuda\.launch_cfg\.create.*", text)
    kernels = re.findall(r"cuda\.launch_ex @\w+::@(\w+)", text)
    if len(configurations) != 1 or len(kernels) != 1:  # several launches: which one is not ours
        return None
    host = text[text.rindex("func.func", 0, text.index(configurations[0])) :]
    constants = {name: int(value) for name, value in _CONSTANT.findall(host)}

    def sizes(pattern: str, where: str) -> Sizes | None:
        found = re.search(pattern, where)
        names = [name.strip() for name in found[1].split(",")] if found else []
        numbers = [constants[name] for name in names if name in constants]
        return tuple(numbers) if names and len(numbers) == len(names) else None

    smem = sizes(r"dynamicSmemBytes = (%\w+)", configurations[0])
    return LaunchMetadata(
        sources=(path.name,),
        entry=kernels[0],
        grid=sizes(r"gridDim = \(([^)]*)\)", configurations[0]),
        block=sizes(r"blockDim = \(([^)]*)\)", configurations[0]),
        cluster=sizes(r"cuda\.launch_cfg\.cluster_dim\[%\w+\] \(([^)]*)\)", host),
        dynamic_smem=None if smem is None else smem[0],
        unknown="the dynamic shared memory, which CuTe DSL computes later"
        if smem is None
        else None,
    )


def _next_to(path: Path) -> LaunchMetadata | None:
    stem = path.name.removesuffix(".ptx")
    triton = path.with_name(f"{stem}.json")
    cute = path.with_name(f"cute_dsl_{re.sub(r'[.]sm_[0-9a-z]+$', '', stem)}_clean.mlir")
    if triton.exists():
        return _triton(triton)
    return _cute(cute) if cute.exists() else None


def launch_metadata(path: Path | None, ptx: str, entry: str | None) -> LaunchMetadata:
    """Launch sizes from the files next to `path` and from the directives of the entry.

    entry: the requested entry; files about another entry are skipped

    Raises LaunchError for files that cannot be read and for modules without that entry; raises
    PtxSyntaxError.
    """
    found = _next_to(path) if path else None
    if found is None or (entry is not None and found.entry != entry):
        found = LaunchMetadata()
    function = parse(ptx).functions[entry_name(ptx, entry or found.entry)]
    directives = function.reqntid is not None or function.reqcluster is not None
    return LaunchMetadata(
        sources=(*found.sources, *(["the entry's directives"] if directives else [])),
        entry=entry or found.entry,
        grid=found.grid,
        block=found.block or function.reqntid,
        cluster=found.cluster or function.reqcluster,
        dynamic_smem=found.dynamic_smem,
        scratch=found.scratch,
        programmatic=found.programmatic,
        descriptors=found.descriptors,
        parameters=len(function.params),
        unknown=found.unknown,
    )
