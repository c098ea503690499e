"""Where the time of a network goes: its launches measured, modelled and at their roof.

    python bench/where_time_goes.py resnet50_b32 --json where.json     # on an H100 or H200
    python bench/where_time_goes.py resnet50_b1 --modelled sm_100a     # without a GPU
    python bench/where_time_goes.py --page where.json                  # a results page's section

Needs torchvision and transformers; the networks are those of networks.py. A launch's time is the
median of its kernel's times in CALLS plain calls, from PyTorch's profiler, of a program whose
launches start one after the other; the time in a graph is that of the default. Modelled times are
from `Compiled.modelled`; the roof is the longer of HBM's time for the launch's buffers and the
tensor pipe's for its products, from the model's constants. Launches that run once, because they
read only weights, have no row.

--modelled only models a target. The program is compiled on the CPU; launches run one after the
other, with the time model's gap between them. --trace writes the timeline for Perfetto.

Exit status: 0, 1 for an error, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from launching import milliseconds
from networks import NETWORKS

APART = "layers{programmatic=false}"
"""Launches that do not start early, whose times would overlap."""
CALLS = 20
BAR = 40
"""Characters of the timeline."""
Row = dict[str, Any]


def measure(name: str, keep: Path | None) -> dict[str, Any]:
    """Measures a network, then models it; writes what was measured before that to `keep`."""
    import tcir.torch
    from tcir.torch.graphs import Graphs

    torch.manual_seed(0)
    with torch.device("cuda"):
        model, x = NETWORKS[name]()
    model, x = model.half().eval(), x.half()
    options = {"verbose": False, "freeze": True}
    default = tcir.torch.compile(model, (x,), **options)
    compiled = tcir.torch.compile(model, (x,), pipeline=APART, **options)
    compiled(x)
    launches = [each for kernel in compiled.kernels for each in kernel.launches.launches]
    measured = profiled(lambda: compiled(x), [each.name for each in launches])
    default._graphs = Graphs(True)  # as compile(…, graph=True) does
    graph_us = 1000 * milliseconds(lambda: default(x))
    found = {"name": name, "device": torch.cuda.get_device_name(), "graph_us": graph_us}
    if keep:
        names = [each.name for each in launches]
        keep.write_text(json.dumps({**found, "measured": list(zip(names, measured, strict=True))}))
    started = time.time()
    modelled = compiled.modelled()
    rows = [
        {**row_of(each), "us": us}
        for each, us in zip(modelled.launches, measured, strict=True)
        if us is not None
    ]
    return {**found, "modelling_s": time.time() - started, "rows": rows}


def model(name: str, target: str, trace: Path | None) -> dict[str, Any]:
    """Models a network on a target; writes its timeline to `trace`."""
    import tcir.torch

    torch.manual_seed(0)
    module, x = NETWORKS[name]()
    compiled = tcir.torch.compile(module.half().eval(), (x.half(),), target=target, verbose=False)
    modelled = compiled.modelled()
    if trace:
        trace.write_bytes(modelled.trace())
    started, rows = 0.0, []
    for each in modelled.launches:
        started += each.time.launch_us if rows else 0.0
        rows.append({**row_of(each), "start_us": started})
        started += each.time.microseconds
    return {"name": name, "target": target, "total_us": modelled.microseconds, "rows": rows}


def row_of(each: Any) -> Row:
    """What is modelled of a launch."""
    return {
        "launch": each.row.name,
        "computes": ", ".join((*each.row.work.computes, *each.row.work.fused)),
        "ctas": each.ctas,
        "mb": each.bytes / 1e6,
        "modelled_us": each.time.microseconds,
        "limit": each.time.bound,
        "roof_us": each.roofline.microseconds,
        "roof": each.roofline.bound,
    }


def profiled(call: Any, names: list[str]) -> list[float | None]:
    """Microseconds of each launch; None for those that calls do not repeat."""
    from torch.profiler import ProfilerActivity, profile

    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
    known = set(names)
    events = [
        (each.time_range.start, each.name, each.time_range.elapsed_us())
        for each in found.events()
        if each.name in known
    ]
    each_call, rest = divmod(len(events), CALLS)
    if rest:
        raise RuntimeError(f"{len(events)} kernels in {CALLS} calls: not the same in each")
    order = [name for _, name, _ in sorted(events)]
    times = [us for _, _, us in sorted(events)]
    taken: list[float | None] = []
    place = 0
    for name in names:
        if place < each_call and order[place] == name:
            taken.append(statistics.median(times[place::each_call]))
            place += 1
        else:
            taken.append(None)
    if place < each_call:
        raise RuntimeError(f"{order[place]}: launched, but not in the order of the program")
    return taken


def modelled_page(found: dict[str, Any]) -> Iterable[str]:
    """The section of a network that was only modelled, in Markdown."""
    rows, total = found["rows"], found["total_us"]
    limits = Counter[str]()
    for each in rows:
        limits[each["limit"]] += each["modelled_us"]
    kernels, roof = (sum(each[key] for each in rows) for key in ("modelled_us", "roof_us"))
    yield (
        f"`{found['name']}` on {found['target']}, modelled: the {len(rows)} launches of a call "
        f"take {total:.0f} us. Their kernels alone take {kernels:.0f} us together, and the roofs "
        f"of the launches add up to {roof:.0f} us. Time of the kernels by what limits them: "
        + ", ".join(f"{limit} {us:.0f} us" for limit, us in limits.most_common())
        + "."
    )
    yield ""
    yield "| launch | computes | CTAs | MB | us | limited by | roof, us | from, us | timeline |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for each in rows:
        start, end = (
            round(us / total * BAR)
            for us in (each["start_us"], each["start_us"] + each["modelled_us"])
        )
        bar = "·" * start + "█" * max(1, end - start)
        yield (
            f"| {each['launch']} | {shortened(each['computes'])} | {each['ctas']} "
            f"| {each['mb']:.2f} | {each['modelled_us']:.2f} | {each['limit']} "
            f"| {each['roof_us']:.2f}, {each['roof']} | {each['start_us']:.1f} | `{bar}` |"
        )


def shortened(words: str) -> str:
    """Operations of a launch, in a column's width."""
    return words if len(words) < 48 else words[:47] + "…"


def page(found: dict[str, Any]) -> Iterable[str]:
    """The section of a results page, in Markdown."""
    if "target" in found:
        yield from modelled_page(found)
        return
    rows = found["rows"]
    kernels, modelled, roof = (
        sum(each[key] for each in rows) for key in ("us", "modelled_us", "roof_us")
    )
    yield (
        f"`{found['name']}` on an {found['device'].removeprefix('NVIDIA ')}: the {len(rows)} "
        f"launches of a call take {found['graph_us']:.0f} us in a CUDA graph. Their kernels alone "
        f"take {kernels:.0f} us together; the time model predicts {modelled:.0f} us, and the roofs "
        f"of the launches add up to {roof:.0f} us."
    )
    yield ""
    yield "| launch | computes | CTAs | MB | us | modelled | limited by | roof, us | of the roof |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for each in rows:
        yield (
            f"| {each['launch']} | {shortened(each['computes'])} | {each['ctas']} "
            f"| {each['mb']:.1f} | {each['us']:.1f} "
            f"| {each['modelled_us']:.1f} | {each['limit']} "
            f"| {each['roof_us']:.1f}, {each['roof']} | {each['roof_us'] / each['us']:.2f} |"
        )


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=[*NETWORKS], metavar="NETWORK")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--modelled", metavar="TARGET", help="model this target; needs no GPU")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write the modelled timeline")
    parser.add_argument("--page", type=Path, metavar="FILE", help="print the section of this file")
    options = parser.parse_args()
    if options.page:
        print("\n".join(page(json.loads(options.page.read_text()))))
        return 0
    if not options.name:
        parser.error("expected a network, or --page")
    if not options.modelled and not torch.cuda.is_available():
        print("where_time_goes: no GPU that PyTorch sees", file=sys.stderr)
        return 2
    with torch.no_grad():
        if options.modelled:
            found = model(options.name, options.modelled, options.trace)
        else:
            found = measure(options.name, options.json)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    print("\n".join(page(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
