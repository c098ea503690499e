"""The HTML page of a validation: verdicts, IR around each pass, roofline, modelled timeline."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tcir.errors import InputError
from tcir.files import read_bytes, read_text
from tcir.program.state import SITES, State
from tcir.time.roofline import scaled

from .html import Html, join, tag, text
from .palette import BLUE, GREEN, GREY, ORANGE, VERMILLION
from .svg import FONT

Json: TypeAlias = Mapping[str, Any]
"""A JSON object."""

SCHEMA = "tcir.report/1"
CONTEXT = 3
VERDICTS = {
    "reference": ("●", BLUE), "equal": ("✓", GREEN), "within bound": ("≈", GREEN),
    "different": ("✗", VERMILLION), "incomplete": ("?", ORANGE), "error": ("✗", VERMILLION),
    "not executed": ("–", GREY), "-": ("–", GREY), "held": ("✓", GREEN),
    "sampled": ("◐", ORANGE), "small numbers": ("◐", ORANGE),
}  # fmt: skip
"""Verdict of `tcir.validation.report` -> its symbol and colour."""
_FAILING = ("different", "incomplete", "not executed")


def load_report(path: str) -> Json:
    """Loads the JSON that ``--validate-each=FILE`` saved."""
    try:
        data = json.loads(read_bytes(path, pipes=True))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: expected the JSON of --validate-each=FILE, got {error}"
        ) from error
    got = data.get("schema") if isinstance(data, dict) else None
    if got != SCHEMA:
        raise InputError(f"{path}: expected a report of schema {SCHEMA}, got {got}")
    return data


def page_of_file(path: str, folder: str | None, source: str | None) -> str:
    """Returns the page for the JSON in the file `path`, with the IR that `read_tree` finds."""
    report, states = load_report(path), read_tree(folder, source)
    try:
        return report_html(report, states)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        got = f"without {error}" if isinstance(error, KeyError) else f"of another form: {error}"
        raise InputError(
            f"{path}: expected a report as --validate-each=FILE writes it, got one {got}"
        ) from error


def read_tree(folder: str | None, source: str | None) -> dict[int, State]:
    """Reads the IR after each pass and returns it by number: n is the IR after pass n (from files
    ``n_pass.mlir`` of --mlir-print-ir-tree-dir, and ``n_….ptx``), 0 is the input.
    """
    found: dict[int, State] = {}
    if folder is not None:
        if not Path(folder).is_dir():
            raise InputError(f"expected the folder of --mlir-print-ir-tree-dir, got '{folder}'")
        for path in Path(folder).glob("*_*.*"):
            number = path.name.split("_")[0]
            if number.isdigit() and path.suffix in (".mlir", ".ptx"):
                found[int(number)] = State(read_text(path), ptx=path.suffix == ".ptx")
    if source is not None:
        found[0] = State(read_text(source))
    return found


def _changes(before: str, after: str) -> Html:
    old, new = before.splitlines(), after.splitlines()
    groups = difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT)
    out = []
    for group in groups:
        out.append(tag("span", f"… line {group[0][3] + 1}", class_="at"))
        for kind, i, j, k, m in group:
            if kind == "equal":
                out += [tag("span", f"  {line}") for line in old[i:j]]
                continue
            out += [tag("del", f"- {line}") for line in old[i:j]]
            out += [tag("ins", f"+ {line}") for line in new[k:m]]
    return join(out, "\n") or tag("span", "no change")


def _pane(kind: str, body: str | None, missing: str) -> Html:
    shown = tag("p", missing, class_="none") if body is None else tag("pre", body)
    return tag("div", shown, class_="pane", data_kind=kind)


def _bad(words: object) -> Html:
    return tag("p", words, class_="bad")


def _sites(words: str, number: object, state: State | None) -> Html:
    """Returns a list of the lines that a finding names, each with a link to its place in the IR."""
    if state is None:
        return text("")
    found = list(state.sites(words).items())
    items = []
    for line, code in found[:SITES]:
        where = {"href": f"#pass-{number}", "data_pass": number, "data_line": line}
        items.append(tag("li", tag("a", f"line {line}", **where), " ", tag("code", code)))
    if len(found) > SITES:
        items.append(tag("li", f"{len(found) - SITES} more"))
    return tag("ul", *items, class_="sites") if items else text("")


def _facts(line: Json, state: State | None) -> Html:
    facts = []
    if line.get("compared"):
        words = str(line["compared"])
        facts += [tag("p", words), _sites(words, line["index"], state)]
    difference = line.get("difference")
    if difference:
        site = str(difference.get("site") or "")
        index = list(difference["index"])
        words = (
            f"{difference['count']} of {difference['total']} elements; first: output "
            f"{difference['output']} at {index}{f' ({site})' if site else ''}: expected "
            f"{difference['expected']}, got {difference['got']}"
        )
        facts += [_bad(words), _sites(site, line["index"], state)]
    facts += [_bad(f"without a rule: {name}") for name in line.get("incomplete", [])]
    for finding in line.get("findings", []):
        words = "{severity} {code}: {text}".format(**finding)
        facts += [_bad(words), _sites(finding["text"], line["index"], state)]
    facts += [tag("p", f"remark: {remark}") for remark in line.get("remarks", [])]
    counters = line.get("counters") or {}
    if counters:
        items = [tag("li", f"{name}: {count}") for name, count in counters.items()]
        facts.append(tag("details", tag("summary", "counters"), tag("ul", *items)))
    return join(facts)


def _verdict(verdict: str) -> Html:
    sign, colour = VERDICTS.get(verdict, ("?", ORANGE))
    return join([tag("b", sign, class_="sign", style=f"background:{colour}"), " ", verdict])


def _section(line: Json, before: str | None, state: State | None) -> Html:
    number = line["index"]
    after = state.text if state is not None else None
    missing = "no IR of this step was given (tc-opt --report=FILE.html keeps it)"
    changes = None
    if after is not None and number == 0:
        changes = after
    elif before is not None and after is not None:
        changes = _changes(before, after)
    return tag(
        "section",
        tag("h2", f"{number} {line['name']}"),
        tag("p", _verdict(str(line["verdict"]))),
        _facts(line, state),
        _pane("changes", changes, missing),
        _pane("before", before, missing),
        _pane("after", after, missing),
        id=f"pass-{number}",
        hidden=True,
    )


def _row(line: Json) -> Html:
    number = line["index"]
    seconds = float(line.get("pass_seconds") or 0) + float(line.get("execute_seconds") or 0)
    cells = (number, line["name"], line.get("ops") or "-", f"{seconds:.2f}")
    return tag(
        "tr",
        *(tag("td", cell) for cell in (*cells, _verdict(str(line["verdict"])))),
        data_pass=number,
        data_bad=1 if line["verdict"] in _FAILING else None,
        tabindex=-1,
    )


def _roofline(numbers: Json | None) -> Html:
    """Returns tables of the numbers of the program's roofline."""
    if not numbers:
        return text("")
    limits = numbers["limits_us"]
    longest = max([*limits.values(), numbers.get("modelled_us") or 0.0]) or 1.0
    bars = [(f"{name}, at least", value, GREY) for name, value in limits.items()]
    if numbers.get("modelled_us"):
        name = f"modelled time, limited by {numbers['limited_by']}"
        bars.append((name, numbers["modelled_us"], ORANGE))
    rows = []
    for name, value, colour in bars:
        bar = tag("i", style=f"width:{100 * value / longest:.1f}%;background:{colour}")
        words = tag("td", name), tag("td", f"{value:.3g} us")
        rows.append(tag("tr", *words, tag("td", bar, class_="bar")))
    work = [f"{scaled(value, 'FLOP')} ({kind})" for kind, value in numbers["flops"].items()]
    work.append(f"{scaled(numbers['hbm_bytes'], 'B')} of HBM")
    work.append(f"{numbers['flop_per_byte']:.3g} FLOP/B; bound by {numbers['bound']}")
    if numbers.get("share") is not None:
        work.append(f"{numbers['share']:.0%} of it reached")
    title = tag("h2", "Roofline, modelled and never measured")
    return join([title, tag("p", ", ".join(work)), tag("table", *rows)])


def _code(code: Json | None) -> Html:
    if not code:
        return text("")
    shown = {name: value for name, value in code.items() if not isinstance(value, dict | list)}
    shown |= {f"SASS {name}": count for name, count in (code.get("sass") or {}).items()}
    rows = [
        tag("tr", tag("td", name.replace("_", " ")), tag("td", value))
        for name, value in shown.items()
        if value is not None
    ]
    return join([tag("h2", "Code"), tag("table", *rows)])


_STYLE = f"""
:root{{color-scheme:light dark}}
body{{margin:0;font:14px/1.4 system-ui,sans-serif;color:var(--text);background:var(--page);
display:grid;grid-template-columns:minmax(30rem,2fr) 5fr;height:100vh;
--text:#111;--page:#fff;--line:#bbb;--pale:#555;--chosen:#E8F2FA;--new:#DCEBFA;--old:#FCE6D8;
--hit:#FFF3B0}}
@media(prefers-color-scheme:dark){{body{{--text:#ddd;--page:#1b1d22;--line:#555;--pale:#aaa;
--chosen:#22394d;--new:#1d3a55;--old:#55301c;--hit:#5c5216}}}}
nav,main{{overflow:auto;padding:1rem}}nav{{border-right:1px solid var(--line)}}
@media(max-width:60rem){{body{{display:block;height:auto}}
nav{{max-height:50vh;border-right:0;border-bottom:1px solid var(--line)}}
body pre{{white-space:pre-wrap;overflow-wrap:anywhere}}
aside{{overflow:auto}}aside svg{{min-width:50rem}}}}
h1{{font-size:1.1rem;margin:0 0 .5rem}}h2{{font-size:1rem;margin:0}}p{{margin:.3rem 0}}
table{{border-collapse:collapse;width:100%}}td,th{{padding:.15rem .4rem;text-align:left}}
tr[data-pass]{{cursor:pointer}}td:last-child,td:has(+.bar),label{{white-space:nowrap}}
tr[aria-selected=true]{{outline:2px solid {BLUE};background:var(--chosen)}}
.sign{{display:inline-block;width:1.3em;text-align:center;color:#fff;border-radius:3px}}
.bad{{border-left:4px solid {VERMILLION};padding-left:.5rem;overflow-wrap:anywhere}}
.none{{color:var(--pale)}}
pre{{font:12px/1.35 {FONT};overflow:auto;border:1px solid var(--line);padding:.5rem;
margin:.5rem 0}}pre span,pre ins,pre del{{text-decoration:none}}
ins{{background:var(--new);box-shadow:-3px 0 {BLUE}}}
del{{background:var(--old);box-shadow:-3px 0 {VERMILLION}}}
.at{{color:var(--pale);font-style:italic}}
.hit{{background:var(--hit)}}.at-line{{background:{ORANGE};color:#000}}.sites{{margin:.2rem 0}}
td.bar{{width:40%}}.bar i{{display:block;height:.8em}}aside{{border-top:1px solid var(--line);
margin-top:1rem;padding-top:.5rem}}aside h2+table+h2{{margin-top:.8rem}}
aside svg{{max-width:100%;height:auto;background:#fff}}
[hidden]{{display:none!important}}#find{{width:16rem}}
button[aria-pressed=true]{{outline:2px solid {BLUE}}}kbd{{border:1px solid var(--line);
border-radius:3px;padding:0 .3em}}
"""
_SCRIPT = """
const rows=[...document.querySelectorAll('tr[data-pass]')];
const buttons=[...document.querySelectorAll('button[data-kind]')];
const find=document.getElementById('find');
let at=0,kind='changes';
const section=row=>document.getElementById('pass-'+row.dataset.pass);
function pane(){return section(rows[at]).querySelector('.pane:not([hidden]) pre');}
function show(){
  rows.forEach((row,i)=>{row.setAttribute('aria-selected',i===at);section(row).hidden=i!==at;});
  document.querySelectorAll('section .pane').forEach(p=>{p.hidden=p.dataset.kind!==kind;});
  buttons.forEach(b=>b.setAttribute('aria-pressed',b.dataset.kind===kind));
  rows[at].scrollIntoView({block:'nearest'});
  mark();
}
function lines(pre){
  if(!pre.dataset.split&&!pre.children.length){
    const text=pre.textContent.replace(/\\n$/,'').split('\\n');
    pre.replaceChildren(...text.flatMap(line=>{const s=document.createElement('span');
      s.textContent=line;return [s,document.createTextNode('\\n')];}));
  }
  pre.dataset.split=1;
  return [...pre.children];
}
function mark(){
  const pre=pane(),word=find.value.toLowerCase();
  if(!pre)return;
  let first=null;
  lines(pre).forEach(line=>{const hit=word!==''&&line.textContent.toLowerCase().includes(word);
    line.classList.toggle('hit',hit);if(hit&&!first)first=line;});
  if(first)first.scrollIntoView({block:'center'});
}
function shown(i){return i>=0&&i<rows.length&&!rows[i].hidden;}
function go(i,step){
  while(step&&i>=0&&i<rows.length&&!shown(i))i+=step;
  if(shown(i)){at=i;show();}
}
function filter(){
  const word=find.value.toLowerCase();
  rows.forEach((row,i)=>{
    const has=word===''||row.textContent.toLowerCase().includes(word)||
      section(row).textContent.toLowerCase().includes(word);
    row.hidden=!has;});
  const near=[...rows.keys()].filter(shown);
  document.getElementById('nothing').hidden=near.length>0;
  if(near.length&&!shown(at))at=near.reduce((a,b)=>Math.abs(b-at)<Math.abs(a-at)?b:a);
  show();
}
function bad(){const i=rows.findIndex(r=>r.dataset.bad);return i<0?at:i;}
rows.forEach((row,i)=>row.addEventListener('click',()=>go(i,0)));
buttons.forEach(b=>b.addEventListener('click',()=>{kind=b.dataset.kind;show();}));
find.addEventListener('input',filter);
document.querySelectorAll('a[data-line]').forEach(a=>a.addEventListener('click',e=>{
  e.preventDefault();kind='after';at=rows.findIndex(r=>r.dataset.pass===a.dataset.pass);show();
  const line=lines(pane())[a.dataset.line-1];
  document.querySelectorAll('.at-line').forEach(l=>l.classList.remove('at-line'));
  line.classList.add('at-line');line.scrollIntoView({block:'center'});
}));
document.addEventListener('keydown',e=>{
  if(e.target===find&&e.key==='Escape'){find.value='';filter();find.blur();return;}
  if(e.ctrlKey||e.metaKey||e.altKey||e.target===find)return;
  const keys={ArrowDown:()=>go(at+1,1),j:()=>go(at+1,1),ArrowUp:()=>go(at-1,-1),k:()=>go(at-1,-1),
    Home:()=>go(0,1),End:()=>go(rows.length-1,-1),f:()=>go(bad(),0),'/':()=>find.focus(),
    c:()=>{kind='changes';show();},b:()=>{kind='before';show();},a:()=>{kind='after';show();}};
  if(keys[e.key]){keys[e.key]();e.preventDefault();}
});
at=bad();show();
"""


def _conditions(report: Json) -> str:
    """Describes how the program was executed."""
    names = ("target", "inputs", "seed", "orders", "numerics", "ordering")
    how = [f"{name} {report[name]}" for name in names if report.get(name) is not None]
    changed = report.get("assumptions") or {}
    how += [f"assumption {name}={answer}" for name, answer in changed.items()]
    if report.get("max_instructions") is not None:
        how.append(f"at most {report['max_instructions']} instructions")
    return ", ".join(how)


_HEAD = Html(
    """<p><input id="find" type="search" placeholder="search passes and IR" aria-label="search"></p>
"""
)
_COLUMNS = Html("<tr><th>#<th>pass<th>ops<th>s<th>verdict</tr>\n")
_KEYS = Html(
    """<p id="nothing" hidden>no pass matches</p>
<p><kbd>j</kbd> <kbd>k</kbd> next, previous pass; <kbd>c</kbd> changes, <kbd>b</kbd>
before, <kbd>a</kbd> after; <kbd>f</kbd> first failure; <kbd>/</kbd> search</p>"""
)


def _unchanged(steps: Sequence[Json]) -> Html:
    """The passes that have no row."""
    names = ", ".join(f"{step['index']} {step['name']}" for step in steps)
    return tag("p", f"changed nothing: {names}") if steps else text("")


def report_html(report: Json, states: Mapping[int, State], timeline: str = "") -> str:
    """Returns the HTML page, which can be opened with only a browser.

    states:   number of a step -> the program after it, as `read_tree` returns them
    timeline: SVG of the launches' timeline
    """
    lines = report.get("passes") or []
    if not lines:
        raise InputError("expected a report with passes, got one without")
    numbers = [line["index"] for line in lines]
    found = [states.get(number) for number in (numbers[0] - 1, *numbers)]  # of the line before, too
    texts = [None if state is None else state.text for state in found]
    steps = list(zip(lines, texts, found[1:], strict=False))
    verdict, program = str(report.get("verdict")), str(report.get("program") or "program")
    below = [_roofline(report.get("roofline")), _code(report.get("code"))]
    if timeline:
        below += [tag("h2", "Timeline, modelled and never measured"), Html(timeline)]
    kinds = ("changes", "before", "after")
    nav = tag(
        "nav",
        tag("h1", program, ": ", _verdict(verdict)),
        tag("p", _conditions(report)),
        _bad(report["error"]) if report.get("error") else "",
        _HEAD,
        tag("table", _COLUMNS, join((_row(line) for line in lines), "\n")),
        _unchanged(report.get("unchanged") or []),
        _KEYS,
    )
    main = tag(
        "main",
        tag("p", join((tag("button", kind, data_kind=kind) for kind in kinds), " ")),
        join((_section(*step) for step in steps), "\n"),
        tag("aside", *below),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", f"{program}: {verdict}"),
        tag("style", Html(_STYLE)),
    )
    body = tag("body", "\n", nav, "\n", main, "\n", tag("script", Html(_SCRIPT)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
