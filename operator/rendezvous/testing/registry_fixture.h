// A registry over recorded streams, a table of pods and a clock that is turned by hand: what the
// registry's tests share.
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_TESTING_REGISTRY_FIXTURE_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_TESTING_REGISTRY_FIXTURE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "operator/rendezvous/registry.h"
#include "operator/rendezvous/testing/worker_client.h"
#include "ringmaster/rendezvous/v1/rendezvous.pb.h"

namespace ringmaster::rendezvous::testing {

inline const kube::ObjectKey kJob{"default", "digits"};

class RecordingDownstream : public Downstream {
 public:
  void Send(const v1::ToWorker& message) override {
    if (message.has_heartbeat()) {
      ++heartbeats;
    } else {
      messages.push_back(message);
    }
  }
  void End(const absl::Status& status) override {
    if (!end) end = status;
  }

  // "accepted", "refused", "round 3", "drain" ...
  std::vector<std::string> Story() const {
    std::vector<std::string> story;
    for (const v1::ToWorker& message : messages) {
      if (message.has_accepted()) story.push_back("accepted");
      if (message.has_refused()) story.push_back("refused");
      if (!message.has_command()) continue;
      const v1::Command& command = message.command();
      if (command.has_round()) story.push_back("round " + std::to_string(command.round().number()));
      if (command.has_drain()) story.push_back("drain");
      if (command.has_stop()) story.push_back("stop");
      if (command.has_checkpoint_now()) story.push_back("checkpoint");
    }
    return story;
  }

  std::vector<v1::ToWorker> messages;
  int heartbeats = 0;
  std::optional<absl::Status> end;
};

class TableVerifier : public PodVerifier {
 public:
  absl::Status Verify(const WorkerIdentity& worker, bool) override {
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    const auto found = verdicts.find(worker.pod_uid);
    return found == verdicts.end() ? absl::NotFoundError("no pod " + worker.pod) : found->second;
  }
  std::map<std::string, absl::Status> verdicts;  // by pod UID
  std::function<void()> meanwhile;               // happens during the next verification
};

struct Line {
  std::shared_ptr<RecordingDownstream> down = std::make_shared<RecordingDownstream>();
  Registry::StreamId id = 0;
};

class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest() {
    for (const char* uid : {"u0", "u1", "u2"}) verifier_.verdicts[uid] = absl::OkStatus();
  }

  Line Open() {
    Line line;
    line.id = registry_.Opened(line.down, "10.0.0.9");
    return line;
  }

  Line Join(const std::string& uid, std::int64_t round = 0, bool leaving = false) {
    Line line = Open();
    v1::FromWorker message;
    *message.mutable_hello() = MakeHello("pod-" + uid, uid, round);
    message.mutable_hello()->set_leaving(leaving);
    registry_.Received(line.id, message);
    return line;
  }

  // u0 with a program that is not ours.
  Line JoinForeign(const std::string& address, bool leaving) {
    Line line = Open();
    v1::FromWorker message;
    *message.mutable_hello() = MakeHello("pod-u0", "u0");
    message.mutable_hello()->set_native(false);
    message.mutable_hello()->set_address(address);
    message.mutable_hello()->set_leaving(leaving);
    registry_.Received(line.id, message);
    return line;
  }

  void Say(const Line& line, const v1::Event& event) {
    v1::FromWorker message;
    *message.mutable_event() = event;
    registry_.Received(line.id, message);
  }

  void Beat(const Line& line, std::int64_t round = 0) {
    v1::FromWorker message;
    message.mutable_heartbeat()->set_round(round);
    registry_.Received(line.id, message);
  }

  // Time as the service lives it: a tick at least every heartbeat.
  void Pass(Duration time) {
    for (Duration passed{0}; passed < time; passed += std::chrono::milliseconds(250)) {
      clock_.Advance(std::chrono::milliseconds(250));
      registry_.Tick();
    }
  }

  reconcile::WorkerView View(const std::string& uid) {
    for (const reconcile::WorkerView& view : registry_.SnapshotFor(kJob).workers) {
      if (view.pod_uid == uid) return view;
    }
    ADD_FAILURE() << "no worker " << uid;
    return {};
  }

  static reconcile::Announcement Round(std::int64_t number, const std::vector<std::string>& uids) {
    reconcile::Announcement round{.round = number, .shards = 4};
    for (const std::string& uid : uids) {
      const int rank = static_cast<int>(round.members.size());
      round.members.push_back({rank, "pod-" + uid, uid, "10.0.0.1:7473"});
    }
    return round;
  }

  FakeClock clock_;
  TableVerifier verifier_;
  int changes_ = 0;
  Registry registry_{{Timing{}, "secret"}, clock_, verifier_, [this](const kube::ObjectKey& job) {
                       EXPECT_EQ(job, kJob);
                       ++changes_;
                     }};
};

}  // namespace ringmaster::rendezvous::testing

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_TESTING_REGISTRY_FIXTURE_H_
