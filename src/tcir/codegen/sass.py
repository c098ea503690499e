"""Disassembles cubins to SASS with nvdisasm, and counts instructions."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from tcir.codegen.crash import signal_name
from tcir.codegen.tools import find_tool
from tcir.errors import Error, NativeCrashError

COUNTED = {
    "UTCHMMA": "tcgen05.mma, kind f16 or tf32",
    "UTCQMMA": "tcgen05.mma, kind f8f6f4 or mxf8f6f4",
    "UTCIMMA": "tcgen05.mma, kind i8",
    "UTCOMMA": "tcgen05.mma, kind mxf4 or mxf4nvf4",
    "UTCCP": "tcgen05.cp",
    "UTCSHIFT": "tcgen05.shift",
    "UTCBAR": "tcgen05.commit",
    "UTCATOMSWS": "tcgen05.alloc and dealloc",
    "LDTM": "tcgen05.ld",
    "STTM": "tcgen05.st",
    "UTMALDG": "TMA load",
    "UTMASTG": "TMA store",
    "SYNCS": "mbarrier",
    "STG": "global store",
    "LDG": "global load",
}
"""SASS mnemonics (without modifiers) and their meaning."""


def disassemble(cubin: bytes) -> str:
    """SASS text of `cubin`."""
    with tempfile.TemporaryDirectory(prefix="tcir-nvdisasm-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        done = subprocess.run([find_tool("nvdisasm"), path], capture_output=True, text=True)
    if done.returncode < 0:
        raise NativeCrashError(
            f"nvdisasm crashed ({signal_name(-done.returncode)}); --emit=cubin works without it, "
            "or try another version of nvidia-cuda-nvdisasm"
        )
    if done.returncode != 0:
        raise Error(f"nvdisasm rejected the cubin: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def sass_counts(sass: str) -> dict[str, int]:
    """Counts the instructions in `sass` by the mnemonics of `COUNTED`. Modified forms such as
    ``UTCHMMA.ASHIFT`` are also counted separately.

    The count ``UTCHMMA`` includes all forms, ``UTCHMMA.ASHIFT`` only those with the shift.
    """
    counts: Counter[str] = Counter()
    for opcode in re.findall(
        r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z][A-Z0-9_.]*)", sass, re.MULTILINE
    ):
        mnemonic, *modifiers = opcode.split(".")
        if mnemonic in COUNTED:
            counts[mnemonic] += 1
            if "ASHIFT" in modifiers:
                counts[f"{mnemonic}.ASHIFT"] += 1
    return dict(sorted(counts.items()))
