"""What `make site` changes of mkdocs: in a console block only ``$ `` begins a command.

Pygments takes output that begins with ``#`` or ``%`` (tables, registers) for commands, too: it is
coloured so, and copied.
"""

from __future__ import annotations

import re

from pygments.lexers.shell import BashSessionLexer

BashSessionLexer._ps1rgx = re.compile(r"^(\$ )(.*\n?)")
