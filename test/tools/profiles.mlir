// Conditions of the executions: the profile, assumptions, limits, numerics; what is not the default
// stands in the table's first line, and mistakes are named before anything runs.

// RUN: %tc-opt %s --load-pass-plugin=%S/Inputs/plugin.py --pass-pipeline='builtin.module(raise-to-tc,tile-gemm,multi-buffer,place-barriers,plan-memory,assign-roles,test-drop-fences)' --validate-each -o %t 2>&1 | %filecheck %s --check-prefix=SILICON
// RUN: %exits 1 %tc-opt %s --load-pass-plugin=%S/Inputs/plugin.py --pass-pipeline='builtin.module(raise-to-tc,tile-gemm,multi-buffer,place-barriers,plan-memory,assign-roles,test-drop-fences)' --validate-each=%t.json --ordering=isa -o %t | %filecheck %s --check-prefix=ISA
// RUN: %filecheck %s --check-prefix=JSON --input-file=%t.json
// RUN: %tc-opt %s --canonicalize --validate-each --numerics=fast --max-instructions=90000 --assume=alloc_place=any --assume=ld_st_lane=own -o %t 2>&1 | %filecheck %s --check-prefix=ALL
// RUN: %exits 3 %tc-opt %s --canonicalize --validate-each --ordering=ptx -o %t | %filecheck %s --check-prefix=ORDERING
// RUN: %exits 3 %tc-opt %s --canonicalize --validate-each --assume=pipe_order=fast -o %t | %filecheck %s --check-prefix=ANSWER
// RUN: %exits 3 %tc-opt %s --canonicalize --assume=pipe_ordre=listed -o %t | %filecheck %s --check-prefix=NAME

// SILICON: compared{{$}}
// SILICON: assign-roles {{.*}} equal
// SILICON: test-drop-fences {{.*}} equal
// SILICON: warning missing-fence-after: {{.*}} not promised by PTX ISA 9.7.16.6.4; ships in Triton
// SILICON: held

// ISA: compared, ordering isa{{$}}
// ISA: assign-roles {{.*}} equal
// ISA: test-drop-fences {{.*}} different
// ISA: error missing-fence-after
// ISA: different: first at pass 7, test-drop-fences

// JSON: "numerics": "exact"
// JSON: "ordering": "isa"
// JSON: "assumptions": {}
// JSON: "max_instructions": null

// ALL: compared, numerics fast (not bit-exact), assumption ld_st_lane=own, assumption alloc_place=any, at most 90000 instructions

// ORDERING: argument --ordering: invalid choice: 'ptx' (choose from
// ANSWER: assumption pipe_order: expected 'issue' or 'listed', got 'fast'
// NAME: no assumption is called 'pipe_ordre'; did you mean 'pipe_order'?
func.func @f(%a: tensor<32x64xf16>, %b: tensor<64x16xf16>) -> tensor<32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32x16xf32>) -> tensor<32x16xf32>
  %r = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x16xf16>) outs(%z : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %r : tensor<32x16xf32>
}
