// A softmax between two products becomes tc.attention; a remark says which op is not attention.
// RUN: %tc-opt %s --split-input-file --raise-attention | %filecheck %s
// RUN: %tc-opt %s --split-input-file --raise-attention --verify-diagnostics
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %arg0: tensor<1x2x8x16xf16>, %arg1: tensor<1x2x16x16xf16>, %arg2: tensor<1x2x16x16xf16>)
// CHECK-NEXT: %0:2 = "tc.attention"(%arg0, %arg1, %arg2) ({
// CHECK-NEXT: }) {causal_offset = 8 : i64, kv_layout = "bhnd", out_layout = "bhmd", q_layout = "bhmd", scale = 2.500000e-01 : f32}
// CHECK-NEXT: return %0#0
module attributes {tc.target = "sm_90a"} {
func.func @f(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x16x16xf16>, %v: tensor<1x2x16x16xf16>) -> tensor<1x2x8x16xf16> {
  %zero = arith.constant 0.0 : f32
  %nothing = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %minus = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.25 : f32
  %true = arith.constant true
  
  %es = tensor.empty() : tensor<1x2x8x16xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>,
      affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<1x2x8x16xf16>, tensor<1x2x16x16xf16>) outs(%fs : tensor<1x2x8x16xf32>) {
  ^bb0(%x: f16, %y: f16, %acc: f32):
    %xx = arith.extf %x : f16 to f32
    %yy = arith.extf %y : f16 to f32
    %xy = arith.mulf %xx, %yy : f32
    %sum = arith.addf %acc, %xy : f32
    linalg.yield %sum : f32
  } -> tensor<1x2x8x16xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x2x8x16xf32>) outs(%es : tensor<1x2x8x16xf32>) {
  ^bb0(%in: f32, %o: f32):
    %scaled = arith.mulf %in, %scale : f32
    
    %row = linalg.index 2 : index
    %key = linalg.index 3 : index
    %off = arith.constant 8 : index
    %last = arith.addi %row, %off : index
    %kept = arith.cmpi sle, %key, %last : index
    %masked = arith.select %kept, %scaled, %minus : f32
    linalg.yield %masked : f32
  } -> tensor<1x2x8x16xf32>

  %ea = tensor.empty() : tensor<1x2x8xf32>
  %fm = linalg.fill ins(%minus : f32) outs(%ea : tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  %most = linalg.reduce { arith.maximumf } ins(%t : tensor<1x2x8x16xf32>) outs(%fm : tensor<1x2x8xf32>) dimensions = [3]
  %pw = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, h, i)>, affine_map<(b, h, i, j) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %most : tensor<1x2x8x16xf32>, tensor<1x2x8xf32>) outs(%es : tensor<1x2x8x16xf32>) {
  ^bb0(%in: f32, %mm: f32, %o: f32):
    %x = arith.subf %in, %mm : f32
    %p = math.exp %x : f32
    linalg.yield %p : f32
  } -> tensor<1x2x8x16xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  %total = linalg.reduce { arith.addf } ins(%pw : tensor<1x2x8x16xf32>) outs(%fl : tensor<1x2x8xf32>) dimensions = [3]
  %w = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, h, i)>, affine_map<(b, h, i, j) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%pw, %total : tensor<1x2x8x16xf32>, tensor<1x2x8xf32>) outs(%es : tensor<1x2x8x16xf32>) {
  ^bb0(%p: f32, %l: f32, %o: f32):
    %w = arith.divf %p, %l : f32
    linalg.yield %w : f32
  } -> tensor<1x2x8x16xf32>
  %eo = tensor.empty() : tensor<1x2x8x16xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, h, i, e, j) -> (b, h, i, j)>,
      affine_map<(b, h, i, e, j) -> (b, h, j, e)>, affine_map<(b, h, i, e, j) -> (b, h, i, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<1x2x8x16xf32>, tensor<1x2x16x16xf16>) outs(%fo : tensor<1x2x8x16xf32>) {
  ^bb0(%x: f32, %y: f16, %acc: f32):
    %yy = arith.extf %y : f16 to f32
    %xy = arith.mulf %x, %yy : f32
    %sum = arith.addf %acc, %xy : f32
    linalg.yield %sum : f32
  } -> tensor<1x2x8x16xf32>
  %er = tensor.empty() : tensor<1x2x8x16xf16>
  // expected-remark@+1 {{raised to tc.attention: 1 x 2 heads, 8 rows, 16 keys, 16 elements, scale 0.25, keys up to row +8; exponentials are rounded to f16}}
  %y = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o : tensor<1x2x8x16xf32>) outs(%er : tensor<1x2x8x16xf16>) {
  ^bb0(%in: f32, %unread: f16):
    %z = arith.truncf %in : f32 to f16
    linalg.yield %z : f16
  } -> tensor<1x2x8x16xf16>
  return %y : tensor<1x2x8x16xf16>
}
}

// -----

// CHECK-LABEL: func.func @biased(
// CHECK-NOT: tc.attention
// CHECK: math.exp
module attributes {tc.target = "sm_90a"} {
func.func @biased(%q: tensor<1x2x8x16xf16>, %k: tensor<1x2x16x16xf16>, %v: tensor<1x2x16x16xf16>, %bias: tensor<8x16xf64>) -> tensor<1x2x8x16xf16> {
  %zero = arith.constant 0.0 : f32
  %nothing = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %minus = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.25 : f32
  %true = arith.constant true
  
  %es = tensor.empty() : tensor<1x2x8x16xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>,
      affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<1x2x8x16xf16>, tensor<1x2x16x16xf16>) outs(%fs : tensor<1x2x8x16xf32>) {
  ^bb0(%x: f16, %y: f16, %acc: f32):
    %xx = arith.extf %x : f16 to f32
    %yy = arith.extf %y : f16 to f32
    %xy = arith.mulf %xx, %yy : f32
    %sum = arith.addf %acc, %xy : f32
    linalg.yield %sum : f32
  } -> tensor<1x2x8x16xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (i, j)>, affine_map<(b, h, i, j) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %bias : tensor<1x2x8x16xf32>,  tensor<8x16xf64>) outs(%es : tensor<1x2x8x16xf32>) {
  ^bb0(%in: f32, %m: f64, %o: f32):
    %scaled = arith.mulf %in, %scale : f32
    %b = arith.truncf %m : f64 to f32
    // expected-remark@+1 {{not raised to tc.attention: expected scores of numbers of tensors with an index for each batch, head, row and key, or for some of these, of f32, f16, bf16, i1, i32, got one of f64}}
    %masked = arith.addf %scaled, %b : f32
    linalg.yield %masked : f32
  } -> tensor<1x2x8x16xf32>

  %ea = tensor.empty() : tensor<1x2x8xf32>
  %fm = linalg.fill ins(%minus : f32) outs(%ea : tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  %most = linalg.reduce { arith.maximumf } ins(%t : tensor<1x2x8x16xf32>) outs(%fm : tensor<1x2x8xf32>) dimensions = [3]
  %pw = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, h, i)>, affine_map<(b, h, i, j) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %most : tensor<1x2x8x16xf32>, tensor<1x2x8xf32>) outs(%es : tensor<1x2x8x16xf32>) {
  ^bb0(%in: f32, %mm: f32, %o: f32):
    %x = arith.subf %in, %mm : f32
    %p = math.exp %x : f32
    linalg.yield %p : f32
  } -> tensor<1x2x8x16xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%ea : tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  %total = linalg.reduce { arith.addf } ins(%pw : tensor<1x2x8x16xf32>) outs(%fl : tensor<1x2x8xf32>) dimensions = [3]
  %w = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, h, i)>, affine_map<(b, h, i, j) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%pw, %total : tensor<1x2x8x16xf32>, tensor<1x2x8xf32>) outs(%es : tensor<1x2x8x16xf32>) {
  ^bb0(%p: f32, %l: f32, %o: f32):
    %w = arith.divf %p, %l : f32
    linalg.yield %w : f32
  } -> tensor<1x2x8x16xf32>
  %eo = tensor.empty() : tensor<1x2x8x16xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, h, i, e, j) -> (b, h, i, j)>,
      affine_map<(b, h, i, e, j) -> (b, h, j, e)>, affine_map<(b, h, i, e, j) -> (b, h, i, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<1x2x8x16xf32>, tensor<1x2x16x16xf16>) outs(%fo : tensor<1x2x8x16xf32>) {
  ^bb0(%x: f32, %y: f16, %acc: f32):
    %yy = arith.extf %y : f16 to f32
    %xy = arith.mulf %x, %yy : f32
    %sum = arith.addf %acc, %xy : f32
    linalg.yield %sum : f32
  } -> tensor<1x2x8x16xf32>
  %er = tensor.empty() : tensor<1x2x8x16xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o : tensor<1x2x8x16xf32>) outs(%er : tensor<1x2x8x16xf16>) {
  ^bb0(%in: f32, %unread: f16):
    %z = arith.truncf %in : f32 to f16
    linalg.yield %z : f16
  } -> tensor<1x2x8x16xf16>
  return %y : tensor<1x2x8x16xf16>
}
}
