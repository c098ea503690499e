"""Limits of a launch in the CUDA runtime, and their queries by programs."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache

from tcir.codegen.cubin import assemble
from tcir.errors import Error, LaunchError
from tcir.interp.ptx.layout import lay_out
from tcir.interp.ptx.register_counts import MOST, SM_REGISTERS
from tcir.interp.ptx.syntax import Function
from tcir.run import parsed, ptx_target
from tcir.target import DEFAULT_TARGET, Target, simulated
from tcir.time import ctas_per_sm

INVALID_VALUE, OUT_OF_RESOURCES, TOO_LARGE, INVALID_CLUSTER = 1, 701, 720, 912
"""Values of cudaError_t."""
DYNAMIC_SHARED, NON_PORTABLE_CLUSTER = 8, 14
"""Values of cudaFuncAttribute."""
SHARED_BY_DEFAULT, PORTABLE_CLUSTER = 48 << 10, 8
"""Bytes of shared memory, and CTAs of a cluster, for a kernel without an explicit larger limit
(CUDA C++ Programming Guide, "Shared Memory" of compute capability 10.0, and "Thread Block
Clusters")."""
_Triple = tuple[int, int, int]


class RefusedError(LaunchError):
    """Raised for a launch, or a value of an attribute, that the CUDA runtime rejects.

    cuda: the runtime's cudaError_t
    """

    def __init__(self, message: str, cuda: int) -> None:
        super().__init__(message)
        self.cuda = cuda


@dataclass
class Limits:
    """The limits of one kernel's launches.

    dynamic:      maximum bytes of dynamic shared memory; None: 48 KB minus static shared memory
    non_portable: whether clusters of more than 8 CTAs were requested
    """

    ptx: str
    name: str
    dynamic: int | None = None
    non_portable: bool = False

    def set(self, attribute: int, value: int) -> None:
        """Sets an attribute as cudaFuncSetAttribute does. Raises RefusedError for a value out of
        range.
        """
        if attribute == DYNAMIC_SHARED:
            most = DEFAULT_TARGET.smem_per_cta - self.static
            if not 0 <= value <= most:
                raise RefusedError(
                    f"cudaFuncAttributeMaxDynamicSharedMemorySize: expected 0 to {most} bytes, "
                    f"got {value}: a CTA has at most {DEFAULT_TARGET.smem_per_cta} bytes of shared "
                    f"memory, of which {self.static} are static",
                    INVALID_VALUE,
                )
            self.dynamic = value
        if attribute == NON_PORTABLE_CLUSTER:
            self.non_portable = bool(value)

    def check(self, block: _Triple, cluster: _Triple, shared: int) -> None:
        """Raises RefusedError for a launch that exceeds these limits.

        shared: bytes of dynamic shared memory
        """
        most, why = SHARED_BY_DEFAULT - self.static, f"with {self.static} static, 48 KB in all"
        if self.dynamic is not None:
            most, why = self.dynamic, "the size that was requested"
        if shared > most:
            raise RefusedError(
                f"dynamic shared memory: expected at most {most} bytes, got {shared}: {why}; "
                "cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) "
                "requests more",
                INVALID_VALUE,
            )
        ctas, threads = math.prod(cluster), math.prod(block)
        if ctas > PORTABLE_CLUSTER and not self.non_portable:
            raise RefusedError(
                f"cluster: expected at most {PORTABLE_CLUSTER} CTAs, got {ctas}: not every GPU has "
                "room for more; cudaFuncSetAttribute(kernel, "
                "cudaFuncAttributeNonPortableClusterSizeAllowed, 1) allows up to 16",
                INVALID_CLUSTER,
            )
        bound = self._function.maxntid
        if bound is not None and threads > bound:
            raise RefusedError(
                f"block: expected at most {bound} threads, which __launch_bounds__ (.maxntid) "
                f"promises, got {threads}",
                INVALID_VALUE,
            )
        self._check_registers(threads)

    def _check_registers(self, threads: int) -> None:
        """Raises RefusedError if the registers of `threads` threads exceed those of an SM.

        Runs ptxas for the number, but only if it could be too large: a kernel with launch bounds
        always fits.
        """
        warps = -(-threads // 32)
        bounded = self._function.maxntid or self._function.reqntid
        if bounded or not SM_REGISTERS // MOST < 32 * warps <= 1024:
            return
        registers = _registers(self.ptx).get(self.name, 0)
        if (most := SM_REGISTERS // (-(-registers // 8) * 8 or 1) // 32 * 32) < threads:
            raise RefusedError(
                f"block: expected at most {most} threads, got {threads}: each uses {registers} "
                f"registers (ptxas), and an SM has {SM_REGISTERS}; __launch_bounds__({threads})"
                " makes ptxas use fewer",
                OUT_OF_RESOURCES,
            )

    def active(self, threads: int, shared: int) -> int:
        """Maximum number of resident CTAs per SM; 0 for a block that cannot be launched.

        shared: bytes of dynamic shared memory
        """
        if not 1 <= threads <= self.most_threads:
            return 0
        try:
            return ctas_per_sm(threads, self.registers, self.static + shared, self.target)
        except LaunchError:
            return 0

    @property
    def registers(self) -> int:
        """Registers per thread that ptxas allocates; 0 if ptxas rejects the PTX."""
        return _registers(self.ptx).get(self.name, 0)

    @property
    def most_threads(self) -> int:
        """Maximum number of threads of a CTA: the kernel's launch bounds or, if it has none, the
        limit that the registers of an SM set.
        """
        bound = self._function.maxntid or math.prod(self._function.reqntid or (0,))
        each = -(-self.registers // 8) * 8 or 1
        return bound or min(1024, SM_REGISTERS // each // 32 * 32)

    @property
    def target(self) -> Target:
        """Target of the PTX."""
        return simulated(ptx_target(self.ptx))

    @property
    def attributes(self) -> list[int]:
        """Fields of `cudaFuncAttributes`, in order: bytes of static shared memory; maximum threads;
        registers; architectures of PTX and machine code (100 for sm_100); maximum bytes of dynamic
        shared memory; whether the kernel declares a cluster, and its three sizes; whether
        non-portable cluster sizes are allowed."""
        required = self._function.reqcluster
        version = int(re.sub(r"\D", "", ptx_target(self.ptx)))
        dynamic = SHARED_BY_DEFAULT - self.static if self.dynamic is None else self.dynamic
        return [
            self.static, self.most_threads, self.registers, version, version, dynamic,
            int(required is not None), *(required or (0, 0, 0)), int(self.non_portable),
        ]  # fmt: skip

    @property
    def static(self) -> int:
        """Bytes of static shared memory."""
        return lay_out(parsed(self.ptx), self._function).static_bytes

    @property
    def _function(self) -> Function:
        return parsed(self.ptx).functions[self.name]


@cache
def _registers(ptx: str) -> dict[str, int]:
    """Registers per thread of each kernel; empty if ptxas rejects the text."""
    try:
        log = assemble(ptx).log
    except Error:
        return {}
    found = re.findall(r"Compiling entry function '([^']+)'.*?Used (\d+) registers", log, re.S)
    return {name: int(registers) for name, registers in found}


def check_cooperative(grid: _Triple, block: _Triple, shared: int) -> None:
    """Raises RefusedError for a cooperative launch of more CTAs than a B200 can run at a time.

    The limit is computed from threads and dynamic shared memory (`shared`, bytes). Registers, whose
    number ptxas chooses, and static shared memory may allow fewer CTAs. Sizes that are illegal in
    any launch are not checked here.
    """
    threads = math.prod(block)
    if not 1 <= threads <= 1024 or not 0 <= shared <= DEFAULT_TARGET.smem_per_cta:
        return
    each = ctas_per_sm(threads, 0, shared, DEFAULT_TARGET)
    most, ctas = each * DEFAULT_TARGET.sms, math.prod(grid)
    if ctas > most:
        raise RefusedError(
            f"grid: expected at most {most} CTAs of {threads} threads and {shared} bytes of "
            f"dynamic shared memory, got {ctas}: CTAs of a cooperative launch must all run at the "
            f"same time, and {DEFAULT_TARGET.sms} SMs run {each} each; launch fewer CTAs and loop "
            "over the work",
            TOO_LARGE,
        )
