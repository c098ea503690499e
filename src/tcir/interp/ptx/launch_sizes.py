"""Checks the sizes of a launch against the kernel's directives and the hardware's limits."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tcir.errors import LaunchError
from tcir.interp.ptx.launch import LaunchSizes
from tcir.interp.ptx.layout import AddressLayout
from tcir.interp.ptx.register_counts import SM_REGISTERS, allocated
from tcir.interp.ptx.syntax import Function
from tcir.target import DEFAULT_TARGET

#: Limits of one launch, compute capability 10.0 (CUDA C++ Programming Guide, "Technical
#: Specifications per Compute Capability").
MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_GRID = ((1 << 31) - 1, 65535, 65535)
MAX_CLUSTER = 16
#: CTAs of a simulated launch: with more it would not end in reasonable time.
MAX_CTAS = 1 << 24
#: Bytes of static shared memory for targets before sm_90.
MAX_STATIC = 48 << 10
#: Bytes of local memory a thread may use on this machine, far above what kernels declare.
MAX_LOCAL = 64 << 10


Size = Sequence[int] | int


def launch_sizes(
    function: Function,
    layout: AddressLayout,
    grid: Size,
    block: Size,
    cluster: Size,
    dynamic_smem: int,
) -> LaunchSizes:
    """Returns the sizes as triples. Raises LaunchError for sizes that the kernel or an SM does not
    allow.
    """
    sizes = LaunchSizes(
        checked_grid(grid),
        _triple(block, "block", MAX_BLOCK),
        _triple(cluster, "cluster", (MAX_CLUSTER,) * 3),
        dynamic_smem,
        layout.static_bytes + dynamic_smem,
    )
    _check_sizes(function, sizes)
    _check_memory(layout, sizes)
    return sizes


def checked_bytes(dynamic_smem: object) -> int:
    """Returns the number of bytes of dynamic shared memory. Raises LaunchError for an invalid
    number.
    """
    if not isinstance(dynamic_smem, int | np.integer):
        raise LaunchError(f"dynamic_smem: expected a number of bytes, got {dynamic_smem!r}")
    return int(dynamic_smem)


def check_static(target: str, layout: AddressLayout) -> None:
    """Raises LaunchError if ptxas 13.5 would reject the amount of static shared memory for the
    .target of the text.
    """
    number = re.match(r"sm_(\d+)", target)
    most = DEFAULT_TARGET.smem_per_cta if number and int(number[1]) >= 90 else MAX_STATIC
    if layout.static_bytes > most:
        raise LaunchError(
            f"static shared memory: expected at most {most} bytes, which ptxas accepts for "
            f"{target}, got {layout.static_bytes}; make it dynamic: .extern .shared"
        )


def checked_grid(grid: Size) -> tuple[int, int, int]:
    """Returns a grid as a triple. Raises LaunchError for an invalid or too large grid."""
    x, y, z = _triple(grid, "grid", MAX_GRID)
    if x * y * z > MAX_CTAS:
        raise LaunchError(
            f"grid: expected at most {MAX_CTAS} CTAs on this machine, got {x * y * z}"
        )
    return x, y, z


def _triple(value: object, what: str, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    several = isinstance(value, Sequence) or isinstance(value, np.ndarray) and value.ndim == 1
    numbers = tuple(value[:4]) if several else (value,)  # type: ignore[index]
    if not 1 <= len(numbers) <= 3 or not all(isinstance(n, int | np.integer) for n in numbers):
        raise LaunchError(f"{what}: expected one to three integers, got {value!r}")
    x, y, z = (int(n) for n in (*numbers, 1, 1)[:3])
    for axis, n, limit in zip("xyz", (x, y, z), limits, strict=True):
        if not 1 <= n <= limit:
            raise LaunchError(f"{what}.{axis}: expected 1..{limit}, got {n}")
    return x, y, z


def _check_sizes(function: Function, sizes: LaunchSizes) -> None:
    block, cluster, threads = sizes.block, sizes.cluster, sizes.threads
    if threads > MAX_THREADS:
        raise LaunchError(f"block: expected at most {MAX_THREADS} threads, got {threads}")
    if function.reqntid is not None and block != function.reqntid:
        raise LaunchError(f"block: expected .reqntid {function.reqntid}, got {block}")
    if function.maxntid is not None and threads > function.maxntid:
        raise LaunchError(f"block: expected at most .maxntid {function.maxntid}, got {threads}")
    registers = allocated(function)
    if registers and -(-threads // 32) * 32 * registers > SM_REGISTERS:
        raise LaunchError(
            f"block: expected at most {SM_REGISTERS // registers // 32 * 32} threads of "
            f"{registers} registers, which setmaxnreg shares out: an SM has {SM_REGISTERS}, got "
            f"{threads}; lower .maxnreg"
        )
    if cluster[0] * cluster[1] * cluster[2] > MAX_CLUSTER:
        raise LaunchError(f"cluster: expected at most {MAX_CLUSTER} CTAs, got {cluster}")
    if function.reqcluster is not None and cluster != function.reqcluster:
        raise LaunchError(
            f"cluster: expected .reqnctapercluster {function.reqcluster}, got {cluster}"
        )


def _check_memory(layout: AddressLayout, sizes: LaunchSizes) -> None:
    most = DEFAULT_TARGET.smem_per_cta
    if sizes.dynamic_smem < 0 or sizes.total_smem > most:
        raise LaunchError(
            f"shared memory: expected at most {most} bytes, got {layout.static_bytes} static "
            f"and {sizes.dynamic_smem} dynamic"
        )
    if layout.local_bytes > MAX_LOCAL:
        raise LaunchError(
            f"local memory: expected at most {MAX_LOCAL} bytes a thread on this machine, got "
            f"{layout.local_bytes}"
        )


def check_residency(ctas: int, sizes: LaunchSizes) -> None:
    """Raises LaunchError unless an SM has room for the required number of CTAs (CUDA C++
    Programming Guide, 10.0).
    """
    if not isinstance(ctas, int | np.integer):
        raise LaunchError(f"ctas_per_sm: expected a number of CTAs, got {ctas!r}")
    sm = DEFAULT_TARGET
    shared = sizes.total_smem + sm.smem_reserved
    for what, limit, each in (
        ("CTAs", 32, 1),
        ("threads", 2048, sizes.threads),
        ("bytes of shared memory, 1024 of a CTA's the driver's", sm.smem_per_sm, shared),
    ):
        if not 1 <= ctas <= limit // each:
            raise LaunchError(
                f"ctas_per_sm: expected 1 to {limit // each}, got {ctas}: an SM has {limit} {what}"
            )
