// Textures and surfaces: prints what kernels read, for test_textures.py to compare with numpy.
#include <cuda.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void line(cudaTextureObject_t t, float first, float step, int n, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1D<float>(t, first + i * step);
}
__global__ void plane(cudaTextureObject_t t, float x0, float y0, float step, int n, float4 *out) {
  int x = threadIdx.x, y = blockIdx.x;
  out[y * n + x] = tex2D<float4>(t, x0 + x * step, y0 + y * step);
}
__global__ void volume(cudaTextureObject_t t, float first, float step, int n, float *out) {
  int x = threadIdx.x % n, y = threadIdx.x / n, z = blockIdx.x;
  out[(z * n + y) * n + x] = tex3D<float>(t, first + x * step, first + y * step, first + z * step);
}
__global__ void layers(cudaTextureObject_t t, int n, int *out) {
  int x = threadIdx.x % n, y = threadIdx.x / n, z = blockIdx.x;
  out[(z * n + y) * n + x] = tex2DLayered<int>(t, x, y, z - 1);
}
__global__ void cube(cudaTextureObject_t t, const float3 *d, int n, float *out) {
  int i = threadIdx.x;
  if (i < n) out[i] = texCubemap<float>(t, d[i].x, d[i].y, d[i].z);
}
__global__ void fetched(cudaTextureObject_t t, int first, int *out) {
  out[threadIdx.x] = tex1Dfetch<int>(t, first + (int)threadIdx.x);
}
__global__ void gathered(cudaTextureObject_t t, int n, float4 *out) {
  out[threadIdx.x] = tex2Dgather<float4>(t, threadIdx.x % n + 0.25f, threadIdx.x / n + 0.75f, 0);
}
__global__ void doubled(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int n) {
  int x = threadIdx.x, y = blockIdx.x;
  short2 v = surf2Dread<short2>(from, (x - 1) * (int)sizeof(short2), y, cudaBoundaryModeZero);
  surf2Dwrite(short2{(short)(2 * v.x), (short)(v.y + 1)}, to, x * (int)sizeof(short2), y);
}

__global__ void halves(cudaTextureObject_t t, float2 *out) { out[threadIdx.x] = tex2D<float2>(t, threadIdx.x + 1, 1.5f); }

static float number(int i) { return (float)((i * 37 + 11) % 64) / 8 - 3; }

template <typename T> static cudaArray_t array(std::vector<T> v, int w, int h, int d, unsigned flags = 0) {
  cudaArray_t a;
  cudaChannelFormatDesc c = cudaCreateChannelDesc<T>();
  cudaMalloc3DArray(&a, &c, make_cudaExtent(w, h, d), flags);
  cudaMemcpy3DParms p = {};
  p.srcPtr = make_cudaPitchedPtr(v.data(), w * sizeof(T), w, h ? h : 1);
  p.dstArray = a, p.extent = make_cudaExtent(w, h ? h : 1, d ? d : 1), p.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&p);
  return a;
}
static cudaTextureObject_t texture(cudaArray_t a, cudaTextureFilterMode filter, cudaTextureAddressMode mode,
                                   bool normalized, cudaTextureReadMode read = cudaReadModeElementType) {
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray, r.res.array.array = a;
  cudaTextureDesc t = {};
  t.addressMode[0] = t.addressMode[1] = t.addressMode[2] = mode;
  t.filterMode = filter, t.readMode = read, t.normalizedCoords = normalized;
  t.borderColor[0] = 5;
  cudaTextureObject_t made = 0;
  int error = cudaCreateTextureObject(&made, &r, &t, nullptr);
  if (error) printf("%s\n", cudaGetErrorName((cudaError_t)error));
  return made;
}
template <typename T> static void print(const char *name, T *device, int n) {
  std::vector<T> v(n);
  cudaMemcpy(v.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost);
  printf("%s", name);
  for (int i = 0; i < n; ++i) printf(" %.9g", (double)v[i]);
  printf("\n");
}

int main(int argc, char **argv) {
  float *out;
  cudaMalloc(&out, 1 << 16);
  const char *modes[] = {"wrap", "clamp", "mirror", "border"};
  std::vector<float> numbers(8);
  for (int i = 0; i < 8; ++i) numbers[i] = number(i);
  cudaArray_t one = array(numbers, 8, 0, 0);
  for (int mode = 0; mode < 4; ++mode)
    for (int linear = 0; linear < 2; ++linear)
      for (int normalized = 0; normalized < 2; ++normalized) {
        char name[64];
        sprintf(name, "line %s %d %d", modes[mode], linear, normalized);
        line<<<2, 32>>>(texture(one, (cudaTextureFilterMode)linear, (cudaTextureAddressMode)mode, normalized),
                        normalized ? -1.5f : -12.f, normalized ? 0.07f : 0.56f, 50, out);
        print(name, out, 50);
      }
  std::vector<uchar4> colors(6 * 4);
  for (int i = 0; i < 24; ++i) colors[i] = uchar4{(unsigned char)(11 * i), (unsigned char)(255 - i), (unsigned char)(i * i), 255};
  plane<<<5, 7>>>(texture(array(colors, 6, 4, 0), cudaFilterModeLinear, cudaAddressModeClamp, false,
                          cudaReadModeNormalizedFloat), -0.75f, -0.5f, 1.1875f, 7, (float4 *)out);
  print("plane", out, 5 * 7 * 4);
  std::vector<float> deep(4 * 3 * 2);
  for (int i = 0; i < 24; ++i) deep[i] = number(i);
  volume<<<4, 16>>>(texture(array(deep, 4, 3, 2), cudaFilterModeLinear, cudaAddressModeWrap, true), 0.03f, 0.31f, 4, out);
  print("volume", out, 64);
  std::vector<int> stack(3 * 2 * 4);
  for (int i = 0; i < 24; ++i) stack[i] = 100 - 7 * i;
  layers<<<6, 9>>>(texture(array(stack, 3, 2, 4, cudaArrayLayered), cudaFilterModePoint, cudaAddressModeClamp, false), 3, (int *)out);
  print("layers", (int *)out, 54);
  std::vector<float> faces(2 * 2 * 6);
  for (int i = 0; i < 24; ++i) faces[i] = number(i);
  float3 directions[32], *d;
  for (int i = 0; i < 32; ++i) directions[i] = float3{number(3 * i), number(5 * i + 1), number(7 * i + 2)};
  cudaMalloc(&d, sizeof directions);
  cudaMemcpy(d, directions, sizeof directions, cudaMemcpyHostToDevice);
  cube<<<1, 32>>>(texture(array(faces, 2, 2, 6, cudaArrayCubemap), cudaFilterModePoint, cudaAddressModeClamp, true), d, 32, out);
  print("cube", out, 32);
  int words[20], *linear;
  for (int i = 0; i < 20; ++i) words[i] = 3 * i - 7;
  cudaMalloc(&linear, sizeof words);
  cudaMemcpy(linear, words, sizeof words, cudaMemcpyHostToDevice);
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeLinear, r.res.linear.devPtr = linear;
  r.res.linear.desc = cudaCreateChannelDesc<int>(), r.res.linear.sizeInBytes = sizeof words;
  cudaTextureDesc t = {};
  cudaTextureObject_t object;
  cudaCreateTextureObject(&object, &r, &t, nullptr);
  fetched<<<1, 24>>>(object, -2, (int *)out);
  print("fetched", (int *)out, 24);
  std::vector<float> around(16);
  for (int i = 0; i < 16; ++i) around[i] = number(i);
  gathered<<<1, 16>>>(texture(array(around, 4, 4, 0, cudaArrayTextureGather), cudaFilterModePoint, cudaAddressModeClamp, false), 4, (float4 *)out);
  print("gathered", out, 64);
  std::vector<short2> pairs(8 * 3);
  for (int i = 0; i < 24; ++i) pairs[i] = short2{(short)(i - 9), (short)(1000 + i)};
  cudaSurfaceObject_t s[2];
  cudaArray_t a[2] = {array(pairs, 8, 3, 0, cudaArraySurfaceLoadStore), array(pairs, 8, 3, 0, cudaArraySurfaceLoadStore)};
  for (int i = 0; i < 2; ++i) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray, r.res.array.array = a[i];
    cudaCreateSurfaceObject(&s[i], &r);
  }
  doubled<<<3, 8>>>(s[0], s[1], 8);
  cudaMemcpy2DFromArray(out, 32, a[1], 0, 0, 32, 3, cudaMemcpyDeviceToDevice);
  print("surface", (short *)out, 48);
  CUDA_ARRAY_DESCRIPTOR shape = {8, 3, CU_AD_FORMAT_SIGNED_INT16, 2};
  CUarray driver;
  cuArrayCreate(&driver, &shape);
  CUDA_MEMCPY2D move = {};
  move.srcMemoryType = CU_MEMORYTYPE_HOST, move.srcHost = pairs.data(), move.srcPitch = 32;
  move.dstMemoryType = CU_MEMORYTYPE_ARRAY, move.dstArray = driver, move.WidthInBytes = 32, move.Height = 3;
  cuMemcpy2D(&move);
  CUDA_RESOURCE_DESC described = {};
  described.resType = CU_RESOURCE_TYPE_ARRAY, described.res.array.hArray = driver;
  CUDA_TEXTURE_DESC sampled = {};
  sampled.addressMode[0] = sampled.addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP, sampled.filterMode = CU_TR_FILTER_MODE_LINEAR;
  CUtexObject made;
  printf("%d ", cuTexObjectCreate(&made, &described, &sampled, nullptr));  // normalized floats
  halves<<<1, 8>>>(made, (float2 *)out);
  print("driver", out, 16);
  texture(array(stack, 3, 2, 0), cudaFilterModeLinear, cudaAddressModeClamp, false);  // of integers
  if (argc > 1) doubled<<<3, atoi(argv[1])>>>(s[0], s[1], 8);  // more than 8 threads: outside
  return cudaDeviceSynchronize() != cudaSuccess;
}
