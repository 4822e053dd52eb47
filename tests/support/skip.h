// Tests that need what not every machine has.
#ifndef RINGMASTER_TESTS_SUPPORT_SKIP_H_
#define RINGMASTER_TESTS_SUPPORT_SKIP_H_

#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>

namespace ringmaster::testing {

// For a fixture's SetUp, or as a test's last call before it returns: leaves the test out where what
// it needs is not there. In CI it fails, for that is to leave none out.
inline void SkipUnless(bool is_possible, const char* needs) {
  if (is_possible) return;
  if (const char* ci = std::getenv("CI"); ci != nullptr && std::string_view(ci) == "true")
    FAIL() << needs;
  GTEST_SKIP() << needs;
}

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_SUPPORT_SKIP_H_
