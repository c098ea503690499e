// Functions of CUDA's libraries, checked by loops. Their headers are no dependency of tcir, so the
// functions are declared here. An argument: capture, in which a library's function has no place.
#include <cuda.h>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <vector>

extern "C" {
int cublasCreate_v2(void **), cublasDestroy_v2(void *), cublasSetStream_v2(void *, cudaStream_t);
int cublasDgemm_v2(void *, int, int, int, int, int, const double *, const double *, int, const double *, int, const double *, double *, int);
int cublasSgemv_v2(void *, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);
int cublasSdot_v2(void *, int, const float *, int, const float *, int, float *);
int cublasSaxpy_v2(void *, int, const float *, const float *, int, float *, int);
int cublasDgetrfBatched(void *, int, double *const *, int, int *, int *, int);
int cufftPlan1d(int *, int, int, int), cufftPlan2d(int *, int, int, int), cufftDestroy(int);
int cufftExecC2C(int, void *, void *, int), cufftExecR2C(int, void *, void *), cufftExecC2R(int, void *, void *);
int cusparseCreate(void **), cusparseCreateDnVec(void **, long long, void *, int);
int cusparseCreateCsr(void **, long long, long long, long long, void *, void *, void *, int, int, int, int);
int cusparseSpMV(void *, int, const void *, void *, void *, const void *, void *, int, int, void *);
int curandCreateGenerator(void **, int), curandSetPseudoRandomGeneratorSeed(void *, unsigned long long);
int curandGenerateUniform(void *, float *, size_t), curandSetQuasiRandomGeneratorDimensions(void *, unsigned);
int nvrtcCreateProgram(void **, const char *, const char *, int, const char *const *, const char *const *);
int nvrtcCompileProgram(void *, int, const char *const *), nvrtcGetPTXSize(void *, size_t *), nvrtcGetPTX(void *, char *);
int nvrtcGetProgramLogSize(void *, size_t *), nvrtcGetProgramLog(void *, char *);
const char *nvrtcGetErrorString(int);
}

static double number(int i) { return (i * 37 + 11) % 64 / 8.0 - 3; }
static void check(const char *name, bool right) { printf("%s %s\n", name, right ? "right" : "wrong"); }
template <typename T> static T *shared(int n) {
  T *p;
  cudaMallocManaged(&p, n * sizeof(T));
  for (int i = 0; i < n; ++i) p[i] = (T)number(i);
  return p;
}

static void blas() {
  void *h;
  cublasCreate_v2(&h);
  bool right = true;
  double *a = shared<double>(64), *b = shared<double>(64), *c = shared<double>(64), two = 2, half = 0.5;
  for (int form = 0; form < 4; ++form) {
    int ta = form & 1, tb = form >> 1, m = 3, n = 4, k = 5;
    for (int i = 0; i < 64; ++i) c[i] = number(3 * i);
    cublasDgemm_v2(h, ta, tb, m, n, k, &two, a, 6, b, 7, &half, c, 8);
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int l = 0; l < k; ++l) sum += (ta ? a[l + 6 * i] : a[i + 6 * l]) * (tb ? b[j + 7 * l] : b[l + 7 * j]);
        double old = number(3 * (i + 8 * j));
        right &= std::fabs(c[i + 8 * j] - (i < m ? 2 * sum + old / 2 : old)) < 1e-12;
      }
  }
  check("gemm", right);
  float *x = shared<float>(40), *y = shared<float>(40), *g = shared<float>(40), three = 3, none = 0, found;
  cublasSgemv_v2(h, 1, 4, 3, &three, g, 5, x, 2, &none, y, -1);
  for (int j = 0; j < 3; ++j) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += g[i + 5 * j] * x[2 * i];
    right &= y[2 - j] == (float)(3 * sum);
  }
  check("gemv", right);
  cublasSdot_v2(h, 10, x, 2, x + 1, 3, &found);
  cublasSaxpy_v2(h, 10, &three, x, 1, y, 2);
  double sum = 0;
  for (int i = 0; i < 10; ++i) sum += x[2 * i] * x[1 + 3 * i], right &= i < 2 || y[2 * i] == (float)(3 * x[i] + number(2 * i));
  check("dot, axpy", right && found == (float)sum);
  double **table, *f = shared<double>(16), before[16];
  cudaMallocManaged(&table, sizeof *table);
  memcpy(before, f, sizeof before);
  int *pivots = shared<int>(4), *info = shared<int>(1), order[4] = {0, 1, 2, 3};
  table[0] = f;
  cublasDgetrfBatched(h, 4, table, 4, pivots, info, 1);
  for (int i = 0; i < 4; ++i) std::swap(order[i], order[pivots[i] - 1]);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      double sum = 0;
      for (int l = 0; l <= i && l <= j; ++l) sum += (l == i ? 1 : f[i + 4 * l]) * f[l + 4 * j];
      right &= std::fabs(sum - before[order[i] + 4 * j]) < 1e-12;
    }
  check("getrf", right && !info[0]);
  cublasDestroy_v2(h);
}

static void fft() {
  using C = std::complex<float>;
  int plan, n = 12, batch = 2;
  C *x = (C *)shared<float>(2 * n * batch), *y = (C *)shared<float>(2 * n * batch);
  bool right = true;
  for (int sign : {-1, 1}) {
    cufftPlan1d(&plan, n, 0x29, batch);
    cufftExecC2C(plan, x, y, sign);
    for (int b = 0; b < batch; ++b)
      for (int k = 0; k < n; ++k) {
        std::complex<double> sum = 0;
        for (int j = 0; j < n; ++j) sum += std::complex<double>(x[b * n + j]) * std::polar(1.0, sign * 2 * M_PI * j * k / n);
        right &= std::abs(sum - std::complex<double>(y[b * n + k])) < 1e-4;
      }
    cufftDestroy(plan);
  }
  check("C2C", right);
  int rows = 3, columns = 4, half = 3;
  float *r = shared<float>(2 * rows * half), *back = shared<float>(rows * columns);
  std::vector<float> real(rows * columns);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) real[i * columns + j] = r[i * 2 * half + j];  // padded, in place
  cufftPlan2d(&plan, rows, columns, 0x2a);
  cufftExecR2C(plan, r, r);
  for (int k = 0; k < rows; ++k)
    for (int l = 0; l < half; ++l) {
      std::complex<double> sum = 0;
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j)
          sum += (double)real[i * columns + j] * std::polar(1.0, -2 * M_PI * ((double)i * k / rows + (double)j * l / columns));
      right &= std::abs(sum - std::complex<double>(((C *)r)[k * half + l])) < 1e-4;
    }
  cufftPlan2d(&plan, rows, columns, 0x2c);
  cufftExecC2R(plan, r, back);
  for (int i = 0; i < rows * columns; ++i) right &= std::fabs(back[i] - rows * columns * real[i]) < 1e-4;
  check("R2C, C2R", right);
}

static void sparse() {
  void *h, *a, *x, *y;
  int *starts = shared<int>(4), *columns = shared<int>(5);
  float *values = shared<float>(5), *in = shared<float>(4), *out = shared<float>(3), two = 2, half = 0.5;
  int s[] = {1, 3, 3, 6}, c[] = {2, 4, 1, 2, 3};  // from 1; the second row is empty
  memcpy(starts, s, sizeof s), memcpy(columns, c, sizeof c);
  float old[] = {out[0], out[1], out[2]};
  cusparseCreate(&h), cusparseCreateCsr(&a, 3, 4, 5, starts, columns, values, 2, 2, 1, 0);
  cusparseCreateDnVec(&x, 4, in, 0), cusparseCreateDnVec(&y, 3, out, 0);
  cusparseSpMV(h, 0, &two, a, x, &half, y, 0, 0, nullptr);
  bool right = true;
  for (int i = 0; i < 3; ++i) {
    double sum = 0;
    for (int j = s[i] - 1; j < s[i + 1] - 1; ++j) sum += values[j] * in[c[j] - 1];
    right &= out[i] == (float)(2 * sum + old[i] / 2);
  }
  check("SpMV", right);
}

static void numbers() {
  void *g[2];
  float *v[2] = {shared<float>(4096), shared<float>(4096)};
  double mean = 0;
  for (int i = 0; i < 2; ++i) {
    curandCreateGenerator(&g[i], 100), curandSetPseudoRandomGeneratorSeed(g[i], 7);
    curandGenerateUniform(g[i], v[i], 4096);
  }
  bool right = !memcmp(v[0], v[1], 4096 * sizeof(float));
  for (int i = 0; i < 4096; ++i) right &= v[0][i] > 0 && v[0][i] <= 1, mean += v[0][i] / 4096;
  curandGenerateUniform(g[1], v[1], 4096);
  check("uniform", right && std::fabs(mean - 0.5) < 0.03 && memcmp(v[0], v[1], 64));
  curandCreateGenerator(&g[0], 201), curandSetQuasiRandomGeneratorDimensions(g[0], 2);
  curandGenerateUniform(g[0], v[0], 16);
  printf("Sobol");
  for (int i = 0; i < 16; ++i) printf(" %g", v[0][i]);
  printf("\n");
}

static void compiled() {
  void *program;
  size_t size;
  const char *text = "#include \"add.h\"\nextern \"C\" __global__ void k(int *p) { p[threadIdx.x] += ADDED + MORE; }";
  const char *headers[] = {"#define ADDED 5"}, *names[] = {"add.h"}, *flags[] = {"--gpu-architecture=sm_100", "-DMORE=2"};
  nvrtcCreateProgram(&program, text, "k.cu", 1, headers, names);
  int status = nvrtcCompileProgram(program, 2, flags);
  nvrtcGetPTXSize(program, &size);
  std::vector<char> ptx(size);
  nvrtcGetPTX(program, ptx.data());
  CUmodule module;
  CUfunction f;
  int *p = shared<int>(4);
  void *arguments[] = {&p};
  cuModuleLoadData(&module, ptx.data()), cuModuleGetFunction(&f, module, "k");
  cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, 0, arguments, 0);
  bool right = !status;
  for (int i = 0; i < 4; ++i) right &= p[i] == (int)number(i) + 7;
  right &= !cuCtxPopCurrent(nullptr);
  check(nvrtcGetErrorString(status), right);
  nvrtcCreateProgram(&program, "__global__ void k() { x = 1; }", "k.cu", 0, nullptr, nullptr);
  status = nvrtcCompileProgram(program, 0, nullptr);
  nvrtcGetProgramLogSize(program, &size);
  std::vector<char> log(size);
  nvrtcGetProgramLog(program, log.data());
  check(nvrtcGetErrorString(status), strstr(log.data(), "identifier \"x\" is undefined"));
}

int main(int argc, char **argv) {
  if (argc > 1) {
    cudaStream_t s;
    void *h;
    float *x = shared<float>(4), one = 1;
    cudaStreamCreate(&s), cublasCreate_v2(&h), cublasSetStream_v2(h, s);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    cublasSaxpy_v2(h, 4, &one, x, 1, x, 1);
  }
  blas(), fft(), sparse(), numbers(), compiled();
}
