// Thrust: sorts of keys, of pairs and by a comparison; merges; binary searches.
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/merge.h>
#include <thrust/sort.h>

#include "check.h"

struct LastDigit {
  __host__ __device__ bool operator()(int a, int b) const { return a % 10 < b % 10; }
};

template <class T>
std::vector<T> back(const thrust::device_vector<T> &from) {
  std::vector<T> made(from.size());
  thrust::copy(from.begin(), from.end(), made.begin());
  return made;
}

int main() {
  const int n = 3000;
  std::vector<int> keys = some<int>(n, -5000, 5000), places(n);
  std::iota(places.begin(), places.end(), 0);
  std::vector<int> sorted = keys, order = places;
  std::sort(sorted.begin(), sorted.end());
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });

  thrust::device_vector<int> k(keys), p(places);
  thrust::sort(k.begin(), k.end());
  check("sort", back(k) == sorted);
  k = keys;
  thrust::stable_sort_by_key(k.begin(), k.end(), p.begin());
  check("stable_sort_by_key", back(k) == sorted && back(p) == order);

  std::vector<int> whole = some<int>(n, 0, 999, 2), by_digit = whole;
  std::stable_sort(by_digit.begin(), by_digit.end(), [](int a, int b) { return a % 10 < b % 10; });
  thrust::device_vector<int> w(whole);
  thrust::stable_sort(w.begin(), w.end(), LastDigit());
  check("stable_sort by a comparison", back(w) == by_digit);

  std::vector<float> reals = some<float>(500, -100, 100, 3);
  thrust::device_vector<float> r(reals);
  std::sort(reals.begin(), reals.end(), std::greater<float>());
  thrust::sort(r.begin(), r.end(), thrust::greater<float>());
  check("sort of floats, descending", back(r) == reals);

  std::vector<int> other = some<int>(700, -5000, 5000, 4), merged(n + 700);
  std::sort(other.begin(), other.end());
  std::merge(sorted.begin(), sorted.end(), other.begin(), other.end(), merged.begin());
  thrust::device_vector<int> s(sorted), o(other), m(n + 700);
  thrust::merge(s.begin(), s.end(), o.begin(), o.end(), m.begin());
  check("merge", back(m) == merged);

  std::vector<int> below(700);
  for (int i = 0; i < 700; ++i)
    below[i] = std::lower_bound(sorted.begin(), sorted.end(), other[i]) - sorted.begin();
  thrust::device_vector<int> b(700);
  thrust::lower_bound(s.begin(), s.end(), o.begin(), o.end(), b.begin());
  check("lower_bound", back(b) == below);
  return wrong;
}
