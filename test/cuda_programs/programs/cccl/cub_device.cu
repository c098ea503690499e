// CUB: algorithms of the whole device.
#include <cub/cub.cuh>

#include "check.h"

template <class T>
struct Array {
  T *at;
  int n;

  explicit Array(int n) : n(n) { cudaMalloc(&at, n * sizeof(T)); }
  explicit Array(const std::vector<T> &from) : Array(int(from.size())) {
    cudaMemcpy(at, from.data(), n * sizeof(T), cudaMemcpyHostToDevice);
  }
  ~Array() { cudaFree(at); }
  std::vector<T> back(int many = -1) const {
    std::vector<T> made(many < 0 ? n : many);
    cudaMemcpy(made.data(), at, made.size() * sizeof(T), cudaMemcpyDeviceToHost);
    return made;
  }
};

// CUB's protocol: the first call asks for the size of the workspace.
#define RUN(...)                        \
  do {                                  \
    size_t bytes = 0;                   \
    void *room = nullptr;               \
    __VA_ARGS__;                        \
    cudaMalloc(&room, bytes ? bytes : 1); \
    __VA_ARGS__;                        \
    cudaFree(room);                     \
  } while (0)

struct Even {
  __device__ bool operator()(int x) const { return x % 2 == 0; }
};

int main() {
  const int n = 12000;
  std::vector<int> host = some<int>(n, 0, 255), want(n);
  Array<int> x(host), out(n), one(1);

  RUN(cub::DeviceReduce::Sum(room, bytes, x.at, one.at, n));
  check("DeviceReduce::Sum", one.back()[0] == std::accumulate(host.begin(), host.end(), 0));
  RUN(cub::DeviceReduce::Max(room, bytes, x.at, one.at, n));
  check("DeviceReduce::Max", one.back()[0] == *std::max_element(host.begin(), host.end()));

  RUN(cub::DeviceScan::InclusiveSum(room, bytes, x.at, out.at, n));
  std::partial_sum(host.begin(), host.end(), want.begin());
  check("DeviceScan::InclusiveSum", out.back() == want);
  RUN(cub::DeviceScan::ExclusiveSum(room, bytes, x.at, out.at, n));
  want.insert(want.begin(), 0);
  want.pop_back();
  check("DeviceScan::ExclusiveSum", out.back() == want);

  RUN(cub::DeviceSelect::If(room, bytes, x.at, out.at, one.at, n, Even()));
  std::vector<int> even;
  std::copy_if(host.begin(), host.end(), std::back_inserter(even), [](int x) { return x % 2 == 0; });
  check("DeviceSelect::If", out.back(one.back()[0]) == even);

  Array<int> bins(16);
  RUN(cub::DeviceHistogram::HistogramEven(room, bytes, x.at, bins.at, 17, 0, 256, n));
  std::vector<int> counted(16);
  for (int each : host) counted[each / 16]++;
  check("DeviceHistogram::HistogramEven", bins.back() == counted);

  std::vector<int> rows{0, 1000, 1000, 4321, n}, sums;
  for (int i = 0; i < 4; ++i)
    sums.push_back(std::accumulate(host.begin() + rows[i], host.begin() + rows[i + 1], 0));
  Array<int> ends(rows), of(4);
  RUN(cub::DeviceSegmentedReduce::Sum(room, bytes, x.at, of.at, 4, ends.at, ends.at + 1));
  check("DeviceSegmentedReduce::Sum", of.back() == sums);

  std::vector<int> runs(n), values, lengths;
  for (int i = 0; i < n; ++i) runs[i] = int(std::sqrt(double(i)));
  for (int each : runs) {
    if (values.empty() || values.back() != each) values.push_back(each), lengths.push_back(0);
    lengths.back()++;
  }
  Array<int> r(runs), v(n), l(n);
  RUN(cub::DeviceRunLengthEncode::Encode(room, bytes, r.at, v.at, l.at, one.at, n));
  const int many = one.back()[0];
  check("DeviceRunLengthEncode::Encode", v.back(many) == values && l.back(many) == lengths);
  return wrong;
}
