"""Device functions that the driver provides: vprintf, __assertfail, malloc and free (CUDA's "System
Calls").

The instructions of this file are not PTX: `calls.inline_calls` inserts them at calls of these
functions.
"""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.printf import Arguments, Formatted
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import Site, SystemCall, Variable
from tcir.interp.ptx.warp import Warp
from tcir.interp.ptx.windows import SPACES

_NO_STRING = -1


def _call(d: Decode) -> SystemCall:
    (call,) = d.operands
    assert isinstance(call, SystemCall)
    return call


class _Parameter:
    """A .param variable of the caller, lane by lane."""

    def __init__(self, d: Decode, variable: Variable) -> None:
        start = d.slots.local[variable.key]
        self.where, self.site = slice(start, start + variable.size), d.site

    def get(self, w: Warp, lane: int) -> int:
        if not w.local.defined[lane, self.where].all():
            w.undefined_arguments(self.site)
        return int.from_bytes(w.local.data[lane, self.where].tobytes(), "little")

    def set(self, w: Warp, lane: int, value: int) -> None:
        size = self.where.stop - self.where.start
        raw = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        w.local.data[lane, self.where] = np.frombuffer(raw, np.uint8)
        w.local.written((lane, self.where), None, self.site)


class _Reader:
    """Memory at generic addresses, as the driver reads it when it prints."""

    def __init__(self, w: Warp, lane: int, site: Site) -> None:
        self.w, self.lane, self.site = w, lane, site

    def bytes(self, address: int, count: int) -> bytes:
        data, defined = self._from(address)
        if len(data) < count:
            raise self.w.error(
                "out-of-bounds",
                f"expected {count} bytes at {address:#x}, got {len(data)}",
                self.site,
            )
        if defined is not None and not defined[:count].all():
            self.w.undefined_arguments(self.site)
        return data[:count].tobytes()

    def string(self, address: int) -> str:
        if not address:
            return "(null)"
        data, _ = self._from(address)
        ends = np.flatnonzero(data == 0)
        if not ends.size:
            raise self.w.error(
                "out-of-bounds",
                f"expected a string at {address:#x} that ends with a zero byte",
                self.site,
            )
        return self.bytes(address, int(ends[0])).decode(errors="backslashreplace")

    def _from(self, address: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The bytes from there to the end of their memory, and which are defined (None: all)."""
        w, inside = self.w, address & 0xFFFFFFFF
        match SPACES.get(address >> 32):
            case "local":
                (inside,) = w.own_local(np.array([inside]), np.array([self.lane]), self.site)
                return w.local.data[self.lane, inside:], w.local.defined[self.lane, inside:]
            case "shared":
                cta = w.agent.peers.cta_of(inside, self.site)
                inside -= cta.window
                return cta.smem.data[inside:], cta.smem.defined[inside:]
            case "param":
                return w.launch.params[inside:], None
        buffer = w.launch.machine.memory.find(address, address + 1, self.site)
        at = address - buffer.base
        return buffer.data[at:], None if buffer.defined is None else buffer.defined[at:]


def _print(reader: _Reader, text: int, at: int) -> int:
    """Prints the text of one lane; returns the result of vprintf."""
    arguments = Arguments(lambda offset, size: reader.bytes(at + offset, size))
    done = Formatted(reader.string(text), arguments, reader.string)
    reader.w.launch.print(done.text)
    for conversion in done.unsupported:
        reader.w.agent.cta.report(
            "warning",
            "printf-size",
            reader.site,
            conversion,
            "a size in h, l, ll: with another one a device prints other numbers, also for "
            'the arguments after it (CUDA C++ Programming Guide, "Format Specifiers")',
        )
    return done.count


@instruction("call-vprintf")
def vprintf(d: Decode) -> Op:
    """`(count) vprintf(format, arguments)`: the operands are pointers to the format text and to the
    packed arguments.
    """
    call, site = _call(d), d.site
    text_at, arguments_at = (_Parameter(d, v) for v in call.arguments)
    results = [_Parameter(d, v) for v in call.results]

    def run(w: Warp, m: int) -> None:
        w.agent.proceed(site)
        for lane in LANE_INDICES[m].tolist():
            text, at = text_at.get(w, lane), arguments_at.get(w, lane)
            count = _print(_Reader(w, lane, site), text, at) if text else _NO_STRING
            for result in results:
                result.set(w, lane, count)

    return d.plain(run)


@instruction("call-assertfail")
def assertfail(d: Decode) -> Op:
    """`__assertfail(message, file, line, function, size of a character)`: ends the kernel with an
    error.
    """
    call, site = _call(d), d.site
    parameters = [_Parameter(d, v) for v in call.arguments]

    def run(w: Warp, m: int) -> None:
        failed = []
        for lane in LANE_INDICES[m].tolist():
            reader = _Reader(w, lane, site)
            message, file, line, function, _ = (p.get(w, lane) for p in parameters)
            block = ",".join(map(str, w.agent.cta.index))
            thread = ",".join(str(n) for n in w.launch.sizes.thread(32 * w.index + lane))
            failed.append(
                f"{reader.string(file)}:{line}: {reader.string(function)}: block: [{block}], "
                f"thread: [{thread}] Assertion `{reader.string(message)}` failed."
            )
        w.launch.print("".join(text + "\n" for text in failed))
        more = f" (and {len(failed) - 1} more threads of the warp)" if len(failed) > 1 else ""
        raise w.error("assertion", failed[0] + more, site)

    return d.plain(run)


@instruction("call-malloc")
def malloc(d: Decode) -> Op:
    """`(address) malloc(size)`: each lane allocates; the address is 0 if the heap is full."""
    call, site = _call(d), d.site
    (size,) = (_Parameter(d, v) for v in call.arguments)
    results = [_Parameter(d, v) for v in call.results]

    def run(w: Warp, m: int) -> None:
        w.agent.proceed(site)
        for lane in LANE_INDICES[m].tolist():
            at = w.launch.machine.memory.allocate(size.get(w, lane))
            for result in results:
                result.set(w, lane, at)

    return d.plain(run)


@instruction("call-free")
def free(d: Decode) -> Op:
    """`free(address)`: each lane frees memory that malloc returned; for address 0 nothing
    happens.
    """
    (address,) = (_Parameter(d, v) for v in _call(d).arguments)
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.agent.proceed(site)
        for lane in LANE_INDICES[m].tolist():
            if at := address.get(w, lane):
                w.launch.machine.memory.free(at, site)

    return d.plain(run)
