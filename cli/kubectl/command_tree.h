// The commands of `kubectl ringmaster` with their flags: what parses a command line, and what
// completes one.
#ifndef RINGMASTER_CLI_KUBECTL_COMMAND_TREE_H_
#define RINGMASTER_CLI_KUBECTL_COMMAND_TREE_H_

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/kubectl/change_command.h"
#include "cli/kubectl/connection.h"
#include "cli/kubectl/get_command.h"
#include "cli/kubectl/logs_command.h"
#include "cli/kubectl/submit_command.h"

namespace ringmaster::cli::kubectl {

// Parsing fills in the options and `chosen`, which runs the command and returns its exit code.
class CommandTree {
 public:
  CommandTree();
  CommandTree(const CommandTree&) = delete;

  CLI::App& app() { return app_; }
  const std::function<int()>& chosen() const { return chosen_; }

 private:
  CLI::App* Add(const std::string& name, const std::string& help, std::function<int()> run);
  void AddJob(CLI::App* command, std::string& job, bool required = true);
  void AddSubmit();
  void AddGet();
  void AddLogs();
  void AddEvents();
  void AddChanges();

  CLI::App app_;
  ClusterFlags flags_;
  SubmitOptions submit_;
  GetOptions get_;
  LogsOptions logs_;
  EventsOptions events_;
  DeleteOptions delete_;
  std::string job_;  // of suspend, resume and scale
  int workers_ = 0;  // of scale
  std::function<int()> chosen_;
};

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_COMMAND_TREE_H_
