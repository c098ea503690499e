"""The state of a module's weights, which is checked once at each call of the module."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextvars import ContextVar

import numpy as np
import torch
from torch._C._dynamo.guards import TensorGuards

from tcir.errors import InputError


class Guard:
    """Checks that tensors have the same layouts as given tensors: shape, strides, type, device,
    class.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        nothing = {"dynamic_dims_sizes": None, "dynamic_dims_strides": None}
        self._guards = TensorGuards(*tensors, **nothing) if tensors else None
        self._count = len(tensors)

    def __call__(self, tensors: Sequence[torch.Tensor]) -> bool:
        if len(tensors) != self._count:
            return False
        return self._guards is None or bool(self._guards.check(*tensors))


class Snapshot:
    """State of the weights that a module reads: layouts and addresses and, if the weights are
    frozen, the number of writes that PyTorch counts for each (`Tensor._version`).

    A snapshot keeps frozen weights and their memory alive, so that no other tensor can get their
    addresses. Raises InputError for a frozen weight whose writes PyTorch does not count.

    numbers: indices of the weights that are read
    state:   an object whose identity represents the state
    key:     the addresses
    """

    def __init__(
        self, weights: Sequence[torch.Tensor], numbers: Sequence[int], frozen: bool
    ) -> None:
        self._weights, self.frozen, self.state = weights, frozen, object()
        self.tensors = [weights[n] for n in numbers]
        self._memory = [each.detach() for each in self.tensors] if frozen else []
        self.fits = Guard(self.tensors)
        self._addresses = [each.data_ptr() for each in self.tensors]
        self._all = list(range(len(self.tensors)))
        self._versions = _versions(self.tensors) if frozen else None
        self.key = np.array(self._addresses, np.uint64).tobytes()  # bytes keep their hash

    def is_of(self, weights: Sequence[torch.Tensor]) -> bool:
        """Whether these weights are the same tensors as those of the snapshot, in the same
        state.
        """
        return (
            (weights is self._weights or all(map(operator.is_, weights, self._weights)))
            and self.fits(self.tensors)
            and torch._C._tensors_data_ptrs_at_indices_equal(
                self.tensors, self._addresses, self._all
            )
            and (self._versions is None or self._versions == _versions(self.tensors))
        )


CURRENT: ContextVar[object] = ContextVar("state", default=None)
"""State of the weights of the module that is being called; None: unknown."""


def _versions(weights: Sequence[torch.Tensor]) -> list[int]:
    try:
        return [each._version for each in weights]
    except RuntimeError as error:
        raise InputError(
            "freeze=True: expected weights whose versions PyTorch counts, got one that was made in "
            "torch.inference_mode(); make it under torch.no_grad(), or compile with freeze=False"
        ) from error
