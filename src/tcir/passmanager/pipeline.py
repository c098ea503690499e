"""Passes and pipelines: how to define a pass, and how to build, print and parse pipelines.

A pass of tcir is a frozen dataclass whose fields are its options::

    @register_pass
    @dataclass(frozen=True)
    class MultiBuffer(Pass):
        name: ClassVar[str] = "multi-buffer"
        stages: int = 4

        def run(self, module: ir.Module) -> None: ...

A pipeline mixes such passes with upstream's passes, which are named by text::

    Pipeline([RaiseToTc(), "canonicalize", "func.func(cse)", my_pass])

``str(pipeline)`` is the textual form, ``builtin.module(raise-to-tc,canonicalize,func.func(cse))``;
`Pipeline.parse` reads it back.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tcir._mlir import is_mlir_error
from tcir.errors import Error, InputError, PassError, UnknownNameError, did_you_mean
from tcir.passmanager import text as pipeline_text
from tcir.passmanager.discovery import import_all, import_named
from tcir.passmanager.options import (
    OptionValue,
    describe_options,
    format_options,
    make_options,
    split_options,
)
from tcir.passmanager.renamed import PIPELINES, current_name
from tcir.target import DEFAULT_TARGET

if TYPE_CHECKING:
    from tcir._mlir import ir


class Pass:
    """Base class of passes. Subclasses are frozen dataclasses with a class attribute `name`."""

    name: ClassVar[str]

    def run(self, module: ir.Module) -> None:
        """Transforms `module` in place; raises `PassError` (with a location) to reject it."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.name + format_options(self)

    def apply(self, module: ir.Module) -> None:
        """Calls `run`, and turns any exception into an error that names the pass."""
        try:
            with module.context, module.operation.location:
                self.run(module)
        except PassError as error:
            error.pass_name = error.pass_name or self.name
            raise
        except Error:
            raise
        except RecursionError as error:
            limit = sys.getrecursionlimit()
            raise PassError(
                "expected a shorter chain of ops that each read the one before, got one at which "
                f"Python's recursion ends (limit {limit}); divide the function, or raise the limit "
                "with sys.setrecursionlimit",
                None,
                self.name,
            ) from error
        except Exception as error:
            if is_mlir_error(error):  # a verifier's or parser's message
                raise PassError(str(error), None, self.name) from error
            raise


@dataclass(frozen=True)
class UpstreamPass(Pass):
    """A pass of upstream MLIR, given by its text; the text is nested in the ops on which the pass
    runs (its anchors).
    """

    text: str
    anchors: tuple[str, ...] = ()

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the pass without options and anchors."""
        return self.text.partition("{")[0].strip()

    def __str__(self) -> str:
        return pipeline_text.nest(self.anchors, self.text)

    def run(self, module: ir.Module) -> None:
        self.pass_manager().run(module.operation)

    def pass_manager(self) -> Any:
        """Upstream's pass manager for this pass. Raises `UnknownNameError` if MLIR has no such
        pass.
        """
        from tcir._mlir import ir, passmanager

        with ir.Context.current or ir.Context():
            try:
                return passmanager.PassManager.parse(f"builtin.module({self})")
            except TypeError as error:  # of a name that was no UTF-8 on the command line
                raise InputError(f"expected a pass in UTF-8, got {str(self)!r}") from error
            except ValueError as error:
                raise self._unknown(str(error)) from error

    def nested(self) -> UpstreamPass:
        """Returns the pass nested in the anchor op that it requires, as mlir-opt nests passes given
        as flags."""
        try:
            self.pass_manager()
        except InputError as error:
            anchor = re.search(r"restricted to '([\w.]+)'", str(error))
            return dataclasses.replace(self, anchors=(anchor[1],)) if anchor else self
        return self

    def exists(self) -> bool:
        """Whether MLIR has a pass of this name."""
        try:
            self.pass_manager()
        except UnknownNameError:
            return False
        except InputError:  # it has one, which wants options or another anchor
            return True
        return True

    def _unknown(self, message: str) -> InputError:
        if "does not refer to a registered pass" in message:
            near = did_you_mean(self.name, suggested_passes())
            near = near if "did you mean" in near else ""
            return UnknownNameError(
                f"unknown pass '{self.name}': neither a pass of tcir (tc-opt --list-passes) "
                f"nor of MLIR{near}"
            )
        return InputError(f"pass '{self.text}': {' '.join(message.split())}")


# Only to suggest a near name: the bindings cannot list upstream's passes.
_COMMON_UPSTREAM = (
    "canonicalize", "convert-arith-to-llvm", "convert-cf-to-llvm", "convert-nvvm-to-llvm",
    "convert-scf-to-cf", "convert-to-llvm", "cse", "expand-strided-metadata",
    "fold-memref-alias-ops", "inline", "linalg-fold-unit-extent-dims",
    "linalg-generalize-named-ops", "linalg-specialize-generic-ops", "lower-affine",
    "loop-invariant-code-motion", "reconcile-unrealized-casts", "sccp", "strip-debuginfo",
    "symbol-dce",
)  # fmt: skip

PassType = TypeVar("PassType", bound=type[Pass])
_PASSES: dict[str, type[Pass]] = {}
_PIPELINES: dict[str, NamedPipeline] = {}


def register_pass(cls: PassType) -> PassType:
    """Registers a pass by its name, for textual pipelines and as a flag of tc-opt."""
    known = _PASSES.get(cls.name) or _own_pass(cls)
    if known is not None and (known.__module__, known.__qualname__) != (
        cls.__module__,
        cls.__qualname__,
    ):
        raise InputError(f"expected a new pass name, got '{cls.name}', taken by {known!r}")
    if not is_own(cls) and UpstreamPass(cls.name).exists():
        raise InputError(f"expected a new pass name, got '{cls.name}', taken by MLIR")
    if not hasattr(cls, "__dataclass_fields__"):
        raise InputError(f"expected a frozen dataclass, got {cls!r}")
    _PASSES[cls.name] = cls
    return cls


def _own_pass(cls: type[Pass]) -> type[Pass] | None:
    """The built-in pass whose name a pass from outside the package takes."""
    return None if is_own(cls) else find_pass(current_name(cls.name)[0])


def is_own(cls: type[Pass]) -> bool:
    """Whether a pass is one of this package."""
    return cls.__module__.startswith("tcir.passes.")


def find_pass(name: str) -> type[Pass] | None:
    """The registered pass called `name`; None if there is none."""
    if name not in _PASSES:
        import_named("passes", name)
    return _PASSES.get(name)


def find_pipeline(name: str) -> NamedPipeline | None:
    """The registered pipeline called `name`; None if there is none."""
    name = PIPELINES.get(name, name)
    if name not in _PIPELINES:
        import_named("pipelines", name)
    return _PIPELINES.get(name)


def registered_passes() -> dict[str, type[Pass]]:
    """All registered passes by name, including those that user code registered; imports all modules
    of passes.
    """
    import_all("passes")
    return dict(sorted(_PASSES.items()))


def registered_pipelines() -> dict[str, NamedPipeline]:
    """All named pipelines by their first name, including those that user code registered; imports
    all modules of pipelines.
    """
    import_all("pipelines")
    return dict(sorted(_PIPELINES.items()))


def register_pipeline(pipeline: NamedPipeline) -> NamedPipeline:
    """Registers a pipeline by its name."""
    name, outside = pipeline.name, not pipeline.build.__module__.startswith("tcir.pipelines.")
    if name in _PIPELINES or (outside and find_pipeline(name)):
        raise InputError(f"expected a new pipeline name, got '{name}', taken")
    _PIPELINES[name] = pipeline
    return pipeline


def suggested_passes() -> list[str]:
    """Names to suggest for a misspelt pass: those of tcir's passes, and of upstream's passes that
    are used most.
    """
    return [*registered_passes(), *_COMMON_UPSTREAM]


def make_pass(name: str, options: str = "", anchors: tuple[str, ...] = ()) -> Pass:
    """Creates the pass called `name`: a registered pass if there is one, otherwise an upstream
    pass, whose existence is checked when it runs.
    """
    new, implied = current_name(name)
    if new != name:
        warnings.warn(
            f"pass {name} is part of {new} now; its name goes with the next release",
            FutureWarning,
            stacklevel=2,
        )
    cls = find_pass(new)
    if cls is None:
        return UpstreamPass(name + options, anchors)
    if anchors:
        raise InputError(
            f"pass '{name}' runs on builtin.module, got it nested in {'('.join(anchors)}; "
            "write it outside"
        )
    made: Pass = make_options(cls, split_options(implied) | split_options(options), new)
    return made


@dataclass(frozen=True, init=False, repr=False)
class Pipeline:
    """An immutable sequence of passes: `append`, `insert` and `replace` return a new pipeline.

    It is created from passes, or from texts with one or more passes each.
    """

    passes: tuple[Pass, ...]

    def __init__(self, passes: Iterable[Pass | str] = ()) -> None:
        if not isinstance(passes, Iterable):
            raise InputError(f"expected a list of passes, got {passes!r}")
        object.__setattr__(self, "passes", tuple(p for item in passes for p in self._read(item)))

    @staticmethod
    def parse(text: str) -> Pipeline:
        """Parses ``builtin.module(...)`` (or only the text in the parentheses)."""
        if not isinstance(text, str):
            raise InputError(f"expected the text of a pipeline, got {text!r}")
        return Pipeline(
            make_pass(item.name, item.options, item.anchors) for item in pipeline_text.parse(text)
        )

    @staticmethod
    def _read(item: Pass | str) -> tuple[Pass, ...]:
        if isinstance(item, str):
            return Pipeline.parse(item).passes
        if isinstance(item, Pass):
            return (item,)
        raise InputError(f"expected a pass or its text, got {item!r}")

    def __str__(self) -> str:
        return pipeline_text.join(
            (p.anchors, p.text) if isinstance(p, UpstreamPass) else ((), str(p))
            for p in self.passes
        )

    def __repr__(self) -> str:
        return f"Pipeline.parse({str(self)!r})"

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)

    def __len__(self) -> int:
        return len(self.passes)

    def index(self, name: str) -> int:
        """Position of the first pass called `name`. If `name` is a former name of a pass, its
        present name is looked up.
        """
        name, _ = current_name(name)
        for position, item in enumerate(self.passes):
            if item.name == name:
                return position
        raise UnknownNameError(
            f"expected a pass of this pipeline, got '{name}'"
            + did_you_mean(name, {item.name for item in self.passes})
        )

    def append(self, item: Pass | str) -> Pipeline:
        """A pipeline with `item` at the end."""
        return Pipeline([*self.passes, item])

    def insert(
        self, item: Pass | str, *, before: str | None = None, after: str | None = None
    ) -> Pipeline:
        """A pipeline with `item` before or after the first pass of the given name."""
        if (before is None) == (after is None):
            raise InputError("expected one of before= and after=")
        position = self.index(before) if before is not None else self.index(str(after)) + 1
        return Pipeline([*self.passes[:position], item, *self.passes[position:]])

    def replace(self, name: str, item: Pass | str) -> Pipeline:
        """A pipeline with `item` in place of the first pass called `name`."""
        position = self.index(name)
        return Pipeline([*self.passes[:position], item, *self.passes[position + 1 :]])

    def check(self) -> Pipeline:
        """Raises `UnknownNameError` if an upstream pass of the list does not exist."""
        from tcir._mlir import ir

        upstream = [item for item in self.passes if isinstance(item, UpstreamPass)]
        if upstream:
            with ir.Context.current or ir.Context():  # loading all dialects takes its time
                for item in upstream:
                    item.pass_manager()
        return self

    def run(self, module: ir.Module) -> None:
        """Runs all passes in order, and verifies the module after each pass."""
        for item in self.passes:
            item.apply(module)
            module.operation.verify()


@dataclass(frozen=True)
class NamedPipeline:
    """A pipeline with a name and options, as ``--pipeline=NAME{options}`` builds it.

    doc:            one sentence; accepted_forms: the programs that it accepts, both for
                    ``--list-pipelines``
    options:        a dataclass of options (see `tcir.passmanager.options`)
    build:          function from an instance of `options` to the pipeline
    targets:        names of the targets for which it makes kernels
    """

    name: str
    doc: str
    options: type[Any]
    accepted_forms: tuple[str, ...]
    build: Callable[[Any], Pipeline]
    targets: tuple[str, ...] = (DEFAULT_TARGET.name,)

    def describe(self) -> str:
        """The entry of ``--list-pipelines``."""
        names = [name for name, first in PIPELINES.items() if first == self.name]
        also = f" (also {', '.join(names)})" if names else ""
        lines = [f"{self.name}: {self.doc}{also}"]
        lines += [f"    accepts  {form}" for form in self.accepted_forms]
        lines.append(f"    targets  {', '.join(self.targets)}")
        options = describe_options(self.options)
        return "\n".join([*lines, f"    options  {options}"] if options else lines)


def named_pipeline(text: str, **options: OptionValue) -> Pipeline:
    """Builds the pipeline that ``NAME`` or ``NAME{key=value}``, with keyword options, describes."""
    if not isinstance(text, str):
        raise InputError(f"expected the name of a pipeline, got {text!r}")
    name, brace, rest = text.strip().partition("{")
    entry = find_pipeline(name)
    if entry is None:
        near = did_you_mean(name, registered_pipelines())
        raise UnknownNameError(f"unknown pipeline '{name}'{near}")
    values: dict[str, Any] = {**split_options(brace + rest), **options}
    return entry.build(make_options(entry.options, values, name))


def as_pipeline(value: Pipeline | str | Iterable[Pass | str], **options: OptionValue) -> Pipeline:
    """Makes a pipeline of a pipeline, a list, ``builtin.module(...)`` text or a registered name."""
    if isinstance(value, str) and not value.strip().startswith("builtin.module"):
        return named_pipeline(value, **options)
    if options:
        raise InputError(
            f"options {sorted(options)} go with a named pipeline; a list of passes carries its own"
        )
    if isinstance(value, Pipeline):
        return value
    if isinstance(value, str):
        return Pipeline.parse(value)
    if not isinstance(value, list | tuple | Iterator):
        raise InputError(
            "pipeline: expected a name, 'builtin.module(...)', or a list of passes, got "
            f"{type(value).__name__}"
        )
    return Pipeline(value)
