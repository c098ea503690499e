// Two odd-sized images, 5x5 filter stored as FHWC, tails in C and K_out, bf16 in and out.
//
//   tc-opt examples/conv_5x5_bf16.mlir --pipeline=conv-shift-reuse --validate-each --emit=pretty

#id = affine_map<(n, p, q, k) -> (n, p, q, k)>

func.func @conv(%x: tensor<2x17x35x40xbf16>, %w: tensor<72x5x5x40xbf16>) -> tensor<2x17x35x72xbf16> {
  %zero = arith.constant 0.0 : bf16
  %padded = tensor.pad %x low[0, 2, 2, 0] high[0, 2, 2, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : bf16
  } : tensor<2x17x35x40xbf16> to tensor<2x21x39x40xbf16>
  %empty = tensor.empty() : tensor<2x17x35x72xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<2x17x35x72xf32>) -> tensor<2x17x35x72xf32>
  %sum = linalg.conv_2d_nhwc_fhwc
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<2x21x39x40xbf16>, tensor<72x5x5x40xbf16>)
      outs(%init : tensor<2x17x35x72xf32>) -> tensor<2x17x35x72xf32>
  %narrow = tensor.empty() : tensor<2x17x35x72xbf16>
  %out = linalg.generic
      {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum : tensor<2x17x35x72xf32>) outs(%narrow : tensor<2x17x35x72xbf16>) {
  ^bb0(%in: f32, %o: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<2x17x35x72xbf16>
  return %out : tensor<2x17x35x72xbf16>
}
