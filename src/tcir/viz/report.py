"""The HTML page of a ``--validate-each`` report: verdicts, and the IR around each pass."""

from __future__ import annotations

import difflib
import json
from html import escape
from pathlib import Path
from typing import Any

from tcir.errors import InputError
from tcir.files import read_bytes, read_text

from .palette import BLUE, GREEN, GREY, ORANGE, VERMILLION
from .svg import FONT

SCHEMA = "tcir.report/1"
CONTEXT = 3
VERDICTS = {
    "reference": ("●", BLUE), "equal": ("✓", GREEN), "within bound": ("≈", GREEN),
    "different": ("✗", VERMILLION), "incomplete": ("?", ORANGE), "error": ("✗", VERMILLION),
    "not executed": ("–", GREY), "-": ("–", GREY), "held": ("✓", GREEN),
    "sampled": ("◐", ORANGE),
}  # fmt: skip
"""A symbol and a colour for every verdict of `tcir.validation.report`."""


def load_report(path: str) -> dict[str, Any]:
    """The JSON that ``--validate-each=FILE`` saved."""
    try:
        data = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: expected the JSON of --validate-each=FILE, got {error}"
        ) from error
    got = data.get("schema") if isinstance(data, dict) else None
    if got != SCHEMA:
        raise InputError(f"{path}: expected a report of schema {SCHEMA}, got {got}")
    return data


def read_tree(folder: str | None, source: str | None) -> dict[int, str]:
    """IR after pass n by n (files ``n_pass.mlir`` of --mlir-print-ir-tree-dir, and ``n_….ptx``);
    0: the input."""
    found: dict[int, str] = {}
    if folder is not None:
        if not Path(folder).is_dir():
            raise InputError(f"expected the folder of --mlir-print-ir-tree-dir, got '{folder}'")
        for path in Path(folder).glob("*_*.*"):
            number = path.name.split("_")[0]
            if number.isdigit() and path.suffix in (".mlir", ".ptx"):
                found[int(number)] = read_text(path)
    if source is not None:
        found[0] = read_text(source)
    return found


def _changes(before: str, after: str) -> str:
    old, new = before.splitlines(), after.splitlines()
    groups = difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT)
    out = []
    for group in groups:
        out.append(f'<span class="at">… line {group[0][3] + 1}</span>')
        for tag, i, j, k, m in group:
            if tag == "equal":
                out += [f"<span>  {escape(line)}</span>" for line in old[i:j]]
                continue
            out += [f"<del>- {escape(line)}</del>" for line in old[i:j]]
            out += [f"<ins>+ {escape(line)}</ins>" for line in new[k:m]]
    return "\n".join(out) or "<span>no change</span>"


def _pane(kind: str, body: str | None, missing: str) -> str:
    shown = f"<pre>{body}</pre>" if body is not None else f"<p class=none>{escape(missing)}</p>"
    return f'<div class="pane" data-kind="{kind}">{shown}</div>'


def _facts(line: dict[str, Any]) -> str:
    facts = []
    if line.get("compared"):
        facts.append(f"<p>{escape(str(line['compared']))}</p>")
    difference = line.get("difference")
    if difference:
        words = ", ".join(
            f"{key} {value}" for key, value in difference.items() if value is not None
        )
        facts.append(f'<p class="bad">first difference: {escape(words)}</p>')
    facts += [
        f'<p class="bad">without a rule: {escape(str(name))}</p>'
        for name in line.get("incomplete", [])
    ]
    for finding in line.get("findings", []):
        words = "{severity} {code}: {text}".format(**finding)
        facts.append(f'<p class="bad">{escape(words)}</p>')
    counters = line.get("counters") or {}
    if counters:
        items = "".join(f"<li>{escape(str(k))}: {escape(str(v))}</li>" for k, v in counters.items())
        facts.append(f"<details><summary>counters</summary><ul>{items}</ul></details>")
    return "".join(facts)


def _verdict(verdict: str) -> str:
    sign, colour = VERDICTS.get(verdict, ("?", ORANGE))
    return f'<b class="sign" style="background:{colour}">{sign}</b> {escape(verdict)}'


def _section(line: dict[str, Any], before: str | None, after: str | None) -> str:
    number, name = line["index"], str(line["name"])
    missing = "no IR of this step was given (tc-viz report --tree DIR --input FILE)"
    changes = None
    if after is not None and number == 0:
        changes = escape(after)
    elif before is not None and after is not None:
        changes = _changes(before, after)
    panes = (
        _pane("changes", changes, missing)
        + _pane("before", None if before is None else escape(before), missing)
        + _pane("after", None if after is None else escape(after), missing)
    )
    return (
        f'<section id="pass-{number}" hidden><h2>{number} {escape(name)}</h2>'
        f"<p>{_verdict(str(line['verdict']))}</p>{_facts(line)}{panes}</section>\n"
    )


def _row(line: dict[str, Any]) -> str:
    seconds = float(line.get("pass_seconds") or 0) + float(line.get("execute_seconds") or 0)
    return (
        f'<tr data-pass="{line["index"]}" tabindex="-1"><td>{line["index"]}</td>'
        f"<td>{escape(str(line['name']))}</td><td>{line.get('ops') or '-'}</td>"
        f"<td>{seconds:.2f}</td><td>{_verdict(str(line['verdict']))}</td></tr>\n"
    )


_STYLE = f"""
body{{margin:0;font:14px/1.4 system-ui,sans-serif;color:#111;background:#fff;display:grid;
grid-template-columns:minmax(30rem,2fr) 5fr;height:100vh}}
nav,main{{overflow:auto;padding:1rem}}nav{{border-right:1px solid #bbb}}
h1{{font-size:1.1rem;margin:0 0 .5rem}}h2{{font-size:1rem;margin:0}}p{{margin:.3rem 0}}
table{{border-collapse:collapse;width:100%}}td,th{{padding:.15rem .4rem;text-align:left}}
tr[data-pass]{{cursor:pointer}}td:last-child{{white-space:nowrap}}
tr[aria-selected=true]{{outline:2px solid {BLUE};background:#E8F2FA}}
.sign{{display:inline-block;width:1.3em;text-align:center;color:#fff;border-radius:3px}}
.bad{{border-left:4px solid {VERMILLION};padding-left:.5rem}}.none{{color:#555}}
pre{{font:12px/1.35 {FONT};overflow:auto;border:1px solid #ccc;padding:.5rem;margin:.5rem 0}}
pre span,pre ins,pre del{{text-decoration:none}}
ins{{background:#DCEBFA;box-shadow:-3px 0 {BLUE}}}del{{background:#FCE6D8;box-shadow:-3px 0
{VERMILLION}}}.at{{color:#555;font-style:italic}}
button[aria-pressed=true]{{outline:2px solid {BLUE}}}kbd{{border:1px solid #999;
border-radius:3px;padding:0 .3em}}
"""
_SCRIPT = """
const rows=[...document.querySelectorAll('tr[data-pass]')];
const buttons=[...document.querySelectorAll('button[data-kind]')];
let at=0,kind='changes';
function show(){
  rows.forEach((row,i)=>{row.setAttribute('aria-selected',i===at);
    document.getElementById('pass-'+row.dataset.pass).hidden=i!==at;});
  document.querySelectorAll('.pane').forEach(p=>{p.hidden=p.dataset.kind!==kind;});
  buttons.forEach(b=>b.setAttribute('aria-pressed',b.dataset.kind===kind));
  rows[at].scrollIntoView({block:'nearest'});
}
function go(i){at=Math.min(Math.max(i,0),rows.length-1);show();}
function bad(){const i=rows.findIndex(r=>r.dataset.bad);return i<0?at:i;}
rows.forEach((row,i)=>row.addEventListener('click',()=>go(i)));
buttons.forEach(b=>b.addEventListener('click',()=>{kind=b.dataset.kind;show();}));
document.addEventListener('keydown',e=>{
  if(e.ctrlKey||e.metaKey||e.altKey)return;
  const keys={ArrowDown:()=>go(at+1),j:()=>go(at+1),ArrowUp:()=>go(at-1),k:()=>go(at-1),
    Home:()=>go(0),End:()=>go(rows.length-1),f:()=>go(bad()),
    c:()=>{kind='changes';show();},b:()=>{kind='before';show();},a:()=>{kind='after';show();}};
  if(keys[e.key]){keys[e.key]();e.preventDefault();}
});
go(bad());
"""


def report_html(report: dict[str, Any], tree: dict[int, str]) -> str:
    """The page; ``tree`` is what `read_tree` gave. It needs nothing but a browser."""
    lines = report.get("passes") or []
    if not lines:
        raise InputError("expected a report with passes, got one without")
    verdict = str(report.get("verdict"))
    title = f"{report.get('program') or 'program'}: {verdict}"
    rows = []
    for line in lines:
        failing = line["verdict"] in ("different", "incomplete", "not executed")
        row = _row(line)
        rows.append(row.replace("<tr ", '<tr data-bad="1" ', 1) if failing else row)
    sections = [
        _section(line, tree.get(line["index"] - 1), tree.get(line["index"])) for line in lines
    ]
    how = ", ".join(
        f"{key} {report[key]}"
        for key in ("target", "inputs", "seed", "orders", "numerics", "ordering")
        if report.get(key) is not None
    )
    changed = report.get("assumptions") or {}
    how += "".join(f", assumption {name}={answer}" for name, answer in changed.items())
    if report.get("max_instructions") is not None:
        how += f", at most {report['max_instructions']} instructions"
    error = f'<p class="bad">{escape(str(report["error"]))}</p>' if report.get("error") else ""
    tabs = "".join(
        f'<button data-kind="{kind}">{kind}</button> ' for kind in ("changes", "before", "after")
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n"
        f"<nav><h1>{escape(str(report.get('program') or 'program'))}: {_verdict(verdict)}</h1>"
        f"<p>{escape(how)}</p>{error}<table><tr><th>#<th>pass<th>ops<th>s<th>verdict</tr>\n"
        f"{''.join(rows)}</table><p><kbd>j</kbd> <kbd>k</kbd> next, previous pass; <kbd>c</kbd> "
        "changes, <kbd>b</kbd> before, <kbd>a</kbd> after; <kbd>f</kbd> first failure</p></nav>\n"
        f"<main><p>{tabs}</p>\n{''.join(sections)}</main>\n<script>{_SCRIPT}</script></body></html>\n"
    )
