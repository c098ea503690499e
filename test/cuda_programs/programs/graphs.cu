// CUDA graphs, captured and built, replayed and changed.
#include <cstdio>
__global__ void add(int *to, const int *from, int k) { to[threadIdx.x] += from ? from[threadIdx.x] * k : k; }
static void called(void *data) { ++*(int *)data; }
#define DO(x) do { cudaError_t e = (x); if (e) printf("%s: %s\n", #x, cudaGetErrorName(e)); } while (0)

int main() {
  int *a, *b, *pinned, h[32], calls = 0;
  DO(cudaMalloc(&a, sizeof h)); DO(cudaMalloc(&b, sizeof h)); DO(cudaMallocHost(&pinned, sizeof h));
  cudaStream_t s, t; cudaEvent_t fork, join; cudaGraph_t graph, clone; cudaGraphExec_t exec, other;
  DO(cudaStreamCreate(&s)); DO(cudaStreamCreate(&t)); DO(cudaEventCreate(&fork)); DO(cudaEventCreate(&join));
  for (int i = 0; i < 32; ++i) pinned[i] = i;

  // Captured: nothing is executed. The second stream takes part, because it waits for an event of the first.
  cudaStreamCaptureStatus status;
  DO(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  DO(cudaMemcpyAsync(a, pinned, sizeof h, cudaMemcpyHostToDevice, s));
  DO(cudaEventRecord(fork, s)); DO(cudaStreamWaitEvent(t, fork));
  DO(cudaMemsetAsync(b, 0, sizeof h, t));
  add<<<1, 32, 0, t>>>(b, nullptr, 5);
  DO(cudaEventRecord(join, t)); DO(cudaStreamWaitEvent(s, join));
  add<<<1, 32, 0, s>>>(a, b, 2);
  DO(cudaMemcpyAsync(pinned, a, sizeof h, cudaMemcpyDeviceToHost, s));
  DO(cudaLaunchHostFunc(s, called, &calls));
  DO(cudaStreamIsCapturing(t, &status));
  printf("capturing %d, calls %d, pinned %d; ", status, calls, pinned[3]);
  DO(cudaStreamSynchronize(s));  // not while it is captured
  DO(cudaStreamEndCapture(s, &graph));
  size_t count = 0;
  DO(cudaGraphGetNodes(graph, nullptr, &count));
  DO(cudaGraphInstantiate(&exec, graph, 0));
  DO(cudaGraphLaunch(exec, s)); DO(cudaGraphLaunch(exec, s)); DO(cudaStreamSynchronize(s));
  printf("%zu nodes, calls %d, pinned %d\n", count, calls, pinned[3]);

  // Built: the arguments are those of the moment at which the node was added.
  cudaGraph_t built; cudaGraphNode_t clear, kernel, call;
  DO(cudaGraphCreate(&built, 0));
  cudaMemsetParams zero = {a, sizeof h, 0x10000, 4, 32, 1};
  DO(cudaGraphAddMemsetNode(&clear, built, nullptr, 0, &zero));
  const int *none = nullptr; int k = 7; void *arguments[] = {&a, &none, &k};
  cudaKernelNodeParams params = {}; params.func = (void *)add; params.gridDim = dim3(1); params.blockDim = dim3(32); params.kernelParams = arguments;
  DO(cudaGraphAddKernelNode(&kernel, built, &clear, 1, &params));
  cudaHostNodeParams host = {called, &calls};
  DO(cudaGraphAddHostNode(&call, built, &kernel, 1, &host));
  k = 9;
  DO(cudaGraphInstantiate(&other, built, 0));
  DO(cudaGraphLaunch(other, s));
  DO(cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost));
  printf("%x ", h[31]);
  DO(cudaGraphExecKernelNodeSetParams(other, kernel, &params));
  DO(cudaGraphLaunch(other, s));
  DO(cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost));
  printf("%x ", h[31]);
  DO(cudaGraphClone(&clone, built));
  cudaGraphExecUpdateResultInfo info;
  DO(cudaGraphExecUpdate(other, clone, &info));
  DO(cudaGraphLaunch(other, s));
  DO(cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost));
  DO(cudaGraphGetRootNodes(built, nullptr, &count));
  printf("%x, calls %d, %zu root, update %d\n", h[31], calls, count, info.result);

  // Memory that a graph allocates and the program frees, twice at one address; the graph frees another.
  DO(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  int *inside, *outside;
  DO(cudaMallocAsync(&inside, sizeof h, s)); DO(cudaMallocAsync(&outside, sizeof h, s));
  DO(cudaMemsetAsync(inside, 0, sizeof h, s)); DO(cudaMemsetAsync(outside, 0, sizeof h, s));
  add<<<1, 32, 0, s>>>(inside, nullptr, 3);
  add<<<1, 32, 0, s>>>(outside, inside, 4);
  DO(cudaFreeAsync(inside, s));
  DO(cudaStreamEndCapture(s, &clone));
  cudaGraphExec_t memory;
  DO(cudaGraphInstantiate(&memory, clone, 0));
  DO(cudaGraphDestroy(clone));
  for (int i = 0; i < 2; ++i) {
    DO(cudaGraphLaunch(memory, s));
    DO(cudaMemcpy(h, outside, sizeof h, cudaMemcpyDeviceToHost));
    DO(i ? cudaFree(outside) : cudaFreeAsync(outside, s));
    printf("%d ", h[7]);
  }
  DO(cudaFree(outside));

  // A graph captured within another, while a third stream works; an end of its capture, nodes of other kinds, memory
  // that is still there.
  cudaStream_t u; cudaGraph_t others; cudaGraphExec_t outer; cudaGraphNode_t empty[3];
  DO(cudaStreamCreate(&u));
  DO(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  DO(cudaMemsetAsync(b, 1, sizeof h, u));
  DO(cudaGraphLaunch(other, s));
  DO(cudaStreamEndCapture(u, &clone));
  DO(cudaStreamEndCapture(s, &clone));
  DO(cudaMemcpy(h, b, sizeof h, cudaMemcpyDeviceToHost));
  DO(cudaMemset(a, 0, sizeof h));
  DO(cudaGraphInstantiate(&outer, clone, 0)); DO(cudaGraphLaunch(outer, s));
  printf("%x ", h[0]);
  DO(cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost));
  printf("%x, calls %d\n", h[0], calls);
  DO(cudaGraphCreate(&others, 0));
  for (int i = 0; i < 3; ++i) DO(cudaGraphAddEmptyNode(&empty[i], others, nullptr, 0));
  DO(cudaGraphExecUpdate(other, others, &info));
  DO(cudaGraphLaunch(memory, s)); DO(cudaGraphLaunch(memory, s)); DO(cudaFree(outside));

  // What is no capture of this stream, and a graph of other nodes.
  DO(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
  DO(cudaStreamEndCapture(s, &clone));
  DO(cudaGraphExecUpdate(other, graph, &info));
  DO(cudaGraphDestroy(graph)); DO(cudaGraphDestroy(built)); DO(cudaGraphExecDestroy(exec)); DO(cudaGraphExecDestroy(other));
#ifdef WRONG
  // Memory of a graph is undefined at each launch.
  DO(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  DO(cudaMallocAsync(&b, sizeof h, s));
  add<<<1, 32, 0, s>>>(a, b, 1);
  DO(cudaFreeAsync(b, s));
  DO(cudaStreamEndCapture(s, &graph));
  DO(cudaGraphInstantiate(&exec, graph, 0));
  DO(cudaGraphLaunch(exec, s));
#endif
}
