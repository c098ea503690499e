"""Prints, as JSON, the rooms (folders or files of the package) whose functions `tcir.compile`
calls: ``python -P compile_walk.py CHECKOUT``.

Every call from one function of the package to another is a step. A step is counted the first time
it occurs, in the order of the calls, and is listed as the room of the called function. Imports are
left out, and so are rooms that do the work rather than organise it (`WORK`).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from types import FrameType

WORK = {"dialect", "formats", "interp", "layout", "machine", "passes", "pipelines"}


def main(root: Path) -> list[str]:
    """Compiles `examples/matmul.mlir` twice and traces the second run, in which caches are
    filled."""
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, str(_import_root(root, Path(folder))))
        import tcir

        source = root / "examples" / "matmul.mlir"
        tcir.compile(source, "matmul", validate=True, orders=1)
        steps: list[str] = []
        seen: set[tuple[object, object]] = set()

        def follow(frame: FrameType, event: str, _argument: object) -> None:
            caller = frame.f_back
            if event != "call" or caller is None:
                return
            room = _room(frame)
            edge = (caller.f_code, frame.f_code)
            if room is None or _room(caller) is None or edge in seen:
                return
            seen.add(edge)
            steps.append(room)

        sys.setprofile(follow)
        try:
            tcir.compile(source, "matmul", validate=True, orders=1)
        finally:
            sys.setprofile(None)
    return steps


def _import_root(root: Path, folder: Path) -> Path:
    """Folder from which `tcir` is imported; for the older layout, without `src`, links in `folder`
    assemble the package."""
    if (root / "src").is_dir():
        return root / "src"
    package = folder / "tcir"
    package.mkdir()
    mapped = [root / name for name in ("dialect", "passes", "pipelines", "tools")]
    for path in [*(root / "tcir").iterdir(), *mapped]:
        (package / path.name).symlink_to(path)
    return folder


def _room(frame: FrameType) -> str | None:
    """The room of a function's module; None outside the package and in rooms that do the work."""
    package, *rest = str(frame.f_globals.get("__name__", "")).split(".")
    room = rest[0] if rest else ""
    return room if package == "tcir" and room not in WORK else None


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]).resolve())))
