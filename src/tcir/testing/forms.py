"""Kernels with one tensor-core instruction on arbitrary bits, for comparing the simulated machine
with its emulation on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcir.errors import InputError
from tcir.target import EMULATED
from tcir.testing.recorded import RecordedLaunch

COLUMNS = 128
A_AT, SFA_AT, SFB_AT, METADATA_AT = 64, 96, 104, 112
"""Columns of tensor memory at which operands begin; D is at 0."""
SHARED = 32768
B_AT = 16384
"""Offset of B in shared memory, in bytes."""
WORDS = {"f16": 16, "bf16": 16, "tf32": 32}
_NARROW = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
CODES = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "i8": {"u8": 0, "s8": 1},
    "f8f6f4": _NARROW,
    "mxf8f6f4": _NARROW,
    "mxf4": {"e2m1": 1},
    "mxf4nvf4": {"e2m1": 1},
}
SWIZZLES = {"NONE": 0, "128B": 2, "64B": 4, "32B": 6, "128B_ATOM_32B": 1}

KERNEL = """.version 8.8
.target {target}
.address_size 64
.extern .shared .align 1024 .b8 tiles[];
.visible .entry k(.param .u64 shared_in, .param .u64 tensor_in, .param .u64 out)
.reqntid 128
{{
 .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .b32 %v<{columns}>;
 .shared .align 8 .b64 done; .shared .align 4 .b32 base;
 mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.ne.u32 %p1, %r2, 0; setp.ne.u32 %p2, %r1, 0;
 mov.u32 %r3, tiles; mov.u32 %r4, done; mov.u32 %r5, base;
 ld.param.u64 %rd1, [shared_in]; ld.param.u64 %rd2, [tensor_in]; ld.param.u64 %rd3, [out];
 mul.wide.u32 %rd4, %r1, 16; add.s64 %rd5, %rd1, %rd4;
 mul.lo.u32 %r6, %r1, 16; add.u32 %r6, %r6, %r3;
{fill}
 @%p1 bra SET;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], {columns};
 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
 @%p2 bra SET;
 mbarrier.init.shared::cta.b64 [%r4], 1;
SET:
 fence.proxy.async.shared::cta;
 tcgen05.fence::before_thread_sync;
 bar.sync 0;
 tcgen05.fence::after_thread_sync;
 ld.shared.u32 %r7, [%r5];
 shl.b32 %r8, %r2, 21; add.u32 %r9, %r7, %r8;
 mul.wide.u32 %rd6, %r1, 4; add.s64 %rd7, %rd2, %rd6; add.s64 %rd8, %rd3, %rd6;
{load}
 tcgen05.st.sync.aligned.32x32b.x{columns}.b32 [%r9], {{{registers}}};
 tcgen05.wait::st.sync.aligned;
 tcgen05.fence::before_thread_sync;
 bar.sync 0;
 tcgen05.fence::after_thread_sync;
 @%p2 bra ISSUED;
 and.b32 %r10, %r3, 0x3FFFF; shr.u32 %r10, %r10, 4; cvt.u64.u32 %rd9, %r10;
 add.u64 %rd10, %rd9, {b_start};
 or.b64 %rd9, %rd9, {a_descriptor}; or.b64 %rd10, %rd10, {b_descriptor};
 mov.b32 %r11, {idesc};
 setp.{compare}.u32 %p3, %r3, %r3;
{issue}
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
ISSUED:
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0; @!%p3 bra WAIT;
 tcgen05.fence::after_thread_sync;
 tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {{{registers}}}, [%r9];
 tcgen05.wait::ld.sync.aligned;
{store}
 tcgen05.fence::before_thread_sync;
 bar.sync 0;
 @%p1 bra END;
 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, {columns};
END:
 ret;
}}
"""


@dataclass(frozen=True)
class Form:
    """One form of the instruction: its shape, types and qualifiers.

    wild: whether operands have arbitrary bits, including infinities and NaNs; otherwise their
        exponents are in the middle of the range
    """

    kind: str = "f16"
    a: str = "f16"
    b: str = "f16"
    d: str = "f32"
    m: int = 128
    n: int = 16
    a_major: str = "K"
    b_major: str = "K"
    a_swizzle: str = "128B"
    b_swizzle: str = "128B"
    in_tmem: bool = False
    ws: bool = False
    sparse: bool = False
    ashift: bool = False
    negate_a: bool = False
    saturate: bool = False
    add: bool = True
    scale_input: int = 0
    mask: tuple[int, ...] = ()
    scales: int = 0
    scale_type: str = "ue8m0"
    wild: bool = False
    tiny: bool = False
    """Whether products are near 2^-146, where the exponent of a zero affects the sum
    (docs/explanation/numerics.md)."""
    seed: int = 0
    instruction: str = ""
    """An instruction in place of the mma; {d} is the base of tensor memory and {a} is A's
    descriptor."""

    def __str__(self) -> str:
        default = Form()
        words = [f"{k}={v}" for k, v in vars(self).items() if v != getattr(default, k)]
        return " ".join(words) or "f16"

    # --- descriptors -----------------------------------------------------------------------------

    def _matrix(self, element: str, major: str, swizzle: str) -> int:
        span = {"NONE": 0, "32B": 32, "64B": 64}.get(swizzle, 128)
        size = max(8, WORDS.get(element, 8)) // 8
        if major == "K":
            leading, stride = (128, 256) if not span else (0, 8 * span)
            if not span and self.sparse:
                stride = 512
        elif not span:
            leading, stride = 128, 128 * (32 // size // 8) * (2 if self.sparse else 1)
        else:
            lines = 4 if swizzle == "128B_ATOM_32B" else 8
            stride = lines * span
            leading = 32 // size // lines * stride * (2 if self.sparse else 1)
        return leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | SWIZZLES[swizzle] << 61

    @property
    def idesc(self) -> int:
        """The instruction descriptor."""
        codes = CODES[self.kind]
        word = codes[self.a] << 7 | codes[self.b] << 10 | self.negate_a << 13
        word |= (self.a_major == "MN") << 15 | (self.b_major == "MN") << 16 | self.n // 8 << 17
        word |= self.sparse << 2
        if self.scales:
            return word | (self.scale_type == "ue8m0") << 23 | self.m // 128 << 27
        return (
            word
            | self.m // 16 << 24
            | {"f16": 0, "f32": 1, "s32": 2}[self.d] << 4
            | self.saturate << 3
        )

    def _issue(self) -> str:
        if self.instruction:
            return self.instruction.format(d="%r7", a="%rd9")
        a = f"[%r7+{A_AT}]" if self.in_tmem else "%rd9"
        words = ["tcgen05.mma"] + ["ws"] * self.ws + ["sp"] * self.sparse
        words += ["cta_group::1", f"kind::{self.kind}"]
        operands = ["[%r7]", a, "%rd10"] + [f"[%r7+{METADATA_AT}]"] * self.sparse + ["%r11"]
        if self.scales:
            words += ["block_scale", {1: "block32", 2: "block32", 4: "block16"}[self.scales]]
            operands += [f"[%r7+{SFA_AT}]", f"[%r7+{SFB_AT}]"]
        words += ["ashift"] * self.ashift
        if self.mask:
            operands.append("{" + ", ".join(f"%r{12 + n}" for n in range(4)) + "}")
        operands.append("%p3")
        if self.scale_input:
            operands.append(str(self.scale_input))
        masks = "".join(f" mov.b32 %r{12 + n}, {word};" for n, word in enumerate(self.mask))
        return f"{masks} {'.'.join(words)} {', '.join(operands)};"

    @property
    def ptx(self) -> str:
        """The kernel for sm_100a. It reads two buffers and writes all words of tensor memory."""
        numbers = range(COLUMNS)
        return KERNEL.format(
            target=EMULATED,
            columns=COLUMNS,
            registers=", ".join(f"%v{n}" for n in numbers),
            fill="\n".join(
                f" ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%rd5+{at}]; "
                f"st.shared.v4.b32 [%r6+{at}], {{%v0, %v1, %v2, %v3}};"
                for at in range(0, SHARED, 2048)
            ),
            load="\n".join(f" ld.global.b32 %v{n}, [%rd7+{512 * n}];" for n in numbers),
            store="\n".join(f" st.global.b32 [%rd8+{512 * n}], %v{n};" for n in numbers),
            b_start=B_AT >> 4,
            a_descriptor=self._matrix(self.a, self.a_major, self.a_swizzle),
            b_descriptor=self._matrix(self.b, self.b_major, self.b_swizzle),
            idesc=0 if self.instruction else self.idesc,
            compare="eq" if self.add else "ne",
            issue=self._issue(),
        )

    # --- data ------------------------------------------------------------------------------------

    def inputs(self) -> tuple[np.ndarray, np.ndarray]:
        """Initial bytes of shared memory, and initial words [column, lane] of tensor memory."""
        rng = np.random.default_rng(self.seed)
        shared = rng.integers(0, 256, SHARED, dtype=np.uint8)
        tensor = rng.integers(0, 1 << 32, (COLUMNS, 128), dtype=np.uint32)
        if self.tiny:
            words = shared.view(np.uint32)
            words[:] = words & 0x807F807F | 54 << 7 | 54 << 23
        elif not self.wild:
            shared = np.concatenate([_tame(shared[:B_AT], self.a), _tame(shared[B_AT:], self.b)])
            bits = np.ascontiguousarray(tensor[A_AT : A_AT + 8]).view(np.uint8)
            tensor[A_AT : A_AT + 8] = _tame(bits, self.a).view(np.uint32)
            d = tensor[: self.n]
            if self.d == "f32":
                d[:] = d & 0x807FFFFF | (rng.integers(110, 140, d.shape).astype(np.uint32) << 23)
            elif self.d == "f16":
                d[:] = d & 0xBFFF
        quarters = {64: 2, 32: 4}.get(self.m, 1) if self.ws else 1
        if quarters > 1:  # A's rows, and metadata, on every lane of their row of D
            for at in (A_AT, METADATA_AT):
                tensor[at : at + 8] = np.tile(tensor[at : at + 8, : 128 // quarters], (1, quarters))
        if self.scales:
            low, high = (0, 256) if self.wild else (112, 140)
            if self.scale_type == "ue4m3" and not self.wild:
                low, high = 0, 127
            scales = rng.integers(low, high, (METADATA_AT - SFA_AT, 32, 4), dtype=np.uint8)
            tensor[SFA_AT:METADATA_AT] = np.tile(scales.view(np.uint32)[..., 0], (1, 4))
        if self.sparse:
            legal = (0x4, 0xE) if self.kind == "tf32" else (0x4, 0x8, 0x9, 0xC, 0xD, 0xE)
            nibbles = rng.choice(np.array(legal, np.uint32), (8, 128, 8))
            words = (nibbles << (4 * np.arange(8, dtype=np.uint32))).sum(-1).astype(np.uint32)
            if quarters > 1:
                words = np.tile(words[:, : 128 // quarters], (1, quarters))
            tensor[METADATA_AT : METADATA_AT + 8] = words
        return shared, tensor


def recorded(seed: int) -> RecordedLaunch:
    """Executes a random form on the simulated machine and records the launch. Raises InputError if
    the machine reports a finding.
    """
    from tcir.run import Uninitialized, run_ptx

    form = random_form(seed)
    shared, tensor = form.inputs()
    out = np.zeros_like(tensor)
    report = run_ptx(
        form.ptx, grid=1, dynamic_smem=SHARED, args=[shared, tensor, Uninitialized(out)]
    )
    if not report:
        raise InputError(f"{form}: {report}")
    before = [shared, tensor.reshape(-1).view(np.uint8), np.zeros(out.nbytes, np.uint8)]
    about = {
        "entry": "k", "grid": (1, 1, 1), "block": (128, 1, 1), "cluster": (1, 1, 1),
        "dynamic_smem": SHARED, "test": str(form),
        "params": [[{"pointer": n, "offset": 0}] for n in range(3)],
    }  # fmt: skip
    return RecordedLaunch(form.ptx, about, before, [*before[:2], out.reshape(-1).view(np.uint8)])


def _tame(raw: np.ndarray, element: str) -> np.ndarray:
    """The same bits with exponents in the middle of the range."""
    match element:
        case "f16":
            words = raw.view(np.uint16)
            return (words & 0x8FFF | 0x3000).view(np.uint8)
        case "bf16":
            words = raw.view(np.uint16)
            return (words & 0x83FF | 0x3C00).view(np.uint8)
        case "tf32":
            words = raw.view(np.uint32)
            return (words & 0x83FFFFFF | 0x3C000000).view(np.uint8)
        case "e5m2":
            return raw & np.uint8(0x8F) | np.uint8(0x30)
        case "e4m3":
            return raw & np.uint8(0xBF)
    return raw


def random_form(seed: int) -> Form:
    """A random legal form of tcgen05.mma of one CTA."""
    rng = np.random.default_rng(seed)

    def one(*choices: object) -> object:
        return choices[int(rng.integers(len(choices)))]

    kind = str(one("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"))
    a, b = (str(one(*CODES[kind])) for _ in range(2))
    b = a if kind == "f16" else b
    values: dict[str, object] = {
        "kind": kind,
        "a": a,
        "b": b,
        "seed": seed,
        "wild": one(True, False),
    }
    narrow = {"e2m1", "e2m3", "e3m2"}
    scaled = kind.startswith("mx")
    values["sparse"] = bool(rng.integers(4) == 0)
    values["ws"] = ws = not scaled and bool(rng.integers(4) == 0)
    values["in_tmem"] = in_tmem = bool(one(True, False))
    values["m"] = m = 128 if scaled else one(32, 64, 128) if ws else one(64, 128)
    values["n"] = 64 if ws else one(16, 32, 48)
    values["d"] = (
        "s32" if kind == "i8" else "f32" if scaled or a in ("tf32", "bf16") else one("f32", "f16")
    )
    for side, element in (("a", a), ("b", b)):
        major = "K" if element in narrow or (side == "a" and in_tmem) else one("K", "MN")
        wide = major == "MN" and element == "tf32"
        values[f"{side}_major"] = major
        values[f"{side}_swizzle"] = "128B_ATOM_32B" if wide else one("NONE", "32B", "64B", "128B")
        if values["sparse"] and side == "b" and values[f"{side}_swizzle"] == "32B" and major == "K":
            values[f"{side}_swizzle"] = "64B"
    values["negate_a"] = kind != "i8" and bool(one(True, False))
    values["saturate"] = kind == "i8" and bool(one(True, False))
    if scaled:
        values["scales"] = {"mxf8f6f4": 1, "mxf4": 2}.get(kind) or one(2, 4)
        values["scale_type"] = one("ue8m0", "ue4m3") if values["scales"] == 4 else "ue8m0"
    elif not ws:
        if kind in ("f16", "tf32") and one(True, False):
            values["scale_input"] = int(rng.integers(1, 16))
        if one(True, False):
            values["mask"] = tuple(int(x) for x in rng.integers(0, 1 << 32, 4))
        values["ashift"] = bool(in_tmem and m == 128 and one(True, False))
    return Form(**values)  # type: ignore[arg-type]
