func.func @product(%a: tensor<128x64xf16>, %b: tensor<64x64xf16>) -> tensor<128x64xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x64xf32>) -> tensor<128x64xf32>
  %sum = linalg.matmul ins(%a, %b : tensor<128x64xf16>, tensor<64x64xf16>)
      outs(%start : tensor<128x64xf32>) -> tensor<128x64xf32>
  %out = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xf16>
  return %out : tensor<128x64xf16>
}
