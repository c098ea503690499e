"""Arguments of a function's call: arrays may change from call to call; all other values are fixed
at compile time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jax.tree_util import PyTreeDef

from tcir.errors import InputError
from tcir.imported.program import check_array
from tcir.interp.types import Array

FIXED = (int, float, complex, str, bytes)
"""Types that a leaf may have besides an array; None is not a leaf in JAX."""


@dataclass(frozen=True)
class Call:
    """Positional and keyword arguments, flattened.

    leaves:     all leaves
    are_arrays: for each leaf, whether it is an array or a `jax.ShapeDtypeStruct`
    names:      name of each leaf, as in the call
    tree:       structure of the arguments
    """

    leaves: tuple[jax.Array | object, ...]
    are_arrays: tuple[bool, ...]
    names: tuple[str, ...]
    tree: PyTreeDef

    @classmethod
    def of(cls, args: Sequence[object], kwargs: Mapping[str, object]) -> Call:
        """Flattens arguments. Raises InputError for a leaf that is neither an array, a number nor a
        string.
        """
        paths, tree = jax.tree_util.tree_flatten_with_path((tuple(args), dict(kwargs)))
        names = tuple(_name(path) for path, _ in paths)
        leaves = tuple(leaf for _, leaf in paths)
        are_arrays = tuple(hasattr(each, "shape") and hasattr(each, "dtype") for each in leaves)
        for name, leaf, is_array in zip(names, leaves, are_arrays, strict=True):
            if not is_array and not isinstance(leaf, FIXED):
                raise InputError(
                    f"{name}: expected arrays, numbers or strings, in any pytree, got "
                    f"{type(leaf).__module__}.{type(leaf).__name__}"
                )
            if is_array and not _is_plain(leaf.dtype):
                raise InputError(
                    f"{name}: expected numbers, got {leaf.dtype}: kernels have no random keys, "
                    "strings or objects; jax.random.key_data is a key's numbers"
                )
        return cls(leaves, are_arrays, names, tree)

    @property
    def specs(self) -> list[jax.ShapeDtypeStruct]:
        """Shape and type of each array."""
        return [jax.ShapeDtypeStruct(each.shape, _canonical(each)) for each in self._arrays()]

    def _arrays(self) -> list[jax.Array]:
        pairs = zip(self.leaves, self.are_arrays, strict=True)
        return [leaf for leaf, is_array in pairs if is_array]

    def with_arrays(self, arrays: Sequence[object]) -> tuple[tuple[object, ...], dict[str, object]]:
        """Positional and keyword arguments of the call, with its arrays replaced by `arrays`."""
        rest = iter(arrays)
        pairs = zip(self.leaves, self.are_arrays, strict=True)
        leaves = [next(rest) if is_array else leaf for leaf, is_array in pairs]
        args, kwargs = jax.tree_util.tree_unflatten(self.tree, leaves)
        return args, kwargs

    def without_data(self) -> Call:
        """The same call with shapes and types (`jax.ShapeDtypeStruct`) in place of arrays."""
        specs = iter(self.specs)
        pairs = zip(self.leaves, self.are_arrays, strict=True)
        leaves = tuple(next(specs) if is_array else leaf for leaf, is_array in pairs)
        return Call(leaves, self.are_arrays, self.names, self.tree)

    def checked(self, given: Call) -> list[Array]:
        """The arrays of the call `given`. Raises InputError if its arguments differ from those for
        which the function was compiled.
        """
        if given.tree != self.tree or given.are_arrays != self.are_arrays:
            raise InputError(
                f"expected arguments as at compile time, {self.tree}, got "
                f"{given.tree}; compile again for others"
            )
        arrays, specs = [], iter(self.specs)
        for name, mine, leaf, is_array in zip(
            self.names, self.leaves, given.leaves, self.are_arrays, strict=True
        ):
            if is_array:
                spec = next(specs)
                array = np.asarray(leaf) if hasattr(leaf, "__array__") else leaf
                if isinstance(array, np.ndarray) and _canonical(array) == spec.dtype:
                    array = array.astype(spec.dtype)
                arrays.append(check_array(name, array, spec.shape, np.dtype(spec.dtype)))
            elif type(mine) is not type(leaf) or mine != leaf:
                raise InputError(
                    f"{name}: expected {mine!r}, as at compile time, got {leaf!r}: only arrays may "
                    "vary between calls; compile again for another value"
                )
        return arrays


def _canonical(array: Array) -> np.dtype:
    """The type that JAX gives an array; without x64, JAX has no types of 64 bits."""
    return np.dtype(jax.dtypes.canonicalize_dtype(array.dtype))


def _is_plain(dtype: object) -> bool:
    if jax.dtypes.issubdtype(dtype, jax.dtypes.extended):
        return False
    return any(jax.dtypes.issubdtype(dtype, each) for each in (np.number, np.bool_))


def _name(path: tuple[object, ...]) -> str:
    """Name of an argument: ``argument 0['w']``, ``argument scale``."""
    _, first, *rest = path
    key = getattr(first, "idx", getattr(first, "key", first))
    return f"argument {key}{jax.tree_util.keystr(tuple(rest))}"
