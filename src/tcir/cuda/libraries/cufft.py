"""cuFFT: transforms by numpy in f64, rounded once to the type of the result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcir.cuda.libraries.functions import HostCall, Objects, array, function, succeeds

INVALID_PLAN, INVALID_TYPE = 1, 3
C2C, R2C, C2R, Z2Z, D2Z, Z2D = 0x29, 0x2A, 0x2C, 0x69, 0x6A, 0x6C
FORWARD = -1
_BY_TYPES = {(4, 4): C2C, (0, 4): R2C, (4, 0): C2R, (5, 5): Z2Z, (1, 5): D2Z, (5, 1): Z2D}
"""Kinds by cudaDataType of input and output: CUDA_C_32F is 4."""
_KINDS = {
    C2C: ("<c8", "<c8"),
    R2C: ("<f4", "<c8"),
    C2R: ("<c8", "<f4"),
    Z2Z: ("<c16", "<c16"),
    D2Z: ("<f8", "<c16"),
    Z2D: ("<c16", "<f8"),
}
"""Types of input and output."""
_TYPES_OF_REALS = ("<f4", "<f8")


@dataclass(frozen=True)
class Strides:
    """Storage of a batch: sizes of the embedding array, and the distances, in elements, from one
    element to the next and from one transform to the next."""

    sizes: tuple[int, ...]
    step: int
    batch: int

    def view(self, address: int, shape: tuple[int, ...], count: int, kind: str) -> np.ndarray:
        """Elements [count, *shape] of the type `kind`."""
        steps = [self.step]
        for size in self.sizes[:0:-1]:
            steps.insert(0, steps[0] * size)
        last = sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
        data = array(address, (count - 1) * self.batch + last + 1, kind)
        by = [step * data.itemsize for step in (self.batch, *steps)]
        return np.lib.stride_tricks.as_strided(data, (count, *shape), by)


@dataclass(frozen=True)
class FftPlan:
    """A batch of transforms; `shape` is the shape of the real data."""

    shape: tuple[int, ...]
    kind: int
    count: int
    source: Strides | None = None
    target: Strides | None = None

    def run(self, call: HostCall, direction: int) -> int:
        """Transforms `x` to `y`. If the plan gives no layout, arrays are dense; for an in-place
        transform, rows of real numbers are padded.
        """
        half = (*self.shape[:-1], self.shape[-1] // 2 + 1)
        kinds = _KINDS[self.kind]
        real = tuple(kind in _TYPES_OF_REALS for kind in kinds)
        views = []
        for n, (layout, address) in enumerate(((self.source, call.x), (self.target, call.y))):
            shape = half if real[1 - n] else self.shape
            dense = (*shape[:-1], 2 * half[-1]) if real[n] and call.x == call.y else shape
            laid = layout or Strides(dense, 1, int(np.prod(dense)))
            views.append(laid.view(address, shape, self.count, kinds[n]))
        axes = tuple(range(1, len(self.shape) + 1))
        given = views[0].astype("f8" if real[0] else "c16")
        found: np.ndarray
        if real[0]:
            found = np.fft.rfftn(given, axes=axes)
        elif real[1]:
            found = np.fft.irfftn(given, self.shape, axes, norm="forward")
        elif direction == FORWARD:
            found = np.fft.fftn(given, axes=axes)
        else:
            found = np.fft.ifftn(given, axes=axes, norm="forward")
        return call.write(views[1], found)


_PLANS: Objects[FftPlan] = Objects()


def _planned(call: HostCall, plan: FftPlan) -> int:
    """Makes a plan: under a new handle, written to `out`, or under the handle `plan`."""
    if plan.kind not in _KINDS:
        return INVALID_TYPE
    handle = getattr(call, "plan", None)
    if handle is None:
        return _PLANS.made(call.out, plan, "<i4")
    _PLANS[handle] = plan
    if call.out:
        array(call.out, 1, "<u8")[0] = 0  # bytes of a workspace
    return 0


function("cufftCreate", given="out:p")(lambda call: _PLANS.made(call.out, FftPlan((), 0, 0), "<i4"))
succeeds("cufftDestroy", given="plan:i")
succeeds("cufftSetStream", given="plan:i stream:p")


@function("cufftPlan1d", given="out:p n:i kind:i count:i")
@function("cufftMakePlan1d", given="plan:i n:i kind:i count:i out:p")
def plan_1d(call: HostCall) -> int:
    """A batch of dense 1D transforms."""
    return _planned(call, FftPlan((call.n,), call.kind, call.count))


@function("cufftPlan2d", given="out:p rows:i columns:i kind:i")
@function("cufftMakePlan2d", given="plan:i rows:i columns:i kind:i out:p")
def plan_2d(call: HostCall) -> int:
    """A dense 2D transform."""
    return _planned(call, FftPlan((call.rows, call.columns), call.kind, 1))


@function("cufftPlan3d", given="out:p slices:i rows:i columns:i kind:i")
@function("cufftMakePlan3d", given="plan:i slices:i rows:i columns:i kind:i out:p")
def plan_3d(call: HostCall) -> int:
    """A dense 3D transform."""
    return _planned(call, FftPlan((call.slices, call.rows, call.columns), call.kind, 1))


def _many(call: HostCall, kind: int, integer: str) -> int:
    """A batch in arrays with strides, unless their sizes are missing."""
    given = (
        (call.source, call.source_step, call.source_batch),
        (call.target, call.target_step, call.target_batch),
    )
    source, target = (
        Strides(tuple(array(sizes, call.rank, integer).tolist()), step, batch) if sizes else None
        for sizes, step, batch in given
    )
    shape = tuple(array(call.n, call.rank, integer).tolist())
    return _planned(call, FftPlan(shape, kind, call.count, source, target))


_MANY = "source:p source_step:{0} source_batch:{0} {1}target:p target_step:{0} target_batch:{0} {2}"


@function("cufftPlanMany", given=f"out:p rank:i n:p {_MANY.format('i', '', 'kind:i')} count:i")
def plan_many(call: HostCall) -> int:
    """A batch of transforms, with sizes of 32 bits."""
    return _many(call, call.kind, "<i4")


@function(
    "cufftXtMakePlanMany",
    given=f"plan:i rank:i n:p {_MANY.format('l', 'given:i ', 'made:i')} count:l out:p executed:i",
)
def plan_many_64(call: HostCall) -> int:
    """A batch of transforms, with sizes of 64 bits and types of cudaDataType."""
    return _many(call, _BY_TYPES.get((call.given, call.made), 0), "<i8")


@function("cufftExecC2C", "cufftExecZ2Z", given="plan:i x:p y:p direction:i", waits=True)
def execute(call: HostCall) -> int:
    """A complex transform."""
    plan = _PLANS.get(call.plan)
    return plan.run(call, call.direction) if plan and plan.kind else INVALID_PLAN


@function(
    "cufftExecR2C",
    "cufftExecC2R",
    "cufftExecD2Z",
    "cufftExecZ2D",
    given="plan:i x:p y:p",
    waits=True,
)
def execute_real(call: HostCall) -> int:
    """A transform from or to real numbers."""
    plan = _PLANS.get(call.plan)
    return plan.run(call, FORWARD) if plan and plan.kind else INVALID_PLAN
