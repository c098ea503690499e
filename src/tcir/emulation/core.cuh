// One mma on the GPU's own tensor cores: mma.sync adds as tcgen05.mma does (docs/explanation/numerics.md): 32 bytes of
// K and D in one sum, aligned to the largest exponent, truncated to 25 bits, for f16, bf16, tf32; integers
// exactly. The two differ where the largest exponent is below ZERO_EXPONENT, and in what has no such
// instruction: that is summed by `scalar_mma`.

enum { ZERO_EXPONENT = -133, NO_EXPONENT = 1000, TILES = 4 };

// Fragments of mma.sync have the same place for all types, in words: word w of a row is in lane
// 4 * (row % 8) + w % 4. A block is 8 rows of 16 bytes, a matrix of ldmatrix.
CALLED u64 tcir_emulation_word(u64 descriptor, u32 rank, u32 mine, u32 mapped, u32 row, u32 mn_major, u32 size, u32 w) {
  Matrix m = matrix(descriptor, rank, mine, mapped);
  if (!mn_major) return load_element(m, k_major_at(m, row, w / 4) + w % 4 * 4, 4);
  u32 out = 0, each = 4 / size;
  LOOP (u32 e = 0; e < each; ++e) out |= load_element(m, mn_major_at(m, row, w * each + e, size), size) << 8 * size * e;
  return out;
}
struct Operand {
  u64 descriptor;
  u32 rank, mine, size;
  bool mapped, mn_major;
};
DEVICE u32 word_of(const Operand& o, u32 row, u32 w) {
  return (u32)tcir_emulation_word(o.descriptor, o.rank, o.mine, o.mapped, row, o.mn_major, o.size, w);
}
// How a lane finds its part of the blocks of a matrix: of a block that starts at row r, from the matrix's
// start, bytes = (r & mask) * 2 + (r >> rows) * step + line; for words of a K-major block word + half * w / 4.
struct Lines {
  u32 mask, rows, step, line, word, half, lines, shift;
};
// half, at: which line, 0 to 7, of which 16 bytes of K is this lane's.
DEVICE Lines lines_of(const Operand& o, u32 half, u32 at, u32 lane) {
  Matrix m = matrix(o.descriptor, o.rank, o.mine, o.mapped);
  u32 row = m.span ? m.span : 16, chunk = m.span ? 16 : m.lbo;
  Lines l = {0, 3, m.sbo, at * row + half * chunk, lane / 4 * row + lane % 4 * 4, chunk, m.lines, m.shift};
  if (o.mn_major) {
    l.line = mn_major_at(m, 0, 8 * half + at, 2) - m.start;
    if (m.span) {
      l.mask = m.span / 2 - 1;
      l.rows = 31 - __clz(m.span / 2);
      l.step = m.lbo;
    }
  }
  return l;
}
DEVICE u32 line_at(const Lines& l, const Operand& o, u32 row, u32 offset) {
  u32 at = ((u32)o.descriptor & 0x3fff) * 16 + (row & l.mask) * 2 + (row >> l.rows) * l.step + offset;
  at ^= (at >> 7 & l.lines) << l.shift;
  return o.mapped ? in_cta(at, o.rank) : at;
}
// Blocks that ldmatrix reads: of this CTA, and K-major or of 16-bit elements.
DEVICE bool by_blocks(const Operand& o) { return o.rank == o.mine && (!o.mn_major || o.size == 2); }
DEVICE void load_a(const Operand& o, const Lines& l, u32 row, u32 lane, u32 (&a)[4]) {
  if (by_blocks(o)) {
    u32 at = line_at(l, o, row + lane / 8 % 2 * 8, l.line);
    if (o.mn_major)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at) : "memory");
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at) : "memory");
    return;
  }
  for (u32 i = 0; i < 4; ++i) a[i] = word_of(o, row + i % 2 * 8 + lane / 4, i / 2 * 4 + lane % 4);
}
DEVICE void load_b(const Operand& o, const Lines& l, u32 row, u32 lane, u32 (&b)[2]) {
  if (by_blocks(o)) {
    u32 at = line_at(l, o, row, l.line);
    if (o.mn_major)
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(at) : "memory");
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(at) : "memory");
  } else if (!o.mn_major) {  // of the peer
    for (u32 i = 0; i < 2; ++i)
      asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(b[i]) : "r"(line_at(l, o, row, l.word + i * l.half)) : "memory");
  } else {
    for (u32 i = 0; i < 2; ++i) b[i] = word_of(o, row + lane / 4, i * 4 + lane % 4);
  }
}

// The least raw exponent of the numbers of a word that are not zero: two of bf16, or one of tf32.
DEVICE int least_exponent(u32 word, bool tf32) {
  int low = NO_EXPONENT;
  for (u32 shift = 0; shift < 32; shift += 16) {
    if (tf32 && !shift) continue;
    u32 code = (tf32 ? word & 0xffffe000u : word << (16 - shift) & 0xffff0000u) & 0x7fffffffu;
    int field = code >> 23, x = (field ? field : 1) - 127;
    if (code && x < low) low = x;
  }
  return low;
}

// What mma.sync computes, by number: f16, bf16, tf32, then integers: 3 + 2 * (A signed) + (B signed), and 4
// more if sums are clamped.
template <u32 WHICH> DEVICE void multiply(const u32 (&a)[4], const u32 (&b)[2], u32 (&d)[4]) {
#define MMA_SYNC(what)                                                                                         \
  asm volatile("mma.sync.aligned." what " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"     \
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                                \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if (WHICH == 0) MMA_SYNC("m16n8k16.row.col.f32.f16.f16.f32");
  if (WHICH == 1) MMA_SYNC("m16n8k16.row.col.f32.bf16.bf16.f32");
  if (WHICH == 2) MMA_SYNC("m16n8k8.row.col.f32.tf32.tf32.f32");
  if (WHICH == 3) MMA_SYNC("m16n8k32.row.col.s32.u8.u8.s32");
  if (WHICH == 4) MMA_SYNC("m16n8k32.row.col.s32.u8.s8.s32");
  if (WHICH == 5) MMA_SYNC("m16n8k32.row.col.s32.s8.u8.s32");
  if (WHICH == 6) MMA_SYNC("m16n8k32.row.col.s32.s8.s8.s32");
  if (WHICH == 7) MMA_SYNC("m16n8k32.row.col.satfinite.s32.u8.u8.s32");
  if (WHICH == 8) MMA_SYNC("m16n8k32.row.col.satfinite.s32.u8.s8.s32");
  if (WHICH == 9) MMA_SYNC("m16n8k32.row.col.satfinite.s32.s8.u8.s32");
  if (WHICH == 10) MMA_SYNC("m16n8k32.row.col.satfinite.s32.s8.s8.s32");
#undef MMA_SYNC
}
typedef u32 Sums[2][TILES][4];
template <u32 WHICH> DEVICE void multiply_all(const u32 (&a)[2][4], const u32 (&b)[TILES][2], Sums& d) {
  for (u32 i = 0; i < 2; ++i)
    for (u32 t = 0; t < TILES; ++t) multiply<WHICH>(a[i], b[t], d[i][t]);  // rows and columns that D lacks are zeros
}
DEVICE void multiply_by(u32 which, const u32 (&a)[2][4], const u32 (&b)[TILES][2], Sums& d) {
  switch (which) {
    case 0: return multiply_all<0>(a, b, d);
    case 1: return multiply_all<1>(a, b, d);
    case 2: return multiply_all<2>(a, b, d);
    case 3: return multiply_all<3>(a, b, d);
    case 4: return multiply_all<4>(a, b, d);
    case 5: return multiply_all<5>(a, b, d);
    case 6: return multiply_all<6>(a, b, d);
    case 7: return multiply_all<7>(a, b, d);
    case 8: return multiply_all<8>(a, b, d);
    case 9: return multiply_all<9>(a, b, d);
    default: return multiply_all<10>(a, b, d);
  }
}
enum { BY_BF16 = 1, BY_TF32 = 2, BY_INTEGERS = 3, BY_NONE = 11 };
// Which of these a command is.
DEVICE u32 multiplier(const Command& c) {
  u32 kind = kind_of(c.op), a = c.idesc >> 7 & 7, b = c.idesc >> 10 & 7;
  Shape s = shape(c);
  if ((c.op & (SPARSE | ZEROS | 15 << 16)) || s.n / s.parts % 8) return BY_NONE;
  if (kind == KIND_I8) return a < 2 && b < 2 ? BY_INTEGERS + 2 * a + b + (c.idesc >> 3 & 1) * 4 : BY_NONE;
  if (kind > KIND_TF32 || a != b || (c.idesc >> 4 & 3) != 1) return BY_NONE;
  return kind == KIND_TF32 ? (a == 2 ? BY_TF32 : BY_NONE) : a < 2 ? a : BY_NONE;
}

// Commands that differ in their operands alone, and each adds to D: what a warp computes at once.
struct Batch {
  u64 a[SLOTS], b[SLOTS];
  u32 count;
};
// Adds the commands behind n that are there already, as lane 0 of the warp sees it.
DEVICE void gather(u32 box, u32 n, const Command& c, Batch& batch) {
  u32 column = c.d & 0xffff, found = 1;
  batch.a[0] = c.a;
  batch.b[0] = c.b;
  if (!(c.op & MASKED) && threadIdx.x % 32 == 0)
    LOOP (; found < SLOTS; ++found) {
      u64 at = command_at(box, n + found);
      if (!is_full(box, n + found) || generic_word(at + 32) != (c.op | ADD_D) || generic_word(at + 24) != c.d || generic_word(at + 28) != c.idesc)
        break;
      u64 changes = ((c.op & A_IN_TMEM ? 0 : generic_long(at) ^ c.a) | (generic_long(at + 8) ^ c.b)) >> 14;
      if (changes) break;  // of more than where they start
      u32 overlap = ((u32)generic_long(at) - column + 8) % COLUMNS;  // of an A in tensor memory with D
      if ((c.op & A_IN_TMEM) && overlap < (c.idesc >> 17 & 63) * 8 + 8) break;
    }
  batch.count = __shfl_sync(~0u, found, 0);
  __syncwarp();  // what lane 0 saw full is there for all: a shuffle orders no memory
  LOOP (u32 k = 1; k < batch.count; ++k) {
    u64 at = command_at(box, n + k);
    batch.a[k] = generic_long(at);
    batch.b[k] = generic_long(at + 8);
  }
}

// A warp's part of D: 16 rows for each of `rows`, 8 columns for each tile. off: rows that are not written.
struct Part {
  u32* words;
  u32 rows, columns, off;
};
DEVICE u32* sum_at(const Part& p, u32 i, u32 t, u32 w) { return p.words + (8 * t + w % 2) * LANES + 16 * i + w / 2 * 8; }
DEVICE void load_sums(const Part& p, Sums& d) {
  for (u32 i = 0; i < 2; ++i)
    for (u32 t = 0; t < TILES; ++t)
      for (u32 w = 0; w < 4; ++w)
        if (i < p.rows && 8 * t < p.columns) d[i][t][w] = __ldcg(sum_at(p, i, t, w));
}
DEVICE void store_sums(const Part& p, const Sums& d) {
  for (u32 i = 0; i < 2; ++i)
    for (u32 t = 0; t < TILES; ++t)
      for (u32 w = 0; w < 4; ++w)
        if (i < p.rows && 8 * t < p.columns && !(p.off >> (16 * i + w / 2 * 8 + threadIdx.x % 32 / 4) & 1))
          __stcg(sum_at(p, i, t, w), d[i][t][w]);
}
// Each warp computes the rows of D that are in its lanes, 32 columns at a time. which: not BY_NONE.
DEVICE void mma(Command& c, const Batch& batch, u32 which, const Side& side, const Side* sides, u32 thread, u32 mine) {
  Shape s = shape(c);
  u32 warp = thread / 32, lane = thread % 32, columns = s.n / s.parts, size = which == BY_TF32 ? 4 : which >= BY_INTEGERS ? 1 : 2;
  u32 first = 32 * warp, row = first % s.rows, n = first / s.rows * columns, rows = 2;
  if (s.half_lanes) {
    first += c.d >> 16 & 16;
    row = 16 * warp;
    n = 0;
    rows = 1;
  }
  u32 flip = which < BY_INTEGERS && (((c.idesc >> 13) ^ (c.idesc >> 14)) & 1) ? (which == BY_TF32 ? 0x80000000u : 0x80008000u) : 0;
  bool checked = which == BY_BF16 || which == BY_TF32, tf32 = which == BY_TF32;
  Operand left = {c.a, side.rank, mine, size, side.mapped, (bool)(c.idesc >> 15 & 1)}, right = left;
  right.mn_major = c.idesc >> 16 & 1;
  left.descriptor = batch.a[0];
  right.descriptor = batch.b[0];
  Lines left_lines = lines_of(left, lane / 16, lane % 8, lane), right_lines = lines_of(right, lane / 8 % 2, lane % 8, lane);
  Part part;
  part.rows = rows;
  part.off = c.op & MASKED ? c.off[((c.op & PAIR) && (side.rank & 1) ? 4 : 0) + warp] >> first % 32 : 0;
  LOOP (u32 j = 0; j < columns; j += 8 * TILES) {
    part.columns = min(columns - j, 8 * TILES);
    part.words = word_at(side.memory, first + lane / 4, (c.d & 0xffff) + j + lane % 4 * 2);
    Sums d = {};
    if (c.op & ADD_D) load_sums(part, d);
    LOOP (u32 k = 0; k < batch.count; ++k) {
      u32 a[2][4] = {}, b[TILES][2] = {};
      int least_a = NO_EXPONENT, least_b = NO_EXPONENT;
      left.descriptor = batch.a[k];
      right.descriptor = batch.b[k];
      for (u32 i = 0; i < 2; ++i) {
        if (i == rows) break;
        if (c.op & A_IN_TMEM)
          for (u32 w = 0; w < 4; ++w)
            a[i][w] = tmem(side.memory, first + 16 * i + w % 2 * 8 + lane / 4, ((u32)batch.a[k] & 0xffff) + w / 2 * 4 + lane % 4);
        else load_a(left, left_lines, row + 16 * i, lane, a[i]);
        for (u32 w = 0; w < 4; ++w) {
          if (checked) least_a = min(least_a, least_exponent(a[i][w], tf32));
          a[i][w] ^= flip;
          if (tf32) a[i][w] &= 0xffffe000u;
        }
      }
      for (u32 t = 0; t < TILES; ++t) {
        if (8 * t >= part.columns) break;
        u32 b_row = n + j + 8 * t;
        if (c.op & PAIR) {
          right.rank = sides[b_row >= s.n / 2].rank;
          if (b_row >= s.n / 2) b_row -= s.n / 2;
        }
        load_b(right, right_lines, b_row, lane, b[t]);
        for (u32 w = 0; w < 2; ++w) {
          if (checked) least_b = min(least_b, least_exponent(b[t][w], tf32));
          if (tf32) b[t][w] &= 0xffffe000u;
        }
      }
      if (checked && __reduce_min_sync(~0u, least_a) + __reduce_min_sync(~0u, least_b) < ZERO_EXPONENT) {
        Command one = c;
        one.a = batch.a[k];
        one.b = batch.b[k];
        if (k) {
          one.op |= ADD_D;
          store_sums(part, d);
        }
        __syncwarp();
        scalar_mma(one, side, sides, thread, mine, j, part.columns);
        load_sums(part, d);
      } else multiply_by(which, a, b, d);
    }
    store_sums(part, d);
  }
}
