"""Passes, options, pipelines and their text."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcir
from tcir.passmanager.options import format_options, make_options, split_options
from tcir.passmanager.pipeline import UpstreamPass, named_pipeline, registered_passes


@tcir.register_pass
@dataclass(frozen=True)
class Options(tcir.Pass):
    """Has an option of every kind."""

    name: ClassVar[str] = "test-options"
    stages: int = 4
    fast: bool = False
    scale: float = 1.0
    words: str = "none"
    tiling: Literal["rows", "linear"] = "rows"
    n_tile: int | None = None
    sizes: tuple[int, ...] = ()

    def run(self, module) -> None:
        self.ran.append(self)

    ran: ClassVar[list] = []


passes = st.one_of(
    st.builds(
        Options,
        stages=st.integers(),
        fast=st.booleans(),
        scale=st.floats(allow_nan=False),
        words=st.text("ab cd_{}-", min_size=0, max_size=6).filter(
            lambda t: t.count("{") == t.count("}") and t == t.strip()
        ),
        tiling=st.sampled_from(["rows", "linear"]),
        n_tile=st.none() | st.integers(0, 512),
        sizes=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    ),
    st.builds(
        UpstreamPass,
        st.sampled_from(["cse", "canonicalize{max-iterations=3 top-down=false}", "inline"]),
        st.sampled_from([(), ("func.func",), ("gpu.module", "llvm.func")]),
    ),
)


@given(st.lists(passes, max_size=6))
def test_text_round_trips(items: list) -> None:
    pipeline = tcir.Pipeline(items)
    assert tcir.Pipeline.parse(str(pipeline)) == pipeline


def test_text_groups_neighbours_with_equal_anchors() -> None:
    text = "builtin.module(test-options{stages=2},func.func(cse,canonicalize),cse)"
    pipeline = tcir.Pipeline(
        [Options(2), "func.func(cse)", UpstreamPass("canonicalize", ("func.func",)), "cse"]
    )
    assert str(pipeline) == text
    assert [p.name for p in pipeline] == ["test-options", "cse", "canonicalize", "cse"]


def test_edit() -> None:
    start = tcir.Pipeline(["cse", "canonicalize"])
    pipeline = start.insert(Options(), after="cse").insert("inline", before="cse")
    pipeline = pipeline.append("symbol-dce").replace("canonicalize", Options(1))
    assert str(start) == "builtin.module(cse,canonicalize)"
    assert str(pipeline) == (
        "builtin.module(inline,cse,test-options,test-options{stages=1},symbol-dce)"
    )
    with pytest.raises(tcir.InputError, match="got 'csee'; did you mean 'cse'"):
        pipeline.replace("csee", "cse")
    with pytest.raises(tcir.InputError, match="expected a pass or its text, got 3"):
        pipeline.append(3)  # type: ignore[arg-type]


def test_a_pipeline_never_changes() -> None:
    pipeline = tcir.Pipeline([Options(), "cse"])
    with pytest.raises(AttributeError, match="cannot assign to field 'passes'"):
        pipeline.passes = ()  # type: ignore[misc]
    assert isinstance(pipeline.passes, tuple)
    assert {pipeline: 1}[tcir.Pipeline([Options(), "cse"])] == 1
    assert pipeline != tcir.Pipeline(["cse", Options()])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("test-options{stage=1}", "no option 'stage'.*did you mean 'stages'"),
        ("test-options{stages=x}", "option 'stages' of 'test-options': expected int, got 'x'"),
        ("test-options{tiling=packed}", "expected 'rows' | 'linear', got 'packed'"),
        ("test-options{fast=yes}", "expected bool, got 'yes'"),
        ("test-options{stages}", "expected options of the form"),
        ("test-options{stages=1 stages=2}", "got 'stages' twice"),
        ("func.func(test-options)", "runs on builtin.module, got it nested in func.func"),
        ("cse,,cse", "expected a pass between commas"),
        ("cse)", "unmatched '\\)'"),
        ("func.func(cse", "expected closed brackets"),
    ],
)
def test_wrong_text(text: str, message: str) -> None:
    with pytest.raises(tcir.InputError, match=message):
        tcir.Pipeline.parse(text)


@pytest.mark.parametrize("text", ["nope", "func.func(nope)", "canonicalize{nope=1}"])
def test_unknown_upstream_pass(text: str) -> None:
    with pytest.raises(tcir.InputError, match="nope"):
        tcir.Pipeline.parse(text).check()


def test_a_name_is_taken_once() -> None:
    with pytest.raises(tcir.InputError, match="taken"):

        @tcir.register_pass
        @dataclass(frozen=True)
        class Other(tcir.Pass):
            name: ClassVar[str] = "test-options"


def test_every_pass_of_ours_has_a_doc_and_default_options_that_round_trip() -> None:
    assert "raise-to-tc" in registered_passes()
    for name, cls in registered_passes().items():
        assert (cls.__doc__ or "").strip(), name
        made = cls()
        assert make_options(cls, split_options(format_options(made)), name) == made


def test_named_pipelines() -> None:
    path = Path(__file__).parent / "Inputs" / "plugin.py"
    spec = importlib.util.spec_from_file_location("tcir_test_plugin", path)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert str(named_pipeline("test-pipeline", times=2)) == (
        "builtin.module(test-nothing{times=2},canonicalize)"
    )
    with pytest.raises(tcir.InputError, match="unknown pipeline 'test-pipe'; did you mean"):
        named_pipeline("test-pipe")
    with pytest.raises(tcir.InputError, match="has no option 'n'"):
        named_pipeline("test-pipeline{n=2}")


def test_a_chain_on_which_recursion_ends() -> None:
    kind = "tensor<8x8xf32>"
    steps = "".join(
        f"\n  %x{n + 1} = linalg.add ins(%x{n}, %y : {kind}, {kind}) outs(%e : {kind}) -> {kind}"
        for n in range(400)
    )
    text = f"""
func.func @main(%x0: {kind}, %y: {kind}) -> {kind} {{
  %e = tensor.empty() : {kind}{steps}
  return %x400 : {kind}
}}"""
    with pytest.raises(tcir.PassError, match=r"expected a shorter chain of ops .* divide the func"):
        tcir.compile(text, "layers")
