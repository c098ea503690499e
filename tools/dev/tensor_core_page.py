"""Writes docs/reference/tensor-core-ops.md: instruction × (op, verifier, tile rule, lowering, PTX
rule).

    python -m tcir.tools.dev.tensor_core_page [--check]

The cells are derived from the op classes and the tables of rules, and the last cell from decoding
the instruction as `run_ptx` does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tcir._mlir import ext
from tcir.dialect import tc  # noqa: F401  (its ops)
from tcir.dialect.operation import Op, all_ops
from tcir.dialect.rules import rules_of
from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.layout import lay_out
from tcir.interp.ptx.parser import parse
from tcir.interp.ptx.program import decode
from tcir.interp.tile import execute
from tcir.passes import nvvm  # noqa: F401  (registers the lowerings)
from tcir.passes.nvvm.converter import RULES as LOWERINGS
from tcir.target import DEFAULT_TARGET
from tcir.tools.dev.generated_page import write_or_check
from tcir.tools.dev.tensor_core_forms import FORMS, Form

TARGET = Path(__file__).resolve().parents[2] / "docs" / "reference" / "tensor-core-ops.md"

INTRO = """\
<!-- Written by `python -m tcir.tools.dev.tensor_core_page` from tools/dev/tensor_core_forms.py. -->

# Tensor-core and TMA instructions, and their ops

The tables list every form of the instructions of PTX ISA 9.7.16 and 9.7.9.27, and what this
compiler has for it: an op of `tc` (with the attributes that select the form), rules of the op's
verifier, its execution at the tile level, its lowering, and its execution as PTX by `run_ptx`. A
form without an op has the reason instead. [ops.md](ops.md) describes the ops, and
[ptx-coverage.md](ptx-coverage.md) the instructions.
"""

_PROGRAM = f"""\
.version {DEFAULT_TARGET.ptx_version}
.target {DEFAULT_TARGET.name}
.address_size 64
.visible .entry k()
{{{{
    .reg .b32 %r<40>; .reg .b64 %rd<4>; .reg .b16 %h<4>; .reg .pred %p<2>;
    {{}}
    ret;
}}}}
"""


@dataclass(frozen=True)
class FormRow:
    """The cells of a form in the table; a cell is empty if that part of the package does not
    support the form."""

    form: Form
    op: str
    verifier: str
    tile: str
    lowering: str
    ptx: str

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the empty cells."""
        names = ("op", "verifier", "tile", "lowering", "ptx")
        return tuple(name for name in names if not getattr(self, name))


def row(form: Form) -> FormRow:
    """The table row of a form, which shows the parts of the package that support it."""
    op = _ops().get(form.op)
    name = form.op if op else ""
    return FormRow(
        form,
        op=name,
        verifier=_verifier(op) if op else "",
        tile="yes" if name in execute else "",
        lowering="yes" if name in LOWERINGS else "",
        ptx="" if refused(form.ptx) else "yes",
    )


def _ops() -> dict[str, type[Op]]:
    return {str(op.OPERATION_NAME): op for op in all_ops()}


def _verifier(op: type[Op]) -> str:
    """Whether there are rules; an op of operands only is checked by their types."""
    if rules_of(str(op.OPERATION_NAME)):
        return "yes"
    return "types" if not ext.partition_fields(op._fields)[1] else ""


def refused(instruction: str) -> str:
    """Reason why `run_ptx` would not execute an instruction; "" if it would."""
    module = parse(_PROGRAM.format(instruction))
    function = module.functions["k"]
    try:
        found = decode(module, function, lay_out(module, function), {}).incomplete
    except PtxSyntaxError as error:
        return str(error)
    return "; ".join(str(each) for each in found)


def document() -> str:
    """The text of the page."""
    rows = [row(form) for form in FORMS]
    lines = [INTRO]
    whole = sum(not each.missing for each in rows)
    lines.append(f"{whole} of {len(rows)} forms have everything.\n")
    for section in dict.fromkeys(form.section for form in FORMS):
        lines += [
            f"## {section}\n",
            "| instruction | op | verifier | tiles | lowering | PTX |",
            "|---|---|---|---|---|---|",
        ]
        lines += [_line(each) for each in rows if each.form.section == section]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _line(each: FormRow) -> str:
    form = each.form
    name = form.ptx.partition(" ")[0].rstrip(";")
    operands = " (A in tensor memory)" if "], %rd1" in form.ptx else ""
    op = f"`{each.op}`" + (f" `{form.attributes}`" if form.attributes else "")
    cells = [op if each.op else f"– ({form.why})"]
    cells += [getattr(each, part) or "–" for part in ("verifier", "tile", "lowering", "ptx")]
    return f"| `{name}`{operands} | " + " | ".join(cells) + " |"


def main(argv: Sequence[str] | None = None) -> int:
    return write_or_check(TARGET, document, "tcir.tools.dev.tensor_core_page", argv)


if __name__ == "__main__":
    sys.exit(main())
