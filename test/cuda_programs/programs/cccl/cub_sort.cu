// CUB: a sort of pairs by the whole device, in programmatic launches.
#include <cub/cub.cuh>

#include "check.h"

template <class T>
T *sent(const std::vector<T> &from) {
  T *to;
  cudaMalloc(&to, from.size() * sizeof(T));
  cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice);
  return to;
}

template <class T>
std::vector<T> back(const T *from, int n) {
  std::vector<T> made(n);
  cudaMemcpy(made.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost);
  return made;
}

int main() {
  const int n = 6000;
  std::vector<unsigned> keys = some<unsigned>(n, 0, 1 << 30);
  std::vector<int> places(n);
  std::iota(places.begin(), places.end(), 0);
  std::vector<int> order = places;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  std::vector<unsigned> sorted = keys;
  std::sort(sorted.begin(), sorted.end());

  unsigned *k = sent(keys), *k2 = sent(keys);
  int *p = sent(places), *p2 = sent(places);
  void *room;
  size_t bytes = 0;
  cub::DeviceRadixSort::SortPairs(nullptr, bytes, k, k2, p, p2, n);
  cudaMalloc(&room, bytes);
  cub::DeviceRadixSort::SortPairs(room, bytes, k, k2, p, p2, n);
  check("DeviceRadixSort::SortPairs", back(k2, n) == sorted && back(p2, n) == order);
  return wrong;
}
