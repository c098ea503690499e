"""Warpgroups that take turns at the tensor core."""

from tcir._mlir import ir
from tcir.dialect.attributes import integer, string
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, verify

TURNS = ("begin", "wait", "pass", "end")


class TurnOp(Op, name="turn", issued_by="warp", role="consumer", async_only=True):
    """An operation on turns: the ``warpgroups`` of a role use the tensor core one after another.

    ``"wait"`` waits until the previous warpgroup has passed the turn on, and ``"pass"`` passes it
    to the next one. At the start, ``"begin"`` lets the last warpgroup pass the turn to the first;
    at the end, ``"end"`` lets the first wait once more, so that no arrival remains. Warpgroup w
    waits by ``bar.sync`` on barrier 1 + w, on which the previous warpgroup arrives by
    ``bar.arrive`` (PTX ISA 9.7.13.1).
    """

    example = """
    func.func @example() {
      "tc.turn"() {kind = "wait", warpgroups = 2 : i64} : () -> ()
      return
    }
    """

    kind: ir.StringAttr
    warpgroups: ir.IntegerAttr


@verify(
    TurnOp,
    "kind",
    "tc",
    "kind must be one of {legal}, got {got}",
    bad={'"wait"': '"take"'},
    good={'"wait"': '"pass"'},
)
def _(op: TurnOp) -> Broken:
    got = string(op, "kind")
    return None if got in TURNS else {"legal": ", ".join(TURNS), "got": got}


@verify(
    TurnOp,
    "warpgroups",
    "PTX ISA 9.7.13.1",
    "warpgroups must be 2 to 4, got {got}: one waits for no other, and an SM has registers for "
    "the sums of four",
    bad={"warpgroups = 2": "warpgroups = 1"},
    good={"warpgroups = 2": "warpgroups = 3"},
)
def _(op: TurnOp) -> Broken:
    got = integer(op, "warpgroups")
    return None if 2 <= got <= 4 else {"got": got}
