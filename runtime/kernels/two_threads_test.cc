// All tests of this program run kernels on two threads, so that what is divided among threads is
// divided.
#include <gtest/gtest.h>

#include "runtime/device/threads.h"

namespace ringmaster::kernels {
namespace {

class TwoThreads final : public ::testing::Environment {
 public:
  void SetUp() override {
    ASSERT_TRUE(device::SetThreadCount(2).ok());
    device::AdoptThreadCount();
  }
};

const ::testing::Environment* const kTwoThreads =
    ::testing::AddGlobalTestEnvironment(new TwoThreads);

}  // namespace
}  // namespace ringmaster::kernels
