"""Which cases `make test` runs, and which only `make test-all`: by cost.

`durations.txt` has a line for each function whose cases take long enough, with the seconds that
one takes on average, and for each case that takes `LEAST` seconds more or less than that. Quick are

- cases that take at most a budget, until those of their function have taken `SHARE` seconds, or
  `CASES` budgets;
- the quickest case of each function, if it takes at most `SENTINEL` seconds;
- the quickest case of each file, if it takes at most `LONGEST` budgets;
- the quickest case of each of `FEATURES`, and `KEPT`, whatever they take;
- cases without a line: a new test is quick until it is measured.

A run brings the list up to date; of a function, it has to have all cases. `make test-all` leaves
its report in build/all.xml, `make test` in build/quick.xml; of a run in shards, all reports are
given at once:

    python test/tiers.py build/all.xml build/quick.xml

Of a case in several reports the longest time counts: among all cases one that uses what an earlier
one has computed takes nothing, but among the quick ones it may be the first.

The folders `DOORS` mark what is slow, since `make test-all` measures nothing there: it skips them
where the other compiler is not installed.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from typing import Any
from xml.etree import ElementTree

import pytest

from tcir.tools.dev.shards import DURATIONS, durations, seconds

BUDGET = 0.1
"""Seconds of a quick case, where ``--budget`` does not give others."""
SHARE, CASES = 4, 12
"""Seconds that the quick cases of a function may take together, or if that is more, budgets."""
SENTINEL = 0.2
"""Seconds that the quickest case of a function may take."""
LONGEST = 40
"""Budgets that the quickest case of a file may take."""
LEAST = 0.1
"""Seconds that are worth a line in the list."""
KEPT = (
    "test/corpus/test_corpus.py::test_verdict[right/cuda_cg_tiles]",
    "test/corpus/test_corpus.py::test_verdict[right/cuda_cub_warp]",
    "test/corpus/test_corpus.py::test_verdict[right/cuda_mma_sync]",
    "test/corpus/test_corpus.py::test_verdict[right/cuda_std_barrier]",
    "test/corpus/test_corpus.py::test_verdict[twin/cuda_lanes_no_syncwarp]",
    "test/corpus/test_corpus.py::test_verdict[wrong/cuda_lanes_no_syncwarp]",
    "test/dialect/test_docs.py::test_page_is_fresh",
    "test/dialect/test_paths.py::test_the_page_is_current",
    "test/endtoend/test_cases.py::test_conv_shift_reuse[1x56x56x64-64-3x3-p1111-hwcf-f16-f32]",
    "test/endtoend/test_simt_functions.py::test_functions[tan-f32]",
    "test/machine/test_hazard_page.py::test_every_kind_is_on_the_page_and_no_other",
    "test/ptx/test_coverage.py::test_document_is_fresh",
    "test/ptx/test_lockstep_programs.py::test_random_programs",
    "test/ptx/test_straight.py::test_random_lines",
    "test/time/test_validate.py::test_what_is_held_out_is_as_the_page_says",
    "test/tools/test_architecture_page.py::test_the_walks_are_those_of_the_imports",
    "test/tools/test_typing.py::test_the_plugins_of_the_page_have_types[mypy]",
)
"""Quick whatever they take: CUDA C++ with each of its libraries, a layer of ResNet-50 at its size,
the slowest function of `math`, whether most pages are current, random programs in lockstep and in
lines, and the types of plugins."""
FEATURES = (
    "test/cache/test_kernels.py::test_a_kernel_comes_back",
    "test/emulation/test_execution.py::test_a_product_on_the_tensor_cores_of_the_gpu",
    "test/endtoend/test_attention_block_scaled.py::test_beside_numpy",
    "test/endtoend/test_attention_fp8.py::test_breaks_are_caught",
    "test/endtoend/test_attention_fp8.py::test_whole_scores_are_exact_in_tensor_memory",
    "test/endtoend/test_attention_lengths.py::test_kernels_take_the_nearest_number",
    "test/endtoend/test_attention_pages.py::test_a_page_is_loaded_by_boxes_of_it",
    "test/endtoend/test_attention_parts.py::test_breaks_are_caught",
    "test/endtoend/test_attention_tma_store.py::test_breaks_are_caught",
    "test/endtoend/test_attention_varlen.py::test_breaks_are_caught",
    "test/endtoend/test_attention_wgmma.py::test_breaks_are_caught",
    "test/endtoend/test_computed_operands.py::test_with_other_options",
    "test/endtoend/test_conv_offset_options.py::test_breaks_are_caught",
    "test/endtoend/test_conv_pairs.py::test_break",
    "test/endtoend/test_conv_programmatic.py::test_a_break_is_seen",
    "test/endtoend/test_conv_shift_options.py::test_breaks_are_caught",
    "test/endtoend/test_conv_wgmma.py::test_a_break_is_seen",
    "test/endtoend/test_fetch_ahead.py::test_a_break_is_seen",
    "test/endtoend/test_gemm_grouped_wgmma.py::test_weights_of_another_group",
    "test/endtoend/test_gemm_launch_control.py::test_break",
    "test/endtoend/test_join_gates.py::test_blocks_of_gates",
    "test/endtoend/test_matmul_warp_tiles.py::test_a_break_is_seen",
    "test/endtoend/test_matmul_warp_tma.py::test_a_break_is_seen",
    "test/endtoend/test_wgmma_store_tma.py::test_a_break_of_the_ptx",
    "test/ops/test_tensor_memory.py::test_copies_of_every_shape",
    "test/ops/test_tma_store.py::test_stores_every_element",
)
"""Functions that execute what the other quick cases of their file only reject or compile."""
DOORS = ("cute_scripts", "jax_functions", "onnx_models", "torch_models", "triton_scripts")


def slow_but(quick: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """Parameters of one name each, of which all but those in `quick` are slow; for `DOORS`, and
    where another compiler's result is kept, so that a second run measures nothing."""
    return [case if case in quick else slow(case) for case in cases]


def slow(*values: Any) -> Any:
    """A parameter of `make test-all` alone."""
    return pytest.param(*values, marks=pytest.mark.slow)


def over_budget(names: Iterable[str], stored: Mapping[str, float], budget: float) -> frozenset[str]:
    """Those of the ids `names`, all cases of some files, that are slow by the `stored` seconds."""
    found = set()
    met: set[str] = set()  # files and functions
    spent: Counter[str] = Counter()  # seconds of quick cases, by function
    # Of equal ones not those that come first in the alphabet: a share has cases of all parameters.
    order = sorted(
        (seconds(name, stored, 0.0), blake2b(name.encode()).digest(), name) for name in names
    )
    for time, _, name in order:
        file, function = name.partition("::")[0], name.partition("[")[0]
        if Path(file).parts[1] in DOORS:
            continue
        spent[function] += time
        quick = time <= budget and spent[function] <= max(SHARE, CASES * budget)
        quick |= file not in met and time <= LONGEST * budget
        quick |= function not in met and (time <= SENTINEL or function in FEATURES)
        met |= {file, function}
        if not quick:
            found.add(name)
    return frozenset(found) - frozenset(KEPT)


def write(reports: Iterable[Path], into: Path = DURATIONS) -> None:
    """Brings the list up to date by JUnit reports; what they did not run stays as it is."""
    measured: dict[str, dict[str, float]] = defaultdict(dict)
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            if not (module := case.get("classname")) or case.find("skipped") is not None:
                continue  # of a worker that crashed, or not run
            name = f"{module.replace('.', '/')}.py::{case.get('name')}"
            times = measured[name.partition("[")[0]]
            times[name] = max(float(case.get("time", 0)), times.get(name, 0))
    found = durations(into)
    for function, cases in measured.items():
        mean = fmean(cases.values())
        listed = mean > LEAST or mean * len(cases) > 1
        for name, time in cases.items():
            found.pop(name, None)
            if abs(time - (mean if listed else 0)) > LEAST:
                found[name] = time
        found.pop(function, None)
        if listed:
            found[function] = mean
    lines = [
        f"{s:.1f} {name}" if s >= LEAST else f"{s:.2f} {name}" for name, s in sorted(found.items())
    ]
    into.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(map(Path, sys.argv[1:]))
