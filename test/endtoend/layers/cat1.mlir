// torch.cat([x, y], 1), as the importer of torch-mlir 20261001 writes it.
module {
  func.func @cat1(%arg0: tensor<6x40xf32>, %arg1: tensor<6x40xf32>) -> tensor<6x80xf32> {
    %concat = tensor.concat dim(1) %arg0, %arg1 : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x80xf32>
    return %concat : tensor<6x80xf32>
  }
}
