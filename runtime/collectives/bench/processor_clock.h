// How fast the processor computes while something is measured. A laptop that is hot and a virtual
// machine whose host saves power clock their processors lower, for a tenth of a second or for
// minutes, to half or to a tenth; what was measured then is not to be compared with the rest.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_BENCH_PROCESSOR_CLOCK_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_BENCH_PROCESSOR_CLOCK_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace ringmaster::collectives::bench {

// Nanoseconds of one step of a chain in which each number is computed from the one before: a few
// cycles of the processor that this thread runs on, whatever its caches hold. The least of several
// tries, as others may take the processor for a while; 0.1 ms in all.
inline double StepNanoseconds() {
  constexpr int kTries = 4;
  constexpr int kSteps = 20000;
  double least = std::numeric_limits<double>::infinity();
  uint64_t number = 1;
  for (int i = 0; i < kTries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    // The multiplier of Knuth's generator MMIX.
    for (int step = 0; step < kSteps; ++step) number = number * 6364136223846793005U + 1;
    asm volatile("" : : "r"(number));
    const std::chrono::duration<double, std::nano> passed =
        std::chrono::steady_clock::now() - start;
    least = std::min(least, passed.count() / kSteps);
  }
  return least;
}

// How many times as long a step may take as at the fastest for two times to be comparable.
inline constexpr double kSameClock = 1.25;

}  // namespace ringmaster::collectives::bench

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_BENCH_PROCESSOR_CLOCK_H_
