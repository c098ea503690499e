// One mma.sync m16n8k16 by inline assembly, operands from ldmatrix.
//
// class:      cuda
// launch:     grid=1, block=32
// arg a:      ints(16, 16)
// arg b:      ints(8, 16, 3)
// arg d:      undefined((16, 8), np.float32)
// expect d:   a.astype('f') @ b.astype('f').T
// silicon:    clean
// isa:        clean

#include <cuda_fp16.h>
extern "C" __global__ void product(const uint4 *a, const uint4 *b, float2 *d) {
  __shared__ uint4 sa[32], sb[16];
  int t = threadIdx.x;
  sa[t] = a[t];
  if (t < 16) sb[t] = b[t];
  __syncwarp();
  unsigned at = (unsigned)__cvta_generic_to_shared(&sa[(t % 16) * 2 + t / 16]);
  unsigned bt = (unsigned)__cvta_generic_to_shared(&sb[(t % 8) * 2 + (t / 8) % 2]);
  unsigned r0, r1, r2, r3, s0, s1;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(s0), "=r"(s1) : "r"(bt) : "memory");
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "r"(r0), "r"(r1), "r"(r2), "r"(r3), "r"(s0), "r"(s1));
  d[t / 4 * 4 + t % 4] = {c0, c1};
  d[(t / 4 + 8) * 4 + t % 4] = {c2, c3};
}
