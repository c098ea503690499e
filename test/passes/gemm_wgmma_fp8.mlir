// RUN: %tc-opt --pipeline='gemm{n-tile=224 stages=2}' --target=sm_90a --mlir-print-ir-after=tile-gemm -o %t.mlir %s 2>&1 | %filecheck --check-prefix=TILE %s
// RUN: %tc-opt --pipeline='gemm{n-tile=224 stages=2}' --target=sm_90a --mlir-print-ir-after=assign-roles -o %t.mlir %s 2>&1 | %filecheck --check-prefix=ROLES %s
// RUN: %tc-opt --pipeline='gemm{n-tile=224 stages=2}' --target=sm_90a --emit=ptx %s | %filecheck --check-prefix=PTX %s

// Two products of a step, each added to sums of its own that the loop carries.
// TILE: tc.warp_map = "wgmma-promoted", tc.warps = array<i64: 8, 1>
// TILE: [[S:%.*]]:2 = scf.for {{.*}} iter_args([[X:%.*]] = {{%.*}}, [[Y:%.*]] = {{%.*}})
// TILE: [[A:%.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 128>, f8E4M3FN, "K", "128B">
// TILE: [[B:%.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 224, 128>, f8E5M2, "K", "128B">
// TILE: [[B0:%.*]] = "tc.smem_part"([[B]], {{%.*}}) : {{.*}} -> !tc.smem<array<i64: 112, 128>
// TILE: [[B1:%.*]] = "tc.smem_part"([[B]], {{%.*}})
// TILE: [[P:%.*]] = "tc.wgmma_product"([[A]], [[B0]])
// TILE: [[U:%.*]] = "tc.add_fragment"([[X]], [[P]])
// TILE: [[Q:%.*]] = "tc.wgmma_product"([[A]], [[B1]])
// TILE: [[V:%.*]] = "tc.add_fragment"([[Y]], [[Q]])
// TILE: scf.yield [[U]], [[V]]
// TILE: "tc.store_fragment"([[S]]#0
// TILE: "tc.store_fragment"([[S]]#1

// A wait behind each; the slot is free behind the last one, before its sums are added.
// ROLES: "tc.warpgroup_registers"() {registers = array<i64: 240, 240, 24>}
// ROLES: kind = "producer", threads = "one", warps = array<i64: 8>
// ROLES: "tc.role"() ({
// ROLES: "tc.mbarrier_wait"
// ROLES: [[P:%.*]] = "tc.wgmma_product"
// ROLES: [[W:%.*]] = "tc.wgmma_wait"([[P]]) {pending = 0 : i64}
// ROLES: "tc.add_fragment"({{%.*}}, [[W]])
// ROLES: [[Q:%.*]] = "tc.wgmma_product"
// ROLES: [[Z:%.*]] = "tc.wgmma_wait"([[Q]]) {pending = 0 : i64}
// ROLES: "tc.mbarrier_arrive"({{%.*}}) {once}
// ROLES: "tc.add_fragment"({{%.*}}, [[Z]])
// ROLES: scf.yield

// Those that multiply take registers of those that do not; the first instruction starts from zero.
// PTX: .reqntid 384
// PTX: setmaxnreg.inc.sync.aligned.u32 240;
// PTX: setp.ne.u32 q, 0, 0;
// PTX: wgmma.fence.sync.aligned;
// PTX: wgmma.mma_async.sync.aligned.m64n112k32.f32.e4m3.e5m2 {{.*}}, q, 1, 1;
// PTX-COUNT-3: wgmma.mma_async.sync.aligned.m64n112k32.f32.e4m3.e5m2 {{.*}}, p, 1, 1;
// PTX: wgmma.commit_group.sync.aligned;
// PTX: wgmma.wait_group.sync.aligned 0;
// PTX-COUNT-112: add.rn.f32
// PTX: setmaxnreg.dec.sync.aligned.u32 24;
func.func @product(%a: tensor<256x256xf8E4M3FN>, %b: tensor<224x256xf8E5M2>) -> tensor<256x224xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x224xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x224xf32>) -> tensor<256x224xf32>
  %c = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<256x256xf8E4M3FN>, tensor<224x256xf8E5M2>)
      outs(%init : tensor<256x224xf32>) -> tensor<256x224xf32>
  return %c : tensor<256x224xf32>
}
