// specialise-shapes: a size that no argument decides is refused, and so is an empty batch.
// RUN: not %tc-opt %s --specialise-shapes=batch=8 2>&1 | %filecheck %s
// RUN: not %tc-opt %s --specialise-shapes=batch=0 2>&1 | %filecheck %s --check-prefix=EMPTY

// EMPTY: expected batch of at least 1 (images or rows of a launch), got 0
// EMPTY: smallest accepted example: {{.*}}batch=1

func.func @open(%x: tensor<?x32xf16>, %n: index) -> tensor<?x32xf16> {
  // CHECK: specialise_shapes_invalid.mlir:[[# @LINE + 1]]:{{.*}}expected sizes that follow from those of the arguments{{.*}}got tensor<?x32xf16> of tensor.empty; take sizes from tensor.dim
  %e = tensor.empty(%n) : tensor<?x32xf16>
  return %e : tensor<?x32xf16>
}
