"""Where an H200 reads the elements that a descriptor of wgmma names, and what the machine says."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.machine.wgmma.descriptor import decode_matrix, element_table

from .test_wgmma_machine import probes
from .wgmma_cases import Probe, descriptor, exact, from_d, to_d
from .wgmma_forms import BITS, FORMS
from .wgmma_machine import RECORD, run
from .wgmma_run import digest, threads_of


def tables(probe: Probe) -> np.ndarray:
    """Addresses as the registers of D hold them: uint16 [layouts, words, 128]."""
    form = probe.form
    of_a = probe.name[len(form.name) + 1] == "a"
    rows, k = (64, form.stored) if of_a else (form.n, form.k)
    major = "MN" if form.transpose[0 if of_a else 1] else "K"
    held = np.zeros((len(probe.cases) // 2, 64, form.n), np.int64)
    for layout, bits in enumerate(probe.cases["a" if of_a else "b"][::2].tolist()):
        base, table = element_table(decode_matrix(bits), rows, k, BITS[form.a], major)
        if of_a:
            held[layout, :, :k] = base + table
        else:
            held[layout, :k] = (base + table).T
    words = to_d(held, form)
    assert (from_d(words, form) == held).all()
    return threads_of(probe, words.astype(np.uint16))


@pytest.mark.parametrize("key", [k for k in RECORD["digests"] if k.startswith("addresses")])
def test_elements_are_read_from_where_silicon_reads_them(key: str) -> None:
    """All swizzles, base offsets, majors, strides, starts in the pattern and in its rows."""
    group, name = key.split("/")
    assert digest(tables(probes(group)[name])) == RECORD["digests"][key]


def moved(lines: int, base: int) -> Probe:
    """A product whose B lies with the 128-byte swizzle, `lines` lines behind a multiple of 1024."""
    probe = exact(FORMS["n8_f32_f16_f16"])
    start = 8192 + 128 * lines
    bits = descriptor(start, 16, 1024, 1, base)
    base_at, table = element_table(decode_matrix(descriptor(8192, 16, 1024, 1)), 8, 16, 16, "K")
    (plain,) = {int(x) for x in probe.cases["b"]}
    held_at, held = element_table(decode_matrix(plain), 8, 16, 16, "K")
    images = np.zeros((2, 16384), np.uint8)
    images[:, :8192] = probe.images[:, :8192]
    for byte in range(2):
        images[:, base_at + 128 * lines + table + byte] = probe.images[:, held_at + held + byte]
    probe.cases["b"] = bits
    return Probe(**{**vars(probe), "images": images})


@pytest.mark.parametrize(
    ("lines", "base", "right"),
    [(0, 0, True), (3, 3, True), (5, 5, True), (3, 0, False), (0, 3, False), (3, 5, False)],
)
def test_a_base_offset_says_where_the_pattern_starts(lines: int, base: int, right: bool) -> None:
    """(address of the pattern >> 7) & 7, PTX ISA 9.7.15.5.1.2.2."""
    probe = moved(lines, base)
    report, words = run(probe)
    assert report.ok, str(report)
    assert np.array_equal(words, probe.expected) == right


def test_rows_longer_than_the_span_go_on_behind_lbo() -> None:
    """64 bytes of a row of a sparse product's B, with the 32-byte swizzle: two pieces."""
    desc = decode_matrix(descriptor(0, 4096, 256, 3))
    _, table = element_table(desc, 8, 32, 16, "K")
    assert (table[:, 16:] == table[:, :16] + 4096).all()
    assert table[4, 0] == 4 * 32 ^ 16
