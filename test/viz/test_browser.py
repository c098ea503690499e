"""Pictures and the report in headless Chromium: what must be drawn is there, inside its cell.

Needs Chromium (Debian: ``apt install chromium``) and the extra ``viz``.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tcir.program.state import State
from tcir.viz.palette import GREY, category, mix, thread
from tcir.viz.picture import Bar, BarRow, Chart, Key, Picture
from tcir.viz.pictures import FOLDER, PICTURES
from tcir.viz.report import report_html
from tcir.viz.svg import svg

from .hostile_report import PAYLOADS, hostile
from .hostile_report import REPORT as FULL_REPORT

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--hide-scrollbars", "--force-device-scale-factor=1",
)  # fmt: skip

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason=f"no Chromium: none of {', '.join(NAMES)} is on PATH"
)


def chromium(tmp_path: Path, page: str, *flags: str) -> str:
    """Opens a page and returns its document after its scripts ran."""
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *flags, file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer(tmp_path: Path, page: str, script: str) -> Any:
    """The value of `script` (a function body) in the page."""
    probe = (
        "<script>{const r=document.createElement('script');r.type='application/json';"
        f"r.id='answer';r.textContent=JSON.stringify((()=>{{{script}}})());"
        "document.body.append(r);}</script></body>"
    )
    shown = chromium(tmp_path, page.replace("</body>", probe), "--dump-dom")
    found = re.search(r'<script type="application/json" id="answer">(.*?)</script>', shown, re.S)
    assert found, shown[-2000:]
    return json.loads(found[1])


MEASURE = """
return [...document.querySelectorAll('svg')].map(svg=>{
  const page=svg.getBoundingClientRect();
  const inside=(a,b)=>a.left>=b.left-0.5&&a.right<=b.right+0.5&&a.top>=b.top-0.5&&
    a.bottom<=b.bottom+0.5;
  const cells=[...svg.querySelectorAll('.cell')].map(g=>{
    const box=g.querySelector('rect').getBoundingClientRect();
    const texts=[...g.querySelectorAll('text')];
    return {words:texts.map(t=>t.textContent),fill:g.querySelector('rect').getAttribute('fill'),
      mark:g.dataset.mark||'',marks:g.querySelectorAll('rect').length,
      fits:texts.every(t=>inside(t.getBoundingClientRect(),box)),
      seen:box.width>=15&&box.height>=15&&inside(box,page)};
  });
  const labels=[...svg.querySelectorAll('text')];
  return {cells:cells,keys:svg.querySelectorAll('.key').length,
    title:svg.querySelector('title').textContent,
    outside:labels.filter(t=>!inside(t.getBoundingClientRect(),page)).map(t=>t.textContent)};
});
"""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Chromium laid out of each picture of docs/pictures."""
    body = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in PICTURES)
    page = f"<!doctype html><html><meta charset=utf-8><body>{body}</body></html>"
    found = answer(tmp_path_factory.mktemp("pictures"), page, MEASURE)
    return dict(zip(PICTURES, found, strict=True))


TIMELINES = [name for name in PICTURES if name.startswith("timeline")]
LEAST = {"moves.svg": 13 + 5 * 3 + 4 * 8}
"""Cells of a small picture: pairs of memories, places of operands, warps by columns."""


@pytest.mark.parametrize("name", TIMELINES)
def test_text_of_a_timeline_is_inside(name: str, drawn: dict[str, Any]) -> None:
    """Bars have no words."""
    assert drawn[name]["title"] and drawn[name]["outside"] == []


@pytest.mark.parametrize("name", [name for name in PICTURES if name not in TIMELINES])
def test_cells_are_drawn_and_text_fits(name: str, drawn: dict[str, Any]) -> None:
    picture = drawn[name]
    assert picture["title"] and picture["keys"] >= 4
    assert len(picture["cells"]) >= LEAST.get(name, 100)
    assert [c["words"] for c in picture["cells"] if not c["seen"]] == []
    assert [c["words"] for c in picture["cells"] if not c["fits"]] == []
    assert picture["outside"] == []
    assert all(c["marks"] == 1 + bool(c["mark"]) for c in picture["cells"])


def test_what_the_pictures_show(drawn: dict[str, Any]) -> None:
    fragment = drawn["fragment_mma_m16n8k16_a.svg"]["cells"]
    assert fragment[0]["words"] == ["T0", "r0l"] and fragment[-1]["words"] == ["T31", "r3h"]
    assert {cell["fill"] for cell in fragment} == {thread(t) for t in range(32)}
    smem = drawn["smem_swizzle_128b.svg"]["cells"]
    ring = [i % 128 % 8 for i, cell in enumerate(smem) if cell["mark"] == "ring"]
    assert ring == [0] * 8 + list(range(8))  # one bank group, then all eight
    conv = drawn["conv_shift_reuse.svg"]["cells"][:128]
    stale = [i for i, cell in enumerate(conv[:96]) if cell["mark"] == "hatch"]
    assert stale == [63, 94, 95]
    assert conv[0]["words"] == ["-1"] and conv[0]["mark"] == "cross"


def test_colours_reach_the_screen(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="no Pillow: pip install 'tcir[viz]'")
    file = tmp_path / "shot.png"
    page = (FOLDER / "conv_shift_reuse.svg").read_text(encoding="utf-8")
    page += (FOLDER / "scale_factors.svg").read_text(encoding="utf-8")
    chromium(
        tmp_path,
        f"<!doctype html><meta charset=utf-8><body>{page}</body>",
        f"--screenshot={file}",
        "--window-size=1200,1800",
    )
    with image.open(file) as shot:
        counts = {colour: n for n, colour in shot.convert("RGB").getcolors(1 << 22)}
    for colour in (*(category(i) for i in range(4)), mix(GREY, "#FFFFFF", 0.3)):
        rgb = tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
        assert counts.get(rgb, 0) > 500, colour


def line(index: int, name: str, verdict: str, **more: Any) -> dict[str, Any]:
    return {"index": index, "name": name, "verdict": verdict, "ops": 3, "pass_seconds": 0.1,
            "execute_seconds": 0.2, "compared": "by <hand> & eye", **more}  # fmt: skip


REPORT = {
    "schema": "tcir.report/1", "program": "conv", "verdict": "different", "target": "sm_100a",
    "seed": 0, "inputs": "integers", "passes": [
        line(0, "(input)", "reference"),
        line(1, "good", "equal"),
        line(2, "bad", "different", difference={"output": 0, "index": [1, 2], "expected": 3.0,
             "got": 4.0, "count": 1, "total": 6},
             findings=[{"severity": "error", "code": "race", "text": "a < b"}]),
        line(3, "late", "not executed"),
    ],
}  # fmt: skip
TREE = {0: State("a\nb<1>\nc"), 1: State("a\nB<1>\nc"), 2: State("a\nB<1>\nc\nd & e")}

PRESS = """
const state=()=>{const s=document.querySelector('section:not([hidden])');
  const p=s.querySelector('.pane:not([hidden])');
  return [s.id,p.dataset.kind,p.innerText.trim(),
    document.querySelectorAll('section:not([hidden])').length,
    document.querySelector('tr[aria-selected=true]').dataset.pass];};
const states=[state()];
for(const key of KEYS){
  document.dispatchEvent(new KeyboardEvent('keydown',{key:key,bubbles:true}));
  states.push(state());
}
return {states:states,text:document.querySelector('#pass-2').textContent,
  verdicts:[...document.querySelectorAll('tr[data-pass] td:last-child')].map(t=>t.textContent)};
"""


def test_report_by_keyboard(tmp_path: Path) -> None:
    keys = ["k", "b", "a", "ArrowUp", "c", "End", "ArrowDown", "f", "Home", "j"]
    page = report_html(REPORT, TREE)
    found = answer(tmp_path, page, PRESS.replace("KEYS", json.dumps(keys)))
    assert found["verdicts"] == ["● reference", "✓ equal", "✗ different", "– not executed"]
    assert "a < b" in found["text"] and "1 of 6 elements; first: output 0" in found["text"]
    states = found["states"]
    assert all(count == 1 and f"pass-{chosen}" == shown for shown, _, _, count, chosen in states)
    assert [(s[0][5:], s[1]) for s in states] == [
        ("2", "changes"),  # begins at the first failure
        ("1", "changes"), ("1", "before"), ("1", "after"), ("0", "after"), ("0", "changes"),
        ("3", "changes"), ("3", "changes"), ("2", "changes"), ("0", "changes"), ("1", "changes"),
    ]  # fmt: skip
    assert states[0][2].splitlines()[1:] == ["  a", "  B<1>", "  c", "+ d & e"]
    assert states[1][2].splitlines()[1:] == ["  a", "- b<1>", "+ B<1>", "  c"]
    assert states[2][2] == TREE[0].text and states[3][2] == TREE[1].text
    assert states[6][2].startswith("no IR of this step")


def test_the_measure_sees_text_that_does_not_fit(tmp_path: Path) -> None:
    bad = (FOLDER / "ld_16x256b_x1.svg").read_text(encoding="utf-8").replace(">T31<", ">T31T31T31<")
    page = f"<!doctype html><meta charset=utf-8><body>{bad}</body>"
    (picture,) = answer(tmp_path, page, MEASURE)
    misfits = [c["words"][0] for c in picture["cells"] if not c["fits"]]
    assert misfits == ["T31T31T31"] * 4


HIT = "window.hit=(window.hit||0)+1"


def hostile_page(payload: str) -> str:
    """The page of a report with the payload in every string, the IR and the timeline's words."""
    bar = Bar(0, 9, payload, "#FFFFFF", about=payload)
    chart = Chart([BarRow(payload, [bar])], [], 0, 9, payload, payload)
    timeline = Picture(payload, payload, [], [Key("#FFFFFF", payload)], charts=[chart])
    states = {0: State(payload), 1: State(f"x\n{payload}")}
    return report_html(hostile(FULL_REPORT, payload), states, svg(timeline))


@pytest.mark.parametrize("payload", [each.replace("alert(1)", HIT) for each in PAYLOADS])
def test_no_text_of_a_report_runs(tmp_path: Path, payload: str) -> None:
    script = """
for(const row of document.querySelectorAll('tr[data-pass]'))row.click();
for(const e of document.querySelectorAll('*'))
  for(const kind of ['pointerover','mouseover','focus'])e.dispatchEvent(new Event(kind));
const links=[...document.querySelectorAll('[href]')].map(e=>e.getAttribute('href'));
return {hits: window.hit||0, images: document.images.length,
        scripts: document.scripts.length, rows: document.querySelectorAll('tr[data-pass]').length,
        links: links.filter(link=>!link.startsWith('#')).length};
"""
    found = answer(tmp_path, hostile_page(payload), script)
    rows = len(FULL_REPORT["passes"])
    assert found == {"hits": 0, "images": 0, "scripts": 2, "rows": rows, "links": 0}
