"""Records the bytes of `tensor_maps.json` again, on a computer with an NVIDIA GPU:

PYTHONPATH=src python test/machine/record_tensor_maps.py
"""

from __future__ import annotations

import json
from pathlib import Path

from tcir.errors import InputError
from tcir.machine.tma.tensor_fields import Fields
from tcir.runtime.driver import bindings
from tcir.runtime.tensor_map import encode

PATH = Path(__file__).with_name("tensor_maps.json")


def main() -> None:
    """The driver needs a context to encode."""
    driver = bindings()
    driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
    maps = json.loads(PATH.read_text())
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
