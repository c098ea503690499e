"""``tcir.compile(..., tune=True)``: the options that a sweep found fastest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tcir.cache import Store
from tcir.cache.tuned import Tuned, canonical, tuned_key
from tcir.errors import InputError
from tcir.passmanager.options import OptionValue, split_options
from tcir.passmanager.pipeline import Pass, Pipeline, as_pipeline, find_pipeline

if TYPE_CHECKING:
    from tcir._mlir import ir


def tuned_pipeline(
    store: Store,
    module: ir.Module,
    pipeline: Pipeline | str | Iterable[Pass | str],
    target: str,
    options: Mapping[str, OptionValue],
) -> tuple[Pipeline, str]:
    """Returns the pipeline with the options that a sweep found fastest, and a note on them for the
    report.
    """
    name, brace, rest = pipeline.strip().partition("{") if isinstance(pipeline, str) else ("",) * 3
    known = find_pipeline(name) if name else None
    if known is None:
        raise InputError(
            "tune: expected a named pipeline, such as 'gemm', whose options a sweep can vary, got "
            "passes; leave tune=True out"
        )
    given = {**split_options(brace + rest), **options}
    fixed = canonical(known, given)
    found = Tuned.find(store, tuned_key(module, fixed, target))
    if found is None:
        where = f"in {store.folder}" if store.folder else "as TCIR_CACHE_DIR is empty"
        return as_pipeline(fixed), (
            f"not tuned: no sweep of this program with {fixed} for {target} {where}; default "
            f"options (tc-bench sweep FILE --pipeline='{fixed}' --over …)"
        )
    chosen = {key.replace("-", "_"): value for key, value in found.options.items()}
    return as_pipeline(known.name, **{**given, **chosen}), str(found)
