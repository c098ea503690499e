// Values of a host, and whether a device's are the same.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

inline int wrong = 0;

inline void check(const char *what, bool right) {
  printf("%s %s\n", what, right ? "right" : "wrong");
  wrong += !right;
}

template <class T>
std::vector<T> some(int n, int least, int most, unsigned seed = 1) {
  std::mt19937 draw(seed);
  std::vector<T> made(n);
  for (T &each : made) each = T(least + int(draw() % unsigned(most - least + 1)));
  return made;
}
