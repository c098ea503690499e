"""The report's page from files: schema, tree of IR, escaping."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tcir
from tcir.program.state import State
from tcir.validation.report import SCHEMA as REPORT_SCHEMA
from tcir.viz.command import main
from tcir.viz.report import SCHEMA, VERDICTS, read_tree, report_html

LINES = [
    {"index": i, "name": f"pass-{i}", "verdict": v, "compared": "x", "findings": [],
     "counters": {"mma": 3}, "incomplete": ["<no.rule>"] if v == "incomplete" else []}
    for i, v in enumerate(("reference", "equal", "within bound", "incomplete", "not executed"))
]  # fmt: skip


def save(folder: Path, **more: object) -> str:
    file = folder / "r.json"
    data = {"schema": SCHEMA, "program": "f", "verdict": "incomplete", "passes": LINES, **more}
    file.write_text(json.dumps(data), encoding="utf-8")
    return str(file)


def test_page_from_files(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "1_raise.mlir").write_text("func <&> one\n", encoding="utf-8")
    (tree / "2_tile.mlir").write_text("func <&> two\n", encoding="utf-8")
    (tree / "notes.mlir").write_text("of no step\n", encoding="utf-8")
    source = tmp_path / "in.mlir"
    source.write_text("func zero\n", encoding="utf-8")
    out = tmp_path / "out.html"
    arguments = ["report", save(tmp_path), "--tree", str(tree), "--input", str(source)]
    assert main([*arguments, "-o", str(out)]) == 0
    page = out.read_text(encoding="utf-8")
    assert "<del>- func &lt;&amp;&gt; one</del>" in page
    assert "<ins>+ func &lt;&amp;&gt; two</ins>" in page
    assert "<del>- func zero</del>" in page
    assert "of no step" not in page and "<no.rule>" not in page
    assert "without a rule: &lt;no.rule&gt;" in page
    for verdict in ("reference", "equal", "within bound", "incomplete", "not executed"):
        assert f"{VERDICTS[verdict][0]}</b> {verdict}" in page
    assert "src=" not in page and "http" not in page  # nothing from elsewhere
    assert sorted(read_tree(str(tree), str(source))) == [0, 1, 2]


def test_the_page_says_how_the_program_was_executed(tmp_path: Path) -> None:
    chosen = {"numerics": "fast", "ordering": "isa", "assumptions": {"alloc_place": "any"}}
    file = save(tmp_path, seed=7, max_instructions=900, **chosen)
    out = tmp_path / "out.html"
    assert main(["report", file, "-o", str(out)]) == 0
    words = (
        "seed 7, numerics fast, ordering isa, assumption alloc_place=any, at most 900 instructions"
    )
    assert words in out.read_text(encoding="utf-8")
    assert main(["report", save(tmp_path, assumptions={}), "-o", str(out)]) == 0
    assert "assumption" not in out.read_text(encoding="utf-8")


PROGRAM = """
func.func @f(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x16xf32>) -> tensor<16x16xf32>
  %out = linalg.matmul ins(%a, %b : tensor<16x16xf16>, tensor<16x16xf16>)
      outs(%init : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %out : tensor<16x16xf32>
}
"""


def test_what_tc_opt_writes(tmp_path: Path) -> None:
    source, saved, tree = tmp_path / "f.mlir", tmp_path / "r.json", tmp_path / "tree"
    source.write_text(PROGRAM, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "tcir.tools.tc_opt", str(source), "-o", str(tmp_path / "out.mlir"),
         "--pass-pipeline=builtin.module(canonicalize,raise-to-tc)", f"--validate-each={saved}",
         f"--mlir-print-ir-tree-dir={tree}"],
        check=True, capture_output=True,
    )  # fmt: skip
    out = tmp_path / "out.html"
    assert (
        main(["report", str(saved), "--tree", str(tree), "--input", str(source), "-o", str(out)])
        == 0
    )
    page = out.read_text(encoding="utf-8")
    assert page.count('<section id="pass-') == 2  # canonicalize changes nothing
    assert re.search(r"<ins>\+ .*tc\.matmul", page) and re.search("<del>- .*linalg.matmul", page)
    assert "no IR of this step" in page  # before the input there is nothing
    assert page.count("no IR of this step") == 1


def page_of(*words: str, status: int, folder: Path) -> str:
    """The page that tc-opt writes; what it prints is in ``printed.txt``."""
    out = folder / "page.html"
    command = [sys.executable, "-m", "tcir.tools.tc_opt", *words, f"--report={out}"]
    done = subprocess.run([*command, "-o", os.devnull], capture_output=True, text=True, cwd=folder)
    assert done.returncode == status, done.stderr
    (folder / "printed.txt").write_text(done.stderr, encoding="utf-8")
    return out.read_text(encoding="utf-8")


def test_the_page_of_one_flag(tmp_path: Path) -> None:
    """IR in its short form, PTX, roofline and timeline; what is in the JSON beside it."""
    (tmp_path / "f.mlir").write_text(PROGRAM, encoding="utf-8")
    words = ["f.mlir", "--pipeline=gemm", "--emit=ptx", "--validate-each=r.json"]
    page = page_of(*words, status=0, folder=tmp_path)
    lines = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["passes"]
    assert page.count('<section id="pass-') == len(lines)
    assert "no IR of this step" not in page.split('<section id="pass-7"')[1]
    assert re.search(r"<ins>\+ +tc\.mma %\d+", page) and ".visible .entry f(" in page
    assert "Roofline, modelled and never measured" in page
    assert page.count("<svg") == 1 and "tensor pipe" in page.split("<svg")[1]
    assert "changed nothing: 1 fold-empty, 2 constants-to-arguments" in page


BROKEN = """
from tcir.dialect.walk import nested
from tcir.passes.pipelining.place_barriers import PlaceBarriers

def broken(self, module, run=PlaceBarriers.run):
    run(self, module)
    waits = [op for op in nested(module.operation) if op.operation.name == "tc.mbarrier_wait"]
    waits[-1].operation.erase()

PlaceBarriers.run = broken
"""


def test_a_finding_leads_to_its_ops(tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "broken.py").write_text(BROKEN, encoding="utf-8")
    words = ["f.mlir", "--pipeline=gemm", "--load-pass-plugin=broken.py"]
    page = page_of(*words, status=1, folder=tmp_path)
    failed = re.search(r'<section id="pass-(\d+)" hidden><h2>\d+ place-barriers</h2>.*', page)
    assert failed is not None
    found = re.findall(
        rf'data-pass="{failed[1]}" data-line="(\d+)">line \1</a> <code>(tc\.\w+)[^<]*</code>', page
    )
    assert {name for _, name in found} & {"tc.tmem_ld", "tc.mma"}
    after = re.search(r'data-kind="after"><pre>(.*?)</pre>', page[failed.start() :], re.S)
    assert after is not None
    shown = after[1].splitlines()
    assert all(name in shown[int(line) - 1] for line, name in found)
    printed = (tmp_path / "printed.txt").read_text(encoding="utf-8")
    assert re.findall(r"^ +line (\d+) of --emit=pretty: (tc\.\w+)", printed, re.M) == found


def test_the_page_of_a_crash(tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text(PROGRAM, encoding="utf-8")
    crash = "import ctypes\nfrom tcir.passes.pipelining.multi_buffer import MultiBuffer\n"
    crash += "MultiBuffer.run = lambda self, module: ctypes.string_at(0)\n"
    (tmp_path / "crash.py").write_text(crash, encoding="utf-8")
    words = ["f.mlir", "--pipeline=gemm", "--load-pass-plugin=crash.py"]
    page = page_of(*words, status=1, folder=tmp_path)
    assert "multi-buffer&#x27; was ended by SIGSEGV" in page and "tile-gemm" in page
    assert "different" in page


@pytest.mark.parametrize("words", [["--report=x.pdf"], ["--report=x.html", "--split-input-file"]])
def test_names_that_are_no_page(words: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tcir.tools.tc_opt", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (
        done.returncode == 3 and "expected a name that ends in .html, and one module" in done.stderr
    )
    assert not list(tmp_path.iterdir())


def test_report_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    report = tcir.validate(PROGRAM, "gemm")
    report.open()
    (file,) = tmp_path.iterdir()
    assert opened == [file.as_uri()] and file.suffix == ".html"
    assert file.read_text(encoding="utf-8") == report.page()
    assert report.states[report.passes[-1].index].ptx and "states" not in report.as_dict()


def test_schema_is_that_of_the_writer() -> None:
    assert SCHEMA == REPORT_SCHEMA


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"schema": "tcir.report/9"},
            "of schema tcir.report/1, got tcir.report/9",
        ),
        ({"passes": []}, "expected a report with passes"),
        (
            {"passes": [{"name": "cse"}]},
            "as --validate-each=FILE writes it, got one without 'index'",
        ),
        ({"passes": 7}, "got one of another form: 'int' object is not iterable"),
    ],
)
def test_refusals(tmp_path: Path, change, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", save(tmp_path, **change)]) == 3
    assert message in capsys.readouterr().err
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    assert main(["report", str(tmp_path / "bad.json")]) == 3
    assert "expected the JSON of --validate-each" in capsys.readouterr().err
    assert main(["report", save(tmp_path), "--tree", str(tmp_path / "none")]) == 3
    assert "expected the folder of --mlir-print-ir-tree-dir" in capsys.readouterr().err


def test_a_wrong_element_links_to_the_op_that_wrote_it() -> None:
    difference = {
        "output": 0, "index": (2, 1), "expected": "1.0", "got": "2.0", "count": 3, "total": 8,
        "site": "CTA (0, 0, 0) (f.mlir:9:10: tc.store_rows)",
    }  # fmt: skip
    lines = [{**LINES[0]}, {**LINES[1], "verdict": "different", "difference": difference}]
    report = {"schema": SCHEMA, "program": "f", "verdict": "different", "passes": lines}
    written = State("a\n  tc.store_rows %1\n", ops={"f.mlir:9:10: tc.store_rows": (2,)})
    page = report_html(report, {1: written})
    assert "3 of 8 elements; first: output 0 at [2, 1] (CTA (0, 0, 0) (f.mlir" in page
    assert 'data-line="2">line 2</a> <code>tc.store_rows %1</code>' in page
