"""Changes that `make site` makes to mkdocs.

In a console block only ``$ `` begins a command. Without the change, Pygments would also treat lines
of output that begin with ``#`` or ``%`` (tables, registers) as commands, colour them, and include
them in copied text. Lines do not break after the ``--`` of a flag. In the narrow cells of tables
they may break after parts of a name.
"""

from __future__ import annotations

import re

from pygments.lexers.shell import BashSessionLexer

BashSessionLexer._ps1rgx = re.compile(r"^(\$ )(.*\n?)")
_CELL = re.compile(r"<td[^>]*>.*?</td>", re.S)
_CODE = re.compile(r"<code>(.*?)</code>", re.S)
_FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_PART = re.compile(r"(?<=\w)(?:[_/]|\.(?=\w{3}))(?=[a-z])")


def on_post_page(output: str, **_: object) -> str:
    """Called by mkdocs with the HTML of a page, after the search index was built."""
    output = _CELL.sub(lambda cell: _CODE.sub(_in_parts, cell[0]), output)
    return _CODE.sub(lambda code: _FLAG.sub(r'<span class="flag">\g<0></span>', code[0]), output)


def _in_parts(code: re.Match[str]) -> str:
    """Adds places to a name in code at which a line may break."""
    parts = _PART.sub(r"\g<0><wbr>", code[1])
    return code[0] if "<" in code[1] else f"<code>{parts}</code>"
