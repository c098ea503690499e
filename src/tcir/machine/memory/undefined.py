"""Undefined bytes and words: memory that was never written, and values computed from it (as in
MemorySanitizer).

It is legal to copy undefined bits. A finding is reported when an address, a branch, a stored
result, or another effect of the program depends on undefined bits. The finding names their origin:
the first access to the unwritten memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import EllipsisType

import numpy as np
from numpy.typing import NDArray

from tcir.machine.findings import Finding
from tcir.machine.order.distinct import distinct

_Part = int | slice | EllipsisType | NDArray[np.int64] | NDArray[np.bool_]
Where = _Part | tuple[_Part, ...]
"""A numpy index of elements."""


@dataclass(frozen=True)
class Origin:
    """Why a value is undefined: the first access to unwritten memory, or a race.

    place: the bytes that were read
    what: the part of the description that is the same for all threads
    stored: site where the value was last stored to memory
    beside: further races that leave the value undefined
    """

    code: str
    site: object
    place: str
    missing: str = "nothing wrote it before"
    cta: tuple[int, int, int] = (0, 0, 0)
    what: str = ""
    stored: object = None
    beside: tuple[Origin, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """A key that is the same for all threads that execute the access."""
        own = str(self.site), self.what or self.place
        return own + tuple(word for other in self.beside for word in other.key)

    def findings(self, use: object, who: str = "") -> list[Finding]:
        """Returns the findings about a use of the value. use: site at which the undefined bits have
        an effect; who: the agent that uses them.
        """
        found = []
        for origin in (self, *self.beside):
            missing = origin.missing
            if str(use) != str(origin.site):
                missing = f"{missing}; a value that depends on it matters at {use}"
            what, place = origin.what or origin.place, origin.place if origin.what else ""
            found.append(
                Finding(
                    "error", origin.code, str(origin.site), what, missing, origin.cta,
                    who=who, place=place,
                )
            )  # fmt: skip
        return found

    def and_by(self, other: Origin) -> Origin:
        """Returns the origin of a value that is undefined for the reasons of both origins."""
        if any(known.key == other.key for known in (replace(self, beside=()), *self.beside)):
            return self
        return replace(self, beside=(*self.beside, other))


@dataclass(frozen=True)
class Undefined:
    """Mask of the undefined elements of a value, with the origin of one of them."""

    where: NDArray[np.bool_]
    origin: Origin

    def of(self, where: Where) -> Undefined | None:
        """Restricts the mask to a part of the value; returns None if all of the part is defined."""
        part = self.where[where]
        return Undefined(part, self.origin) if part.any() else None

    def any(self, axis: int) -> Undefined:
        """Returns the mask for a reduction along an axis: a result is undefined if any of its
        inputs is.
        """
        return Undefined(np.asarray(self.where.any(axis=axis)), self.origin)


class Tracked:
    """A memory whose elements (bytes or words) may be undefined.

    defined: mask of the defined elements; None: all are defined. An undefined element that was
        stored has an origin; an element that was never written has none.
    """

    defined: NDArray[np.bool_] | None
    stored: NDArray[np.bool_] | None = None
    """Mask of the elements that were stored to since it was set; None: it is not needed."""
    _numbers: NDArray[np.int32] | None = None
    _known: tuple[Origin, ...] = ()

    def missing(self, where: Where, origin: Origin) -> Undefined | None:
        """Returns the undefined elements among these elements. `origin`: origin of the elements
        that were never written.
        """
        if self.defined is None:
            return None
        defined = self.defined[where]
        if np.count_nonzero(defined) == defined.size:  # several times as fast as `all`
            return None
        missing = ~defined
        if self._numbers is not None:
            number = int(self._numbers[where][missing][0])
            origin = self._known[number - 1] if number else origin
        return Undefined(missing, origin)

    def written(
        self,
        where: Where,
        undefined: Undefined | None,
        site: object,
        kept: Undefined | None = None,
    ) -> None:
        """Records a store at `site`. `undefined`: elements of the store that are undefined; `kept`:
        elements that were undefined before the store and keep their origin.
        """
        if self.stored is not None:
            self.stored[where] = True
        if undefined is None:
            if self.defined is not None:
                self.defined[where] = True
            return
        if self.defined is None:
            self.defined = np.ones(self._size, bool)
        self.defined[where] = ~undefined.where
        numbers, number = self._named(undefined.origin, site)
        if kept is not None:
            before = np.where(kept.where, numbers[where], 0)
            numbers[where] = np.where(before, before, number)
        else:
            numbers[where] = number

    def lose(self, where: Where, undefined: Undefined, site: object) -> None:
        """Makes elements undefined that `site` has already stored."""
        assert self.defined is not None
        numbers, number = self._named(undefined.origin, site)
        before = np.where(self.defined[where], 0, numbers[where])
        after = np.where(undefined.where & (before == 0), number, numbers[where])
        for old in distinct(before[undefined.where & (before > 0)]).tolist():
            _, both = self._named(self._known[old - 1].and_by(undefined.origin), site)
            after[undefined.where & (before == old)] = both
        numbers[where] = after
        self.defined[where] &= ~undefined.where

    def _named(self, origin: Origin, site: object) -> tuple[NDArray[np.int32], int]:
        """Returns `_numbers`, and the number in it of an origin of elements that `site` stores."""
        assert self.defined is not None
        origin = replace(origin, stored=site)
        if origin not in self._known:
            self._known += (origin,)
        if self._numbers is None:
            self._numbers = np.zeros(self.defined.shape, np.int32)
        return self._numbers, self._known.index(origin) + 1

    def cleared(self, where: Where) -> None:
        """Marks elements as never written."""
        if self.stored is not None:
            self.stored[where] = True
        if self.defined is None:
            self.defined = np.ones(self._size, bool)
        self.defined[where] = False
        if self._numbers is not None:
            self._numbers[where] = 0

    def moved(self, target: Where, source: Where) -> None:
        """Copies the masks and origins of elements that were copied within the memory."""
        assert self.defined is not None
        self.defined[target] = self.defined[source]
        if self._numbers is not None:
            self._numbers[target] = self._numbers[source]

    def stored_undefined(self) -> list[tuple[int, Origin]]:
        """Returns, for each origin, the first undefined element that was stored, together with that
        origin.
        """
        if self._numbers is None or self.defined is None:
            return []
        numbers = np.where(self.defined, 0, self._numbers).ravel()
        found, first = np.unique(numbers, return_index=True)
        return [
            (int(at), self._known[number - 1])
            for number, at in zip(found.tolist(), first.tolist(), strict=True)
            if number
        ]

    @property
    def _size(self) -> int:
        """Number of elements of a memory that was wholly defined so far."""
        raise NotImplementedError
