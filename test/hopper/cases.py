"""Micro-kernels for Hopper (sm_90a), their arguments, and which arrays they write.

A case runs the same way on the simulated machine and on silicon: `run_on_machine`, `run_on_gpu`.
Inputs are random bits from a seed, so that every byte's place shows in the result.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tcir.machine import TensorMap
from tcir.run import RunReport, run_ptx

from . import warp_forms

HERE = Path(__file__).resolve().parent
Array = np.ndarray[Any, Any]
DTYPES = {
    "u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "bf16": 2, "f32": 4,
    "f32_ftz": 4, "tf32": 4, "tf32_ftz": 4, "f64": 8,
}  # fmt: skip
"""Element types of tensor maps, in bytes."""
#: (kernel arguments, arrays to compare)
Made = tuple[list[Any], list[Array]]


@dataclass(frozen=True)
class Case:
    """One launch. `make` builds fresh arguments every time it is called."""

    name: str
    source: str
    entry: str
    grid: int
    block: int
    make: Callable[[], Made]
    cluster: int = 1
    dynamic_smem: int = 0


@cache
def ptx_of(source: str) -> str:
    """PTX text of a source: a file beside this one, or the module of the scalar table."""
    made = {"scalars": scalar_module, "warp_forms": warp_forms.module}
    return made[source]() if source in made else (HERE / f"{source}.ptx").read_text()


def run_on_machine(case: Case) -> tuple[RunReport, bytes]:
    """The report, and the bytes of the arrays written."""
    args, outputs = case.make()
    report = run_ptx(
        ptx_of(case.source), entry=case.entry, grid=case.grid, block=case.block,
        cluster=case.cluster, dynamic_smem=case.dynamic_smem, args=args,
    )  # fmt: skip
    return report, b"".join(a.tobytes() for a in outputs)


def run_on_gpu(case: Case, cubin: bytes) -> bytes:
    """The bytes of the arrays written."""
    from tcir.runtime import run_cubin

    args, outputs = case.make()
    run_cubin(
        cubin, entry=case.entry, grid=case.grid, block=case.block, cluster=case.cluster,
        dynamic_smem=case.dynamic_smem, args=args,
    )  # fmt: skip
    return b"".join(a.tobytes() for a in outputs)


def digest(data: bytes) -> str:
    """Digest of a result, as `silicon.json` stores it."""
    return hashlib.sha256(data).hexdigest()[:16]


def noise(size: int, seed: int) -> Array:
    """`size` random bytes."""
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


# --- TMA -----------------------------------------------------------------------------------------


def packed_strides(dims: Sequence[int], size: int, gap: int = 0) -> list[int]:
    """Strides in bytes of dimensions 1.., each a multiple of 16, `gap` bytes between rows."""
    strides, extent = [], dims[0] * size
    for d in dims[1:]:
        stride = -(-(extent + gap) // 16) * 16
        strides.append(stride)
        extent = stride * d
    return strides


def extent_bytes(dims: Sequence[int], strides: Sequence[int], size: int) -> int:
    """Bytes from the first to the last element of a tensor, up to a multiple of 16."""
    last = (dims[0] - 1) * size + sum((d - 1) * s for d, s in zip(dims[1:], strides, strict=True))
    return -(-(last + size) // 16) * 16


SPANS = {"NONE": 0, "32B": 32, "64B": 64, "128B": 128}
"""Bytes of a row of each swizzle pattern."""


def region_for(
    rows: Sequence[tuple[Any, int]], nbytes: int, inner: int, swizzle: str = "NONE", **_: Any
) -> int:
    """Bytes of shared memory that a case looks at: the box, rows of whole spans, and some more."""
    box = nbytes // inner * max(inner, SPANS[swizzle])
    return -(-(max(offset for _, offset in rows) + box + 128) // 512) * 512


def rows_of(rows: Sequence[tuple[Sequence[int], int]], nbytes: int, width: int = 8) -> Array:
    """Table rows: coordinates, offset of the box in shared memory, bytes of the box."""
    table = np.zeros((len(rows), width), np.int32)
    for n, (coords, offset) in enumerate(rows):
        table[n, : len(coords)] = coords
        table[n, 5:7] = offset, nbytes
    return table


def tile_case(
    name: str,
    dims: Sequence[int],
    box: Sequence[int],
    rows: Sequence[tuple[Sequence[int], int]],
    *,
    dtype: str = "u16",
    entry: str = "tile_load",
    gap: int = 0,
    strides: Sequence[int] | None = None,
    offset_bytes: int = 0,
    operation: int | None = None,
    contents: Array | None = None,
    **fields: Any,
) -> Case:
    """A tile load or store with one CTA per row of `rows`: (coordinates, offset).

    `contents` are those of the tensor; random bytes if None.
    """
    size = DTYPES[dtype]
    pitch = list(strides) if strides is not None else packed_strides(dims, size, gap)
    extent = extent_bytes(dims, pitch, size) + offset_bytes

    def tensor_map(tensor: Array) -> TensorMap:
        return TensorMap.tiled(
            tensor, dtype=dtype, dims=dims, strides_bytes=pitch, box=box,
            offset_bytes=offset_bytes, **fields,
        )  # fmt: skip

    nbytes = tensor_map(np.zeros(0, np.uint8)).fields.box_bytes
    region = region_for(rows, nbytes, box[0] * size, **fields)

    def make() -> Made:
        tensor = noise(extent, 1) if contents is None else contents.view(np.uint8).copy()
        stores = entry != "tile_load"
        buffer = noise(len(rows) * region, 2) if stores else np.zeros(len(rows) * region, np.uint8)
        first = np.uint32(len(dims) if operation is None else operation)
        args = [tensor_map(tensor), first, np.uint32(region), rows_of(rows, nbytes), buffer]
        return args, [tensor if stores else buffer]

    return Case(name, entry, entry, len(rows), 128, make, dynamic_smem=region)


def around(
    dims: Sequence[int], box: Sequence[int], more: Sequence[int] = (), size: int = 2
) -> list[tuple[int, ...]]:
    """Coordinates inside, across each edge, just outside and far outside, one axis at a time.

    Those of dimension 0 are multiples of 16 bytes, as the TMA engine wants them.
    """
    found = [tuple(0 for _ in dims)]
    for axis, (d, b) in enumerate(zip(dims, box, strict=True)):
        u = 1 if axis else 16 // size
        edge = -(-d // u) * u
        starts = (u, -u, -3 * u, 2 * u - b, -b, edge - u, edge - b + u, edge, edge + 5 * u, *more)
        for start in starts:
            at = [0, *(min(1, n - 1) for n in dims[1:])]
            at[axis] = start // u * u
            found.append(tuple(at))
    return found


def tile_loads() -> Iterator[Case]:
    """Tile mode: swizzles, element types, ranks, edges, element strides."""
    spans = {"NONE": 128, "32B": 32, "64B": 64, "128B": 128}
    for swizzle, span in spans.items():
        box = (span // 2, 16)
        rows = [((8, 5), o) for o in (0, 128, 256, 384, 512, 640, 896, 1024, 1920)]
        rows += [((-8, 7), 0), ((120, 35), 128), ((0, -9), 2048)]
        yield tile_case(f"tile_swizzle_{swizzle}", (130, 40), box, rows, swizzle=swizzle)
    for swizzle, inner in itertools.product(("32B", "64B", "128B"), (16, 32, 48, 96)):
        if inner < spans[swizzle]:  # rows shorter than the span
            yield tile_case(
                f"tile_swizzle_{swizzle}_inner_{inner}",
                (130, 40),
                (inner // 2, 12),
                [((8, 2), 0), ((8, 2), 128), ((-8, 30), 1024)],
                swizzle=swizzle,
            )
    for dtype, size in DTYPES.items():
        box = (64 // size, 6)
        rows = [(c, 0) for c in around((37, 11), box, (), size)]
        yield tile_case(f"tile_{dtype}", (37, 11), box, rows, dtype=dtype)
    shapes: dict[int, tuple[Sequence[int], Sequence[int]]] = {
        1: ((100,), (24,)),
        2: ((50, 9), (16, 4)),
        3: ((21, 7, 5), (8, 3, 2)),
        4: ((19, 6, 5, 4), (8, 3, 2, 3)),
        5: ((17, 5, 4, 3, 3), (8, 2, 3, 2, 2)),
    }
    for rank, (dims, box) in shapes.items():
        rows = [(c, 128) for c in around(dims, box, (1 << 20, -(1 << 20)))]
        yield tile_case(f"tile_rank_{rank}", dims, box, rows)
    far = [((1 << 31) - 8, 0), (-(1 << 31), 0), (0, (1 << 31) - 1), (0, -(1 << 31)), (-8, -1)]
    yield tile_case("tile_far_outside", (50, 9), (16, 4), [(c, 0) for c in far])
    yield tile_case("tile_gaps", (20, 9, 4), (16, 4, 3), [((8, 3, 1), 0)], gap=48)
    yield tile_case("tile_offset", (20, 9), (16, 4), [((8, 3), 0)], offset_bytes=80)
    yield tile_case(
        "tile_overlapping_rows", (40, 9), (32, 4), [((8, 3), 0), ((16, 6), 0)], strides=(16,)
    )
    yield tile_case("tile_stride_zero", (40, 9), (32, 4), [((8, 3), 0), ((16, 6), 0)], strides=(0,))
    yield tile_case("tile_box_256", (300, 7), (256, 5), [((0, 0), 0), ((48, -2), 0)], dtype="u8")
    yield tile_case("tile_rows_256", (8, 300), (8, 256), [((0, 0), 0), ((0, 60), 0)])
    for step in range(2, 9):
        dims, box = (24, 41), (8, 13)
        rows = [(c, 0) for c in around(dims, box, (-step, 1 - step, -2 * step))]
        yield tile_case(f"tile_step_{step}", dims, box, rows, element_strides=(1, step))
    for steps in ((1, 2, 3), (1, 3, 1), (1, 5, 2)):
        dims3, box3 = (16, 13, 11), (8, 7, 5)
        rows = [(c, 0) for c in around(dims3, box3, (-2, -4))]
        name = "_".join(map(str, steps))
        yield tile_case(f"tile_steps_{name}", dims3, box3, rows, element_strides=steps)
    yield tile_case(
        "tile_steps_rank_5",
        (8, 7, 6, 5, 5),
        (8, 5, 4, 3, 5),
        [(c, 0) for c in around((8, 7, 6, 5, 5), (8, 5, 4, 3, 5))],
        element_strides=(1, 2, 3, 2, 4),
    )
    yield tile_case(
        "tile_step_inner",
        (50, 9),
        (16, 4),
        [((0, 0), 0), ((8, 2), 0), ((40, 3), 0)],
        element_strides=(2, 1),
    )
    yield tile_case(
        "tile_step_swizzled",
        (64, 41),
        (64, 13),
        [((0, 0), 0), ((8, 2), 256), ((-8, -3), 1024)],
        element_strides=(1, 2),
        swizzle="128B",
    )


def tile_stores() -> Iterator[Case]:
    """Tile stores: swizzles, edges, types; boxes of different CTAs do not overlap."""
    for swizzle, span in {"NONE": 64, "32B": 32, "64B": 64, "128B": 128}.items():
        rows = [
            ((x, y), o)
            for (x, y), o in zip(
                itertools.product((0, 64, 128), (0, 16, 32)), itertools.cycle((0, 128, 384, 1024))
            )
        ]
        yield tile_case(
            f"store_swizzle_{swizzle}",
            (150, 40),
            (span // 2, 16),
            rows,
            entry="tile_store",
            swizzle=swizzle,
        )
    for dtype in ("u8", "u32", "u64", "bf16", "f32", "f32_ftz", "tf32", "f64"):
        box = (64 // DTYPES[dtype], 4)
        rows = [((x, y), 0) for x in range(0, 64, box[0]) for y in (0, 4, 8)]
        yield tile_case(f"store_{dtype}", (61, 11), box, rows, dtype=dtype, entry="tile_store")
    shapes: dict[int, tuple[Sequence[int], Sequence[int]]] = {
        1: ((100,), (24,)),
        3: ((21, 7, 5), (8, 3, 2)),
        4: ((19, 6, 5, 4), (8, 3, 2, 3)),
        5: ((17, 5, 4, 3, 3), (8, 2, 3, 2, 2)),
    }
    for rank, (dims, box) in shapes.items():
        starts = [range(0, d + b, b) for d, b in zip(dims, box, strict=True)]
        rows = [(c, 0) for c in itertools.product(*starts)]
        yield tile_case(f"store_rank_{rank}", dims, box, rows, entry="tile_store")
    yield tile_case(
        "store_steps",
        (16, 23),
        (8, 7),
        [((0, 0), 0), ((8, 1), 0), ((8, 16), 0), ((0, 15), 0)],
        entry="tile_store",
        element_strides=(1, 2),
    )
    for number, name in enumerate(["add", "min", "max", "inc", "dec", "and", "or", "xor"]):
        yield tile_case(
            f"reduce_{name}", (20, 9), (16, 4), [((0, 0), 0), ((16, 4), 0), ((3, 5), 0)][:2],
            dtype="u32", entry="tile_reduce", operation=number,
        )  # fmt: skip
    yield tile_case(
        "reduce_tail", (21, 9), (16, 4), [((0, 0), 0), ((16, 4), 0)],
        dtype="u32", entry="tile_reduce", operation=0,
    )  # fmt: skip
    for dtype in ("f32", "f16", "bf16", "f64", "f32_ftz"):
        yield tile_case(
            f"reduce_add_{dtype}", (20, 9), (16, 4), [((0, 0), 0), ((16, 4), 0)],
            dtype=dtype, entry="tile_reduce", operation=0,
        )  # fmt: skip


def im2col_case(
    name: str,
    dims: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    rows: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    channels: int = 16,
    pixels: int = 24,
    dtype: str = "u16",
    offset: int = 0,
    entry: str = "im2col_load",
    **fields: Any,
) -> Case:
    """An im2col load or store with one CTA per row of `rows`: (coordinates, tap offsets)."""
    size = DTYPES[dtype]
    pitch = packed_strides(dims, size)
    nbytes = pixels * channels * size
    places = [(c, offset) for c, _ in rows]
    region = region_for(places, nbytes, channels * size, **fields)

    def make() -> Made:
        tensor = noise(extent_bytes(dims, pitch, size), 3)
        tensor_map = TensorMap.im2col(
            tensor, dtype=dtype, dims=dims, strides_bytes=pitch, lower_corner=lower,
            upper_corner=upper, channels_per_pixel=channels, pixels_per_column=pixels, **fields,
        )  # fmt: skip
        stores = entry != "im2col_load"
        table = rows_of(places, nbytes, 8 if stores else 12)
        for n, (_, taps) in enumerate(rows):
            table[n, 8 : 8 + len(taps)] = taps
        buffer = noise(len(rows) * region, 2) if stores else np.zeros(len(rows) * region, np.uint8)
        args = [tensor_map, np.uint32(len(dims)), np.uint32(region), table, buffer]
        return args, [tensor if stores else buffer]

    return Case(name, entry, entry, len(rows), 128, make, dynamic_smem=region)


def im2col_loads() -> Iterator[Case]:
    """im2col mode: corners, tap offsets, strides, channel offsets, walks past rows and images."""
    dims4 = (40, 9, 7, 3)
    taps = list(itertools.product(range(3), range(3)))
    same = [((0, -1, -1, 0), t) for t in taps]
    same += [((16, 2, 3, 1), t) for t in taps]
    same += [((32, 7, 5, 2), t) for t in taps]
    same += [((c, -1, 4, 1), (1, 2)) for c in (-8, 8, 32, 40, 104)]
    same += [((0, 3, 2, n), (0, 1)) for n in (-1, 2, 3, 7)]
    yield im2col_case("im2col_3x3", dims4, (-1, -1), (-1, -1), same)
    for swizzle, channels in {"32B": 16, "64B": 32, "128B": 64, "NONE": 64}.items():
        yield im2col_case(
            f"im2col_swizzle_{swizzle}", (64, 9, 7, 2), (-1, -1), (-1, -1), same[:12],
            channels=channels, swizzle=swizzle, offset=256,
        )  # fmt: skip
    corners = {
        "zero": ((0, 0), (0, 0)),
        "valid": ((0, 0), (-2, -2)),
        "wide": ((-3, -2), (1, 2)),
        "inside": ((2, 1), (-3, -2)),
        "one_pixel": ((4, 3), (-4, -3)),
    }
    for name, (lower, upper) in corners.items():
        starts = [
            (w, h)
            for w in {lower[0], 8 + upper[0], (lower[0] + 8 + upper[0]) // 2}
            for h in {lower[1], 6 + upper[1]}
        ]
        rows = [((0, w, h, n), t) for w, h in starts for n in (0, 2) for t in ((0, 0), (2, 1))]
        yield im2col_case(f"im2col_corners_{name}", dims4, lower, upper, rows)
    for sw, sh in ((2, 1), (1, 2), (2, 2), (3, 2), (4, 3), (8, 8)):
        rows = [((0, -1, -1, 0), t) for t in taps]
        rows += [((0, -1 + sw, -1 + sh if sh < 7 else -1, 1), t) for t in taps if sw < 8]
        # Not on the grid of the stride: the walk goes on from where it started.
        rows += [((0, 0, -1, 0), (1, 1)), ((0, 1, 0, 0), (0, 2))]
        yield im2col_case(
            f"im2col_stride_{sw}_{sh}",
            dims4,
            (-1, -1),
            (-1, -1),
            rows,
            element_strides=(1, sw, sh, 1),
        )
    yield im2col_case(
        "im2col_dilation",
        dims4,
        (-2, -2),
        (-2, -2),
        [((0, -2, -2, 0), (2 * a, 2 * b)) for a, b in taps] + [((0, 6, 4, 2), (4, 4))],
    )
    yield im2col_case(
        "im2col_large_taps",
        dims4,
        (-1, -1),
        (-1, -1),
        [((0, -1, -1, 0), t) for t in ((7, 0), (0, 9), (30, 2), (255, 255), (128, 1))],
    )
    yield im2col_case(
        "im2col_channel_step", dims4, (-1, -1), (-1, -1), same[:6], element_strides=(2, 1, 1, 1)
    )
    for pixels, channels in ((1, 8), (7, 24), (64, 8), (200, 8)):
        yield im2col_case(
            f"im2col_{pixels}_pixels", dims4, (-1, -1), (-1, -1), same[:20:3], pixels=pixels,
            channels=channels,
        )  # fmt: skip
    for dtype in ("u8", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"):
        yield im2col_case(
            f"im2col_{dtype}", dims4, (-1, -1), (-1, -1), same[:20:3], dtype=dtype,
            channels=32 if dtype == "u8" else 8,
        )  # fmt: skip
    rows3 = [((0, w, n), (t,)) for w in (-2, 0, 5) for n in (0, 1) for t in (0, 1, 4, 40000)]
    yield im2col_case("im2col_rank_3", (24, 11, 3), (-2,), (-2,), rows3)
    yield im2col_case(
        "im2col_rank_3_stride", (24, 11, 3), (-2,), (-1,), rows3, element_strides=(1, 3, 1)
    )
    rows5 = [
        ((0, w, h, d, n), t)
        for w, h, d, n in ((-1, -1, -1, 0), (2, 1, 0, 0), (3, 3, 2, 1), (0, 0, 1, 1))
        for t in ((0, 0, 0), (1, 2, 0), (2, 1, 2), (31, 0, 1))
    ]
    yield im2col_case(
        "im2col_rank_5", (16, 5, 5, 4, 2), (-1, -1, -1), (-1, -1, -1), rows5, pixels=90
    )
    yield im2col_case(
        "im2col_rank_5_stride", (16, 5, 5, 4, 2), (-1, -1, -1), (-1, -1, -1), rows5, pixels=40,
        element_strides=(1, 2, 2, 3, 1),
    )  # fmt: skip
    yield im2col_case("im2col_37_channels", (37, 9, 7, 3), (-1, -1), (-1, -1), same)
    yield im2col_case(
        "im2col_store",
        dims4,
        (0, 0),
        (0, 0),
        [((0, 0, 0, 0), ()), ((16, 3, 2, 1), ())],
        entry="im2col_store",
    )
    yield im2col_case(
        "im2col_store_37_channels",
        (37, 9, 7, 3),
        (0, 0),
        (0, 0),
        [((0, 0, 0, 0), ()), ((32, 3, 2, 1), ())],
        entry="im2col_store",
    )


def borders() -> Iterator[Case]:
    """Cases that the documents leave open: types that convert, rows shorter than the swizzle's
    span."""
    signs = np.array([0, 1 << 31], np.uint32)[:, None]
    odd = [0, 1, 0xFFF, 0x1000, 0x1001, 0x2000, 0x3000, 0x7FFFFF, 0x7FEFFF, 0x7FF000, 0x800000,
           0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F803000, 0x3F805000, 0x7F7FEFFF, 0x7F7FF000,
           0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7F801000, 0x7FC00000, 0x7FFFFFFF, 0x7FBFF000,
           0x00000FFF, 0x00400000, 0x34000000, 0x3F80FFFF, 0x3F900000, 0x12345678,
           0x0F0F1000]  # fmt: skip
    special = (np.array(odd, np.uint32) | signs).astype(np.uint32).reshape(-1)
    for dtype in ("f32", "f32_ftz", "tf32", "tf32_ftz"):
        for entry in ("tile_load", "tile_store"):
            yield tile_case(
                f"special_{entry}_{dtype}", (64,), (64,), [((0,), 0)], dtype=dtype, entry=entry,
                contents=special,
            )  # fmt: skip
    halves = np.array([0, 1, 0x3FF, 0x7C00, 0x7C01, 0x7E00, 0xFFFF, 0x8001], np.uint16)
    for dtype in ("f16", "bf16"):
        yield tile_case(f"special_{dtype}", (8,), (8,), [((0,), 0)], dtype=dtype, contents=halves)
    yield im2col_case(
        "span_im2col", (64, 9, 7, 2), (-1, -1), (-1, -1), [((0, 1, 1, 0), (1, 1))], channels=16,
        pixels=24, swizzle="128B",
    )  # fmt: skip
    yield tile_case(
        "span_store", (128, 40), (24, 12), [((8, 2), 128)], swizzle="64B", entry="tile_store"
    )
    for n in (-1, 3, 7):
        yield im2col_case(f"image_{n}", (40, 9, 7, 3), (-1, -1), (-1, -1), [((0, 1, 2, n), (1, 1))])


def faults() -> Iterator[Case]:
    """Cases that end the kernel on silicon (illegal instruction, misaligned address)."""
    for dtype, starts in {
        "u16": (1, 2, 3, 4, 7, -1, -4),
        "f32": (1, 2, -1),
        "u8": (1, 4, 8, -4),
        "f64": (1, -1),
    }.items():
        for x in starts:  # not at a multiple of 16 bytes
            box = (64 // DTYPES[dtype], 4)
            for entry in ("tile_load", "tile_store"):
                yield tile_case(
                    f"{entry}_x_{dtype}_{x}", (60, 9), box, [((x, 1), 0)], dtype=dtype, entry=entry
                )
    for x, y in ((-8, 0), (0, -1), (0, -9)):
        yield tile_case(
            f"store_negative_{x}_{y}", (60, 9), (16, 4), [((x, y), 0)], entry="tile_store"
        )
    for offset in (16, 32, 64):
        for entry in ("tile_load", "tile_store"):
            yield tile_case(
                f"{entry}_shared_{offset}", (60, 9), (16, 4), [((0, 1), offset)], entry=entry
            )
    dims = (40, 9, 7, 3)
    for c in (-5, 1, 4, 30, 39):
        rows = [((c, 1, 2, 1), (1, 1))]
        yield im2col_case(f"im2col_channel_{c}", dims, (-1, -1), (-1, -1), rows)
    for w, h in ((-2, 0), (8, 0), (9, 0), (0, -2), (0, 6), (0, 9), (-3, -3)):
        yield im2col_case(
            f"im2col_start_{w}_{h}", dims, (-1, -1), (-1, -1), [((0, w, h, 0), (1, 1))]
        )
    for entry in ("im2col_store",):
        yield im2col_case(
            "im2col_store_corners", dims, (-1, -1), (-1, -1), [((0, 1, 1, 1), ())], entry=entry
        )


# --- barriers, bulk copies, clusters -------------------------------------------------------------


def words_map(array: Array, rows: int) -> TensorMap:
    """A map of [rows, 16] words with boxes of 8 rows (512 bytes)."""
    return TensorMap.tiled(array, dtype="u32", dims=(16, rows), strides_bytes=(64,), box=(16, 8))


def other_cases() -> Iterator[Case]:
    """mbarrier phases and byte counts, bulk copies, clusters."""

    def phases() -> Made:
        out = np.zeros(15, np.uint32)
        return [out], [out]

    yield Case("mbarrier_phases", "mbarrier", "phases", 1, 1, phases)

    def transactions() -> Made:
        out = np.zeros(16 + 384, np.uint32)
        return [words_map(noise(512, 4), 8), out], [out]

    yield Case("mbarrier_tx", "mbarrier", "transactions", 1, 1, transactions, dynamic_smem=1536)

    def ring() -> Made:
        out = np.zeros(13 * 128, np.uint32)
        return [words_map(noise(64 * 100, 5), 100), np.uint32(13), out], [out]

    yield Case("mbarrier_ring", "mbarrier", "ring", 1, 64, ring, dynamic_smem=1024)

    def bulk() -> Made:
        table = np.array(
            [(0, 0, 0, 16), (16, 48, 4096, 32), (1024, 1008, 8192, 4096), (48, 16, 256, 1040)],
            np.int32,
        )
        target = noise(16384, 7)
        return [table, noise(8192, 6), target], [target]

    yield Case("bulk_copy", "bulk", "bulk", 4, 32, bulk, dynamic_smem=8192)

    def reduction(number: int) -> Made:
        target = noise(2048, 9)
        return [np.uint32(number), np.uint32(1024), noise(2048, 8), target], [target]

    names = ["add_u32", "min_s32", "max_u64", "or_b32", "add_f32", "add_f16", "inc_u32", "add_bf16"]
    for number, name in enumerate(names):
        yield Case(
            f"bulk_reduce_{name}", "bulk", "bulk_reduce", 1, 32,
            lambda n=number: reduction(n), dynamic_smem=1024,
        )  # fmt: skip

    def multicast() -> Made:
        out = np.zeros(4 * 256, np.uint32)
        return [words_map(noise(64 * 30, 10), 30), out], [out]

    yield Case("cluster_multicast", "cluster", "multicast", 4, 64, multicast, 2, 1024)

    def exchange(words: int) -> Made:
        out = np.zeros(words, np.uint32)
        return [out], [out]

    yield Case("cluster_remote", "cluster", "remote", 4, 32, lambda: exchange(256), 2)
    yield Case("cluster_peer_copy", "cluster", "peer_copy", 4, 64, lambda: exchange(256), 2)


# --- scalar instructions -------------------------------------------------------------------------

COUNT = 2048
_SPECIAL = {
    "f16": [0x0000, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0xFD01, 0x0001, 0x83FF, 0x0400,
            0x7BFF, 0x3555],
    "bf16": [0x0000, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 0xFF81, 0x0001, 0x807F, 0x0080,
             0x7F7F, 0x3EAB],
    "f32": [0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000,
            0xFF800001, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x4F000000, 0xCF000000,
            0x4F800000, 0x3F000000, 0x3FC00000, 0xC0200000, 0x43E00000, 0x477FE000],
    "f64": [0x0, 0x8 << 60, 0x3FF << 52, 0xBFF << 52, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48,
            (0xFFF << 52) + 1, 1, (1 << 52) - 1, 1 << 52, (0x7FF << 52) - 1, 0x41E << 52,
            0x43E << 52, 0x43F << 52, 0x3FE << 52],
}  # fmt: skip
_INTEGER = [0, 1, 2, 31, 32, 33, 63, 64, 127, 128, 255]


def width_of(kind: str) -> int:
    """Bytes of a PTX type."""
    base, packed, _ = kind.partition("x2")
    return int(base.lstrip("usbf")) // 8 * (2 if packed else 1)


def values_of(kind: str, position: int) -> Array:
    """COUNT operands as unsigned words: special values in all pairs, moderate and random ones."""
    generator = np.random.default_rng(100 + position)
    base = kind.removesuffix("x2")
    if kind.endswith("x2"):
        low, high = values_of(base, position), values_of(base, position + 3)[::-1]
        return low.astype(np.uint32) | high.astype(np.uint32) << 16
    size = width_of(kind)
    word = np.dtype(f"u{size}")
    top = 1 << 8 * size
    random = generator.integers(0, top - 1, COUNT, word, endpoint=True)
    if base in _SPECIAL:
        special = np.array(_SPECIAL[base], word)
        # Values of ordinary size: random signs and significands, exponents near zero.
        bits = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[base]
        bias = {"f16": 15, "bf16": 127, "f32": 127, "f64": 1023}[base]
        exponent = generator.integers(bias - 6, bias + 9, COUNT).astype(word) << word.type(bits)
        keep = word.type((1 << bits) - 1 | 1 << 8 * size - 1)
        middle = random & keep | exponent
    else:
        extremes = [top - 1, top - 2, top >> 1, (top >> 1) - 1, (top >> 1) + 1]
        special = np.array(_INTEGER + extremes, word)
        middle = generator.integers(0, 100, COUNT).astype(word)
    n = len(special)
    # Position decides how fast the specials cycle, so that all pairs of them come up.
    cycle = special[np.arange(COUNT) // n**position % n]
    third = COUNT // 4
    return np.concatenate([cycle[: 2 * third], middle[:third], random[:third]])


@dataclass(frozen=True)
class Scalar:
    """A line of scalars.txt."""

    name: str
    inputs: tuple[str, ...]
    output: str
    body: str


@cache
def scalars() -> tuple[Scalar, ...]:
    """The table."""
    found = []
    for line in (HERE / "scalars.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, inputs, output, body = (part.strip() for part in line.split("|", 3))
            found.append(Scalar(name, tuple(inputs.split()), output, body))
    return tuple(found)


def _register(kind: str) -> str:
    """Register type: narrow and packed floats live in .b registers."""
    return f".{kind}" if kind[1:].isdigit() and kind != "f16" else f".b{8 * width_of(kind)}"


def scalar_entry(item: Scalar) -> str:
    """Entry of one line: thread t takes element t of each input and stores element t."""
    parameters = ", ".join(f".param .u64 p{n}" for n in range(len(item.inputs) + 1))
    lines = [
        f".visible .entry {item.name}({parameters})",
        "{",
        " .reg .pred %p<4>; .reg .b32 %t<4>; .reg .b64 %u<4>; .reg .b16 %h<4>;",
        " .reg .b32 %i<4>; .reg .b64 %q<4>;",
        f" .reg {_register(item.output)} %d;",
        " mov.u32 %i0, %tid.x; mov.u32 %i1, %ctaid.x; mov.u32 %i2, %ntid.x;",
        " mad.lo.u32 %i0, %i1, %i2, %i0;",
    ]
    for n, (letter, kind) in enumerate(zip("abc", item.inputs, strict=False)):
        size = width_of(kind)
        lines.append(f" .reg {_register(kind)} %{letter};")
        lines.append(f" ld.param.u64 %q0, [p{n}]; mad.wide.u32 %q1, %i0, {size}, %q0;")
        lines.append(f" ld.global.b{8 * size} %{letter}, [%q1];")
    size = width_of(item.output)
    lines.append(f" {item.body}")
    lines.append(f" ld.param.u64 %q0, [p{len(item.inputs)}]; mad.wide.u32 %q1, %i0, {size}, %q0;")
    lines.append(f" st.global.b{8 * size} [%q1], %d;\n ret;\n}}")
    return "\n".join(lines)


#: Instructions newer than the rest of the table: ptxas for sm_90a wants this version.
SCALAR_HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"


@cache
def scalar_module() -> str:
    """One module with an entry per line of the table."""
    return SCALAR_HEADER + "\n".join(scalar_entry(item) for item in scalars()) + "\n"


def scalar_cases() -> Iterator[Case]:
    """One case per line of scalars.txt."""
    for item in scalars():

        def make(item: Scalar = item) -> Made:
            inputs = [values_of(kind, n) for n, kind in enumerate(item.inputs)]
            out = np.zeros(COUNT, np.dtype(f"u{width_of(item.output)}"))
            return [*inputs, out], [out]

        yield Case(f"scalar_{item.name}", "scalars", item.name, COUNT // 128, 128, make)


def warp_cases() -> Iterator[Case]:
    """One case per form of `warp_forms`."""
    for form in warp_forms.FORMS.values():

        def make(form: warp_forms.Form = form) -> Made:
            kind = np.uint64 if form.types[0] == "f64" else np.uint32
            out = np.zeros((warp_forms.WARPS, form.counts[0], 32), kind)
            return [*form.inputs(), out], [out]

        yield Case(f"warp_{form.name}", "warp_forms", form.name, warp_forms.WARPS, 32, make)


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, in the order of the report."""
    return (
        *tile_loads(), *im2col_loads(), *tile_stores(), *borders(), *other_cases(), *scalar_cases(),
        *warp_cases(),
    )  # fmt: skip


SOURCES = (
    "tile_load", "im2col_load", "tile_store", "tile_reduce", "im2col_store", "mbarrier", "bulk",
    "cluster", "scalars", "warp_forms",
)  # fmt: skip
