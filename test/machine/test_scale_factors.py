"""Scale factors in tensor memory, descriptors of block-scaled kinds: by definition, one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tcir.machine.refusal import DescriptorError, TmemError
from tcir.machine.tensor_core.instruction_descriptor_scaled import decode_scaled, scales_per_row
from tcir.machine.tensor_core.scale_factors import BLOCK_BYTES, scale_places
from tcir.machine.tmem.places import cp_lanes


@pytest.mark.parametrize(("operand", "rows"), [("A", 128), ("B", 8), ("B", 96), ("B", 256)])
@pytest.mark.parametrize(
    ("scales", "sf_id"), [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 2), (4, 0)]
)
def test_one_cta(operand, rows, scales, sf_id):
    places = scale_places(operand, rows, scales, sf_id)
    assert places.lanes.shape == (4, rows) and not places.cta.any()
    for row in range(rows):
        assert {int(x) for x in places.lanes[:, row]} == {row % 32 + 32 * p for p in range(4)}
        assert places.columns[row] == row // 32
    assert places.bytes.tolist() == list(range(sf_id, sf_id + scales))
    # 128 rows take 4 columns, 256 take 8; no two scales share a byte.
    assert places.columns.max() + 1 == -(-rows // 32)
    spots = set(
        itertools.product(
            zip(places.lanes[0].tolist(), places.columns.tolist()), places.bytes.tolist()
        )
    )
    assert len(spots) == rows * scales


def test_pair_of_256_rows():
    a, b = (scale_places(x, r, 4, 0, m=256, cta_group=2) for x, r in (("A", 256), ("B", 192)))
    for row in range(256):
        assert set(a.cta[:, row].tolist()) == {row // 128}
        assert sorted(a.lanes[:, row].tolist()) == [row % 32 + 32 * p for p in range(4)]
        assert a.columns[row] == row % 128 // 32
    for n in range(192):
        spots = sorted(zip(b.cta[:, n].tolist(), b.lanes[:, n].tolist()))
        assert spots == [(c, n % 32 + 32 * p) for c in range(2) for p in range(4)]
        assert b.columns[n] == n // 32


def test_pair_of_128_rows():
    a, b = (scale_places(x, r, 1, 3, m=128, cta_group=2) for x, r in (("A", 128), ("B", 128)))
    for row in range(128):
        assert set(a.cta[:, row].tolist()) == {row // 64}
        assert sorted(a.lanes[:, row].tolist()) == [row % 32 + 32 * p for p in range(4)]
        assert a.columns[row] == row % 64 // 32
    for n in range(128):
        first = 64 * (n >= 64) + n % 32
        spots = sorted(zip(b.cta[:, n].tolist(), b.lanes[:, n].tolist()))
        assert spots == [(0, first), (0, first + 32), (1, first), (1, first + 32)]
        assert b.columns[n] == n % 64 // 32


def test_a_512_byte_block_copied_by_cp_lands_where_the_mma_looks():
    block = np.empty(BLOCK_BYTES, np.uint16)  # (row, scale) as 4 row + scale, every byte distinct
    for row, scale in itertools.product(range(128), range(4)):
        block[row % 32 * 16 + row // 32 * 4 + scale] = 4 * row + scale
    tmem = np.full((128, 4, 4), 9999, np.uint16)  # lane, column, byte
    for copy in cp_lanes("32x128b", "warpx4"):
        tmem[copy] = block.reshape(32, 4, 4)
    for scales, sf_id in ((1, 2), (2, 2), (4, 0)):
        places = scale_places("A", 128, scales, sf_id)
        for copy, row, j in itertools.product(range(4), range(128), range(scales)):
            where = places.lanes[copy, row], places.columns[row], places.bytes[j]
            assert tmem[where] == 4 * row + sf_id + j


def test_wrong_places_are_refused():
    scale_places("B", 256, 2, 2)
    with pytest.raises(TmemError, match="scale vector and SF id"):
        scale_places("B", 256, 2, 1)
    with pytest.raises(TmemError, match="scale vector and SF id"):
        scale_places("B", 256, 3, 0)
    with pytest.raises(TmemError, match=r"rows of SFB: expected 1\.\.256, got 264"):
        scale_places("B", 264, 1, 0)
    with pytest.raises(TmemError, match=r"rows of SFA: expected 1\.\.128, got 256"):
        scale_places("A", 256, 1, 0)


# --- descriptor


def scaled(m, n, *, a=0, b=0, ue8m0=1, sfa=0, sfb=0, extra=0):
    return (
        a << 7
        | b << 10
        | n // 8 << 17
        | ue8m0 << 23
        | m // 128 << 27
        | sfa << 29
        | sfb << 4
        | extra
    )


MX8 = scaled(128, 128)
FP4 = scaled(128, 128, a=1, b=1)


def test_fields_of_the_descriptor():
    i = decode_scaled(
        scaled(128, 64, a=1, b=5, sfa=3, sfb=1, extra=1 << 13 | 1 << 15), "mxf8f6f4", 1
    )
    assert (i.m, i.n, i.k, i.a_type, i.b_type) == (128, 64, 32, "e5m2", "e2m1")
    assert (i.scale_type, i.scales, i.sfa_id, i.sfb_id) == ("ue8m0", 1, 3, 1)
    assert (i.negate_a, i.negate_b, i.a_major, i.b_major) == (True, False, "MN", "K")
    i = decode_scaled(scaled(128, 8, a=1, b=1, ue8m0=0, extra=1 << 14), "mxf4nvf4", 4)
    assert (i.n, i.k, i.a_type, i.b_type, i.scale_type) == (8, 64, "e2m1", "e2m1", "ue4m3")
    assert (i.negate_a, i.negate_b, i.sparse) == (False, True, False)
    i = decode_scaled(scaled(256, 240, a=1, b=1, sfa=2, extra=4), "mxf4", 2, cta_group=2)
    assert (i.m, i.n, i.k, i.sparse, i.sfa_id, i.sfb_id) == (256, 240, 128, True, 2, 0)


@pytest.mark.parametrize(("kind", "scales", "base"), [("mxf8f6f4", 1, 0), ("mxf4", 2, FP4 & 0xFFF)])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("sparse", [0, 4])
def test_every_shape(kind, scales, base, group, sparse):
    accepted = set()
    for m, n8 in itertools.product(range(4), range(64)):
        try:
            i = decode_scaled(
                base | sparse | n8 << 17 | 1 << 23 | m << 27, kind, scales, cta_group=group
            )
        except DescriptorError as error:
            assert ": M: expected" in str(error) or ": N: expected" in str(error)
            continue
        accepted.add((i.m, i.n))
    ms = {128} if group == 1 else {256} if sparse else {128, 256}
    assert accepted == set(itertools.product(ms, range(8 * group, 257, 8 * group)))


@pytest.mark.parametrize(
    ("legal", "illegal", "kind", "scales", "message"),
    [
        *((MX8, MX8 | 1 << bit, "mxf8f6f4", 1, "reserved") for bit in (0, 1, 3, 6, 24, 25, 26, 31)),
        *((FP4, FP4 | 1 << bit, "mxf4", 2, "reserved") for bit in (0, 1, 3, 6, 24, 25, 26)),
        (FP4, FP4 | 1 << 31, "mxf4", 2, "K: expected 64 .*got 96; K = 96 needs sm_103a"),
        # e2m1 is 1 here and 5 in the other descriptors.
        (FP4, scaled(128, 128, a=5, b=5), "mxf4", 2, r"A type code: expected 1 \(e2m1\), got 5"),
        (scaled(128, 128, a=5, b=5), scaled(128, 128, a=2), "mxf8f6f4", 1, "A type code"),
        (MX8 | 1 << 15, scaled(128, 128, a=5, extra=1 << 15), "mxf8f6f4", 1, "A major.*e2m1"),
        (MX8 | 1 << 16, scaled(128, 128, b=3, extra=1 << 16), "mxf8f6f4", 1, "B major.*e2m3"),
        (FP4, FP4 | 1 << 16, "mxf4", 2, "B major"),
        (MX8, MX8 & ~(1 << 23), "mxf8f6f4", 1, "scale type .*expected 1 .ue8m0., got 0"),
        (FP4, FP4 & ~(1 << 23), "mxf4nvf4", 2, "scale type"),
        (scaled(128, 8, sfb=3), scaled(128, 4), "mxf8f6f4", 1, "N: expected a multiple of 8"),
        (FP4 | 2 << 29, FP4 | 1 << 29, "mxf4", 2, r"SFA id .*: expected 0 or 2, got 1"),
        (FP4 | 2 << 4, FP4 | 3 << 4, "mxf4nvf4", 2, r"SFB id .*: expected 0 or 2, got 3"),
        (FP4, FP4 | 2 << 29, "mxf4nvf4", 4, "SFA id .*expected 0, got 2"),
        (
            scaled(128, 48, extra=1 << 16),
            scaled(128, 40, extra=1 << 16),
            "mxf8f6f4",
            1,
            "N: expected a multiple of 16",
        ),
        (MX8, MX8 | 1 << 32, "mxf8f6f4", 1, "32 bits"),
    ],
)
def test_illegal_beside_legal(legal, illegal, kind, scales, message):
    decode_scaled(legal, kind, scales)
    with pytest.raises(DescriptorError, match=message):
        decode_scaled(illegal, kind, scales)


def test_scale_vector_sizes():
    assert scales_per_row("mxf8f6f4") == scales_per_row("mxf8f6f4", 1) == 1
    assert scales_per_row("mxf8f6f4", block=32) == 1
    assert (
        scales_per_row("mxf4") == scales_per_row("mxf4", 2) == scales_per_row("mxf4", block=32) == 2
    )
    assert scales_per_row("mxf4nvf4", 2) == scales_per_row("mxf4nvf4", block=32) == 2
    assert scales_per_row("mxf4nvf4", 4) == scales_per_row("mxf4nvf4", block=16) == 4
    for kind, vector, block in (
        ("mxf4nvf4", None, None),
        ("mxf4", 4, None),
        ("mxf8f6f4", 2, None),
        ("mxf8f6f4", None, 16),
        ("mxf4", None, 16),
        ("f16", None, None),
    ):
        with pytest.raises(DescriptorError, match="kind"):
            scales_per_row(kind, vector, block)
    with pytest.raises(DescriptorError, match="cta_group: expected 1 or 2, got 3"):
        decode_scaled(MX8, "mxf8f6f4", 1, cta_group=3)


def test_a_bit_that_cute_dsl_sets():
    """Bit 12 of the fp4 descriptors is reserved; CuTe DSL has a "sparsity version" there."""
    i = decode_scaled(FP4 | 1 << 12, "mxf4", 2)
    assert i.b_type == "e2m1" and "bit 12" in i.ignored
    assert decode_scaled(FP4, "mxf4", 2).ignored == ""
    i = decode_scaled(MX8 | 1 << 12, "mxf8f6f4", 1)  # there it belongs to the type
    assert i.b_type == "e3m2" and i.ignored == ""
