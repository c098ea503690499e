// RUN: not %tc-opt %s --constants-to-arguments 2>&1 | %filecheck %s
// RUN: sed 's/w: "0x04000000[^"]*"/w: "0x040000000000803F"/; s/<v>/<w>/' %s > %t.mlir
// RUN: not %tc-opt %t.mlir --constants-to-arguments 2>&1 | %filecheck %s --check-prefix=SHORT

// CHECK: resources_invalid.mlir:9:8: constant dense_resource<v>: expected its bytes in dialect_resources at the end of the file, got none (they were left out when it was printed)
// SHORT: constant dense_resource<w>: expected 8 bytes after the alignment (tensor<2xf32>), got 4
// CHECK-NOT: Traceback
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = arith.constant dense_resource<v> : tensor<2xf32>
  %y = arith.addf %x, %w : tensor<2xf32>
  return %y : tensor<2xf32>
}
{-# dialect_resources: { builtin: { w: "0x040000000000803F00000040" } } #-}
