"""Bugs of synchronisation, layout, descriptors, launches and workspaces.

Of kinds, and in pipelines, that the tests of `endtoend` do not break.
"""

from __future__ import annotations

import re

from .edits import Edit, sub
from .planted import PTX, Planted

ROLES, THREADS, CLC = "assign-roles", "convert-tc-to-nvvm", "cluster-launch-control"
SPLIT, PLANNED, STAGED = "split-launches", "plan-workspaces", "plan-staging"


def without(pattern: str, index: int = 0) -> Edit:
    """Deletes the line that has the match number `index` of a pattern."""

    def changed(text: str) -> str:
        lines = text.split("\n")
        found = [n for n, line in enumerate(lines) if re.search(pattern, line)]
        del lines[found[index]]
        return "\n".join(lines)

    return changed


def nth(pattern: str, replacement: str, index: int = 0) -> Edit:
    """Replaces the match number `index` of a pattern."""

    def changed(text: str) -> str:
        match = list(re.finditer(pattern, text))[index]
        return text[: match.start()] + match.expand(replacement) + text[match.end() :]

    return changed


PAIRS = [
    Planted(what, "pairs", after, edit, by)
    for what, after, edit, by in (
        (
            "the leader expects the bytes of one CTA",
            ROLES,
            sub("nbytes = 36864", "nbytes = 18432"),
            "deadlock",
        ),
        (
            "the other CTA is not told of the sums",
            ROLES,
            nth("cta_mask = 3", "cta_mask = 1", 1),
            "deadlock",
        ),
        (
            "B's half by the grid, not the rank",
            ROLES,
            sub(r"arith\.muli %4, %c16", "arith.muli %c0, %c16"),
            "difference",
        ),
        (
            "tensor memory freed before the pair is done",
            ROLES,
            without(r'"tc\.cluster_barrier"', 1),
            "illegal: tensor-memory-columns",
        ),
        (
            "barriers used before the other CTA has made them",
            ROLES,
            without(r'"tc\.cluster_barrier"', 0),
            "hazard: race",
        ),
        (
            "instruction of M 128",
            PTX,
            sub(r"(mov\.b32 \t%r\d+, )(\d{9});", lambda m: f"{m[1]}{int(m[2]) - (8 << 24)};"),
            "hazard: undefined-read",
        ),
        (
            "no cluster in the launch",
            THREADS,
            sub(
                r"nvvm\.cluster_dim = array<i32: 2, 1, 1>", "nvvm.cluster_dim = array<i32: 1, 1, 1>"
            ),
            "illegal: cluster",
        ),
        ("commit to one CTA", PTX, sub(r"mov\.b16 \t(%rs1), 3;", r"mov.b16 \t\1, 1;"), "deadlock"),
    )
]
CONTROL = [
    Planted(what, "clc", after, edit, by)
    for what, after, edit, by in (
        (
            "answers read before they arrive",
            CLC,
            without(r'"tc\.mbarrier_wait"\(%17', 0),
            "hazard: race",
        ),
        (
            "the epilogue reads answers before they arrive",
            CLC,
            without(r'"tc\.mbarrier_wait"\(%17', 2),
            "hazard: race",
        ),
        (
            "an answer is asked for before the last one was read",
            CLC,
            without(r'"tc\.mbarrier_wait"\(%18', 0),
            "hazard: never-awaited",
        ),
        (
            "the mma warp does not say that it has read",
            CLC,
            without(r'"tc\.mbarrier_arrive"\(%18', 0),
            "deadlock",
        ),
        (
            "one arrival too few",
            CLC,
            sub("arrivals = 129", "arrivals = 128"),
            "illegal: mbarrier-over-arrival",
        ),
        ("8 bytes of an answer", CLC, sub("nbytes = 16 ", "nbytes = 8 "), "deadlock"),
        (
            "tiles 6 wide are 5 wide in the epilogue",
            CLC,
            nth(r"arith\.remui %arg5, %c6", "arith.remui %arg5, %c4", 1),
            "hazard: output-never-written",
        ),
        (
            "accumulators of all tiles are one",
            CLC,
            nth(r'(%28 = "tc\.slot"\(%12, )%27', r"\1%c0"),
            "hazard: race",
        ),
    )
]
HOPPER = [
    Planted(what, program, after, edit, by)
    for program, what, after, edit, by in (
        (
            "hopper leaky",
            "wgmma without its fence",
            PTX,
            without(r"wgmma\.fence"),
            "hazard: missing-wgmma-fence",
        ),
        (
            "hopper leaky",
            "registers read before the wait",
            PTX,
            without(r"wgmma\.wait_group"),
            "hazard: wgmma-in-flight",
        ),
        (
            "hopper leaky",
            "wgmma without its commit",
            PTX,
            without(r"wgmma\.commit_group"),
            "hazard: wgmma-in-flight",
        ),
        (
            "hopper leaky",
            "one group may be under way",
            PTX,
            sub(r"wait_group\.sync\.aligned 0", "wait_group.sync.aligned 1"),
            "hazard: wgmma-in-flight",
        ),
        (
            "hopper leaky",
            "B is not transposed",
            PTX,
            sub(r"p, 1, 1, 0, 1;", "p, 1, 1, 0, 0;"),
            "difference",
        ),
        (
            "hopper leaky",
            "A is negated",
            PTX,
            nth(r"p, 1, 1, 0, 1;", "p, -1, 1, 0, 1;"),
            "difference",
        ),
        (
            "hopper leaky",
            "B's bytes are not expected",
            "unroll-rings",
            sub("nbytes = 5120", "nbytes = 4096"),
            "hazard: race",
        ),
        (
            "hopper leaky",
            "B lies on A's end",
            "unroll-rings",
            sub("offset = 4096", "offset = 4032"),
            "refused",
        ),
        (
            "hopper implicit",
            "the wait for data is left out",
            "unroll-rings",
            without(r'"tc\.mbarrier_wait"', -1),
            "hazard: race",
        ),
        (
            "hopper offset",
            "the wait for data is left out",
            "unroll-rings",
            without(r'"tc\.mbarrier_wait"', -1),
            "hazard: race",
        ),
        (
            "hopper tf32",
            "swizzle of 64 bytes for 128",
            THREADS,
            sub(r'swizzle = "128B"', 'swizzle = "64B"'),
            "illegal: box",
        ),
        (
            "hopper i8 to i8",
            "the grid is a column of tiles short",
            THREADS,
            sub(r"tc\.grid = array<i64: 1, 2, 1>", "tc.grid = array<i64: 1, 1, 1>"),
            "difference",
        ),
        (
            "hopper two",
            "launches in the other order",
            THREADS,
            sub(r"tc\.order = ([01])", lambda m: f"tc.order = {1 - int(m[1])}"),
            "difference",
        ),
        (
            "hopper bf16",
            "half of the shared memory",
            THREADS,
            sub(r"tc\.smem_bytes = (\d+)", lambda m: f"tc.smem_bytes = {int(m[1]) // 2}"),
            "illegal: out-of-bounds",
        ),
    )
]
WARPS = [
    Planted(what, program, after, edit, by)
    for program, what, after, edit, by in (
        (
            "warp f16",
            "three groups of copies may be under way",
            STAGED,
            sub("pending = 2", "pending = 3"),
            "hazard: race",
        ),
        (
            "warp f16",
            "lanes read what others copied without a barrier",
            PTX,
            without(r"bar\.sync"),
            "hazard: race",
        ),
        (
            "warp f16",
            "B's stage lies on A's",
            STAGED,
            sub("offset = 32768", "offset = 4096"),
            "hazard: race",
        ),
        ("warp f16", "K step 16 for 32", STAGED, sub("k = 32 ", "k = 16 "), "difference"),
        (
            "warp f16",
            "the swizzle of a load differs",
            PTX,
            nth(r"(xor\.b32 \t%r\d+, %r\d+, )96;", r"\g<1>64;"),
            "difference",
        ),
        (
            "warp f16",
            "8 bytes of a copy",
            PTX,
            nth(r"(cp\.async)\.cg(\.shared\.global \[%rd\d+\], \[%rd\d+\], )16;", r"\1.ca\g<2>8;"),
            "hazard: undefined-read",
        ),
        (
            "warp f16",
            "copies of the last rows missing",
            PTX,
            without(r"cp\.async\.cg", -1),
            "hazard: undefined-read",
        ),
        (
            "warp f16",
            "ldmatrix without trans",
            PTX,
            sub(r"ldmatrix(\S*)\.trans", r"ldmatrix\1"),
            "difference",
        ),
        (
            "warp leaky",
            "the wait for TMA is left out",
            STAGED,
            without(r'"tc\.mbarrier_wait"'),
            "hazard: race",
        ),
        (
            "warp leaky",
            "the bytes of A only",
            STAGED,
            sub("nbytes = 12288", "nbytes = 8192"),
            "hazard: race",
        ),
        (
            "hopper warp",
            "the wait for TMA is left out",
            STAGED,
            without(r'"tc\.mbarrier_wait"'),
            "hazard: race",
        ),
        (
            "hopper warp",
            "stages overlap",
            STAGED,
            sub("offset = 32768", "offset = 8064"),
            "refused",
        ),
        (
            "warp i8",
            "rows 8 to 15 of a fragment twice",
            PTX,
            nth(r"(ldmatrix\S* \{%r\d+), (%r\d+), (%r\d+), (%r\d+)\}", r"\1, \3, \2, \4}"),
            "difference",
        ),
    )
]
STORES = [
    Planted(what, "store tma", after, edit, by)
    for what, after, edit, by in (
        (
            "stored without a proxy fence",
            THREADS,
            without(r"nvvm\.fence\.proxy \{kind = #nvvm\.proxy_kind<async>\}"),
            "hazard: missing-proxy-fence",
        ),
        ("not committed", THREADS, without(r"bulk\.commit\.group"), "warning: never-awaited"),
        (
            "left with stores under way",
            THREADS,
            without(r"wait_group 0 \{read\}", -1),
            "warning: never-awaited",
        ),
    )
]
LAUNCHES = [
    Planted(what, program, after, edit, by)
    for program, what, after, edit, by in (
        (
            "programmatic",
            "the second launch does not wait",
            PTX,
            without(r"griddepcontrol\.wait", 2),
            "hazard: race",
        ),
        (
            "two",
            "launches in the other order",
            THREADS,
            sub(r"tc\.order = ([01])", lambda m: f"tc.order = {1 - int(m[1])}"),
            "difference",
        ),
        (
            "two",
            "a workspace of half its size",
            PLANNED,
            sub("tc.workspaces = array<i64: 3840>", "tc.workspaces = array<i64: 1920>"),
            "illegal: out-of-bounds",
        ),
        (
            "two",
            "the second reads x",
            THREADS,
            sub(r"\{arg = 5 : i64", "{arg = 0 : i64"),
            "difference",
        ),
        (
            "two",
            "one launch of two",
            THREADS,
            sub(r"tc\.grid = array<i64: 1, 3, 1>", "tc.grid = array<i64: 1, 2, 1>"),
            "hazard: workspace-never-written",
        ),
        (
            "split-k",
            "a part's workspace is short",
            PLANNED,
            sub("array<i64: 16384>", "array<i64: 8192>"),
            "illegal: out-of-bounds",
        ),
        (
            "split-k",
            "sums before their parts",
            THREADS,
            sub(r"tc\.order = ([01])", lambda m: f"tc.order = {1 - int(m[1])}"),
            "difference",
        ),
        (
            "softmax_f16 layer",
            "a block of 64 threads of 128",
            "convert-to-simt",
            sub(r"reqntid = array<i32: 128, 1, 1>", "reqntid = array<i32: 64, 1, 1>"),
            "hazard: undefined-read",
        ),
        (
            "simt mx",
            "a lane's sum is left out",
            PTX,
            nth(r"(shfl\.sync\.bfly\.b32 \t%r\d+, %r\d+, )16", r"\g<1>0"),
            "difference",
        ),
        (
            "simt mx",
            "a shuffle of half a warp",
            PTX,
            nth(r"(shfl\.sync\.bfly\.b32 \t%r\d+, %r\d+, 8, 31, )-1", r"\g<1>65535"),
            "illegal: not-a-member",
        ),
        (
            "simt nvfp4, columns",
            "a block of 96 threads",
            PTX,
            sub(r"\.reqntid 128, 1, 1", ".reqntid 96, 1, 1"),
            "illegal: block",
        ),
        (
            "padded stream-k",
            "the reduction reads before all have written",
            THREADS,
            without(r"nvvm\.(?:cluster\.wait|barrier)|cluster_barrier|barrier\.cluster", 1),
            "illegal: tensor-memory-columns",
        ),
        (
            "padded relu6",
            "scales are copied after the mma",
            ROLES,
            without(r'"tc\.mbarrier_wait"', 1),
            "deadlock",
        ),
        (
            "shift relu6",
            "pixels shifted by 2",
            "tile-conv-shift-reuse",
            sub(r"ashift = true", "ashift = false"),
            "difference",
        ),
        (
            "offset dilated",
            "taps one pixel apart",
            PTX,
            nth(r"(add\.s64 \t%rd\d+, %rd\d+, )(\d+);", r"\g<1>0;"),
            "difference",
        ),
        (
            "implicit pair",
            "the leader expects half",
            ROLES,
            sub(r"(leader, nbytes = )(\d+)", lambda m: f"{m[1]}{int(m[2]) // 2}"),
            "deadlock",
        ),
        (
            "persistent leaky",
            "the accumulator is freed before it is read",
            ROLES,
            nth(r'("tc\.mbarrier_arrive".*\n)', ""),
            "deadlock",
        ),
    )
]
BUGS = [*PAIRS, *CONTROL, *HOPPER, *WARPS, *STORES, *LAUNCHES]
