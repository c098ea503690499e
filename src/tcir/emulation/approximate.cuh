// Approximations in f64, for bits that do not depend on the GPU: of an f32 or narrower, to be rounded once.
// Within 4 units of the last place of f64; the simulated machine's are the host's, as near. A NaN is that
// of f32, f16 and bf16 when it is rounded.

#define SERIES _Pragma("unroll") for  // so that 1 / k is a constant

enum : u64 { NAN_BITS = 0x7fffffffffffffff, INFINITY_BITS = 0x7ff0000000000000, SIGN_BIT = 1ull << 63 };
DEVICE double number_of(u64 bits) { return __longlong_as_double((s64)bits); }
DEVICE u64 bits_of(double x) { return x == x ? (u64)__double_as_longlong(x) : NAN_BITS; }
DEVICE double power_of_two(int n) { return number_of((u64)(n + 1023) << 52); }
DEVICE double exp_near_zero(double x) {  // |x| < 0.35: the sum of x^k / k!, k to 14
  double sum = 1;
  SERIES (int k = 14; k; --k) sum = fma(sum, x * (1.0 / k), 1.0);
  return sum;
}
DEVICE double exp2_of(double x) {
  if (!(x < 300)) return x > 0 ? number_of(INFINITY_BITS) : x;  // a NaN stays
  if (x < -300) return 0;
  int n = __double2int_rn(x);
  return exp_near_zero((x - n) * 0.693147180559945309417) * power_of_two(n);
}
CALLED u64 tcir_emulation_exp2(u64 x) { return bits_of(exp2_of(number_of(x))); }
CALLED u64 tcir_emulation_rsqrt(u64 x) { return bits_of(__drcp_rn(__dsqrt_rn(number_of(x)))); }
CALLED u64 tcir_emulation_log2(u64 bits) {
  double x = number_of(bits);
  if (!(x > 0)) return x == 0 ? INFINITY_BITS | SIGN_BIT : NAN_BITS;
  if (bits == INFINITY_BITS) return bits;
  int n = (int)(bits >> 52) - 1023;
  double m = number_of((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.41421356237309505) {
    m *= 0.5;
    ++n;
  }
  double s = (m - 1) / (m + 1), square = s * s, sum = 0;  // ln m = 2 s (1 + s^2 / 3 + s^4 / 5 + ...)
  SERIES (int k = 25; k > 0; k -= 2) sum = fma(sum, square, 1.0 / k);
  return bits_of(fma(2 * s * sum, 1.44269504088896340736, (double)n));
}
CALLED u64 tcir_emulation_tanh(u64 bits) {
  u64 sign = bits & SIGN_BIT;
  double x = number_of(bits & ~sign), y = 2 * x, t;
  if (x > 40) return bits_of(1) | sign;
  if (!(x > 0x1p-30)) return bits_of(number_of(bits));
  if (y < 0.35) {  // exp(y) - 1: the sum of y^k / k!, from k = 1 on
    t = 1;
    SERIES (int k = 14; k > 1; --k) t = fma(t, y * (1.0 / k), 1.0);
    t *= y;
  } else t = exp2_of(y * 1.44269504088896340736) - 1;
  return bits_of(t / (t + 2)) | sign;
}
