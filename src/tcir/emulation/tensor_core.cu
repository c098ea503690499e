// The tensor core and tensor memory of sm_100a, as device functions for sm_90a.
//
// Four helper warps of each CTA execute the commands that the rewritten program issues. Thread t of
// them is lane t of tensor memory, which is in global memory, [column][lane], one word each.
// Descriptors, layouts and sums are decoded here from the PTX ISA (9.7.16) and
// docs/explanation/numerics.md, with no code of the compiler or of the simulated machine.
//
// Compiled ahead: python -m tcir.tools.dev.emulation_ptx

#include <cstdint>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define DEVICE static __device__ __forceinline__
#define LOOP _Pragma("unroll 1") for  // the code is small rather than unrolled
#define CALLED extern "C" __device__ __noinline__

// --- the box: shared memory between a CTA's program and its helpers ----------------------------

enum { LANES = 128, COLUMNS = 512, WARPS = 4, SLOTS = 4, SMS = 144 };
// Offsets in bytes. COMMANDS: where the commands are: behind the box, or behind tensor memory.
// DONE: for each helper warp, the number of commands whose slots it has left. RELAYED: for each slot, a
// barrier, the bytes that it shall hear of, where they were to be, and the map's note. MET: allocations of
// the pair that this CTA has made.
enum { TICKETS = 0, TAKEN = 4, EXITED = 8, PLACE = 12, MEMORY = 16, COMMANDS = 24, TURN = 32, CLUSTER = 40, ISSUERS = 48,
       DONE = 56, FULL = 72, EMPTY = 104, RELAYS = 136, MET = 168, RELAYED = 176, BEHIND = 240 };
// The note of a map of bytes that stands for one of narrow elements (narrow.py): bytes of 16 elements; whether
// they are to be 16 bytes apart; and whether those are swizzled.
enum { UNIT = 15, SPREAD = 16, SWIZZLED = 32 };
enum { PLACE_BYTES = LANES * COLUMNS * 4 + 512, RELAY = 0xffff };  // RELAY: the issuer of what is no command

struct Command {
  u64 a, b, zeros;
  u32 d, idesc, op, sfa, sfb, metadata;
  u32 off[8];  // lane masks: a set bit is a lane that is not written
};

// Command.op: bits 7..0 what, then flags.
enum { END, MMA, CP, SHIFT, COMMIT };
enum { A_IN_TMEM = 1 << 8, ADD_D = 1 << 9, ASHIFT = 1 << 10, WS = 1 << 11, SPARSE = 1 << 12,
       MASKED = 1 << 13, ZEROS = 1 << 14, PAIR = 1 << 15, MULTICAST = 1 << 27 };
enum { KIND_F16, KIND_TF32, KIND_F8F6F4, KIND_I8, KIND_MXF8F6F4, KIND_MXF4, KIND_MXF4NVF4 };
enum { CP_128x256b, CP_4x256b, CP_128x128b, CP_64x128b, CP_32x128b };

DEVICE u32 shared_word(u32 at) {
  u32 v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
  return v;
}
DEVICE u64 shared_long(u32 at) {
  u64 v;
  asm volatile("ld.shared.u64 %0, [%1];" : "=l"(v) : "r"(at) : "memory");
  return v;
}
DEVICE u32 generic_word(u64 at) {
  u32 v;
  asm volatile("ld.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
  return v;
}
DEVICE u64 generic_long(u64 at) {
  u64 v;
  asm volatile("ld.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
  return v;
}
DEVICE void set_generic_word(u64 at, u32 v) { asm volatile("st.u32 [%0], %1;" ::"l"(at), "r"(v) : "memory"); }
DEVICE void set_generic_long(u64 at, u64 v) { asm volatile("st.u64 [%0], %1;" ::"l"(at), "l"(v) : "memory"); }
DEVICE void set_word(u32 at, u32 v) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory"); }
DEVICE void set_long(u32 at, u64 v) { asm volatile("st.shared.u64 [%0], %1;" ::"r"(at), "l"(v) : "memory"); }
DEVICE u32 shared_half(u32 at) {
  unsigned short v;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(at) : "memory");
  return v;
}
DEVICE void set_half(u32 at, u32 v) {  // of any CTA of the cluster
  asm volatile("st.shared::cluster.u16 [%0], %1;" ::"r"(at), "h"((unsigned short)v) : "memory");
}
DEVICE u32 add_word(u32 at, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(v) : "memory");
  return old;
}
DEVICE u32 swap_word(u32 at, u32 expected, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.cta.shared::cta.cas.b32 %0, [%1], %2, %3;"
               : "=r"(old) : "r"(at), "r"(expected), "r"(v) : "memory");
  return old;
}
DEVICE void barrier_init(u32 at, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}
DEVICE void arrive(u32 at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory"); }
DEVICE void arrive_anywhere(u32 at) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(at) : "memory");
}
DEVICE void wait(u32 at, u32 parity) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}"
      ::"r"(at), "r"(parity) : "memory");
}
DEVICE void wait_of_cluster(u32 at, u32 parity) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}"
      ::"r"(at), "r"(parity) : "memory");
}
// Whether the slot of a ticket has a relay, which is no command.
DEVICE bool is_relay(u32 box, u32 n) { return shared_half(box + ISSUERS + 2 * (n % SLOTS)) == RELAY; }
// Whether the command of a ticket is in its slot.
DEVICE bool is_full(u32 box, u32 n) {
  u32 full;
  asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(full) : "r"(box + FULL + n % SLOTS * 8), "r"(n / SLOTS & 1) : "memory");
  return full && !is_relay(box, n);
}
DEVICE u64 command_at(u32 box, u32 n) { return shared_long(box + COMMANDS) + n % SLOTS * sizeof(Command); }
DEVICE u32 in_cta(u32 at, u32 rank) {
  u32 v;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(v) : "r"(at), "r"(rank));
  return v;
}
DEVICE u32 rank_of(u32 at) {
  u32 v;
  asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(v) : "r"(at));
  return v;
}
DEVICE u32 cta_rank() {
  u32 v;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(v));
  return v;
}

#include "fuzz.cuh"

// --- tensor memory -----------------------------------------------------------------------------

DEVICE u32* word_at(u64 memory, u32 lane, u32 column) {
  return (u32*)memory + (column % COLUMNS) * LANES + lane;
}
DEVICE u32 tmem(u64 memory, u32 lane, u32 column) { return __ldcg(word_at(memory, lane, column)); }
DEVICE void set_tmem(u64 memory, u32 lane, u32 column, u32 v) { __stcg(word_at(memory, lane, column), v); }

// Where a thread's words of a tcgen05.ld or st begin; shape: 0 32x32b, 1 16x64b, 2 16x128b, 3 16x256b,
// 4 16x32bx2. The words that follow are at distances that depend on the instruction alone.
CALLED u64 tcir_emulation_access(u32 box, u32 address, u32 shape, u32 split, u32 pack) {
  u32 t = threadIdx.x & 31, quarter = (threadIdx.x >> 5) & 3;
  u32 lane = quarter * 32 + ((address >> 16) & 31), column = 0;
  if (shape == 0) lane += t;
  else if (shape == 1) { lane += (t >> 2) + 8 * (t & 1); column = (t >> 1) & 1; }
  else if (shape == 2) { lane += t >> 2; column = t & 3; }
  else if (shape == 3) { lane += t >> 2; column = 2 * (t & 3); }
  else lane += t & 15;
  if (pack) column *= 2;
  if (shape == 4 && t >= 16) column += split;
  return (u64)word_at(shared_long(box + MEMORY), lane, (address & 0xffff) + column);
}

// pair: each CTA of the pair executes it, and waits for the other (PTX ISA 9.7.16.7).
CALLED void tcir_emulation_alloc(u32 box, u32 at, u32 columns, u32 fuzz, u32 pair) {
  __syncwarp();
  if ((threadIdx.x & 31) == 0) {
    u32 units = columns / 32, mask = units == 16 ? 0xffff : (1u << units) - 1;
    for (bool done = false; !done;) {
      u32 taken = shared_word(box + TAKEN);
      for (u32 place = 0; place < 16 && !done; place += units)
        if (!(taken & mask << place) && swap_word(box + TAKEN, taken, taken | mask << place) == taken) {
          set_word(at, place * 32);
          done = true;
        }
      if (!done) __nanosleep(100);
    }
  }
  __syncwarp();
  if (fuzz) {
    litter(shared_long(box + MEMORY), shared_word(at), columns);
    __threadfence();
  }
  __syncwarp();
  if (pair && threadIdx.x % 32 == 0) {
    u32 made, other = in_cta(box + MET, cta_rank() ^ 1), met;
    asm volatile("atom.acq_rel.cluster.shared::cta.add.u32 %0, [%1], 1;" : "=r"(made) : "r"(box + MET) : "memory");
    do
      asm volatile("ld.acquire.cluster.shared::cluster.u32 %0, [%1];" : "=r"(met) : "r"(other) : "memory");
    while ((int)(met - made) <= 0);
  }
  __syncwarp();
}
CALLED void tcir_emulation_dealloc(u32 box, u32 address, u32 columns, u32 fuzz) {
  __syncwarp();
  if (fuzz) litter(shared_long(box + MEMORY), address & 0xffff, columns);
  __syncwarp();
  if ((threadIdx.x & 31) == 0) {
    u32 units = columns / 32, mask = (units == 16 ? 0xffff : (1u << units) - 1) << (address & 0xffff) / 32;
    for (u32 taken = shared_word(box + TAKEN);;) {
      u32 old = swap_word(box + TAKEN, taken, taken & ~mask);
      if (old == taken) break;
      taken = old;
    }
  }
  __syncwarp();
}

// --- issuing -----------------------------------------------------------------------------------

// Takes the next ticket and puts the command into its slot; the helpers execute them in that order.
CALLED void tcir_emulation_issue(u32 box, u32 op, u32 d, u64 a, u64 b, u32 idesc, u32 sfa, u32 sfb, u32 metadata,
                                 u64 zeros, u32 o0, u32 o1, u32 o2, u32 o3, u32 o4, u32 o5, u32 o6, u32 o7) {
  u32 n = add_word(box + TICKETS, 1), slot = n % SLOTS;
  u64 at = command_at(box, n);
  wait(box + EMPTY + 8 * slot, ~(n / SLOTS) & 1);
  set_generic_long(at, a);
  set_generic_long(at + 8, b);
  set_generic_long(at + 16, zeros);
  set_generic_word(at + 24, d);
  set_generic_word(at + 28, idesc);
  set_generic_word(at + 32, op);
  set_generic_word(at + 36, sfa);
  set_generic_word(at + 40, sfb);
  set_generic_word(at + 44, metadata);
  set_generic_word(at + 48, o0);
  set_generic_word(at + 52, o1);
  set_generic_word(at + 56, o2);
  set_generic_word(at + 60, o3);
  set_generic_word(at + 64, o4);
  set_generic_word(at + 68, o5);
  set_generic_word(at + 72, o6);
  set_generic_word(at + 76, o7);
  set_half(box + ISSUERS + 2 * slot, threadIdx.x);
  arrive(box + FULL + 8 * slot);
}

// A tensor copy into a CTA of the cluster that reports to the mbarrier of the pair's other CTA
// (.cta_group::2), or that a helper has to spread (note): here it reports to a barrier of the box of the CTA
// that it fills, and a helper there does the rest. Returns the barrier for the copy, and in the high half 1 +
// the ticket, or 0 if no helper is needed. The driver notes a copy's bytes in word 16 of the map.
DEVICE u32 heard_by(u32 barrier, u32 cta, u32 pair) {
  return in_cta(barrier, pair ? (cta & ~1u) | (rank_of(barrier) & 1) : cta);
}
CALLED u64 tcir_emulation_relay(u32 box, u64 map, u32 barrier, u32 cta, u32 pair, u32 note) {
  barrier = heard_by(barrier, cta, pair);
  if (rank_of(barrier) == cta && !(note & SPREAD)) return barrier;
  u32 n, there = in_cta(box, cta);
  asm volatile("atom.acq_rel.cluster.shared::cluster.add.u32 %0, [%1], 1;" : "=r"(n) : "r"(there + TICKETS) : "memory");
  LOOP (u32 warp = 0; warp < WARPS;) {  // until all have left the slot
    u32 done;
    asm volatile("ld.acquire.cluster.shared::cluster.u32 %0, [%1];" : "=r"(done) : "r"(there + DONE + 4 * warp) : "memory");
    if ((int)(done + SLOTS - n) > 0) ++warp;
    else __nanosleep(50);
  }
  u32 own = there + RELAYS + n % SLOTS * 8;
  asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;"
               ::"r"(own), "r"(((const u32*)map)[16]) : "memory");
  return (u64)(n + 1) << 32 | own;
}
CALLED void tcir_emulation_relayed(u32 box, u64 relay, u64 map, u32 barrier, u32 cta, u32 pair, u32 note, u32 at) {
  if (!(relay >> 32)) return;
  u32 slot = ((u32)(relay >> 32) - 1) % SLOTS, there = in_cta(box, cta);
  asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};"
               ::"r"(there + RELAYED + 16 * slot), "r"(heard_by(barrier, cta, pair)), "r"(((const u32*)map)[16]), "r"(at), "r"(note)
               : "memory");
  set_half(there + ISSUERS + 2 * slot, RELAY);
  arrive_anywhere(there + FULL + 8 * slot);
}

// How far behind its place a copy comes that helpers spread.
CALLED u64 tcir_emulation_behind(u64 map, u32 note) {
  return note & SPREAD ? ((const u32*)map)[16] / (note & UNIT) * (16 - (note & UNIT)) : 0;
}

// barrier.cluster of the program's threads: the GPU's own would wait for the helpers as well.
CALLED void tcir_emulation_cluster_arrive(u32 box, u32 ctas) {
  LOOP (u32 rank = 0; rank < ctas; ++rank) arrive_anywhere(ctas > 1 ? in_cta(box + CLUSTER, rank) : box + CLUSTER);
}
CALLED void tcir_emulation_cluster_wait(u32 box, u32 parity) { wait_of_cluster(box + CLUSTER, parity); }

// A thread of the program ends; the last one ends the helpers. ctas: of the cluster, whose barrier
// does not count the thread any more, or 0 without such barriers. phase: 2 while it has arrived and
// not waited, and the parity.
CALLED void tcir_emulation_exit(u32 box, u32 threads, u32 ctas, u32 phase) {
  if (ctas) {
    if (phase & 2) tcir_emulation_cluster_wait(box, phase & 1);
    LOOP (u32 rank = 0; rank < ctas; ++rank) {
      u32 at = ctas > 1 ? in_cta(box + CLUSTER, rank) : box + CLUSTER;
      asm volatile("mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(at) : "memory");
    }
  }
  if (add_word(box + EXITED, 1) + 1 == threads)
    tcir_emulation_issue(box, END, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

// per_sm: 0, tensor memory for each CTA of the grid; else for so many CTAs of each SM, which is more than
// are there at a time. A word of `pool` has a bit for each of them. behind: whether the commands are behind
// the box.
CALLED void tcir_emulation_start(u32 box, u64 memory, u64 pool, u32 per_sm, u32 arrivals, u32 behind) {
  if (threadIdx.x != 0) return;
  u32 place = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  if (per_sm) {
    u32 sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm >= SMS) __trap();
    u32 n = 0;
    LOOP (; atomicOr((u32*)pool + sm, 1u << n) >> n & 1; n = (n + 1) % per_sm);
    place = sm * per_sm + n;
  }
  memory += (u64)place * PLACE_BYTES;
  u64 commands = behind ? (u64)__cvta_shared_to_generic(box + BEHIND) : memory + LANES * COLUMNS * 4;
  set_word(box + TICKETS, 0);
  set_word(box + TAKEN, 0);
  set_word(box + MET, 0);
  set_word(box + EXITED, 0);
  set_word(box + PLACE, place);
  set_long(box + MEMORY, memory);
  set_long(box + COMMANDS, commands);
  LOOP (u32 n = 0; n < WARPS; ++n) set_word(box + DONE + 4 * n, 0);
  barrier_init(box + TURN, WARPS);
  barrier_init(box + CLUSTER, arrivals);
  LOOP (u32 n = 0; n < SLOTS; ++n) {
    barrier_init(box + FULL + 8 * n, 1);
    barrier_init(box + EMPTY + 8 * n, WARPS);
    barrier_init(box + RELAYS + 8 * n, 1);
    set_half(box + ISSUERS + 2 * n, 0);
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// --- matrices in shared memory (PTX ISA 9.7.16.3, .4.1) ------------------------------------------

struct Matrix {
  u32 start, lbo, sbo, span, lines, shift;
  u32 rank;  // of the CTA whose shared memory it is in
  bool remote, mapped;  // mapped: its address needs the CTA's rank, as in every cluster
};

DEVICE Matrix matrix(u64 bits, u32 rank, u32 mine, bool mapped) {
  Matrix m;
  m.start = (u32)(bits & 0x3fff) << 4;
  m.lbo = (u32)(bits >> 16 & 0x3fff) << 4;
  m.sbo = (u32)(bits >> 32 & 0x3fff) << 4;
  u32 code = (u32)(bits >> 61);
  m.span = code == 0 ? 0 : code == 4 ? 64 : code == 6 ? 32 : 128;
  m.lines = code == 2 ? 7 : code == 4 || code == 1 ? 3 : code == 6 ? 1 : 0;
  m.shift = code == 1 ? 5 : 4;
  m.rank = rank;
  m.remote = rank != mine;
  m.mapped = mapped;
  return m;
}
DEVICE u32 place(const Matrix& m, u32 at) {
  at ^= (at >> 7 & m.lines) << m.shift;
  return m.mapped ? in_cta(at, m.rank) : at;
}
DEVICE void load16(const Matrix& m, u32 at, u32* out) {
  at = place(m, at);
  if (m.remote)
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "r"(at) : "memory");
  else
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "r"(at) : "memory");
}
DEVICE u32 load_element(const Matrix& m, u32 at, u32 size) {
  at = place(m, at);
  u32 word, aligned = at & ~3u;
  if (m.remote) asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(word) : "r"(aligned) : "memory");
  else word = shared_word(aligned);
  word >>= 8 * (at & 3);
  return size == 4 ? word : word & ((1u << 8 * size) - 1);
}
// Where 16 bytes of a row of a K-major matrix are; where an element of an MN-major one is.
DEVICE u32 k_major_at(const Matrix& m, u32 row, u32 chunk) {
  return m.start + row / 8 * m.sbo + row % 8 * (m.span ? m.span : 16) + chunk * (m.span ? 16 : m.lbo);
}
DEVICE u32 mn_major_at(const Matrix& m, u32 row, u32 k, u32 size) {
  u32 each = 16 / size, wide = m.span / size, lines = m.shift == 5 ? 4 : 8;
  if (m.span) return m.start + row % wide * size + row / wide * m.lbo + k % lines * m.span + k / lines * m.sbo;
  return m.start + row % each * size + row / each * m.sbo + k % 8 * 16 + k / 8 * m.lbo;
}
// A row of a K-major matrix, or of an MN-major one made K-major: `chunks` of 16 bytes.
DEVICE void load_row(const Matrix& m, u32 row, bool mn_major, u32 size, u32 chunks, u32* out) {
  if (!mn_major) {
    LOOP (u32 j = 0; j < chunks; ++j) load16(m, k_major_at(m, row, j), out + 4 * j);
    return;
  }
  for (u32 w = 0; w < 4 * chunks; ++w) out[w] = 0;
  LOOP (u32 k = 0; k < 16 / size * chunks; ++k)
    out[k * size / 4] |= load_element(m, mn_major_at(m, row, k, size), size) << 8 * (k * size % 4);
}

// --- numbers (PTX ISA 5.2.3) -------------------------------------------------------------------

enum { F16, BF16, TF32, E4M3, E5M2, E2M3, E3M2, E2M1, U8, S8 };
enum { INFINITE = 4000, NOT_A_NUMBER = 4001, NONE = -100000 };

struct Form { u32 type, bits, exponent, mantissa; int bias; };

DEVICE Form form(u32 type) {
  switch (type) {
    case F16: return {type, 16, 5, 10, 15};
    case BF16: return {type, 16, 8, 7, 127};
    case TF32: return {type, 32, 8, 10, 127};
    case E4M3: return {type, 8, 4, 3, 7};
    case E5M2: return {type, 8, 5, 2, 15};
    case E2M3: return {type, 6, 2, 3, 1};
    case E3M2: return {type, 6, 3, 2, 3};
    case E2M1: return {type, 4, 2, 1, 1};
    default: return {type, 8, 0, 7, 0};
  }
}
// A number's significand (with its sign) in the low half, its raw exponent in the high one.
DEVICE int number(u32 code, const Form& f) {
  if (f.type == TF32) code >>= 13;
  u32 mantissa = code & ((1u << f.mantissa) - 1), top = (1u << f.exponent) - 1;
  u32 field = code >> f.mantissa & top;
  bool negative = code >> (f.mantissa + f.exponent) & 1;
  int significand = field ? mantissa | 1u << f.mantissa : mantissa, x = (field ? (int)field : 1) - f.bias;
  if (f.type <= TF32 || f.type == E5M2) {
    if (field == top) { x = mantissa ? NOT_A_NUMBER : INFINITE; significand = 1; }
  } else if (f.type == E4M3 && field == top && mantissa == 7) { x = NOT_A_NUMBER; significand = 1; }
  if (negative) significand = -significand;
  return x << 16 | (significand & 0xffff);
}
DEVICE int significand(int n) { return (int)(short)n; }
DEVICE int exponent(int n) { return n >> 16; }

// How the codes of a row lie in its words.
enum { PLAIN, PADDED, HELD, PAIRS };
DEVICE u32 code_at(const u32* words, u32 k, u32 how, u32 bits) {
  if (how == PAIRS) return words[k / 8] >> 4 * (k % 8) & 15;
  if (how == HELD) return words[k / 4] >> 8 * (k % 4) >> (bits == 4 ? 2 : 1) & ((1u << bits) - 1);
  if (how == PADDED) {
    const u32* unit = words + k / 16 * 4;
    u32 bit = k % 16 * bits, low = unit[bit / 32] >> bit % 32;
    if (bit % 32 + bits > 32) low |= unit[bit / 32 + 1] << (32 - bit % 32);
    return low & ((1u << bits) - 1);
  }
  if (bits == 32) return words[k];
  if (bits == 16) return words[k / 2] >> 16 * (k % 2) & 0xffff;
  return words[k / 4] >> 8 * (k % 4) & 0xff;
}

// --- sums (docs/explanation/numerics.md) -------------------------------------------------------

DEVICE u64 shifted(u64 v, int by) { return by >= 0 ? v << by : by > -64 ? v >> -by : 0; }
DEVICE u64 rounded_shift(u64 v, int by) {  // to nearest even
  if (by >= 0) return v << by;
  if (by <= -64) return 0;
  u64 kept = v >> -by, rest = v & ((1ull << -by) - 1), half = 1ull << (-by - 1);
  return kept + (rest > half || (rest == half && (kept & 1)));
}
DEVICE u32 to_f32(s64 sum, int q) {  // toward zero; a zero is +0
  if (!sum) return 0;
  u32 sign = sum < 0 ? 0x80000000u : 0;
  u64 size = sum < 0 ? -sum : sum;
  int top = 63 - __clzll(size), e = top + q;
  if (e < -126) {
    u32 steps = (u32)shifted(size, q + 149);
    return steps ? sign | steps : 0;
  }
  if (e > 127) return sign | 0x7f800000u;
  return sign | ((u32)(e + 127) << 23) | ((u32)shifted(size, 23 - top) & 0x7fffff);
}
DEVICE u32 to_f16(s64 sum, int q) {  // to nearest even; a zero is +0
  if (!sum) return 0;
  u32 sign = sum < 0 ? 0x8000u : 0;
  u64 size = sum < 0 ? -sum : sum;
  int top = 63 - __clzll(size), e = top + q;
  if (e < -14) {
    u32 steps = (u32)rounded_shift(size, q + 24);
    return steps ? sign | steps : 0;
  }
  if (e > 15) return sign | 0x7c00u;
  u32 code = ((u32)(e + 15) << 10) + (u32)rounded_shift(size, 10 - top) - 1024;
  return sign | (code > 0x7c00 ? 0x7c00u : code);
}

struct Addend { int significand, x, fraction; bool nan, infinite; };
DEVICE Addend addend(u32 d, bool is_f16, u32 scale) {
  Addend c;
  u32 field = is_f16 ? d >> 10 & 31 : d >> 23 & 255, top = is_f16 ? 31 : 255;
  u32 mantissa = is_f16 ? d & 1023 : d & 0x7fffff;
  c.fraction = is_f16 ? 10 : 23;
  c.significand = field ? mantissa | 1u << c.fraction : mantissa;
  c.x = (field ? (int)field : 1) - (is_f16 ? 15 : 127) - (int)scale;
  c.nan = field == top && mantissa;
  c.infinite = field == top && !mantissa;
  if (is_f16 ? d >> 15 & 1 : d >> 31) c.significand = -c.significand;
  return c;
}
// Products of a row of A and a column of B, and D: aligned to the largest raw exponent, truncated to
// 25 bits below it, added exactly, rounded once. at: where the k of each term is in B (sparse), or 0.
DEVICE u32 fused(const int* a, const int* b, const unsigned char* at, u32 terms, int fraction, bool negate, int scale,
                 bool scale_nan, bool add, const Addend& c, bool to_half) {
  int top = NONE;
  bool nan = scale_nan, plus = false, minus = false;
  LOOP (u32 k = 0; k < terms; ++k) {
    int m = a[k], n = b[at ? at[k] : k];
    int x = exponent(m), y = exponent(n), product = significand(m) * significand(n);
    if (x >= INFINITE || y >= INFINITE) {
      if (x == NOT_A_NUMBER || y == NOT_A_NUMBER || !product) nan = true;
      else if ((product < 0) != negate) minus = true;
      else plus = true;
    } else if (product && x + y + scale > top) top = x + y + scale;
  }
  if (add) {
    nan |= c.nan;
    if (c.infinite) (c.significand < 0 ? minus : plus) = true;
    else if (!c.nan && c.significand && c.x > top) top = c.x;
  }
  if (nan || (plus && minus)) return to_half ? 0x7fff : 0x7fffffff;
  if (plus || minus) return to_half ? (minus ? 0xfc00 : 0x7c00) : minus ? 0xff800000u : 0x7f800000u;
  if (top == NONE) return 0;
  int q = top - 25;
  s64 sum = 0;
  LOOP (u32 k = 0; k < terms; ++k) {
    int m = a[k], n = b[at ? at[k] : k], product = significand(m) * significand(n);
    u32 size = product < 0 ? -product : product;
    s64 part = (s64)shifted(size, exponent(m) + exponent(n) + scale - fraction - q);
    sum += (product < 0) != negate ? -part : part;
  }
  if (add) {
    u32 size = c.significand < 0 ? -c.significand : c.significand;
    s64 part = (s64)shifted(size, c.x - c.fraction - q);
    sum += c.significand < 0 ? -part : part;
  }
  return to_half ? to_f16(sum, q) : to_f32(sum, q);
}

struct Scale { int significand, x, fraction; bool nan; };  // a zero has the significand 0
DEVICE Scale scale_of(u32 code, bool ue8m0) {
  if (ue8m0) return {1, (int)code - 127, 0, code == 255};
  code &= 0x7f;
  u32 field = code >> 3, mantissa = code & 7;
  return {(int)(field ? mantissa + 8 : mantissa), (field ? (int)field : 1) - 7, 3, code == 0x7f};
}
// The fp4 kinds: sums of products are exact before anything is truncated. a, b: as of `number`, of
// e2m1. sa, sb: the bytes of the scales, `scales` of them for all of K.
DEVICE u32 fused_fp4(const int* a, const int* b, const unsigned char* at, u32 terms, u32 depth, bool negate, u32 sa,
                     u32 sb, u32 scales, bool ue8m0, bool add, const Addend& c) {
  u32 merge = depth / 4, fine = ue8m0 ? merge : 4, parts = merge / fine;
  int sums[32], tops[4], pair_x[4], factor[4], factor_x[4];
  bool nan = false;
  LOOP (u32 n = 0; n < 4 * parts; ++n) sums[n] = 0;
  LOOP (u32 g = 0; g < 4; ++g) tops[g] = NONE;
  LOOP (u32 k = 0; k < terms; ++k) {
    u32 where = at ? at[k] : k;
    int x = exponent(a[k]) + exponent(b[where]), product = significand(a[k]) * significand(b[where]);
    product *= 1 << x;  // in quarters: e2m1 has no exponent below 0
    sums[where / fine] += negate ? -product : product;
    if (product && x > tops[where / merge]) tops[where / merge] = x;
  }
  int largest = NONE, pair = NONE;
  LOOP (u32 g = 0; g < 4; ++g) {
    u32 s = g * scales / 4;
    Scale p = scale_of(sa >> 8 * s & 255, ue8m0), r = scale_of(sb >> 8 * s & 255, ue8m0);
    nan |= p.nan || r.nan;
    factor[g] = p.significand * r.significand;
    factor_x[g] = p.x + r.x - p.fraction - r.fraction - 2;
    pair_x[g] = tops[g] != NONE && factor[g] ? p.x + r.x : NONE;
    if (pair_x[g] != NONE) {
      if (pair_x[g] > pair) pair = pair_x[g];
      if (tops[g] + pair_x[g] > largest) largest = tops[g] + pair_x[g];
    }
  }
  bool has = add && c.significand;
  if (nan || (add && c.nan)) return 0x7fffffff;
  if (add && c.infinite) return c.significand < 0 ? 0xff800000u : 0x7f800000u;
  u32 c_size = has ? (c.significand < 0 ? -c.significand : c.significand) : 0;
  int cx = has ? c.x : NONE;
  if (largest == NONE) {
    s64 sum = c_size;
    return has ? to_f32(c.significand < 0 ? -sum : sum, c.x - 23) : 0;
  }
  int q = cx - 35;
  if (cx < largest) {
    q = largest - 39;
    if (pair - 35 > q) q = pair - 35;
  }
  s64 first = has ? (s64)shifted(c_size, cx - 23 - q) : 0;
  if (has && c.significand < 0) first = -first;
  s64 total = first, term[4];
  LOOP (u32 g = 0; g < 4; ++g) {
    term[g] = 0;
    if (cx < largest && !ue8m0) {
      LOOP (u32 f = g * parts; f < (g + 1) * parts; ++f) {
        u64 size = (u64)(sums[f] < 0 ? -sums[f] : sums[f]) * factor[g];
        s64 part = (s64)shifted(size, factor_x[g] - q);
        term[g] += sums[f] < 0 ? -part : part;
      }
    } else {
      int group = 0, own = q;
      LOOP (u32 f = g * parts; f < (g + 1) * parts; ++f) group += sums[f];
      if (pair_x[g] != NONE && cx >= tops[g] + pair_x[g] && cx - 35 > q) own = cx - 35;
      u64 size = (u64)(group < 0 ? -group : group) * factor[g];
      s64 part = (s64)(shifted(size, factor_x[g] - own) << (own - q));
      term[g] = group < 0 ? -part : part;
    }
    total += term[g];
  }
  if (ue8m0 && cx < largest && total) {
    int e = 63 - __clzll(total < 0 ? -total : total) + q;
    if (e >= -149 && e < -126) {
      total = first;
      LOOP (u32 g = 0; g < 4; ++g) {
        s64 size = term[g] < 0 ? -term[g] : term[g];
        bool large = size && (-174 - q <= 0 || 63 - __clzll(size) >= -174 - q);
        if (pair_x[g] >= pair || large) total += term[g];
      }
    }
  }
  return to_f32(total, q);
}

// --- instructions outside tcgen05 ----------------------------------------------------------------

DEVICE u32 narrowed(u32 bits, const Form& f, u32 most) {  // to nearest even, at most the largest
  u32 field = bits >> 23 & 255, mantissa = bits & 0x7fffff;
  if (field == 255 && mantissa) return most;
  if (field == 255) return most | bits >> 31 << (f.bits - 1);
  u64 size = field ? mantissa | 0x800000 : mantissa;
  int low = 1 - f.bias, q = (field ? (int)field : 1) - 150, x = low;
  if (size && 63 - __clzll(size) + q > low) x = 63 - __clzll(size) + q;
  u64 steps = rounded_shift(size, q - (x - (int)f.mantissa));
  u64 code = ((u64)(x + f.bias) << f.mantissa) + steps - (1u << f.mantissa);
  return (u32)(code > most ? most : code) | bits >> 31 << (f.bits - 1);
}
// cvt.rn.satfinite of two f32 to two codes of a type without NaN; high: the first operand.
CALLED u64 tcir_emulation_narrow(u32 high, u32 low, u32 type, u32 relu) {
  Form f = form(type);
  u32 most = (1u << (f.bits - 1)) - 1;
  bool no_high = relu && high >> 31 && (high << 1) <= 0xff000000u, no_low = relu && low >> 31 && (low << 1) <= 0xff000000u;
  u32 a = no_high ? 0 : narrowed(high, f, most), b = no_low ? 0 : narrowed(low, f, most);
  return type == E2M1 ? a << 4 | b : a << 8 | b;
}
DEVICE u32 power(u32 bits, bool up, bool saturate) {
  u32 field = bits >> 23 & 255, mantissa = bits & 0x7fffff, most = saturate ? 254 : 255;
  if (field == 255) return mantissa ? 255 : most;
  if (field == 0) {  // below 2^-126: 2^-127 is the least
    if (!up || mantissa <= 0x400000) return 0;
    return 1;
  }
  u32 code = field + (up && mantissa);
  return code > 254 ? most : code;
}
// cvt.rz and .rp of two f32 to ue8m0.
CALLED u64 tcir_emulation_scale(u32 high, u32 low, u32 up, u32 saturate) {
  return power(high, up, saturate) << 8 | power(low, up, saturate);
}
// cvt.rn to f16x2 of two codes; of ue8m0 (type 255) to bf16x2.
CALLED u64 tcir_emulation_widen(u32 codes, u32 type, u32 relu) {
  u32 out = 0;
  if (type == 255) {
    LOOP (u32 n = 0; n < 2; ++n) {
      u32 code = codes >> 8 * n & 255;
      out |= (code == 255 ? 0x7fffu : code ? code << 7 : 0x40u) << 16 * n;
    }
    return out;
  }
  Form f = form(type);
  LOOP (u32 n = 0; n < 2; ++n) {
    u32 code = (f.bits == 4 ? codes >> 4 * n : codes >> 8 * n) & ((1u << f.bits) - 1), sign = code >> (f.bits - 1);
    int each = number(code & ~(1u << (f.bits - 1)), f);
    u32 half = to_f16(significand(each), exponent(each) - (int)f.mantissa) | sign << 15;
    out |= (relu && sign ? 0 : half) << 16 * n;
  }
  return out;
}
// redux.sync of f32. flags: 1 max, 2 of magnitudes, 4 a NaN decides.
CALLED u64 tcir_emulation_redux(u32 bits, u32 mask, u32 flags) {
  if (flags & 2) bits &= 0x7fffffff;
  bool nan = (bits << 1) > 0xff000000u, largest = flags & 1;
  u32 key = bits >> 31 ? ~bits : bits | 0x80000000u;
  if (nan) key = ((flags & 4) != 0) == largest ? 0xffffffffu : 0;
  key = largest ? __reduce_max_sync(mask, key) : __reduce_min_sync(mask, key);
  if (key == 0xffffffffu || key == 0) return 0x7fffffff;
  return key >> 31 ? key & 0x7fffffff : ~key;
}
// st.bulk of zeros to shared memory.
CALLED void tcir_emulation_zero(u64 at, u64 bytes) {
  LOOP (u64 n = 0; n < bytes; n += 8) *(u64*)(at + n) = 0;
}
// clusterlaunchcontrol.try_cancel: there is never another CTA to take over, which a GPU may always
// say. ranks: the CTAs that hear of it, or 0 for this one.
CALLED void tcir_emulation_cancel(u32 at, u32 barrier, u32 ranks) {
  LOOP (u32 n = 0; n < (ranks ? ranks : 1); ++n) {
    u32 there = ranks ? in_cta(at, n) : at, bar = ranks ? in_cta(barrier, n) : barrier;
    asm volatile("st.shared::cluster.v2.b64 [%0], {%1, %1};" ::"r"(there), "l"(0ull) : "memory");
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 16;" ::"r"(bar) : "memory");
  }
}

#include "approximate.cuh"

// --- one mma (PTX ISA 9.7.16.10) ---------------------------------------------------------------

struct Side {  // what a CTA of the pair has
  u64 memory;
  u32 rank;
  bool mapped;
};

DEVICE u32 kind_of(u32 op) { return op >> 20 & 7; }

struct Shape { u32 m, n, rows, parts; bool half_lanes; };
DEVICE Shape shape(const Command& c) {
  Shape s;
  bool scaled = kind_of(c.op) >= KIND_MXF8F6F4, pair = c.op & PAIR;
  s.m = scaled ? (c.idesc >> 27 & 3) * 128 : (c.idesc >> 24 & 31) * 16;
  s.n = (c.idesc >> 17 & 63) * 8;
  s.rows = pair ? s.m / 2 : s.m;
  s.half_lanes = s.rows == 64 && (pair ? (c.op & SPARSE) != 0 : !(c.op & WS));
  s.parts = s.half_lanes ? 1 : LANES / s.rows;
  return s;
}

// Positions in K of the stored elements of a sparse row (PTX ISA 9.7.16.10.8).
DEVICE void selected(const Command& c, const Side& side, u32 lane, u32 depth, unsigned char* at) {
  u32 kind = kind_of(c.op), column = c.metadata & 0xffff, stored = depth / 2;
  bool one_column = kind == KIND_F16 || kind == KIND_TF32;
  u32 chunk = kind == KIND_TF32 ? 2 : kind >= KIND_MXF4 ? 8 : 4, each = chunk / 2;
  LOOP (u32 n = 0; n < depth / chunk; ++n) {
    u32 bits, k = n * chunk;
    if (one_column) {
      u32 row = lane % 16, from = lane - row + row % 8 + 8 * (k / stored);
      u32 bit = k % stored * (16 / stored) + 16 * (row / 8);
      bits = tmem(side.memory, from, column + (c.idesc & 3)) >> bit;
    } else bits = tmem(side.memory, lane, column + n / 8) >> 4 * (n % 8);
    bits &= 15;
    if (kind == KIND_TF32) at[n] = k + (bits == 0xe);
    else if (chunk == 4) { at[n * each] = k + (bits & 3); at[n * each + 1] = k + (bits >> 2); }
    else LOOP (u32 e = 0; e < 4; ++e) at[n * each + e] = k + 2 * (e < 2 ? bits & 3 : bits >> 2) + (e & 1);
  }
}

// Whether D's column sees B (PTX ISA 9.7.16.4.3).
DEVICE bool kept(u64 mask, u32 m, u32 n, u32 column) {
  if (!(mask >> 39 & 1)) return true;
  u32 banks = 128 / m, bank = column / (n / banks), zeros = (u32)(mask >> 40 & 255) + 1, used = (u32)(mask >> 48 & 255) + 1;
  u32 at = (column % (n / banks) + (u32)(mask >> 8 * bank & 255)) % (zeros + used);
  return mask >> (32 + bank) & 1 ? at >= zeros : at < used;
}

// Whether a lane has a row of D that is written.
DEVICE bool has_row(const Command& c, const Side& side, u32 lane) {
  u32 masks = (c.op & PAIR) && (side.rank & 1) ? 4 : 0;
  if (shape(c).half_lanes && lane / 16 % 2 != (c.d >> 16) / 16) return false;
  return !((c.op & MASKED) && c.off[masks + lane / 32] >> lane % 32 & 1);
}
// `some` columns of D from `first` on, of those that a lane has.
static __device__ __noinline__ void sum_row(const Command& c, const Side& side, const Side* sides, u32 lane, u32 mine,
                                               u32 first, u32 some) {
  Shape s = shape(c);
  u32 kind = kind_of(c.op), d_column = c.d & 0xffff;
  u32 row = lane % s.rows, part = lane / s.rows;
  if (s.half_lanes) {
    row = lane % 16 + 16 * (lane / 32);
    part = 0;
  }
  bool sparse = c.op & SPARSE, scaled = kind >= KIND_MXF8F6F4, fp4 = kind >= KIND_MXF4, i8 = kind == KIND_I8;
  u32 a_code = c.idesc >> 7 & 7, b_code = c.idesc >> 10 & (fp4 ? 3 : 7);
  const u32 narrow[6] = {E4M3, E5M2, E4M3, E2M3, E3M2, E2M1};
  u32 a_type = i8 ? U8 + a_code : kind == KIND_F16 ? a_code : kind == KIND_TF32 ? TF32 : fp4 ? E2M1 : narrow[a_code];
  u32 b_type = i8 ? U8 + b_code : kind == KIND_F16 ? b_code : kind == KIND_TF32 ? TF32 : fp4 ? E2M1 : narrow[b_code];
  Form fa = form(a_type), fb = form(b_type);
  u32 a_how = fp4 ? PAIRS : fa.bits >= 8 ? PLAIN : (c.op & A_IN_TMEM) ? HELD : PADDED;
  u32 b_how = fp4 ? PAIRS : fb.bits >= 8 ? PLAIN : PADDED;
  u32 a_size = fa.bits < 8 ? 1 : fa.bits / 8, b_size = fb.bits < 8 ? 1 : fb.bits / 8;
  u32 stored = fp4 ? 64 : 32 / a_size, depth = sparse ? 2 * stored : stored;
  bool negate = ((c.idesc >> 13) ^ (c.idesc >> 14)) & 1, to_half = !scaled && !i8 && (c.idesc >> 4 & 3) == 0;
  bool saturate = i8 && (c.idesc >> 3 & 1), add = c.op & ADD_D;

  u32 words[16];
  int a[64], b[128];
  unsigned char at[64];
  if (c.op & A_IN_TMEM)
    for (u32 w = 0; w < 8; ++w) words[w] = tmem(side.memory, lane, ((u32)c.a & 0xffff) + w);
  else load_row(matrix(c.a, side.rank, mine, side.mapped), row, c.idesc >> 15 & 1, a_size, 2, words);
  LOOP (u32 k = 0; k < stored; ++k) {
    u32 code = code_at(words, k, a_how, fa.bits);
    a[k] = i8 ? (a_type == S8 ? (int)(signed char)code : (int)code) : number(code, fa);
  }
  if (sparse) selected(c, side, lane, depth, at);
  u32 scales = c.op >> 24 & 7, sa = 0;
  bool ue8m0 = c.idesc >> 23 & 1;
  u32 sfa_id = c.idesc >> 29 & 3, sfb_id = c.idesc >> 4 & 3;
  if (scaled) sa = tmem(side.memory, row % 32, (c.sfa & 0xffff) + row / 32) >> 8 * sfa_id;

  u32 columns = s.n / s.parts, shift = c.op & ZEROS ? (u32)(c.zeros >> 56 & 63) : 0;
  LOOP (u32 j = first; j < first + some; ++j) {
    u32 n = part * columns + j;
    u32 b_rank = side.rank, b_row = n + shift;
    if ((c.op & PAIR)) {
      b_rank = sides[n >= s.n / 2].rank;
      b_row = n % (s.n / 2);
    }
    bool zero = (c.op & ZEROS) && !kept(c.zeros, s.m, s.n, n);
    if (!zero) load_row(matrix(c.b, b_rank, mine, side.mapped), b_row, c.idesc >> 16 & 1, b_size, sparse ? 4 : 2, words);
    LOOP (u32 k = 0; k < depth; ++k) {
      u32 code = zero ? 0 : code_at(words, k, b_how, fb.bits);
      b[k] = i8 ? (b_type == S8 ? (int)(signed char)code : (int)code) : number(code, fb);
    }
    u32 before = add ? tmem(side.memory, lane, d_column + j) : 0, result;
    const unsigned char* where = sparse ? at : 0;
    if (i8) {
      s64 sum = add ? (int)before : 0;
      LOOP (u32 k = 0; k < stored; ++k) sum += a[k] * b[where ? where[k] : k];
      if (saturate) sum = sum > 0x7fffffffll ? 0x7fffffffll : sum < -0x80000000ll ? -0x80000000ll : sum;
      result = (u32)sum;
    } else {
      Addend d = addend(before, to_half, c.op >> 16 & 15);
      u32 sb = 0;
      if (scaled) {
        bool halves = (c.op & PAIR) && s.m == 128;
        u32 in = halves ? n % (s.n / 2) : n, above = halves ? 64 * (n / (s.n / 2)) : 0;
        sb = tmem(side.memory, in % 32 + above, (c.sfb & 0xffff) + in / 32) >> 8 * sfb_id;
      }
      if (fp4) result = fused_fp4(a, b, where, stored, depth, negate, sa, sb, scales, ue8m0, add, d);
      else {
        Scale p = {0, 0, 0, false}, r = p;
        if (scaled) { p = scale_of(sa & 255, true); r = scale_of(sb & 255, true); }
        result = fused(a, b, where, stored, fa.mantissa + fb.mantissa, negate, p.x + r.x, p.nan || r.nan, add, d, to_half);
        if (to_half) result |= 0xcbcb0000u;  // the upper half is not specified; as on the machine
      }
    }
    set_tmem(side.memory, lane, d_column + j, result);
  }
}

// All lanes of a warp come out of it together: ptxas takes a call for something that converges, and a
// return from the middle of a function does not.
DEVICE void scalar_mma(const Command& c, const Side& side, const Side* sides, u32 lane, u32 mine, u32 first, u32 some) {
  if (has_row(c, side, lane)) sum_row(c, side, sides, lane, mine, first, some);
  __syncwarp();
}

#include "core.cuh"

// --- cp, shift, commit ---------------------------------------------------------------------------

DEVICE void copy(const Command& c, const Side& side, u32 lane, u32 mine) {
  u32 what = c.op >> 8 & 7, packed = c.op >> 12 & 3, row = lane, chunks = 1;
  if (what == CP_128x256b) chunks = 2;
  else if (what == CP_4x256b) {
    chunks = 2;
    if (lane % 32 != (c.d >> 16) % 32) return;
    row = lane / 32;
  } else if (what == CP_64x128b) row = c.op >> 11 & 1 ? lane % 32 + 32 * (lane / 64) : lane % 64;
  else if (what == CP_32x128b) row = lane % 32;
  u32 words[8];
  load_row(matrix(c.a, side.rank, mine, side.mapped), row, false, 1, chunks, words);
  for (u32 w = 0; w < 4 * chunks; ++w) {
    u32 out = words[w], bits = packed == 1 ? 4 : 6;
    if (packed) {
      out = 0;
      LOOP (u32 k = 0; k < 4; ++k) out |= code_at(words, 4 * w + k, PADDED, bits) << (bits == 4 ? 2 : 1) << 8 * k;
    }
    set_tmem(side.memory, lane, (c.d & 0xffff) + w, out);
  }
}

DEVICE void turn(u32 box, u32& parity, bool clustered) {  // all helpers have come here, and see what each wrote
  if (clustered) asm volatile("fence.acq_rel.gpu;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncwarp();
  if ((threadIdx.x & 31) == 0) arrive(box + TURN);
  wait(box + TURN, parity);
  parity ^= 1;
}

// Units that lie one behind another, at the end of their place, come to be 16 bytes apart: all that is still to
// be read is behind what is written.
DEVICE void spread(u32 box, u32 at, u32 bytes, u32 note, u32 lane, u32& parity, bool clustered) {
  u32 words = (note & UNIT) / 4, units = bytes / (note & UNIT), from = at + units * (16 - (note & UNIT));
  LOOP (u32 n = lane; n < (units + LANES - 1) / LANES * LANES; n += LANES) {
    u32 unit[3], to = at + 16 * n;
    if (note & SWIZZLED) to ^= (to >> 7 & 7) << 4;
    for (u32 w = 0; w < 3; ++w)
      if (n < units && w < words) unit[w] = shared_word(from + 4 * (n * words + w));
    turn(box, parity, clustered);
    for (u32 w = 0; w < 3; ++w)
      if (n < units && w < words) set_word(to + 4 * w, unit[w]);
    turn(box, parity, clustered);
  }
}

DEVICE void commit(const Command& c) {
  if (!(c.op & MULTICAST)) return arrive_anywhere((u32)c.a);
  LOOP (u32 rank = 0; rank < 16; ++rank)
    if (c.d >> rank & 1) arrive_anywhere(in_cta((u32)c.a, rank));
}

DEVICE void execute(u32 box, Command& c, const Batch& batch, u32 which, const Side& side, const Side* sides, u32 lane,
                    u32 mine, u32& parity, bool clustered) {
  u32 what = c.op & 255;
  if (what == MMA && which != BY_NONE) mma(c, batch, which, side, sides, lane, mine);
  else if (what == MMA) scalar_mma(c, side, sides, lane, mine, 0, shape(c).n / shape(c).parts);
  else if (what == CP) copy(c, side, lane, mine);
  if (what == SHIFT || (what == MMA && (c.op & ASHIFT))) {
    // Each lane takes the next one's words; the last lane of a quarter keeps its own.
    __syncwarp();
    u32 column = what == MMA ? (u32)c.a & 0xffff : c.d & 0xffff, next[8];
    bool moves = lane % 32 != 31 && (what == MMA || lane / 32 == (c.d >> 16) / 32);
    for (u32 w = 0; w < 8; ++w) next[w] = tmem(side.memory, lane + moves, column + w);
    turn(box, parity, clustered);
    if (moves)
      for (u32 w = 0; w < 8; ++w) set_tmem(side.memory, lane, column + w, next[w]);
  }
}

// The loop of the helpers; lane: 0..127. Products on the GPU's tensor cores concern the lanes of their
// warp alone, so that warps may be at different ones, and have different batches; everything else is in
// turn.
CALLED void tcir_emulation_work(u32 box, u32 lane, u32 per_sm, u64 pool, u32 clustered, u32 fuzz) {
  u32 parity = 0, relays = 0, mine = clustered ? cta_rank() : 0, early = 0;
  bool apart = false;  // since the last turn
  Side sides[2];
  Batch batch;
  LOOP (u32 n = 0;; n += batch.count) {
    u32 slot = n % SLOTS;
    u64 at = command_at(box, n);
    if (clustered) wait_of_cluster(box + FULL + 8 * slot, n / SLOTS & 1);
    else wait(box + FULL + 8 * slot, n / SLOTS & 1);
    if (fuzz) delay(n);
    bool relay = is_relay(box, n);
    Command c;
    c.a = generic_long(at);
    c.b = generic_long(at + 8);
    c.zeros = generic_long(at + 16);
    c.d = generic_word(at + 24);
    c.idesc = generic_word(at + 28);
    c.op = generic_word(at + 32);
    c.sfa = generic_word(at + 36);
    c.sfb = generic_word(at + 40);
    c.metadata = generic_word(at + 44);
    LOOP (u32 i = 0; i < 8; ++i) c.off[i] = generic_word(at + 48 + 4 * i);
    u32 what = c.op & 255, which = what == MMA && !relay ? multiplier(c) : BY_NONE, count = c.op & PAIR && what != COMMIT ? 2 : 1;
    bool own = which != BY_NONE && !(c.op & ASHIFT);
    if (relay) {
      u32 from = box + RELAYED + 16 * slot, barrier = shared_word(from), bytes = shared_word(from + 4), note = shared_word(from + 12);
      if (lane == 0 || note & SPREAD) wait(box + RELAYS + 8 * slot, relays >> slot & 1);
      if (note & SPREAD) spread(box, shared_word(from + 8), bytes, note, lane, parity, clustered);
      if (lane == 0) {
        asm volatile("fence.acq_rel.cluster;" ::: "memory");
        asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
      }
      relays ^= 1u << slot;
    }
    __syncwarp();
    batch.count = 1;
    batch.a[0] = c.a;
    batch.b[0] = c.b;
    if (own && !fuzz) gather(box, n, c, batch);
    bool alone = fuzz && !relay && (what == MMA || what == CP || what == SHIFT);  // of commands that a commit follows
    alone = alone && __shfl_sync(~0u, commit_of_another(box, n), 0);
    __syncwarp();
    if ((threadIdx.x & 31) == 0) {
      LOOP (u32 k = 0; k < batch.count; ++k) arrive(box + EMPTY + (n + k) % SLOTS * 8);
      if (clustered)
        asm volatile("st.release.cluster.shared::cta.u32 [%0], %1;" ::"r"(box + DONE + lane / 32 * 4), "r"(n + batch.count) : "memory");
    }
    if (relay) continue;
    if (apart && !own) {
      turn(box, parity, clustered);
      apart = false;
    }
    sides[0].memory = shared_long(box + MEMORY);
    sides[0].rank = mine;
    sides[0].mapped = sides[1].mapped = clustered;
    if (what == END) break;
    if (what == COMMIT) {
      if (lane == 0 && !early) commit(c);
      early = 0;
      continue;
    }
    if (alone) {
      u64 next = command_at(box, n + 1);
      Command other;
      other.a = generic_long(next);
      other.d = generic_word(next + 24);
      other.op = generic_word(next + 32);
      if (lane == 0) commit(other);
      early = 1;
      delay(n + 1);
    }
    if (count == 2)
      LOOP (u32 i = 0; i < 2; ++i) {
        sides[i].rank = (mine & ~1u) + i;
        asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(sides[i].memory) : "r"(in_cta(box + MEMORY, sides[i].rank)) : "memory");
      }
    LOOP (u32 i = 0; i < count; ++i) execute(box, c, batch, which, sides[i], sides, lane, mine, parity, clustered);
    if (own) apart = true;
    else turn(box, parity, clustered);
  }
  if (fuzz && lane == 0 && shared_word(box + TAKEN)) __trap();  // it ends with columns allocated
  if (clustered) {  // shared memory of a CTA stays as long as another one may read it
    __syncwarp();
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  }
  if (per_sm && lane == 0) {
    u32 place = shared_word(box + PLACE);
    atomicAnd((u32*)pool + place / per_sm, ~(1u << place % per_sm));
  }
}
