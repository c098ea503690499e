"""`tcir.prove` and ``tc-opt --prove`` with a stand-in for sentryward, which is not needed here."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tcir
from tcir.errors import InputError, MissingDependencyError, VerdictError
from tcir.program.launch import Launch
from tcir.prover.launch_input import first_ctas, launch_input
from tcir.prover.proof import Proof, Proofs
from tcir.prover.prove import prove
from tcir.prover.reasons import reason
from tcir.prover.rewritings import ASHIFT, EQUAL, IM2COL, LANES, only_entry, rewritten

from .kernels import ROWS, checked

STAND_IN = """
import json, os
from pathlib import Path

def verify(ptx, *, input, timeout_seconds, memory_limit_mib):
    Path(os.environ["SEEN"]).write_text(json.dumps({
        "ptx": Path(ptx).read_text(), "input": json.loads(Path(input).read_text()),
        "timeout": timeout_seconds, "memory": memory_limit_mib}))
    return json.loads(os.environ["SAYS"])
"""
FREE: dict[str, Any] = {"result": "race_free", "diagnostics": []}
RACY: dict[str, Any] = {
    "result": "potential_race",
    "diagnostics": [{"code": "conflicting_accesses_unordered", "message": "no order"}],
    "races": [{
        "first": {"actor": 1, "mode": "write", "location": {"line": 2}},
        "second": {"actor": 192, "mode": "read", "location": {"line": 3}},
        "region": {"address_space": "global", "allocation": "buffer2", "bytes": 16, "offset": 32},
    }],
}  # fmt: skip


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package sentryward that says what $SAYS holds; the file has what it was given."""
    folder = tmp_path / "site" / "sentryward"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.delitem(sys.modules, "sentryward", raising=False)
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
    monkeypatch.setenv("SAYS", json.dumps(FREE))
    yield tmp_path / "seen.json"
    sys.modules.pop("sentryward", None)


def test_what_it_is_given(stand_in: Path) -> None:
    proofs = prove(checked("gemm").kernel, timeout=7, memory_mib=99)
    seen = json.loads(stand_in.read_text())
    assert (seen["timeout"], seen["memory"]) == (7, 99)
    given = seen["input"]
    assert given["schema"] == "spverify.kernel-input/v1" and given["entry"] == "matmul"
    assert given["launch"]["grid_dim"] == [1, 2, 1] and given["launch"]["block_dim"] == [192, 1, 1]
    assert given["launch"]["dynamic_shared_bytes"] > 36864 and "cluster_dim" not in given["launch"]
    assert [each["type"] for each in given["declarations"]] == [
        "tensor_map",
        "tensor_map",
        "pointer",
    ]
    assert len({each["object"] for each in given["declarations"]}) == 3
    assert given["tma_descriptors"][0] == {
        "parameter": 0, "object": "buffer0", "element_type": "f16", "rank": 2,
        "global_shape": [320, 120], "global_strides_bytes": [640], "box_shape": [64, 128],
        "element_strides": [1, 1], "swizzle": "128B", "interleave": "none", "oob_fill": "zero",
    }  # fmt: skip
    assert ".loc" not in seen["ptx"] and "tcgen05.mma" in seen["ptx"]
    assert proofs and proofs.exit_code == 0 and proofs.check() is proofs
    assert "not executed" in str(proofs)  # compiled without validate=True


def test_the_verdict_of_the_machine_stands_beside_it(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAYS", json.dumps(RACY))
    proofs = tcir.prove(tcir.compile(ROWS, "gemm", validate=True))
    lines = str(proofs).splitlines()
    assert lines[0].split() == ["launch", "CTAs", "the", "machine", "sentryward", "took"]
    assert lines[1].split()[:4] == ["matmul", "1x2x1", "equal", "refuted"]
    assert "thread 1 of CTA 0" in lines[2] and "thread 0 of CTA 1" in lines[2]
    assert not proofs and proofs.exit_code == 1
    with pytest.raises(VerdictError, match="16 bytes of global memory"):
        proofs.check()


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'tcir\[prove\]'"):
        prove(checked("gemm").kernel)


@pytest.mark.parametrize(
    "options", [{"ctas": 0}, {"timeout": 0}, {"timeout": float("nan")}, {"memory_mib": 0}]
)
def test_wrong_options(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        prove(checked("gemm").kernel, **options)


# The launch ---------------------------------------------------------------------------------------


def launch(*params: dict[str, Any], grid: Any = (8, 3, 1), cluster: Any = (1, 1, 1)) -> Launch:
    return Launch("k", grid, (32, 1, 1), 0, params, cluster)


@pytest.mark.parametrize(
    ("grid", "cluster", "ctas", "judged"),
    [
        ((8, 3, 1), (1, 1, 1), None, (8, 3, 1)),
        ((8, 3, 1), (1, 1, 1), 24, (8, 3, 1)),
        ((8, 3, 1), (1, 1, 1), 2, (2, 1, 1)),
        ((2, 9, 1), (1, 1, 1), 5, (2, 2, 1)),
        ((8, 4, 1), (2, 1, 1), 3, (2, 1, 1)),
        ((8, 4, 1), (2, 2, 1), 1, (2, 2, 1)),
        ((2, 4, 3), (1, 2, 1), 8, (2, 4, 1)),
    ],
)
def test_the_first_ctas_are_whole_clusters(grid: Any, cluster: Any, ctas: int, judged: Any) -> None:
    assert first_ctas(launch(grid=grid, cluster=cluster), ctas) == judged


def test_im2col_workspaces_and_clusters() -> None:
    im2col = {
        "kind": "tensor_map", "arg": 0, "mode": "im2col", "dtype": "bf16", "dims": (64, 6, 12, 1),
        "strides": (128, 1536, 18432), "channels_per_pixel": 64, "pixels_per_column": 128,
        "lower_corner": (-1, -1), "upper_corner": (-1, -1), "swizzle": "NONE",
    }  # fmt: skip
    given = launch_input(
        launch(im2col, {"kind": "workspace", "bytes": 64}, cluster=(2, 1, 1)), (2, 1, 1)
    )
    assert given["launch"]["cluster_dim"] == [2, 1, 1]
    assert given["declarations"][1]["type"] == "pointer"
    (descriptor,) = given["tma_descriptors"]
    assert descriptor["box_shape"] == [64, 128, 1, 1]
    assert descriptor["global_shape"] == [64, 128, 12, 1]  # a box fits
    assert descriptor["swizzle"] == "none"


def test_a_number_is_not_handed_over(stand_in: Path) -> None:
    kernel = checked("gemm").kernel
    one = launch({"kind": "value", "arg": 0})
    launches = type(kernel.launches)((one,))
    proofs = prove(
        tcir.Kernel(kernel.signature, launches, "sm_100a", kernel.ptx, "", kernel.report, {})
    )
    assert proofs.exit_code == 2 and "expected a pointer or a tensor map" in proofs.launches[0].why


# The text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gemm", "conv-smem-offset", "gemv-padded-n, 64 columns"])
def test_rewritings_that_mean_the_same(name: str) -> None:
    check = checked(name)
    text, applied = rewritten(check.kernel.ptx)
    assert {each.what for each in EQUAL} >= {each.what for each in applied[1:]} != set()
    assert text.count("\n") == check.kernel.ptx.count("\n")
    assert "collector" not in text and "mad.lo" not in text
    caught = check.run(text, orders=1)
    assert not caught, caught.text


@pytest.mark.parametrize(
    ("old", "new", "by"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16.collector::a::discard.ashift "
         "[%r1], [%r2], %rd1, %r3, %p1;",
         "tcgen05.mma.cta_group::1.kind::f16 [%r1], [%r2], %rd1, %r3, %p1;", ASHIFT),
        ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, {%r4, %r5, %r6, %r7}, %p1;",
         "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;", LANES),
        ("cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes "
         "[%rd1], [%rd2, {%r1, %r2, %r3, %r4}], [%rd3], {%rs1, %rs2};",
         "cp.async.bulk.tensor.4d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
         "[%rd1], [%rd2, {%r1, %r2, %r3, %r4}], [%rd3];", IM2COL),
    ],
)  # fmt: skip
def test_approximations_are_named(old: str, new: str, by: Any) -> None:
    text, applied = rewritten(old)
    assert text == new and applied == (by,)
    proof = Proof("k", "race_free", "", (1, 1, 1), (1, 1, 1), applied, 0.1)
    assert proof.verdict == "neighbour proved" and by.differs in proof.words


def test_other_entries_are_left_out() -> None:
    first = ".visible .entry a(\n.param .u64 p\n)\n{\nret;\n}\n"
    ptx = f".version 8.8\n{first}.visible .entry b()\n{{\nret;\n}}\n"
    text = only_entry(ptx, "b")
    assert ".entry a" not in text and ".entry b()\n{\nret;\n}" in text
    assert text.count("\n") == ptx.count("\n") and text.startswith(".version 8.8")


# The verdict --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "grid", "verdict", "status"),
    [
        ("race_free", (4, 1, 1), "proved", 0),
        ("race_free", (2, 1, 1), "in part", 2),
        ("not_wellsynced", (4, 1, 1), "refuted", 1),
        ("invalid_lifecycle", (4, 1, 1), "refuted", 1),
        ("potential_race", (2, 1, 1), "refuted", 1),
        ("unsupported", (4, 1, 1), "incomplete", 2),
        ("timeout", (4, 1, 1), "incomplete", 2),
        ("memory_budget_exceeded", (4, 1, 1), "incomplete", 2),
        ("a word of a later version", (4, 1, 1), "incomplete", 2),
    ],
)
def test_verdicts(result: str, grid: Any, verdict: str, status: int) -> None:
    proof = Proof("k", result, "why", grid, (4, 1, 1), (), 0.1)
    assert proof.verdict == verdict and Proofs((proof,), "equal").exit_code == status
    assert ("2 of 4 CTAs" in proof.words) == (verdict == "in part")


def test_the_gravest_launch_counts() -> None:
    def of(result: str) -> Proof:
        return Proof("k", result, "", (1, 1, 1), (1, 1, 1), (), 0.1)

    assert Proofs((of("timeout"), of("potential_race"), of("race_free")), "equal").exit_code == 1
    assert Proofs((of("timeout"), of("race_free")), "equal").exit_code == 2
    assert Proofs((), "equal").exit_code == 0


def test_reasons() -> None:
    lines = ["{", "st.global.b32 \t[%rd1], %r1;", "ld.global.b32 \t%r2, [%rd1];"]
    assert reason(RACY, lines, 192) == (
        "line 2: st.global.b32 [%rd1], %r1; (a write, thread 1 of CTA 0) and line 3: ld.global.b32 "
        "%r2, [%rd1]; (a read, thread 0 of CTA 1) are not ordered: 16 bytes of global memory "
        "(buffer2) at 32"
    )
    register = {"races": [{**RACY["races"][0], "region": None}]}
    register["races"][0]["first"] |= {"endpoint": {"name": "%r9"}}
    assert reason(register, lines, 192).endswith("not ordered: register %r9")
    at = {"diagnostics": [{"code": "c", "message": "no such thing", "details": {"ptx_line": 3}}]}
    assert reason(at, lines, 192) == "line 3: ld.global.b32 %r2, [%rd1];: no such thing"
    assert reason({"diagnostics": [{"code": "only_a_code"}]}, lines, 192) == "only_a_code"
    assert reason({"result": "timeout"}, lines, 192) == ""


# The command --------------------------------------------------------------------------------------


def tc_opt(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tcir.tools.tc_opt", "-", "--pipeline=gemm", *words],
        input=ROWS,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    ("says", "status"),
    [
        (FREE, 0),
        (RACY, 1),
        ({"result": "timeout"}, 2),
    ],
)
def test_the_flag(stand_in: Path, tmp_path: Path, says: Any, status: int) -> None:
    path = f"{tmp_path / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    out = tmp_path / "k.ptx"
    done = tc_opt("--emit=ptx", "--prove", "-o", str(out), PYTHONPATH=path, SAYS=json.dumps(says))
    assert done.returncode == status, done.stderr
    table = done.stderr[done.stderr.index("launch  CTAs") :].splitlines()
    assert table[1].startswith("matmul  1x2x1  equal        ")
    assert table[2].startswith("sentryward, @matmul: ")
    assert out.read_text().startswith("//")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--prove"], "--prove: expected --emit=ptx, cubin or sass"),
        (["--prove=0", "--emit=ptx"], "--prove: expected a number of CTAs, at least 1, got '0'"),
        (
            ["--prove=two", "--emit=ptx"],
            "--prove: expected a number of CTAs, at least 1, got 'two'",
        ),
    ],
)
def test_wrong_flags(words: list[str], told: str) -> None:
    done = tc_opt(*words)
    assert done.returncode == 3 and told in done.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("sentryward") is not None, reason="the package sentryward is there"
)
def test_the_flag_without_the_package(tmp_path: Path) -> None:
    out = tmp_path / "k.ptx"
    done = tc_opt("--emit=ptx", "--prove", "-o", str(out))
    assert done.returncode == 2 and "pip install 'tcir[prove]'" in done.stderr
    assert not out.exists() and "verdict" not in done.stderr  # said before the work
