"""The forms of the tcgen05 and TMA instructions, and the ``tc`` op for each form.

One `Form` per row of docs/reference/tensor-core-ops.md: an instruction in PTX, its section of the
ISA, and the op with the attributes that select the form, or the reason why there is no op.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """A form of an instruction.

    ptx:        the instruction, with registers %r (b32), %rd (b64), %h (b16), %p (predicate)
    op:         name of the ``tc`` op; "" if there is no op for this form
    attributes: attributes that select the form
    why:        reason why there is no op
    """

    section: str
    ptx: str
    op: str = ""
    attributes: str = ""
    why: str = ""


_PAIR = "cta_group = 2"
"""The attribute that selects the form of a CTA pair."""
_MULTICAST = "cta_mask = 3"
"""The attribute that selects the form that reaches other CTAs."""


def _registers(count: int) -> str:
    return "{" + ", ".join(f"%r{n}" for n in range(count)) + "}"


def _memory() -> list[Form]:
    forms = [
        Form("9.7.16.7", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 64;",
             "tc.tmem_alloc"),
        Form("9.7.16.7", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 64;",
             "tc.tmem_dealloc"),
        Form("9.7.16.7", "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
             "tc.tmem_relinquish"),
        Form("9.7.16.7", "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r0], 64;",
             "tc.tmem_alloc", _PAIR),
        Form("9.7.16.7", "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r0, 64;",
             "tc.tmem_dealloc", _PAIR),
        Form("9.7.16.7", "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;",
             "tc.tmem_relinquish", _PAIR),
    ]  # fmt: skip
    shapes = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
    for name, op, pack in (
        ("ld", "tc.tmem_ld_words", ".pack::16b"),
        ("st", "tc.tmem_st_words", ".unpack::16b"),
    ):
        for shape, each in shapes.items():
            values = _registers(4 * each)
            split = "" if shape != "16x32bx2" else ", 16"
            for packed in ("", pack):
                if name == "ld":
                    operands = f"{values}, [%r31]{split}"
                else:
                    operands = f"[%r31]{split}, {values}"
                forms.append(
                    Form(
                        "9.7.16.8",
                        f"tcgen05.{name}.sync.aligned.{shape}.x4{packed}.b32 {operands};",
                        f"tc.tmem_{name}" if shape == "32x32b" and not packed else op,
                        ""
                        if shape == "32x32b" and not packed
                        else f'shape = "{shape}", pack = {str(bool(packed)).lower()}',
                    )
                )
        forms.append(Form("9.7.16.8", f"tcgen05.wait::{name}.sync.aligned;", "tc.tmem_wait",
                          f'kind = "{name}"'))  # fmt: skip
    forms.append(Form("9.7.16.8", "tcgen05.ld.red.sync.aligned.32x32b.x2.min.b32 {%r0, %r1}, %r2, "
                      "[%r31];", why="not an instruction of sm_100a"))  # fmt: skip
    return forms


def _copies() -> list[Form]:
    shapes = {"128x256b": ("",), "128x128b": ("",), "4x256b": ("",),
              "64x128b": (".warpx2::02_13", ".warpx2::01_23"), "32x128b": (".warpx4",)}  # fmt: skip
    special = {"128x256b": "tc.cp", "4x256b": "tc.refresh", "32x128b": "tc.cp_scales"}
    forms = []
    for shape, multicasts in shapes.items():
        for multicast in multicasts:
            for source in ("", ".b8x16.b4x16_p64", ".b8x16.b6x16_p32"):
                attributes = (
                    f'shape = "{shape}"'
                    + (f', multicast = "{multicast[1:]}"' * bool(multicast))
                    + (f', format = "{source[7:]}"' * bool(source))
                )
                text = f"tcgen05.cp.cta_group::1.{shape}{multicast}{source} [%r0], %rd0;"
                plain = shape in special and not source
                op = special[shape] if plain else "tc.cp_rows"
                forms.append(Form("9.7.16.9", text, op, "" if plain else attributes))
    forms += [
        *(
            Form(
                each.section,
                each.ptx.replace("::1.", "::2.", 1),
                each.op,
                f"{each.attributes}, {_PAIR}" if each.attributes else _PAIR,
            )
            for each in forms
            if ".b8x16" not in each.ptx
        ),
        Form("9.7.16.9", "tcgen05.shift.cta_group::1.down [%r0];", "tc.shift"),
        Form(
            "9.7.16.9",
            "tcgen05.shift.cta_group::2.down [%r0];",
            "tc.shift",
            _PAIR,
        ),
    ]
    return forms


def _mma() -> list[Form]:
    section, forms = "9.7.16.10", []
    for kind in ("f16", "tf32", "f8f6f4", "i8"):
        start = f"tcgen05.mma.cta_group::1.kind::{kind}"
        forms.append(Form(section, f"{start} [%r0], %rd0, %rd1, %r1, %p0;", "tc.mma"))
        forms.append(
            Form(section, f"{start} [%r0], [%r2], %rd1, %r1, %p0;", "tc.mma", "A in tensor memory")
        )
        forms.append(
            Form(
                section, f"{start}.ashift [%r0], [%r2], %rd1, %r1, %p0;", "tc.mma", "ashift = true"
            )
        )
        mask = _registers(4)
        forms.append(Form(section, f"{start} [%r9], %rd0, %rd1, %r8, {mask}, %p0;", "tc.mma",
                          "D of tc.enable_lanes"))  # fmt: skip
        forms += [
            Form(
                section,
                f"{start}.collector::a::{use} [%r0], %rd0, %rd1, %r1, %p0;",
                "tc.mma",
                f'collector = "{use}"',
            )
            for use in ("fill", "use", "lastuse", "discard")
        ]
        if kind in ("f16", "tf32"):
            forms.append(
                Form(section, f"{start} [%r0], %rd0, %rd1, %r1, %p0, 3;", "tc.mma", "scale_d = 3")
            )
        sparse = start.replace("mma.", "mma.sp.")
        forms.append(
            Form(section, f"{sparse} [%r0], %rd0, %rd1, [%r2], %r1, %p0;", "tc.mma_sparse")
        )
        ws = start.replace("mma.", "mma.ws.")
        forms.append(Form(section, f"{ws} [%r0], %rd0, %rd1, %r1, %p0;", "tc.mma_ws"))
        forms.append(Form(section, f"{ws}.collector::b3::use [%r0], %rd0, %rd1, %r1, %p0;",
                          "tc.mma_ws", 'buffer = "b3", collector = "use"'))  # fmt: skip
        forms.append(Form(section, f"{ws} [%r0], %rd0, %rd1, %r1, %p0, %rd2;",
                          why="zero-column mask: text and example of the ISA differ"))  # fmt: skip
        forms.append(Form(section, f"{ws.replace('ws.', 'ws.sp.')} [%r0], %rd0, %rd1, [%r2], %r1, "
                          "%p0;", "tc.mma_ws_sparse"))  # fmt: skip
        forms.append(Form(section, f"{start.replace('::1', '::2')} [%r0], %rd0, %rd1, %r1, %p0;",
                          "tc.mma", _PAIR))  # fmt: skip
    for kind, block in (
        ("mxf8f6f4", "block32"),
        ("mxf4", "block32"),
        ("mxf4nvf4", "block32"),
        ("mxf4nvf4", "block16"),
    ):
        start = f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale.{block}"
        operands = "[%r0], %rd0, %rd1, %r1, [%r2], [%r3], %p0;"
        forms.append(Form(section, f"{start} {operands}", "tc.mma_block_scale",
                          f'kind = "{kind}", block = {block[5:]}'))  # fmt: skip
        tensor = operands.replace("%rd0", "[%r4]")
        forms.append(Form(section, f"{start} {tensor}", "tc.mma_block_scale",
                          f'A in tensor memory, kind = "{kind}", block = {block[5:]}'))  # fmt: skip
        sparse = start.replace("mma.", "mma.sp.")
        metadata = operands.replace("%r1,", "[%r4], %r1,")
        forms.append(Form(section, f"{sparse} {metadata}", "tc.mma_block_scale_sparse",
                          f'kind = "{kind}", block = {block[5:]}'))  # fmt: skip
        forms.append(Form(section, f"{start.replace('::1', '::2')} {operands}",
                          "tc.mma_block_scale",
                          f'kind = "{kind}", block = {block[5:]}, {_PAIR}'))  # fmt: skip
    return forms


def _order() -> list[Form]:
    commit = "tcgen05.commit.cta_group::{}.mbarrier::arrive::one.shared::cluster"
    return [
        Form("9.7.16.11", "tcgen05.fence::before_thread_sync;", "tc.fence",
             'kind = "tcgen05.before"'),
        Form("9.7.16.11", "tcgen05.fence::after_thread_sync;", "tc.fence",
             'kind = "tcgen05.after"'),
        Form("9.7.16.12", commit.format(1) + ".b64 [%r0];", "tc.commit"),
        Form("9.7.16.12", commit.format(1) + ".multicast::cluster.b64 [%r0], %h0;", "tc.commit",
             _MULTICAST),
        Form("9.7.16.12", commit.format(2) + ".b64 [%r0];", "tc.commit", _PAIR),
        Form("9.7.16.12", commit.format(2) + ".multicast::cluster.b64 [%r0], %h0;", "tc.commit",
             f"{_PAIR}, {_MULTICAST}"),
    ]  # fmt: skip


def _tma() -> list[Form]:
    section, forms = "9.7.9.27", []
    loads = {
        "tile": ("2d", "{%r0, %r1}", "", 'map of mode "tiled"'),
        "tile::gather4": ("2d", "{%r0, %r1, %r2, %r3, %r4}", "", "five coordinates"),
        "im2col": ("4d", "{%r0, %r1, %r2, %r3}", ", {%h0, %h1}", 'map of mode "im2col"'),
        "im2col::w": ("4d", "{%r0, %r1, %r2, %r3}", ", {%h0, %h1}", 'map of mode "im2col_w"'),
        "im2col::w::128": ("4d", "{%r0, %r1, %r2, %r3}", ", {%h0, %h1}",
                           'map of mode "im2col_w128"'),
    }  # fmt: skip
    for mode, (rank, place, info, attributes) in loads.items():
        start = f"cp.async.bulk.tensor.{rank}.shared::cluster.global.{mode}"
        operands = f"[%r30], [%rd0, {place}], [%r31]{info}"
        end = ".mbarrier::complete_tx::bytes"
        forms.append(Form(section, f"{start}{end} {operands};", "tc.tma_load", attributes))
        forms.append(Form(section, f"{start}{end}.multicast::cluster {operands}, %h2;",
                          "tc.tma_load", f"{attributes}, {_MULTICAST}"))  # fmt: skip
        forms.append(Form(section, f"{start}{end}.cta_group::2 {operands};", "tc.tma_load",
                          f"{attributes}, {_PAIR}"))  # fmt: skip
    stores = {
        "tile": ("2d", "{%r0, %r1}", ""),
        "tile::scatter4": ("2d", "{%r0, %r1, %r2, %r3, %r4}", "five coordinates"),
        "im2col_no_offs": ("4d", "{%r0, %r1, %r2, %r3}", 'map of mode "im2col"'),
    }
    for mode, (rank, place, attributes) in stores.items():
        text = (
            f"cp.async.bulk.tensor.{rank}.global.shared::cta.{mode}.bulk_group "
            f"[%rd0, {place}], [%r31];"
        )
        forms.append(Form(section, text, "tc.tma_store", attributes))
    for reduction in ("add", "min", "max", "inc", "dec", "and", "or", "xor"):
        unsigned = reduction in ("inc", "dec")
        text = (
            f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{reduction}.tile.bulk_group "
            "[%rd0, {%r0, %r1}], [%r31];"
        )
        forms.append(
            Form(
                section,
                text,
                "" if unsigned else "tc.tma_store",
                f'reduction = "{reduction}"' * (not unsigned),
                "u32 only, and tc has no unsigned elements" * unsigned,
            )
        )
    forms += [
        Form("9.7.9.25", "cp.async.bulk.commit_group;", "tc.bulk_commit"),
        Form("9.7.9.25", "cp.async.bulk.wait_group 1;", "tc.bulk_wait", "read = false"),
        Form("9.7.9.25", "cp.async.bulk.wait_group.read 1;", "tc.bulk_wait", "read = true"),
        Form(
            section,
            "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd0, {%r0, %r1}];",
            why="a hint: changes no result",
        ),
    ]
    return forms


FORMS = (*_memory(), *_copies(), *_mma(), *_order(), *_tma())
"""Every form, in the order of the ISA's sections."""
