func.func @conv(%x: tensor<1x96x184x16xf16>, %w: tensor<1x1x16x128xf16>) -> tensor<1x96x184x128xf32> {
  %f0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x96x184x128xf32>
  %z = linalg.fill ins(%f0 : f32) outs(%e : tensor<1x96x184x128xf32>) -> tensor<1x96x184x128xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x96x184x16xf16>, tensor<1x1x16x128xf16>) outs(%z : tensor<1x96x184x128xf32>) -> tensor<1x96x184x128xf32>
  return %y : tensor<1x96x184x128xf32>
}
