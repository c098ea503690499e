"""The instructions that are executed, and those that are rejected by name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.op import Op

Decoder = Callable[[Decode], Op]

DECODERS: dict[str, Decoder] = {}
#: Name, the longest prefix of the dotted word → why nothing executes it.
REFUSED: dict[str, str] = {}


def instruction(*names: str) -> Callable[[Decoder], Decoder]:
    """Registers the function that decodes one or several PTX instructions.

    A name is a dotted prefix of the mnemonic ("add", "tcgen05.mma"): the longest registered one
    wins, and the remaining words are the modifiers of `Decode`, in any order. The function takes
    the modifiers that it supports, names the operands, and returns an `Op` whose closure is called
    once per executed warp instruction, with the warp and the mask of the active lanes. A modifier
    that is left over makes the instruction *incomplete*: the run names it and executes nothing.

    To add an instruction, import a file like this one before `tcir.run_ptx`; no other file
    changes::

        from tcir.interp.ptx.isa.values.elementwise import same_type
        from tcir.interp.ptx.registry import instruction

        @instruction("popc3")
        def popc3(d):
            '''Bits that are set in any of three operands.'''
            return same_type(d, lambda a, b, c: np.bitwise_count(a | b | c), d.type("b32"), 3)

    `same_type` and `elementwise` make an op from a numpy function over 32 lanes; `d.plain(run)`
    makes one from a function (warp, mask), `d.blocking(run)` from a generator that waits. An
    asynchronous instruction calls a unit of `tcir.machine` through `warp.agent`. The generator of
    `docs/reference/ptx-coverage.md` lists the instruction with the modifiers and types that the
    function reads. A name that was rejected before is then accepted.

    Raises ValueError for a name that is registered already.
    """

    def register(function: Decoder) -> Decoder:
        for name in names:
            if name in DECODERS:
                raise ValueError(f"expected one decoder for {name}, got two")
            REFUSED.pop(name, None)
            DECODERS[name] = function
        return function

    return register


def nearest(mnemonic: str) -> str:
    """The executed instruction that was probably meant; "" if none is near."""
    words = mnemonic.split(".")
    for length in range(len(words), 0, -1):
        alike = [n for n in DECODERS if n.count(".") == length - 1 and n[0] == mnemonic[0]]
        found = get_close_matches(".".join(words[:length]), alike, n=1, cutoff=0.8)
        if found:
            return found[0]
    return ""


def find(mnemonic: str) -> str | None:
    """The longest prefix of a mnemonic that is registered or rejected."""
    name = mnemonic
    while name:
        if name in DECODERS or name in REFUSED:
            return name
        name = name.rpartition(".")[0]
    return None
