// Block quantisation in linalg becomes tc.quantise_blocks, whatever it is spelled with, where every f32 gives the same codes.
// RUN: %tc-opt %s --split-input-file --raise-quantise | %filecheck %s
// RUN: %tc-opt %s --split-input-file --raise-quantise --verify-diagnostics
// NVFP4: amax / 6 in its range, divided by the scale as stored; scales row-major.
// CHECK-LABEL: func.func @nvfp4(
// CHECK-NEXT: %[[Q:.*]]:2 = "tc.quantise_blocks"(%arg0) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x64xf32>) -> (tensor<40x64xf4E2M1FN>, tensor<40x4xf8E4M3FN>)
// CHECK-NEXT: return %[[Q]]#0, %[[Q]]#1
func.func @nvfp4(%x: tensor<40x64xf32>) -> (tensor<40x64xf4E2M1FN>, tensor<40x4xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %start = arith.constant 0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %lowest = arith.constant -6.0 : f32
  %largest = arith.constant 6.0 : f32
  %blocks = tensor.expand_shape %x [[0], [1, 2]] output_shape [40, 4, 16] : tensor<40x64xf32> into tensor<40x4x16xf32>
  %e0 = tensor.empty() : tensor<40x4x16xf32>
  %e1 = tensor.empty() : tensor<40x4xf32>
  %first = linalg.fill ins(%start : f32) outs(%e1 : tensor<40x4xf32>) -> tensor<40x4xf32>
  %largests = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%blocks : tensor<40x4x16xf32>) outs(%first : tensor<40x4xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %mag = math.absf %in : f32
    %next = arith.maximumf %mag, %acc : f32
    linalg.yield %next : f32
  } -> tensor<40x4xf32>
  %e2 = tensor.empty() : tensor<40x4xf8E4M3FN>
  %scales = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
      ins(%largests : tensor<40x4xf32>) outs(%e2 : tensor<40x4xf8E4M3FN>) {
  ^bb0(%amax: f32, %o: f8E4M3FN):
    %six = arith.constant 6.0 : f32
    %most = arith.constant 448.0 : f32
    %least = arith.constant 0.001953125 : f32
    %sixth = arith.divf %amax, %six : f32
    %capped = arith.minimumf %sixth, %most : f32
    %raised = arith.maximumf %capped, %least : f32
    %some = arith.cmpf ogt, %amax, %zero : f32
    %number = arith.select %some, %raised, %zero : f32
    %finite = arith.cmpf olt, %amax, %inf : f32
    %known = arith.select %finite, %number, %nan : f32
    %scale = arith.truncf %known : f32 to f8E4M3FN
    linalg.yield %scale : f8E4M3FN
  } -> tensor<40x4xf8E4M3FN>
  %e3 = tensor.empty() : tensor<40x4x16xf4E2M1FN>
  %q3 = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k)>, affine_map<(m, k, i) -> (m, k, i)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%blocks, %scales : tensor<40x4x16xf32>, tensor<40x4xf8E4M3FN>) outs(%e3 : tensor<40x4x16xf4E2M1FN>) {
  ^bb0(%y: f32, %narrow: f8E4M3FN, %o: f4E2M1FN):
    %wide = arith.extf %narrow : f8E4M3FN to f32
    %one = arith.constant 1.0 : f32
    %none = arith.cmpf oeq, %wide, %zero : f32
    %by = arith.select %none, %one, %wide : f32
    %quotient = arith.divf %y, %by : f32
    %low = arith.maximumf %quotient, %lowest : f32
    %clamped = arith.minimumf %low, %largest : f32
    %unknown = arith.cmpf uno, %wide, %wide : f32
    %q = arith.select %unknown, %zero, %clamped : f32
    %code = arith.truncf %q : f32 to f4E2M1FN
    linalg.yield %code : f4E2M1FN
  } -> tensor<40x4x16xf4E2M1FN>
  // expected-remark @+1 {{raised to tc.quantise_blocks: NVFP4, blocks of 16 f4E2M1FN, scales f8E4M3FN, row-major; every f32 gives the same codes}}
  %codes = tensor.collapse_shape %q3 [[0], [1, 2]]
      : tensor<40x4x16xf4E2M1FN> into tensor<40x64xf4E2M1FN>
  return %codes, %scales : tensor<40x64xf4E2M1FN>, tensor<40x4xf8E4M3FN>
}

// -----

// As torch-mlir spells it: the maximum keeps its dimension, clamp is cmpf and select; times norm.
// CHECK-LABEL: func.func @torch(
// CHECK-NEXT: %[[Q:.*]]:2 = "tc.quantise_blocks"(%arg0, %arg1) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<40x64xf32>, tensor<f32>)
// CHECK-NEXT: return %[[Q]]#0, %[[Q]]#1
func.func @torch(%x: tensor<40x64xf32>, %norm: tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<40x4xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %start = arith.constant 0xFF800000 : f32
  %inf = arith.constant 0x7F800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %lowest = arith.constant -6.0 : f32
  %largest = arith.constant 6.0 : f32
  %parts = tensor.expand_shape %x [[0], [1, 2]] output_shape [40, 4, 16] : tensor<40x64xf32> into tensor<40x4x16xf32>
  %e0 = tensor.empty() : tensor<40x4x16xf32>
  %blocks = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> ()>, affine_map<(m, k, i) -> (m, k, i)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%parts, %norm : tensor<40x4x16xf32>, tensor<f32>) outs(%e0 : tensor<40x4x16xf32>) {
  ^bb0(%in: f32, %by: f32, %o: f32):
    %p = arith.mulf %in, %by : f32
    linalg.yield %p : f32
  } -> tensor<40x4x16xf32>
  %magnitudes = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k, i)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%blocks : tensor<40x4x16xf32>) outs(%e0 : tensor<40x4x16xf32>) {
  ^bb0(%in: f32, %o: f32):
    %mag = math.absf %in : f32
    linalg.yield %mag : f32
  } -> tensor<40x4x16xf32>
  %e1 = tensor.empty() : tensor<40x4x1xf32>
  %first = linalg.fill ins(%start : f32) outs(%e1 : tensor<40x4x1xf32>) -> tensor<40x4x1xf32>
  %largests = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k, 0)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%magnitudes : tensor<40x4x16xf32>) outs(%first : tensor<40x4x1xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %next = arith.maximumf %in, %acc : f32
    linalg.yield %next : f32
  } -> tensor<40x4x1xf32>
  %e2 = tensor.empty() : tensor<40x4x1xf8E4M3FN>
  %stored = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k, i)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%largests : tensor<40x4x1xf32>) outs(%e2 : tensor<40x4x1xf8E4M3FN>) {
  ^bb0(%amax: f32, %o: f8E4M3FN):
    %six = arith.constant 6.0 : f64
    %narrow = arith.truncf %six : f64 to f32
    %most = arith.constant 448.0 : f32
    %least = arith.constant 0.001953125 : f32
    %sixth = arith.divf %amax, %narrow : f32
    %below = arith.cmpf ult, %sixth, %least : f32
    %raised = arith.select %below, %least, %sixth : f32
    %above = arith.cmpf ugt, %raised, %most : f32
    %capped = arith.select %above, %most, %raised : f32
    %none = arith.cmpf oeq, %amax, %zero : f32
    %number = arith.select %none, %amax, %capped : f32
    %wild = arith.cmpf uge, %amax, %inf : f32
    %known = arith.select %wild, %nan, %number : f32
    %scale = arith.truncf %known : f32 to f8E4M3FN
    linalg.yield %scale : f8E4M3FN
  } -> tensor<40x4x1xf8E4M3FN>
  %e3 = tensor.empty() : tensor<40x4x16xf4E2M1FN>
  %q3 = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k, 0)>, affine_map<(m, k, i) -> (m, k, i)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%blocks, %stored : tensor<40x4x16xf32>, tensor<40x4x1xf8E4M3FN>) outs(%e3 : tensor<40x4x16xf4E2M1FN>) {
  ^bb0(%y: f32, %narrow: f8E4M3FN, %o: f4E2M1FN):
    %wide = arith.extf %narrow : f8E4M3FN to f32
    %one = arith.constant 1.0 : f32
    %none = arith.cmpf oeq, %wide, %zero : f32
    %by = arith.select %none, %one, %wide : f32
    %quotient = arith.divf %y, %by : f32
    %low = arith.maximumf %quotient, %lowest : f32
    %clamped = arith.minimumf %low, %largest : f32
    %unknown = arith.cmpf uno, %wide, %wide : f32
    %q = arith.select %unknown, %zero, %clamped : f32
    %code = arith.truncf %q : f32 to f4E2M1FN
    linalg.yield %code : f4E2M1FN
  } -> tensor<40x4x16xf4E2M1FN>
  // expected-remark @+1 {{raised to tc.quantise_blocks: NVFP4, times norm, blocks of 16 f4E2M1FN, scales f8E4M3FN, row-major; every f32 gives the same codes}}
  %codes = tensor.collapse_shape %q3 [[0], [1, 2]]
      : tensor<40x4x16xf4E2M1FN> into tensor<40x64xf4E2M1FN>
  %scales = tensor.collapse_shape %stored [[0], [1, 2]] : tensor<40x4x1xf8E4M3FN> into tensor<40x4xf8E4M3FN>
  return %codes, %scales : tensor<40x64xf4E2M1FN>, tensor<40x4xf8E4M3FN>
}

// -----

// The biased exponent by a shift; scales brought to blocks of 128 x 4.
// CHECK-LABEL: func.func @shift(
// CHECK-NEXT: %[[Q:.*]]:2 = "tc.quantise_blocks"(%arg0) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x64xf32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E8M0FNU>)
// CHECK-NEXT: return %[[Q]]#0, %[[Q]]#1
func.func @shift(%x: tensor<40x64xf32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E8M0FNU>) {
  %zero = arith.constant 0.0 : f32
  %start = arith.constant 0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %lowest = arith.constant -6.0 : f32
  %largest = arith.constant 6.0 : f32
  %blocks = tensor.expand_shape %x [[0], [1, 2]] output_shape [40, 2, 32] : tensor<40x64xf32> into tensor<40x2x32xf32>
  %e0 = tensor.empty() : tensor<40x2x32xf32>
  %e1 = tensor.empty() : tensor<40x2xf32>
  %first = linalg.fill ins(%start : f32) outs(%e1 : tensor<40x2xf32>) -> tensor<40x2xf32>
  %largests = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%blocks : tensor<40x2x32xf32>) outs(%first : tensor<40x2xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %mag = math.absf %in : f32
    %next = arith.maximumf %mag, %acc : f32
    linalg.yield %next : f32
  } -> tensor<40x2xf32>
  %e2 = tensor.empty() : tensor<40x2xf8E8M0FNU>
  %rows = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
      ins(%largests : tensor<40x2xf32>) outs(%e2 : tensor<40x2xf8E8M0FNU>) {
  ^bb0(%amax: f32, %o: f8E8M0FNU):
    %bits = arith.bitcast %amax : f32 to i32
    %23 = arith.constant 23 : i32
    %exponent = arith.shrui %bits, %23 : i32
    %e = arith.constant 2 : i32
    %less = arith.subi %exponent, %e : i32
    %0 = arith.constant 0 : i32
    %biased = arith.maxsi %less, %0 : i32
    %255 = arith.constant 255 : i32
    %finite = arith.cmpi slt, %exponent, %255 : i32
    %known = arith.select %finite, %biased, %255 : i32
    %byte = arith.trunci %known : i32 to i8
    %scale = arith.bitcast %byte : i8 to f8E8M0FNU
    linalg.yield %scale : f8E8M0FNU
  } -> tensor<40x2xf8E8M0FNU>
  %e3 = tensor.empty() : tensor<40x2x32xf4E2M1FN>
  %q3 = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k)>, affine_map<(m, k, i) -> (m, k, i)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%blocks, %rows : tensor<40x2x32xf32>, tensor<40x2xf8E8M0FNU>) outs(%e3 : tensor<40x2x32xf4E2M1FN>) {
  ^bb0(%y: f32, %narrow: f8E8M0FNU, %o: f4E2M1FN):
    %wide = arith.extf %narrow : f8E8M0FNU to f32
    %one = arith.constant 1.0 : f32
    %none = arith.cmpf oeq, %wide, %zero : f32
    %by = arith.select %none, %one, %wide : f32
    %quotient = arith.divf %y, %by : f32
    %low = arith.maximumf %quotient, %lowest : f32
    %clamped = arith.minimumf %low, %largest : f32
    %unknown = arith.cmpf uno, %wide, %wide : f32
    %q = arith.select %unknown, %zero, %clamped : f32
    %code = arith.truncf %q : f32 to f4E2M1FN
    linalg.yield %code : f4E2M1FN
  } -> tensor<40x2x32xf4E2M1FN>
  // expected-remark @+1 {{raised to tc.quantise_blocks: MXFP4, blocks of 32 f4E2M1FN, scales f8E8M0FNU, in blocks of 128 x 4; every f32 gives the same codes}}
  %codes = tensor.collapse_shape %q3 [[0], [1, 2]]
      : tensor<40x2x32xf4E2M1FN> into tensor<40x64xf4E2M1FN>
  %pad = arith.constant 5.877471754111438e-39 : f8E8M0FNU
  %padded = tensor.pad %rows low[0, 0] high[88, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %pad : f8E8M0FNU
  } : tensor<40x2xf8E8M0FNU> to tensor<128x4xf8E8M0FNU>
  %five = tensor.expand_shape %padded [[0, 1, 2], [3, 4]]
      output_shape [1, 4, 32, 1, 4] : tensor<128x4xf8E8M0FNU> into tensor<1x4x32x1x4xf8E8M0FNU>
  %e4 = tensor.empty() : tensor<1x1x32x4x4xf8E8M0FNU>
  %turned = linalg.transpose ins(%five : tensor<1x4x32x1x4xf8E8M0FNU>) outs(%e4 : tensor<1x1x32x4x4xf8E8M0FNU>) permutation = [0, 3, 2, 1, 4]
  %scales = tensor.collapse_shape %turned [[0], [1], [2, 3, 4]]
      : tensor<1x1x32x4x4xf8E8M0FNU> into tensor<1x1x512xf8E8M0FNU>
  return %codes, %scales : tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E8M0FNU>
}

// -----

// The mantissa of amax masked, elements by the reciprocal.
// CHECK-LABEL: func.func @mask(
// CHECK-NEXT: %[[Q:.*]]:2 = "tc.quantise_blocks"(%arg0) {{.*}}-> (tensor<40x64xf8E4M3FN>, tensor<40x2xf8E8M0FNU>)
// CHECK-NEXT: return %[[Q]]#0, %[[Q]]#1
func.func @mask(%x: tensor<40x64xf32>) -> (tensor<40x64xf8E4M3FN>, tensor<40x2xf8E8M0FNU>) {
  %zero = arith.constant 0.0 : f32
  %start = arith.constant 0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %lowest = arith.constant -448.0 : f32
  %largest = arith.constant 448.0 : f32
  %blocks = tensor.expand_shape %x [[0], [1, 2]] output_shape [40, 2, 32] : tensor<40x64xf32> into tensor<40x2x32xf32>
  %e0 = tensor.empty() : tensor<40x2x32xf32>
  %e1 = tensor.empty() : tensor<40x2xf32>
  %first = linalg.fill ins(%start : f32) outs(%e1 : tensor<40x2xf32>) -> tensor<40x2xf32>
  %largests = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%blocks : tensor<40x2x32xf32>) outs(%first : tensor<40x2xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %mag = math.absf %in : f32
    %next = arith.maximumf %mag, %acc : f32
    linalg.yield %next : f32
  } -> tensor<40x2xf32>
  %e2 = tensor.empty() : tensor<40x2xf8E8M0FNU>
  %scales = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
      ins(%largests : tensor<40x2xf32>) outs(%e2 : tensor<40x2xf8E8M0FNU>) {
  ^bb0(%amax: f32, %o: f8E8M0FNU):
    %bits = arith.bitcast %amax : f32 to i32
    %mask = arith.constant 0x7F800000 : i32
    %kept = arith.andi %bits, %mask : i32
    %power = arith.bitcast %kept : i32 to f32
    %inverse = arith.constant 0.00390625 : f32
    %less = arith.mulf %power, %inverse : f32
    %least = arith.constant 5.877471754111438e-39 : f32
    %number = arith.maximumf %less, %least : f32
    %finite = arith.cmpf olt, %amax, %inf : f32
    %known = arith.select %finite, %number, %nan : f32
    %scale = arith.truncf %known : f32 to f8E8M0FNU
    linalg.yield %scale : f8E8M0FNU
  } -> tensor<40x2xf8E8M0FNU>
  %e3 = tensor.empty() : tensor<40x2x32xf8E4M3FN>
  %q3 = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k)>, affine_map<(m, k, i) -> (m, k, i)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%blocks, %scales : tensor<40x2x32xf32>, tensor<40x2xf8E8M0FNU>) outs(%e3 : tensor<40x2x32xf8E4M3FN>) {
  ^bb0(%y: f32, %narrow: f8E8M0FNU, %o: f8E4M3FN):
    %wide = arith.extf %narrow : f8E8M0FNU to f32
    %one = arith.constant 1.0 : f32
    %by = arith.divf %one, %wide : f32
    %quotient = arith.mulf %y, %by : f32
    %low = arith.maximumf %quotient, %lowest : f32
    %clamped = arith.minimumf %low, %largest : f32
    %unknown = arith.cmpf uno, %wide, %wide : f32
    %q = arith.select %unknown, %zero, %clamped : f32
    %code = arith.truncf %q : f32 to f8E4M3FN
    linalg.yield %code : f8E4M3FN
  } -> tensor<40x2x32xf8E4M3FN>
  // expected-remark @+1 {{raised to tc.quantise_blocks: MXFP8, blocks of 32 f8E4M3FN, scales f8E8M0FNU, row-major; every f32 gives the same codes}}
  %codes = tensor.collapse_shape %q3 [[0], [1, 2]]
      : tensor<40x2x32xf8E4M3FN> into tensor<40x64xf8E4M3FN>
  return %codes, %scales : tensor<40x64xf8E4M3FN>, tensor<40x2xf8E8M0FNU>
}

// -----

// floor(log2) in f64.
// CHECK-LABEL: func.func @logarithm(
// CHECK-NEXT: %[[Q:.*]]:2 = "tc.quantise_blocks"(%arg0) {{.*}}-> (tensor<40x64xf8E5M2>, tensor<40x2xf8E8M0FNU>)
// CHECK-NEXT: return %[[Q]]#0, %[[Q]]#1
func.func @logarithm(%x: tensor<40x64xf32>) -> (tensor<40x64xf8E5M2>, tensor<40x2xf8E8M0FNU>) {
  %zero = arith.constant 0.0 : f32
  %start = arith.constant 0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %lowest = arith.constant -57344.0 : f32
  %largest = arith.constant 57344.0 : f32
  %blocks = tensor.expand_shape %x [[0], [1, 2]] output_shape [40, 2, 32] : tensor<40x64xf32> into tensor<40x2x32xf32>
  %e0 = tensor.empty() : tensor<40x2x32xf32>
  %e1 = tensor.empty() : tensor<40x2xf32>
  %first = linalg.fill ins(%start : f32) outs(%e1 : tensor<40x2xf32>) -> tensor<40x2xf32>
  %largests = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%blocks : tensor<40x2x32xf32>) outs(%first : tensor<40x2xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %mag = math.absf %in : f32
    %next = arith.maximumf %mag, %acc : f32
    linalg.yield %next : f32
  } -> tensor<40x2xf32>
  %e2 = tensor.empty() : tensor<40x2xf8E8M0FNU>
  %scales = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
      ins(%largests : tensor<40x2xf32>) outs(%e2 : tensor<40x2xf8E8M0FNU>) {
  ^bb0(%amax: f32, %o: f8E8M0FNU):
    %wide = arith.extf %amax : f32 to f64
    %log = math.log2 %wide : f64
    %whole = math.floor %log : f64
    %e = arith.constant 15.0 : f64
    %less = arith.subf %whole, %e : f64
    %least = arith.constant -127.0 : f64
    %held = arith.maximumf %less, %least : f64
    %power = math.exp2 %held : f64
    %number = arith.truncf %power : f64 to f32
    %finite = arith.cmpf olt, %amax, %inf : f32
    %known = arith.select %finite, %number, %nan : f32
    %scale = arith.truncf %known : f32 to f8E8M0FNU
    linalg.yield %scale : f8E8M0FNU
  } -> tensor<40x2xf8E8M0FNU>
  %e3 = tensor.empty() : tensor<40x2x32xf8E5M2>
  %q3 = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k)>, affine_map<(m, k, i) -> (m, k, i)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%blocks, %scales : tensor<40x2x32xf32>, tensor<40x2xf8E8M0FNU>) outs(%e3 : tensor<40x2x32xf8E5M2>) {
  ^bb0(%y: f32, %narrow: f8E8M0FNU, %o: f8E5M2):
    %wide = arith.extf %narrow : f8E8M0FNU to f32
    %one = arith.constant 1.0 : f32
    %none = arith.cmpf oeq, %wide, %zero : f32
    %by = arith.select %none, %one, %wide : f32
    %quotient = arith.divf %y, %by : f32
    %low = arith.maximumf %quotient, %lowest : f32
    %clamped = arith.minimumf %low, %largest : f32
    %unknown = arith.cmpf uno, %wide, %wide : f32
    %q = arith.select %unknown, %zero, %clamped : f32
    %code = arith.truncf %q : f32 to f8E5M2
    linalg.yield %code : f8E5M2
  } -> tensor<40x2x32xf8E5M2>
  // expected-remark @+1 {{raised to tc.quantise_blocks: MXFP8, blocks of 32 f8E5M2, scales f8E8M0FNU, row-major; every f32 gives the same codes}}
  %codes = tensor.collapse_shape %q3 [[0], [1, 2]]
      : tensor<40x2x32xf8E5M2> into tensor<40x64xf8E5M2>
  return %codes, %scales : tensor<40x64xf8E5M2>, tensor<40x2xf8E8M0FNU>
}

// -----

// Rounded up: the mantissa carries to the exponent.
// CHECK-LABEL: func.func @carry(
// CHECK-NEXT: %[[Q:.*]]:2 = "tc.quantise_blocks"(%arg0) {{.*}}scale_rounding = "rceil"
// CHECK-NEXT: return %[[Q]]#0, %[[Q]]#1
func.func @carry(%x: tensor<40x64xf32>) -> (tensor<40x64xf8E4M3FN>, tensor<40x2xf8E8M0FNU>) {
  %zero = arith.constant 0.0 : f32
  %start = arith.constant 0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %lowest = arith.constant -448.0 : f32
  %largest = arith.constant 448.0 : f32
  %blocks = tensor.expand_shape %x [[0], [1, 2]] output_shape [40, 2, 32] : tensor<40x64xf32> into tensor<40x2x32xf32>
  %e0 = tensor.empty() : tensor<40x2x32xf32>
  %e1 = tensor.empty() : tensor<40x2xf32>
  %first = linalg.fill ins(%start : f32) outs(%e1 : tensor<40x2xf32>) -> tensor<40x2xf32>
  %largests = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%blocks : tensor<40x2x32xf32>) outs(%first : tensor<40x2xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %mag = math.absf %in : f32
    %next = arith.maximumf %mag, %acc : f32
    linalg.yield %next : f32
  } -> tensor<40x2xf32>
  %e2 = tensor.empty() : tensor<40x2xf8E8M0FNU>
  %scales = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
      ins(%largests : tensor<40x2xf32>) outs(%e2 : tensor<40x2xf8E8M0FNU>) {
  ^bb0(%amax: f32, %o: f8E8M0FNU):
    %given = arith.bitcast %amax : f32 to i32
    %carry = arith.constant 2097151 : i32
    %bits = arith.addi %given, %carry : i32
    %23 = arith.constant 23 : i32
    %exponent = arith.shrui %bits, %23 : i32
    %e = arith.constant 8 : i32
    %less = arith.subi %exponent, %e : i32
    %0 = arith.constant 0 : i32
    %biased = arith.maxsi %less, %0 : i32
    %255 = arith.constant 255 : i32
    %finite = arith.cmpf olt, %amax, %inf : f32
    %known = arith.select %finite, %biased, %255 : i32
    %byte = arith.trunci %known : i32 to i8
    %scale = arith.bitcast %byte : i8 to f8E8M0FNU
    linalg.yield %scale : f8E8M0FNU
  } -> tensor<40x2xf8E8M0FNU>
  %e3 = tensor.empty() : tensor<40x2x32xf8E4M3FN>
  %q3 = linalg.generic {indexing_maps = [affine_map<(m, k, i) -> (m, k, i)>, affine_map<(m, k, i) -> (m, k)>, affine_map<(m, k, i) -> (m, k, i)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%blocks, %scales : tensor<40x2x32xf32>, tensor<40x2xf8E8M0FNU>) outs(%e3 : tensor<40x2x32xf8E4M3FN>) {
  ^bb0(%y: f32, %narrow: f8E8M0FNU, %o: f8E4M3FN):
    %wide = arith.extf %narrow : f8E8M0FNU to f32
    %one = arith.constant 1.0 : f32
    %none = arith.cmpf oeq, %wide, %zero : f32
    %by = arith.select %none, %one, %wide : f32
    %quotient = arith.divf %y, %by : f32
    %low = arith.maximumf %quotient, %lowest : f32
    %clamped = arith.minimumf %low, %largest : f32
    %unknown = arith.cmpf uno, %wide, %wide : f32
    %q = arith.select %unknown, %zero, %clamped : f32
    %code = arith.truncf %q : f32 to f8E4M3FN
    linalg.yield %code : f8E4M3FN
  } -> tensor<40x2x32xf8E4M3FN>
  // expected-remark @+1 {{raised to tc.quantise_blocks: MXFP8, blocks of 32 f8E4M3FN, scales f8E8M0FNU, rounded up where an element would saturate, row-major; every f32 gives the same codes}}
  %codes = tensor.collapse_shape %q3 [[0], [1, 2]]
      : tensor<40x2x32xf8E4M3FN> into tensor<40x64xf8E4M3FN>
  return %codes, %scales : tensor<40x64xf8E4M3FN>, tensor<40x2xf8E8M0FNU>
}
