#include "launcher/trainer_channel.h"

#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "common/framed_socket.h"
#include "launcher/event_loop.h"

namespace ringmaster::launcher {
namespace {

using std::chrono::milliseconds;

// No descriptor more than there are now.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const UniqueFd lowest_free(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest_free.get());
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

double ProcessorSecondsOfThisThread() {
  timespec used{};
  EXPECT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

TEST(TrainerChannelTest, WaitsForADescriptorWithoutTakingTheProcessorAndThenHearsTheTrainer) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP()
      << "UndefinedBehaviorSanitizer takes descriptors itself, to look at an object's type";
#endif
  const auto loop = EventLoop::Create().value();
  int events = 0;
  const auto channel = TrainerChannel::Open(*loop, [&](const rendezvous::v1::Event&) {
                         ++events;
                         loop->Quit();
                       }).value();
  const auto trainer = FramedSocket::Dial(channel->path(), std::chrono::seconds(10)).value();
  rendezvous::v1::FromTrainer message;
  message.mutable_event()->mutable_progress()->set_step(1);
  ASSERT_TRUE(trainer->Send(message.SerializeAsString()).ok());

  auto none = std::make_optional<NoMoreDescriptors>();
  const double before = ProcessorSecondsOfThisThread();
  loop->After(milliseconds(500), [&] {
    EXPECT_LT(ProcessorSecondsOfThisThread() - before, 0.1) << "of half a second of waiting";
    EXPECT_EQ(events, 0);
    none.reset();
  });
  loop->After(std::chrono::seconds(30), [&] { loop->Quit(); });
  loop->Run();
  EXPECT_EQ(events, 1);
}

}  // namespace
}  // namespace ringmaster::launcher
