"""Moves on pipelines: they remove passes and options of passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, cast

from tcir.passmanager.pipeline import Pass, Pipeline, UpstreamPass

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def up_to(pipeline: Pipeline, name: str) -> Pipeline:
    """Returns the passes up to and including the pass called `name`; all passes if there is none
    with that name.
    """
    names = [each.name for each in pipeline]
    return Pipeline(list(pipeline)[: names.index(name) + 1]) if name in names else pipeline


def with_defaults(pipeline: Pipeline) -> Iterator[Pipeline]:
    """Yields pipelines in which one option of one pass is reset to its default."""
    passes = list(pipeline)
    for place, item in enumerate(passes):
        for simpler in _simpler(item):
            yield Pipeline([*passes[:place], simpler, *passes[place + 1 :]])


def _simpler(item: Pass) -> Iterator[Pass]:
    if isinstance(item, UpstreamPass):
        return
    own = cast("DataclassInstance", item)
    for each in fields(own):
        if each.default is not MISSING and getattr(own, each.name) != each.default:
            yield cast("Pass", replace(own, **{each.name: each.default}))
