"""Bugs of a product of at most 64 rows on sm_90a, whose tiles one warpgroup multiplies: what is
left of tiles of two warpgroups, and the rows that the output lacks."""

from __future__ import annotations

from .edits import both, sub
from .planted import PTX, Planted

SMALL = "gemm of 50 rows, sm_90a"
TILED, ROLES, THREADS = "tile-gemm", "assign-roles", "convert-tc-to-nvvm"
FRAGMENT = r'("tc\.store_fragment"\(%\w+, %\w+, )(%\w+), (%\w+)'

BUGS = [
    Planted(what, SMALL, after, edit, by)
    for what, after, edit, by in (
        ("rows past the output are stored", TILED,
         sub('tails = "outer"', 'tails = ""'), "illegal: tile-outside-tensor"),
        ("rows and columns of the store are exchanged", TILED,
         sub(FRAGMENT, r"\1\3, \2"), "hazard: race"),
        ("half of the tile's rows are loaded", TILED,
         both(sub(r"box = array<i64: 64, 64>", "box = array<i64: 64, 32>"),
              sub("nbytes = 8192", "nbytes = 4096")), "hazard: undefined-read"),
        ("each step forgets the sums before it", TILED,
         sub(r'("tc\.wgmma"\(%\w+, %\w+, )%\w+', r"\1%4"), "difference"),
        ("a free slot waits for the warps of two warpgroups", ROLES,
         sub("arrivals = 4 ", "arrivals = 8 "), "deadlock"),
        ("a slot is free when one warp has read it", ROLES,
         sub("arrivals = 4 ", "arrivals = 1 "), "deadlock"),
        ("the slot is awaited with the bytes of 128 rows", ROLES,
         sub(r"(expect_tx\".*nbytes = )10240", r"\g<1>18432"), "deadlock"),
        ("the slot is awaited with the bytes of 32 rows", ROLES,
         sub(r"(expect_tx\".*nbytes = )10240", r"\g<1>6144"), "deadlock"),
        ("tiles of B begin after 32 rows of A", ROLES,
         sub(r"(smem_tile\"\(\) \{offset = )\d{5}( .*\"MN\")", r"\g<1>4096\2"), "hazard: race"),
        ("a slot is free while the product runs", ROLES,
         sub(r"(wgmma_wait.*pending = )0", r"\g<1>1"), "hazard: race"),
        ("warps store 64 rows apart, as warpgroups", THREADS,
         sub(r"(= arith\.muli %\w+, )%c16_i32( : i32\n.*arith\.xori)", r"\1%c64_i32\2", 1),
         "difference"),
        ("rows after the 50th are stored", THREADS,
         sub(r"(%c50_i32 = arith\.constant )50", r"\g<1>64"), "illegal: out-of-bounds"),
        ("rows from the 42nd on are not stored", PTX,
         sub(r"(setp\.gt\.s32 \t%p\d+, %r\d+, )41;", r"\g<1>33;"),
         "difference"),
    )
]  # fmt: skip
