func.func @product(%a: tensor<512x512xf16>, %b: tensor<512x512xf16>) -> tensor<512x512xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<512x512xf16>, tensor<512x512xf16>) -> tensor<512x512xf32>
  return %c : tensor<512x512xf32>
}
