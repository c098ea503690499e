// The CUDA runtime and driver, as far as host programs mostly use them, of a device that is the
// simulated machine: its memory is the host's, launches go to Python (program.py). A kernel that
// fails makes the error of a real one: it stays, and every later call returns it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int (*launch)(uint64_t module, const char *name, const uint32_t *sizes, void **arguments);
  int (*set)(uint64_t module, const char *name, int attribute, int value);
  int (*map)(void *map, const uint64_t *fields);
  void (*allocated)(void *base, uint64_t bytes);
  int (*freed)(void *base);
  void (*written)(void *to, const void *from, uint64_t bytes);
  void (*loaded)(uint64_t module, const void *image, uint64_t bytes);
  void *(*variable)(uint64_t module, const char *name, uint64_t *bytes);
  void (*ended)(int status);
  int (*attributes)(uint64_t module, const char *name, int64_t *values);
  int (*occupancy)(uint64_t module, const char *name, int threads, uint64_t shared);
  void (*missing)(const char *name);
  void (*registered)(void *base, uint64_t bytes);
  int (*has)(uint64_t module, const char *name);
  int (*parameter)(uint64_t module, const char *name, uint64_t number, uint64_t *place);
  int (*heap)(uint64_t bytes);
} callbacks_t;

enum { INVALID_VALUE = 1, INVALID_SYMBOL = 13, INVALID_FUNCTION = 98, NOT_FOUND = 500, FAILED = 719 };

static callbacks_t python;
static const int32_t *device;  // by number of CUdevice_attribute, 256 of them
static uint64_t device_memory;
static char device_name[256];
static int in_program, last_error, sticky;

static int result(int error) {
  if (error) last_error = error;
  return sticky ? sticky : error;
}

// The program may end by exit(); Python has to say what there was.
static void on_end(int status, void *unused) {
  if (!in_program) return;
  fflush(0);  // Python ends the process before the C library would
  python.ended(status);
}

void tcir_start(const callbacks_t *callbacks, const int32_t *attributes, uint64_t memory, const char *name) {
  static int32_t kept[256];
  python = *callbacks, device_memory = memory;
  device = memcpy(kept, attributes, sizeof kept);
  strncpy(device_name, name, sizeof device_name - 1);
  on_exit(on_end, 0);
}

static int nothing() { return 0; }

// Python ends; what libraries release later reaches nobody.
void tcir_stop(void) {
  for (size_t i = 0; i < sizeof python / sizeof(void *); ++i) ((void **)&python)[i] = nothing;
}

// A function that nobody has was called; this does not return.
void tcir_missing(const char *name) {
  fflush(0);
  python.missing(name);
}

int tcir_main(int (*program)(int, char **), int argc, char **argv) {
  in_program = 1;
  int status = program(argc, argv);
  fflush(0);
  in_program = 0;
  return status;
}

// --- kernels and variables of the program ------------------------------------------------------

// Each file of the program has a fat binary; a kernel, or a variable, is an address in the host.
typedef struct { const void *host; const char *name; uint64_t module; } registered_t;
static registered_t *table;
static int count, room;

static void enter(const void *host, const char *name, uint64_t module) {
  if (count == room) table = realloc(table, (room = 2 * room + 64) * sizeof *table);
  table[count++] = (registered_t){host, name, module};
}

static const registered_t *registered(const void *host) {
  for (int i = 0; i < count; ++i)
    if (table[i].host == host) return table + i;
  return 0;
}

typedef struct { uint32_t magic, version; const uint64_t *data; void *file; } fat_binary_t;

static uint64_t modules;

void **__cudaRegisterFatBinary(const fat_binary_t *image) {
  // Of the data: magic, version and size of the header, 8 bytes; size of what follows.
  python.loaded(++modules, image->data, ((const uint16_t *)image->data)[3] + image->data[1]);
  void **handle = malloc(sizeof *handle);
  return *handle = (void *)modules, handle;
}
void __cudaRegisterFatBinaryEnd(void **handle) {}
void __cudaUnregisterFatBinary(void **handle) {}
char __cudaInitModule(void **handle) { return 0; }
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, void *t, void *b, void *bd, void *gd, int *w) {
  enter(host, name, (uint64_t)*handle);
}
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t bytes, int constant, int global) {
  enter(host, name, (uint64_t)*handle);
}
int __cudaGetKernel(void **kernel, const void *host) { return *kernel = (void *)host, 0; }

// --- launches ----------------------------------------------------------------------------------

typedef struct { uint32_t x, y, z; } dim3_t;
// The common beginning of CUlaunchConfig and cudaLaunchConfig_t.
typedef struct { dim3_t grid, block; uint64_t smem; void *stream; void *attributes; uint32_t count; } config_t;
typedef struct { uint32_t id, pad; uint32_t value[16]; } attribute_t;
enum { COOPERATIVE = 2, CLUSTER_DIMENSION = 4, PROGRAMMATIC = 6 };

static struct graph *capture_of(void *stream);
static int capture_launch(const config_t *config, const void *kernel, void **arguments);

static int launch(const config_t *config, const void *kernel, void **arguments) {
  const registered_t *known = registered(kernel);
  if (!known) return result(python.has(0, 0) ? INVALID_FUNCTION : 0);
  if (sticky) return sticky;
  if (capture_of(config->stream)) return capture_launch(config, kernel, arguments);
  uint32_t sizes[12] = {0, 0, 0, 0, 0, 0, 1, 1, 1, config->smem};
  memcpy(sizes, &config->grid, 12), memcpy(sizes + 3, &config->block, 12);
  const attribute_t *attributes = config->attributes;
  for (uint32_t i = 0; i < config->count; ++i) {
    if (attributes[i].id == CLUSTER_DIMENSION) memcpy(sizes + 6, attributes[i].value, 12);
    if (attributes[i].id == PROGRAMMATIC) sizes[10] = attributes[i].value[0];
    if (attributes[i].id == COOPERATIVE) sizes[11] = attributes[i].value[0];
  }
  fflush(0);
  int error = python.launch(known->module, known->name, sizes, arguments);
  if (error == FAILED) sticky = error;
  return result(error);
}

int cudaLaunchKernel(const void *f, dim3_t grid, dim3_t block, void **a, size_t smem, void *stream) {
  config_t c = {grid, block, smem, stream, 0, 0};
  return launch(&c, f, a);
}
int __cudaLaunchKernel(const void *f, dim3_t grid, dim3_t block, void **a, size_t smem, void *s) {
  return cudaLaunchKernel(f, grid, block, a, smem, s);
}
int cudaLaunchCooperativeKernel(const void *f, dim3_t grid, dim3_t block, void **a, size_t smem, void *s) {
  attribute_t cooperative = {COOPERATIVE, 0, {1}};
  config_t c = {grid, block, smem, s, &cooperative, 1};
  return launch(&c, f, a);
}
int cudaLaunchKernelExC(const config_t *c, const void *f, void **a) { return launch(c, f, a); }

static config_t pushed;
unsigned __cudaPushCallConfiguration(dim3_t grid, dim3_t block, size_t smem, void *stream) {
  return pushed = (config_t){grid, block, smem, stream, 0, 0}, 0;
}
int __cudaPopCallConfiguration(dim3_t *grid, dim3_t *block, size_t *smem, void **stream) {
  return *grid = pushed.grid, *block = pushed.block, *smem = pushed.smem, *stream = pushed.stream, 0;
}

int cudaFuncSetAttribute(const void *f, int which, int value) {
  const registered_t *known = registered(f);
  return result(known ? python.set(known->module, known->name, which, value) : INVALID_FUNCTION);
}
int cudaFuncSetCacheConfig(const void *f, int which) { return result(0); }
int cudaFuncGetAttributes(void *attributes, const void *f) {
  const registered_t *known = registered(f);
  if (!known) return result(INVALID_FUNCTION);
  int64_t v[11];
  int error = python.attributes(known->module, known->name, v);
  if (error) return result(error);
  // Of cudaFuncAttributes in CUDA 13: one size, then ints from byte 24 on.
  static const int at[] = {24, 28, 32, 36, 44, 52, 56, 60, 64, 72};
  memset(attributes, 0, 144), memcpy(attributes, v, 8);
  for (int i = 0; i < 10; ++i) *(int *)((char *)attributes + at[i]) = v[1 + i];
  return result(0);
}
int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int threads, size_t shared, unsigned flags) {
  const registered_t *known = registered(f);
  if (!known) return result(INVALID_FUNCTION);
  return *n = python.occupancy(known->module, known->name, threads, shared), result(0);
}
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, f, threads, shared, 0);
}
int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *f, int blocks, int threads) {
  int64_t each = blocks > 0 ? device[81] / blocks - device[111] : -1, v[11];
  const registered_t *known = registered(f);
  if (!known) return result(INVALID_FUNCTION);
  int error = python.attributes(known->module, known->name, v);
  if (each > device[97]) each = device[97];
  return *bytes = each > v[0] ? each - v[0] : 0, result(error);
}
static int ctas(const config_t *c) {
  const attribute_t *attributes = c->attributes;
  for (uint32_t i = 0; i < c->count; ++i)
    if (attributes[i].id == CLUSTER_DIMENSION)
      return attributes[i].value[0] * attributes[i].value[1] * attributes[i].value[2];
  return 1;
}
int cudaOccupancyMaxActiveClusters(int *n, const void *f, const config_t *c) {
  int each = 0, error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, f, c->block.x * c->block.y * c->block.z, c->smem);
  return *n = each * device[16] / (ctas(c) ? ctas(c) : 1), error;
}
int cudaOccupancyMaxPotentialClusterSize(int *n, const void *f, const config_t *c) {
  const registered_t *known = registered(f);
  int64_t v[11];
  if (!known) return result(INVALID_FUNCTION);
  int error = python.attributes(known->module, known->name, v);
  return *n = v[10] ? 16 : 8, result(error);
}

// --- tensor maps -------------------------------------------------------------------------------

// fields: im2col, type, rank, address, dims 5, strides 4, box 5, element strides 5, interleave,
// swizzle, fill, lower corner 3, upper corner 3, channels, pixels.
static int tiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                 const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                 int interleave, int swizzle, int promotion, int fill) {
  uint64_t f[34] = {0, type, rank, (uint64_t)address};
  if (rank > 5) return INVALID_VALUE;
  for (uint32_t i = 0; i < rank; ++i) {
    f[4 + i] = dims[i], f[13 + i] = box[i], f[18 + i] = steps[i];
    if (i + 1 < rank) f[9 + i] = strides[i];
  }
  f[23] = interleave, f[24] = swizzle, f[25] = fill;
  return python.map(map, f);
}

static int im2col(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                  const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                  uint32_t pixels, const uint32_t *steps, int interleave, int swizzle,
                  int promotion, int fill) {
  uint64_t f[34] = {1, type, rank, (uint64_t)address};
  if (rank < 3 || rank > 5) return INVALID_VALUE;
  for (uint32_t i = 0; i < rank; ++i) {
    f[4 + i] = dims[i], f[18 + i] = steps[i];
    if (i + 1 < rank) f[9 + i] = strides[i];
    if (i + 2 < rank) f[26 + i] = (int64_t)lower[i], f[29 + i] = (int64_t)upper[i];
  }
  f[23] = interleave, f[24] = swizzle, f[25] = fill, f[32] = channels, f[33] = pixels;
  return python.map(map, f);
}
int cuTensorMapEncodeTiled(void *m, int t, uint32_t r, void *a, const uint64_t *d, const uint64_t *s, const uint32_t *b, const uint32_t *e, int i, int w, int p, int f) {
  return tiled(m, t, r, a, d, s, b, e, i, w, p, f);
}
int cuTensorMapEncodeIm2col(void *m, int t, uint32_t r, void *a, const uint64_t *d, const uint64_t *s, const int *l, const int *u, uint32_t c, uint32_t n, const uint32_t *e, int i, int w, int p, int f) {
  return im2col(m, t, r, a, d, s, l, u, c, n, e, i, w, p, f);
}


// --- memory ------------------------------------------------------------------------------------

// Kinds as of cudaMemoryType.
enum { UNREGISTERED, HOST, DEVICE, MANAGED };
typedef struct { char *base; size_t bytes; int kind; } memory_t;
static memory_t *memories;
static int memory_count, memory_room;

static memory_t *memory_of(const char *at) {
  for (int i = 0; i < memory_count; ++i)
    if (at >= memories[i].base && at < memories[i].base + memories[i].bytes) return memories + i;
  return 0;
}

static void remember(char *base, size_t bytes, int kind) {
  if (memory_count == memory_room)
    memories = realloc(memories, (memory_room = 2 * memory_room + 64) * sizeof *memories);
  memories[memory_count++] = (memory_t){base, bytes, kind};
  python.allocated(base, bytes);
}
static int allocate(void **where, size_t bytes, int kind) {
  if (!where) return result(INVALID_VALUE);
  if (bytes > (size_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)) return result(2);
  size_t rounded = (bytes + 4095) / 4096 * 4096;
  *where = aligned_alloc(4096, rounded ? rounded : 4096);
  if (!*where) return result(2);
  if (!bytes) return result(0);
  remember(*where, bytes, kind);
  return result(0);
}
static int forget(void *base) {
  memory_t *known = memory_of(base);
  if (base && !python.freed(base)) return result(INVALID_VALUE);
  if (known) *known = memories[--memory_count];
  return 0;
}
static int kept(const void *base);
static int release(void *base) {
  int error = forget(base);
  if (!error && !kept(base)) free(base);
  return result(error);
}
// Memory of device code's malloc, which no function of the host may use.
static int of_heap(const void *p) { return (uint64_t)p >> 47 != 0; }
static int copy(void *to, const void *from, size_t bytes) {
  if (of_heap(to) || of_heap(from)) return result(INVALID_VALUE);
  if (!sticky) memmove(to, from, bytes), python.written(to, from, bytes);
  return result(0);
}
static int fill(void *to, int value, size_t bytes) {
  if (of_heap(to)) return result(INVALID_VALUE);
  if (!sticky) memset(to, value, bytes), python.written(to, 0, bytes);
  return result(0);
}
static int copy_rows(char *to, size_t tp, const char *from, size_t fp, size_t width, size_t rows) {
  for (; rows; --rows, to += tp, from += fp) copy(to, from, width);
  return result(0);
}
static int fill_rows(char *to, size_t pitch, int value, size_t width, size_t rows) {
  for (; rows; --rows, to += pitch) fill(to, value, width);
  return result(0);
}

static int symbol(const void *host, size_t offset, size_t bytes, char **where) {
  const registered_t *known = registered(host);
  uint64_t size = 0;
  *where = known ? python.variable(known->module, known->name, &size) : 0;
  if (!*where) return INVALID_SYMBOL;
  return *where += offset, offset + bytes > size ? INVALID_VALUE : 0;
}

#include "graphs.c"
#include "textures.c"

// Whether a stream capture is under way, in which functions of libraries would have to take part.
int tcir_capturing(void) { return captured != 0; }

int cudaMalloc(void **p, size_t n) { return allocate(p, n, DEVICE); }
int cudaMallocAsync(void **p, size_t n, void *s) {
  return capture_of(s) ? add_memory(added(captured, ALLOCATION, captured->count > 0), p, n) : allocate(p, n, DEVICE);
}
int cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t rows) {
  *pitch = (width + 511) / 512 * 512;
  return allocate(p, *pitch * rows, DEVICE);
}
int cudaMallocManaged(void **p, size_t n, unsigned flags) { return allocate(p, n, MANAGED); }
int cudaMallocHost(void **p, size_t n) { return allocate(p, n, HOST); }
int cudaHostAlloc(void **p, size_t n, unsigned flags) { return allocate(p, n, HOST); }
int cudaMallocFromPoolAsync(void **p, size_t n, void *pool, void *s) { return allocate(p, n, DEVICE); }
// Memory of the host's own, which kernels may reach from now on; it has what it has.
int cudaHostRegister(void *p, size_t n, unsigned flags) {
  if (!p || !n || memory_of(p)) return result(INVALID_VALUE);
  if (memory_count == memory_room)
    memories = realloc(memories, (memory_room = 2 * memory_room + 64) * sizeof *memories);
  memories[memory_count++] = (memory_t){p, n, HOST};
  return python.registered(p, n), result(0);
}
int cudaHostUnregister(void *p) { return result(forget(p)); }
typedef struct { int kind, ordinal; void *device, *host; int64_t rest[8]; } pointer_t;
int cudaPointerGetAttributes(pointer_t *out, const void *p) {
  memory_t *known = memory_of(p);
  *out = (pointer_t){known ? known->kind : UNREGISTERED, known ? 0 : -1};
  if (known) out->device = (void *)p;
  if (!known || known->kind != DEVICE) out->host = (void *)p;
  return result(0);
}
int cudaHostGetDevicePointer(void **p, void *host, unsigned flags) { return *p = host, result(0); }
int cudaFree(void *p) { return release(p); }
int cudaFreeAsync(void *p, void *s) {
  return capture_of(s) ? (added(captured, RELEASE, captured->count > 0)->memory = p, result(0)) : release(p);
}
int cudaFreeHost(void *p) { return release(p); }
int cudaMemcpy(void *to, const void *from, size_t n, int kind) { return copy(to, from, n); }
int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *s) {
  return capture_of(s) ? capture_copy(to, n, from, n, n, 1) : copy(to, from, n);
}
int cudaMemcpy2D(void *to, size_t tp, const void *from, size_t fp, size_t width, size_t rows, int kind) {
  return copy_rows(to, tp, from, fp, width, rows);
}
int cudaMemcpy2DAsync(void *to, size_t tp, const void *from, size_t fp, size_t width, size_t rows, int kind, void *s) {
  return (capture_of(s) ? capture_copy : copy_rows)(to, tp, from, fp, width, rows);
}
int cudaMemset2D(void *p, size_t pitch, int value, size_t width, size_t rows) { return fill_rows(p, pitch, value, width, rows); }
int cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t rows, void *s) {
  return (capture_of(s) ? capture_fill : fill_rows)(p, pitch, value, width, rows);
}
int cudaMemset(void *p, int value, size_t n) { return fill(p, value, n); }
int cudaMemsetAsync(void *p, int value, size_t n, void *s) {
  return capture_of(s) ? capture_fill(p, n, value, n, 1) : fill(p, value, n);
}
int cudaMemcpyPeer(void *to, int there, const void *from, int here, size_t n) { return copy(to, from, n); }
int cudaMemcpyPeerAsync(void *to, int there, const void *from, int here, size_t n, void *s) { return copy(to, from, n); }
int cudaMemGetInfo(size_t *available, size_t *total) { return *available = *total = device_memory, result(0); }
typedef struct { int type, id; } place_t;
int cudaMemAdvise(const void *p, size_t n, int advice, place_t place) { return result(0); }
// Pools: memory is given and taken at once, and nothing is kept.
int cudaDeviceGetDefaultMemPool(void **pool, int device) { return *pool = (void *)1, result(0); }
int cudaDeviceGetMemPool(void **pool, int device) { return *pool = (void *)1, result(0); }
int cudaDeviceSetMemPool(int device, void *pool) { return result(0); }
int cudaMemPoolCreate(void **pool, const void *properties) { return *pool = (void *)1, result(0); }
int cudaMemPoolDestroy(void *pool) { return result(0); }
int cudaMemPoolSetAttribute(void *pool, int which, void *value) { return result(0); }
int cudaMemPoolGetAttribute(void *pool, int which, void *value) { return memset(value, 0, which < 4 ? 4 : 8), result(0); }
int cudaDeviceGetGraphMemAttribute(int ordinal, int which, uint64_t *value) { return *value = 0, result(0); }
int cudaDeviceSetGraphMemAttribute(int ordinal, int which, uint64_t *value) { return result(0); }
int cudaDeviceGraphMemTrim(int ordinal) { return result(0); }
int cudaMemPoolTrimTo(void *pool, size_t bytes) { return result(0); }
int cudaMemPrefetchAsync(const void *p, size_t n, uint64_t place, unsigned flags, void *s) { return result(0); }

// Copies to a variable, or from one, at once or as part of a capture.
static int to_symbol(const void *host, const void *from, size_t bytes, size_t offset, void *s) {
  char *where;
  int error = symbol(host, offset, bytes, &where);
  if (error) return result(error);
  return capture_of(s) ? capture_copy(where, bytes, from, bytes, bytes, 1) : copy(where, from, bytes);
}
static int from_symbol(void *to, const void *host, size_t bytes, size_t offset, void *s) {
  char *where;
  int error = symbol(host, offset, bytes, &where);
  if (error) return result(error);
  return capture_of(s) ? capture_copy(to, bytes, where, bytes, bytes, 1) : copy(to, where, bytes);
}
int cudaMemcpyToSymbol(const void *host, const void *from, size_t bytes, size_t offset, int kind) { return to_symbol(host, from, bytes, offset, 0); }
int cudaMemcpyFromSymbol(void *to, const void *host, size_t bytes, size_t offset, int kind) { return from_symbol(to, host, bytes, offset, 0); }
int cudaMemcpyToSymbolAsync(const void *host, const void *from, size_t bytes, size_t offset, int kind, void *s) {
  return to_symbol(host, from, bytes, offset, s);
}
int cudaMemcpyFromSymbolAsync(void *to, const void *host, size_t bytes, size_t offset, int kind, void *s) {
  return from_symbol(to, host, bytes, offset, s);
}
int cudaGetSymbolAddress(void **where, const void *host) { return result(symbol(host, 0, 0, (char **)where)); }
int cudaGetSymbolSize(size_t *bytes, const void *host) {
  const registered_t *known = registered(host);
  uint64_t size = 0;
  if (!known || !python.variable(known->module, known->name, &size)) return result(INVALID_SYMBOL);
  return *bytes = size, result(0);
}
int cudaGetFuncBySymbol(const void **f, const void *host) { return *f = host, result(registered(host) ? 0 : INVALID_FUNCTION); }

// --- device ------------------------------------------------------------------------------------

// cudaDeviceProp of CUDA 13, by offsets; sizes of 8 bytes are at 296, 312, 352 and from 368 on.
static const struct { int at, attribute; } properties_of[] = {
  {296, 8}, {304, 12}, {308, 10}, {312, 11}, {320, 1}, {324, 2}, {328, 3}, {332, 4}, {336, 5}, {340, 6},
  {344, 7}, {352, 9}, {360, 75}, {364, 76}, {368, 14}, {376, 51}, {384, 16}, {392, 19}, {552, 30},
  {560, 31}, {564, 32}, {584, 40}, {588, 41}, {592, 37}, {596, 38}, {604, 39}, {608, 78}, {612, 79},
  {616, 80}, {624, 81}, {632, 82}, {636, 83}, {656, 89}, {660, 90}, {664, 91}, {668, 95}, {672, 97},
  {688, 106}, {696, 111}, {704, 99}, {720, 115}, {744, 125}, {748, 120}};
int cudaGetDeviceProperties(void *properties, int which) {
  if (which) return result(101);
  memset(properties, 0, 1008);
  strcpy(properties, device_name);
  *(uint64_t *)((char *)properties + 288) = device_memory;
  for (unsigned i = 0; i < sizeof properties_of / sizeof *properties_of; ++i)
    *(int *)((char *)properties + properties_of[i].at) = device[properties_of[i].attribute];
  return result(0);
}
int cudaDeviceGetAttribute(int *value, int which, int ordinal) {
  if (ordinal) return result(101);
  if (which < 1 || which > 255) return result(INVALID_VALUE);
  return *value = device[which], result(0);
}
int cudaDeviceGetName(char *name, int length, int ordinal) { return strncpy(name, device_name, length), result(0); }
int cudaDeviceGetPCIBusId(char *id, int length, int ordinal) { return strncpy(id, "0000:00:00.0", length), result(0); }
int cudaDeviceGetByPCIBusId(int *ordinal, const char *id) { return *ordinal = 0, result(0); }
int cudaChooseDevice(int *ordinal, const void *properties) { return *ordinal = 0, result(0); }
int cudaInitDevice(int ordinal, unsigned flags, unsigned given) { return result(ordinal ? 101 : 0); }
int cudaGetDeviceFlags(unsigned *flags) { return *flags = 0, result(0); }
int cudaSetDeviceFlags(unsigned flags) { return result(0); }
int cudaDeviceCanAccessPeer(int *can, int device, int peer) { return *can = 0, result(0); }
int cudaDeviceEnablePeerAccess(int peer, unsigned flags) { return result(101); }
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, result(0); }
int cudaDriverGetVersion(int *version) { return *version = 13000, result(0); }
int cudaRuntimeGetVersion(int *version) { return *version = 13000, result(0); }
int cudaGetDeviceCount(int *number) { return *number = 1, result(0); }
int cudaGetDevice(int *device) { return *device = 0, result(0); }
int cudaSetDevice(int device) { return result(device ? 101 : 0); }
int cudaDeviceReset(void) { return result(0); }
int cudaDeviceSynchronize(void) { return result(0); }
// Of stack, printf, malloc, and what programs set.
enum { MALLOC_HEAP = 2 };
static size_t limits[16] = {1024, 7 << 20, 8 << 20, 2, 2048, 128};
int cudaDeviceSetLimit(int which, size_t value) {
  if (which < 0 || which > 15 || (which == MALLOC_HEAP && python.heap(value))) return result(INVALID_VALUE);
  return limits[which] = value, result(0);
}
int cudaDeviceGetLimit(size_t *value, int which) {
  if (which < 0 || which > 15) return result(INVALID_VALUE);
  return *value = limits[which], result(0);
}
int cudaDeviceSetCacheConfig(int which) { return result(0); }
int cudaPeekAtLastError(void) { return sticky ? sticky : last_error; }
int cudaGetLastError(void) {
  int error = cudaPeekAtLastError();
  return last_error = 0, error;
}
static const struct { int error; const char *name, *words; } errors[] = {
  {0, "cudaSuccess", "no error"},
  {INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
  {2, "cudaErrorMemoryAllocation", "out of memory"},
  {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
  {INVALID_SYMBOL, "cudaErrorInvalidSymbol", "invalid device symbol"},
  {INVALID_FILTER, "cudaErrorInvalidFilterSetting", "linear filtering not supported for non-float type"},
  {INVALID_NORM, "cudaErrorInvalidNormSetting", "read as normalized float not supported for 32-bit non float type"},
  {INVALID_FUNCTION, "cudaErrorInvalidDeviceFunction", "invalid device function"},
  {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
  {NOT_FOUND, "cudaErrorSymbolNotFound", "named symbol not found"},
  {NOT_SUPPORTED, "cudaErrorNotSupported", "operation not supported"},
  {CAPTURE_UNSUPPORTED, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
  {CAPTURE_UNMATCHED, "cudaErrorStreamCaptureUnmatched", "capture was not initiated in this stream"},
  {UPDATE_FAILED, "cudaErrorGraphExecUpdateFailure", "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"},
  {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
  {912, "cudaErrorInvalidClusterSize", "cluster misconfiguration"},
  {FAILED, "cudaErrorLaunchFailure", "unspecified launch failure"},
  {720, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"}};
const char *cudaGetErrorString(int error) {
  for (unsigned i = 0; i < sizeof errors / sizeof *errors; ++i)
    if (errors[i].error == error) return errors[i].words;
  return "unrecognized error code";
}
const char *cudaGetErrorName(int error) {
  for (unsigned i = 0; i < sizeof errors / sizeof *errors; ++i)
    if (errors[i].error == error) return errors[i].name;
  return "unrecognized error code";
}
// Streams and events: all work is done when a call returns. Elapsed times are not a number.
static int handle(void **made) {
  static uint64_t number = 256;  // 0 to 2 are the default streams
  return *made = (void *)number++, result(0);
}
int cudaStreamCreate(void **s) { return handle(s); }
int cudaStreamCreateWithFlags(void **s, unsigned flags) { return handle(s); }
int cudaStreamCreateWithPriority(void **s, unsigned flags, int priority) { return handle(s); }
int cudaStreamGetPriority(void *s, int *priority) { return *priority = 0, result(0); }
int cudaStreamGetFlags(void *s, unsigned *flags) { return *flags = 0, result(0); }
int cudaStreamGetDevice(void *s, int *ordinal) { return *ordinal = 0, result(0); }
int cudaStreamAttachMemAsync(void *s, void *p, size_t n, unsigned flags) { return result(0); }
int cudaLaunchHostFunc(void *s, void (*call)(void *), void *data) {
  return capture_of(s) ? capture_call(call, data) : (call(data), result(0));
}
int cudaStreamAddCallback(void *s, void (*call)(void *, int, void *), void *data, unsigned flags) {
  return call(s, sticky, data), result(0);
}
int cudaProfilerStart(void) { return result(0); }
int cudaProfilerStop(void) { return result(0); }
int cudaStreamDestroy(void *s) { return result(0); }
int cudaStreamSynchronize(void *s) { return result(capture_of(s) ? CAPTURE_UNSUPPORTED : 0); }
int cudaStreamQuery(void *s) { return result(0); }
int cudaStreamWaitEvent(void *s, void *e, unsigned flags) { return capture_wait(s, e); }
int cudaEventCreate(void **e) { return handle(e); }
int cudaEventCreateWithFlags(void **e, unsigned flags) { return handle(e); }
int cudaEventDestroy(void *e) { return result(0); }
int cudaEventRecord(void *e, void *s) { return capture_event(e, s); }
int cudaEventRecordWithFlags(void *e, void *s, unsigned flags) { return capture_event(e, s); }
int cudaEventSynchronize(void *e) { return result(0); }
int cudaEventQuery(void *e) { return result(0); }
int cudaEventElapsedTime(float *ms, void *a, void *b) { return *ms = __builtin_nanf(""), result(0); }

// The entry points of the driver that host code asks for by name: that of the header, of functions
// that have the versions of CUDA 13.
static int entry_point(const char *name, void **where) {
  static const char *const suffixes[] = {"_v4", "_v2", ""};
  char full[256];
  *where = 0;
  for (int i = 0; i < 3 && !*where && !strncmp(name, "cu", 2); ++i) {
    snprintf(full, sizeof full, "%s%s", name, suffixes[i]);
    *where = dlsym(RTLD_DEFAULT, full);
  }
  return *where ? 0 : NOT_FOUND;
}
int cudaGetDriverEntryPoint(const char *name, void **where, unsigned long long flags, int *found) {
  int error = entry_point(name, where);
  if (found) *found = error ? 1 : 0;
  return result(found ? 0 : error);
}
int cudaGetDriverEntryPointByVersion(const char *name, void **where, unsigned version, unsigned long long flags, int *found) {
  return cudaGetDriverEntryPoint(name, where, flags, found);
}
