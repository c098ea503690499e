"""Arrays of the host whose copies stay on a device."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tcir.runtime.memory import DeviceArray, to_device
from tcir.runtime.module import Module

_RESIDENT: WeakKeyDictionary[Module, dict[int, tuple[np.ndarray[Any, Any], DeviceArray]]] = (
    WeakKeyDictionary()
)
"""For each loaded module, the arrays that stay on its device and their copies there, by `id` of the
array."""


def resident(array: np.ndarray[Any, Any], module: Module) -> int:
    """Address of the copy of a read-only array on the module's device; the copy is made on first
    use.
    """
    copies = _RESIDENT.setdefault(module, {})
    if id(array) not in copies:
        copies[id(array)] = array, to_device(array, module.device)
    return copies[id(array)][1].pointer
