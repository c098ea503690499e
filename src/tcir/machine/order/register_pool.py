"""The registers of a CTA that setmaxnreg moves between warps."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Request:
    """One setmaxnreg instruction. action: "inc" or "dec"; count: registers per thread."""

    action: str
    count: int
    site: object

    def __str__(self) -> str:
        return f"setmaxnreg.{self.action} {self.count}"


@dataclass(eq=False)
class RegisterPool:
    """Registers of a CTA that warps exchange by `setmaxnreg`.

    free: registers that no warp owns, per thread of a warp; done: each warp's executed requests
    """

    free: int = 0
    owned: dict[int, int] = field(default_factory=dict)
    done: dict[int, list[Request]] = field(default_factory=dict)
