// Arrays, and texture and surface objects: a handle is the address of a descriptor that the
// machine reads (tcir/machine/textures.py, RECORD). Included in runtime.c.

enum { INVALID_FILTER = 26, INVALID_NORM = 27 };
enum { LAYERED = 1, SURFACE = 2, CUBEMAP = 4, GATHER = 8 };

typedef struct { int bits[4], kind; } channel_t;
typedef struct { size_t width, height, depth; } extent_t;
// depth: layers of a layered array, faces of a cubemap.
typedef struct array { char *base; channel_t channel; extent_t size; unsigned flags; } array_t;

static size_t texel(const channel_t *c) { return (c->bits[0] + c->bits[1] + c->bits[2] + c->bits[3]) / 8; }
static size_t some(size_t n) { return n ? n : 1; }
static size_t pitch_of(const array_t *a) { return a->size.width * texel(&a->channel); }

channel_t cudaCreateChannelDesc(int x, int y, int z, int w, int kind) { return (channel_t){{x, y, z, w}, kind}; }
int cudaGetChannelDesc(channel_t *out, const array_t *a) { return *out = a->channel, result(0); }
int cudaMalloc3DArray(array_t **out, const channel_t *channel, extent_t size, unsigned flags) {
  size_t bytes = texel(channel);
  // Channels have one size, and there are 1, 2 or 4 of them.
  int n = 0;
  while (n < 4 && channel->bits[n]) ++n;
  for (int i = 0; i < n; ++i)
    if (channel->bits[i] != channel->bits[0]) return result(INVALID_VALUE);
  if (!bytes || n == 3 || (bytes & (bytes - 1)) || !size.width) return result(INVALID_VALUE);
  if (flags & ~(LAYERED | SURFACE | CUBEMAP | GATHER)) return result(NOT_SUPPORTED);
  if ((flags & CUBEMAP) && (size.width != size.height || size.depth % 6 || !size.depth)) return result(INVALID_VALUE);
  array_t *made = malloc(sizeof *made);
  *made = (array_t){0, *channel, size, flags};
  int error = allocate((void **)&made->base, pitch_of(made) * some(size.height) * some(size.depth), DEVICE);
  if (error) return free(made), error;
  return *out = made, result(0);
}
int cudaMallocArray(array_t **out, const channel_t *channel, size_t width, size_t height, unsigned flags) {
  return cudaMalloc3DArray(out, channel, (extent_t){width, height, 0}, flags);
}
int cudaFreeArray(array_t *a) {
  if (!a) return result(0);
  int error = release(a->base);
  return free(a), error;
}
int cudaArrayGetInfo(channel_t *channel, extent_t *size, unsigned *flags, const array_t *a) {
  if (channel) *channel = a->channel;
  if (size) *size = a->size;
  if (flags) *flags = a->flags;
  return result(0);
}
int cudaMalloc3D(pitched_t *out, extent_t size) {
  size_t pitch = (size.width + 511) / 512 * 512;
  *out = (pitched_t){0, pitch, size.width, size.height};
  return allocate((void **)&out->at, pitch * size.height * size.depth, DEVICE);
}
int cudaMemset3D(pitched_t p, int value, extent_t size) {
  for (size_t z = 0; z < size.depth; ++z)
    fill_rows(p.at + z * p.pitch * p.rows, p.pitch, value, size.width, size.height);
  return result(0);
}
int cudaMemset3DAsync(pitched_t p, int value, extent_t size, void *s) {
  return capture_of(s) ? result(CAPTURE_UNSUPPORTED) : cudaMemset3D(p, value, size);
}

// Copies: in an array, offsets in x are bytes for 2-D copies, texels for 3-D ones.
static char *inside(const array_t *a, size_t x, size_t y, size_t z) {
  return a->base + (z * some(a->size.height) + y) * pitch_of(a) + x;
}
int cudaMemcpy2DToArray(array_t *to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t rows, int kind) {
  if (x + width > pitch_of(to) || y + rows > some(to->size.height)) return result(INVALID_VALUE);
  return copy_rows(inside(to, x, y, 0), pitch_of(to), from, pitch, width, rows);
}
int cudaMemcpy2DToArrayAsync(array_t *to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t rows, int kind, void *s) {
  return capture_of(s) ? result(CAPTURE_UNSUPPORTED) : cudaMemcpy2DToArray(to, x, y, from, pitch, width, rows, kind);
}
int cudaMemcpy2DFromArray(void *to, size_t pitch, const array_t *from, size_t x, size_t y, size_t width, size_t rows, int kind) {
  if (x + width > pitch_of(from) || y + rows > some(from->size.height)) return result(INVALID_VALUE);
  return copy_rows(to, pitch, inside(from, x, y, 0), pitch_of(from), width, rows);
}
int cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, const array_t *from, size_t x, size_t y, size_t width, size_t rows, int kind, void *s) {
  return capture_of(s) ? result(CAPTURE_UNSUPPORTED) : cudaMemcpy2DFromArray(to, pitch, from, x, y, width, rows, kind);
}
int cudaMemcpy2DArrayToArray(array_t *to, size_t tx, size_t ty, const array_t *from, size_t fx, size_t fy, size_t width, size_t rows, int kind) {
  if (fx + width > pitch_of(from) || fy + rows > some(from->size.height)) return result(INVALID_VALUE);
  return cudaMemcpy2DToArray(to, tx, ty, inside(from, fx, fy, 0), pitch_of(from), width, rows, kind);
}
// A run of bytes row by row, as the functions that CUDA 11 deprecated take it.
static size_t rest(const array_t *a, size_t x, size_t y) { return pitch_of(a) * some(a->size.height) - y * pitch_of(a) - x; }
int cudaMemcpyToArray(array_t *to, size_t x, size_t y, const void *from, size_t bytes, int kind) {
  return bytes > rest(to, x, y) ? result(INVALID_VALUE) : copy(inside(to, x, y, 0), from, bytes);
}
int cudaMemcpyFromArray(void *to, const array_t *from, size_t x, size_t y, size_t bytes, int kind) {
  return bytes > rest(from, x, y) ? result(INVALID_VALUE) : copy(to, inside(from, x, y, 0), bytes);
}
typedef struct { char *base; size_t pitch, slice; } place_3d_t;
// Places are in texels where an array is copied, else in bytes.
static place_3d_t place_3d(const array_t *a, const pitched_t *p, size_t x, size_t y, size_t z) {
  if (a) return (place_3d_t){inside(a, x * texel(&a->channel), y, z), pitch_of(a), pitch_of(a) * some(a->size.height)};
  size_t slice = p->pitch * some(p->rows);
  return (place_3d_t){p->at + z * slice + y * p->pitch + x, p->pitch, slice};
}
static int beyond(const array_t *a, size_t x, size_t y, size_t z) {
  return a && (x > a->size.width || y > some(a->size.height) || z > some(a->size.depth));
}
int cudaMemcpy3D(const copy_params_t *c) {
  const array_t *array = c->from_array ? c->from_array : c->to_array;
  size_t width = c->width * (array ? texel(&array->channel) : 1);
  if (beyond(c->from_array, c->from_x + c->width, c->from_y + c->rows, c->from_z + c->slices) ||
      beyond(c->to_array, c->to_x + c->width, c->to_y + c->rows, c->to_z + c->slices)) return result(INVALID_VALUE);
  place_3d_t from = place_3d(c->from_array, &c->from, c->from_x, c->from_y, c->from_z);
  place_3d_t to = place_3d(c->to_array, &c->to, c->to_x, c->to_y, c->to_z);
  for (size_t z = 0; z < c->slices; ++z)
    copy_rows(to.base + z * to.slice, to.pitch, from.base + z * from.slice, from.pitch, width, c->rows);
  return result(0);
}
int cudaMemcpy3DAsync(const copy_params_t *c, void *s) { return capture_of(s) ? result(CAPTURE_UNSUPPORTED) : cudaMemcpy3D(c); }

// --- objects -----------------------------------------------------------------------------------

enum { OF_ARRAY, OF_MIPMAPS, OF_LINEAR, OF_PITCH_2D };
typedef struct {
  int kind;
  union {
    array_t *array;
    struct { void *memory; channel_t channel; size_t bytes; } linear;
    struct { void *memory; channel_t channel; size_t width, height, pitch; } pitched;
    int reserved[32];
  };
  unsigned flags;
} resource_t;
typedef struct {
  int modes[3], linear, scaled, srgb;
  float border[4];
  int normalized, anisotropy, mipmaps;
  float bias, least, most;
  int no_optimization, seamless;
} sampling_t;
typedef struct __attribute__((packed)) {
  uint32_t magic, dims, layers, faces;
  uint64_t base, pitch, slice;
  uint32_t size[3], bits, channels, format, normalized, linear, modes[3], scaled;
  float border[4];
  uint32_t buffer, surface, rest[3];
} descriptor_t;
// What a handle points to; queries read the end of it.
typedef struct { descriptor_t descriptor; resource_t resource; sampling_t sampling; } object_t;

static int described(descriptor_t *d, const resource_t *r) {
  const channel_t *channel = r->kind == OF_LINEAR ? &r->linear.channel : &r->pitched.channel;
  *d = (descriptor_t){0x54584354, .buffer = r->kind == OF_LINEAR};
  if (r->kind == OF_ARRAY) {
    const array_t *a = r->array;
    channel = &a->channel;
    int layered = !!(a->flags & LAYERED), cube = !!(a->flags & CUBEMAP);
    d->faces = cube ? 6 : 0, d->layers = layered ? some(a->size.depth) / (cube ? 6 : 1) : 0;
    d->dims = 1 + (a->size.height > 0) + (a->size.depth > 0 && !layered && !cube);
    d->base = (uint64_t)a->base, d->pitch = pitch_of(a), d->slice = pitch_of(a) * some(a->size.height);
    d->size[0] = a->size.width, d->size[1] = some(a->size.height), d->size[2] = some(a->size.depth);
  } else if (r->kind == OF_LINEAR) {
    d->dims = 1, d->base = (uint64_t)r->linear.memory;
    d->size[0] = r->linear.bytes / some(texel(channel)), d->size[1] = d->size[2] = 1;
  } else if (r->kind == OF_PITCH_2D) {
    d->dims = 2, d->base = (uint64_t)r->pitched.memory, d->pitch = r->pitched.pitch;
    d->size[0] = r->pitched.width, d->size[1] = r->pitched.height, d->size[2] = 1;
    if (r->pitched.pitch % 32 || d->base % 512) return INVALID_VALUE;
  } else
    return NOT_SUPPORTED;
  d->bits = channel->bits[0], d->format = channel->kind;
  while (d->channels < 4 && channel->bits[d->channels]) ++d->channels;
  if (!d->base || !d->bits || d->channels == 3) return INVALID_VALUE;
  return channel->kind > 2 ? NOT_SUPPORTED : 0;
}
static int objects(uint64_t *out, object_t *made) {
  void *where;
  int error = allocate(&where, sizeof *made, DEVICE);
  return error ? error : (*out = (uint64_t)where, copy(where, made, sizeof *made));
}
int cudaCreateTextureObject(uint64_t *out, const resource_t *r, const sampling_t *s, const void *view) {
  object_t made = {.resource = *r, .sampling = *s};
  descriptor_t *d = &made.descriptor;
  int error = described(d, r);
  if (error) return result(error);
  if (view || s->srgb || s->seamless || s->anisotropy > 1) return result(NOT_SUPPORTED);
  if (s->scaled && (d->format == 2 || d->bits == 32)) d->scaled = 0; else d->scaled = s->scaled;
  if (s->linear && d->format != 2 && !d->scaled) return result(INVALID_FILTER);
  if (r->kind == OF_LINEAR && (s->linear || s->normalized)) return result(s->linear ? INVALID_FILTER : INVALID_NORM);
  d->normalized = s->normalized, d->linear = s->linear;
  for (int i = 0; i < 3; ++i) d->modes[i] = s->modes[i];
  memcpy(d->border, s->border, sizeof d->border);
  return objects(out, &made);
}
int cudaCreateSurfaceObject(uint64_t *out, const resource_t *r) {
  object_t made = {.resource = *r};
  int error = r->kind == OF_ARRAY && !(r->array->flags & SURFACE) ? INVALID_VALUE : described(&made.descriptor, r);
  if (r->kind != OF_ARRAY) error = INVALID_VALUE;
  made.descriptor.surface = 1;
  return error ? result(error) : objects(out, &made);
}
int cudaDestroyTextureObject(uint64_t object) { return release((void *)object); }
int cudaDestroySurfaceObject(uint64_t object) { return release((void *)object); }
int cudaGetTextureObjectResourceDesc(resource_t *out, uint64_t object) { return *out = ((object_t *)object)->resource, result(0); }
int cudaGetSurfaceObjectResourceDesc(resource_t *out, uint64_t object) { return *out = ((object_t *)object)->resource, result(0); }
int cudaGetTextureObjectTextureDesc(sampling_t *out, uint64_t object) { return *out = ((object_t *)object)->sampling, result(0); }
int cudaDeviceGetTexture1DLinearMaxWidth(size_t *width, const channel_t *channel, int ordinal) { return *width = 1 << 28, result(0); }

// --- the driver's arrays and objects -----------------------------------------------------------

typedef struct { size_t width, height; int format; unsigned channels; } driver_array_t;
typedef struct { size_t width, height, depth; int format; unsigned channels, flags; } driver_array_3d_t;
typedef struct { size_t x, y; int kind; void *host, *device; array_t *array; size_t pitch; } driver_place_t;
typedef struct { driver_place_t from, to; size_t width, rows; } driver_copy_t;
typedef struct { int modes[3], linear, flags, anisotropy, mipmaps; float bias, least, most, border[4]; int reserved[12]; } driver_sampling_t;
typedef struct { int kind; union { array_t *array; struct { void *memory; int format; unsigned channels; size_t sizes[3]; }; int reserved[32]; }; unsigned flags; } driver_resource_t;
enum { READ_AS_INTEGER = 1, NORMALIZED = 2, SRGB = 16, SEAMLESS = 64 };

// CUarray_format: unsigned from 1, signed from 8, half 16, float 32.
static channel_t channel_of(int format, unsigned channels) {
  int kind = format >= 16 ? 2 : format < 8, bits = format >= 16 ? format : 8 << (format & 7) >> (format < 8);
  channel_t made = {{0}, kind};
  for (unsigned i = 0; i < channels && i < 4; ++i) made.bits[i] = bits;
  return made;
}
int cuArray3DCreate_v2(array_t **out, const driver_array_3d_t *d) {
  channel_t channel = channel_of(d->format, d->channels);
  return cudaMalloc3DArray(out, &channel, (extent_t){d->width, d->height, d->depth}, d->flags);
}
int cuArrayCreate_v2(array_t **out, const driver_array_t *d) {
  return cuArray3DCreate_v2(out, &(driver_array_3d_t){d->width, d->height, 0, d->format, d->channels, 0});
}
int cuArrayDestroy(array_t *a) { return cudaFreeArray(a); }
static char *placed(const driver_place_t *p, size_t *pitch) {
  if (p->kind == 3) return *pitch = pitch_of(p->array), inside(p->array, p->x, p->y, 0);
  *pitch = p->pitch;
  return (char *)(p->kind == 1 ? p->host : p->device) + p->y * p->pitch + p->x;
}
int cuMemcpy2D_v2(const driver_copy_t *c) {
  size_t tp, fp;
  const driver_place_t *ends[] = {&c->from, &c->to};
  for (int i = 0; i < 2; ++i)
    if (ends[i]->kind == 3 && (ends[i]->x + c->width > pitch_of(ends[i]->array) || ends[i]->y + c->rows > some(ends[i]->array->size.height)))
      return result(INVALID_VALUE);
  char *to = placed(&c->to, &tp), *from = placed(&c->from, &fp);
  return copy_rows(to, tp, from, fp, c->width, c->rows);
}
int cuMemcpy2DUnaligned_v2(const driver_copy_t *c) { return cuMemcpy2D_v2(c); }
int cuMemcpy2DAsync_v2(const driver_copy_t *c, void *s) { return capture_of(s) ? result(CAPTURE_UNSUPPORTED) : cuMemcpy2D_v2(c); }
static resource_t resource_of(const driver_resource_t *r) {
  resource_t made = {r->kind, .array = r->array};
  if (r->kind == OF_LINEAR) made.linear.memory = r->memory, made.linear.channel = channel_of(r->format, r->channels), made.linear.bytes = r->sizes[0];
  if (r->kind == OF_PITCH_2D) {
    made.pitched.memory = r->memory, made.pitched.channel = channel_of(r->format, r->channels);
    made.pitched.width = r->sizes[0], made.pitched.height = r->sizes[1], made.pitched.pitch = r->sizes[2];
  }
  return made;
}
int cuTexObjectCreate(uint64_t *out, const driver_resource_t *r, const driver_sampling_t *d, const void *view) {
  resource_t resource = resource_of(r);
  sampling_t s = {{d->modes[0], d->modes[1], d->modes[2]}, d->linear, !(d->flags & READ_AS_INTEGER), d->flags & SRGB};
  memcpy(s.border, d->border, sizeof s.border);
  s.normalized = !!(d->flags & NORMALIZED), s.anisotropy = d->anisotropy, s.seamless = d->flags & SEAMLESS;
  return cudaCreateTextureObject(out, &resource, &s, view);
}
int cuTexObjectDestroy(uint64_t object) { return cudaDestroyTextureObject(object); }
int cuSurfObjectCreate(uint64_t *out, const driver_resource_t *r) {
  resource_t resource = resource_of(r);
  return cudaCreateSurfaceObject(out, &resource);
}
int cuSurfObjectDestroy(uint64_t object) { return cudaDestroySurfaceObject(object); }
