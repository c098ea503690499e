"""Launches drawn at random, most of them wrong: `hostile.py SEED COUNT`. Each runs, is refused by
CuTe DSL, or ends with an error of tcir; anything else is printed, and the exit status is 1."""

import gc
import random
import sys
import traceback
import warnings
from collections import Counter

import cutlass
import numpy as np
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_ptr

from tcir.cute.engine import Engine
from tcir.errors import Error

warnings.filterwarnings("ignore")


@cute.kernel
def add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Int32, s: cutlass.Float32):
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    thread, _, _ = cute.arch.thread_idx()
    at = block * threads + thread
    if at < n:
        out[at] = (x[at].to(cutlass.Float32) + y[at].to(cutlass.Float32) + s).to(out.element_type)


@cute.jit
def launch(
    x: cute.Tensor,
    y: cute.Tensor,
    out: cute.Tensor,
    n: cutlass.Int32,
    s: cutlass.Float32,
    gx: cutlass.Int32,
    gy: cutlass.Int32,
    bx: cutlass.Int32,
    cluster: cutlass.Constexpr,
    shared: cutlass.Constexpr,
):
    add(x, y, out, n, s).launch(grid=(gx, gy, 1), block=(bx, 1, 1), cluster=cluster, smem=shared)


@cute.jit
def by_address(
    x: cute.Pointer, out: cute.Tensor, length: cutlass.Int32, n: cutlass.Int32, bx: cutlass.Int32
):
    given = cute.make_tensor(x, cute.make_layout((length,), stride=(1,)))
    add(given, given, out, n, 0.0).launch(grid=(1, 1, 1), block=(bx, 1, 1))


TYPES = [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint32, np.uint64,
         np.float16, np.float64, np.complex64, ">f4", "U3", object]  # fmt: skip
NUMBERS = [0, 1, 7, 64, 100, -1, 1 << 31, (1 << 63) - 1, True, 1.5, float("inf"), float("nan"),
           None, "x", 1j]  # fmt: skip
draw = random.Random(int(sys.argv[1]))


def array():
    made = np.ones(draw.choice([64, 0, 1, 33, (8, 8), ()]), np.float32)
    if draw.random() < 0.4:
        made = made.astype(draw.choice(TYPES))
    match draw.randrange(12):
        case 0:
            return draw.choice([None, 3, "x", [1.0], made.tolist(), object()])
        case 1:
            return made.T
        case 2 if made.ndim:
            return made[::2]
        case 3 if made.ndim:
            return made[::-1]
        case 4 if made.ndim:
            return made[3:]
        case 5:
            return np.broadcast_to(made, (4, *made.shape))
        case 6:
            made.flags.writeable = False
    return made


def tensor():
    made = from_dlpack(array(), assumed_align=draw.choice([None, None, None, None, 16, 3, 1 << 20]))
    return made.mark_layout_dynamic() if draw.random() < 0.3 else made


def call():
    """A function and its arguments, one to three of them odd; what CuTe DSL cannot make raises."""
    kept = np.ones(64, np.float32)
    sound = from_dlpack(kept)
    if draw.random() < 0.25:
        address, kind, align = kept.ctypes.data, cutlass.Float32, 4
        given = {"length": 64, "n": 64, "bx": 64}
        match draw.randrange(4):
            case 0:
                address += draw.choice([4, -4, 2, 1 << 40, -address])
            case 1:
                kind = draw.choice([cutlass.Float16, cutlass.Int64, cutlass.Float4E2M1FN])
            case 2:
                align = draw.choice([16, 3, 0])
            case _:
                given[draw.choice(list(given))] = draw.choice(NUMBERS)
        pointer = make_ptr(kind, address, cute.AddressSpace.gmem, assumed_align=align)
        return by_address, {"x": pointer, "out": sound, **given}, kept
    given = {"x": sound, "y": sound, "out": sound, "n": 64, "s": 1.0, "gx": 1, "gy": 1, "bx": 64,
             "cluster": None, "shared": None}  # fmt: skip
    for _ in range(draw.choice([1, 1, 2, 3])):
        match draw.randrange(7):
            case 0 | 1:
                given[draw.choice(["x", "y", "out"])] = tensor()
            case 2:
                given[draw.choice(["n", "s"])] = draw.choice(NUMBERS)
            case 3:
                given["bx"] = draw.choice([32, 1, 0, -1, 1024, 1025, 1 << 31, None])
            case 4:
                given["gx"] = draw.choice([2, 0, -1, 1 << 31, 1 << 30, 1.5, None])
                given["gy"] = draw.choice([1, 1, 1, 0, 1 << 17])
            case 5:
                given["cluster"] = draw.choice(
                    [(1, 1, 1), (2, 1, 1), (3, 1, 1), (0, 1, 1), (32, 1, 1), (-1, 1, 1), (1,), "x"]
                )
            case _:
                given["shared"] = draw.choice([0, 1024, 300000, -1, 1 << 40, "x"])
    return launch, given, kept


engine = next(each for each in gc.get_objects() if isinstance(each, Engine))
ended = Counter()
for number in range(int(sys.argv[2])):
    try:
        function, arguments, kept = call()
    except Exception:
        ended["no launch"] += 1
        continue
    engine.failed = None
    try:
        function(*arguments.values())
        ended["ran"] += 1
    except Exception as error:
        failed = engine.failed
        ours = [f for f in traceback.extract_tb(error.__traceback__) if "/tcir/cute/" in f.filename]
        if isinstance(failed, Error) and "internal" not in str(failed):
            ended["refused"] += 1
        elif failed is None and not ours:
            ended["CuTe DSL"] += 1
        else:
            ended["wrong"] += 1
            print("wrong", number, repr(failed or error)[:1000], arguments)
print(dict(ended))
sys.exit(1 if ended["wrong"] else 0)
