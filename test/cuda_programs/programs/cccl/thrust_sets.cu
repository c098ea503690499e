// Thrust: operations of sorted sets. Threads compare elements past the end of a tile that none of them
// has loaded, and ignore the outcome.
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/set_operations.h>

#include "check.h"

using Set = thrust::device_vector<int>;

std::vector<int> back(const Set &from, Set::iterator end) {
  std::vector<int> made(end - from.begin());
  thrust::copy(from.begin(), from.begin() + made.size(), made.begin());
  return made;
}

int main() {
  std::vector<int> a, b, both;
  for (int i = 0; i < 3000; ++i) a.push_back(2 * i), b.push_back(3 * i);
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  Set x(a), y(b), z(6000);
  auto end = thrust::set_intersection(x.begin(), x.end(), y.begin(), y.end(), z.begin());
  check("set_intersection", back(z, end) == both);
  return wrong;
}
