"""The fastest combination of a sweep, kept for ``tcir.compile(..., tune=True)``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tcir.cache.keys import digest, versions
from tcir.cache.store import Store
from tcir.passmanager.options import format_options, make_options
from tcir.passmanager.pipeline import NamedPipeline
from tcir.target import TARGETS

if TYPE_CHECKING:
    from tcir._mlir import ir


@dataclass(frozen=True)
class Tuned:
    """Result of a sweep over the options of a pipeline.

    options:      options of the pipeline, by name
    microseconds: modelled time
    legal:        number of combinations of options from which the sweep chose
    verdict:      verdict of the execution after every pass; "" if the program was not executed
    """

    options: dict[str, str]
    microseconds: float
    legal: int
    verdict: str

    def __str__(self) -> str:
        words = " ".join(f"{name}={value}" for name, value in self.options.items())
        executed = f"executed after every pass: {self.verdict}" if self.verdict else "not executed"
        return (
            f"tuned: {words}, {self.microseconds:.2f} us, the least modelled time of {self.legal} "
            f"combinations of a sweep; {executed} there"
        )

    def keep(self, store: Store, key: str) -> None:
        """Stores the result under a key of `tuned_key`."""
        store.put(key, json.dumps(asdict(self)).encode())

    @staticmethod
    def find(store: Store, key: str) -> Tuned | None:
        """Result stored under a key; None if there is none."""
        found = store.get(key)
        return None if found is None else Tuned(**json.loads(found))


def canonical(pipeline: NamedPipeline, options: Mapping[str, object]) -> str:
    """Canonical text of a pipeline, with only the options that differ from their defaults."""
    return pipeline.name + format_options(
        make_options(pipeline.options, dict(options), pipeline.name)
    )


def tuned_key(module: ir.Module, pipeline: str, target: str) -> str:
    """Key of a program (without its locations), a `canonical` pipeline and a target."""
    text = module.operation.get_asm()
    return digest("tuned", text, pipeline, TARGETS.get(target), versions())
