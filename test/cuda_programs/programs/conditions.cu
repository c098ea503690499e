// Conditional nodes of graphs, and variables by address, by copies, in captures and in nodes.
#include <cstdio>

__device__ int counter = 3, words[4] = {1, 2, 3, 4};
__constant__ int factor = 1;

__global__ void down(cudaGraphConditionalHandle more) { cudaGraphSetConditional(more, --counter > 0); }
__global__ void choose(cudaGraphConditionalHandle which, const int *p) { cudaGraphSetConditional(which, *p); }
__global__ void race(cudaGraphConditionalHandle which) { cudaGraphSetConditional(which, threadIdx.x); }
__global__ void add(int *p, int n) { *p += n * factor; }

static cudaGraphNode_t kernel(cudaGraph_t graph, int *p, int n) {
  void *arguments[] = {&p, &n};
  cudaKernelNodeParams params = {(void *)add, 1, 1, 0, arguments};
  cudaGraphNode_t node;
  return cudaGraphAddKernelNode(&node, graph, 0, 0, &params), node;
}
static cudaGraph_t *bodies(cudaGraph_t graph, cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                           unsigned size, cudaError_t expected = cudaSuccess) {
  cudaGraphNodeParams params = {cudaGraphNodeTypeConditional};
  params.conditional.handle = handle, params.conditional.type = type, params.conditional.size = size;
  cudaGraphNode_t node;
  if (cudaGraphAddNode(&node, graph, 0, 0, 0, &params) != expected) puts("another status");
  return params.conditional.phGraph_out;
}

int main() {
  int *p, *q, *where, value = 0;
  size_t size;
  cudaMallocManaged(&p, 4), cudaMallocManaged(&q, 4);
  cudaGetSymbolSize(&size, words), cudaGetSymbolAddress((void **)&where, words);
  add<<<1, 1>>>(where + 2, 10);
  cudaMemcpyFromSymbol(&value, words, 4, 8);
  printf("%d bytes, %d, %d, %s\n", (int)size, value, where[3], cudaGetErrorName(cudaGetSymbolSize(&size, &value)));
  printf("%s\n", cudaGetErrorName(cudaMemcpyToSymbol(words, p, 8, 12)));

  // A while loop within an if, whose condition has a value before each launch; else: another.
  cudaGraph_t graph, copy;
  cudaGraphExec_t exec;
  cudaGraphConditionalHandle some, more, which;
  cudaGraphCreate(&graph, 0);
  cudaGraphConditionalHandleCreate(&some, graph, 1, cudaGraphCondAssignDefault);
  cudaGraphConditionalHandleCreate(&more, graph, 1, cudaGraphCondAssignDefault);
  cudaGraph_t *halves = bodies(graph, some, cudaGraphCondTypeIf, 2);
  cudaGraph_t loop = *bodies(halves[0], more, cudaGraphCondTypeWhile, 1);
  cudaStream_t s;
  cudaStreamCreate(&s);
  cudaStreamBeginCaptureToGraph(s, loop, 0, 0, 0, cudaStreamCaptureModeGlobal);
  down<<<1, 1, 0, s>>>(more);
  add<<<1, 1, 0, s>>>(p, 1);
  cudaStreamEndCapture(s, 0);
  kernel(halves[1], p, 100);
  void *arguments[] = {&some, &q};
  cudaKernelNodeParams params = {(void *)choose, 1, 1, 0, arguments};
  cudaGraphNode_t node;
  cudaGraphAddKernelNode(&node, halves[0], 0, 0, &params);  // does not reach the next launch
  cudaGraphClone(&copy, graph), cudaGraphInstantiate(&exec, copy, 0);
  *p = *q = 0;
  for (int i = 0; i < 2; ++i) cudaGraphLaunch(exec, s), printf("%d ", *p);
  value = 5, cudaMemcpyToSymbol(counter, &value, 4), cudaGraphLaunch(exec, s);
  printf("%d\n", *p);

  // A condition without an initial value keeps its own; 7 has no body.
  cudaGraphCreate(&graph, 0);
  cudaGraphConditionalHandleCreate(&which, graph);
  cudaGraph_t *cases = bodies(graph, which, cudaGraphCondTypeSwitch, 3);
  for (int i = 0; i < 3; ++i) kernel(cases[i], p, 1000 << i);
  arguments[0] = &which, cudaGraphAddKernelNode(&node, graph, 0, 0, &params);
  cudaGraphInstantiate(&exec, graph, 0), kernel(cases[0], p, 5);  // not in the instance
  for (int i : {2, 1, 7, 0, 0}) *q = i, cudaGraphLaunch(exec, s), printf("%d ", *p);
  bodies(graph, which, cudaGraphCondTypeWhile, 2, cudaErrorInvalidValue);
  puts("");

  // Copies to and from variables: captured, in nodes, and changed in an instance.
  cudaGraphNode_t to, from;
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  *q = 9, cudaMemcpyToSymbolAsync(factor, q, 4, 0, cudaMemcpyDefault, s);
  cudaMemcpyFromSymbolAsync(p, words, 4, 8, cudaMemcpyDefault, s);
  cudaStreamEndCapture(s, &graph);
  cudaMemcpyFromSymbol(&value, factor, 4);
  kernel(graph, p, 2);
  cudaGraphAddMemcpyNodeToSymbol(&to, graph, 0, 0, words, p, 4, 4, cudaMemcpyDefault);
  cudaGraphAddMemcpyNodeFromSymbol(&from, graph, 0, 0, q, words, 4, 4, cudaMemcpyDefault);
  cudaGraphInstantiate(&exec, graph, 0), cudaGraphLaunch(exec, s);
  printf("%d %d %d ", value, *p, *q);
  cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, to, words, p, 4, 0, cudaMemcpyDefault);
  cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, from, q, words, 4, 12, cudaMemcpyDefault);
  cudaGraphLaunch(exec, s);
  printf("%d %d %d\n", where[0], where[1], *q);
#ifdef WRONG
  race<<<1, 2>>>(more);
#endif
}
