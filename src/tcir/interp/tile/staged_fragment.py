"""Rule of the store of a fragment through shared memory by TMA."""

from __future__ import annotations

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import defining, integer, integers
from tcir.interp.tensor.arith import convert
from tcir.interp.tile.compiler import Blocking, Compiler, Frame, Step, execute
from tcir.interp.tile.movement import segments
from tcir.interp.tile.tma_store import note_store
from tcir.interp.tile.values import SmemTile
from tcir.interp.tile.warp import held_by, pixels, walk_of
from tcir.interp.tile.wgmma import settled
from tcir.interp.types import dtype_of
from tcir.machine import TensorOperand
from tcir.machine.tma.box import store_box


@execute(tc.StoreFragmentStagedOp)
def store_fragment_staged(compiler: Compiler, op: tc.StoreFragmentStagedOp) -> Step:
    (fragment_,), (map_,), (ring_,), indices_ = segments(compiler, op)
    made = defining(op.map, tc.MakeTensorMapOp)
    tensor_, rows = compiler.slot(made.tensor), integers(made, "box")[1]
    first, count, width = integer(op, "slot"), op.ring.type.count, op.tile.shape[1]
    held, element = dtype_of(op.fragment.type.element), dtype_of(op.tile.element)
    part, site = held_by(compiler, op.fragment.type), compiler.site(op)
    writers, sequential, walk = compiler.writers, compiler.sequential, walk_of(op)

    def store(frame: Frame) -> Blocking:
        v, agent = frame.values, frame.agent
        total = convert(settled(frame, fragment_, site).view(held), element)
        mine, own = part(frame), len(total)
        at = mine.moved([v[i] for i in indices_])
        for number in range(total.shape[1] // width):
            tile: SmemTile = v[ring_].slots[(first + number) % count]
            yield from agent.bulk.wait(count - 1, True, site=site)
            places = tile.layout.elements(
                tile.base, 0, width, (mine.origin[0], mine.origin[0] + own)
            )
            data = np.ascontiguousarray(total[:, number * width : (number + 1) * width])
            raw = data.view(np.uint8).reshape(-1, element.itemsize)
            agent.memory.store("shared", places.ravel(), raw, site=site)
            agent.fence("proxy.async.shared", site=site)
            for down in range(0, own, rows):
                source = tile.base + (mine.origin[0] + down) * tile.layout.span
                *outer, row, column = at
                line = [row + down] if walk is None else pixels(row + down, walk)[::-1]
                coords = [column + number * width, *map(int, line), *outer[::-1]]
                operand = TensorOperand(v[map_], coords, mode="tile")
                box = store_box(operand, source, agent.machine.assumptions, site)
                agent.tma.store(source, operand, None, site=site)
                note_store(frame, writers, v[tensor_], box, site)
            agent.bulk.commit(site=site)
        if sequential:
            agent.drain()

    return store
