"""The compiled loop over instructions. It executes the same instructions as `WarpInterpreter`, in
the same order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.kernels.template import call_kernel
from tcir.machine.jit import jit

Longs = NDArray[np.int64]

EVERY = 0xFFFFFFFF
"""All lanes."""

# --- rows of code ----------------------------------------------------------------------------
(OP, FLIPS, PRODUCTS, GUARD, NEGATE, GUARD_SLOT, TARGET, NBYTES, OFFSET, SITE, OPERANDS) = range(11)
"""OP: one of the numbers below; in place of COMPUTE the address of the kernel. FLIPS: which
sources are negated, a bit each. GUARD: the number of a predicate, -1 for none. SITE: the first
instruction of the same place in the text, where a function is called twice. OPERANDS: of the result
and up to three sources the bytes of a lane (`BOOL`: a predicate; 0: none), the row or number, and
the slot."""
WIDTH = OPERANDS + 12
BOOL = -1
NONE, LOAD, BRANCH, COMPUTE = range(4)
"""An instruction for the machine; ld; bra; one that computes."""

# --- the state -------------------------------------------------------------------------------
(PC, MASK, OTHERS, SPINS, COUNT, LIMIT, LAST, LANES, LOADS, LOADED, BYTES, MULTIPLIED, BACK,
 BASE, SIZE, SHIFT, FIRST, LINE, ADDRESS) = range(19)  # fmt: skip
"""COUNT: instructions that were executed; beyond LIMIT a backward branch offers other warps a turn.
LAST, LANES: where the last load was, and of how many lanes. LOADS, LOADED, BYTES: how
many, by which lanes, of how many bytes. BACK: whether a backward branch was taken. BASE: where the
memory begins; SIZE: its bytes. SHIFT: its record tells 2 to the power of SHIFT bytes apart; -1:
there is none. FIRST: the number of the first load in the record; LINE: the warp's there. ADDRESS:
one outside of the memory."""

STOP, PAUSE, ELSEWHERE, FULL = range(4)
"""Why it ends: the next instruction is for the machine; other warps have a turn; a load goes to
another memory; there is no room for another load or group of lanes."""

SPINS_MOST = 64


@jit
def _operand(code: Longs, n: int, banks: Longs, preds: Longs, scratch: NDArray[np.uint8]) -> int:
    """Where the lanes of a source are, from 1, or of the result, 0; a predicate is written there,
    to a byte for each lane. banks: where the registers of each size are, and the kernel that
    selects."""
    size, row = code[OPERANDS + 3 * n], code[OPERANDS + 3 * n + 1]
    if size > 0:
        return int(banks[0, size] + 32 * size * row)
    if size == BOOL and n:
        _unpack(preds[row] ^ -(code[FLIPS] >> (n - 1) & 1), scratch[n])
    return int(scratch[n].ctypes.data)


@jit
def _unpack(mask: int, out: NDArray[np.uint8]) -> None:
    """A byte for each lane."""
    for lane in range(32):
        out[lane] = mask >> lane & 1


@jit
def _compute(
    code: Longs, active: int, banks: Longs, preds: Longs, scratch: NDArray[np.uint8]
) -> int:
    """Executes an instruction that computes; returns its number of multiplications. scratch: lanes
    of predicates, of the kernel's result, and of a mask"""
    kernel, size, row = code[OP], code[OPERANDS], code[OPERANDS + 1]
    result = _operand(code, 0, banks, preds, scratch)
    x = _operand(code, 1, banks, preds, scratch)
    y = _operand(code, 2, banks, preds, scratch)
    z = _operand(code, 3, banks, preds, scratch)
    if size == BOOL:
        call_kernel(kernel, result, x, y, z)
        mask = np.int64(0)
        for lane in range(32):
            mask |= np.int64(scratch[0, lane]) << lane
        preds[row] = (preds[row] & ~active) | (mask & active)
    elif active == EVERY:
        call_kernel(kernel, result, x, y, z)
    else:
        given, lanes = int(scratch[4].ctypes.data), int(scratch[5].ctypes.data)
        call_kernel(kernel, given, x, y, z)
        _unpack(active, scratch[5])
        call_kernel(banks[1, size], result, given, result, lanes)
    return _count(active) * int(code[PRODUCTS]) if code[PRODUCTS] else 0


@jit
def _addresses(code: Longs, words: NDArray[np.int32], longs: Longs, out: Longs) -> None:
    """Address of a load, without its offset."""
    size, row = code[OPERANDS + 3], code[OPERANDS + 4]
    for lane in range(32):
        out[lane] = np.int64(words[row, lane]) & 0xFFFFFFFF if size == 4 else longs[row, lane]


@jit
def _put(code: Longs, active: int, r: Longs, words: NDArray[np.int32], longs: Longs) -> None:
    """Writes loaded values to a register."""
    size, row = code[OPERANDS], code[OPERANDS + 1]
    for lane in range(32):
        if active >> lane & 1:
            if size == 4:
                words[row, lane] = np.int32(r[lane])
            else:
                longs[row, lane] = r[lane]


@jit
def _count(active: int) -> int:
    """Lanes of a mask."""
    lanes = 0
    for lane in range(32):
        lanes += active >> lane & 1
    return lanes


@jit
def _reconverge(state: Longs, groups: Longs) -> None:
    """See `Divergence.reconverge`; groups: program counter and lanes of each."""
    while state[OTHERS]:
        pc, count = state[PC], 0
        for n in range(state[OTHERS]):
            if groups[n, 0] == pc:
                state[MASK] |= groups[n, 1]
            else:
                groups[count, 0], groups[count, 1] = groups[n, 0], groups[n, 1]
                count += 1
        state[OTHERS] = count
        lowest = 0
        for n in range(1, count):
            if groups[n, 0] < groups[lowest, 0]:
                lowest = n
        if count == 0 or groups[lowest, 0] > pc:
            return
        state[PC], groups[lowest, 0] = groups[lowest, 0], pc
        mask = state[MASK]
        state[MASK], groups[lowest, 1] = groups[lowest, 1], mask
        state[SPINS] = 0


@jit
def _branch(code: Longs, active: int, state: Longs, groups: Longs) -> int:
    """Executes a branch as `WarpInterpreter` does. Returns -1 to continue, otherwise the reason to
    stop, with nothing changed."""
    target = code[TARGET]
    backward = target <= state[PC]
    if active == 0:
        state[PC] += 1
        state[COUNT] += 1
        return -1
    parts = active != state[MASK]
    if parts and state[OTHERS] == len(groups):
        return FULL
    if backward and state[SPINS] + 1 >= SPINS_MOST and (parts or state[OTHERS]):
        return STOP
    state[SPINS] += backward
    state[COUNT] += 1
    if parts:
        groups[state[OTHERS], 0], groups[state[OTHERS], 1] = target, active
        state[OTHERS] += 1
        state[PC] += 1
        state[MASK] &= ~active
        return -1
    state[PC] = target
    state[BACK] |= backward
    return PAUSE if backward and state[COUNT] > state[LIMIT] else -1


@jit
def _plain(
    place: int,
    nbytes: int,
    shift: int,
    defined: NDArray[np.bool_],
    writer: NDArray[np.int32],
) -> bool:
    """Whether the bytes are defined and unwritten in this launch."""
    for n in range(place, place + nbytes if len(defined) else place):
        if not defined[n]:
            return False
    if shift >= 0:
        for n in range(place >> shift, (place + nbytes) >> shift):
            if writer[n]:
                return False
    return True


@jit
def _load(
    code: Longs,
    active: int,
    state: Longs,
    at: Longs,
    data: NDArray[np.uint32],
    defined: NDArray[np.bool_],
    writer: NDArray[np.int32],
    journal: Longs,
    last: Longs,
    r: Longs,
) -> int:
    """Reads; -1, or why not. at: addresses, which become places in the memory; last: those of the
    last load, of its lanes in their order."""
    nbytes, offset, narrow = code[NBYTES], code[OFFSET], code[OPERANDS + 3] == 4
    base, room, shift = state[BASE], state[SIZE] - nbytes, state[SHIFT]
    same, lanes = state[LAST] == code[SITE], 0
    if state[LOADS] == len(journal):
        return FULL
    first, before, place, value = True, np.int64(0), np.int64(0), np.int64(0)
    for lane in range(32):
        if active >> lane & 1:
            address = at[lane] + offset
            if narrow:
                address &= 0xFFFFFFFF
            if first or address != before:
                first, before, place = False, address, address - base
                if place < 0 or place > room:
                    state[ADDRESS] = address
                    return ELSEWHERE
                if address & (nbytes - 1):
                    return STOP
                if not _plain(place, nbytes, shift, defined, writer):
                    return STOP
                value = np.int64(data[place >> 2])
                if nbytes == 8:
                    value |= np.int64(data[(place >> 2) + 1]) << 32
            same &= last[lanes] == address
            at[lane], r[lane] = place, value
            lanes += 1
    if same and lanes == state[LANES]:
        return STOP
    lanes = 0
    for lane in range(32):
        if active >> lane & 1:
            last[lanes] = at[lane] + base
            lanes += 1
    journal[state[LOADS], 0], journal[state[LOADS], 1] = state[PC], active
    state[LAST], state[LANES] = code[SITE], lanes
    state[LOADED] |= active
    return -1


@jit
def _record(
    code: Longs,
    active: int,
    state: Longs,
    at: Longs,
    readers: NDArray[np.int32],
    by_lane: NDArray[np.uint32],
    warp: NDArray[np.int32],
    lines: NDArray[np.int32],
    ctas: NDArray[np.int32],
    near: NDArray[np.int32],
    far: NDArray[np.int32],
) -> None:
    """See `LastShadow.record_read`: nothing that the warp has read before is known to all its
    lanes. Whether it comes after what others have read is not asked."""
    first, line, shift, nbytes = state[FIRST], state[LINE], state[SHIFT], code[NBYTES]
    number = first + state[LOADS]
    for lane in range(32):
        if active >> lane & 1:
            for granule in range(at[lane] >> shift, (at[lane] + nbytes) >> shift):
                before = readers[granule]
                own = before >= first or lines[before] == line
                kept = by_lane[granule] if own else np.uint32(0)
                if before and not own:
                    if ctas[lines[before]] == ctas[line]:
                        near[granule] = before
                    else:
                        far[granule] = before
                by_lane[granule] = kept | np.uint32(1 << lane)
                readers[granule] = number
                warp[granule] = line


@jit
def execute(
    codes: Longs,
    state: Longs,
    groups: Longs,
    words: NDArray[np.int32],
    longs: Longs,
    banks: Longs,
    preds: Longs,
    undef: Longs,
    data: NDArray[np.uint32],
    defined: NDArray[np.bool_],
    writer: NDArray[np.int32],
    readers: NDArray[np.int32],
    by_lane: NDArray[np.uint32],
    warp: NDArray[np.int32],
    lines: NDArray[np.int32],
    ctas: NDArray[np.int32],
    near: NDArray[np.int32],
    far: NDArray[np.int32],
    journal: Longs,
    last: Longs,
) -> int:
    """Executes instructions until the machine must execute one; returns the reason for the end."""
    at, found = np.empty(32, np.int64), np.empty(32, np.int64)
    scratch = np.empty((6, 256), np.uint8)
    while True:
        _reconverge(state, groups)
        code, mask = codes[state[PC]], state[MASK]
        op, active = code[OP], mask
        if op == NONE:
            return STOP
        if code[GUARD] >= 0:
            if undef[code[GUARD_SLOT]] & mask:
                return STOP
            guard = preds[code[GUARD]]
            active = mask & (~guard if code[NEGATE] else guard)
        if op == BRANCH:
            why = _branch(code, active, state, groups)
            if why >= 0:
                return why
            continue
        if active:
            for n in range(1, 4):
                if code[OPERANDS + 3 * n] and undef[code[OPERANDS + 3 * n + 2]] & active:
                    return STOP
            if op == LOAD:
                _addresses(code, words, longs, at)
                why = _load(code, active, state, at, data, defined, writer, journal, last, found)
                if why >= 0:
                    return why
                if state[SHIFT] >= 0:
                    _record(code, active, state, at, readers, by_lane, warp, lines, ctas, near, far)
                state[LOADS] += 1
                state[BYTES] += _count(active) * code[NBYTES]
                _put(code, active, found, words, longs)
            else:
                state[MULTIPLIED] += _compute(code, active, banks, preds, scratch)
            undef[code[OPERANDS + 2]] &= ~active
        state[PC] += 1
        state[COUNT] += 1


@jit
def execute_line(codes: Longs, mask: int, banks: Longs, preds: Longs) -> int:
    """Executes a sequence of computing instructions; returns the number of multiplications
    executed.
    """
    scratch = np.empty((6, 256), np.uint8)
    products = 0
    for code in codes:
        active = mask
        if code[GUARD] >= 0:
            guard = preds[code[GUARD]]
            active = mask & (~guard if code[NEGATE] else guard)
        if active:
            products += _compute(code, active, banks, preds, scratch)
    return products
