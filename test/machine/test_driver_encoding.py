"""Tensor maps as the CUDA driver encodes them, recorded on an H200, and as the machine reads them.

`tensor_maps.json` has every map of the programs of examples/ and test/endtoend/layers, for both
targets, and maps of which one argument was varied; `bytes` is null where the driver refused, else
the first 76 of 128 bytes, behind which all are zero. `record_tensor_maps.py` records them again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tcir.machine.refusal import TensorMapError
from tcir.machine.tma.driver_encoding import decode_driver
from tcir.machine.tma.map_fields import DecodedMap, MapFields

from .record_tensor_maps import PROGRAMS, TARGETS, maps_of

ROOT = Path(__file__).parents[2]
MAPS = json.loads((ROOT / "test/machine/tensor_maps.json").read_text())


def fields_of(given: dict[str, Any]) -> MapFields:
    return MapFields(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})


def raw(given: dict[str, Any]) -> bytes:
    return bytes.fromhex(given["bytes"]).ljust(128, b"\0")


def test_every_recorded_map_is_read_as_what_it_was_made_of() -> None:
    recorded = [each for each in MAPS if each["bytes"] is not None]
    assert len(recorded) == 347 and sum(each["of"] == "program" for each in recorded) == 218
    for each in recorded:
        assert decode_driver(raw(each)) == DecodedMap(fields_of(each["fields"]), each["address"])


def test_what_the_driver_refused_the_machine_does() -> None:
    """But for the atoms of 32 bytes, which are not of the Hopper that refused them."""
    refused = [each["fields"] for each in MAPS if each["bytes"] is None]
    ours = [each for each in refused if each["swizzle"] != "128B_ATOM_32B"]
    assert (len(refused), len(ours)) == (7, 5)
    for given in ours:
        with pytest.raises(TensorMapError):
            fields_of(given)


def test_every_bit_counts() -> None:
    """A map with one bit turned round is refused, or is another map; L2 promotion is no field."""
    for each in (MAPS[0], next(m for m in MAPS if m["fields"]["mode"] == "tiled")):
        data = raw(each)
        known = decode_driver(data)
        for bit in {*range(1024)} - {64 + 17, 64 + 18}:
            turned = bytearray(data)
            turned[bit // 8] ^= 1 << bit % 8
            try:
                assert decode_driver(bytes(turned)) != known, bit
            except TensorMapError:
                continue


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_the_maps_of_the_programs_are_recorded(program: Path, target: str) -> None:
    """What one adds has to be recorded, too."""
    known = [each["fields"] for each in MAPS if each["of"] == "program"]
    assert all(made in known for made in maps_of(program, target))
