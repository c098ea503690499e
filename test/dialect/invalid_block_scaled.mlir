// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.block_scaled_matmul/rank
func.func @f(%a: tensor<3x256x64xf4E2M1FN>, %sa: tensor<3x256x4xf8E4M3FN>,
             %b: tensor<3x64xf4E2M1FN>, %sb: tensor<3x4xf8E4M3FN>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<3x256x64xf4E2M1FN>, tensor<3x256x4xf8E4M3FN>, tensor<3x64xf4E2M1FN>,
          tensor<3x4xf8E4M3FN>) -> tensor<3x256xf32>
  return
}

// -----

// illegal: tc.block_scaled_matmul/rank
func.func @f(%a: tensor<3x256x64xf4E2M1FN>, %sa: tensor<3x256x4xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E4M3FN>) {
  // expected-error @+1 {{tc.block_scaled_matmul: a must be [M,K] or [L,M,K] and b [N,K] or [L,N,K], or of one dimension less for vectors, got ranks 3 and 1}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<3x256x64xf4E2M1FN>, tensor<3x256x4xf8E4M3FN>, tensor<64xf4E2M1FN>,
          tensor<4xf8E4M3FN>) -> tensor<256xf16>
  return
}

// -----

// legal: tc.block_scaled_matmul/static
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x4xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E4M3FN>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x4xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>)
          -> tensor<256xf16>
  return
}

// -----

// illegal: tc.block_scaled_matmul/static
func.func @f(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x4xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E4M3FN>) {
  // expected-error @+1 {{tc.block_scaled_matmul: shapes must be static, got tensor<?x64xf4E2M1FN>: tensor maps and the grid are fixed at compile time}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>)
          -> tensor<?xf16>
  return
}

// -----

// legal: tc.block_scaled_matmul/scale-layouts
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<2x1x512xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E4M3FN>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "row_major",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<2x1x512xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>)
          -> tensor<256xf16>
  return
}

// -----

// illegal: tc.block_scaled_matmul/scale-layouts
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<2x1x512xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E4M3FN>) {
  // expected-error @+1 {{tc.block_scaled_matmul: a_scale_layout and b_scale_layout must be "row_major" or "blocked_128x4", got "blocked" and "row_major"}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "blocked",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<2x1x512xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>)
          -> tensor<256xf16>
  return
}

// -----

// legal: tc.block_scaled_matmul/elements
func.func @f(%a: tensor<256x64xf8E5M2>, %sa: tensor<256x2xf8E8M0FNU>, %b: tensor<8x64xf6E3M2FN>,
             %sb: tensor<8x2xf8E8M0FNU>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 32 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf8E5M2>, tensor<256x2xf8E8M0FNU>, tensor<8x64xf6E3M2FN>,
          tensor<8x2xf8E8M0FNU>) -> tensor<256x8xf32>
  return
}

// -----

// illegal: tc.block_scaled_matmul/elements
func.func @f(%a: tensor<256x64xf16>, %sa: tensor<256x2xf8E8M0FNU>, %b: tensor<8x64xf8E4M3FN>,
             %sb: tensor<8x2xf8E8M0FNU>) {
  // expected-error @+1 {{tc.block_scaled_matmul: a and b must be of f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E4M3FN, f8E5M2, got f16 and f8E4M3FN: the block-scaled kinds of tcgen05.mma multiply no other; quantise the operand first}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 32 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf16>, tensor<256x2xf8E8M0FNU>, tensor<8x64xf8E4M3FN>, tensor<8x2xf8E8M0FNU>)
          -> tensor<256x8xf32>
  return
}

// -----

// legal: tc.block_scaled_matmul/scale-types
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x4xf8E8M0FNU>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E8M0FNU>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x4xf8E8M0FNU>, tensor<64xf4E2M1FN>, tensor<4xf8E8M0FNU>)
          -> tensor<256xf16>
  return
}

// -----

// illegal: tc.block_scaled_matmul/scale-types
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x4xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E8M0FNU>) {
  // expected-error @+1 {{tc.block_scaled_matmul: scales must both be f8E8M0FNU (ue8m0) or both f8E4M3FN (ue4m3), got f8E4M3FN and f8E8M0FNU: the instruction descriptor has one scale type for both operands}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x4xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E8M0FNU>)
          -> tensor<256xf16>
  return
}

// -----

// legal: tc.block_scaled_matmul/block
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x2xf8E8M0FNU>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<2xf8E8M0FNU>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 32 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x2xf8E8M0FNU>, tensor<64xf4E2M1FN>, tensor<2xf8E8M0FNU>)
          -> tensor<256xf16>
  return
}

// -----

// illegal: tc.block_scaled_matmul/block
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x1xf8E8M0FNU>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<1xf8E8M0FNU>) {
  // expected-error @+1 {{tc.block_scaled_matmul: block must be 16 or 32 values of k to a scale, got 64: the scale vector sizes of tcgen05.mma}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 64 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x1xf8E8M0FNU>, tensor<64xf4E2M1FN>, tensor<1xf8E8M0FNU>)
          -> tensor<256xf16>
  return
}

// -----

// legal: tc.block_scaled_matmul/ue4m3-block
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x4xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E4M3FN>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x4xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>)
          -> tensor<256xf16>
  return
}

// -----

// illegal: tc.block_scaled_matmul/ue4m3-block
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x2xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<2xf8E4M3FN>) {
  // expected-error @+1 {{tc.block_scaled_matmul: scales of type f8E4M3FN (ue4m3) must have block 16, got 32: block 32 takes f8E8M0FNU (ue8m0) only; repeat each scale for two blocks of 16}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 32 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x2xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<2xf8E4M3FN>)
          -> tensor<256xf16>
  return
}

// -----

// legal: tc.block_scaled_matmul/kind
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x2xf8E8M0FNU>, %b: tensor<8x64xf8E4M3FN>,
             %sb: tensor<8x2xf8E8M0FNU>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 32 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x2xf8E8M0FNU>, tensor<8x64xf8E4M3FN>,
          tensor<8x2xf8E8M0FNU>) -> tensor<256x8xf32>
  return
}

// -----

// illegal: tc.block_scaled_matmul/kind
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x4xf8E4M3FN>, %b: tensor<8x64xf8E4M3FN>,
             %sb: tensor<8x4xf8E4M3FN>) {
  // expected-error @+1 {{tc.block_scaled_matmul: no kind of tcgen05.mma multiplies f4E2M1FN by f8E4M3FN with f8E4M3FN scales, block 16; there are: any fp8, fp6 and fp4 mixed with f8E8M0FNU, block 32 (mxf8f6f4); f4E2M1FN with f8E8M0FNU, block 32 (mxf4); f4E2M1FN with f8E8M0FNU, block 32 (mxf4nvf4); f4E2M1FN with f8E4M3FN or f8E8M0FNU, block 16 (mxf4nvf4)}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x4xf8E4M3FN>, tensor<8x64xf8E4M3FN>,
          tensor<8x4xf8E4M3FN>) -> tensor<256x8xf32>
  return
}

// -----

// legal: tc.block_scaled_matmul/k
func.func @f(%a: tensor<256x48xf4E2M1FN>, %sa: tensor<256x3xf8E4M3FN>, %b: tensor<48xf4E2M1FN>,
             %sb: tensor<3xf8E4M3FN>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x48xf4E2M1FN>, tensor<256x3xf8E4M3FN>, tensor<48xf4E2M1FN>, tensor<3xf8E4M3FN>)
          -> tensor<256xf16>
  return
}

// -----

// illegal: tc.block_scaled_matmul/k
func.func @f(%a: tensor<256x56xf4E2M1FN>, %sa: tensor<256x3xf8E4M3FN>, %b: tensor<56xf4E2M1FN>,
             %sb: tensor<3xf8E4M3FN>) {
  // expected-error @+1 {{tc.block_scaled_matmul: a and b must have the same K, a multiple of the block 16, got 56 and 56: a scale belongs to 16 values; pad both with zeros}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x56xf4E2M1FN>, tensor<256x3xf8E4M3FN>, tensor<56xf4E2M1FN>, tensor<3xf8E4M3FN>)
          -> tensor<256xf16>
  return
}

// -----

// legal: tc.block_scaled_matmul/scale-shapes
func.func @f(%a: tensor<200x64xf4E2M1FN>, %sa: tensor<2x1x512xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<1x1x512xf8E4M3FN>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<200x64xf4E2M1FN>, tensor<2x1x512xf8E4M3FN>, tensor<64xf4E2M1FN>,
          tensor<1x1x512xf8E4M3FN>) -> tensor<200xbf16>
  return
}

// -----

// illegal: tc.block_scaled_matmul/scale-shapes
func.func @f(%a: tensor<200x64xf4E2M1FN>, %sa: tensor<200x4xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E4M3FN>) {
  // expected-error @+1 {{tc.block_scaled_matmul: a_scales must be [2, 1, 512] for a [200, 64] with block 16, blocked_128x4, got [200, 4]}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "row_major",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<200x64xf4E2M1FN>, tensor<200x4xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>)
          -> tensor<200xbf16>
  return
}

// -----

// legal: tc.block_scaled_matmul/global-scales
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x4xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E4M3FN>, %gb: tensor<f32>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb, %gb) {block = 16 : i64,
      a_scale_layout = "row_major", b_scale_layout = "row_major",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x4xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>,
          tensor<f32>) -> tensor<256xf16>
  return
}

// -----

// illegal: tc.block_scaled_matmul/global-scales
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x4xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E4M3FN>, %ga: tensor<1xf32>) {
  // expected-error @+1 {{tc.block_scaled_matmul: a_global and b_global must be tensor<f32>, got tensor<1xf32>: one factor for a whole operand}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb, %ga) {block = 16 : i64,
      a_scale_layout = "row_major", b_scale_layout = "row_major",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x4xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>,
          tensor<1xf32>) -> tensor<256xf16>
  return
}

// -----

// legal: tc.block_scaled_matmul/out
func.func @f(%a: tensor<256x64xf8E4M3FN>, %sa: tensor<256x2xf8E8M0FNU>, %b: tensor<8x64xf8E4M3FN>,
             %sb: tensor<8x2xf8E8M0FNU>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 32 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf8E4M3FN>, tensor<256x2xf8E8M0FNU>, tensor<8x64xf8E4M3FN>,
          tensor<8x2xf8E8M0FNU>) -> tensor<256x8xbf16>
  return
}

// -----

// illegal: tc.block_scaled_matmul/out
func.func @f(%a: tensor<256x64xf8E4M3FN>, %sa: tensor<256x2xf8E8M0FNU>, %b: tensor<8x64xf8E4M3FN>,
             %sb: tensor<8x2xf8E8M0FNU>) {
  // expected-error @+1 {{tc.block_scaled_matmul: out must be [256, 8] of f32, f16 or bf16 for these operands, got [8, 256] of bf16 (batches of a and b: [] and [])}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 32 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf8E4M3FN>, tensor<256x2xf8E8M0FNU>, tensor<8x64xf8E4M3FN>,
          tensor<8x2xf8E8M0FNU>) -> tensor<8x256xbf16>
  return
}

// -----

// legal: tc.scales_to_blocked/types
func.func @f(%s: tensor<130x5xf8E8M0FNU>) {
  %b = "tc.scales_to_blocked"(%s) : (tensor<130x5xf8E8M0FNU>) -> tensor<2x2x512xf8E8M0FNU>
  return
}

// -----

// illegal: tc.scales_to_blocked/types
func.func @f(%s: tensor<130x5xf8E8M0FNU>) {
  // expected-error @+1 {{tc.scales_to_blocked: scales must be static and of f8E8M0FNU or f8E4M3FN, and out of the same type, got tensor<130x5xf8E8M0FNU> and tensor<2x2x512xf8E4M3FN>}}
  %b = "tc.scales_to_blocked"(%s) : (tensor<130x5xf8E8M0FNU>) -> tensor<2x2x512xf8E4M3FN>
  return
}

// -----

// legal: tc.scales_to_blocked/out-shape
func.func @f(%s: tensor<3x5xf8E4M3FN>) {
  %b = "tc.scales_to_blocked"(%s) : (tensor<3x5xf8E4M3FN>) -> tensor<3x1x2x512xf8E4M3FN>
  return
}

// -----

// illegal: tc.scales_to_blocked/out-shape
func.func @f(%s: tensor<3x5xf8E4M3FN>) {
  // expected-error @+1 {{tc.scales_to_blocked: out must be [1, 2, 512], or [3, 1, 2, 512] where a row of scales is all that an operand has, got [3, 2, 512]}}
  %b = "tc.scales_to_blocked"(%s) : (tensor<3x5xf8E4M3FN>) -> tensor<3x2x512xf8E4M3FN>
  return
}

// -----

// legal: tc.block_scaled_matmul/out-layout
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x4xf8E4M3FN>, %b: tensor<8x64xf4E2M1FN>,
             %sb: tensor<8x4xf8E4M3FN>) {
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", out_layout = "nm",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x4xf8E4M3FN>, tensor<8x64xf4E2M1FN>,
          tensor<8x4xf8E4M3FN>) -> tensor<8x256xf32>
  return
}

// -----

// illegal: tc.block_scaled_matmul/out-layout
func.func @f(%a: tensor<256x64xf4E2M1FN>, %sa: tensor<256x4xf8E4M3FN>, %b: tensor<64xf4E2M1FN>,
             %sb: tensor<4xf8E4M3FN>) {
  // expected-error @+1 {{tc.block_scaled_matmul: out_layout must be "mn" or "nm", or left out, and with a vector b left out, got "nm"}}
  %y = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major",
      b_scale_layout = "row_major", out_layout = "nm",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<256x64xf4E2M1FN>, tensor<256x4xf8E4M3FN>, tensor<64xf4E2M1FN>,
          tensor<4xf8E4M3FN>) -> tensor<256xf32>
  return
}

// -----

// legal: tc.block_scaled_matmul/k-part
func.func @f(%a: tensor<8x512xf8E4M3FN>, %sa: tensor<1x4x512xf8E8M0FNU>, %b: tensor<16x512xf8E4M3FN>, %sb: tensor<1x4x512xf8E8M0FNU>, %g: tensor<f32>) {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 32 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", k_part = 128 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<8x512xf8E4M3FN>, tensor<1x4x512xf8E8M0FNU>, tensor<16x512xf8E4M3FN>, tensor<1x4x512xf8E8M0FNU>) -> tensor<4x8x16xf32>
  return
}

// -----

// illegal: tc.block_scaled_matmul/k-part
func.func @f(%a: tensor<8x512xf8E4M3FN>, %sa: tensor<1x4x512xf8E8M0FNU>, %b: tensor<16x512xf8E4M3FN>, %sb: tensor<1x4x512xf8E8M0FNU>, %g: tensor<f32>) {
  // expected-error @+1 {{tc.block_scaled_matmul: k_part must be an integer of at least 1 with out of f32 and without global scales, or left out, got 0 : i64 with out of f32 and 0 global scales: parts are scaled and rounded after they are summed}}
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 32 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", k_part = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<8x512xf8E4M3FN>, tensor<1x4x512xf8E8M0FNU>, tensor<16x512xf8E4M3FN>, tensor<1x4x512xf8E8M0FNU>) -> tensor<4x8x16xf32>
  return
}

// -----

// illegal: tc.block_scaled_matmul/k-part
func.func @f(%a: tensor<8x512xf8E4M3FN>, %sa: tensor<1x4x512xf8E8M0FNU>, %b: tensor<16x512xf8E4M3FN>, %sb: tensor<1x4x512xf8E8M0FNU>, %g: tensor<f32>) {
  // expected-error @+1 {{tc.block_scaled_matmul: k_part must be an integer of at least 1 with out of f32 and without global scales, or left out, got 128 : i64 with out of f32 and 1 global scales: parts are scaled and rounded after they are summed}}
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb, %g) {block = 32 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", k_part = 128 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>} : (tensor<8x512xf8E4M3FN>, tensor<1x4x512xf8E8M0FNU>, tensor<16x512xf8E4M3FN>, tensor<1x4x512xf8E8M0FNU>, tensor<f32>) -> tensor<4x8x16xf32>
  return
}

// -----

// illegal: tc.block_scaled_matmul/k-part
func.func @f(%a: tensor<8x512xf8E4M3FN>, %sa: tensor<1x4x512xf8E8M0FNU>, %b: tensor<16x512xf8E4M3FN>, %sb: tensor<1x4x512xf8E8M0FNU>, %g: tensor<f32>) {
  // expected-error @+1 {{tc.block_scaled_matmul: k_part must be an integer of at least 1 with out of f32 and without global scales, or left out, got 128 : i64 with out of f16 and 0 global scales: parts are scaled and rounded after they are summed}}
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 32 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", k_part = 128 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<8x512xf8E4M3FN>, tensor<1x4x512xf8E8M0FNU>, tensor<16x512xf8E4M3FN>, tensor<1x4x512xf8E8M0FNU>) -> tensor<4x8x16xf16>
  return
}
