// The CUDA driver, as far as libraries for Python and programs of the driver API mostly use it. It
// shares memory, launches and errors with the runtime (runtime.c); numbers of CUresult and
// cudaError_t are the same. A function that is not here is not found by cuGetProcAddress.
#include "runtime.c"

enum { INVALID_IMAGE = 200, NO_BINARY = 209, OUT_OF_MEMORY = 2, INVALID_HANDLE = 400 };

// --- device and context ------------------------------------------------------------------------

static void *const context = (void *)1;
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { return cudaDriverGetVersion(version); }
int cuDeviceGetCount(int *number) { return *number = 1, 0; }
int cuDeviceGet(int *made, int ordinal) { return *made = 0, ordinal ? 101 : 0; }
int cuDeviceGetName(char *name, int length, int ordinal) { return cudaDeviceGetName(name, length, ordinal); }
int cuDeviceGetUuid(char *id, int ordinal) { return memset(id, 0, 16), 0; }
int cuDeviceGetUuid_v2(char *id, int ordinal) { return cuDeviceGetUuid(id, ordinal); }
int cuDeviceGetPCIBusId(char *id, int length, int ordinal) { return cudaDeviceGetPCIBusId(id, length, ordinal); }
int cuDeviceGetAttribute(int *value, int which, int ordinal) { return cudaDeviceGetAttribute(value, which, ordinal); }
int cuDeviceTotalMem_v2(size_t *bytes, int ordinal) { return *bytes = device_memory, 0; }
int cuDeviceComputeCapability(int *major, int *minor, int ordinal) { return *major = device[75], *minor = device[76], 0; }
int cuDeviceCanAccessPeer(int *can, int a, int b) { return *can = 0, 0; }
int cuDeviceGetDefaultMemPool(void **pool, int ordinal) { return *pool = (void *)1, 0; }
int cuDeviceGetMemPool(void **pool, int ordinal) { return *pool = (void *)1, 0; }
int cuDeviceSetMemPool(int ordinal, void *pool) { return 0; }
int cuDevicePrimaryCtxRetain(void **made, int ordinal) { return *made = context, 0; }
int cuDevicePrimaryCtxRelease_v2(int ordinal) { return 0; }
int cuDevicePrimaryCtxReset_v2(int ordinal) { return 0; }
int cuDevicePrimaryCtxSetFlags_v2(int ordinal, unsigned flags) { return 0; }
int cuDevicePrimaryCtxGetState(int ordinal, unsigned *flags, int *active) { return *flags = 0, *active = 1, 0; }
int cuCtxCreate_v2(void **made, unsigned flags, int ordinal) { return *made = context, 0; }
int cuCtxCreate_v4(void **made, void *given, unsigned flags, int ordinal) { return *made = context, 0; }
int cuCtxDestroy_v2(void *which) { return 0; }
int cuCtxPushCurrent_v2(void *which) { return 0; }
int cuCtxPopCurrent_v2(void **which) {
  if (which) *which = context;
  return 0;
}
int cuCtxGetCurrent(void **which) { return *which = context, 0; }
int cuCtxSetCurrent(void *which) { return 0; }
int cuCtxGetDevice(int *ordinal) { return *ordinal = 0, 0; }
int cuCtxGetDevice_v2(int *ordinal, void *which) { return *ordinal = 0, 0; }
int cuCtxGetFlags(unsigned *flags) { return *flags = 0, 0; }
int cuCtxGetId(void *which, uint64_t *id) { return *id = 1, 0; }
int cuCtxGetApiVersion(void *which, unsigned *version) { return *version = 13000, 0; }
int cuCtxSynchronize(void) { return sticky; }
int cuCtxGetLimit(size_t *value, int which) { return cudaDeviceGetLimit(value, which); }
int cuCtxSetLimit(int which, size_t value) { return cudaDeviceSetLimit(which, value); }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { return cudaDeviceGetStreamPriorityRange(least, greatest); }
int cuGetErrorString(int error, const char **words) { return *words = cudaGetErrorString(error), 0; }
int cuGetErrorName(int error, const char **name) { return *name = cudaGetErrorName(error), 0; }
int cuProfilerStart(void) { return 0; }
int cuProfilerStop(void) { return 0; }

// --- modules -----------------------------------------------------------------------------------

// Bytes of an image: an ELF file, a fat binary, or PTX, which a NUL ends.
static size_t image_bytes(const void **image) {
  const uint32_t *words = *image;
  if (words[0] == 0x466243b1) *image = ((const fat_binary_t *)*image)->data, words = *image;
  if (words[0] == 0xba55ed50) return ((const uint16_t *)words)[3] + ((const uint64_t *)words)[1];
  if (words[0] == 0x464c457f) {
    const uint16_t *header = *image;
    size_t bytes = ((const uint64_t *)*image)[5] + (uint64_t)header[29] * header[30];
    return bytes < 64 ? 64 : bytes;
  }
  return strlen(*image);
}
static int load(void **made, const void *image, size_t bytes) {
  uint64_t number = ++modules;
  void *kept = malloc(bytes + 1);
  memcpy(kept, image, bytes);
  python.loaded(number, kept, bytes);
  int error = python.has(number, 0);
  return *made = (void *)number, result(error);
}
int cuModuleLoadData(void **made, const void *image) {
  size_t bytes = image_bytes(&image);
  return load(made, image, bytes);
}
int cuModuleLoadDataEx(void **made, const void *image, unsigned n, const int *options, void **values) { return cuModuleLoadData(made, image); }
int cuModuleLoadFatBinary(void **made, const void *image) { return cuModuleLoadData(made, image); }
int cuModuleLoad(void **made, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return result(301);
  fseek(file, 0, SEEK_END);
  size_t bytes = ftell(file);
  char *text = malloc(bytes + 1);
  rewind(file), bytes = fread(text, 1, bytes, file), fclose(file);
  int error = load(made, text, bytes);
  return free(text), error;
}
int cuModuleUnload(void *module) { return 0; }
int cuModuleGetLoadingMode(int *mode) { return *mode = 2, 0; }
int cuModuleGetFunction(void **made, void *module, const char *name) {
  int error = python.has((uint64_t)module, name);
  if (error) return result(error);
  enter(*made = malloc(1), strdup(name), (uint64_t)module);
  return 0;
}
int cuModuleGetGlobal_v2(void **where, size_t *bytes, void *module, const char *name) {
  uint64_t size = 0;
  void *found = python.variable((uint64_t)module, name, &size);
  if (where) *where = found;
  if (bytes) *bytes = size;
  return result(found ? 0 : NOT_FOUND);
}
int cuLibraryLoadData(void **made, const void *image, void *a, void *b, unsigned n, void *c, void *d, unsigned m) { return cuModuleLoadData(made, image); }
int cuLibraryLoadFromFile(void **made, const char *path, void *a, void *b, unsigned n, void *c, void *d, unsigned m) { return cuModuleLoad(made, path); }
int cuLibraryUnload(void *library) { return 0; }
int cuLibraryGetModule(void **module, void *library) { return *module = library, 0; }
int cuLibraryGetKernel(void **made, void *library, const char *name) { return cuModuleGetFunction(made, library, name); }
int cuLibraryGetGlobal(void **where, size_t *bytes, void *library, const char *name) { return cuModuleGetGlobal_v2(where, bytes, library, name); }
int cuKernelGetFunction(void **function, void *kernel) { return *function = kernel, 0; }
int cuKernelGetLibrary(void **library, void *kernel) {
  const registered_t *known = registered(kernel);
  return *library = known ? (void *)known->module : 0, known ? 0 : INVALID_HANDLE;
}
int cuFuncGetModule(void **module, void *f) { return cuKernelGetLibrary(module, f); }
int cuFuncGetName(const char **name, void *f) {
  const registered_t *known = registered(f);
  return *name = known ? known->name : 0, known ? 0 : INVALID_HANDLE;
}
int cuKernelGetName(const char **name, void *f) { return cuFuncGetName(name, f); }
int cuFuncIsLoaded(int *state, void *f) { return *state = 1, 0; }
int cuFuncLoad(void *f) { return 0; }
int cuFuncGetParamInfo(void *f, size_t number, size_t *offset, size_t *bytes) {
  const registered_t *known = registered(f);
  uint64_t place[2];
  if (!known) return INVALID_HANDLE;
  int error = python.parameter(known->module, known->name, number, place);
  if (!error) *offset = place[0];
  if (!error && bytes) *bytes = place[1];
  return error;
}
int cuKernelGetParamInfo(void *f, size_t number, size_t *offset, size_t *bytes) { return cuFuncGetParamInfo(f, number, offset, bytes); }

// By number of CUfunction_attribute, where the field is in what python.attributes gives; -1: 0.
static const int8_t field_of[] = {1, 0, -1, -1, 2, 3, 4, -1, 5, -1, 6, 7, 8, 9, 10, -1};
int cuFuncGetAttribute(int *value, int which, const void *f) {
  const registered_t *known = registered(f);
  int64_t v[11];
  if (!known) return result(INVALID_HANDLE);
  if (which < 0 || which > 15) return result(INVALID_VALUE);
  int error = field_of[which] < 0 ? 0 : python.attributes(known->module, known->name, v);
  if (!error) *value = field_of[which] < 0 ? 0 : v[field_of[which]];
  return result(error);
}
int cuFuncSetAttribute(const void *f, int which, int value) { return cudaFuncSetAttribute(f, which, value); }
int cuFuncSetCacheConfig(const void *f, int which) { return 0; }
int cuFuncSetSharedMemConfig(const void *f, int which) { return 0; }
int cuKernelGetAttribute(int *value, int which, const void *f, int ordinal) { return cuFuncGetAttribute(value, which, f); }
int cuKernelSetAttribute(int which, int value, const void *f, int ordinal) { return cudaFuncSetAttribute(f, which, value); }
int cuKernelSetCacheConfig(const void *f, int which, int ordinal) { return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(n, f, threads, shared);
}
int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int threads, size_t shared, unsigned flags) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(n, f, threads, shared);
}
int cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, const void *f, size_t (*shared)(int), size_t bytes, int limit, unsigned flags) {
  int most = 0, each = 0, best = 0, error = cuFuncGetAttribute(&most, 0, f);
  if (error) return error;
  for (int threads = limit && limit < most ? limit : most; threads > 0; threads -= threads % 32 ? threads % 32 : 32) {
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, f, threads, shared ? shared(threads) : bytes);
    if (each * threads > best) best = each * threads, *block = threads, *grid = each * device[16];
  }
  return result(best ? 0 : INVALID_VALUE);
}
int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, const void *f, size_t (*shared)(int), size_t bytes, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, f, shared, bytes, limit, 0);
}
int cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *f, int blocks, int threads) {
  return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, f, blocks, threads);
}

// The linker of the driver: PTX texts, one after another, without the headers of all but the first.
// The text counts, not its kind: what compilers should have returned as machine code is PTX here.
typedef struct { char *text; size_t bytes; int refused; void *real; } link_t;
int cuLinkCreate_v2(unsigned n, int *options, void **values, link_t **state) { return *state = calloc(1, sizeof **state), 0; }
int cuLinkAddData_v2(link_t *state, int kind, const char *data, size_t bytes, const char *name, unsigned n, int *o, void **v) {
  size_t size = strnlen(data, bytes);
  const char *body = state->bytes ? strstr(data, ".address_size") : data;
  state->refused = !memmem(data, size, ".version", 8);
  if (state->refused) return result(INVALID_IMAGE);
  if (state->bytes && body) body = strchr(body, '\n'), size -= body - data;
  state->text = realloc(state->text, state->bytes + size + 1);
  memcpy(state->text + state->bytes, body, size);
  return state->text[state->bytes += size] = 0;
}
int cuLinkComplete(link_t *state, void **image, size_t *bytes) {
  return *image = state->text, *bytes = state->bytes + 1, result(state->text ? 0 : INVALID_IMAGE);
}
int cuLinkDestroy(link_t *state) { return free(state->text), free(state), 0; }

// The same in place of nvJitLink. Intermediate code (-lto) is linked by nvJitLink itself, to PTX:
// its functions have second names, with versions, which are still its own.
static int (*of_linker(const char *name))() {
  void *library = dlopen("libnvJitLink.so.13", RTLD_NOW | RTLD_NOLOAD);
  char full[64];
  snprintf(full, sizeof full, "__nvJitLink%s_13_0", name);
  return library ? dlsym(library, full) : 0;
}
int tcirLinkCreate(link_t **state, unsigned n, const char **options) {
  const char *all[n + 1];
  *state = calloc(1, sizeof **state);
  memcpy(all, options, n * sizeof *all), all[n] = "-ptx";
  for (unsigned i = 0; i < n; ++i)
    if (!strcmp(options[i], "-lto")) return of_linker("Create")(&(*state)->real, n + 1, all);
  return 0;
}
int tcirLinkAddData(link_t *state, int kind, const char *data, size_t bytes, const char *name) {
  if (state->real) return of_linker("AddData")(state->real, kind, data, bytes, name);
  return cuLinkAddData_v2(state, kind, data, bytes, name, 0, 0, 0) ? 3 : 0;
}
int tcirLinkComplete(link_t *state) {
  if (!state->real) return state->text ? 0 : 3;
  int error = of_linker("Complete")(state->real) || of_linker("GetLinkedPtxSize")(state->real, &state->bytes);
  if (error) return 6;
  state->text = malloc(state->bytes + 1), state->text[state->bytes] = 0;
  return of_linker("GetLinkedPtx")(state->real, state->text);
}
int tcirLinkDestroy(link_t **state) {
  if ((*state)->real) of_linker("Destroy")(&(*state)->real);
  return cuLinkDestroy(*state), *state = 0, 0;
}
int tcirLinkGetLinkedCubinSize(link_t *state, size_t *bytes) { return *bytes = state->bytes + 1, 0; }
int tcirLinkGetLinkedCubin(link_t *state, void *image) { return memcpy(image, state->text, state->bytes + 1), 0; }
static const char *log_of(link_t *state) { return state->refused ? "tcir: expected PTX to link, got another kind of code" : ""; }
int tcirLinkGetErrorLogSize(link_t *state, size_t *bytes) {
  if (state->real) return of_linker("GetErrorLogSize")(state->real, bytes);
  return *bytes = strlen(log_of(state)) + 1, 0;
}
int tcirLinkGetErrorLog(link_t *state, char *log) {
  if (state->real) return of_linker("GetErrorLog")(state->real, log);
  return strcpy(log, log_of(state)), 0;
}
int tcirLinkGetInfoLogSize(link_t *state, size_t *bytes) { return *bytes = 1, 0; }
int tcirLinkGetInfoLog(link_t *state, char *log) { return *log = 0; }

// --- launches ----------------------------------------------------------------------------------

// CUlaunchConfig is cudaLaunchConfig_t but for the size of shared memory, which has 32 bits. The
// arguments are addresses, or (`extra`) a buffer in which each lies at its offset.
int cuLaunchKernelEx(const config_t *given, void *f, void **arguments, void **extra) {
  config_t c = *given;
  void *places[1024];
  c.smem = (uint32_t)c.smem;
  if (!arguments && extra) {
    char *buffer = 0;
    size_t offset = 0;
    for (void **p = extra; *p; p += 2)
      if (*p == (void *)1) buffer = p[1];
    for (int i = 0; buffer && i < 1024 && !cuFuncGetParamInfo(f, i, &offset, 0); ++i) places[i] = buffer + offset;
    arguments = places;
  }
  return launch(&c, f, arguments);
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem, void *s, void **arguments, void **extra) {
  config_t c = {{gx, gy, gz}, {bx, by, bz}, smem, s, 0, 0};
  return cuLaunchKernelEx(&c, f, arguments, extra);
}
int cuLaunchCooperativeKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem, void *s, void **arguments) {
  attribute_t cooperative = {COOPERATIVE, 0, {1}};
  config_t c = {{gx, gy, gz}, {bx, by, bz}, smem, s, &cooperative, 1};
  return launch(&c, f, arguments);
}
int cuLaunchHostFunc(void *s, void (*call)(void *), void *data) { return cudaLaunchHostFunc(s, call, data); }

// --- memory ------------------------------------------------------------------------------------

int cuMemAlloc_v2(void **p, size_t n) { return n ? allocate(p, n, DEVICE) : result(INVALID_VALUE); }
int cuMemAllocAsync(void **p, size_t n, void *s) { return cuMemAlloc_v2(p, n); }
int cuMemAllocFromPoolAsync(void **p, size_t n, void *pool, void *s) { return cuMemAlloc_v2(p, n); }
int cuMemAllocManaged(void **p, size_t n, unsigned flags) { return allocate(p, n, MANAGED); }
int cuMemAllocPitch_v2(void **p, size_t *pitch, size_t width, size_t rows, unsigned element) { return cudaMallocPitch(p, pitch, width, rows); }
int cuMemAllocHost_v2(void **p, size_t n) { return allocate(p, n, HOST); }
int cuMemHostAlloc(void **p, size_t n, unsigned flags) { return allocate(p, n, HOST); }
int cuMemHostRegister_v2(void *p, size_t n, unsigned flags) { return cudaHostRegister(p, n, flags); }
int cuMemHostUnregister(void *p) { return cudaHostUnregister(p); }
int cuMemHostGetDevicePointer_v2(void **p, void *host, unsigned flags) { return *p = host, 0; }
int cuMemFree_v2(void *p) { return release(p); }
int cuMemFreeAsync(void *p, void *s) { return release(p); }
int cuMemFreeHost(void *p) { return release(p); }
int cuMemGetInfo_v2(size_t *available, size_t *total) { return cudaMemGetInfo(available, total); }
int cuMemGetAddressRange_v2(void **base, size_t *bytes, void *p) {
  memory_t *known = memory_of(p);
  if (!known) return result(INVALID_VALUE);
  if (base) *base = known->base;
  if (bytes) *bytes = known->bytes;
  return 0;
}
int cuMemPoolCreate(void **pool, const void *properties) { return *pool = (void *)1, 0; }
int cuMemPoolDestroy(void *pool) { return 0; }
int cuMemPoolSetAccess(void *pool, const void *list, size_t count) { return 0; }
int cuMemPoolSetAttribute(void *pool, int which, void *value) { return 0; }
int cuMemPoolGetAttribute(void *pool, int which, void *value) { return cudaMemPoolGetAttribute(pool, which, value); }
int cuMemPoolTrimTo(void *pool, size_t bytes) { return 0; }
int cuMemAdvise_v2(const void *p, size_t n, int advice, place_t place) { return 0; }
int cuMemPrefetchAsync_v2(const void *p, size_t n, place_t place, unsigned flags, void *s) { return 0; }
// Of CUpointer_attribute: context, memory type, device and host pointer, managed, ordinal, start
// and size of the range, whether it is mapped.
int cuPointerGetAttribute(void *value, int which, const void *p) {
  memory_t *known = memory_of(p);
  if (!known) return result(INVALID_VALUE);
  switch (which) {
    case 1: *(void **)value = context; break;
    case 2: *(int *)value = known->kind == HOST ? 1 : 2; break;
    case 3: case 4: *(const void **)value = p; break;
    case 8: *(int *)value = known->kind == MANAGED; break;
    case 9: *(int *)value = 0; break;
    case 11: *(void **)value = known->base; break;
    case 12: *(size_t *)value = known->bytes; break;
    case 13: *(int *)value = 1; break;
    default: return result(INVALID_VALUE);
  }
  return 0;
}
int cuPointerGetAttributes(unsigned n, const int *which, void **values, const void *p) {
  for (unsigned i = 0; i < n; ++i)
    if (cuPointerGetAttribute(values[i], which[i], p)) memset(values[i], 0, 4);
  return 0;
}
static int fill_with(void *p, const void *value, size_t width, size_t n) {
  for (size_t i = 0; i < n && !sticky; ++i) memcpy((char *)p + i * width, value, width);
  if (!sticky) python.written(p, 0, n * width);
  return result(0);
}
#define COPY(NAME) \
  int NAME(void *to, const void *from, size_t n) { return copy(to, from, n); }
#define COPY_ASYNC(NAME) \
  int NAME(void *to, const void *from, size_t n, void *s) { return copy(to, from, n); }
#define FILL(NAME, TYPE) \
  int NAME##_v2(void *p, TYPE value, size_t n) { return fill_with(p, &value, sizeof value, n); } \
  int NAME##Async(void *p, TYPE value, size_t n, void *s) { return fill_with(p, &value, sizeof value, n); }
COPY(cuMemcpy) COPY(cuMemcpyHtoD_v2) COPY(cuMemcpyDtoH_v2) COPY(cuMemcpyDtoD_v2)
COPY_ASYNC(cuMemcpyAsync) COPY_ASYNC(cuMemcpyHtoDAsync_v2) COPY_ASYNC(cuMemcpyDtoHAsync_v2) COPY_ASYNC(cuMemcpyDtoDAsync_v2)
FILL(cuMemsetD8, uint8_t) FILL(cuMemsetD16, uint16_t) FILL(cuMemsetD32, uint32_t)

// --- streams and events ------------------------------------------------------------------------

int cuStreamCreate(void **s, unsigned flags) { return cudaStreamCreate(s); }
int cuStreamCreateWithPriority(void **s, unsigned flags, int priority) { return cudaStreamCreate(s); }
int cuStreamDestroy_v2(void *s) { return 0; }
int cuStreamSynchronize(void *s) { return sticky; }
int cuStreamQuery(void *s) { return sticky; }
int cuStreamWaitEvent(void *s, void *e, unsigned flags) { return 0; }
int cuStreamGetCtx(void *s, void **which) { return *which = context, 0; }
int cuStreamGetDevice(void *s, int *ordinal) { return *ordinal = 0, 0; }
int cuStreamGetFlags(void *s, unsigned *flags) { return *flags = 1, 0; }
int cuStreamGetId(void *s, uint64_t *id) { return *id = (uint64_t)s, 0; }
int cuStreamGetPriority(void *s, int *priority) { return *priority = 0, 0; }
int cuStreamIsCapturing(void *s, int *status) { return *status = 0, 0; }
int cuStreamAddCallback(void *s, void (*call)(void *, int, void *), void *data, unsigned flags) { return cudaStreamAddCallback(s, call, data, flags); }
int cuEventCreate(void **e, unsigned flags) { return cudaEventCreate(e); }
int cuEventDestroy_v2(void *e) { return 0; }
int cuEventRecord(void *e, void *s) { return 0; }
int cuEventRecordWithFlags(void *e, void *s, unsigned flags) { return 0; }
int cuEventSynchronize(void *e) { return sticky; }
int cuEventQuery(void *e) { return sticky; }
int cuEventElapsedTime_v2(float *ms, void *a, void *b) { return cudaEventElapsedTime(ms, a, b); }

// --- entry points ------------------------------------------------------------------------------

int cuGetProcAddress_v2(const char *name, void **where, int version, uint64_t flags, int *status) {
  int error = entry_point(name, where);
  if (status) *status = error ? 1 : 0;
  return error;
}
int cuGetProcAddress(const char *name, void **where, int version, uint64_t flags) { return cuGetProcAddress_v2(name, where, version, flags, 0); }
int cuGetExportTable(const void **table, const void *id) { return *table = 0, NOT_FOUND; }
