"""The end-to-end cases: real layers, tails, odd sizes, every filter shape up to 5x5."""

from __future__ import annotations

from .linalg_text import Conv, Matmul

SAME_3x3 = (1, 1, 1, 1)

CONVS = [
    # ResNet-50's four 3x3 layers at batch 1, full size; 14x14 and 7x7 have several K_out tiles.
    Conv(1, 56, 56, 64, 64, 3, 3, SAME_3x3),
    Conv(1, 28, 28, 128, 128, 3, 3, SAME_3x3, out="f16"),
    Conv(1, 14, 14, 256, 256, 3, 3, SAME_3x3, element="bf16", out="bf16"),
    Conv(1, 7, 7, 512, 512, 3, 3, SAME_3x3),
    # several images, odd sizes, tails in C and K_out, no padding
    Conv(2, 9, 9, 32, 16, 3, 3),
    Conv(3, 11, 13, 40, 24, 3, 3, SAME_3x3),
    Conv(4, 7, 7, 64, 64, 3, 3, SAME_3x3, element="bf16"),
    Conv(1, 13, 29, 56, 56, 2, 2),
    Conv(1, 6, 65, 32, 8, 3, 3, SAME_3x3),
    Conv(1, 8, 30, 32, 32, 3, 3, (1, 0, 2, 1)),
    # filters of other shapes
    Conv(1, 17, 35, 24, 72, 5, 5, (2, 2, 2, 2), filter="fhwc"),
    Conv(1, 11, 11, 160, 64, 5, 5, (2, 2, 2, 2), element="bf16", out="bf16"),
    Conv(2, 8, 31, 48, 32, 1, 3, (0, 0, 1, 1)),
    Conv(1, 9, 40, 32, 64, 1, 5, (0, 0, 2, 2), out="bf16"),
    Conv(1, 20, 20, 32, 48, 5, 3),
    Conv(1, 20, 20, 32, 48, 3, 5, filter="fhwc", out="f16"),
    Conv(1, 8, 33, 128, 96, 4, 4, (1, 2, 1, 2), element="bf16"),
    Conv(1, 15, 15, 32, 40, 3, 1),
    Conv(2, 16, 16, 32, 32, 1, 1),
    # several K_out tiles
    Conv(1, 12, 33, 64, 144, 3, 3, SAME_3x3, filter="fhwc"),
    Conv(1, 10, 10, 72, 200, 3, 3, SAME_3x3),
    Conv(2, 5, 64, 96, 264, 3, 3, SAME_3x3, filter="fhwc", out="f16"),
    Conv(1, 5, 100, 32, 136, 3, 2),
    Conv(1, 7, 61, 40, 512, 1, 3, (0, 0, 1, 1), element="bf16", out="f16"),
    # the smallest C, and the generic spelling of both filter layouts
    Conv(1, 5, 33, 8, 16, 3, 3, SAME_3x3),
    Conv(2, 10, 37, 48, 40, 3, 3, SAME_3x3, generic=True),
    Conv(1, 9, 34, 32, 24, 3, 3, filter="fhwc", element="bf16", generic=True),
]

MATMULS = [
    Matmul(512, 512, 512),
    Matmul(200, 136, 328),
    Matmul(130, 264, 72, out="f16"),
    Matmul(256, 256, 256, "mk", "nk"),
    Matmul(256, 128, 192, "km", "kn"),
    Matmul(136, 200, 104, "km", "nk"),
    Matmul(129, 17, 64, "mk", "nk"),
    Matmul(384, 96, 640, element="bf16"),
    Matmul(128, 512, 64, element="bf16", out="bf16"),
    Matmul(150, 72, 80, batch=3),
    Matmul(96, 130, 136, "mk", "nk", batch=2, element="bf16"),
    Matmul(1, 8, 8),
    Matmul(264, 40, 24, "km", "kn", batch=2, out="f16"),
]
