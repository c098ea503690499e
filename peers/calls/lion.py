"""lion-pytorch: the optimizer's kernel."""

from __future__ import annotations

from lion_pytorch.triton import update_fn

from peers.calls import F16, F32, Pair, named, some

for _kind in (F32, F16):

    def _update(kind: object = _kind) -> list[Pair]:
        p, g, m = some(700, dtype=kind), some(700, dtype=kind), some(700, dtype=kind)
        p8, g8, m8 = p.double(), g.double(), m.double()
        want = p8 * (1 - 0.01 * 0.1) - 0.01 * (m8 * 0.9 + g8 * 0.1).sign()
        update_fn(p, g, m, 0.01, 0.1, 0.9, 0.99)
        return [(p, want), (m, m8 * 0.99 + g8 * 0.01)]

    named(f"update_{str(_kind)[6:]}", _update)
