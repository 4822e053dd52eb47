// ringmaster-train as a process, with the test in the place of its launcher.
//
//   TrainerProcess worker({{"RINGMASTER_TRAINER_CONFIG", json}});
//   v1::Event ready = worker.WaitFor(v1::Event::kReady);
//   worker.Send(round);
//   EXPECT_EQ(worker.WaitForExit(), 0);
//
// Used by one thread; waits have a deadline and throw std::runtime_error when it passes.
#ifndef RINGMASTER_RUNTIME_TRAIN_TESTING_TRAINER_PROCESS_H_
#define RINGMASTER_RUNTIME_TRAIN_TESTING_TRAINER_PROCESS_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <sys/types.h>

#include "common/file.h"
#include "common/framed_socket.h"
#include "common/temporary_folder.h"
#include "ringmaster/rendezvous/v1/channel.pb.h"

namespace ringmaster::train::testing {

class TrainerProcess {
 public:
  // Starts it with exactly this environment, and RINGMASTER_CHANNEL. The binary is in
  // RINGMASTER_BIN_DIR.
  explicit TrainerProcess(std::map<std::string, std::string> environment);
  // Kills it if it still runs.
  ~TrainerProcess();
  TrainerProcess(const TrainerProcess&) = delete;
  TrainerProcess& operator=(const TrainerProcess&) = delete;

  // The next event of this kind; others are skipped.
  rendezvous::v1::Event WaitFor(rendezvous::v1::Event::KindCase kind);
  void Send(const rendezvous::v1::ToTrainer& message);
  // Closes the launcher's end.
  void HangUp();
  void Signal(int signal) const;
  bool Runs();
  // The exit code, or 128 + n after signal n.
  int WaitForExit();
  // What it has written to standard error.
  std::string Log() const;

 private:
  void Spawn(const std::map<std::string, std::string>& environment);
  void Accept();

  const TemporaryFolder folder_;
  UniqueFd listener_;
  std::unique_ptr<FramedSocket> socket_;
  pid_t pid_ = -1;
  int exit_code_ = -1;
};

}  // namespace ringmaster::train::testing

#endif  // RINGMASTER_RUNTIME_TRAIN_TESTING_TRAINER_PROCESS_H_
