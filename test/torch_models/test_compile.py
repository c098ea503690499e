"""tcir.torch.compile beside eager PyTorch in f64."""

from __future__ import annotations

import copy
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn

import tcir
import tcir.torch
from tcir.errors import LaunchError, UnknownNameError
from tcir.torch import lowering

from .models import Bottleneck, Decode, Mlp, Tokens, made


def errors(model: nn.Module, inputs: tuple[torch.Tensor, ...], results: object) -> list[float]:
    """The largest error of each result against f64, relative to the result's largest element."""
    wide = copy.deepcopy(model).double()
    with torch.no_grad():
        expected = wide(*(x.double() if x.is_floating_point() else x for x in inputs))
    pairs = zip(
        torch.utils._pytree.tree_leaves(results),
        torch.utils._pytree.tree_leaves(expected),
        strict=True,
    )
    found = []
    for got, right in pairs:
        assert got.shape == right.shape
        found.append(float((got.double() - right).abs().max() / right.abs().max()))
    return found


@pytest.mark.parametrize(
    ("dtype", "bound"),
    [(torch.float16, 2e-3), (torch.bfloat16, 1.5e-2), (torch.float32, 3e-3)],
    ids=["f16", "bf16", "f32 as tf32"],
)
def test_mlp(dtype: torch.dtype, bound: float) -> None:
    model, inputs = made(lambda: Mlp(64), dtype, (48, 64))
    compiled = tcir.torch.compile(model, inputs)
    result = compiled(*inputs)
    assert isinstance(result, torch.Tensor) and result.dtype == dtype
    assert max(errors(model, inputs, result)) < bound
    assert str(compiled.table) == "linear, gelu, linear: layers, 2 launches"
    other = (inputs[0].flip(0) + 1,)
    assert max(errors(model, other, compiled(*other))) < bound


def test_weights_are_those_of_the_module() -> None:
    """They are arguments: a change of the module's weights in place is seen, no copy is used."""
    model, inputs = made(lambda: Mlp(64), torch.float16, (48, 64))
    compiled = tcir.torch.compile(model, inputs)
    before = compiled(*inputs)
    with torch.no_grad():
        model.down.bias += 1
    after = compiled(*inputs)
    assert torch.all(after > before) and max(errors(model, inputs, after)) < 2e-3


def test_what_no_pipeline_takes_is_left_to_pytorch() -> None:
    model, _ = made(Tokens, torch.float16)
    tokens = (torch.arange(24).reshape(2, 12) * 4,)
    compiled = tcir.torch.compile(model, tokens)
    assert max(errors(model, tokens, compiled(*tokens))) < 4e-3
    rows = {part.ops: part for part in compiled.table}
    assert rows[("lgamma",)].kernel is None and rows[("lgamma",)].reason
    lowered = [op for ops, part in rows.items() if part.kernel for op in ops]
    assert lowered.count("linear") == 2 and "embedding" in lowered
    assert len(compiled.kernels) == 2


class Inverse(nn.Module):
    """1 / x, which torch-mlir's own lowering asserts to be of no zero."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.reciprocal(x) * 2


def test_reciprocal_of_zero_is_infinity() -> None:
    x = torch.tensor([[0.0, -0.0, 2.0, -4.0]])
    compiled = tcir.torch.compile(Inverse().eval(), (x,))
    assert str(compiled.table) == "reciprocal, mul: layers, 1 launch"
    assert torch.equal(compiled(x), torch.tensor([[torch.inf, -torch.inf, 1.0, -0.5]]))


def test_validation_finds_a_broken_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = made(lambda: Mlp(64), torch.float16, (48, 64))
    compiled = tcir.torch.compile(model, inputs)
    assert [report.verdict for report in compiled.validate()] == ["held"]
    from tcir.passes.gemm import dense

    monkeypatch.setattr(dense, "ceil_div", lambda a, b: max(a // b - 1, 1))
    (report,) = compiled.validate()
    assert report.verdict == "different" and report.first_failure().name == "tile-gemm"


def test_not_contiguous_inputs() -> None:
    model, (x,) = made(lambda: Mlp(64), torch.float16, (64, 48))
    inputs = (x.t(),)
    assert max(errors(model, inputs, tcir.torch.compile(model, inputs)(*inputs))) < 2e-3


def test_backend_of_torch_compile() -> None:
    model, inputs = made(lambda: Mlp(64), torch.float16, (48, 64))
    with torch.no_grad():
        result = torch.compile(model, backend="tcir")(*inputs)
    assert max(errors(model, inputs, result)) < 2e-3


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: object, **kwargs: object) -> object:
        return self.function(*args, **kwargs)


def compiled_function(function: Callable[..., object], *args: object) -> tcir.torch.Compiled:
    return tcir.torch.compile(Function(function).eval(), args)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(-1),
        lambda x: torch.nn.functional.rms_norm(x, (4096,)),
        lambda x: torch.nn.functional.adaptive_avg_pool2d(x.view(2, 1, 64, 64), 1),
    ],
    ids=["sum", "rms_norm", "pool"],
)
def test_narrow_sums_are_kept_in_f32(function: Callable[..., object], dtype: torch.dtype) -> None:
    x = torch.rand(2, 4096).to(dtype)
    compiled = compiled_function(function, x)
    exact = function(x.double())
    error, eager = (float((each - exact).abs().max()) for each in (compiled(x), function(x)))
    assert error <= 1.5 * eager + 1e-9


def test_results_have_the_strides_of_pytorch() -> None:
    """What PyTorch runs behind a kernel was traced for them."""
    x = torch.randn(4, 6).half()
    strided = compiled_function(lambda x: torch.as_strided(x.t() + 1, (4,), (1,)), x)
    assert torch.equal(strided(x), (x.t() + 1).as_strided((4,), (1,)))
    viewed = compiled_function(lambda x: torch.fmod(x.t() + 1, 0.5).t().view(-1), x)
    assert torch.equal(viewed(x), torch.fmod(x.t() + 1, 0.5).t().reshape(-1))
    plain = compiled_function(lambda x: x.t() + 1, x)
    assert plain(x).stride() == (x.t() + 1).stride()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_patch_embeddings(dtype: torch.dtype) -> None:
    """Of transformers on images: convolutions whose stride is the filter's size."""
    for size in (14, 32):
        embed = torch.nn.Conv2d(3, 64, size, size).eval()
        x = torch.randn(1, 3, 2 * size, 3 * size)
        with torch.no_grad():
            exact = embed.double()(x.double()).flatten(2).transpose(1, 2)
            embed, x = embed.to(dtype), x.to(dtype)
            plain = embed(x).flatten(2).transpose(1, 2)
        compiled = compiled_function(
            lambda x, w, b, n=size: nn.functional.conv2d(x, w, b, n).flatten(2).transpose(1, 2),
            x,
            embed.weight.detach(),
            embed.bias.detach(),
        )
        assert len(compiled.kernels) == 1, compiled
        ours = compiled(x, embed.weight.detach(), embed.bias.detach())
        error, theirs = ((each.double() - exact).abs().max() for each in (ours, plain))
        tf32 = 2.0**-9 if dtype == torch.float32 else 0.0
        assert error <= 1.5 * theirs + tf32, (size, error, theirs)


def test_a_mask_of_booleans_behind_a_product() -> None:
    x, w = torch.randn(8, 64).half(), torch.randn(32, 64).half() / 8
    for mask in (torch.rand(8, 32) > 0.5, torch.rand(32) > 0.5, torch.rand(8, 1) > 0.5):
        compiled = compiled_function(lambda x, w, m: (x @ w.t()).masked_fill(m, 0.0), x, w, mask)
        assert len(compiled.kernels) == 1
        expected = (x @ w.t()).masked_fill(mask, 0.0)
        assert torch.allclose(compiled(x, w, mask), expected, atol=2e-3)


def test_grouped_queries() -> None:
    """The product of the keys is broadcast over the heads of its group."""
    x, w = torch.randn(1, 8, 32).half(), torch.randn(32, 32).half() / 8

    def keys(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        heads = (x @ w).view(1, 8, 2, 16).transpose(1, 2)
        return heads.repeat_interleave(2, 1) * 2

    compiled = compiled_function(keys, x, w)
    assert torch.allclose(compiled(x, w), keys(x, w), atol=2e-2)


def test_arguments_of_any_structure() -> None:
    def function(a: dict[str, torch.Tensor], scale: float, extra: None, *, b: list) -> dict:
        return {"sum": a["x"] * scale + b[0], "none": extra}

    given = ({"x": torch.ones(4, 8)}, 2.0, None)
    module = Function(function).eval()
    compiled = tcir.torch.compile(module, given, {"b": [torch.ones(8)]})
    result = compiled(*given, b=[torch.ones(8) * 3])
    assert result["none"] is None and torch.equal(result["sum"], torch.full((4, 8), 5.0))
    with pytest.raises(tcir.InputError, match=r"expected 2\.0, .* got 3\.0"):
        compiled({"x": torch.ones(4, 8)}, 3.0, None, b=[torch.ones(8)])
    with pytest.raises(tcir.InputError, match="expected arguments like the example's"):
        compiled({"x": torch.ones(4, 8)}, 2.0, torch.ones(1), b=[torch.ones(8)])
    alone = tcir.torch.compile(nn.ReLU().eval(), torch.ones(4, 8))
    assert torch.equal(alone(-torch.ones(4, 8)), torch.zeros(4, 8))


def test_state_is_the_modules() -> None:
    model, inputs = made(lambda: Mlp(64), torch.float16, (48, 64))
    compiled = tcir.torch.compile(model, inputs)
    assert list(compiled.state_dict()) == list(model.state_dict())
    other, _ = made(lambda: Mlp(64), torch.float16, (48, 64))
    compiled.load_state_dict({name: value + 1 for name, value in other.state_dict().items()})
    expected = {name: value + 1 for name, value in other.state_dict().items()}
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())


def test_validation_begins_with_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcir.torch import exported
    from tcir.torch.imports import checked

    function, x = lambda x: x.sum(-1), torch.rand(1, 300).half()
    (report,) = compiled_function(function, x).validate()
    assert [each.name for each in report.passes[:2]] == ["module → linalg", "PyTorch → linalg"]
    assert all(each.held for each in report.passes[:2])
    monkeypatch.setattr(exported, "decompositions", dict)  # torch-mlir's own: sums in f16
    (part,) = compiled_function(function, x).table
    assert part.graph is not None
    line = checked(part.graph, part.mlir)
    assert line.verdict == "different" and "eager PyTorch's" in line.compared


def test_a_crash_of_native_code_is_a_row_of_the_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tcir.session.apart import Compilers
    from tcir.torch import lowering

    (tmp_path / "crashing.py").write_text("import os\n\ndef main():\n    os.abort()\n")
    monkeypatch.syspath_prepend(tmp_path)
    with Compilers(1, "crashing") as children:
        monkeypatch.setattr(lowering, "compilers", lambda: children)
        compiled = tcir.torch.compile(nn.ReLU().eval(), x := torch.randn(4, 8))
    (row,) = compiled.table
    assert row.kernel is None and row.reason.startswith("internal error: ")
    assert "SIGABRT" in row.reason and (file := re.search(r"\S+\.mlir", row.reason))
    assert "torch.aten.relu" in Path(file[0]).read_text()
    assert torch.equal(compiled(x), x.relu())


def test_what_native_code_writes_to_standard_error_stays_with_the_child(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Past Python's `sys.stderr`, which a caller may have redirected."""
    from tcir.session.apart import Compilers
    from tcir.torch import lowering

    written = tmp_path / "written"
    (tmp_path / "talking.py").write_text(
        "import os\n\ndef main():\n    os.write(2, b'native words')\n"
        f"    open({str(written)!r}, 'w').close()\n    os.abort()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with Compilers(1, "talking") as children:
        monkeypatch.setattr(lowering, "compilers", lambda: children)
        compiled = tcir.torch.compile(nn.ReLU().eval(), torch.randn(4, 8))
    assert written.exists() and compiled.table[0].kernel is None
    assert "native words" not in "".join(capfd.readouterr())


def test_backend_with_gradients_other_shapes_and_writes_in_place() -> None:
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))
    compiled = torch.compile(model, backend="tcir")
    for rows in (4, 6):
        x = torch.randn(rows, 32)
        result = compiled(x)
        assert torch.allclose(result, model(x), atol=5e-3)
        model.zero_grad()
        result.square().sum().backward()
        got = [each.grad.clone() for each in model.parameters()]
        model.zero_grad()
        model(x).square().sum().backward()
        for each, grad in zip(model.parameters(), got, strict=True):
            assert torch.allclose(grad, each.grad, rtol=2e-2, atol=2e-2)

    def writes(x: torch.Tensor, n: int) -> torch.Tensor:
        x.add_(1)
        return x * n

    x, y = torch.ones(4, 8), torch.ones(4, 8)
    assert torch.equal(torch.compile(writes, backend="tcir")(x, 3), writes(y, 3))
    assert torch.equal(x, y)


def test_options_of_the_backend() -> None:
    x = torch.ones(4, 8)
    relu = torch.compile(nn.ReLU(), backend="tcir", options={"pipeline": "simt-elementwise"})
    assert torch.equal(relu(x), x)
    for options, said in (
        ({"options": {"pipelines": "x"}}, "'pipelines'"),
        ({"mode": "max-autotune"}, "max-autotune"),
    ):
        with pytest.raises(Exception, match=said):
            torch.compile(nn.ReLU(), backend="tcir", **options)(x + 1)


class Broken(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x * 2


@pytest.mark.parametrize(
    ("module", "inputs", "said"),
    [
        (nn.Linear(4, 4), (torch.ones(2, 4),), "got one in training mode"),
        (
            nn.Linear(4, 4).eval(),
            (np.ones((2, 4)),),
            "expected tensors, numbers, strings or None as arguments, .*numpy.ndarray",
        ),
        (Broken().eval(), (torch.ones(4),), "expected a module that torch.export accepts"),
        (Counting().eval(), (torch.ones(4),), "must not modify its arguments or buffers"),
        (nn.Linear(4, 4).eval(), (torch.ones(2, 5),), "a module that torch.export accepts"),
        (
            nn.Linear(4, 4).half().eval(),
            (torch.ones(2, 4),),
            "of one type, .* got float32, float16",
        ),
    ],
    ids=["training", "numpy", "control flow", "mutation", "shapes", "two types"],
)
def test_refusals(module: nn.Module, inputs: tuple, said: str) -> None:
    with pytest.raises(tcir.InputError, match=said):
        tcir.torch.compile(module, inputs)


def test_targets_of_no_kernels() -> None:
    """Nothing would be lowered: that is no table."""
    said = "expected sm_100a or sm_90a for pipeline layers, got sm_80 .* have kernels for sm_80"
    with pytest.raises(tcir.InputError, match=said):
        tcir.torch.compile(nn.Linear(8, 8).eval(), torch.ones(2, 8), target="sm_80")
    compiled = torch.compile(nn.Linear(8, 8).eval(), backend="tcir", options={"target": "sm_80"})
    with pytest.raises(Exception, match=said), torch.no_grad():
        compiled(torch.ones(2, 8))


def test_other_shapes_and_options() -> None:
    model, inputs = made(lambda: Mlp(64), torch.float16, (48, 64))
    compiled = tcir.torch.compile(model, inputs)
    with pytest.raises(tcir.InputError, match=r"expected tensors \[48, 64\] of float16, .* got"):
        compiled(torch.ones(49, 64).half())
    with pytest.raises(tcir.Error, match="unknown pipeline 'layer'; did you mean 'layers'"):
        tcir.torch.compile(model, inputs, pipeline="layer")
    with pytest.raises(tcir.Error, match="sm_100"):
        tcir.torch.compile(model, inputs, target="sm_1")


def test_without_torch() -> None:
    code = "import sys; sys.modules['torch'] = None; import tcir.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'tcir[torch]'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "shapes", "bound", "launches"),
    [
        (Mlp, [(128, 256)], 2e-3, 2),
        (Bottleneck, [(2, 256, 28, 28)], 4e-3, 6),
        (Decode, [(8, 1, 256), (8, 4, 255, 64), (8, 4, 255, 64)], 4e-3, 21),
    ],
    ids=["mlp", "bottleneck", "decode"],
)
def test_models(model: type[nn.Module], shapes: list, bound: float, launches: int) -> None:
    """Whole models: nothing is left to PyTorch, and every pass holds."""
    module, inputs = made(model, torch.float16, *shapes)
    compiled = tcir.torch.compile(module, inputs)
    assert max(errors(module, inputs, compiled(*inputs))) < bound
    (part,) = compiled.table
    assert len(part.kernel.launches.launches) == launches
    assert [report.verdict for report in compiled.validate()] == ["held"]


class Layer:
    """Keys and values of a cache."""

    def __init__(self) -> None:
        self.keys: torch.Tensor | None = None
        self.seen = 0


class Cache:
    """An object that PyTorch cannot take apart."""

    def __init__(self, count: int = 2) -> None:
        self.layers = [Layer() for _ in range(count)]
        self.kind = torch.float16


class Cached(nn.Module):
    """A step of a model that returns the cache that it is given, longer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor, cache: Cache | None = None) -> tuple[torch.Tensor, Cache]:
        cache = Cache() if cache is None else cache
        for layer in cache.layers:
            x = self.linear(x)
            layer.keys = x if layer.keys is None else torch.cat([layer.keys, x])
            layer.seen += 1
        return x, cache


def test_objects_that_hold_tensors() -> None:
    model, (x,) = made(Cached, torch.float16, (16, 64))
    _, first = tcir.torch.compile(model, (x,))(x)
    assert isinstance(first, Cache) and first.kind == torch.float16
    assert [layer.seen for layer in first.layers] == [1, 1]
    step = tcir.torch.compile(model, (x, first))
    (mine, second), (right, theirs) = step(x, first), model(x, copy.deepcopy(first))
    assert torch.allclose(mine, right, atol=2e-3)
    for layer, other in zip(second.layers, theirs.layers, strict=True):
        assert layer.seen == other.seen == 2
        assert torch.allclose(layer.keys, other.keys, atol=2e-3)
    assert [layer.seen for layer in first.layers] == [1, 1], "what was given is as it was"
    with pytest.raises(tcir.InputError, match="expected arguments like the example's"):
        step(x, second.layers)


class Heads(nn.Module):
    """Attention, whose result PyTorch has in another order of strides than its decomposition."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = x.view(2, 16, 4, 16).transpose(1, 2)
        return nn.functional.scaled_dot_product_attention(q, q, q).transpose(1, 2).view(32, 64)


def test_views_of_what_has_other_strides_when_it_is_imported() -> None:
    model, inputs = made(Heads, torch.float16, (32, 64))
    compiled = tcir.torch.compile(model, inputs)
    assert len(compiled.table) == 1 and len(compiled.kernels) == 1
    assert max(errors(model, inputs, compiled(*inputs))) < 2e-3


class Same(nn.Module):
    """Results that are one tensor, and an argument, in a region that computes something."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(x)
        return y + 0, y * 1, x + 0


def test_results_that_are_one_tensor() -> None:
    x = torch.randn(16, 64).half()
    compiled = tcir.torch.compile(Same().eval(), (x,))
    assert len(compiled.kernels) == 1
    a, b, c = compiled(x)
    assert torch.equal(a, x.relu()) and torch.equal(b, a) and torch.equal(c, x)
    assert len({each.data_ptr() for each in (a, b, c, x)}) == 4


class Bytes(torch.nn.Module):
    """An image of bytes, as it is read; shifted, masked and compared."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.half() / 255, x >> 4, (x & 15) + x, x > 100


def test_bytes_have_no_sign() -> None:
    x = torch.arange(256, dtype=torch.uint8).reshape(16, 16)
    compiled = tcir.torch.compile(Bytes().eval(), (x,))
    assert len(compiled.table) == 1 and compiled.table[0].kernel is not None
    for got, right in zip(compiled(x), Bytes()(x), strict=True):
        assert got.dtype == right.dtype and torch.equal(got, right)
    assert [report.verdict for report in compiled.validate()] == ["held"]


def test_a_cut_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a region that is refused, though each op alone is taken."""
    compiled_text = lowering._Work._compiled

    def picky(self: lowering._Work, text: str, *rest: Any) -> object:
        if len(re.findall(r"torch\.aten\.(?:linear|addmm|mm)\b", text)) > 1:
            raise tcir.Error("expected one product, got 2; no way out")
        return compiled_text(self, text, *rest)

    monkeypatch.setattr(lowering._Work, "_compiled", picky)
    model, inputs = made(lambda: Mlp(64), torch.float16, (48, 64))
    compiled = tcir.torch.compile(model, inputs)
    assert str(compiled.table).splitlines() == [
        "linear: layers, 1 launch; cut: got 2",
        "gelu, linear: layers, 2 launches; cut: got 2",
    ]
    assert compiled.table[0].reason == "expected one product, got 2; no way out"
    assert max(errors(model, inputs, compiled(*inputs))) < 2e-3


def test_a_kernel_that_fails_behind_its_passes_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """An op whose passes run, but not its code generation, has that error."""

    def broken(self: lowering._Work, text: str, *rest: Any) -> object:
        raise tcir.Error("ptxas: no registers")

    monkeypatch.setattr(lowering._Work, "_compiled", broken)
    model, inputs = made(lambda: Mlp(64), torch.float16, (48, 64))
    compiled = tcir.torch.compile(model, inputs)
    assert str(compiled.table) == "linear, gelu, linear: left to PyTorch: ptxas: no registers"
    assert torch.equal(compiled(*inputs), model(*inputs))


def test_options_of_the_machine() -> None:
    x = torch.randn(16, 64).half()
    compiled = tcir.torch.compile(torch.nn.Linear(64, 32).half().eval(), (x,))
    with tcir.torch.machine(hazards="off", jobs=2):
        assert torch.equal(compiled(x), compiled(x))
        with tcir.torch.machine(jobs=0), pytest.raises(LaunchError, match="jobs: expected"):
            compiled(x)
    compiled(x)
    with pytest.raises(UnknownNameError, match="job"), tcir.torch.machine(job=2):  # type: ignore[call-arg]
        pass
