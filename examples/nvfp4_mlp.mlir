// A gated MLP in NVFP4: y = down((silu(x Wgᵀ) * (x Wuᵀ)) in NVFP4), two kernels. The first quantises what the
// second reads: packed codes, and scales in blocks of 128 x 4.
//
//   tc-opt examples/nvfp4_mlp.mlir --pipeline=gemm --validate-each --emit=ptx
//
// The rows of %w alternate: row 2h is gate h, row 2h + 1 is value h. %alpha is the product of the global scales of
// %x and %w, %norm the reciprocal of the global scale of what is between, %beta that global scale times that of %v.
func.func @mlp(%x: tensor<136x64xf4E2M1FN>, %sx: tensor<2x1x512xf8E4M3FN>,
               %w: tensor<256x64xf4E2M1FN>, %sw: tensor<2x1x512xf8E4M3FN>, %alpha: tensor<f32>,
               %norm: tensor<f32>,
               %v: tensor<96x128xf4E2M1FN>, %sv: tensor<1x2x512xf8E4M3FN>, %beta: tensor<f32>)
    -> tensor<136x96xf16> {
  %sums = "tc.block_scaled_matmul"(%x, %sx, %w, %sw, %alpha) {block = 16 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}
      : (tensor<136x64xf4E2M1FN>, tensor<2x1x512xf8E4M3FN>, tensor<256x64xf4E2M1FN>,
         tensor<2x1x512xf8E4M3FN>, tensor<f32>) -> tensor<136x256xf32>
  %h = "tc.epilogue"(%sums) ({
  ^bb0(%gate: f32, %value: f32):
    %one = arith.constant 1.0 : f32
    %negative = arith.negf %gate : f32
    %e = math.exp %negative : f32
    %d = arith.addf %one, %e : f32
    %silu = arith.divf %gate, %d : f32
    %gated = arith.mulf %silu, %value : f32
    "tc.yield"(%gated) : (f32) -> ()
  }) : (tensor<136x256xf32>) -> tensor<136x128xf32>
  %q, %sq = "tc.quantise_blocks"(%h, %norm) {operandSegmentSizes = array<i32: 1, 1>}
      : (tensor<136x128xf32>, tensor<f32>)
      -> (tensor<136x128xf4E2M1FN>, tensor<2x2x512xf8E4M3FN>)
  %y = "tc.block_scaled_matmul"(%q, %sq, %v, %sv, %beta) {block = 16 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}
      : (tensor<136x128xf4E2M1FN>, tensor<2x2x512xf8E4M3FN>, tensor<96x128xf4E2M1FN>,
         tensor<1x2x512xf8E4M3FN>, tensor<f32>) -> tensor<136x96xf16>
  return %y : tensor<136x96xf16>
}
