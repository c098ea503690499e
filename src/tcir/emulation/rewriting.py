"""`emulate`: rewrites PTX and a launch for sm_100a to PTX and a launch for sm_90a."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import prod
from typing import Generic, Protocol, TypeVar

from tcir.emulation import approximate, copies, fuzz, general, tensor
from tcir.emulation.errors import EmulationError
from tcir.emulation.narrow import DataclassInstance
from tcir.emulation.sequence import BOX, COMMANDS, PREFIX, RESERVED, BoxPlace, refused
from tcir.emulation.sequence import Sequence as Replacement
from tcir.emulation.source import FunctionSource, SourceParser, Span
from tcir.errors import LaunchError
from tcir.interp.ptx import requirements
from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.lexer import Token
from tcir.interp.ptx.syntax import Function, Instruction, PtxModule, Variable
from tcir.target import EMULATED, EMULATING, architecture_of

Triple = tuple[int, int, int]
Edit = tuple[Span, str]
"""A range of the text, and its replacement."""


class Sizes(DataclassInstance, Protocol):
    """Protocol of a dataclass of launch sizes; the dataclass may have further fields."""

    @property
    def grid(self) -> Triple: ...
    @property
    def block(self) -> Triple: ...
    @property
    def cluster(self) -> Triple: ...
    @property
    def dynamic_smem(self) -> int: ...


class Named(Sizes, Protocol):
    """Launch sizes that also name their kernel."""

    @property
    def name(self) -> str: ...


S = TypeVar("S", bound=Sizes)
N = TypeVar("N", bound=Named)

HELPERS = 128
"""Threads of a CTA that act as its tensor core: one for each lane of tensor memory."""
MOST_THREADS = 1024
MOST_SHARED = 232448
"""Maximum bytes of shared memory of a CTA (CUDA C++ Programming Guide, compute capability 9.0)."""
_NAME = re.compile(rf"\b{PREFIX}\w+")
PLACE_BYTES = 128 * 512 * 4 + 512
"""Bytes in global memory for a CTA's tensor memory and the commands that follow it."""
SMS = 144
"""Maximum number of SMs of a Hopper GPU (NVIDIA H100 Tensor Core GPU Architecture, table 3)."""
SM_THREADS, SM_SHARED, CTA_SHARED = 2048, 233472, 1024
"""Maximum threads of an SM, its bytes of shared memory, and the bytes that the system reserves for
each CTA."""
SOURCES = (EMULATED, f"{architecture_of(EMULATED)}f")
_DROPPED = ("setmaxnreg",)
_PHASE = f"%{PREFIX}phase"
_SIZES = (".reqntid", ".maxntid", ".minnctapersm", ".maxnctapersm", ".maxnreg")


@dataclass(frozen=True)
class EmulatedLaunch:
    """Sizes of a launch, as in `tcir.run_ptx`; `dynamic_smem` in bytes."""

    grid: Triple
    block: Triple
    cluster: Triple = (1, 1, 1)
    dynamic_smem: int = 0


@dataclass(frozen=True)
class Emulated(Generic[S]):
    """PTX for sm_90a that is equivalent to a kernel for sm_100a, with its entry name and launch
    sizes.

    `launch` is the dataclass that the caller gave, with other values of `block` and `dynamic_smem`;
    the kernel's parameters do not change.
    """

    ptx: str
    entry: str
    launch: S


@cache
def _helpers() -> dict[str, str]:
    """The helper functions, and the seed, by name, in the order in which they are declared."""
    text = files("tcir.emulation").joinpath("tensor_core.ptx").read_text()
    text = re.sub("//.*", "", text[text.index(".visible .global") :])
    seed, *functions = (
        text.replace(".visible .func", ".func").replace(".func", "\0.func").split("\0")
    )
    return {"seed": seed} | {_NAME.search(each)[0]: each for each in functions}  # type: ignore[index]


def _needed(text: str) -> list[str]:
    """Helper functions that the text calls, directly or indirectly."""
    known = _helpers()
    wanted, left = {fuzz.SEED}, [text]
    while left:
        found = {*_NAME.findall(left.pop())} & known.keys() - wanted
        wanted |= found
        left += [known[name] for name in found]
    return [each for name, each in known.items() if name in wanted or name == "seed"]


def emulate(
    ptx: str,
    launch: S,
    entry: str | None = None,
    *,
    seed: int | None = None,
    defined: bool = False,
    narrow: bool = False,
) -> Emulated[S]:
    """Rewrites the kernel `entry` for sm_90a and returns it with its launch sizes.

    entry:   may be left out if the module has only one kernel
    launch:  a dataclass with grid, block, cluster and dynamic_smem, such as an item of
             ``kernel.launches.launches`` of a `tcir.Kernel`
    seed:    seed of random delays, after which asynchronous operations complete as late as the ISA
             allows; the module variable ``tcir_emulation_seed`` holds it
             (docs/explanation/emulation.md, "Fuzz"). None: no delays
    defined: computes approximations (`ex2.approx`) in f64 and keeps products and sums unfused, so
             that results have the simulated machine's bits; otherwise they have the GPU's
    narrow:  whether some tensor maps have 4- or 6-bit elements, encoded by `tcir.emulation.narrow`

    Raises PtxSyntaxError, or EmulationError with a way out for an instruction that is not emulated.
    """
    source = _source(ptx)
    kernel = _entry(source, entry)
    text, (made,) = _rewritten(
        source, [(launch, kernel)], seed, Mode(seed is not None, defined, narrow)
    )
    return Emulated(text, kernel.function.name, made)


def emulate_all(ptx: str, launches: Sequence[N], *, narrow: bool = False) -> tuple[str, list[N]]:
    """Emulates all kernels of a module, each as `emulate` does; each launch names its kernel.

    Launches of one kernel must agree in block, cluster and dynamic shared memory: the text is
    rewritten for one set of sizes.
    """
    source = _source(ptx)
    kernels = [(each, _entry(source, each.name)) for each in launches]
    return _rewritten(source, kernels, None, Mode(narrow=narrow))


def _source(ptx: str) -> SourceParser:
    source = SourceParser(ptx)
    target = source.parsed.target.partition(",")[0].strip()
    if target not in SOURCES:
        raise EmulationError(
            f"expected .target {' or '.join(SOURCES)}, got {target}: only these have tcgen05; a "
            "kernel for another target needs no emulation"
        )
    return source


def _entry(source: SourceParser, name: str | None) -> FunctionSource:
    entries = {f.function.name: f for f in source.functions if f.function.entry}
    listed = ", ".join(entries) or "none"
    if name is None and len(entries) != 1:
        raise LaunchError(f"entry: expected its name, one of {listed}")
    if name is not None and name not in entries:
        raise LaunchError(f"entry: expected one of {listed}, got {name!r}")
    return entries[name] if name is not None else next(iter(entries.values()))


def _rewritten(
    source: SourceParser,
    launches: Sequence[tuple[S, FunctionSource]],
    seed: int | None,
    mode: Mode,
) -> tuple[str, list[S]]:
    """The rewritten module, which contains only these kernels, and their launches."""
    edits: list[Edit] = []
    functions = [f for f in source.functions if not f.function.entry]
    kept = [entry for _, entry in launches]
    edits += [(f.whole, "") for f in source.functions if f.function.entry and f not in kept]
    edits.append((source.version, "9.0"))  # what a driver of CUDA 13.0 compiles
    edits.append((source.target, EMULATING))
    launched: dict[str, list[S]] = {}
    for launch, entry in launches:
        launched.setdefault(entry.function.name, []).append(launch)
    entries = {entry.function.name: entry for entry in kept}
    kernels = [
        _Kernel(source, _largest(name, launched[name]), entry, edits, mode)
        for name, entry in entries.items()
    ]
    for number, kernel in enumerate(kernels):
        kernel.rewrite(functions if number == 0 else [])
    if len(kernels) > 1 and any(_tensor(f) for f in functions):
        raise EmulationError(
            "expected tcgen05 only in kernels, since the module has several kernels, got it in a "
            "device function; emulate the kernels one by one"
        )
    places = max((k.places for k in kernels if k.tensor), default=0)
    at = source.declarations or source.target[1]
    needed = "".join(_needed("".join(new for _, new in edits)))
    needed = needed.replace(f"{fuzz.SEED};", f"{fuzz.SEED} = {seed or 0};")
    edits.append(((at, at), _declarations(places, kernels[0].shared) + needed))
    made = {kernel.entry.function.name: kernel.made for kernel in kernels}
    return _edited(source.text, edits), [
        replace(launch, block=of.block, dynamic_smem=of.dynamic_smem)
        for launch, of in ((each, made[entry.function.name]) for each, entry in launches)
    ]


def _largest(name: str, launches: Sequence[S]) -> S:
    """The launch of a kernel with the largest grid."""
    woven = {(each.block, each.cluster, each.dynamic_smem) for each in launches}
    if len(woven) > 1:
        raise EmulationError(
            f"expected equal block, cluster and dynamic shared memory in launches of @{name}, "
            f"got {', '.join(map(str, sorted(woven)))}: the rewritten text contains these sizes; "
            "emulate the launches one by one"
        )
    return max(launches, key=lambda each: prod(each.grid))


def _tensor(function: FunctionSource) -> bool:
    """Whether a function has instructions of the tensor core or of tensor memory."""
    return any(i.mnemonic.startswith("tcgen05.") for i, _, _ in function.instructions)


def _declarations(places: int, shared: str) -> str:
    """Declarations of the variables that the helpers use."""
    text = []
    if places:
        text.append(f".global .align 128 .b8 {PREFIX}memory[{places * PLACE_BYTES}];")
        text.append(f".global .align 4 .b8 {PREFIX}pool[{SMS * 4}];")
        if shared == f"{PREFIX}shared":
            text.append(f".extern .shared .align 16 .b8 {shared}[];")
    return "\n" + "\n".join(text) + "\n"


def _edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with all edits applied; edits at the same place keep their order."""
    parts, at = [], 0
    for (start, end), new in sorted(edits, key=lambda each: each[0]):
        if start < at:  # inside what another edit removes
            continue
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


@dataclass(frozen=True)
class Mode:
    """Options of the emulation.

    fuzzed:  whether asynchronous operations complete late
    defined: whether approximations have the bits of the simulated machine instead of the GPU's own
    narrow:  whether some tensor maps have narrow elements
    """

    fuzzed: bool = False
    defined: bool = False
    narrow: bool = False


class _Kernel(Generic[S]):
    """One kernel, whose edits of the text are collected here.

    made: its launch
    """

    def __init__(
        self, source: SourceParser, launch: S, entry: FunctionSource, edits: list[Edit], mode: Mode
    ) -> None:
        self.fuzzed, self.defined, self.narrow = mode.fuzzed, mode.defined, mode.narrow
        self.source, self.launch, self.entry, self.edits = source, launch, entry, edits
        self.text = source.text
        self.block: Triple = launch.block
        self.threads = prod(self.block)
        self.first = -(-self.threads // 32) * 32
        self.ctas = prod(launch.cluster)
        self.clustered = self.ctas > 1
        self.met = any(i.mnemonic.startswith("barrier.cluster") for i, _, _ in entry.instructions)
        """Whether the kernel synchronises the threads of its cluster."""
        self.shared = _dynamic(source.parsed)
        self.offset = -(-launch.dynamic_smem // 16) * 16
        self.tensor = _tensor(entry) or any(
            _tensor(f) for f in source.functions if not f.function.entry
        )
        self.behind = 0
        """Bytes of shared memory that follow the kernel's own: for the box and commands, only the
        box, or nothing."""
        self.per_sm = 0
        """Number of CTAs for which an SM has tensor memory; 0: each CTA of the grid has its
        own."""
        self.places = 0
        self.made = launch
        if self.tensor:
            self._check_sizes()
            self.made = replace(
                launch, block=(self.first + HELPERS, 1, 1), dynamic_smem=self.offset + self.behind
            )
            self._place()

    def rewrite(self, functions: Sequence[FunctionSource]) -> None:
        """Rewrites the kernel.

        functions: the device functions that have not been rewritten yet
        """
        late = 0
        for each in (self.entry, *functions):
            self.plan = (
                fuzz.plan(each, late) if self.fuzzed and self.tensor else fuzz.LateAccesses()
            )
            for number, (instruction, span, tokens) in enumerate(each.instructions):
                if self.fuzzed and fuzz.pauses(instruction.mnemonic):
                    self._pause(span)
                if self.tensor:
                    self._instruction(instruction, span, tokens, each.function.entry, number)
                else:
                    self._plain(instruction, span)
            late += len(self.plan.late)
            if declared := " ".join(each.declarations() for each in self.plan.late.values()):
                self.edits.append(((each.opening, each.opening), f" {declared} "))
        if self.tensor:
            self._resize()

    def _pause(self, span: Span) -> None:
        """Inserts a possible delay of the warp; the offset in the text is the number of the
        site."""
        s = self._sequence(self.entry.instructions[0][0])
        s.call_plain("pause", (32, span[0]))
        self.edits.append(((span[0], span[0]), f"{s.block()} "))

    def _sequence(self, instruction: Instruction) -> Replacement:
        base, offset = (self.shared, self.offset) if self.behind else (RESERVED, 0)
        return Replacement(instruction, BoxPlace(base, offset, self.clustered))

    def _plain(self, instruction: Instruction, span: Span) -> None:
        """Rewrites an instruction outside tcgen05 that sm_90a may not have."""
        if self.narrow and copies.is_rewritten(instruction, self.narrow):
            raise refused(
                instruction,
                "no maps of narrow elements in copies of four rows, nor in kernels without "
                "tcgen05, got one",
                "run it on the simulated machine",
            )
        rule = approximate.rule(instruction) if self.defined else None
        if (rule := rule or general.rule(instruction)) is None:
            self._check(instruction)
            return
        s = self._sequence(instruction)
        rule(s)
        self.edits.append((span, s.text(span[0])))

    def _check_sizes(self) -> None:
        if self.first + HELPERS > MOST_THREADS:
            raise EmulationError(
                f"block: expected at most {MOST_THREADS - HELPERS} threads, got {self.threads}: "
                f"{HELPERS} more emulate the tensor core, and a CTA has at most {MOST_THREADS}; "
                "launch smaller blocks"
            )
        left = MOST_SHARED - _static(self.source.parsed, self.entry.function) - self.offset
        self.behind = next((n for n in (BOX + COMMANDS, BOX) if n <= left), 0)
        if not self.behind:
            self.offset = self.launch.dynamic_smem

    def _place(self) -> None:
        """Allots tensor memory to each CTA of the grid, or to as many CTAs per SM as can be
        resident at a time."""
        ctas = prod(self.launch.grid)
        shared = SM_SHARED // (self.made.dynamic_smem + CTA_SHARED)
        most = min(SM_THREADS // self.made.block[0], shared)
        self.per_sm = most if ctas > SMS * most else 0
        self.places = SMS * most if self.per_sm else ctas

    # --- the entry -------------------------------------------------------------------------------

    def _resize(self) -> None:
        total, name = self.first + HELPERS, f"%{PREFIX}"
        for word, span in self.entry.directives:
            if word in _SIZES:
                self.edits.append((span, ""))
        at = self.entry.opening - 1
        self.edits.append(((at, at), f".reqntid {total}, 1, 1\n"))
        clustered = int(self.clustered or self.narrow)
        s = self._sequence(self.entry.instructions[0][0])
        memory, bits, thread, lane = s.new(64), s.new(64), s.new(32), s.new(32)
        for register, symbol in ((memory, "memory"), (bits, "pool")):
            s.do(f"mov.u64 {register}, {PREFIX}{symbol}")
            s.do(f"cvta.global.u64 {register}, {register}")
        s.call(
            "start",
            (64, memory),
            (64, bits),
            (32, self.per_sm),
            (32, self.threads * self.ctas),
            (32, int(self.behind > BOX)),
        )
        s.do("bar.warp.sync -1")
        if self.clustered:
            s.do("barrier.cluster.arrive.aligned")
            s.do("barrier.cluster.wait.aligned")
        else:
            s.do("bar.sync 0")
        s.do(f"mov.u32 {thread}, %tid.x")
        s.do(f".reg .pred {name}helps")
        s.do(f"setp.ge.u32 {name}helps, {thread}, {self.first}")
        s.do(f"@!{name}helps bra ${PREFIX}program")
        s.do(f"sub.u32 {lane}, {thread}, {self.first}")
        s.call(
            "work",
            (32, lane),
            (32, self.per_sm),
            (64, bits),
            (32, clustered),
            (32, int(self.fuzzed)),
        )
        s.do("exit")
        prologue = f"{s.block()} ${PREFIX}program:"
        if self.met:
            prologue = f".reg .b32 {_PHASE}; {prologue} mov.b32 {_PHASE}, 0;"
        if self.threads != self.first:  # threads of the last warp that the program does not have
            prologue += (
                f" {{ .reg .pred {name}none; .reg .b32 {name}t; mov.u32 {name}t, %tid.x;"
                f" setp.ge.u32 {name}none, {name}t, {self.threads}; @{name}none exit; }}"
            )
        at = self.entry.opening
        self.edits.append(((at, at), " " + prologue))

    # --- instructions ----------------------------------------------------------------------------

    def _instruction(
        self, i: Instruction, span: Span, tokens: tuple[Token, ...], entry: bool, number: int
    ) -> None:
        family = i.mnemonic.split(".")[0]
        s, label = self._sequence(i), span[0]
        due = tuple(self.plan.at.get(number, ()))
        if family == "tcgen05":
            late = self.plan.late.get(number)
            tensor.rewrite(s, self.clustered, tensor.Fuzz(self.fuzzed, late, due))
            self.edits.append((span, s.text(label)))
        elif family in _DROPPED:
            self.edits.append((span, ""))
        elif family == "exit" or (family == "ret" and entry):
            if not entry and self.met:
                raise refused(
                    i,
                    "no exit in a device function of a kernel with barrier.cluster",
                    "return to the kernel, and leave it there",
                )
            for each in due:
                for line in each.delivery():
                    s.do(line)
            phase = (self.ctas, _PHASE) if self.met else (0, 0)
            s.call("exit", (32, self.threads), *((32, value) for value in phase))
            s.do("exit")
            self.edits.append((span, s.text(label)))
        elif family in ("bar", "barrier") and not i.mnemonic.startswith("barrier.cluster"):
            self._barrier(i, span, tokens)
        elif i.mnemonic.startswith("barrier.cluster"):
            self._cluster_barrier(s, span, entry)
        elif general.rule(i) is None and copies.is_rewritten(i, self.narrow):
            copies.rewrite(s, label, self.ctas, self.narrow)
            self.edits.append((span, s.text(label)))
        elif general.rule(i) is None and ".cta_group::1" in i.mnemonic:
            word = next(token for token in tokens if ".cta_group::1" in token.text)
            where = word.offset, word.offset + len(word.text)
            self.edits.append((where, word.text.replace(".cta_group::1", "")))
        else:
            self._plain(i, span)
            self._sizes_in(i, span, tokens)

    def _cluster_barrier(self, s: Replacement, span: Span, entry: bool) -> None:
        """Rewrites a cluster barrier: the program's threads synchronise at an mbarrier of each CTA.
        The bits of the phase register are the parity, and whether the thread has arrived."""
        if not entry:
            raise refused(
                s.instruction,
                "barrier.cluster in the kernel itself, got it in a device function",
                "inline it",
            )
        if "arrive" in s.instruction.mnemonic.split("."):
            s.call("cluster_arrive", (32, self.ctas))
            s.do(f"or.b32 {_PHASE}, {_PHASE}, 2")
        else:
            parity = s.new(32)
            s.do(f"and.b32 {parity}, {_PHASE}, 1")
            s.call("cluster_wait", (32, parity))
            s.do(f"xor.b32 {_PHASE}, {_PHASE}, 3")
        self.edits.append((span, s.text(span[0])))

    def _barrier(self, i: Instruction, span: Span, tokens: tuple[Token, ...]) -> None:
        """Makes a barrier of all threads count only the program's threads."""
        words = i.mnemonic.split(".")
        if "warp" in words:
            return
        reduces = "red" in words
        counted = 4 if reduces else 2
        if "arrive" in words or len(i.operands) == counted:
            return
        commas = [n for n, token in enumerate(tokens) if token.text == ","]
        # sync a, COUNT; red d, a, COUNT, p
        at = tokens[commas[1]].offset if reduces else tokens[-1].offset
        self.edits.append(((at, at), f", {self.first}"))

    def _sizes_in(self, i: Instruction, span: Span, tokens: tuple[Token, ...]) -> None:
        """Replaces special registers whose values would include the helper threads."""
        constants = {f"%ntid.{axis}": n for axis, n in zip("xyz", self.block, strict=True)}
        taken = not self.behind and RESERVED.rpartition("_")[0]
        constants |= {
            "%nwarpid": self.first // 32,
            "%dynamic_smem_size": self.launch.dynamic_smem,
        }
        flat = self.block[1:] == (1, 1)
        names = [f"%{PREFIX}tid_{axis}" for axis in "xyz"]
        indices = False
        for token in tokens:
            name = token.text
            where = token.offset, token.offset + len(name)
            if name in constants:
                self.edits.append((where, str(constants[name])))
            elif name in ("%tid", "%ntid", "%total_smem_size", "%aggr_smem_size"):
                raise refused(
                    i,
                    f"no {name}, got it: its value would include the helper threads",
                    "use %tid.x, %ntid.x or %dynamic_smem_size",
                )
            elif taken and name.startswith(taken):
                raise refused(
                    i,
                    f"no {name}, got it: the helpers use its memory ({BOX} bytes), since the "
                    "launch leaves no other",
                    "use one stage less",
                )
            elif name.startswith("%tid.") and not flat:
                indices = True
                self.edits.append((where, names["xyz".index(name[-1])]))
        if indices:
            x, y, _ = self.block
            a, b, c = names
            self.edits.append(((span[0], span[0]), (
                f"{{ .reg .b32 {a}, {b}, {c}; mov.u32 {a}, %tid.x; div.u32 {c}, {a}, {x * y};"
                f" div.u32 {b}, {a}, {x}; rem.u32 {b}, {b}, {y}; rem.u32 {a}, {a}, {x}; "
            )))  # fmt: skip
            self.edits.append(((span[1], span[1]), " }"))

    def _check(self, i: Instruction) -> None:
        """Raises EmulationError for an instruction that sm_90a does not have."""
        target = PtxModule("9.0", EMULATING)
        try:
            requirements.check(i, target)
        except PtxSyntaxError as error:
            raise EmulationError(
                f"line {i.site.line}: {i.mnemonic} is not emulated: sm_90a has no such instruction "
                f"({error}); run it on the simulated machine"
            ) from None


def _dynamic(module: PtxModule) -> str:
    """Symbol of dynamic shared memory: the module's, or a new one."""
    found = [v for v in module.variables.values() if v.space == "shared" and v.extern]
    return max(found, key=lambda v: v.align).name if found else f"{PREFIX}shared"


def _static(module: PtxModule, function: Function) -> int:
    """Upper bound on the bytes of static shared memory."""
    variables: Iterable[Variable] = [*module.variables.values(), *function.variables]
    return sum(
        -(-v.size // v.align) * v.align + v.align
        for v in variables
        if v.space == "shared" and not v.extern
    )
