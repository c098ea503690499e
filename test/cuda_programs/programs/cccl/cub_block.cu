// CUB: collectives of a block and of a warp.
#include <cub/cub.cuh>

#include "check.h"

constexpr int THREADS = 128, ITEMS = 4, N = THREADS * ITEMS;

__global__ void collectives(const int *in, int *sums, int *sorted, int *parts, int *bins, int *least) {
  using Load = cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
  using Store = cub::BlockStore<int, THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  using Scan = cub::BlockScan<int, THREADS, cub::BLOCK_SCAN_RAKING>;
  using Sort = cub::BlockRadixSort<int, THREADS, ITEMS>;
  using Count = cub::BlockHistogram<int, THREADS, ITEMS, 16, cub::BLOCK_HISTO_ATOMIC>;
  using Sum = cub::WarpReduce<int>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
    typename Sort::TempStorage sort;
    typename Count::TempStorage count;
    typename Sum::TempStorage sum[THREADS / 32];
  } room;
  __shared__ int counted[16];
  int x[ITEMS], y[ITEMS];
  Load(room.load).Load(in, x);
  __syncthreads();
  Scan(room.scan).InclusiveSum(x, y);
  __syncthreads();
  Store(room.store).Store(sums, y);
  __syncthreads();
  for (int i = 0; i < ITEMS; ++i) y[i] = x[i];
  Sort(room.sort).Sort(y);
  __syncthreads();
  Store(room.store).Store(sorted, y);
  __syncthreads();
  const int warp = threadIdx.x / 32;
  int total = Sum(room.sum[warp]).Sum(x[0]);
  if (threadIdx.x % 32 == 0) parts[warp] = total;
  __syncthreads();
  for (int i = 0; i < ITEMS; ++i) y[i] = x[i] & 15;
  Count(room.count).Histogram(y, counted);
  __syncthreads();
  if (threadIdx.x < 16) bins[threadIdx.x] = counted[threadIdx.x];
  using Least = cub::BlockReduce<int, THREADS, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  __shared__ typename Least::TempStorage other;
  int found = Least(other).Reduce(x, [](int a, int b) { return a < b ? a : b; });
  if (threadIdx.x == 0) *least = found;
}

int main() {
  std::vector<int> host = some<int>(N, 0, 9999), want(N);
  int *in, *out;
  cudaMalloc(&in, N * 4);
  cudaMalloc(&out, (2 * N + 32) * 4);
  cudaMemcpy(in, host.data(), N * 4, cudaMemcpyHostToDevice);
  collectives<<<1, THREADS>>>(in, out, out + N, out + 2 * N, out + 2 * N + 4, out + 2 * N + 20);
  std::vector<int> got(2 * N + 21);
  cudaMemcpy(got.data(), out, got.size() * 4, cudaMemcpyDeviceToHost);

  std::partial_sum(host.begin(), host.end(), want.begin());
  check("BlockLoad, BlockScan, BlockStore", std::equal(want.begin(), want.end(), got.begin()));
  want = host;
  std::sort(want.begin(), want.end());
  check("BlockRadixSort", std::equal(want.begin(), want.end(), got.begin() + N));
  std::vector<int> parts(4), bins(16);
  for (int i = 0; i < N; ++i) parts[i / 128] += i % ITEMS ? 0 : host[i], bins[host[i] & 15]++;
  check("WarpReduce", std::equal(parts.begin(), parts.end(), got.begin() + 2 * N));
  check("BlockHistogram", std::equal(bins.begin(), bins.end(), got.begin() + 2 * N + 4));
  check("BlockReduce", got.back() == want[0]);
  return wrong;
}
