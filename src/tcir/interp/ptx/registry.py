"""The table of PTX instructions that are executed, and of known instructions that are rejected with
a reason.
"""

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

    A name is a dotted prefix of the mnemonic ("add", "tcgen05.mma"). The longest registered prefix
    counts, and the remaining words of the mnemonic are the modifiers of `Decode`, in any order. The
    function removes the modifiers that it supports, reads the operands, and returns an `Op`. The
    op's function `run` is called once per executed warp instruction, with the warp and the mask of
    the active lanes. A modifier that is left over makes the instruction *incomplete*: the run names
    the instruction and executes nothing.

    To add an instruction, import a file like this one before the call of `tcir.run_ptx`; no other
    file changes::

        from tcir.interp.ptx.isa.values.elementwise import same_type
        from tcir.interp.ptx.registry import instruction

        @instruction("popc3")
        def popc3(d):
            '''Bits that are set in any of three operands.'''
            return same_type(d, lambda a, b, c: np.bitwise_count(a | b | c), d.type("b32"), 3)

    `same_type` and `elementwise` make an op from a numpy function over 32 lanes. `d.plain(run)`
    makes an op from a function (warp, mask), and `d.blocking(run)` from a generator that waits. An
    asynchronous instruction calls a unit of `tcir.machine` through `warp.agent`. The generator of
    `docs/reference/ptx-coverage.md` lists the instruction with the modifiers and types that the
    function reads. If the name was among the rejected instructions, it is accepted from then on.

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
    """Returns the executed instruction whose name is most similar to an unknown one; "" if none is
    similar.
    """
    words = mnemonic.split(".")
    for length in range(len(words), 0, -1):
        alike = [n for n in DECODERS if n.count(".") == length - 1 and n[0] == mnemonic[0]]
        found = get_close_matches(".".join(words[:length]), alike, n=1, cutoff=0.8)
        if found:
            return found[0]
    return ""


def find(mnemonic: str) -> str | None:
    """Returns the longest prefix of a mnemonic that is registered, or that is among the rejected
    names.
    """
    name = mnemonic
    while name:
        if name in DECODERS or name in REFUSED:
            return name
        name = name.rpartition(".")[0]
    return None
