// CUDA graphs: work that stream capture records, or a program adds, node by node. cudaGraphLaunch
// executes the nodes one after another, in the order in which they were added.

enum { KERNEL, COPY, FILL, CALL, CHILD, EMPTY, ALLOCATION = 10, RELEASE, CONDITIONAL = 13 };
enum { IF, WHILE, SWITCH };
enum { NOT_SUPPORTED = 801, CAPTURE_UNSUPPORTED = 900, CAPTURE_UNMATCHED = 903, UPDATE_FAILED = 910 };

typedef struct { const void *kernel; dim3_t grid, block; uint32_t smem; void **arguments, **extra; } kernel_params_t;
typedef struct { char *to; size_t pitch; uint32_t value, size; size_t width, rows; } fill_params_t;
typedef struct { void (*call)(void *); void *data; } call_params_t;
typedef struct { char *at; size_t pitch, width, rows; } pitched_t;
typedef struct {
  void *from_array; size_t from_x, from_y, from_z; pitched_t from;
  void *to_array; size_t to_x, to_y, to_z; pitched_t to;
  size_t width, rows, slices; int kind;
} copy_params_t;

// A value that kernels set: its handle is its address. assigned: it begins each launch as `initial`.
typedef struct { uint32_t value, initial, assigned; } condition_t;
typedef struct { condition_t *condition; int kind; uint32_t count; struct graph **bodies; } choice_t;

typedef struct node {
  int kind, number;
  struct graph *graph, *child;
  size_t before;  // number of dependencies
  kernel_params_t kernel;
  attribute_t attributes[4];
  uint32_t attribute_count;
  fill_params_t fill;
  call_params_t call;
  copy_params_t copy;
  choice_t choice;
  char *memory;
  size_t bytes;
} node_t;
typedef struct graph { node_t **nodes; int count; } graph_t;

static node_t *added(graph_t *graph, int kind, size_t before) {
  node_t *node = calloc(1, sizeof *node);
  graph->nodes = realloc(graph->nodes, (graph->count + 1) * sizeof node);
  node->kind = kind, node->graph = graph, node->number = graph->count, node->before = before;
  return graph->nodes[graph->count++] = node;
}

// Copies the arguments, whose sizes the kernel's parameters have.
static int set_kernel(node_t *node, const kernel_params_t *params) {
  const registered_t *known = registered(params->kernel);
  uint64_t place[2], n = 0;
  if (!known) return INVALID_FUNCTION;
  if (params->extra) return NOT_SUPPORTED;
  node->kernel = *params;
  while (!python.parameter(known->module, known->name, n, place)) ++n;
  node->kernel.arguments = calloc(n + 1, sizeof(void *));
  for (uint64_t i = 0; i < n; ++i) {
    python.parameter(known->module, known->name, i, place);
    node->kernel.arguments[i] = memcpy(malloc(place[1]), params->arguments[i], place[1]);
  }
  return 0;
}

static graph_t *copied(const graph_t *graph);
static void set_bodies(choice_t *choice, struct graph *const *bodies) {
  choice->bodies = calloc(choice->count, sizeof(graph_t *));
  for (uint32_t i = 0; i < choice->count; ++i) choice->bodies[i] = bodies ? copied(bodies[i]) : calloc(1, sizeof(graph_t));
}

static graph_t *copied(const graph_t *graph) {
  graph_t *made = calloc(1, sizeof *made);
  for (int i = 0; i < graph->count; ++i) {
    node_t *node = added(made, 0, 0);
    *node = *graph->nodes[i], node->graph = made;
    if (node->kind == KERNEL) set_kernel(node, &graph->nodes[i]->kernel);
    if (node->child) node->child = copied(node->child);
    set_bodies(&node->choice, node->choice.bodies);
  }
  return made;
}

static void discarded(graph_t *graph) {
  for (int i = 0; i < graph->count; ++i) {
    void **argument = graph->nodes[i]->kernel.arguments;
    for (; argument && *argument; ++argument) free(*argument);
    free(graph->nodes[i]->kernel.arguments);
    if (graph->nodes[i]->child) discarded(graph->nodes[i]->child);
    for (uint32_t b = 0; b < graph->nodes[i]->choice.count; ++b) discarded(graph->nodes[i]->choice.bodies[b]);
    free(graph->nodes[i]->choice.bodies);
    free(graph->nodes[i]);
  }
  free(graph->nodes), free(graph);
}

static void fill_elements(const fill_params_t *f) {
  char *row = f->to;
  for (size_t r = 0; r < f->rows && !sticky; ++r, row += f->pitch) {
    for (size_t i = 0; i < f->width; ++i) memcpy(row + i * f->size, &f->value, f->size);
    python.written(row, 0, f->width * f->size);
  }
}

static void copy_box(const copy_params_t *c) {
  const pitched_t *f = &c->from, *t = &c->to;
  for (size_t z = 0; z < c->slices; ++z)
    copy_rows(t->at + ((c->to_z + z) * t->rows + c->to_y) * t->pitch + c->to_x, t->pitch,
              f->at + ((c->from_z + z) * f->rows + c->from_y) * f->pitch + c->from_x, f->pitch, c->width, c->rows);
}

// Memory of graphs has its address from the beginning, and is there between two of their nodes; its
// place is never used for anything else.
static char **reserved;
static int reserved_count;

static int kept(const void *base) {
  for (int i = 0; i < reserved_count; ++i)
    if (reserved[i] == base) return 1;
  return 0;
}
static int add_memory(node_t *node, void **where, size_t bytes) {
  int error = allocate(where, bytes, DEVICE);
  if (error || !bytes) return error;
  reserved = realloc(reserved, (reserved_count + 1) * sizeof *reserved);
  reserved[reserved_count++] = node->memory = *where, node->bytes = bytes;
  return release(*where);
}

static int executed(graph_t *graph);
static int chosen(const choice_t *c) {
  uint32_t value = c->condition->value, number = c->kind == SWITCH ? value : !value;
  if (c->kind != WHILE) return number < c->count ? executed(c->bodies[number]) : 0;
  int error = 0;
  while (c->condition->value && !error) error = executed(c->bodies[0]);
  return error;
}

// Gives conditions their initial values, before a launch.
static void assign(const graph_t *graph) {
  for (int i = 0; i < graph->count; ++i) {
    const choice_t *c = &graph->nodes[i]->choice;
    if (graph->nodes[i]->child) assign(graph->nodes[i]->child);
    if (c->condition && c->condition->assigned) c->condition->value = c->condition->initial;
    for (uint32_t b = 0; b < c->count; ++b) assign(c->bodies[b]);
  }
}

static int executed(graph_t *graph) {
  int error = sticky;
  for (int i = 0; i < graph->count && !error; ++i) {
    node_t *n = graph->nodes[i];
    config_t config = {n->kernel.grid, n->kernel.block, n->kernel.smem, 0, n->attributes, n->attribute_count};
    if (n->kind == KERNEL) error = launch(&config, n->kernel.kernel, n->kernel.arguments);
    if (n->kind == COPY) copy_box(&n->copy);
    if (n->kind == FILL) fill_elements(&n->fill);
    if (n->kind == CALL) n->call.call(n->call.data);
    if (n->kind == CHILD) error = executed(n->child);
    if (n->kind == CONDITIONAL) error = chosen(&n->choice);
    if (n->kind == ALLOCATION) error = memory_of(n->memory) ? INVALID_VALUE : (remember(n->memory, n->bytes, DEVICE), 0);
    if (n->kind == RELEASE) error = release(n->memory);
  }
  return result(error);
}

// --- stream capture: one at a time, of a stream and those that wait for its events ---------------

static graph_t *captured;
static void *captured_streams[256], *captured_events[1024];
static int stream_count, event_count;

static int among(void **list, int count, void *which) {
  for (int i = 0; i < count; ++i)
    if (list[i] == which) return i + 1;
  return 0;
}
static graph_t *capture_of(void *stream) {
  return captured && among(captured_streams, stream_count, stream) ? captured : 0;
}
static int capture_launch(const config_t *config, const void *kernel, void **arguments) {
  node_t *node = added(captured, KERNEL, captured->count > 0);
  kernel_params_t params = {kernel, config->grid, config->block, config->smem, arguments, 0};
  node->attribute_count = config->count < 4 ? config->count : 4;
  memcpy(node->attributes, config->attributes, node->attribute_count * sizeof(attribute_t));
  return result(set_kernel(node, &params));
}
static int capture_copy(char *to, size_t tp, const char *from, size_t fp, size_t width, size_t rows) {
  added(captured, COPY, captured->count > 0)->copy =
      (copy_params_t){0, 0, 0, 0, {(char *)from, fp, width, rows}, 0, 0, 0, 0, {to, tp, width, rows}, width, rows, 1, 0};
  return result(0);
}
static int capture_fill(char *to, size_t pitch, int value, size_t width, size_t rows) {
  added(captured, FILL, captured->count > 0)->fill = (fill_params_t){to, pitch, value & 255, 1, width, rows};
  return result(0);
}
static int capture_call(void (*call)(void *), void *data) {
  added(captured, CALL, captured->count > 0)->call = (call_params_t){call, data};
  return result(0);
}
static int capture_event(void *event, void *stream) {
  int known = among(captured_events, event_count, event);
  if (known) captured_events[known - 1] = captured_events[--event_count];
  if (capture_of(stream) && event_count < 1024) captured_events[event_count++] = event;
  return result(0);
}
static int capture_wait(void *stream, void *event) {
  if (captured && among(captured_events, event_count, event) && !capture_of(stream) && stream_count < 256)
    captured_streams[stream_count++] = stream;
  return result(0);
}

int cudaStreamBeginCapture(void *s, int mode) {
  if ((uint64_t)s < 3 || captured) return result(CAPTURE_UNSUPPORTED);  // default streams have none
  captured = calloc(1, sizeof *captured), stream_count = event_count = 0;
  return captured_streams[stream_count++] = s, result(0);
}
int cudaStreamBeginCaptureToGraph(void *s, graph_t *graph, node_t *const *before, const void *edges, size_t count, int mode) {
  int error = cudaStreamBeginCapture(s, mode);
  if (error) return error;
  return free(captured), captured = graph, result(0);
}
int cudaStreamEndCapture(void *s, graph_t **graph) {
  if (!captured || captured_streams[0] != s) return result(CAPTURE_UNMATCHED);
  if (graph) *graph = captured;
  return captured = 0, result(0);
}
// Nodes follow one another in the order in which they are added, so all that they depend on is there.
int cudaStreamUpdateCaptureDependencies(void *s, node_t **before, const void *edges, size_t count, unsigned flags) {
  return result(capture_of(s) ? 0 : CAPTURE_UNMATCHED);
}
int cudaStreamIsCapturing(void *s, int *status) { return *status = capture_of(s) != 0, result(0); }
int cudaStreamGetCaptureInfo(void *s, int *status, uint64_t *id, graph_t **graph, node_t ***before, void **edges, size_t *count) {
  *status = capture_of(s) != 0;
  if (id) *id = *status;
  if (graph) *graph = capture_of(s);
  if (before) *before = captured ? captured->nodes + captured->count - (captured->count > 0) : 0;
  if (count) *count = captured && captured->count;
  return result(0);
}
int cudaThreadExchangeStreamCaptureMode(int *mode) { return result(0); }

// --- graphs ------------------------------------------------------------------------------------

int cudaGraphCreate(graph_t **graph, unsigned flags) { return *graph = calloc(1, sizeof **graph), result(0); }
int cudaGraphDestroy(graph_t *graph) { return discarded(graph), result(0); }
int cudaGraphClone(graph_t **graph, const graph_t *original) { return *graph = copied(original), result(0); }
int cudaGraphInstantiate(graph_t **exec, const graph_t *graph, unsigned long long flags) { return cudaGraphClone(exec, graph); }
int cudaGraphInstantiateWithFlags(graph_t **exec, const graph_t *graph, unsigned long long flags) { return cudaGraphClone(exec, graph); }
int cudaGraphUpload(graph_t *exec, void *s) { return result(0); }
int cudaGraphExecDestroy(graph_t *exec) { return cudaGraphDestroy(exec); }
int cudaGraphLaunch(graph_t *exec, void *s) {
  if (!capture_of(s)) return assign(exec), executed(exec);
  return added(captured, CHILD, captured->count > 0)->child = copied(exec), result(0);
}

#define ADDS node_t **made, graph_t *graph, node_t *const *before, size_t count
int cudaGraphAddKernelNode(ADDS, const kernel_params_t *p) { return *made = added(graph, KERNEL, count), result(set_kernel(*made, p)); }
int cudaGraphAddMemcpyNode(ADDS, const copy_params_t *p) {
  if (p->from_array || p->to_array) return result(NOT_SUPPORTED);
  return *made = added(graph, COPY, count), (*made)->copy = *p, result(0);
}
int cudaGraphAddMemcpyNode1D(ADDS, char *to, char *from, size_t bytes, int kind) {
  copy_params_t p = {0, 0, 0, 0, {from, bytes, bytes, 1}, 0, 0, 0, 0, {to, bytes, bytes, 1}, bytes, 1, 1, kind};
  return cudaGraphAddMemcpyNode(made, graph, before, count, &p);
}
int cudaGraphAddMemcpyNodeToSymbol(ADDS, const void *host, char *from, size_t bytes, size_t offset, int kind) {
  char *where;
  int error = symbol(host, offset, bytes, &where);
  return error ? result(error) : cudaGraphAddMemcpyNode1D(made, graph, before, count, where, from, bytes, kind);
}
int cudaGraphAddMemcpyNodeFromSymbol(ADDS, char *to, const void *host, size_t bytes, size_t offset, int kind) {
  char *where;
  int error = symbol(host, offset, bytes, &where);
  return error ? result(error) : cudaGraphAddMemcpyNode1D(made, graph, before, count, to, where, bytes, kind);
}
int cudaGraphAddMemsetNode(ADDS, const fill_params_t *p) { return *made = added(graph, FILL, count), (*made)->fill = *p, result(0); }
int cudaGraphAddHostNode(ADDS, const call_params_t *p) { return *made = added(graph, CALL, count), (*made)->call = *p, result(0); }
int cudaGraphAddEmptyNode(ADDS) { return *made = added(graph, EMPTY, count), result(0); }
int cudaGraphAddChildGraphNode(ADDS, const graph_t *child) { return *made = added(graph, CHILD, count), (*made)->child = copied(child), result(0); }
// Of cudaMemAllocNodeParams: 104 bytes of properties and sizes, the bytes, the address.
int cudaGraphAddMemAllocNode(ADDS, uint64_t *p) {
  return add_memory(*made = added(graph, ALLOCATION, count), (void **)&p[14], p[13]);
}
int cudaGraphAddMemFreeNode(ADDS, char *p) { return *made = added(graph, RELEASE, count), (*made)->memory = p, result(0); }
int cudaGraphConditionalHandleCreate(condition_t **handle, graph_t *graph, unsigned value, unsigned flags) {
  *handle = aligned_alloc(4096, 4096);
  **handle = (condition_t){flags ? value : 0, value, flags};
  return python.registered(*handle, 4), result(0);
}
int cudaGraphConditionalHandleCreate_v2(condition_t **handle, graph_t *graph, void *context, unsigned value, unsigned flags) {
  return cudaGraphConditionalHandleCreate(handle, graph, value, flags);
}
// cudaConditionalNodeParams: handle, type, number of bodies, and the bodies, which are made here.
static int add_choice(ADDS, choice_t *p) {
  if (p->kind < IF || p->kind > SWITCH || !p->count || (p->kind == WHILE && p->count > 1) || (p->kind == IF && p->count > 2)) return result(INVALID_VALUE);
  *made = added(graph, CONDITIONAL, count), (*made)->choice = *p;
  return set_bodies(&(*made)->choice, 0), p->bodies = (*made)->choice.bodies, result(0);
}
// cudaGraphNodeParams: a type, and from byte 16 the parameters of its kind.
int cudaGraphAddNode(node_t **made, graph_t *graph, node_t *const *before, const void *edges, size_t count, uint64_t *p) {
  switch (*(int *)p) {
    case KERNEL: return cudaGraphAddKernelNode(made, graph, before, count, (void *)(p + 2));
    case COPY: return cudaGraphAddMemcpyNode(made, graph, before, count, (void *)(p + 4));
    case FILL: return cudaGraphAddMemsetNode(made, graph, before, count, (void *)(p + 2));
    case CALL: return cudaGraphAddHostNode(made, graph, before, count, (void *)(p + 2));
    case CHILD: return cudaGraphAddChildGraphNode(made, graph, before, count, (void *)p[2]);
    case EMPTY: return cudaGraphAddEmptyNode(made, graph, before, count);
    case ALLOCATION: return cudaGraphAddMemAllocNode(made, graph, before, count, p + 2);
    case RELEASE: return cudaGraphAddMemFreeNode(made, graph, before, count, (void *)p[2]);
    case CONDITIONAL: return add_choice(made, graph, before, count, (void *)(p + 2));
  }
  return result(NOT_SUPPORTED);
}
// Only such dependencies as the order of the nodes has.
int cudaGraphAddDependencies(graph_t *graph, node_t *const *from, node_t *const *to, const void *edges, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (from[i]->number >= to[i]->number) return result(NOT_SUPPORTED);
    ++to[i]->before;
  }
  return result(0);
}

static int listed(const graph_t *graph, node_t **nodes, size_t *count, int all) {
  size_t found = 0;
  for (int i = 0; i < graph->count; ++i)
    if (all || !graph->nodes[i]->before) {
      if (nodes && found < *count) nodes[found] = graph->nodes[i];
      ++found;
    }
  return *count = found, result(0);
}
int cudaGraphGetNodes(const graph_t *graph, node_t **nodes, size_t *count) { return listed(graph, nodes, count, 1); }
int cudaGraphGetRootNodes(const graph_t *graph, node_t **nodes, size_t *count) { return listed(graph, nodes, count, 0); }
int cudaGraphNodeGetType(const node_t *node, int *type) { return *type = node->kind, result(0); }
int cudaGraphNodeFindInClone(node_t **found, const node_t *node, const graph_t *graph) { return *found = graph->nodes[node->number], result(0); }

int cudaGraphKernelNodeGetParams(const node_t *node, kernel_params_t *p) { return *p = node->kernel, result(0); }
int cudaGraphKernelNodeSetParams(node_t *node, const kernel_params_t *p) { return result(set_kernel(node, p)); }
int cudaGraphMemcpyNodeSetParams(node_t *node, const copy_params_t *p) { return node->copy = *p, result(0); }
int cudaGraphMemsetNodeSetParams(node_t *node, const fill_params_t *p) { return node->fill = *p, result(0); }
int cudaGraphHostNodeSetParams(node_t *node, const call_params_t *p) { return node->call = *p, result(0); }
int cudaGraphExecKernelNodeSetParams(graph_t *exec, const node_t *node, const kernel_params_t *p) {
  return cudaGraphKernelNodeSetParams(exec->nodes[node->number], p);
}
int cudaGraphExecMemcpyNodeSetParams(graph_t *exec, const node_t *node, const copy_params_t *p) {
  return cudaGraphMemcpyNodeSetParams(exec->nodes[node->number], p);
}
int cudaGraphMemcpyNodeSetParams1D(node_t *node, char *to, char *from, size_t bytes, int kind) {
  copy_params_t p = {0, 0, 0, 0, {from, bytes, bytes, 1}, 0, 0, 0, 0, {to, bytes, bytes, 1}, bytes, 1, 1, kind};
  return cudaGraphMemcpyNodeSetParams(node, &p);
}
int cudaGraphMemcpyNodeSetParamsToSymbol(node_t *node, const void *host, char *from, size_t bytes, size_t offset, int kind) {
  char *where;
  int error = symbol(host, offset, bytes, &where);
  return error ? result(error) : cudaGraphMemcpyNodeSetParams1D(node, where, from, bytes, kind);
}
int cudaGraphMemcpyNodeSetParamsFromSymbol(node_t *node, char *to, const void *host, size_t bytes, size_t offset, int kind) {
  char *where;
  int error = symbol(host, offset, bytes, &where);
  return error ? result(error) : cudaGraphMemcpyNodeSetParams1D(node, to, where, bytes, kind);
}
int cudaGraphExecMemcpyNodeSetParams1D(graph_t *exec, const node_t *node, char *to, char *from, size_t bytes, int kind) {
  return cudaGraphMemcpyNodeSetParams1D(exec->nodes[node->number], to, from, bytes, kind);
}
int cudaGraphExecMemcpyNodeSetParamsToSymbol(graph_t *exec, const node_t *node, const void *host, char *from, size_t bytes, size_t offset, int kind) {
  return cudaGraphMemcpyNodeSetParamsToSymbol(exec->nodes[node->number], host, from, bytes, offset, kind);
}
int cudaGraphExecMemcpyNodeSetParamsFromSymbol(graph_t *exec, const node_t *node, char *to, const void *host, size_t bytes, size_t offset, int kind) {
  return cudaGraphMemcpyNodeSetParamsFromSymbol(exec->nodes[node->number], to, host, bytes, offset, kind);
}
int cudaGraphExecMemsetNodeSetParams(graph_t *exec, const node_t *node, const fill_params_t *p) {
  return cudaGraphMemsetNodeSetParams(exec->nodes[node->number], p);
}
int cudaGraphExecHostNodeSetParams(graph_t *exec, const node_t *node, const call_params_t *p) {
  return cudaGraphHostNodeSetParams(exec->nodes[node->number], p);
}
// The nodes' kinds must be the same. cudaGraphExecUpdateResultInfo: a result, and two nodes.
int cudaGraphExecUpdate(graph_t *exec, const graph_t *graph, int *info) {
  int same = exec->count == graph->count;
  for (int i = 0; same && i < graph->count; ++i) same = exec->nodes[i]->kind == graph->nodes[i]->kind;
  if (info) memset(info, 0, 24), *info = same ? 0 : 2;
  if (!same) return result(UPDATE_FAILED);
  graph_t *made = copied(graph), old = *exec;
  *exec = *made, *made = old, discarded(made);
  return result(0);
}
