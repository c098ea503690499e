// Thrust: reductions, scans, and both by key.
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/transform_reduce.h>

#include "check.h"

struct Square {
  __host__ __device__ long long operator()(int x) const { return (long long)x * x; }
};

template <class T>
std::vector<T> back(const thrust::device_vector<T> &from) {
  std::vector<T> made(from.size());
  thrust::copy(from.begin(), from.end(), made.begin());
  return made;
}

int main() {
  const int n = 9000;
  std::vector<int> host = some<int>(n, -50, 50), other = some<int>(n, -50, 50, 2);
  thrust::device_vector<int> x(host), y(other), out(n);

  check("reduce", thrust::reduce(x.begin(), x.end()) == std::accumulate(host.begin(), host.end(), 0));
  long long squares = 0;
  for (int each : host) squares += (long long)each * each;
  check("transform_reduce", thrust::transform_reduce(x.begin(), x.end(), Square(), 0LL,
                                                     thrust::plus<long long>()) == squares);
  check("inner_product", thrust::inner_product(x.begin(), x.end(), y.begin(), 0) ==
                             std::inner_product(host.begin(), host.end(), other.begin(), 0));
  check("max_element", thrust::max_element(x.begin(), x.end()) - x.begin() ==
                           std::max_element(host.begin(), host.end()) - host.begin());
  check("reduce of a counting iterator",
        thrust::reduce(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(n)) ==
            n * (n - 1) / 2);

  std::vector<int> want(n);
  std::partial_sum(host.begin(), host.end(), want.begin());
  thrust::inclusive_scan(x.begin(), x.end(), out.begin());
  check("inclusive_scan", back(out) == want);
  want.insert(want.begin(), 0);
  want.pop_back();
  thrust::exclusive_scan(x.begin(), x.end(), x.begin());
  check("exclusive_scan in place", back(x) == want);
  x = host;

  std::vector<int> keys(n), sums, first;
  for (int i = 0; i < n; ++i) keys[i] = i / 37;
  for (int i = 0; i < n; ++i) {
    if (i % 37 == 0) sums.push_back(0), first.push_back(keys[i]);
    sums.back() += host[i];
  }
  thrust::device_vector<int> k(keys), of(n);
  auto ends = thrust::reduce_by_key(k.begin(), k.end(), x.begin(), of.begin(), out.begin());
  of.resize(ends.first - of.begin());
  thrust::device_vector<int> found(out.begin(), ends.second);
  check("reduce_by_key", back(of) == first && back(found) == sums);

  for (int i = 0; i < n; ++i) want[i] = i % 37 ? want[i - 1] + host[i] : host[i];
  thrust::inclusive_scan_by_key(k.begin(), k.end(), x.begin(), out.begin());
  check("inclusive_scan_by_key", back(out) == want);
  return wrong;
}
