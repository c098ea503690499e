// A CUDA driver and runtime without a device: allocations are host memory, a tensor map is kept by
// its arguments, a launch goes to a callback. Host code of other projects runs on it unmodified, as
// libcuda.so.1 (JAX, CuTe DSL) or linked in place of cudart (CUTLASS). See recording.py.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*launch_fn)(const void *kernel, const uint32_t *sizes, void **arguments);
typedef void (*map_fn)(void *map, const uint64_t *fields);
typedef void (*buffer_fn)(void *base, uint64_t bytes);

static launch_fn on_launch;
static map_fn on_map;
static buffer_fn on_buffer;
static uint32_t multiprocessors = 148;

void recorder_start(launch_fn launch, map_fn map, buffer_fn buffer, uint32_t sms) {
  on_launch = launch, on_map = map, on_buffer = buffer, multiprocessors = sms;
}

// --- launches ----------------------------------------------------------------------------------

// The common beginning of CUlaunchConfig and cudaLaunchConfig_t.
typedef struct { uint32_t grid[3], block[3], smem, pad; void *stream; void *attributes; uint32_t count; } config_t;
typedef struct { uint32_t id, pad; uint32_t value[16]; } attribute_t;
enum { CLUSTER_DIMENSION = 4 };

static int launch(const config_t *config, const void *kernel, void **arguments) {
  uint32_t sizes[10] = {0, 0, 0, 0, 0, 0, 1, 1, 1, config->smem};
  memcpy(sizes, config->grid, 12), memcpy(sizes + 3, config->block, 12);
  const attribute_t *attributes = config->attributes;
  for (uint32_t i = 0; i < config->count; ++i)
    if (attributes[i].id == CLUSTER_DIMENSION) memcpy(sizes + 6, attributes[i].value, 12);
  on_launch(kernel, sizes, arguments);
  return 0;
}

int cuLaunchKernelEx(const config_t *c, void *f, void **a, void **extra) { return launch(c, f, a); }
int cudaLaunchKernelExC(const config_t *c, const void *f, void **a) { return launch(c, f, a); }
int _cudaLaunchKernelEx(const config_t *c, void *f, void **a) { return launch(c, f, a); }

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned smem, void *stream, void **a, void **extra) {
  config_t c = {{gx, gy, gz}, {bx, by, bz}, smem, 0, stream, 0, 0};
  return launch(&c, f, a);
}

typedef struct { unsigned x, y, z; } dim3_t;
int cudaLaunchKernel(const void *f, dim3_t g, dim3_t b, void **a, size_t smem, void *stream) {
  config_t c = {{g.x, g.y, g.z}, {b.x, b.y, b.z}, (uint32_t)smem, 0, stream, 0, 0};
  return launch(&c, f, a);
}
int __cudaLaunchKernel(const void *f, dim3_t g, dim3_t b, void **a, size_t m, void *s) {
  return cudaLaunchKernel(f, g, b, a, m, s);
}

// --- tensor maps -------------------------------------------------------------------------------

// fields: im2col, type, rank, address, dims 5, strides 4, box 5, element strides 5, interleave,
// swizzle, fill, lower corner 3, upper corner 3, channels, pixels.
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                           int interleave, int swizzle, int promotion, int fill) {
  uint64_t f[34] = {0, type, rank, (uint64_t)address};
  for (uint32_t i = 0; i < rank; ++i) {
    f[4 + i] = dims[i], f[13 + i] = box[i], f[18 + i] = steps[i];
    if (i + 1 < rank) f[9 + i] = strides[i];
  }
  f[23] = interleave, f[24] = swizzle, f[25] = fill;
  on_map(map, f);
  return 0;
}
int _cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                            const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                            int interleave, int swizzle, int promotion, int fill) {
  return cuTensorMapEncodeTiled(map, type, rank, address, dims, strides, box, steps, interleave,
                                swizzle, promotion, fill);
}

int cuTensorMapEncodeIm2col(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                            const uint64_t *strides, const int *lower, const int *upper,
                            uint32_t channels, uint32_t pixels, const uint32_t *steps,
                            int interleave, int swizzle, int promotion, int fill) {
  uint64_t f[34] = {1, type, rank, (uint64_t)address};
  for (uint32_t i = 0; i < rank; ++i) {
    f[4 + i] = dims[i], f[18 + i] = steps[i];
    if (i + 1 < rank) f[9 + i] = strides[i];
    if (i + 2 < rank) f[26 + i] = (int64_t)lower[i], f[29 + i] = (int64_t)upper[i];
  }
  f[23] = interleave, f[24] = swizzle, f[25] = fill, f[32] = channels, f[33] = pixels;
  on_map(map, f);
  return 0;
}

// --- memory ------------------------------------------------------------------------------------

static int allocate(void **where, size_t bytes) {
  size_t rounded = (bytes + 4095) / 4096 * 4096;
  *where = aligned_alloc(4096, rounded ? rounded : 4096);
  memset(*where, 0, rounded);
  on_buffer(*where, bytes);
  return 0;
}
int cudaMalloc(void **p, size_t n) { return allocate(p, n); }
int cudaMallocAsync(void **p, size_t n, void *s) { return allocate(p, n); }
int cudaMallocManaged(void **p, size_t n, unsigned flags) { return allocate(p, n); }
int cudaMallocHost(void **p, size_t n) { return allocate(p, n); }
int cudaFree(void *p) { return 0; }
int cudaFreeAsync(void *p, void *s) { return 0; }
int cudaFreeHost(void *p) { return 0; }
int cudaMemcpy(void *to, const void *from, size_t n, int kind) { return memcpy(to, from, n), 0; }
int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *s) { return memcpy(to, from, n), 0; }
int cudaMemset(void *p, int value, size_t n) { return memset(p, value, n), 0; }
int cudaMemsetAsync(void *p, int value, size_t n, void *s) { return memset(p, value, n), 0; }
int cudaMemGetInfo(size_t *available, size_t *total) { return *available = *total = 1ul << 34, 0; }

// --- device ------------------------------------------------------------------------------------

// CUdevice_attribute, the same numbers as cudaDeviceAttr.
static int attribute(int *value, int which) {
  switch (which) {
    case 1: *value = 1024; break;          // threads per block
    case 8: *value = 49152; break;         // shared memory per block
    case 10: *value = 32; break;           // warp size
    case 16: *value = multiprocessors; break;
    case 75: *value = 10; break;           // compute capability, major
    case 76: *value = 0; break;
    case 81: *value = 233472; break;       // shared memory per multiprocessor
    case 97: *value = 232448; break;       // shared memory per block, opt-in
    default: *value = 1;
  }
  return 0;
}
int cuDeviceGetAttribute(int *value, int which, int device) { return attribute(value, which); }
int cudaDeviceGetAttribute(int *value, int which, int device) { return attribute(value, which); }
int _cudaDeviceGetAttribute(int *value, int which, int device) { return attribute(value, which); }

// cudaDeviceProp of CUDA 13, by offsets; the function of CUDA 12 has another name.
int cudaGetDeviceProperties(void *properties, int device) {
  static const struct { int at, attribute; } fields[] = {
    {296, 8}, {308, 10}, {320, 1}, {360, 75}, {364, 76}, {384, 16}, {624, 81}, {672, 97}};
  memset(properties, 0, 1008);
  strcpy(properties, "recorder");
  *(uint64_t *)((char *)properties + 288) = 1ull << 37;
  for (int i = 0; i < 8; ++i) attribute((int *)((char *)properties + fields[i].at), fields[i].attribute);
  return 0;
}
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cudaDriverGetVersion(int *version) { return *version = 13000, 0; }
int cudaRuntimeGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cudaGetDeviceCount(int *count) { return *count = 1, 0; }
int _cudaGetDeviceCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = 0, 0; }
int _cuDeviceGet(int *device, int ordinal) { return *device = 0, 0; }
int cudaGetDevice(int *device) { return *device = 0, 0; }
int _cudaGetDevice(int *device) { return *device = 0, 0; }
int cudaSetDevice(int device) { return 0; }
int _cudaSetDevice(int device) { return 0; }
int cuCtxGetCurrent(void **context) { return *context = (void *)1, 0; }
int cuCtxGetDevice(int *device) { return *device = 0, 0; }
int cudaDeviceSynchronize(void) { return 0; }
int cudaGetLastError(void) { return 0; }
int cudaPeekAtLastError(void) { return 0; }
const char *cudaGetErrorString(int error) { return "error"; }
const char *cudaGetErrorName(int error) { return "error"; }
int cuGetErrorString(int error, const char **text) { return *text = "error", 0; }
int cuGetErrorName(int error, const char **text) { return *text = "error", 0; }
int cudaStreamCreate(void **s) { return *s = 0, 0; }
int cudaStreamCreateWithFlags(void **s, unsigned flags) { return *s = 0, 0; }
int cudaStreamDestroy(void *s) { return 0; }
int cudaStreamSynchronize(void *s) { return 0; }
int cudaStreamWaitEvent(void *s, void *e, unsigned flags) { return 0; }
int cudaEventCreate(void **e) { return *e = 0, 0; }
int cudaEventCreateWithFlags(void **e, unsigned flags) { return *e = 0, 0; }
int cudaEventDestroy(void *e) { return 0; }
int cudaEventRecord(void *e, void *s) { return 0; }
int cudaEventSynchronize(void *e) { return 0; }
int cudaEventElapsedTime(float *ms, void *a, void *b) { return *ms = 1, 0; }

// --- kernels -----------------------------------------------------------------------------------

// A function handle is its name: the driver's are made here, the runtime's are host functions.
typedef struct { const void *host; const char *name; } registered_t;
static registered_t table[4096];
static int count;

const char *recorder_name(const void *kernel) {
  for (int i = 0; i < count; ++i)
    if (table[i].host == kernel) return table[i].name;
  return kernel;
}

int cuModuleLoadData(void **module, const void *image) { return *module = (void *)1, 0; }
int cuModuleUnload(void *module) { return 0; }
int cuModuleGetFunction(void **f, void *module, const char *name) { return *f = strdup(name), 0; }
int cuModuleGetGlobal(void **p, size_t *n, void *m, const char *name) { return 500; }
int cuModuleGetGlobal_v2(void **p, size_t *n, void *m, const char *name) { return 500; }
int cuFuncSetAttribute(void *f, int which, int value) { return 0; }
int _cuLibraryLoadData(void **library) { return *library = (void *)1, 0; }
int _cudaLibraryLoadData(void **library) { return *library = (void *)1, 0; }
int _cudaLibraryUnload(void *library) { return 0; }
int _cuLibraryUnload(void *library) { return 0; }
int _cudaLibraryGetKernel(void **f, void *library, const char *name) { return *f = strdup(name), 0; }
int _cuLibraryGetKernel(void **f, void *library, const char *name) { return *f = strdup(name), 0; }
int _cudaFuncSetAttribute(void *f, int which, int value) { return 0; }
int _cudaKernelSetAttributeForDevice(void *f, int which, int value, int device) { return 0; }
int _cuKernelGetAttribute(int *value, int which, void *f, int device) { return *value = 0, 0; }

void **__cudaRegisterFatBinary(void *image) { static void *handle; return &handle; }
void __cudaRegisterFatBinaryEnd(void **handle) {}
void __cudaUnregisterFatBinary(void **handle) {}
void __cudaRegisterVar(void **h, char *v, char *a, const char *n, int e, size_t s, int c, int g) {}
char __cudaInitModule(void **handle) { return 0; }
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, void *t, void *b, void *bd, void *gd, int *w) {
  if (count < 4096) table[count++] = (registered_t){host, name};
}
int __cudaGetKernel(void **kernel, const void *host) { return *kernel = (void *)host, 0; }

static dim3_t pushed_grid, pushed_block;
static size_t pushed_smem;
unsigned __cudaPushCallConfiguration(dim3_t grid, dim3_t block, size_t smem, void *stream) {
  return pushed_grid = grid, pushed_block = block, pushed_smem = smem, 0;
}
int __cudaPopCallConfiguration(dim3_t *grid, dim3_t *block, size_t *smem, void **stream) {
  return *grid = pushed_grid, *block = pushed_block, *smem = pushed_smem, *stream = 0, 0;
}
int cudaFuncSetAttribute(const void *f, int which, int value) { return 0; }
int cudaFuncGetAttributes(void *attributes, const void *f) { return memset(attributes, 0, 144), 0; }
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int t, size_t s) { return *n = 1, 0; }
int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int t, size_t s, unsigned flags) { return *n = 1, 0; }
int cudaOccupancyMaxActiveClusters(int *n, const void *f, const void *c) { return *n = multiprocessors / 2, 0; }

// The entry points that host code asks for by name.
static int entry_point(const char *name, void **where) {
  *where = 0;
  if (!strcmp(name, "cuTensorMapEncodeTiled")) *where = (void *)cuTensorMapEncodeTiled;
  if (!strcmp(name, "cuTensorMapEncodeIm2col")) *where = (void *)cuTensorMapEncodeIm2col;
  if (!strcmp(name, "cuLaunchKernelEx")) *where = (void *)cuLaunchKernelEx;
  if (!strcmp(name, "cuGetErrorString")) *where = (void *)cuGetErrorString;
  return *where ? 0 : 500;
}
int cudaGetDriverEntryPoint(const char *name, void **where, unsigned long long flags, int *found) {
  int error = entry_point(name, where);
  if (found) *found = error ? 1 : 0;
  return error;
}
int cudaGetDriverEntryPointByVersion(const char *name, void **where, unsigned version, unsigned long long flags, int *found) {
  return cudaGetDriverEntryPoint(name, where, flags, found);
}
