#include "common/kept_queue.h"

#include <algorithm>
#include <deque>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ringmaster {
namespace {

TEST(KeptQueueTest, HoldsWhatADequeHolds) {
  std::mt19937 random(17);
  KeptQueue<int> queue;
  std::deque<int> expected;
  for (int i = 0; i < 20'000; ++i) {
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
      case 3:
        queue.Add([i](int& place) { place = i; });
        expected.push_back(i);
        break;
      case 4:
      case 5:
      case 6:
        if (expected.empty()) break;
        queue.PopFront();
        expected.pop_front();
        break;
      default:
        if (i % 50 == 0) {
          const size_t left = random() % 9;
          queue.Shorten(left);
          if (expected.size() > left) expected.resize(left);
        } else if (i % 7 == 0) {
          const auto matches = [&](int value) { return value % 7 == i % 7; };
          EXPECT_EQ(queue.Any(matches), std::ranges::any_of(expected, matches));
          queue.EraseIf(matches);
          std::erase_if(expected, matches);
        }
    }
    ASSERT_EQ(queue.size(), expected.size());
    ASSERT_EQ(queue.empty(), expected.empty());
    if (expected.empty()) continue;
    ASSERT_EQ(queue.front(), expected.front());
    const size_t any = random() % expected.size();
    ASSERT_EQ(queue[any], expected[any]);
  }
}

TEST(KeptQueueTest, UsesThePlacesThatItHas) {
  KeptQueue<std::string> queue;
  queue.Add([](std::string& text) { text.assign(100, 'a'); });
  const char* const place = queue.front().data();
  queue.PopFront();
  queue.Add([](std::string& text) { text = "b"; });
  EXPECT_EQ(queue.front(), "b");
  EXPECT_EQ(queue.front().data(), place);
}

TEST(KeptQueueTest, AddsNothingWhereThatFails) {
  KeptQueue<int> queue;
  EXPECT_THROW(queue.Add([](int&) { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_TRUE(queue.empty());
}

// With two in it at any time it goes round and round among a few places.
TEST(KeptQueueTest, DoesNotGrowWhileItMovesOn) {
  KeptQueue<std::string> queue;
  std::vector<const std::string*> places;
  for (int i = 0; i < 1000; ++i) {
    queue.Add([i](std::string& text) { text = std::to_string(i); });
    if (i < 2) continue;
    EXPECT_EQ(queue.front(), std::to_string(i - 2));
    queue.PopFront();
    if (std::ranges::find(places, &queue.front()) == places.end()) places.push_back(&queue.front());
  }
  EXPECT_LT(places.size(), 16U);
}

}  // namespace
}  // namespace ringmaster
