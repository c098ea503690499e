// RUN: %tc-opt --pipeline=simt-elementwise --emit=ptx %s 2>&1 | %filecheck %s

// An op without results acts: it is a trap, also where its element is not used.
// CHECK: setp.ge.f32 %[[HOLDS:p[0-9]+]]
// CHECK: @%[[HOLDS]] bra
// CHECK: trap; // expected a positive number
// CHECK: sqrt.rn.f32
func.func @checked(%x: tensor<64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
                       iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %positive = arith.cmpf oge, %a, %zero : f32
    cf.assert %positive, "expected a positive number"
    %s = math.sqrt %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}
