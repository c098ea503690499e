"""Inputs that mean harm, drawn from a seed: a command, its files, and what is around it."""

from __future__ import annotations

import io
import json
import os
import random
import re
import resource
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from commands import CLOSED, UNREAD, Setting, run

ROOT = Path(__file__).parents[1]
Draw = random.Random
OLD = b"what was there before"


@dataclass
class Hostile:
    """A command in a folder of these files. outputs: those it may write, beside what it prints."""

    kind: str
    words: list[str]
    files: dict[str, bytes]
    setting: Setting = field(default_factory=lambda: Setting(seconds=100))
    outputs: tuple[str, ...] = ()

    def __str__(self) -> str:
        around = {k: v for k, v in vars(self.setting).items() if v != getattr(Setting(), k)}
        return f"{self.kind}: {self.words} {around} {sorted(self.files)}"


# --- sound inputs ------------------------------------------------------------------------------

FUNCTION = b"""func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant 3.0 : f32
  %s = tensor.splat %c : tensor<4xf32>
  %r = arith.addf %a, %s : tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
MATMUL = b"""func.func @mm(%a: tensor<128x64xf16>, %b: tensor<64x64xf16>) -> tensor<128x64xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x64xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>
  %o = linalg.matmul ins(%a, %b : tensor<128x64xf16>, tensor<64x64xf16>)
                     outs(%f : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %o : tensor<128x64xf32>
}
"""
LOWERED = {
    "tensors.mlir": ["--raise-to-tc"],
    "tiles.mlir": ["--raise-to-tc", "--tile-gemm"],
    "planned.mlir": ["--raise-to-tc", "--tile-gemm", "--multi-buffer", "--place-barriers",
                     "--plan-memory"],
    "conv.mlir": ["--raise-to-tc", "--tile-conv-shift-reuse"],
    "threads.mlir": ["--pipeline=gemm"],
}  # fmt: skip
"""Programs of every level, made of MATMUL and an example of a convolution."""


@cache
def sound() -> Mapping[str, bytes]:
    """The files that are changed."""
    files = {"f.mlir": FUNCTION, "matmul.mlir": MATMUL}
    files["saxpy.ptx"] = (ROOT / "examples/saxpy.ptx").read_bytes()
    files["mma.ptx"] = (ROOT / "examples/mma_m16n8k16.ptx").read_bytes()
    for name, array in (("x", np.arange(1, 1001, dtype="f4")), ("a", np.ones((16, 16), "f2"))):
        contents = io.BytesIO()
        np.save(contents, array)
        files[f"{name}.npy"] = contents.getvalue()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "matmul.mlir").write_bytes(MATMUL)
        conv = (ROOT / "examples/resnet50_conv2_3x3.mlir").read_bytes()
        (folder / "convolution.mlir").write_bytes(conv)
        for name, passes in LOWERED.items():
            source = "convolution.mlir" if name == "conv.mlir" else "matmul.mlir"
            ended = run(["tc-opt", source, *passes, "-o", name], folder)
            assert ended.status == 0, ended
            files[name] = (folder / name).read_bytes()
        words = ["tc-opt", "matmul.mlir", "--raise-to-tc", "--validate-each=report.json"]
        assert run([*words, "-o", "/dev/null"], folder).status == 0
        files["report.json"] = (folder / "report.json").read_bytes()
        words = ["tc-opt", "matmul.mlir", "--pipeline=gemm", "--emit=ptx", "-o", "k.ptx"]
        assert run(words, folder).status == 0
        for name in ("k.ptx", "k.json"):
            files[name] = (folder / name).read_bytes()
    return files


# --- changed bytes -----------------------------------------------------------------------------

NUMBERS = [b"-1", b"0", b"1", b"3", b"2147483648", b"9223372036854775807",
           b"18446744073709551616", b"1" + b"0" * 40, b"1.5", b"0x7fffffff", b"?",
           b"nan"]  # fmt: skip
TYPES = [b"f16", b"f32", b"bf16", b"f64", b"i1", b"i32", b"index", b"f8E4M3FN", b"tensor",
         b"memref", b"vector", b"none", b"u32", b"b64", b"!tc.smem", b"!llvm.ptr"]  # fmt: skip


def _cut(text: bytes, draw: Draw) -> bytes:
    return text[: draw.randrange(len(text) + 1)]


def _flip(text: bytes, draw: Draw) -> bytes:
    changed = bytearray(text)
    for _ in range(draw.choice([1, 1, 2, 20])):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _remove(text: bytes, draw: Draw) -> bytes:
    at = draw.randrange(len(text))
    return text[:at] + text[at + draw.choice([1, 2, 10, 200]) :]


def _lines(text: bytes, draw: Draw) -> bytes:
    lines = text.split(b"\n")
    i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(4):
        case 0:
            del lines[i]
        case 1:
            lines.insert(j, lines[i])
        case 2:
            lines[i], lines[j] = lines[j], lines[i]
        case _:
            lines = [line for k, line in enumerate(lines) if not min(i, j) <= k <= max(i, j)]
    return b"\n".join(lines)


def _replaced(pattern: bytes, new: Callable[[bytes, Draw], bytes]) -> Callable[..., bytes]:
    def change(text: bytes, draw: Draw) -> bytes:
        found = list(re.finditer(pattern, text))
        if not found:
            return text
        for each in sorted(
            draw.sample(found, min(len(found), draw.choice([1, 1, 2, 5]))), key=lambda m: -m.start()
        ):
            text = text[: each.start()] + new(text, draw) + text[each.end() :]
        return text

    return change


def _a_word(text: bytes, draw: Draw) -> bytes:
    return draw.choice(re.findall(rb"[%@.\w]+", text) or [b"x"])


def _insert(text: bytes, draw: Draw) -> bytes:
    at = draw.randrange(len(text) + 1)
    what = draw.choice([
        b"\xff\xfe", b"\0", b"\xef\xbb\xbf", "\u202e\u00fc\U0001f600".encode(), b"\r", b'"', b"{",
        b"}", b"(" * 3000, b"x" * 100000, b"/*", b"// -----\n", b"%", b"\\", b"[" * 500,
        b"module {" * 300,
    ])  # fmt: skip
    return text[:at] + what + text[at:]


def _whole(text: bytes, draw: Draw) -> bytes:
    return draw.choice([b"", b"\n", b"\0" * 100, draw.randbytes(300), text * 2, text[::-1], b"\xff",
                        text.replace(b"\n", b"\r\n"),
                        text.decode("latin-1").encode("utf-16")])  # fmt: skip


CHANGES: list[Callable[[bytes, Draw], bytes]] = [
    _cut, _flip, _remove, _lines, _lines, _insert,
    _replaced(rb"\d+", lambda text, draw: draw.choice(NUMBERS)),
    _replaced(rb"\d+", lambda text, draw: draw.choice(NUMBERS)),
    _replaced(rb"f16|f32|i32|index|tensor|memref|b32|u64|u32|pred", lambda t, d: d.choice(TYPES)),
    _replaced(rb"[%@.\w]+", _a_word),
    _replaced(rb"[%@.\w]+", _a_word),
]  # fmt: skip


def changed(text: bytes, draw: Draw) -> bytes:
    """`text` with one to three changes."""
    if draw.random() < 0.05:
        return _whole(text, draw)
    for _ in range(draw.choice([1, 1, 2, 3])):
        text = draw.choice(CHANGES)(text, draw) or b" "
    return text


# --- words of a command ------------------------------------------------------------------------

LONG = "n" * 300
VALUES = ["", "-1", "0", "1", "2", "99999999999999999999", "1e9", "nan", "0x10", "1,2,3,4,5",
          "1,1", "a b", "=", "{", "}", "{=}", "{n-tile=-1}", "-", "--", "/", "/proc/no/such/file",
          "/dev/null", "\u00fc\u202e", os.fsdecode(b"\xff"), "%s%n", "a\nb", LONG, "true",
          "x.npy", "f.mlir", "all", "\u0663"]  # fmt: skip
PLACES = ["/proc/no/such/x", "/", "/dev/full", "/dev/null", "/proc/x", "", ".", LONG, "a\nb",
          "\u00fc", os.fsdecode(b"\xff")]  # fmt: skip


def flags(names: Sequence[str], draw: Draw) -> list[str]:
    """One to four flags, some twice, with and without values."""
    words: list[str] = []
    for _ in range(draw.choice([1, 1, 2, 3, 4])):
        name = draw.choice(names)
        name = (
            name
            if draw.random() < 0.9
            else draw.choice([name[:-1], f"{name}x", name.upper(), "--"])
        )
        match draw.randrange(4):
            case 0:
                words.append(name)
            case 1:
                words += [name, draw.choice(VALUES)]
            case _:
                words.append(f"{name}={draw.choice(VALUES)}")
        if draw.random() < 0.1:
            words.append(words[-1])
    return words


PASSES = ["--canonicalize", "--cse", "--raise-to-tc", "--tile-gemm", "--multi-buffer",
          "--place-barriers", "--plan-memory", "--assign-roles", "--convert-tc-to-nvvm",
          "--split-layers", "--fold-layouts", "--fuse-epilogue", "--raise-block-scaled",
          "--tile-conv-shift-reuse", "--symbol-dce", "--convert-to-simt", "--emit=pretty",
          "--emit=launches", "--emit=llvm", "--allow-unregistered-dialect", "--split-input-file",
          "--verify-diagnostics", "--mlir-print-op-generic", "--mlir-timing"]  # fmt: skip
OPT_FLAGS = ["-o", "--emit", "--target", "--pipeline", "--pass-pipeline", "--run-reproducer",
             "--load-pass-plugin", "--validate-each", "--seed", "--inputs", "--orders",
             "--numerics", "--max-instructions", "--ordering", "--assume", "--split-input-file",
             "--verify-each", "--mlir-print-ir-before", "--mlir-print-ir-after",
             "--mlir-print-ir-tree-dir", "--mlir-pass-pipeline-crash-reproducer", "--jobs",
             "--budget", "--entry", "--trace", "--show-dialects", *PASSES]  # fmt: skip
RUN_FLAGS = ["--entry", "--grid", "--block", "--cluster", "--ctas-per-sm", "--programmatic",
             "--dynamic-smem", "--arg", "--save", "--out", "--hazards", "--seed", "--no-lockstep",
             "--numerics", "--ordering", "--assume", "--max-findings", "--json", "--break-at",
             "--dump", "--interactive", "--counters", "--target", "--pipeline", "--input-seed",
             "--list-assumptions", "--jobs", "--trace", "--emit", "--bundle",
             "--selftest"]  # fmt: skip
SAXPY = ["--grid", "8", "--block", "128", "--arg", "x.npy", "--arg", "zeros=f32,1000", "--arg",
         "f32=1.5", "--arg", "u32=1000"]  # fmt: skip
LITTLE = ["--max-instructions", "20000"]
ARGUMENTS = ["u32=", "u32=ü", "f32=1e60", "f16=70000",
          "zeros=f32", "zeros=f32,-1", "zeros=f32,9" + "9" * 30, "zeros=q7,1", "empty=f32,0",
          "bytes=0", "bytes=zz", "parts=[", "parts=[1]", "map={}", "map=[]",
          'map={"array":0,"dtype":"f32","dims":[1000],"strides_bytes":[],"box":[9999]}',
          'map={"array":"x.npy","dtype":"q","dims":[],"strides_bytes":[],"box":[]}',
          'map={"array":{},"dtype":1,"dims":[1e9],"strides_bytes":null,"box":"x"}', "/", "", "=",
          "no.npy", os.fsdecode(b"\xff"), "parts=" + "[" * 2000]  # fmt: skip
VIEWS = {
    "layout": ["(4,8):(8,1)"], "fragment": ["mma.m16n8k16"], "mma": ["mma.m16n8k16"],
    "copy": ["ldmatrix.x4", "mma.m16n8k16"], "smem": [], "scale-factors": [], "ld": ["16x256b.x1"],
    "tmem": ["planned.mlir"], "conv": ["conv.mlir"], "report": ["report.json"],
    "accesses": ["threads.mlir"], "timeline": ["matmul.mlir", "--pipeline=gemm"],
}  # fmt: skip
VIZ_FLAGS = ["-o", "--format", "--colour", "--operand", "--atoms", "--tile", "--values", "--rows",
             "--columns", "--element-bytes", "--swizzle", "--unit", "--half-split", "--cta",
             "--filter-row", "--tree", "--input", "--warp", "--pipeline", "--target", "--entry",
             "--cycles"]  # fmt: skip


BENCH = {
    "compare": [],
    "sweep": ["--pipeline=gemm", "--over", "n-tile=32,64"],
    "validate": ["saxpy.ptx", "--pipeline=gemm"],
}
BENCH_FLAGS = ["--entry", "--target", "--validate", "--results", "--json", "--csv", "--plot",
               "--jobs", "--scheduler", "--over", "--pipeline", "--inputs", "--seed",
               "--orders"]  # fmt: skip
RANGES = ["", "n-tile", "n-tile=", "n-tile=1..", "n-tile=..2", "n-tile=1..0", "n-tile=64..32",
          "n-tile=1..9999999999", "n-tile=1..9:0", "n-tile=a..b", "n-tile=64 n-tile=64",
          "no-such=1", "stages=2..3 n-tile=64", "stages=-1", "=", "n-tile=64,,32",
          "\u00fc=1"]  # fmt: skip


def _opt_file(draw: Draw) -> Hostile:
    name = draw.choice(["f.mlir", "matmul.mlir", *LOWERED])
    words = draw.sample(PASSES, draw.randrange(4))
    if name in ("f.mlir", "matmul.mlir") and draw.random() < 0.3:
        words = [w for w in words if w in PASSES[:3]] + ["--validate-each=report.json"]
        words += ["--max-instructions=20000"]
    text = changed(sound()[name], draw)
    words = ["tc-opt", name, *words, "-o", "out.mlir"]
    return Hostile("file", words, {name: text}, outputs=("out.mlir", "report.json"))


def _opt_flags(draw: Draw) -> Hostile:
    words = ["tc-opt", draw.choice(["f.mlir", "matmul.mlir", "no.mlir", "/", "-"])]
    words += flags(OPT_FLAGS, draw)
    return Hostile("flags", words, dict(sound()))


def _run_file(draw: Draw) -> Hostile:
    name = draw.choice(["saxpy.ptx", "saxpy.ptx", "mma.ptx", "k.ptx", "k.json", "x.npy"])
    files = {k: sound()[k] for k in ("saxpy.ptx", "x.npy", "k.ptx", "k.json", "a.npy", "mma.ptx")}
    files[name] = changed(sound()[name], draw)
    if name in ("saxpy.ptx", "x.npy"):
        words = ["tc-run", "saxpy.ptx", *SAXPY]
    elif name == "mma.ptx":
        words = ["tc-run", name, "--grid", "1", "--block", "32", "--arg", "a.npy", "--arg", "a.npy",
                 "--arg", "zeros=f32,16x8"]  # fmt: skip
    else:
        words = ["tc-run", "k.ptx", "--arg", "zeros=f16,128x64", "--arg", "zeros=f16,64x64"]
    words += [*LITTLE, "--json", "out.json"] + (["--save", "1=out.npy"] if name[0] in "sx" else [])
    return Hostile("file", words, files, outputs=("out.json", "out.npy"))


def _run_flags(draw: Draw) -> Hostile:
    words = ["tc-run", draw.choice(["saxpy.ptx", "mma.ptx", "k.ptx", "f.mlir", "no.ptx", "/", "-"])]
    words += [*(SAXPY if draw.random() < 0.6 else []), *flags(RUN_FLAGS, draw), *LITTLE]
    for _ in range(draw.choice([0, 0, 1, 3])):
        words += ["--arg", draw.choice(ARGUMENTS)]
    return Hostile("flags", words, dict(sound()))


def _viz_file(draw: Draw) -> Hostile:
    view = draw.choice(["tmem", "conv", "report", "fragment", "layout"])
    words, files = ["tc-viz", view, *VIEWS[view]], {}
    if view == "layout":
        words[2] = changed(b"((4,2),(8,2)):((8,1),(16,64))", draw).decode(errors="surrogateescape")
        words[2] = words[2].replace("\0", "")[:50000]
        words.insert(2, "--")
    elif view == "fragment":
        files["a.npy"] = changed(sound()["a.npy"], draw)
        words += ["--values", "a.npy"]
    else:
        files[words[2]] = changed(sound()[words[2]], draw)
    end = draw.choice(["out.svg", "out.html", "out.txt"])
    words[2:2] = ["-o", end]
    return Hostile("file", words, files, outputs=(end,))


def _viz_flags(draw: Draw) -> Hostile:
    view = draw.choice(list(VIEWS))
    words = ["tc-viz", view, *VIEWS[view], *flags(VIZ_FLAGS, draw)]
    if draw.random() < 0.2:
        words[1] = draw.choice(VALUES)
    return Hostile("flags", words, dict(sound()))


def _bench_file(draw: Draw) -> Hostile:
    name = draw.choice(list(BENCH))
    words = ["tc-bench", name, "matmul.mlir", *BENCH[name], "--jobs=1", "--json=out.json"]
    words += ["--csv=out.csv", "--results=kept.jsonl"] if draw.random() < 0.5 else []
    files = {"matmul.mlir": sound()["matmul.mlir"]}
    if draw.random() < 0.3 and len(words) > 6:
        files["kept.jsonl"] = changed(b'{"key": "x", "row": {}}\n' * 3, draw)
    else:
        files["matmul.mlir"] = changed(sound()["matmul.mlir"], draw)
    return Hostile("file", words, files, outputs=("out.json",))


def _bench_flags(draw: Draw) -> Hostile:
    name = draw.choice([*BENCH, *BENCH, draw.choice(VALUES)])
    words = ["tc-bench", name, "matmul.mlir", *BENCH.get(name, [])]
    words += flags(BENCH_FLAGS, draw)
    if name == "sweep" and draw.random() < 0.5:
        words += ["--over", draw.choice(RANGES)]
    return Hostile("flags", words, dict(sound()))


def _simple(draw: Draw) -> Hostile:
    """A command that is right, for what is around it."""
    commands = [
        (["tc-opt", "matmul.mlir", "--raise-to-tc", "--tile-gemm", "-o", "out.mlir"],
         ("out.mlir",)),
        (["tc-opt", "matmul.mlir", "--pipeline=gemm"], ()),
        (["tc-opt", "matmul.mlir", "--raise-to-tc", "--validate-each=out.json"], ("out.json",)),
        (["tc-opt", "matmul.mlir", "--pipeline=gemm", "--emit=ptx", "-o", "out.ptx"],
         ("out.ptx", "out.json")),
        (["tc-opt", "-"], ()), (["tc-opt", "--list-passes"], ()), (["tc-opt", "--nothing"], ()),
        (["tc-run", "saxpy.ptx", *SAXPY, "--save", "1=out.npy", "--json", "out.json"],
         ("out.npy", "out.json")),
        (["tc-run", "saxpy.ptx", *SAXPY, "--counters"], ()), (["tc-run", "-", *SAXPY], ()),
        (["tc-run", "saxpy.ptx"], ()), (["tc-run", "--list-assumptions"], ()),
        (["tc-viz", "conv", "conv.mlir", "-o", "out.svg"], ("out.svg",)),
        (["tc-viz", "layout", "(64,64):(64,1)"], ()), (["tc-viz", "smem"], ()),
        (["tc-viz", "report", "report.json", "-o", "out.html"], ("out.html",)),
        (["tc-viz", "tmem", "-"], ()),
        (["tc-viz", "timeline", "matmul.mlir", "--pipeline=gemm", "-o", "out.html"], ("out.html",)),
        (["tc-viz", "accesses", "threads.mlir"], ()),
        (["tc-run", "saxpy.ptx", *SAXPY, "--trace", "out.trace", "--jobs", "2"], ()),
        (["tc-opt", "matmul.mlir", "--pipeline=gemm", "--validate-each=out.json", "--jobs=2"],
         ("out.json",)),
        (["tc-bench", "compare", "matmul.mlir", "--jobs=2", "--json=out.json"], ("out.json",)),
        (["tc-bench", "sweep", "matmul.mlir", *BENCH["sweep"], "--jobs=2", "--plot=out.svg"],
         ("out.svg",)),
        (["tc-bench", "validate", "matmul.mlir", *BENCH["validate"], "--json=out.json"],
         ("out.json",)),
    ]  # fmt: skip
    words, outputs = draw.choice(commands)
    return Hostile("", list(words), dict(sound()), outputs=outputs)


def _streams(draw: Draw) -> Hostile:
    case = _simple(draw)
    stream = draw.choice([
        {"stdin": CLOSED}, {"stdout": CLOSED}, {"stdout": "/dev/full"}, {"stdout": UNREAD},
        {"stderr": CLOSED}, {"stderr": "/dev/full"}, {"stderr": UNREAD},
        {"stdout": CLOSED, "stderr": CLOSED}, {"stdin": CLOSED, "stdout": CLOSED, "stderr": CLOSED},
        {"stdout": "/dev/full", "stderr": "/dev/full"},
    ])  # fmt: skip
    case.kind, case.setting = "streams", Setting(**stream, seconds=100)
    return case


def _signals(draw: Draw) -> Hostile:
    case = _simple(draw)
    number = draw.choice([signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP])
    case.kind, case.setting = "signals", Setting(send=(number, draw.random() ** 2), seconds=100)
    return case


def _limits(draw: Draw) -> Hostile:
    case = _simple(draw)
    setting = draw.choice(
        [
            Setting(headroom=draw.choice([0, 1, 4, 16, 64, 256]) << 20, seconds=100),
            Setting(headroom=draw.choice([0, 1, 4, 16, 64, 256]) << 20, seconds=100),
            Setting(limits={resource.RLIMIT_NOFILE: draw.randrange(3, 20)}, seconds=100),
            Setting(limits={resource.RLIMIT_FSIZE: draw.choice([0, 1, 100, 5000])}, seconds=100),
        ]
    )
    case.kind, case.setting = "limits", setting
    return case


def _places(draw: Draw) -> Hostile:
    place = draw.choice(PLACES)
    words = draw.choice([
        ["tc-opt", "f.mlir", "-o", place], ["tc-opt", "f.mlir", f"--validate-each={place}"],
        ["tc-opt", "f.mlir", "--cse", f"--mlir-print-ir-tree-dir={place}"],
        ["tc-opt", "f.mlir", "--tile-gemm", f"--mlir-pass-pipeline-crash-reproducer={place}"],
        ["tc-opt", place], ["tc-opt", "f.mlir", f"--load-pass-plugin={place}"],
        ["tc-run", "saxpy.ptx", *SAXPY, "--json", place],
        ["tc-run", "saxpy.ptx", *SAXPY, "--save", f"1={place}"],
        ["tc-run", "saxpy.ptx", *SAXPY, "--save", f"1={place}.npy"], ["tc-run", place, *SAXPY],
        ["tc-viz", "smem", "-o", place], ["tc-viz", "smem", "-o", f"{place}.svg"],
        ["tc-viz", "report", place], ["tc-viz", "report", "report.json", "--tree", place],
        ["tc-run", "saxpy.ptx", *SAXPY, "--trace", place],
        ["tc-viz", "timeline", "matmul.mlir", "--pipeline=gemm", "-o", place],
        ["tc-bench", "compare", place], ["tc-bench", "compare", "matmul.mlir", "--json", place],
        ["tc-bench", "compare", "matmul.mlir", "--csv", place],
        ["tc-bench", "compare", "matmul.mlir", "--results", place],
        ["tc-bench", "sweep", "matmul.mlir", *BENCH["sweep"], "--plot", place],
        ["tc-bench", "validate", "saxpy.ptx", place, "--pipeline=gemm", "--csv=out.csv"],
        ["tc-viz", "tmem", place], ["tc-viz", "fragment", "mma.m16n8k16", "--values", place],
    ])  # fmt: skip
    return Hostile("places", words, dict(sound()))


KINDS = [(_opt_file, 10), (_opt_flags, 6), (_run_file, 10), (_run_flags, 8), (_viz_file, 6),
         (_viz_flags, 6), (_bench_file, 3), (_bench_flags, 3), (_streams, 4),
         (_signals, 4), (_limits, 4), (_places, 5)]  # fmt: skip


def hostile(seed: int) -> Hostile:
    """The input of a seed."""
    draw = random.Random(seed)
    (kind,) = draw.choices([k for k, _ in KINDS], [n for _, n in KINDS])
    return kind(draw)


# --- tc-reduce and the page of a report, with seeds of their own, so that the others stay

RACING = b""".version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<9>; .reg .b64 %rd<4>; .shared .align 4 .b32 tile[64];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.u32 %r4, %r3, %r2;
  st.shared.u32 [%r4], %r1;
  xor.b32 %r5, %r2, 128;
  add.u32 %r6, %r3, %r5;
  ld.shared.u32 %r7, [%r6];
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd1, %rd2, %rd3;
  st.global.u32 [%rd1], %r7;
  ret;
}
"""
RACE = ["--grid=1", "--block=64", "--arg=x.npy"]
REDUCE_FLAGS = ["-o", "--test", "--validate-each", "--emit", "--pipeline", "--grid", "--block",
                "--arg", "--load-pass-plugin", "--report", "--help", "--version"]  # fmt: skip


def _reduced() -> dict[str, bytes]:
    return {**sound(), "race.ptx": RACING}


def _reduce_file(draw: Draw) -> Hostile:
    files = _reduced()
    if draw.random() < 0.7:
        files["race.ptx"] = changed(RACING, draw)
        words = ["tc-reduce", "-o", "out.ptx", "race.ptx", *RACE]
        return Hostile("file", words, files, outputs=("out.ptx",))
    files["f.mlir"] = changed(files["f.mlir"], draw)
    words = ["tc-reduce", "-o", "out.mlir", "f.mlir", "--raise-to-tc", "--tile-gemm"]
    return Hostile("file", words, files, outputs=("out.mlir",))


def _reduce_flags(draw: Draw) -> Hostile:
    first = draw.choice([["race.ptx", *RACE], ["f.mlir", "--cse"], ["f.mlir"], [], ["race.ptx"]])
    return Hostile("flags", ["tc-reduce", *first, *flags(REDUCE_FLAGS, draw)], _reduced())


def _reduce_places(draw: Draw) -> Hostile:
    place = draw.choice(PLACES)
    words = draw.choice(
        [
            ["tc-reduce", "-o", place, "race.ptx", *RACE],
            ["tc-reduce", place, *RACE],
            ["tc-reduce", f"--test={place}", "f.mlir"],
            ["tc-reduce", "f.mlir", f"--load-pass-plugin={place}"],
        ]
    )
    return Hostile("places", words, _reduced())


def _around(draw: Draw, words: list[str], outputs: tuple[str, ...]) -> Hostile:
    """A command that is right, with streams, signals and limits that are not."""
    case = draw.choice([_streams, _signals, _limits])(draw)
    case.words, case.outputs, case.files = words, outputs, _reduced()
    return case


def _reduce_around(draw: Draw) -> Hostile:
    return _around(draw, ["tc-reduce", "-o", "out.ptx", "race.ptx", *RACE], ("out.ptx",))


def hostile_reduce(seed: int) -> Hostile:
    """The input of a seed for tc-reduce."""
    draw = random.Random(seed)
    kinds = [_reduce_file, _reduce_flags, _reduce_places, _reduce_around]
    (kind,) = draw.choices(kinds, [10, 6, 3, 2])
    return kind(draw)


PAGE = ["tc-opt", "matmul.mlir", "--pipeline=gemm", "--report=out.html", "-o", "out.mlir"]


def _page_of_a_run(draw: Draw) -> Hostile:
    """tc-opt --report."""
    files, words = _reduced(), list(PAGE)
    for _ in range(draw.choice([1, 1, 2])):
        match draw.randrange(3):
            case 0:
                files["matmul.mlir"] = changed(files["matmul.mlir"], draw)
            case 1:
                place = draw.choice([*PLACES, f"{draw.choice(PLACES)}.html"])
                words[3] = f"--report={place}"
            case _:
                words += draw.choice(
                    [["--emit=ptx"], ["--split-input-file"], flags(OPT_FLAGS, draw)]
                )
    return Hostile("page", words, files, outputs=("out.html",))


def _page_of_a_report(draw: Draw) -> Hostile:
    """tc-viz report, of a report, its program and the IR of its steps."""
    files, words = _reduced(), ["tc-viz", "report", "report.json", "-o", "out.html"]
    name = draw.choice(["report.json", "report.json", "report.json", "matmul.mlir"])
    files[name] = changed(files[name], draw)
    words += draw.choice([[], [], ["--input", "matmul.mlir"], ["--tree", "."],
                          ["--input", draw.choice(PLACES)], ["--tree", draw.choice(PLACES)],
                          flags(VIZ_FLAGS, draw)])  # fmt: skip
    return Hostile("page", words, files, outputs=("out.html",))


def _page_around(draw: Draw) -> Hostile:
    return _around(draw, list(PAGE), ("out.html", "out.mlir"))


def hostile_page(seed: int) -> Hostile:
    """The input of a seed for the page of a report."""
    draw = random.Random(seed)
    kinds = [_page_of_a_run, _page_of_a_report, _page_around]
    (kind,) = draw.choices(kinds, [10, 10, 2])
    return kind(draw)


# --- scripts of other people's languages: python -m tcir.triton, python -m tcir.cute

SCRIPT_FLAGS = ["--order-seed", "--order-seeds", "--numerics", "--jobs", "--trace", "--warnings",
                "--max-findings", "--sms", "--sample", "-m", "--size", "--autotune", "--help",
                "--version"]  # fmt: skip


def hostile_script(door: str, script: bytes, seed: int, around: float = 1) -> Hostile:
    """A run of ``python -m DOOR s.py``; "script": its own traceback is right.

    around: how often streams and signals are drawn, beside other things, for those are runs of
    the whole script
    """
    draw = random.Random(seed)
    words, setting, kind = [door, "s.py"], Setting(seconds=200), "script"
    (what,) = draw.choices(
        ["file", "flags", "places", "streams", "signals"], [2, 2, 1, around, around]
    )
    match what:
        case "file":
            script = changed(script, draw)  # which may ask for all the memory that there is
            setting = Setting(seconds=200, headroom=4 << 30)
        case "flags":
            words = [door, *flags(SCRIPT_FLAGS, draw), "s.py", draw.choice(VALUES)]
        case "places":
            place, kind = draw.choice(PLACES), "places"
            words = draw.choice(
                [[door, place], [door, "--trace", place, "s.py"], [door], [door, "-m", place]]
            )
        case "streams":
            stream = draw.choice([
                {"stdin": CLOSED}, {"stdout": CLOSED}, {"stdout": "/dev/full"}, {"stdout": UNREAD},
                {"stderr": CLOSED}, {"stderr": "/dev/full"}, {"stderr": UNREAD},
            ])  # fmt: skip
            setting = Setting(**stream, seconds=200)
        case _:
            number = draw.choice([signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP])
            setting = Setting(send=(number, 6 * draw.random() ** 2), seconds=200)
    return Hostile(kind, words, {"s.py": script}, setting)


# --- what must not happen ----------------------------------------------------------------------

STATUSES = {0, 1, 2, 3, 4, 129, 130, 143}
KILLED = {-signal.SIGKILL, -signal.SIGHUP, -signal.SIGTERM}
"""By the signal; SIGTERM, where it came before the command listened."""
OWN_ENDS = {-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGFPE}
"""Of a "program" that was changed: C++ that writes past a vector ends so on a GPU, too."""


def complaints(case: Hostile, folder: Path) -> list[str]:
    """Runs it in a folder; what is wrong with the way it ended."""
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    for name in case.outputs:
        (folder / name).write_bytes(OLD)
    before = set(os.listdir(folder))
    ended = run(case.words, folder, case.setting)
    wrong = []
    said = ended.out + ended.err
    killed = ended.status in KILLED and case.setting.send is not None
    endless = case.kind == "program" and ended.hung  # a loop of its own
    killed |= case.kind == "program" and (ended.status in OWN_ENDS or endless)
    if ended.status not in STATUSES and not killed:
        wrong.append(f"status {ended.status}")
    if case.words[0] == "tc-viz" and ended.status in (1, 2):
        wrong.append(f"status {ended.status} of tc-viz")
    words = ["internal: ", ":0:0"]
    if case.kind != "script" or "/tcir/" in said:
        words += ["Traceback", "most recent call"]
    wrong += [word for word in words if word in said]
    wrong += ["hangs"] * (ended.hung and not endless)
    compiles = case.words[0] == "tcir.cuda" and ended.status == -signal.SIGKILL
    if ended.orphans and not compiles:  # nvcc, which nobody is left to end, but itself
        wrong.append(f"{ended.orphans} orphans")
    readable = case.setting.stderr is None and resource.RLIMIT_FSIZE not in case.setting.limits
    if readable and ended.status and not killed and not said.strip():
        wrong.append("says nothing")
    for name in sorted(set(os.listdir(folder)) - before):
        if re.fullmatch(r"\..*\.\w{8}", name) and not killed:
            wrong.append(f"leaves {name}")
    wrong += [f"{name} is half-written" for name in case.outputs if not _is_whole(folder / name)]
    if wrong:
        wrong.append(f"status {ended.status}, {ended.seconds:.1f} s: {ended.err[-1500:]!r}")
    return wrong


def all_complaints(seeds: range, drawn: Callable[[int], Hostile]) -> list[str]:
    """A line for each seed whose command ended wrong, each run in a new folder."""
    found = []
    for seed in seeds:
        case = drawn(seed)
        with tempfile.TemporaryDirectory() as folder:
            wrong = complaints(case, Path(folder))
        found += [f"seed {seed}: {case}: {'; '.join(wrong)}"] if wrong else []
    return found


def _is_whole(path: Path) -> bool:
    data = path.read_bytes()
    if data == OLD:
        return True
    match path.suffix:
        case ".json":
            try:
                json.loads(data)
            except ValueError:
                return False
            return True
        case ".npy":
            return isinstance(np.load(io.BytesIO(data)), np.ndarray)
        case ".svg":
            return data.rstrip().endswith(b"</svg>")
        case ".html":
            return data.rstrip().endswith(b"</html>")
    return bool(data) and data.endswith(b"\n")
