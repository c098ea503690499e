"""Writes constraints.txt: the version to install of every package that tcir and its extras (except
`peers`) need.

    python3.11 -m tcir.tools.dev.constraints

pip resolves all of them together to the newest versions that pyproject.toml allows, for the Python
that runs this command. It must be the oldest supported Python, because some packages have newer
releases only for newer Pythons.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "constraints.txt"
HEAD = """\
# The versions that the tests run with (make venv):
#   pip install -c constraints.txt .
# Written by python -m tcir.tools.dev.constraints.
"""
OPEN = {"tcir", "nvidia-cuda-runtime"}
"""Packages that are not constrained: PyTorch needs an older runtime than the one that comes with
ptxas."""


def main() -> int:
    """Resolves the versions and writes the file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = ",".join(sorted(set(project["optional-dependencies"]) - {"peers"}))
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    words += ["--report", "-", f"{ROOT}[{extras}]"]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    packages = [found["metadata"] for found in json.loads(done.stdout)["install"]]
    versions = {each["name"].lower().replace("_", "-"): each["version"] for each in packages}
    lines = [f"{name}=={versions[name]}\n" for name in sorted(versions.keys() - OPEN)]
    FILE.write_text(HEAD + "".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
