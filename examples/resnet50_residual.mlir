// The end of a residual block: relu(conv2d(x, w) + bias + residual), one kernel.
//
//   tc-opt examples/resnet50_residual.mlir --pipeline=conv-implicit-gemm --validate-each --emit=ptx
//
// ResNet-50, stage conv2_x: 56x56x64 -> 56x56x256, 1x1, batch 1, batch norm folded into filter and bias. The sums are
// rounded once, behind the relu; unfused they would go to memory and back, 3.2 MB each way in f32.

#pixel = affine_map<(n, p, q, k) -> (n, p, q, k)>
#channel = affine_map<(n, p, q, k) -> (k)>

func.func @expand(%x: tensor<1x56x56x64xf16>, %w: tensor<1x1x64x256xf16>, %bias: tensor<256xf32>,
    %residual: tensor<1x56x56x256xf16>) -> tensor<1x56x56x256xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x56x56x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x56x56x256xf32>) -> tensor<1x56x56x256xf32>
  %sums = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x56x56x64xf16>, tensor<1x1x64x256xf16>)
      outs(%init : tensor<1x56x56x256xf32>) -> tensor<1x56x56x256xf32>
  %out = tensor.empty() : tensor<1x56x56x256xf16>
  %y = linalg.generic {indexing_maps = [#pixel, #channel, #pixel, #pixel],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sums, %bias, %residual
          : tensor<1x56x56x256xf32>, tensor<256xf32>, tensor<1x56x56x256xf16>)
      outs(%out : tensor<1x56x56x256xf16>) {
  ^bb0(%sum: f32, %b: f32, %r: f16, %o: f16):
    %biased = arith.addf %sum, %b : f32
    %wide = arith.extf %r : f16 to f32
    %added = arith.addf %biased, %wide : f32
    %relu = arith.maximumf %added, %zero : f32
    %half = arith.truncf %relu : f32 to f16
    linalg.yield %half : f16
  } -> tensor<1x56x56x256xf16>
  return %y : tensor<1x56x56x256xf16>
}
