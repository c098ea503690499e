"""Functions of several layers, as linalg on tensors."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise

RELU = "%z = arith.constant 0.0 : f32\n %t = arith.maximumf %s, %z : f32"
GELU = """%root = arith.constant 0.70710678 : f32
 %half = arith.constant 0.5 : f32
 %one = arith.constant 1.0 : f32
 %u = arith.mulf %s, %root : f32
 %v = math.erf %u : f32
 %p = arith.addf %v, %one : f32
 %q = arith.mulf %p, %half : f32
 %t = arith.mulf %s, %q : f32"""


@dataclass
class Layers:
    """A function while it is written: each method appends ops, and returns a tensor's name.

    types: of every tensor: shape and element, ``20x24xf32``
    """

    lines: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)

    def argument(self, name: str, kind: str) -> str:
        """An argument."""
        self.types[name] = kind
        self.arguments.append(f"%{name}: tensor<{kind}>")
        return name

    def text(self, *results: str) -> str:
        """The module."""
        kinds = ", ".join(f"tensor<{self.types[each]}>" for each in results)
        names = ", ".join(f"%{each}" for each in results)
        body = "\n  ".join([*self.lines, f"return {names} : {kinds}"])
        return f"func.func @f({', '.join(self.arguments)}) -> ({kinds}) {{\n  {body}\n}}\n"

    def filled(self, kind: str, number: str) -> str:
        """A tensor of one number."""
        element = kind.rpartition("x")[2]
        value = self._new("arith.constant", element, f"{number} : {element}")
        empty = self.empty(kind)
        given = f"ins(%{value} : {element}) outs(%{empty} : tensor<{kind}>) -> tensor<{kind}>"
        return self._new("linalg.fill", kind, given)

    def empty(self, kind: str) -> str:
        """A tensor without contents."""
        return self._new("tensor.empty()", kind, f": tensor<{kind}>")

    def product(self, a: str, b: str, kind: str) -> str:
        """``a b`` in f32."""
        zeros = self.filled(kind, "0.0")
        name = "linalg.matmul" if kind.count("x") == 2 else "linalg.batch_matmul"
        return self._new(
            name,
            kind,
            f"ins(%{a}, %{b} : tensor<{self.types[a]}>, tensor<{self.types[b]}>) "
            f"outs(%{zeros} : tensor<{kind}>) -> tensor<{kind}>",
        )

    def conv(self, x: str, w: str, kind: str, stride: int = 1, pad: int = 0) -> str:
        """A convolution of NHWC by HWCF in f32, padded with zeros."""
        if pad:
            x = self.padded(x, pad, "0.0")
        zeros = self.filled(kind, "0.0")
        return self._new(
            "linalg.conv_2d_nhwc_hwcf",
            kind,
            f"{{strides = dense<{stride}> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}} "
            f"ins(%{x}, %{w} : tensor<{self.types[x]}>, tensor<{self.types[w]}>) "
            f"outs(%{zeros} : tensor<{kind}>) -> tensor<{kind}>",
        )

    def named_conv(self, name: str, x: str, w: str, kind: str) -> str:
        """A convolution of any kind, in f32."""
        zeros = self.filled(kind, "0.0")
        return self._new(
            f"linalg.{name}",
            kind,
            f"ins(%{x}, %{w} : tensor<{self.types[x]}>, tensor<{self.types[w]}>) "
            f"outs(%{zeros} : tensor<{kind}>) -> tensor<{kind}>",
        )

    def padded(self, x: str, pad: int, number: str) -> str:
        """Height and width of NHWC with `pad` more on each side."""
        n, h, w, c, element = self.types[x].split("x")
        kind = f"{n}x{int(h) + 2 * pad}x{int(w) + 2 * pad}x{c}x{element}"
        edge = self._new("arith.constant", element, f"{number} : {element}")
        ends = f"[0, {pad}, {pad}, 0]"
        return self._new(
            f"tensor.pad %{x}",
            kind,
            f"low{ends} high{ends} {{\n  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):\n"
            f" tensor.yield %{edge} : {element}\n  }} : tensor<{self.types[x]}> to tensor<{kind}>",
        )

    def max_pool(self, x: str, kind: str) -> str:
        """3 x 3 with stride 2 and padding 1."""
        element = kind.rpartition("x")[2]
        low = "0xFF80" if element == "bf16" else "0xFF800000"
        image, start = self.padded(x, 1, low), self.filled(kind, low)
        window = self.empty(f"3x3x{element}")
        return self._new(
            "linalg.pooling_nhwc_max",
            kind,
            "{strides = dense<2> : vector<2xi64>, dilations = dense<1> : vector<2xi64>} "
            f"ins(%{image}, %{window} : tensor<{self.types[image]}>, tensor<3x3x{element}>) "
            f"outs(%{start} : tensor<{kind}>) -> tensor<{kind}>",
        )

    def each(self, kind: str, body: str, *reads: tuple[str, str]) -> str:
        """Element by element: `body` makes ``%t`` of ``%s`` and ``%s1``, …; reads: tensor, map."""
        loops = {1: "m", 2: "mn", 4: "nhwc"}[kind.count("x")]
        return self._generic(kind, body, loops, (), self.empty(kind), *reads)

    def reduced(self, kind: str, body: str, start: str, read: tuple[str, str]) -> str:
        """Over n: `body` makes ``%t`` of ``%s`` and ``%o``."""
        return self._generic(kind, body, "m", ("n",), self.filled(kind, start), read)

    def mean(self, x: str) -> str:
        """Mean over height and width of NHWC in bf16, with sums in f32."""
        n, h, w, c, element = self.types[x].split("x")
        body = f"%e = arith.extf %s : {element} to f32\n %t = arith.addf %e, %o : f32"
        zeros = self.filled(f"{n}x{c}xf32", "0.0")
        sums = self._generic(f"{n}x{c}xf32", body, "nc", ("h", "w"), zeros, (x, "nhwc"))
        scale = f"%k = arith.constant {1 / (int(h) * int(w))} : f32\n %m = arith.mulf %s, %k : f32"
        return self.each(
            f"{n}x{c}xbf16", f"{scale}\n %t = arith.truncf %m : f32 to bf16", (sums, "mn")
        )

    def softmax(self, x: str) -> str:
        """Over the last dimension of a matrix of f32: max, exp, sum, divide."""
        kind = self.types[x]
        rows = f"{kind.split('x')[0]}xf32"
        most = self.reduced(rows, "%t = arith.maximumf %s, %o : f32", "0xFF800000", (x, "mn"))
        e = self.each(
            kind, "%d = arith.subf %s, %s1 : f32\n %t = math.exp %d : f32", (x, "mn"), (most, "m")
        )
        total = self.reduced(rows, "%t = arith.addf %s, %o : f32", "0.0", (e, "mn"))
        return self.each(kind, "%t = arith.divf %s, %s1 : f32", (e, "mn"), (total, "m"))

    def rounded(self, x: str, element: str = "bf16") -> str:
        """Rounds to a narrower type."""
        kind = self.types[x].replace("f32", element)
        return self.each(kind, f"%t = arith.truncf %s : f32 to {element}", (x, "mn"))

    def bias(self, x: str, b: str, activation: str = "") -> str:
        """A bias along the columns, and an activation of ``%s``."""
        first = self.each(self.types[x], "%t = arith.addf %s, %s1 : f32", (x, "mn"), (b, "n"))
        return self.each(self.types[x], activation, (first, "mn")) if activation else first

    def op(self, name: str, kind: str, given: str) -> str:
        """Any op, its operands as text."""
        return self._new(name, kind, given)

    def _generic(
        self,
        kind: str,
        body: str,
        out: str,
        sums: tuple[str, ...],
        to: str,
        *reads: tuple[str, str],
    ) -> str:
        loops = [*out, *sums]
        maps = [f"affine_map<({', '.join(loops)}) -> ({', '.join(m)})>" for _, m in reads]
        maps.append(f"affine_map<({', '.join(loops)}) -> ({', '.join(out)})>")
        iterators = ['"parallel"'] * len(out) + ['"reduction"'] * len(sums)
        operands, kinds = zip(*((f"%{n}", f"tensor<{self.types[n]}>") for n, _ in reads))
        names = ["%s", *(f"%s{n}" for n in range(1, len(reads)))]
        elements = [self.types[n].rpartition("x")[2] for n, _ in reads]
        element = kind.rpartition("x")[2]
        inner = ", ".join(f"{n}: {e}" for n, e in zip(names, elements, strict=True))
        return self._new(
            "linalg.generic",
            kind,
            f"{{indexing_maps = [{', '.join(maps)}], iterator_types = [{', '.join(iterators)}]}}\n"
            f"    ins({', '.join(operands)} : {', '.join(kinds)}) outs(%{to} : tensor<{kind}>) {{\n"
            f"  ^bb0({inner}, %o: {element}):\n {body}\n linalg.yield %t : {element}\n"
            f"  }} -> tensor<{kind}>",
        )

    def _new(self, name: str, kind: str, rest: str) -> str:
        made = f"v{len(self.lines)}"
        self.types[made] = kind
        self.lines.append(f"%{made} = {name} {rest}")
        return made


def perceptron(m: int, sizes: list[int], activation: str = RELU) -> str:
    """Layers ``x W + b`` in bf16, with an activation between them; the last result in f32."""
    layers = Layers()
    h = layers.argument("x", f"{m}x{sizes[0]}xbf16")
    weights = [
        (layers.argument(f"w{n}", f"{k}x{c}xbf16"), layers.argument(f"b{n}", f"{c}xf32"), c)
        for n, (k, c) in enumerate(pairwise(sizes))
    ]
    for number, (w, b, columns) in enumerate(weights):
        last = number == len(weights) - 1
        sums = layers.product(h, w, f"{m}x{columns}xf32")
        h = layers.bias(sums, b, "" if last else activation)
        h = h if last else layers.rounded(h)
    return layers.text(h)


def attention(rows: int, keys: int, width: int) -> str:
    """``softmax(q k / 8) v`` of one head, bf16."""
    layers = Layers()
    q = layers.argument("q", f"{rows}x{width}xbf16")
    k = layers.argument("k", f"{width}x{keys}xbf16")
    v = layers.argument("v", f"{keys}x{width}xbf16")
    scores = layers.product(q, k, f"{rows}x{keys}xf32")
    scale = "%e = arith.constant 0.125 : f32\n %t = arith.mulf %s, %e : f32"
    scaled = layers.each(f"{rows}x{keys}xf32", scale, (scores, "mn"))
    p = layers.rounded(layers.softmax(scaled))
    return layers.text(layers.product(p, v, f"{rows}x{width}xf32"))


def bottleneck(n: int, size: int, wide: int, narrow: int) -> str:
    """ResNet-50's: 1 x 1, 3 x 3, 1 x 1, biases (folded batch norm), relu, and the residual."""
    layers = Layers()
    shape = f"{n}x{size}x{size}"
    x = layers.argument("x", f"{shape}x{wide}xbf16")
    h = x
    for number, (taps, c, k) in enumerate(((1, wide, narrow), (3, narrow, narrow))):
        w = layers.argument(f"w{number}", f"{taps}x{taps}x{c}x{k}xbf16")
        b = layers.argument(f"b{number}", f"{k}xf32")
        sums = layers.conv(h, w, f"{shape}x{k}xf32", pad=taps // 2)
        body = "%u = arith.addf %s, %s1 : f32\n %z = arith.constant 0.0 : f32\n"
        body += " %v = arith.maximumf %u, %z : f32\n %t = arith.truncf %v : f32 to bf16"
        h = layers.each(f"{shape}x{k}xbf16", body, (sums, "nhwc"), (b, "c"))
    w = layers.argument("w2", f"1x1x{narrow}x{wide}xbf16")
    b = layers.argument("b2", f"{wide}xf32")
    sums = layers.conv(h, w, f"{shape}x{wide}xf32")
    body = "%u = arith.addf %s, %s1 : f32\n %e = arith.extf %s2 : bf16 to f32\n"
    body += " %r = arith.addf %u, %e : f32\n %z = arith.constant 0.0 : f32\n"
    body += " %v = arith.maximumf %r, %z : f32\n %t = arith.truncf %v : f32 to bf16"
    kind = f"{shape}x{wide}xbf16"
    return layers.text(layers.each(kind, body, (sums, "nhwc"), (b, "c"), (x, "nhwc")))


def stem(size: int, channels: int) -> str:
    """ResNet-50's: 7 x 7 with stride 2 of three channels, bias, relu, and max pooling."""
    layers = Layers()
    half, quarter = size // 2, size // 4
    x = layers.argument("x", f"1x{size}x{size}x3xbf16")
    w = layers.argument("w", f"7x7x3x{channels}xbf16")
    b = layers.argument("b", f"{channels}xf32")
    sums = layers.conv(x, w, f"1x{half}x{half}x{channels}xf32", stride=2, pad=3)
    body = "%u = arith.addf %s, %s1 : f32\n %z = arith.constant 0.0 : f32\n"
    body += " %v = arith.maximumf %u, %z : f32\n %t = arith.truncf %v : f32 to bf16"
    kind = f"1x{half}x{half}x{channels}xbf16"
    h = layers.each(kind, body, (sums, "nhwc"), (b, "c"))
    return layers.text(layers.max_pool(h, f"1x{quarter}x{quarter}x{channels}xbf16"))


def classifier(n: int, size: int, channels: int, classes: int) -> str:
    """The head of a ResNet: 3 x 3, bias, relu, the mean of each channel, and a linear layer."""
    layers = Layers()
    x = layers.argument("x", f"{n}x{size}x{size}x{channels}xbf16")
    w = layers.argument("w", f"3x3x{channels}x{channels}xbf16")
    b = layers.argument("b", f"{channels}xf32")
    v = layers.argument("w2", f"{channels}x{classes}xbf16")
    c = layers.argument("b2", f"{classes}xf32")
    kind = f"{n}x{size}x{size}x{channels}xbf16"
    sums = layers.conv(x, w, kind.replace("bf16", "f32"), pad=1)
    body = "%u = arith.addf %s, %s1 : f32\n %z = arith.constant 0.0 : f32\n"
    body += " %v = arith.maximumf %u, %z : f32\n %t = arith.truncf %v : f32 to bf16"
    h = layers.mean(layers.each(kind, body, (sums, "nhwc"), (b, "c")))
    return layers.text(layers.bias(layers.product(h, v, f"{n}x{classes}xf32"), c))


def patches(n: int, size: int, patch: int, channels: int, width: int, out: int) -> str:
    """A ViT's patch embedding, a convolution whose stride is its size, and a projection."""
    layers = Layers()
    x = layers.argument("x", f"{n}x{size}x{size}x{channels}xbf16")
    w = layers.argument("w", f"{patch}x{patch}x{channels}x{width}xbf16")
    v = layers.argument("w2", f"{width}x{out}xbf16")
    side, tokens = size // patch, n * (size // patch) ** 2
    image, rows = f"{n}x{side}x{side}x{width}xbf16", f"{tokens}x{width}xbf16"
    sums = layers.conv(x, w, image.replace("bf16", "f32"), stride=patch)
    narrow = "%t = arith.truncf %s : f32 to bf16"
    h = layers.each(image, narrow, (sums, "nhwc"))
    flat = layers.op(
        f"tensor.collapse_shape %{h} [[0, 1, 2], [3]]",
        rows,
        f": tensor<{image}> into tensor<{rows}>",
    )
    return layers.text(layers.product(flat, v, f"{tokens}x{out}xf32"))


BIAS_RELU = """%u = arith.addf %s, %s1 : f32
 %z = arith.constant 0.0 : f32
 %v = arith.maximumf %u, %z : f32
 %t = arith.truncf %v : f32 to bf16"""


def separable(size: int, c: int, k: int) -> str:
    """MobileNet's: 3 x 3 depthwise and 1 x 1, each with bias and relu."""
    layers = Layers()
    shape = f"1x{size}x{size}"
    x, w = layers.argument("x", f"{shape}x{c}xbf16"), layers.argument("w0", f"3x3x{c}xbf16")
    b, v = layers.argument("b0", f"{c}xf32"), layers.argument("w1", f"1x1x{c}x{k}xbf16")
    d = layers.argument("b1", f"{k}xf32")
    sums = layers.named_conv(
        "depthwise_conv_2d_nhwc_hwc", layers.padded(x, 1, "0.0"), w, f"{shape}x{c}xf32"
    )
    h = layers.each(f"{shape}x{c}xbf16", BIAS_RELU, (sums, "nhwc"), (b, "c"))
    sums = layers.conv(h, v, f"{shape}x{k}xf32")
    return layers.text(layers.each(f"{shape}x{k}xbf16", BIAS_RELU, (sums, "nhwc"), (d, "c")))


def grouped_pair(size: int, c: int, groups: int, each: int) -> str:
    """ResNeXt's 1 x 1 and grouped 3 x 3, each with bias and relu; `each`: channels of a group."""
    layers = Layers()
    wide, shape = groups * each, f"1x{size}x{size}"
    x, w = layers.argument("x", f"{shape}x{c}xbf16"), layers.argument("w0", f"1x1x{c}x{wide}xbf16")
    b = layers.argument("b0", f"{wide}xf32")
    v = layers.argument("w1", f"{groups}x{each}x3x3x{each}xbf16")
    d = layers.argument("b1", f"{wide}xf32")
    sums = layers.conv(x, w, f"{shape}x{wide}xf32")
    h = layers.each(f"{shape}x{wide}xbf16", BIAS_RELU, (sums, "nhwc"), (b, "c"))
    padded, inner = layers.padded(h, 1, "0.0"), f"1x{size + 2}x{size + 2}"
    split = f"{inner}x{groups}x{each}xbf16"
    images = layers.op(
        "tensor.expand_shape",
        split,
        f"%{padded} [[0], [1], [2], [3, 4]] output_shape "
        f"[1, {size + 2}, {size + 2}, {groups}, {each}] : tensor<{inner}x{wide}xbf16> into "
        f"tensor<{split}>",
    )
    sums = layers.named_conv("conv_2d_nhwgc_gfhwc", images, v, f"{shape}x{groups}x{each}xf32")
    flat = layers.op(
        "tensor.collapse_shape",
        f"{shape}x{wide}xf32",
        f"%{sums} [[0], [1], [2], [3, 4]] : tensor<{shape}x{groups}x{each}xf32> into "
        f"tensor<{shape}x{wide}xf32>",
    )
    return layers.text(layers.each(f"{shape}x{wide}xbf16", BIAS_RELU, (flat, "nhwc"), (d, "c")))


def anything(seed: int) -> str:
    """Square layers at random: products, biases, activations, residuals, transposes, softmax.

    Each op reads any tensors made before it; one or two are returned.
    """
    draw = random.Random(seed)
    layers, n = Layers(), 32
    wide, narrow = f"{n}x{n}xf32", f"{n}x{n}xbf16"
    inputs = [layers.argument(f"w{k}", narrow) for k in range(3)]
    bias = layers.argument("b", f"{n}xf32")
    rounded, sums = list(inputs), [layers.product(*draw.sample(inputs, 2), wide)]
    for _ in range(draw.randint(2, 7)):
        x, y = draw.choice(sums), draw.choice(sums)
        match draw.randrange(8):
            case 0 | 1:
                sums.append(layers.product(draw.choice(rounded), draw.choice(rounded), wide))
            case 2:
                sums.append(layers.bias(x, bias, draw.choice(["", RELU])))
            case 3:
                add = "%t = arith.addf %s, %s1 : f32"
                sums.append(layers.each(wide, add, (x, "mn"), (y, draw.choice(["mn", "nm"]))))
            case 4:
                sums.append(layers.softmax(x))
            case 5:
                most = "%t = arith.maximumf %s, %o : f32"
                rows = layers.reduced(f"{n}xf32", most, "0xFF800000", (x, "mn"))
                sub = "%t = arith.subf %s, %s1 : f32"
                sums.append(layers.each(wide, sub, (y, "mn"), (rows, draw.choice("mn"))))
            case _:
                rounded.append(layers.rounded(x))
    results = [sums[-1]]
    if len(sums) > 1 and draw.random() < 0.5:
        results.append(draw.choice(sums[:-1]))
    return layers.text(*results)
