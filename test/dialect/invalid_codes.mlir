// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// legal: tc.pack_codes/types
func.func @f(%c: tensor<2x32xi8>) {
  %a = "tc.pack_codes"(%c) : (tensor<2x32xi8>) -> tensor<2x32xf6E3M2FN>
  return
}

// -----

// illegal: tc.pack_codes/types
func.func @f(%c: tensor<2x32xi8>) {
  // expected-error @+1 {{tc.pack_codes: codes must be a static tensor of i8, and out of f4E2M1FN or f6E2M3FN or f6E3M2FN, got tensor<2x32xi8> and tensor<2x32xf8E4M3FN>; an fp8 code is a byte as it is}}
  %a = "tc.pack_codes"(%c) : (tensor<2x32xi8>) -> tensor<2x32xf8E4M3FN>
  return
}

// -----

// legal: tc.pack_codes/shape
func.func @f(%c: tensor<3x2x6xi8>) {
  %a = "tc.pack_codes"(%c) : (tensor<3x2x6xi8>) -> tensor<3x2x6xf4E2M1FN>
  return
}

// -----

// illegal: tc.pack_codes/shape
func.func @f(%c: tensor<2x32xi8>) {
  // expected-error @+1 {{tc.pack_codes: out must have the shape of codes, [2, 32], got [2, 64]: an element for every code}}
  %a = "tc.pack_codes"(%c) : (tensor<2x32xi8>) -> tensor<2x64xf4E2M1FN>
  return
}

// -----

// legal: tc.pack_codes/whole-bytes
func.func @f(%c: tensor<2x4xi8>) {
  %a = "tc.pack_codes"(%c) : (tensor<2x4xi8>) -> tensor<2x4xf6E2M3FN>
  return
}

// -----

// illegal: tc.pack_codes/whole-bytes
func.func @f(%c: tensor<2x6xi8>) {
  // expected-error @+1 {{tc.pack_codes: rows of out must be whole bytes, got 6 elements of 6 bits; pad K to a multiple of 4 with zeros}}
  %a = "tc.pack_codes"(%c) : (tensor<2x6xi8>) -> tensor<2x6xf6E2M3FN>
  return
}

// -----

// legal: tc.unpack_codes/types
func.func @f(%a: tensor<32xf4E2M1FN>) {
  %c = "tc.unpack_codes"(%a) : (tensor<32xf4E2M1FN>) -> tensor<32xi8>
  return
}

// -----

// illegal: tc.unpack_codes/types
func.func @f(%a: tensor<32xf4E2M1FN>) {
  // expected-error @+1 {{tc.unpack_codes: packed must be a static tensor of f4E2M1FN or f6E2M3FN or f6E3M2FN, and out of i8, got tensor<32xf4E2M1FN> and tensor<32xi16>; fp8 has a byte an element as it is}}
  %c = "tc.unpack_codes"(%a) : (tensor<32xf4E2M1FN>) -> tensor<32xi16>
  return
}

// -----

// legal: tc.unpack_codes/shape
func.func @f(%a: tensor<2x8xf6E3M2FN>) {
  %c = "tc.unpack_codes"(%a) : (tensor<2x8xf6E3M2FN>) -> tensor<2x8xi8>
  return
}

// -----

// illegal: tc.unpack_codes/shape
func.func @f(%a: tensor<2x8xf6E3M2FN>) {
  // expected-error @+1 {{tc.unpack_codes: out must have the shape of packed, [2, 8], got [16]: a code for every element}}
  %c = "tc.unpack_codes"(%a) : (tensor<2x8xf6E3M2FN>) -> tensor<16xi8>
  return
}

// -----

// legal: tc.unpack_codes/whole-bytes
func.func @f(%a: tensor<3x2xf4E2M1FN>) {
  %c = "tc.unpack_codes"(%a) : (tensor<3x2xf4E2M1FN>) -> tensor<3x2xi8>
  return
}

// -----

// illegal: tc.unpack_codes/whole-bytes
func.func @f(%a: tensor<2x3xf4E2M1FN>) {
  // expected-error @+1 {{tc.unpack_codes: rows of packed must be whole bytes, got 3 elements of 4 bits; pad K to a multiple of 2 with zeros}}
  %c = "tc.unpack_codes"(%a) : (tensor<2x3xf4E2M1FN>) -> tensor<2x3xi8>
  return
}
