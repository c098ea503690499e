"""lit's shell tests in folders whose path has a space: lit itself does not quote %s, %S and %t."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import lit.formats
import lit.TestRunner


def without_space(path: str) -> str:
    """`path`, or the same through a link to its folder when it has a space."""
    if " " not in path:
        return path
    folder, name = os.path.split(path)
    digest = hashlib.sha256(folder.encode()).hexdigest()[:12]
    link = Path(tempfile.gettempdir(), f"tcir-lit-{os.getuid()}-{digest}")
    if not link.is_symlink():
        with contextlib.suppress(FileExistsError):  # another worker may make it meanwhile
            link.symlink_to(folder)
    return str(link / name)


class ShTest(lit.formats.ShTest):
    """`lit.formats.ShTest` with paths that a RUN line may use without quotes."""

    def execute(self, test: Any, lit_config: Any) -> Any:
        """Runs one test; %s, %S and %t name it through links where they have to."""
        _, temporary = lit.TestRunner.getTempPaths(test)
        source = without_space(test.getSourcePath())
        paths = [
            ("%s", source),
            ("%S", os.path.dirname(source)),
            ("%t", without_space(temporary) + ".tmp"),
        ]
        return lit.TestRunner.executeShTest(
            test,
            lit_config,
            self.execute_external,
            # The others first, as lit does: %t is also how %tc-opt begins.
            [*test.config.substitutions, *paths],
            self.preamble_commands,
        )
