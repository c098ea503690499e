// Fuzz: the same program later, by a seed (docs/explanation/emulation.md). Only what is rewritten for it calls this.

__device__ u32 tcir_emulation_seed;

DEVICE u32 mixed(u32 x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}
DEVICE u32 linear_warp() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32; }
DEVICE u32 drawn(u32 n) {
  u32 cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  return mixed(tcir_emulation_seed ^ mixed(n ^ mixed(cta << 6 | linear_warp())));
}
// A helper warp before command n: at once, or up to 1, 4, 16 or 64 microseconds late, as the seed says.
DEVICE void delay(u32 n) {
  u32 bits = drawn(n), most = 1000u << 2 * (mixed(tcir_emulation_seed) & 3);
  if (bits & 3) __nanosleep((bits >> 2) % most);
  __syncwarp();
}
// A warp of the program before an instruction: one in four waits up to 2 microseconds; or one warp always
// does; or all do before some instructions.
CALLED void tcir_emulation_pause(u32 site) {
  u32 style = mixed(tcir_emulation_seed + 1) % 3, bits = drawn(site);
  if (style == 0 && bits & 3) return;
  if (style == 1 && linear_warp() != mixed(tcir_emulation_seed + 2) % 8) return;
  if (style == 2 && mixed(tcir_emulation_seed ^ mixed(site)) & 7) return;
  __nanosleep(500 + (bits >> 2) % 2000);
}
// What columns have that nothing wrote: of the warp that allocates or frees them.
DEVICE void litter(u64 memory, u32 first, u32 columns) {
  LOOP (u32 n = threadIdx.x % 32; n < columns * LANES; n += 32)
    __stcg((u32*)memory + first * LANES + n, mixed(tcir_emulation_seed ^ mixed(n)));
}
// Whether the command behind n is a commit of another thread than n's, which tracks its own commands only:
// here, so that the barrier may hear of it before n is executed.
DEVICE u32 commit_of_another(u32 box, u32 n) {
  u32 next = (n + 1) % SLOTS, op = is_full(box, n + 1) ? generic_word(command_at(box, n + 1) + 32) : END;
  return (op & 255) == COMMIT && shared_half(box + ISSUERS + 2 * next) != shared_half(box + ISSUERS + 2 * (n % SLOTS));
}
