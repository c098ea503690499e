// Thrust: what keeps, removes, moves and compares elements.
#include <thrust/adjacent_difference.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/find.h>
#include <thrust/gather.h>
#include <thrust/partition.h>
#include <thrust/reverse.h>
#include <thrust/scatter.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include "check.h"

struct Even {
  __host__ __device__ bool operator()(int x) const { return x % 2 == 0; }
};

template <class T>
std::vector<T> back(const thrust::device_vector<T> &from) {
  std::vector<T> made(from.size());
  thrust::copy(from.begin(), from.end(), made.begin());
  return made;
}

int main() {
  const int n = 5000;
  std::vector<int> host = some<int>(n, 0, 99), even, want(n);
  std::copy_if(host.begin(), host.end(), std::back_inserter(even), [](int x) { return x % 2 == 0; });
  thrust::device_vector<int> x(host), out(n);

  out.erase(thrust::copy_if(x.begin(), x.end(), out.begin(), Even()), out.end());
  check("copy_if", back(out) == even);
  check("count_if", thrust::count_if(x.begin(), x.end(), Even()) == long(even.size()));
  check("find", thrust::find(x.begin(), x.end(), host[4321]) - x.begin() ==
                    std::find(host.begin(), host.end(), host[4321]) - host.begin());

  want = host;
  std::stable_partition(want.begin(), want.end(), [](int x) { return x % 2 == 0; });
  thrust::stable_partition(x.begin(), x.end(), Even());
  check("stable_partition", back(x) == want);

  std::vector<int> runs(n);
  for (int i = 0; i < n; ++i) runs[i] = i / 7 % 100;
  x = runs;
  x.erase(thrust::unique(x.begin(), x.end()), x.end());
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  check("unique", back(x) == runs);

  x = host;
  out.resize(n);
  std::vector<int> places(n);
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), std::mt19937(5));
  thrust::device_vector<int> p(places);
  thrust::gather(p.begin(), p.end(), x.begin(), out.begin());
  for (int i = 0; i < n; ++i) want[i] = host[places[i]];
  check("gather", back(out) == want);
  thrust::scatter(out.begin(), out.end(), p.begin(), x.begin());
  check("scatter", back(x) == host);

  std::adjacent_difference(host.begin(), host.end(), want.begin());
  thrust::adjacent_difference(x.begin(), x.end(), out.begin());
  check("adjacent_difference", back(out) == want);
  thrust::transform(x.begin(), x.end(), p.begin(), out.begin(), thrust::multiplies<int>());
  std::transform(host.begin(), host.end(), places.begin(), want.begin(), std::multiplies<int>());
  check("transform of two ranges", back(out) == want);
  thrust::reverse(x.begin(), x.end());
  check("reverse", back(x) == std::vector<int>(host.rbegin(), host.rend()));
  return wrong;
}
