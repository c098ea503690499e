"""Lists which ops of torch-mlir's dialect are in the table of ATen ops, and the reasons why the
other ops are not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tcir._mlir import import_bindings
from tcir.tools.dev.aten.case import Case

ABSENT = {
    "the same as an op of the table": (
        "_cast_Float _cast_Long _index_put_impl _reshape_alias _safe_softmax _unsafe_index_put "
        "absolute alias atleast_1d avgpool bitwise_left_shift bitwise_right_shift "
        "broadcast_tensors clamp_max copy cpu cross_entropy_loss cuda detach dropout expand_as fix "
        "floordiv frobenius_norm full grid_sampler max_pool1d_with_indices native_dropout "
        "new_empty_strided empty_strided numpy_T reshape_as resize special_expm1 triu_indices zero"
    ),
    "random numbers": (
        "bernoulli exponential multinomial normal_functional rand_like randn_like random "
        "rrelu_with_noise_functional uniform"
    ),
    "shapes that depend on data": "item nonzero nonzero_numpy unique_consecutive unique_dim",
    "complex numbers": "fft_fft fft_ifft imag polar real view_as_complex",
    "tensors of PyTorch's own quantised and sparse types": (
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams "
        "_make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor _to_bsc _to_bsr "
        "_to_csc _to_csr _to_dense _to_sparse dequantize int_repr quantize_per_channel "
        "quantize_per_tensor to_bsc to_bsr to_csc to_csr to_dense to_sparse"
    ),
    "numbers, lists and text of TorchScript": (
        "Bool Delete Float FloatImplicit Int IntImplicit ScalarImplicit __derive_index "
        "__range_length _assert_scalar _assert_tensor_metadata _set_item _shape_as_tensor append "
        "device format get insert join keys len list size str sym_constrain_range "
        "sym_constrain_range_for_size warn"
    ),
    "no pipeline compiles them": "_scaled_mm_v2 linalg_qr max_unpool3d",
}
"""Reasons why an op has no case. In-place ops (`relu_`), gradients (`…_backward`) and copies of
views (`permute_copy`) count as the op itself."""


def dialect() -> set[str]:
    """Names of the ATen ops in torch-mlir's libraries, without their overloads."""
    folder = Path(import_bindings("_mlir_libs").__path__[0])
    found: set[str] = set()
    for library in folder.glob("*.so*"):
        names = re.findall(rb"torch\.aten\.(\w+)", library.read_bytes())
        found.update(name.decode() for name in names)
    ends = ("_", "_copy", "_backward", "_backward_data", "_backward_input", "_dense_backward")
    return {name for name in found if not name.endswith(ends)}


class _Calls(TorchDispatchMode):
    """Records the ops that are dispatched."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.names = names

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    """Records the functions that are called; a composite function dispatches other ops."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.names = names

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.add(func.__name__)
        return func(*args, **(kwargs or {}))


def reached(cases: Iterable[Case]) -> set[str]:
    """The ops and functions that the cases call, in f32."""
    names: set[str] = set()
    with _Calls(names), _Functions(names):
        for case in cases:
            given = (x.float() if x.is_floating_point() else x for x in case.drawn())
            case.function(*given)
    return names | {name.strip("_") for name in names}


def missing(cases: Mapping[str, Case]) -> set[str]:
    """Ops of the dialect that have neither a case nor a reason."""
    named = {name for names in ABSENT.values() for name in names.split()}
    known = reached(cases.values())
    return {name for name in dialect() - named if not known & {name, name.strip("_")}}


def section() -> list[str]:
    """The lines of the page about ops without a case."""
    rows = [
        f"- {why}: {', '.join(f'`{name}`' for name in names.split())}"
        for why, names in ABSENT.items()
    ]
    return ["## Ops of torch-mlir without a row", "", *rows]
