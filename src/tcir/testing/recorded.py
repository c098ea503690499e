"""A launch on the simulated machine as a file: PTX, sizes, parameters, and memory before and after
the launch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tcir.errors import InputError
from tcir.machine.tma.map_fields import MapFields
from tcir.runtime.replay import Fields

Bytes = NDArray[np.uint8]

#: Bytes of a result that are kept whole, so that a difference has a place; of larger ones a digest.
WHOLE = 1 << 16
#: Instead of a result that is not compared.
ANY = "any"


@dataclass
class RecordedLaunch:
    """One launch.

    about:  entry, grid, block, cluster, dynamic_smem, programmatic, and `params`: the parts of each
            parameter, `{"hex"}`, `{"pointer": buffer, "offset"}` or `{"map": fields, "buffer",
            "offset"}`
    before: bytes of each buffer before the launch
    after:  bytes of each buffer after the launch on the machine, or their SHA-256, or `ANY`
    """

    ptx: str
    about: Fields
    before: list[Bytes]
    after: list[Bytes | str]

    def write(self, folder: Path) -> Path:
        """Writes a file whose name is a digest of sizes and PTX, so that equal launches are written
        once; returns its path."""
        sizes = [self.about[k] for k in ("entry", "grid", "block", "cluster", "dynamic_smem")]
        digest = hashlib.sha256(f"{sizes}\0{self.ptx}".encode()).hexdigest()[:16]
        path = folder / f"{digest}.npz"
        arrays: dict[str, Bytes] = {"ptx": np.frombuffer(self.ptx.encode(), np.uint8)}
        kept: list[str | None] = []
        for n, (before, after) in enumerate(zip(self.before, self.after, strict=True)):
            arrays[f"before{n}"] = before
            if isinstance(after, str) or len(after) > WHOLE:
                kept.append(after if isinstance(after, str) else _digest(after))
            else:
                kept.append(None)
                arrays[f"after{n}"] = after
        arrays["about"] = np.frombuffer(
            json.dumps({**self.about, "after": kept}).encode(), np.uint8
        )
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, allow_pickle=False, **arrays)
        return path

    @staticmethod
    def read(path: Path) -> RecordedLaunch:
        """Reads a file that `write` wrote. Raises InputError for a file of another kind."""
        try:
            with np.load(path, allow_pickle=False) as data:
                about = json.loads(data["about"].tobytes())
                kept = about.pop("after")
                before = [data[f"before{n}"] for n in range(len(kept))]
                after = [each or data[f"after{n}"] for n, each in enumerate(kept)]
                return RecordedLaunch(data["ptx"].tobytes().decode(), about, before, after)
        except (OSError, KeyError, ValueError) as error:
            raise InputError(f"{path}: expected a recorded launch, got {error}") from None

    def parameters(
        self, pointers: Sequence[int], encode: Callable[[MapFields, int], bytes]
    ) -> list[bytes]:
        """The bytes of each kernel parameter, if buffer n is at the address `pointers[n]`."""
        values = []
        for parts in self.about["params"]:
            value = b""
            for part in parts:
                if "hex" in part:
                    value += bytes.fromhex(part["hex"])
                elif "pointer" in part:
                    value += (pointers[part["pointer"]] + part["offset"]).to_bytes(8, "little")
                else:
                    items: Fields = {
                        k: tuple(v) if isinstance(v, list) else v for k, v in part["map"].items()
                    }
                    address = pointers[part["buffer"]] + part["offset"]
                    value += encode(MapFields(**items), address)
            values.append(value)
        return values

    def difference(self, found: Sequence[Bytes]) -> str:
        """Describes the first difference between the buffers `found` and those of the simulated
        machine; "" if there is none.
        """
        for n, (got, wanted) in enumerate(zip(found, self.after, strict=True)):
            if isinstance(wanted, str) and wanted == ANY:
                continue
            if isinstance(wanted, str):
                if _digest(got) != wanted:
                    return f"differs in buffer {n} ({len(got)} bytes, of which a digest is kept)"
                continue
            off = np.flatnonzero(got != wanted)
            if off.size:
                at = int(off[0]) // 4 * 4
                ours, theirs = (x[at : at + 4].tobytes()[::-1].hex() for x in (wanted, got))
                return (
                    f"differs at byte {int(off[0])} of buffer {n}: the machine has {ours}, the GPU "
                    f"{theirs}; {off.size} of {len(got)} bytes"
                )
        return ""


def digest(arrays: Sequence[Bytes]) -> str:
    """Short digest of all buffers of a launch."""
    return hashlib.sha256(b"".join(each.tobytes() for each in arrays)).hexdigest()[:16]


def _digest(array: Bytes) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()
