// What a job's steps allocate where its worker is alone: as its trainer runs them, with its loop
// around each and each one's progress said to the launcher. In allocation_test's program.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <variant>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "common/count_allocations.h"
#include "common/metrics.h"
#include "common/temporary_folder.h"
#include "runtime/train/channel.h"
#include "runtime/train/session.h"
#include "runtime/train/testing/digits_job.h"
#include "runtime/train/testing/listen_at.h"

namespace ringmaster::train {
namespace {

// The launcher's end: reads what the trainer says, and takes no memory for it.
class Reader {
 public:
  explicit Reader(const std::string& path)
      : listener_(testing::ListenAt(path)), thread_([this] { Read(); }) {}
  // Waits until the trainer's end is closed, where it has dialed.
  ~Reader() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  void Read() {
    const UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 4096> buffer;
    while (::read(fd.get(), buffer.data(), buffer.size()) > 0) continue;
  }

  const UniqueFd listener_;
  std::thread thread_;
};

// Between a session and its channel: plays the operator, and looks after each Progress how many
// allocations there were.
class Operator : public EventSink {
 public:
  static constexpr int64_t kSteps = 24;

  Operator(Inbox& inbox, EventSink& channel) : inbox_(inbox), channel_(channel) {}

  void Send(int64_t round, const Event& event) override {
    channel_.Send(round, event);
    if (const auto* ready = std::get_if<Ready>(&event)) {
      inbox_.Push(Round{.number = 1,
                        .members = {{.address = ready->address, .pod_uid = "pod"}},
                        .key = "a key of at least sixteen bytes",
                        .shards = 4});
    }
    if (const auto* durable = std::get_if<ShardDurable>(&event)) {
      inbox_.Push(CheckpointCommitted{
          .checkpoint = {.id = {.step = durable->step, .round = round, .world_size = 1}}});
    }
    const auto* progress = std::get_if<Progress>(&event);
    if (progress != nullptr && progress->step < kSteps)
      after_[static_cast<size_t>(progress->step)] = CountAllocations();
  }

  // Those of a step, from when the progress before it was said until its own was. Throws where
  // either was not.
  int64_t AllocationsOf(size_t step) const {
    return after_[step].value() - after_[step - 1].value();
  }

 private:
  Inbox& inbox_;
  EventSink& channel_;
  std::array<std::optional<int64_t>, kSteps> after_{};
};

TEST(SessionAllocationTest, AStepAfterTheSecondAllocatesNothingWithItsProgressSaidToTheLauncher) {
  testing::DigitsJob job;
  job.config.trainer.steps = Operator::kSteps;  // nearly five epochs
  job.config.trainer.batch.shards = 4;
  job.config.trainer.threads_per_worker = 2;
  job.config.trainer.evaluation.every_epochs = 0;
  const TemporaryFolder folder = TemporaryFolder::Make().value();
  const std::string path = (folder.path() / "channel").string();
  const Reader reader(path);
  Inbox inbox;
  auto channel = Channel::Dial(path, inbox);
  ASSERT_TRUE(channel.ok()) << channel.status();
  Operator events(inbox, **channel);
  metrics::Registry registry;
  const Ending ending = Session(job.config, job.options, inbox, events, registry).Run();
  EXPECT_EQ(ending.exit_code, 0) << ending.message;
  ASSERT_GT(events.AllocationsOf(1), 0) << "what is counted is this program's";
  for (size_t step = 3; step < Operator::kSteps; ++step)
    EXPECT_EQ(events.AllocationsOf(step), 0) << "in step " << step;
}

}  // namespace
}  // namespace ringmaster::train
