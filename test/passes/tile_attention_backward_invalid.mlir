// RUN: %tc-opt --split-input-file --verify-diagnostics --target=sm_90a --tile-attention-backward %s
// RUN: %exits 3 %tc-opt --target=sm_90a --tile-attention-backward='{rows=32}' %s 2>&1 | %filecheck --check-prefix=ROWS %s
// RUN: %exits 3 %tc-opt --target=sm_90a --tile-attention-backward='{block=24}' %s 2>&1 | %filecheck --check-prefix=BLOCK %s
// RUN: %exits 3 %tc-opt --target=sm_100a --tile-attention-backward='{rows=64}' %S/tile_attention_backward.mlir 2>&1 | %filecheck --check-prefix=TMEM %s

// ROWS: error: rows, the queries of a tile, must be one of 64, 128, 192, or 0 to choose it, got 32: a warpgroup computes 64 rows, and the registers of an SM suffice for three warpgroups; take rows=128
// BLOCK: error: block, the keys of a step, must be a multiple of 16 (K of the second product) and at most 256, or 0 to choose it, got 24; take block=64
// TMEM: error: rows must be 128 and block must be one of 16, 32, 64, 128 for sm_100a, got 64 and 64 (columns of one tcgen05.ld, PTX ISA 9.7.16.8); leave both out

func.func @gradients(%q: tensor<1x2x256x40xf16>, %k: tensor<1x1x256x40xf16>, %v: tensor<1x1x256x40xf16>,
                     %dout: tensor<1x2x256x40xf16>, %lse: tensor<1x2x256xf32>, %delta: tensor<1x2x256xf32>) -> tensor<1x2x256x40xf16> {
  // expected-error @+1 {{head sizes must be a multiple of 16 in [16, 128], got 40 (steps of K of 32 bytes; registers of a thread, or columns of tensor memory, for two sums); pad the heads with zeros}}
  %dq = "tc.attention_backward"(%q, %k, %v, %dout, %lse, %delta) {of = "q", scale = 0.125 : f32,
      q_layout = "bhmd", kv_layout = "bhnd"}
      : (tensor<1x2x256x40xf16>, tensor<1x1x256x40xf16>, tensor<1x1x256x40xf16>, tensor<1x2x256x40xf16>,
         tensor<1x2x256xf32>, tensor<1x2x256xf32>)
      -> tensor<1x2x256x40xf16>
  return %dq : tensor<1x2x256x40xf16>
}
