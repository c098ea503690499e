"""Kernels of loads and stores, and of comparisons with the leader. A comparison that fails makes a
CTA leave the group, by setting the CTA's flag at `c`.
"""

from __future__ import annotations

from tcir.interp.ptx.kernels.template import kernel, lanes

TEXTS: list[str] = []

_SIZES = {"i8": 0x01, "i16": 0x0101, "i32": 0x01010101, "i64": 0x0101010101010101}
"""What a lane moves; with 1 in every byte."""

_PLACE = """  %pat = getelementptr i64, ptr %a, i64 %l
  %at0 = load i64, ptr %pat, align 1
  %here = icmp sge i64 %at0, 0
  %at = select i1 %here, i64 %at0, i64 0
  %at1 = add i64 %at, %imm
"""
"""`a` has a place for each lane, below 0 for one that does nothing; %at1: where its bytes are."""

_GATHER = """  %pv = getelementptr i8, ptr %b, i64 %at1
  %v = load {kind}, ptr %pv, align 1
  %pd = getelementptr {kind}, ptr %d, i64 %l
  store {kind} %v, ptr %pd, align 1
"""
"""From the memory `b` to a row."""

_DEFINED = """  %pv = getelementptr i8, ptr %b, i64 %at1
  %v = load {kind}, ptr %pv, align 1
  %well = icmp eq {kind} %v, {ones}
  %not = xor i1 %well, true
  %lost = and i1 %not, %here
  br i1 %lost, label %tell, label %told
tell:
  store i8 1, ptr %c, align 1
  br label %told
told:
"""
"""The CTA leaves where a byte of `b` is not 1."""

_SCATTER = """  br i1 %here, label %put, label %told
put:
  %pb = getelementptr {kind}, ptr %b, i64 %l
  %v = load {kind}, ptr %pb, align 1
  %pd = getelementptr i8, ptr %d, i64 %at1
  store {kind} %v, ptr %pd, align 1
  br label %told
told:
"""
"""From the row `b` to the memory `d`."""

_SPREAD = """  %pa = getelementptr {kind}, ptr %a, i64 %l
  %v = load {kind}, ptr %pa, align 1
  %row = mul i64 %l, %imm
  %column = ptrtoint ptr %b0 to i64
  %at = add i64 %row, %column
  %pd = getelementptr i8, ptr %d, i64 %at
  store {kind} %v, ptr %pd, align 1
"""
"""From the row `a` to elements of `imm` bytes at `d`, from their byte `b` on."""

_COPY = """  %x = load <32 x {kind}>, ptr %{source}, align 1
  store <32 x {kind}> %x, ptr %{target}, align 1"""

_HALVES = """  %q = getelementptr i64, ptr %a, i64 16
  %at = load i64, ptr %a, align 1
  %au = load i64, ptr %q, align 1
  %at1 = add i64 %at, %imm
  %au1 = add i64 %au, %imm
  %p = getelementptr i8, ptr %b, i64 %at1
  %u = getelementptr i8, ptr %b, i64 %au1
{loads}  store <16 x i32> %v, ptr %d, align 1
  %e = getelementptr i32, ptr %d, i64 16
  store <16 x i32> %w, ptr %e, align 1"""
"""A gather of words of which 16 lanes each are one after the other, or all in one place."""

_RUNS = """  %v = load <16 x i32>, ptr %p, align 1
  %w = load <16 x i32>, ptr %u, align 1
"""

_SPLATS = "".join(
    f"""  %{name}0 = load i32, ptr %{place}, align 1
  %{name}1 = insertelement <16 x i32> poison, i32 %{name}0, i32 0
  %{name} = shufflevector <16 x i32> %{name}1, <16 x i32> poison, <16 x i32> zeroinitializer
"""
    for name, place in (("v", "p"), ("w", "u"))
)

_FILL = """  br label %lanes
lanes:
  %l = phi i64 [0, %body], [%l1, %lanes]
  %pat = getelementptr i64, ptr %a, i64 %l
  %at = load i64, ptr %pat, align 1
  %pb = getelementptr i8, ptr %b, i64 %l
  %v = load i8, ptr %pb, align 1
  %pd = getelementptr i8, ptr %d, i64 %at
  store i8 %v, ptr %pd, align 1
  %l1 = add i64 %l, 1
  %again = icmp ult i64 %l1, %imm
  br i1 %again, label %lanes, label %done
done:"""
"""`imm` bytes of `b` to the places `a` of `d`."""

LEFT, POLLS = 1, 2
"""Flags: the CTA does something else; the leader repeats a load."""


def _leave(flag: int = LEFT) -> str:
    return f"""  %any = icmp ne i32 %bits, 0
  br i1 %any, label %tell, label %told
tell:
  store i8 {flag}, ptr %c, align 1
  br label %told
told:"""


_Q = "<32 x i64>"
_PLACES = f"""  %numbers = inttoptr i64 %imm to ptr
  %x = load <32 x {{kind}}>, ptr %a, align 1
  %y = load <32 x i8>, ptr %b, align 1
{
    "".join(
        f'''  %pn{n} = getelementptr i64, ptr %numbers, i64 {n}
  %n{n} = load i64, ptr %pn{n}, align 8
  %m{n} = insertelement {_Q} poison, i64 %n{n}, i32 0
  %s{n} = shufflevector {_Q} %m{n}, {_Q} poison, <32 x i32> zeroinitializer
'''
        for n in range(4)
    )
}{{at}}  %start = sub {_Q} %at, %s1
  %in = icmp ule {_Q} %start, %s2
  %low = and {_Q} %at, %s3
  %even = icmp eq {_Q} %low, zeroinitializer
  %good = and <32 x i1> %in, %even
  %on = icmp ne <32 x i8> %y, zeroinitializer
  %safe = select <32 x i1> %good, {_Q} %start, {_Q} zeroinitializer
  %r = select <32 x i1> %on, {_Q} %safe, {_Q} splat (i64 -1)
  store {_Q} %r, ptr %d, align 1
  %bad = xor <32 x i1> %good, splat (i1 true)
  %worse = and <32 x i1> %bad, %on
  %bits = bitcast <32 x i1> %worse to i32
{_leave()}"""
"""Places `d` in a buffer, -1 where the mask `b` is 0, of the addresses `a`. One that is outside of
it, or not aligned, is 0, and the CTA leaves. At `imm`: what is added to an address, where the
buffer begins, the last place in it, the bits of an address that have to be 0."""

_NARROW = f"""  %w = zext <32 x i32> %x to {_Q}
  %o = add {_Q} %w, %s0
  %at = and {_Q} %o, splat (i64 4294967295)
"""
_WIDE = f"""  %at = add {_Q} %x, %s0
"""

_SAME = f"""  %x = load <32 x {{kind}}>, ptr %a, align 1
  %y = load <32 x {{kind}}>, ptr %b, align 1
  %z = load <32 x i8>, ptr %d, align 1
  %on = icmp ne <32 x i8> %z, zeroinitializer
  %t = icmp ne <32 x {{kind}}> %x, %y
  %worse = and <32 x i1> %t, %on
  %bits = bitcast <32 x i1> %worse to i32
{_leave()}"""
"""The CTA leaves unless `a` is `b` where the mask `d` is not 0."""

_WITHIN = f"""  %x = load <32 x i8>, ptr %a, align 1
  %y = load <32 x i8>, ptr %b, align 1
  %t = icmp ugt <32 x i8> %x, %y
  %bits = bitcast <32 x i1> %t to i32
{_leave()}"""
"""The CTA leaves if the mask `a` has a lane that `b` has not."""

_LEAVE_IF = f"""  %x = load <32 x i8>, ptr %a, align 1
  %t = icmp ne <32 x i8> %x, zeroinitializer
  %bits = bitcast <32 x i1> %t to i32
{_leave()}"""
"""The CTA leaves if the mask `a` has a lane."""

_REPEATED = f"""  %x = load {_Q}, ptr %a, align 1
  %y = load {_Q}, ptr %b, align 1
  %t = icmp ne {_Q} %x, %y
  %other = bitcast <32 x i1> %t to i32
  %same = icmp eq i32 %other, 0
  %bits = zext i1 %same to i32
"""
"""Whether the places `a` are `b`: then the CTA leaves."""

_COUNT = """  %x = load <32 x i8>, ptr %a, align 1
  %t = icmp ne <32 x i8> %x, zeroinitializer
  %bits = bitcast <32 x i1> %t to i32
  %lanes = call i32 @llvm.ctpop.i32(i32 %bits)
  %wide = zext i32 %lanes to i64
  %more1 = mul i64 %wide, %imm
  %old = load i64, ptr %d, align 8
  %new = add i64 %old, %more1
  store i64 %new, ptr %d, align 8"""
"""`d` counts `imm` for each lane of the mask `a`."""

_SPLAT = """  %v = load i32, ptr %a, align 4
  %v1 = insertelement <32 x i32> poison, i32 %v, i32 0
  %r = shufflevector <32 x i32> %v1, <32 x i32> poison, <32 x i32> zeroinitializer
  store <32 x i32> %r, ptr %d, align 1"""
"""One number of the CTA, in all lanes."""

for _kind, _ones in _SIZES.items():
    TEXTS += [
        lanes(f"gather_{_kind}", _PLACE + _GATHER.format(kind=_kind)),
        lanes(f"defined_{_kind}", _PLACE + _DEFINED.format(kind=_kind, ones=_ones)),
        lanes(f"scatter_{_kind}", _PLACE + _SCATTER.format(kind=_kind)),
        lanes(f"spread_{_kind}", _SPREAD.format(kind=_kind)),
        kernel(f"third_{_kind}", _COPY.format(kind=_kind, source="c", target="d")),
        kernel(f"keep_{_kind}", _COPY.format(kind=_kind, source="a", target="b")),
        kernel(f"same_{_kind}", _SAME.format(kind=_kind)),
    ]
TEXTS += [
    kernel("halves_i32", _HALVES.format(loads=_RUNS)),
    kernel("splats_i32", _HALVES.format(loads=_SPLATS)),
    kernel("fill", _FILL),
    kernel("places_i32", _PLACES.format(kind="i32", at=_NARROW)),
    kernel("places_i64", _PLACES.format(kind="i64", at=_WIDE)),
    kernel("within", _WITHIN),
    kernel("leave_if", _LEAVE_IF),
    kernel("polls", _REPEATED + _leave()),
    kernel("leader_polls", _REPEATED + _leave(POLLS)),
    kernel("count", _COUNT),
    kernel("splat_i32", _SPLAT),
]
