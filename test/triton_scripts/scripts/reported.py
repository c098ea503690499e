"""Mistakes of published kernels (``reported.py wrong``) and their twins (``reported.py right``)."""

import sys

import torch
import triton
import triton.language as tl

RIGHT = sys.argv[1] == "right"
BLOCK = 128


@triton.jit
def read_back(x, y, right: tl.constexpr, BLOCK: tl.constexpr):
    """What the threads stored, read by others of them."""
    at = tl.arange(0, BLOCK)
    tl.store(x + at, at * 1.0)
    if right:
        tl.debug_barrier()
    tl.store(y + at, tl.load(x + BLOCK - 1 - at))


@triton.jit
def in_a_loop(x, y, n, right: tl.constexpr, BLOCK: tl.constexpr):
    """Each turn reads what the one before stored."""
    at = tl.arange(0, BLOCK)
    for turn in tl.range(0, n):
        if right:
            tl.debug_barrier()
        value = tl.load(x + (at + turn) % BLOCK)
        if right:
            tl.debug_barrier()
        tl.store(x + at, value + 1)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def stencil(x, y, right: tl.constexpr, BLOCK: tl.constexpr):
    """In place: each program reads an element that its neighbour writes."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    more = tl.load(x + at + 1)
    tl.store((y if right else x) + at, more)


@triton.jit
def no_other(x, y, n, right: tl.constexpr, BLOCK: tl.constexpr):
    """A masked load that does not say what the other lanes get: 0, in Triton's PTX."""
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0) if right else tl.load(x + at, mask=at < n)
    tl.store(y, tl.sum(value))


@triton.jit
def row(x, y, r, stride, right: tl.constexpr, BLOCK: tl.constexpr):
    """A row times a stride, in 32 bits."""
    at = tl.arange(0, BLOCK)
    first = tl.cast(r, tl.int64) * stride if right else r * stride
    tl.store(y + at, tl.load(x + first + at))


x = torch.arange(4 * BLOCK + 1, device="cuda", dtype=torch.float32)
y = torch.zeros(4 * BLOCK, device="cuda")
read_back[(1,)](x.clone(), y, RIGHT, BLOCK=BLOCK)
in_a_loop[(1,)](x.clone(), y, 3, RIGHT, BLOCK=BLOCK)
stencil[(4,)](x.clone(), y, RIGHT, BLOCK=BLOCK)
no_other[(1,)](x, y, 100, RIGHT, BLOCK=BLOCK)
row[(1,)](x, y, 2 if RIGHT else 1 << 16, BLOCK if RIGHT else 1 << 15, RIGHT, BLOCK=BLOCK)
