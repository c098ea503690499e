"""Replays tex of one object (PTX ISA 9.7.10) in all CTAs of a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.isa.texture import TextureFetch
from tcir.interp.ptx.lockstep.group import LockstepGroup, Operand
from tcir.interp.ptx.lockstep.lanes_of import Active
from tcir.interp.ptx.lockstep.ledger import ENGINE, LedgerLoad
from tcir.interp.ptx.lockstep.memory_steps import note_last
from tcir.interp.ptx.registers import VIEW_DTYPES
from tcir.machine.textures import Texels, Texture


@dataclass(frozen=True)
class TextureLoad:
    """Replays a texture fetch at varying coordinates; all texels are in one buffer.

    operands: the layer, if there is one, and the coordinates
    old:      for each channel, the values that lanes without a fetch keep
    again:    whether the fetch may repeat the warp's previous load
    """

    active: Active
    fetch: TextureFetch
    texture: Texture
    operands: tuple[Operand, ...]
    buffer: int
    old: tuple[Operand | None, ...]
    again: bool

    def run(self, group: LockstepGroup) -> None:
        warp, texture = self.active.warp, self.texture
        active = self.active.of(group)
        rows = [
            group.by_cta(warp, operand, view).reshape(-1)
            for operand, view in zip(self.operands, self.fetch.place.views, strict=True)
        ]
        found = self.fetch.texels(texture, rows)
        wanted = found.inside & (found.weights > 0) & active.reshape(-1)
        data = self._data(group, found, wanted)
        values = texture.combined(found, wanted, data[wanted])
        results, where = self.fetch.results, self.active.where(group)
        for n, before in enumerate(self.old):
            result = values[:, n].astype(VIEW_DTYPES[results.view])
            group.assign(warp, results.slots[n], results.view, result, where, before)

    def _data(
        self, group: LockstepGroup, found: Texels, wanted: NDArray[np.bool_]
    ) -> NDArray[np.uint8]:
        """Bytes of the wanted texels, [texels, lanes, bytes]. A CTA with undefined ones leaves."""
        buffer, nbytes = group.machine.memory.buffers[self.buffer], self.texture.texel
        at = np.where(wanted, found.at - buffer.base, 0)
        where = at[..., None] + np.arange(nbytes)
        if buffer.defined is not None:
            lost = (wanted & ~buffer.defined[where].all(axis=2)).any(axis=0)
            group.leave(lost.reshape(group.count, 32).any(axis=1))
        data = np.where(wanted[..., None], buffer.data[where], np.uint8(0))
        row, _ = group.everyone(self.active.warp)
        for places, chosen in zip(at, wanted, strict=True):
            lanes = np.flatnonzero(chosen)
            thread = np.full(len(lanes), ENGINE)  # nobody may write it, not even the same thread
            group.accesses.append(
                LedgerLoad(self.buffer, places[lanes], nbytes, row[lanes], thread)
            )
        each = wanted.sum(axis=0).reshape(group.count, 32).sum(axis=1)
        group.count_beyond("global_load", nbytes * each)
        taps = np.moveaxis(np.where(wanted, at, -1), 0, 1).reshape(group.count, -1)
        shown = np.moveaxis(data, 0, 1).reshape(group.count, taps.shape[1], nbytes)
        note_last(group, self.active.warp, taps, shown, self.again)
        return data
