"""The time model's predictions for a Hopper GPU, made before it runs, and what it then says.

    python bench/time_hopper.py --predict              # here: bench/predictions_sm90.json, its hash
    python bench/time_hopper.py --prepare build/time   # here: cubins; needs MLIR and ptxas
    python bench/time_hopper.py --run build/time       # there: needs cuda-python, numpy, ml_dtypes

Kernels: matmul-warp and gemv-simt at several sizes, and copies by TMA. A prediction is made from
the events of the first CTA, as the machine records them, and the constants of sm_90: cycles, and
microseconds at 1.98 GHz. ``--run`` measures microseconds of a launch among many in a row, behind a
copy that hides launching, with inputs that rotate through more than the level-2 cache; and the
clock right after them, by a kernel that counts. An error is that of the predicted cycles at that
clock. Results of kernels are not compared here (`gemv_simt.py`, `matmul_warp.py`), those of copies
are. ``--probes`` beside any of them: the smaller kernels of `time_probes.py`, which ask why
predictions missed, and bench/probes_sm90.json; ``--wgmma``: the kernels of `time_wgmma.py` and
bench/predictions_sm90a.json. Exit status: 0, 1 if predictions and their hash
disagree or a copy is wrong.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT)]
PREDICTIONS = ROOT / "predictions_sm90.json"
PROBES = ROOT / "probes_sm90.json"
WGMMA = ROOT / "predictions_sm90a.json"
TARGET = "sm_90"
SMS = 132
CLOCK = "boost"
IN_FLIGHT = 256 << 20
"""Bytes of buffers through which launches rotate."""
PER_EVENT = 20
BLOCKS = 4
"""Copies of 4 GiB that hide launching: together about 9 ms."""
SPIN_CYCLES = 400_000
UNDER = (
    ("hbm", "copy"), ("hbm-latency", "gh"), ("l2-port", "wgmma"), ("l2-port", "large"),
    ("tma-latency", "gh"), ("alu", "independent"), ("alu", "chain"),
)  # fmt: skip
"""Other answers to disputed constants under which cycles are also predicted."""

MATMULS: tuple[tuple[int, str, dict[str, Any]], ...] = (
    *((n, "f32", {}) for n in (1024, 2048, 3072, 4096, 6144)),
    (2048, "f16", {}),
    (2048, "f32", {"copy": "cp.async"}),
    (4096, "f32", {"copy": "cp.async"}),
)
GEMVS = tuple(
    (shape, {"rows": rows, "warps": 4})
    for shape in ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))
    for rows in (2, 4)
)
COPIES = (
    ("load", 4, 4), ("load", 8, 4), ("load", 16, 4), ("load", 16, 12),
    ("copy", 8, 4), ("copy", 16, 8),
)  # fmt: skip
"""Kind of copy, KiB of a box, boxes in flight."""
BOXES = 64
"""Number of boxes that a CTA copies."""


def copy_ptx(what: str, box: int, stages: int, shared: bool = False) -> str:
    """One thread of a CTA loads `BOXES` boxes through a ring, and stores them if it is a copy.

    what:   ``load``, ``copy``, or ``store``: the first boxes are loaded once and stored in turn
    shared: all CTAs load the same boxes
    """
    pending = stages - 1 if what == "store" else stages // 2
    loads = stages if what == "store" else BOXES

    def load(number: int) -> str:
        stage = number % stages
        return f"""
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+{8 * stage}], {box};
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+{stage * box}], \
[%d1+{number * box}], {box}, [%r1+{8 * stage}];"""

    def step(number: int) -> str:
        stage, parity = number % stages, number // stages % 2
        text = f"""
W{number}: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1+{8 * stage}], {parity};
 @!%p1 bra W{number};""" * (number < loads)
        free = number
        if what != "load":
            text += f"""
 cp.async.bulk.global.shared::cta.bulk_group [%d2+{number * box}], [%r2+{stage * box}], {box};
 cp.async.bulk.commit_group;
 cp.async.bulk.wait_group {pending};"""
            free = number - pending
        following = free + stages
        return text + (load(following) if free >= 0 and following < loads else "")

    init = "".join(f"\n mbarrier.init.shared::cta.b64 [%r1+{8 * s}], 1;" for s in range(stages))
    first = "".join(load(number) for number in range(stages))
    steps = "".join(step(number) for number in range(BOXES))
    return f""".version 8.4
.target {TARGET}
.address_size 64
.extern .shared .align 128 .b8 ring[];
.visible .entry copy(.param .u64 source, .param .u64 target) .reqntid 32
{{
 .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<8>;
 .shared .align 8 .b8 full[{8 * stages}];
 mov.u32 %r3, %tid.x; setp.ne.u32 %p2, %r3, 0; @%p2 bra END;
 ld.param.u64 %d1, [source]; ld.param.u64 %d2, [target];
 mov.u32 %r4, %ctaid.x; mul.wide.u32 %d3, %r4, {BOXES * box};
 {"" if shared else "add.s64 %d1, %d1, %d3; "}add.s64 %d2, %d2, %d3;
 mov.u32 %r1, full; mov.u32 %r2, ring;{init}
 fence.mbarrier_init.release.cluster;
 fence.proxy.async.shared::cta;{first}{steps}
 cp.async.bulk.wait_group 0;
END: ret;
}}
"""


CLOCK_PTX = f""".version 8.4
.target {TARGET}
.address_size 64
.visible .entry clock(.param .u64 out)
{{
 .reg .pred %p<2>; .reg .b64 %d<8>;
 ld.param.u64 %d1, [out];
 mov.u64 %d2, %globaltimer; mov.u64 %d3, %clock64;
SPIN: mov.u64 %d4, %clock64; sub.s64 %d5, %d4, %d3;
 setp.lt.s64 %p1, %d5, {SPIN_CYCLES}; @%p1 bra SPIN;
 mov.u64 %d6, %globaltimer; sub.s64 %d6, %d6, %d2;
 st.global.v2.b64 [%d1], {{%d5, %d6}};
 ret;
}}
"""


@dataclass(frozen=True)
class Case:
    """One kernel with its launch and buffers: shape and dtype by name, inputs first.

    unique:  bytes that cross global memory; None: those of all buffers
    rotates: through more buffers than the level-2 cache holds
    """

    name: str
    ptx: str
    launch: Any
    buffers: tuple[tuple[tuple[int, ...], str], ...]
    outputs: int
    unique: int | None = None
    rotates: bool = True
    target: str = TARGET

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers, each once."""
        return sum(array.nbytes for array in self.arrays())

    def arrays(self) -> list[np.ndarray]:
        """Empty buffers."""
        return [np.zeros(shape, np.dtype(dtype)) for shape, dtype in self.buffers]


def compiled(
    name: str, text: str, pipeline: str, options: dict[str, Any], target: str = TARGET
) -> Case:
    """The only kernel of a program."""
    import tcir

    return case_of(name, tcir.compile(text, pipeline, target=target, **options), target)


def case_of(name: str, kernel: Any, target: str) -> Case:
    """The case of a kernel of one launch."""
    from tcir.program.memory_image import image_spec

    specs = [image_spec(s) for s in (*kernel.signature.inputs, *kernel.signature.outputs)]
    buffers = []
    for spec in specs:
        bits = spec.dtype.itemsize
        plain = spec.dtype.str if spec.dtype.kind in "fiu" else f"u{bits}"
        buffers.append((tuple(spec.shape), plain))
    outputs = len(kernel.signature.outputs)
    return Case(name, kernel.ptx, kernel.launch_config, tuple(buffers), outputs, target=target)


def copy_case(what: str, kib: int, stages: int, *, sms: int = SMS, in_l2: bool = False) -> Case:
    """A copy by one CTA on each of `sms` SMs; in_l2: all load the same boxes repeatedly."""
    from tcir.program.launch import Launch

    box = kib << 10
    pointers = tuple({"kind": "pointer", "arg": number} for number in range(2))
    launch = Launch("copy", (sms, 1, 1), (32, 1, 1), box * stages, pointers)
    buffer = ((sms * BOXES * box,), "|u1")
    where = f"{', one SM' if sms == 1 else ''}{', in L2' if in_l2 else ''}"
    nbytes = sms * BOXES * box
    return Case(
        f"TMA {what}, {kib} KiB x {stages}{where}",
        copy_ptx(what, box, stages, in_l2),
        launch,
        (buffer, buffer),
        1,
        unique=0 if in_l2 else nbytes * (1 + (what == "copy")),
        rotates=not in_l2,
    )


def all_cases() -> Iterator[Case]:
    """All cases, compiled for `TARGET`."""
    import gemv_simt
    import matmul_warp

    def said(options: dict[str, Any]) -> str:
        return "".join(f" {key}={value}" for key, value in options.items())

    for n, out, options in MATMULS:
        text = matmul_warp.program(n, out)
        yield compiled(f"matmul-warp {n} {out}{said(options)}", text, "matmul-warp", options)
    for shape, options in GEMVS:
        name = f"gemv-simt {'x'.join(map(str, shape))}{said(options)}"
        yield compiled(name, gemv_simt.program(*shape), "gemv-simt", options)
    for what, kib, stages in COPIES:
        yield copy_case(what, kib, stages)


def predict(case: Case, registers: int) -> dict[str, Any]:
    """Predicts cycles from the events of the first CTA."""
    from time_events import FirstCta

    from tcir.machine.events import Recording
    from tcir.run import run_ptx
    from tcir.time import Constants, ModelledTime, modelled_time

    launch, arrays = case.launch, case.arrays()
    inputs = len(arrays) - case.outputs
    report = run_ptx(
        case.ptx,
        entry=launch.name,
        grid=launch.grid,
        block=launch.block,
        dynamic_smem=launch.dynamic_smem,
        args=launch.arguments(arrays[:inputs], arrays[inputs:]),
        hazards="off",
        numerics="fast",
        sample=FirstCta(share=0, seed=0),
        events=Recording(),
    )
    assert report.events is not None and not report.errors and not report.incomplete, report
    stream = report.events
    stream.registers = registers
    unique = case.nbytes if case.unique is None else case.unique
    ctas = launch.grid[0] * launch.grid[1] * launch.grid[2]

    def modelled(choices: dict[str, str]) -> ModelledTime:
        constants = Constants(case.target, {"clock": CLOCK, **choices})
        return modelled_time(stream, constants, ctas, unique_bytes=unique)

    time = modelled({})
    return {
        "name": case.name,
        "ctas": ctas,
        "ctas_per_sm": time.residents,
        "waves": time.waves,
        "registers": registers,
        "events": len(stream),
        "cycles": round(time.cycles),
        "us": round(time.microseconds, 2),
        "bound": time.bound,
        "cycles_under": {
            f"{name}={answer}": round(modelled({name: answer}).cycles) for name, answer in UNDER
        },
    }


def cases_of(file: Path) -> Iterator[Case]:
    """Cases that a file of predictions contains."""
    if file == PREDICTIONS:
        return all_cases()
    import time_probes
    import time_wgmma

    return (time_wgmma if file == WGMMA else time_probes).all_cases()


def write_predictions(file: Path) -> int:
    """Writes predictions of all cases, their constants, and the hash of the file."""
    from tcir.codegen import assemble
    from tcir.time import Constants

    rows = []
    for case in cases_of(file):
        rows.append(predict(case, assemble(case.ptx, target=case.target).registers))
        print(rows[-1], flush=True)
    constants = Constants(TARGET, {"clock": CLOCK}).values()
    target = f"{TARGET}a" if file == WGMMA else TARGET
    document = {"modelled": True, "target": target, "constants": constants, "kernels": rows}
    file.write_text(json.dumps(document, indent=1) + "\n")
    digest = sha256(file.read_bytes()).hexdigest()
    file.with_suffix(".sha256").write_text(f"{digest}  {file.name}\n")
    return 0


def prepare(folder: Path, file: Path) -> int:
    """Writes cubins and launches."""
    from tcir.codegen import assemble

    folder.mkdir(parents=True, exist_ok=True)
    cases = []
    for number, case in enumerate(cases_of(file)):
        (folder / f"{number}.cubin").write_bytes(assemble(case.ptx, target=case.target).data)
        cases.append({"name": case.name, "cubin": f"{number}.cubin", "buffers": case.buffers,
                      "outputs": case.outputs, "rotates": case.rotates,
                      "launch": asdict(case.launch)})  # fmt: skip
    (folder / "clock.cubin").write_bytes(assemble(CLOCK_PTX, target=TARGET).data)
    if file == WGMMA:
        import time_wgmma

        count = assemble(time_wgmma.COUNT_PTX, target=time_wgmma.TARGET)
        (folder / "count.cubin").write_bytes(count.data)
    (folder / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")
    return 0


class Gpu:
    """Measures microseconds of a launch, and the clock."""

    def __init__(self, folder: Path, repeats: int) -> None:
        from tcir import runtime
        from tcir.runtime.driver import call

        self.runtime, self.call, self.repeats = runtime, call, repeats
        self.on = runtime.device()
        self.blocker = [runtime.empty((4 << 30,), np.uint8) for _ in range(2)]
        self.clocked = runtime.to_device(np.zeros(2, np.uint64))
        self.spin = runtime.load((folder / "clock.cubin").read_bytes(), self.on).function("clock")

    def measure(self, launches: Sequence[Callable[[], None]]) -> tuple[float, float]:
        """Medians over repeats: microseconds of a launch, and GHz after the last one."""
        call, times, clocks = self.call, [], []
        start, stop = call("cuEventCreate", 0), call("cuEventCreate", 0)
        for repeat in range(self.repeats + 1):
            a, b = self.blocker
            for _ in range(BLOCKS):
                call("cuMemcpyDtoDAsync", a.pointer, b.pointer, a.nbytes, 0)
            call("cuEventRecord", start, 0)
            for number in range(PER_EVENT):
                launches[number % len(launches)]()
            call("cuEventRecord", stop, 0)
            self.spin.launch(
                [self.clocked.pointer.to_bytes(8, "little")], grid=(1, 1, 1), block=(1, 1, 1)
            )
            self.runtime.synchronize()
            if repeat:
                times.append(float(call("cuEventElapsedTime", start, stop)) * 1e3 / PER_EVENT)
                cycles, nanoseconds = self.clocked.numpy()
                clocks.append(float(cycles) / float(nanoseconds))
        return statistics.median(times), statistics.median(clocks)


def _as_tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_as_tuples(item) for item in value)
    return {k: _as_tuples(v) for k, v in value.items()} if isinstance(value, dict) else value


def _filled(shape: Sequence[int], dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Random buffers: normal floats, or bytes that are small codes and scales near 1."""
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(tuple(shape), np.float32).astype(dtype)
    codes = rng.integers(0x30, 0x40, (*shape, np.dtype(dtype).itemsize), np.uint8)
    return codes.view(dtype)[..., 0]


def run(folder: Path, file: Path, repeats: int) -> int:
    """Measures every case and prints it with its prediction."""
    from tcir.program.launch import Launch
    from tcir.runtime.launching import launch_pointers

    frozen = file.with_suffix(".sha256").read_text().split()[0]
    if sha256(file.read_bytes()).hexdigest() != frozen:
        print(f"{file.name} is not the file that {file.stem}.sha256 names")
        return 1
    predicted = {k["name"]: k for k in json.loads(file.read_text())["kernels"]}
    gpu, errors, rows, wrong = Gpu(folder, repeats), [], [], 0
    print(f"{gpu.on}, driver {gpu.on.driver}; predictions {frozen[:16]}")
    print("| kernel | predicted cycles | measured us | GHz | measured cycles | error |")
    print("|---|---|---|---|---|---|")
    for case in json.loads((folder / "cases.json").read_text()):
        launch = Launch(**_as_tuples(case["launch"]))
        rng = np.random.default_rng(0)
        arrays = [_filled(shape, dtype, rng) for shape, dtype in case["buffers"]]
        total = sum(array.nbytes for array in arrays)
        sets = [
            [gpu.runtime.to_device(array) for array in arrays]
            for _ in range(max(2, -(-IN_FLIGHT // total)) if case["rotates"] else 1)
        ]
        cubin = (folder / case["cubin"]).read_bytes()
        launches = [
            partial(launch_pointers, launch, cubin, [b.pointer for b in buffers], gpu.on)
            for buffers in sets
        ]
        us, ghz = gpu.measure(launches)
        if case["name"].startswith("TMA copy"):
            same = np.array_equal(sets[0][1].numpy(), arrays[0])
            wrong += not same
            print(f"copy: {'equal' if same else 'DIFFERENT'}")
        cycles, want = us * ghz * 1000, predicted[case["name"]]["cycles"]
        errors.append(want / cycles - 1)
        rows.append({"name": case["name"], "us": us, "ghz": ghz, "error": errors[-1]})
        print(
            f"| {case['name']} | {want} | {us:.2f} | {ghz:.3f} | {cycles:.0f} | "
            f"{errors[-1]:+.1%} |",
            flush=True,
        )
        (folder / "measured.json").write_text(json.dumps(rows, indent=1) + "\n")
        del sets, launches
    sizes = [abs(error) for error in errors]
    print(f"median error {statistics.median(sizes):.1%}, maximum {max(sizes):.1%}")
    return 1 if wrong else 0


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--prepare", type=Path, metavar="DIR")
    parser.add_argument("--run", type=Path, metavar="DIR")
    parser.add_argument("--probes", action="store_true")
    parser.add_argument("--wgmma", action="store_true")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    file = PROBES if options.probes else WGMMA if options.wgmma else PREDICTIONS
    if options.predict:
        return write_predictions(file)
    if options.prepare:
        return prepare(options.prepare, file)
    if options.run:
        return run(options.run, file, options.repeats)
    parser.error("expected --predict, --prepare DIR or --run DIR")


if __name__ == "__main__":
    sys.exit(main())
