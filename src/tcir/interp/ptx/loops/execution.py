"""The loop over instructions, compiled: it executes what `WarpInterpreter` would, in its order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcir.machine.jit import jit

Longs = NDArray[np.int64]

# --- rows of code ----------------------------------------------------------------------------
(OP, BITS, SIGNED, FLIPS, PRODUCTS, GUARD, NEGATE, GUARD_SLOT, TARGET, NBYTES, OFFSET,
 SITE, OPERANDS) = range(13)  # fmt: skip
"""SIGNED, FLIPS: of which sources, a bit each. GUARD: the number of a predicate, -1 for none.
SITE: the first instruction of the same place in the text, where a function is called twice.
OPERANDS: of the result and up to three sources the bytes of a lane (1: a predicate), the row or
number, and the slot."""
WIDTH = OPERANDS + 12

(ADD, SUB, MUL, AND, OR, XOR, MAD, NOT, NEG, COPY, SELECT, SHL, SHR_U, SHR_S, MIN, MAX, HIGH,
 EQ, NE, LT, LE, GT, GE, LOAD, BRANCH) = range(1, 26)  # fmt: skip
TESTS = {"eq": EQ, "ne": NE, "lt": LT, "le": LE, "gt": GT, "ge": GE}

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
def _fetch(
    code: Longs, n: int, words: NDArray[np.int32], longs: Longs, preds: Longs, out: Longs
) -> None:
    """The source n, from 1."""
    kind, row = code[OPERANDS + 3 * n], code[OPERANDS + 3 * n + 1]
    if kind == 4:
        keep = -1 if code[SIGNED] >> (n - 1) & 1 else 0xFFFFFFFF
        for lane in range(32):
            out[lane] = np.int64(words[row, lane]) & keep
    elif kind == 8:
        for lane in range(32):
            out[lane] = longs[row, lane]
    elif kind == 1:
        mask, flip = preds[row], code[FLIPS] >> (n - 1) & 1
        for lane in range(32):
            out[lane] = (mask >> lane & 1) ^ flip


@jit
def _put(
    code: Longs, active: int, r: Longs, words: NDArray[np.int32], longs: Longs, preds: Longs
) -> None:
    """The result."""
    kind, row = code[OPERANDS], code[OPERANDS + 1]
    if kind == 4:
        for lane in range(32):
            words[row, lane] = np.int32(r[lane]) if active >> lane & 1 else words[row, lane]
    elif kind == 8:
        for lane in range(32):
            longs[row, lane] = r[lane] if active >> lane & 1 else longs[row, lane]
    else:
        mask = 0
        for lane in range(32):
            mask |= (r[lane] & 1) << lane
        preds[row] = (preds[row] & ~active) | (mask & active)


@jit
def _on_words(code: Longs, active: int, words: NDArray[np.int32]) -> bool:
    """The commonest instructions, on registers of 4 bytes alone; False: it is none of them."""
    op = code[OP]
    if not (code[OPERANDS] == 4 and code[OPERANDS + 3] == 4 and code[OPERANDS + 6] == 4):
        return False
    out, x, y = words[code[OPERANDS + 1]], words[code[OPERANDS + 4]], words[code[OPERANDS + 7]]
    if op == XOR:
        for n in range(32):
            out[n] = x[n] ^ y[n] if active >> n & 1 else out[n]
    elif op == AND:
        for n in range(32):
            out[n] = x[n] & y[n] if active >> n & 1 else out[n]
    elif op == ADD:
        for n in range(32):
            out[n] = np.int32(x[n] + y[n]) if active >> n & 1 else out[n]
    else:
        return False
    return True


@jit
def _logic(op: int, x: Longs, y: Longs, z: Longs, r: Longs) -> None:
    if op == AND:
        for n in range(32):
            r[n] = x[n] & y[n]
    elif op == OR:
        for n in range(32):
            r[n] = x[n] | y[n]
    elif op == XOR:
        for n in range(32):
            r[n] = x[n] ^ y[n]
    elif op == NOT:
        for n in range(32):
            r[n] = ~x[n]
    elif op == COPY:
        for n in range(32):
            r[n] = x[n]
    else:  # SELECT
        for n in range(32):
            r[n] = x[n] if z[n] else y[n]


@jit
def _shifted(op: int, bits: int, x: Longs, y: Longs, r: Longs) -> None:
    if op == SHL:
        for n in range(32):
            r[n] = x[n] << y[n] if y[n] < bits else 0
    elif op == SHR_U:
        for n in range(32):
            r[n] = np.int64(np.uint64(x[n]) >> np.uint64(y[n])) if y[n] < bits else 0
    else:  # SHR_S
        for n in range(32):
            r[n] = x[n] >> min(y[n], bits - 1)


@jit
def _arithmetic(op: int, x: Longs, y: Longs, z: Longs, r: Longs) -> None:
    if op == ADD:
        for n in range(32):
            r[n] = x[n] + y[n]
    elif op == SUB:
        for n in range(32):
            r[n] = x[n] - y[n]
    elif op == MUL:
        for n in range(32):
            r[n] = x[n] * y[n]
    elif op == MAD:
        for n in range(32):
            r[n] = x[n] * y[n] + z[n]
    elif op == NEG:
        for n in range(32):
            r[n] = -x[n]
    else:  # HIGH
        for n in range(32):
            r[n] = (x[n] * y[n]) >> 32


@jit
def _compared(op: int, x: Longs, y: Longs, r: Longs) -> None:
    if op == EQ:
        for n in range(32):
            r[n] = x[n] == y[n]
    elif op == NE:
        for n in range(32):
            r[n] = x[n] != y[n]
    elif op == LT:
        for n in range(32):
            r[n] = x[n] < y[n]
    elif op == LE:
        for n in range(32):
            r[n] = x[n] <= y[n]
    elif op == GT:
        for n in range(32):
            r[n] = x[n] > y[n]
    else:  # GE
        for n in range(32):
            r[n] = x[n] >= y[n]


@jit
def _ordered(op: int, flip: bool, x: Longs, y: Longs, r: Longs) -> None:
    """flip: of unsigned numbers of 64 bits, whose order is that of signed ones then."""
    least = np.int64(-(2**63)) if flip else np.int64(0)
    for n in range(32):
        x[n] ^= least
        y[n] ^= least
    if op == MIN:
        for n in range(32):
            r[n] = min(x[n], y[n]) ^ least
    elif op == MAX:
        for n in range(32):
            r[n] = max(x[n], y[n]) ^ least
    else:
        _compared(op, x, y, r)


@jit
def _compute(code: Longs, x: Longs, y: Longs, z: Longs, r: Longs) -> None:
    op, bits = code[OP], code[BITS]
    if op in (ADD, SUB, MUL, MAD, NEG, HIGH):
        _arithmetic(op, x, y, z, r)
    elif op in (EQ, NE, LT, LE, GT, GE, MIN, MAX):
        _ordered(op, bits == 64 and not code[SIGNED], x, y, r)
    elif op in (SHL, SHR_U, SHR_S):
        _shifted(op, bits, x, y, r)
    else:
        _logic(op, x, y, z, r)


@jit
def _apply(
    code: Longs,
    active: int,
    state: Longs,
    words: NDArray[np.int32],
    longs: Longs,
    preds: Longs,
    rows: Longs,
) -> None:
    """An instruction that computes; rows: its sources, of which the first is there, and result."""
    x, y, z, r = rows[0], rows[1], rows[2], rows[3]
    _fetch(code, 2, words, longs, preds, y)
    _fetch(code, 3, words, longs, preds, z)
    _compute(code, x, y, z, r)
    if code[PRODUCTS]:
        state[MULTIPLIED] += _count(active) * code[PRODUCTS]


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
    """See `WarpInterpreter`: -1 goes on, otherwise why not; nothing is changed where it stops."""
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
    """Runs instructions until one is for the machine; says why it ends."""
    rows = np.empty((4, 32), np.int64)
    x, r = rows[0], rows[3]
    while True:
        _reconverge(state, groups)
        code, mask = codes[state[PC]], state[MASK]
        op, active = code[OP], mask
        if op == 0:
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
                _fetch(code, 1, words, longs, preds, x)
                why = _load(code, active, state, x, data, defined, writer, journal, last, r)
                if why >= 0:
                    return why
                if state[SHIFT] >= 0:
                    _record(code, active, state, x, readers, by_lane, warp, lines, ctas, near, far)
                state[LOADS] += 1
                state[BYTES] += _count(active) * code[NBYTES]
                _put(code, active, r, words, longs, preds)
            elif not _on_words(code, active, words):
                _fetch(code, 1, words, longs, preds, x)
                _apply(code, active, state, words, longs, preds, rows)
                _put(code, active, r, words, longs, preds)
            undef[code[OPERANDS + 2]] &= ~active
        state[PC] += 1
        state[COUNT] += 1
