// RUN: %tc-opt --split-input-file --verify-diagnostics --target=sm_90a --tile-attention-backward %s
// RUN: %exits 3 %tc-opt --target=sm_90a --tile-attention-backward='{rows=32}' %s 2>&1 | %filecheck --check-prefix=ROWS %s
// RUN: %exits 3 %tc-opt --target=sm_90a --tile-attention-backward='{block=24}' %s 2>&1 | %filecheck --check-prefix=BLOCK %s
// RUN: %exits 3 %tc-opt --target=sm_100a --tile-attention-backward='{rows=64}' %S/tile_attention_backward.mlir 2>&1 | %filecheck --check-prefix=TMEM %s

// ROWS: error: expected rows to be one of 64, 128, 192, or 0 to choose, got 32: a warpgroup has 64, and an SM registers for three; take rows=128
// BLOCK: error: expected block to be a multiple of 16 (K of the second product) up to 256, or 0 to choose, got 24; take block=64
// TMEM: error: expected rows to be 128 and block to be one of 16, 32, 64, 128 for sm_100a, got 64 and 64 (columns of one tcgen05.ld, PTX ISA 9.7.16.8); leave them out

func.func @gradients(%q: tensor<1x2x256x40xf16>, %k: tensor<1x1x256x40xf16>, %v: tensor<1x1x256x40xf16>,
                     %dout: tensor<1x2x256x40xf16>, %lse: tensor<1x2x256xf32>, %delta: tensor<1x2x256xf32>) -> tensor<1x2x256x40xf16> {
  // expected-error @+1 {{expected heads to be a multiple of 16 in [16, 128], got 40 (steps of K of 32 bytes; registers of a thread, or columns of tensor memory, for two sums); pad them with zeros}}
  %dq = "tc.attention_backward"(%q, %k, %v, %dout, %lse, %delta) {of = "q", scale = 0.125 : f32,
      q_layout = "bhmd", kv_layout = "bhnd"}
      : (tensor<1x2x256x40xf16>, tensor<1x1x256x40xf16>, tensor<1x1x256x40xf16>, tensor<1x2x256x40xf16>,
         tensor<1x2x256xf32>, tensor<1x2x256xf32>)
      -> tensor<1x2x256x40xf16>
  return %dq : tensor<1x2x256x40xf16>
}
