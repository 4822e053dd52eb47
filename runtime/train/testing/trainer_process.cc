#include "runtime/train/testing/trainer_process.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/env.h"
#include "common/exec_arguments.h"
#include "common/status.h"
#include "runtime/train/testing/listen_at.h"

namespace ringmaster::train::testing {
namespace {

constexpr std::chrono::seconds kDeadline{60};

std::string Binary() {
  const std::string folder = env::GetString("RINGMASTER_BIN_DIR");
  return fmt::format("{}/ringmaster-train", folder.empty() ? "build/dev/bin" : folder);
}

}  // namespace

TrainerProcess::TrainerProcess(std::map<std::string, std::string> environment)
    : folder_(TemporaryFolder::Make().value()) {
  const std::filesystem::path channel = folder_.path() / "channel";
  listener_ = ListenAt(channel);
  environment["RINGMASTER_CHANNEL"] = channel.string();
  Spawn(environment);
}

TrainerProcess::~TrainerProcess() {
  if (Runs()) {
    Signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void TrainerProcess::Spawn(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const std::vector<char*> envp = ExecArguments(variables);
  std::string binary = Binary();
  char* argv[] = {binary.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_.path() / "log").c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  const int error = ::posix_spawn(&pid_, binary.c_str(), &actions, nullptr, argv, envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(binary + ": " + std::strerror(error));
}

void TrainerProcess::Accept() {
  pollfd waiting{.fd = listener_.get(), .events = POLLIN, .revents = 0};
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(kDeadline).count();
  if (::poll(&waiting, 1, static_cast<int>(limit)) != 1) {
    throw std::runtime_error("the trainer did not dial\n" + Log());
  }
  socket_ = std::make_unique<FramedSocket>(
      UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
}

rendezvous::v1::Event TrainerProcess::WaitFor(rendezvous::v1::Event::KindCase kind) {
  if (socket_ == nullptr) Accept();
  while (true) {
    const auto frame = socket_->ReceiveWithin(kDeadline);
    rendezvous::v1::FromTrainer message;
    if (!frame.ok() || !message.ParseFromString(*frame)) {
      throw std::runtime_error("no such event: " + Message(frame.status()) + "\n" + Log());
    }
    if (message.event().kind_case() == kind) return message.event();
  }
}

void TrainerProcess::Send(const rendezvous::v1::ToTrainer& message) {
  if (socket_ == nullptr) Accept();
  const absl::Status sent = socket_->Send(message.SerializeAsString());
  if (!sent.ok()) throw std::runtime_error(Message(sent) + "\n" + Log());
}

void TrainerProcess::HangUp() {
  if (socket_ == nullptr) Accept();
  socket_->Shutdown();
}

void TrainerProcess::Signal(int signal) const {
  ::kill(pid_, signal);
}

bool TrainerProcess::Runs() {
  if (exit_code_ >= 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return false;
}

int TrainerProcess::WaitForExit() {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (Runs()) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("the trainer did not exit\n" + Log());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return exit_code_;
}

std::string TrainerProcess::Log() const {
  return ReadFile(folder_.path() / "log").value_or("");
}

}  // namespace ringmaster::train::testing
