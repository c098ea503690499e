"""setmaxnreg (PTX ISA 9.7.19.5)."""

from __future__ import annotations

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.op import Blocking, Op
from tcir.interp.ptx.register_counts import at_entry
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.warp import Warp
from tcir.machine.order.register_pool import Request


@instruction("setmaxnreg.inc.sync.aligned", "setmaxnreg.dec.sync.aligned")
def setmaxnreg(d: Decode) -> Op:
    """`imm-reg-count`: changes only the budget of registers. At PTX level a thread always has as
    many registers as the program names.
    """
    d.skip("u32")
    d.done(1)
    count = d.immediate(d.operands[0])
    if not 24 <= count <= 256 or count % 8:
        raise d.malformed(f"expected 24..256 registers in steps of 8, got {count}")
    request, entry = Request(d.name.split(".")[1], count, d.site), at_entry(d.function)

    def without_a_cap(w: Warp, m: int) -> None:
        w.agent.cta.report(
            "warning",
            "register-cap",
            "the entry of the kernel",
            request.site,
            "registers per thread at entry, by .maxnreg, or .minnctapersm beside .maxntid or "
            ".reqntid: without them setmaxnreg may have no effect (PTX ISA 9.7.19.5)",
        )

    def run(w: Warp, m: int) -> Blocking:
        yield from w.agent.registers.change(request, entry or 0)

    if entry is None:
        return d.plain(without_a_cap, aligned=True)
    return d.blocking(run, aligned=True)
