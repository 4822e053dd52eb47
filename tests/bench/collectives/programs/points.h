// What the benchmark's programs have in common: which sizes they measure, how often, and what they
// print. Every contender is timed by the same loop, and looks how fast the processor is meanwhile.
#ifndef RINGMASTER_TESTS_BENCH_COLLECTIVES_PROGRAMS_POINTS_H_
#define RINGMASTER_TESTS_BENCH_COLLECTIVES_PROGRAMS_POINTS_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "runtime/collectives/bench/processor_clock.h"

namespace ringmaster::bench {

struct Point {
  size_t bytes = 0;
  int iterations = 0;
};

// "4:1000,1024:500": bytes and calls. Ends the program on anything else.
inline std::vector<Point> ParsePoints(const std::string& text) {
  std::vector<Point> points;
  for (size_t at = 0; at < text.size();) {
    Point point;
    int used = 0;
    if (std::sscanf(text.c_str() + at, "%zu:%d%n", &point.bytes, &point.iterations, &used) != 2) {
      std::fprintf(stderr, "'%s' is not BYTES:CALLS,...\n", text.c_str());
      std::exit(64);
    }
    points.push_back(point);
    at += static_cast<size_t>(used) + 1;
  }
  return points;
}

// Small integers, so that every order of addition gives the same.
inline float ValueOf(int rank, size_t i) {
  return static_cast<float>((i * 7 + static_cast<size_t>(rank) * 3) % 8);
}

inline void Fill(int rank, std::vector<float>& values) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = ValueOf(rank, i);
}

inline size_t CountWrong(int ranks, const std::vector<float>& values) {
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    float want = 0;
    for (int rank = 0; rank < ranks; ++rank) want += ValueOf(rank, i);
    wrong += values[i] != want ? 1 : 0;
  }
  return wrong;
}

struct Timed {
  double seconds = 0;  // of one call
  double step_ns = 0;  // StepNanoseconds before or after all calls, whichever is more
};

// Times calls, after a tenth as many that are not counted. `together` is a barrier.
inline Timed TimeOf(const Point& point, const std::function<void()>& together,
                    const std::function<void()>& call) {
  using collectives::bench::StepNanoseconds;
  for (int i = 0; i <= point.iterations / 10; ++i) call();
  const double before = StepNanoseconds();
  together();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < point.iterations; ++i) call();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  together();  // another rank may need this one's processor for its last call
  return {passed.count() / point.iterations, std::max(before, StepNanoseconds())};
}

// One line for each size. `seconds` is the mean over the ranks, `wrong` their sum; `step_ns` may be
// one rank's.
inline void Print(const Point& point, double seconds, double wrong, double step_ns) {
  std::printf("{\"size\":%zu,\"time_us\":%.3f,\"wrong\":%.0f,\"step_ns\":%.4f}\n", point.bytes,
              seconds * 1e6, wrong, step_ns);
  std::fflush(stdout);
}

}  // namespace ringmaster::bench

#endif  // RINGMASTER_TESTS_BENCH_COLLECTIVES_PROGRAMS_POINTS_H_
