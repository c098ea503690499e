"""tcir.torch.QuantizedLinear beside numpy on the numbers that its bytes stand for."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import ml_dtypes
import numpy as np
import torch
from endtoend import quantise_oracle as oracle
from torch import nn
from torch.nn import functional as F

import tcir
import tcir.torch
from tcir.torch import QuantizedLinear
from tcir.torch.quantized_linear import _compiled

ELEMENTS = {
    "nvfp4": ("f4E2M1FN", "f8E4M3FN", 16),
    "mxfp4": ("f4E2M1FN", "f8E8M0FNU", 32),
    "mxfp8_e4m3": ("f8E4M3FN", "f8E8M0FNU", 32),
    "mxfp8_e5m2": ("f8E5M2", "f8E8M0FNU", 32),
}


def weights_of(layer: QuantizedLinear) -> np.ndarray:
    """The layer's weights without the global scale, in f64, from its bytes."""
    element, scale, block = ELEMENTS[layer.format]
    codes = layer.weight.view(torch.uint8).numpy()
    if element == "f4E2M1FN":
        codes = np.stack([codes & 15, codes >> 4], -1).reshape(len(codes), -1)
    scales = layer.weight_scale.view(torch.uint8).numpy()
    n, k = codes.shape
    if scales.ndim == 3:
        down, across, _ = scales.shape
        rows = scales.reshape(down, across, 32, 4, 4).transpose(0, 3, 2, 1, 4)
        scales = rows.reshape(down * 128, across * 4)[:n, : k // block]
    return oracle.block_values(codes, scales, element, scale)


def right(layer: QuantizedLinear, x: torch.Tensor) -> np.ndarray:
    """What the layer computes, before its activation: quantised by the oracle, summed in f64."""
    element, scale, _ = ELEMENTS[layer.format]
    norm, alpha = (1.0, 1.0) if layer.norm is None else (float(layer.norm), float(layer.alpha))
    rows = x.float().reshape(-1, x.shape[-1]).numpy()
    values = oracle.block_values(*oracle.quantised(rows, element, scale, norm), element, scale)
    sums = alpha * (values @ weights_of(layer).T)
    return sums if layer.bias is None else sums + layer.bias.double().numpy()


def made(n: int, k: int, format: str, *, bias: bool = True, **given) -> QuantizedLinear:
    torch.manual_seed(n + k)
    return QuantizedLinear.from_linear(nn.Linear(k, n, bias=bias), format, **given).eval()


@pytest.mark.parametrize(
    ("m", "n", "k", "format", "launches"),
    [
        (24, 96, 256, "nvfp4", ["_quantise0", ""]),
        (1, 200, 256, "nvfp4", ["_quantise0", ""]),
        pytest.param(1, 40, 96, "mxfp4", ["_quantise0", "_scales1", ""], marks=pytest.mark.slow),
        pytest.param(
            136,
            200,
            288,
            "nvfp4",
            ["_quantise0", "_scales1", "_scales2", ""],
            marks=pytest.mark.slow,
        ),
        pytest.param(40, 72, 128, "mxfp8_e4m3", ["_quantise0", ""], marks=pytest.mark.slow),
        pytest.param(40, 72, 128, "mxfp8_e5m2", ["_quantise0", ""], marks=pytest.mark.slow),
    ],
)
def test_against_numpy(m: int, n: int, k: int, format: str, launches: list[str]) -> None:
    """And the weights, packed once, need no launch where K is a multiple of 128."""
    given = {"input_amax": 5.0} if format == "nvfp4" else {}
    layer = made(n, k, format, **given)
    x = torch.randn(m, k)
    expected = right(layer, x)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-5, atol=1e-5)
    compiled = tcir.torch.compile(layer, (x,))
    names = [each.name for each in compiled.kernels[0].launches.launches]
    assert names == [f"quantised_linear{end}" for end in launches]
    np.testing.assert_array_equal(compiled(x).numpy(), layer(x).numpy())


def test_the_weights_are_those_of_the_linear_layer() -> None:
    """Each within half a gap of e2m1 of what it was: the block's largest over 6, times 2 / 2."""
    torch.manual_seed(4)
    linear = nn.Linear(256, 40)
    layer = QuantizedLinear.from_linear(linear)
    found = weights_of(layer) * float(layer.alpha)  # the input's global scale is 1
    w = linear.weight.detach().double().numpy()
    largest = np.abs(w.reshape(40, -1, 16)).max(-1).repeat(16, 1)
    assert (np.abs(found - w) <= largest / 6 * 1.1).all()
    assert np.linalg.norm(found - w) < 0.12 * np.linalg.norm(w)


def test_an_activation_and_a_batch_in_f16() -> None:
    layer = made(48, 128, "nvfp4", activation="silu", bias=False)
    x = torch.randn(3, 8, 128).half()
    y = layer(x)
    assert y.shape == (3, 8, 48) and y.dtype == torch.float16
    expected = F.silu(torch.from_numpy(right(layer, x))).reshape(3, 8, 48)
    assert (y.double() - expected).abs().max() < 2**-10 * expected.abs().max()


class Two(nn.Module):
    """Quantised layers around one of PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.up = QuantizedLinear.from_linear(nn.Linear(128, 96).half(), activation="relu")
        self.down = nn.Linear(96, 128).half()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(x + x)) * 2


def test_in_a_model_it_is_a_part_of_its_own() -> None:
    torch.manual_seed(5)
    model = Two().eval()
    x = torch.randn(16, 128).half()
    compiled = tcir.torch.compile(model, (x,))
    assert str(compiled.table) == (
        "add: layers, 1 launch\n"
        "quantized_linear: gemm{quantise-apart=true}, 2 launches\n"
        "linear, mul: layers, 1 launch"
    )
    hidden = np.maximum(right(model.up, x + x), 0)
    weight, bias = (each.detach().double().numpy() for each in model.down.parameters())
    expected = 2 * (hidden.astype("f2").astype("f8") @ weight.T + bias)
    error = np.abs(compiled(x).double().numpy() - expected).max()
    assert error < 4e-3 * np.abs(expected).max()


def test_state_and_one_kernel_for_a_shape() -> None:
    layer, other = made(40, 128, "nvfp4"), QuantizedLinear(128, 40).eval()
    other.load_state_dict(layer.state_dict())
    x = torch.randn(8, 128)
    y, before = layer(x), _compiled.cache_info().misses
    assert torch.equal(other(x), y) and _compiled.cache_info().misses == before
    assert set(layer.state_dict()) == {"weight", "weight_scale", "alpha", "norm", "bias"}
    assert set(made(40, 128, "mxfp4").state_dict()) == {"weight", "weight_scale", "bias"}


def test_a_wrong_weight_layout_is_a_row() -> None:
    layer = made(128, 128, "nvfp4")
    layer.weight = layer.weight.t().contiguous()
    compiled = tcir.torch.compile(layer, (torch.randn(8, 128),))
    assert str(compiled.table) == (
        "quantized_linear: left to PyTorch: tcir.quantized_linear: weight: expected [N, 64] of "
        "uint8 (one row of packed e2m1 for each output) for x of [8, 128], got a weight of "
        "[64, 128] of uint8"
    )
    with pytest.raises(tcir.InputError, match=r"weight: expected \[N, 64\] of uint8"):
        compiled(torch.randn(8, 128))


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 8])
def test_executed_after_every_pass(m: int) -> None:
    layer = made(40, 128, "nvfp4", activation="relu")
    (report,) = tcir.torch.compile(layer, (torch.randn(m, 128),)).validate()
    assert report.verdict == "held" and report.passes[-1].name == "llvm-to-ptx"


def test_op_is_well_registered() -> None:
    layer, x = made(40, 128, "nvfp4"), torch.randn(8, 128)
    given = (x, layer.weight, layer.weight_scale, layer.alpha, layer.norm, layer.bias)
    op = torch.ops.tcir.quantized_linear.default  # test_schema multiplies what it gets, fp8 as well
    torch.library.opcheck(op, given, test_utils="test_faketensor")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: QuantizedLinear(100, 8), "in_features must be a multiple of 16"),
        (lambda: QuantizedLinear(48, 8, format="mxfp4"), "multiple of 32"),
        (lambda: QuantizedLinear(96, 0), "out_features at least 1"),
        (lambda: QuantizedLinear(96, 8, format="mxfp6_e2m3"), "expected nvfp4, mxfp4"),
        (lambda: QuantizedLinear.from_linear(nn.Conv2d(1, 1, 1)), "expected a torch.nn.Linear"),
        (lambda: QuantizedLinear.from_linear(nn.Linear(32, 8).double()), "float64 on cpu"),
        (lambda: made(8, 32, "nvfp4", input_amax=-1.0), "input_amax: expected a positive"),
        (lambda: made(8, 32, "mxfp4", input_amax=1.0), "input_amax: expected None"),
        (lambda: made(8, 32, "nvfp4", activation="swish")(torch.ones(2, 32)), "got 'swish'"),
        (lambda: made(8, 32, "nvfp4")(torch.ones(2, 48)), r"weight: expected \[N, 24\]"),
        (lambda: made(8, 32, "nvfp4")(torch.ones(2, 32).double()), "got .2, 32. of float64"),
        (lambda: made(8, 32, "nvfp4")(torch.ones(0, 32)), r"got \[0, 32\] by \[8, 32\]"),
    ],
)
def test_refusals(build, said: str) -> None:
    with pytest.raises(tcir.InputError, match=said):
        build()


def test_weights_that_are_no_numbers_are_refused() -> None:
    linear = nn.Linear(32, 8)
    with torch.no_grad():
        linear.weight[3, 5] = float("nan")
    with pytest.raises(tcir.Error, match="3, 5"):
        QuantizedLinear.from_linear(linear)


def test_bytes_are_those_of_ml_dtypes() -> None:
    """e2m1: 6 is code 7, the even column in the low half of a byte."""
    linear = nn.Linear(32, 1, bias=False)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([6.0, -3.0] * 16))
    layer = QuantizedLinear.from_linear(linear, "mxfp4")
    six, three = (int(np.array(v, ml_dtypes.float4_e2m1fn).view(np.uint8)) for v in (6.0, -3.0))
    assert layer.weight.tolist() == [[six | three << 4] * 16]
    assert layer.weight_scale.float().tolist() == [[1.0]]
