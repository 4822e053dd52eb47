// The fixture of tests that damage manifests at random. It prints its seed; the environment
// variable RINGMASTER_TEST_SEED repeats a run.
#ifndef RINGMASTER_TESTS_SUPPORT_RANDOM_TEST_H_
#define RINGMASTER_TESTS_SUPPORT_RANDOM_TEST_H_

#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

namespace ringmaster::testing {

class RandomTest : public ::testing::Test {
 protected:
  RandomTest() {
    const char* fixed = std::getenv("RINGMASTER_TEST_SEED");
    const unsigned seed = fixed != nullptr ? static_cast<unsigned>(std::strtoul(fixed, nullptr, 10))
                                           : std::random_device()();
    std::cout << "seed " << seed << "\n";
    random_.seed(seed);
  }

  // Uniform in [0, bound); `bound` is at least 1.
  std::size_t Below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }

 private:
  std::mt19937 random_;
};

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_SUPPORT_RANDOM_TEST_H_
