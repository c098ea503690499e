"""Tables of ops list classes, and names only where there is no class."""

from __future__ import annotations

import pytest

from tcir._mlir import arith, tensor
from tcir.dialect import tc
from tcir.dialect.upstream import by_name, name_of, names


def test_classes_and_names() -> None:
    assert names(arith.AddFOp, tc.MmaOp, "linalg.fill") == {"arith.addf", "tc.mma", "linalg.fill"}
    assert by_name({tensor.PadOp: 1, "math.exp": 2}) == {"tensor.pad": 1, "math.exp": 2}


@pytest.mark.parametrize("name", ["arith.addf", "tensor.pad", "tc.mma"])
def test_a_name_of_an_op_with_a_class_is_an_error(name: str) -> None:
    with pytest.raises(TypeError, match=f"expected the class of {name}, or an op of affine, "):
        name_of(name)
