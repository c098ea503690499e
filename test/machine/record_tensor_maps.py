"""Records `tensor_maps.json` again, on a computer with an NVIDIA GPU:

PYTHONPATH=src python test/machine/record_tensor_maps.py

Maps that the programs have now and the file does not are added, with the address of the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import tcir
from tcir.errors import InputError
from tcir.machine.tma.tensor_fields import Fields
from tcir.runtime.driver import bindings
from tcir.runtime.tensor_map import encode

PATH = Path(__file__).with_name("tensor_maps.json")
ROOT = Path(__file__).parents[2]
NOT_BUILT = ("conv_residual", "conv_transposed")
"""Programs that a target rejects."""
PROGRAMS = sorted(
    path.relative_to(ROOT)
    for path in ROOT.glob("test/endtoend/layers/*.mlir")
    if path.stem not in NOT_BUILT
)
TARGETS = "sm_100a", "sm_90a"
_NAMES = {"strides": "strides_bytes"}


def maps_of(program: Path, target: str) -> Iterator[dict[str, Any]]:
    """The fields of the tensor maps of a program's launches, as JSON has them."""
    kernel = tcir.compile(ROOT / program, "layers", target=target)
    for launch in kernel.launches.launches:
        for param in launch.params:
            if param["kind"] == "tensor_map":
                made = {_NAMES.get(k, k): v for k, v in param.items() if k not in ("kind", "arg")}
                yield json.loads(json.dumps(made))


def main() -> None:
    """The driver needs a context to encode."""
    driver = bindings()
    driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
    maps = json.loads(PATH.read_text())
    known = [each["fields"] for each in maps if each["of"] == "program"]
    address = maps[0]["address"]
    for program, target in product(PROGRAMS, TARGETS):
        for fields in maps_of(program, target):
            if fields not in known:
                known.append(fields)
                maps.append({"of": "program", "fields": fields, "address": address})
    for each in maps:
        given = {k: tuple(v) if isinstance(v, list) else v for k, v in each["fields"].items()}
        try:
            raw = encode(Fields(**given), each["address"])  # type: ignore[arg-type]
        except InputError:
            each["bytes"] = None
            continue
        assert not any(raw[76:])
        each["bytes"] = raw[:76].hex()
    PATH.write_text("[\n" + ",\n".join(map(json.dumps, maps)) + "\n]\n")


if __name__ == "__main__":
    main()
