"""Measures a network in one element type; prints its rows to standard output and its progress to
standard error.

python -m tcir.tools.dev.networks.one NAME TYPE
"""

from __future__ import annotations

import sys

from tcir.tools.dev.networks.measured import measure
from tcir.tools.dev.networks.network import NAMES
from tcir.tools.dev.networks.rows import failed, measured
from tcir.tools.dev.networks.table import NETWORKS


def main(name: str, kind: str) -> None:
    """Measures a network and prints its rows of the table."""

    def tell(line: str) -> None:
        print(f"{name}, {kind}: {line[:200]}", file=sys.stderr, flush=True)

    try:
        lines = measured(name, kind, measure(NETWORKS[name], NAMES[kind], tell))
    except Exception as error:
        lines = failed(name, kind, str(error) or type(error).__name__)
    print(*lines, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
