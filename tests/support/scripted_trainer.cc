// A trainer that trains nothing: it speaks the launcher's channel as the native trainer does, and
// does what RINGMASTER_TRAINER_CONFIG says, a list of words:
//
//   finish   on a round, reports Finished and ends with 0
//   fail     on a round, writes 30 lines and ends with 66
//   deaf     does nothing on Drain and Stop
//   spawn    leaves a child of its own, in a session of its own, that would live for ever
//
// Each thing that it is told it writes to standard output as a line.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "common/framed_socket.h"
#include "ringmaster/rendezvous/v1/channel.pb.h"

namespace {

using ringmaster::FramedSocket;
using ringmaster::rendezvous::v1::Command;
using ringmaster::rendezvous::v1::Event;
using ringmaster::rendezvous::v1::FromTrainer;
using ringmaster::rendezvous::v1::ToTrainer;

class ScriptedTrainer {
 public:
  ScriptedTrainer(FramedSocket& channel, std::string script)
      : channel_(channel), script_(std::move(script)) {}

  int Run() {
    Event ready;
    ready.mutable_ready()->set_address("127.0.0.2:7473");
    ready.mutable_ready()->set_model("scripted");
    Tell(ready);
    if (Does("spawn")) StartDaemon();
    Say("ready " + std::to_string(::getpid()));
    while (true) {
      const auto frame = channel_.Receive();
      if (!frame.ok()) return 75;
      ToTrainer message;
      if (!message.ParseFromString(*frame)) return 70;
      if (message.has_drain() && Drain()) return 0;
      if (const int code = Take(message.command()); code >= 0) return code;
    }
  }

 private:
  bool Does(const char* word) const { return script_.find(word) != std::string::npos; }

  static void Say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  void Tell(const Event& event) {
    FromTrainer message;
    *message.mutable_event() = event;
    if (!channel_.Send(message.SerializeAsString()).ok()) std::exit(75);
  }

  static void StartDaemon() {
    if (::fork() != 0) return;
    ::setsid();
    while (true) ::pause();
  }

  // The exit code, or -1 to go on.
  int Take(const Command& command) {
    if (command.has_round()) return TakeRound(command);
    if (command.has_checkpoint_now()) Say("checkpoint");
    if (command.has_drain() && Drain()) return 0;
    if (command.has_stop()) {
      Say("stop");
      if (!Does("deaf")) return 75;
    }
    return -1;
  }

  int TakeRound(const Command& command) {
    round_ = command.round().number();
    Say("round " + std::to_string(round_) + " rank " + std::to_string(command.round().rank()));
    Event progress;
    progress.set_round(round_);
    progress.mutable_progress()->set_step(10 * round_);
    Tell(progress);
    if (Does("finish")) return Finish();
    if (!Does("fail")) return -1;
    for (int line = 1; line <= 30; ++line) Say("line " + std::to_string(line));
    return 66;
  }

  int Finish() {
    Event finished;
    finished.set_round(round_);
    finished.mutable_finished()->set_weights_sha256("5f1c");
    Tell(finished);
    return 0;
  }

  bool Drain() {
    Say("drain");
    if (Does("deaf")) return false;
    Event drained;
    drained.set_round(round_);
    drained.mutable_drained()->set_step(10 * round_);
    Tell(drained);
    return true;
  }

  FramedSocket& channel_;
  const std::string script_;
  long round_ = 0;
};

}  // namespace

int main() {
  const char* path = std::getenv("RINGMASTER_CHANNEL");
  const char* script = std::getenv("RINGMASTER_TRAINER_CONFIG");
  if (path == nullptr) return 64;
  const auto channel = FramedSocket::Dial(path, std::chrono::seconds(10));
  if (!channel.ok()) return 75;
  return ScriptedTrainer(**channel, script == nullptr ? "" : script).Run();
}
