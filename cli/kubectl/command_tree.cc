#include "cli/kubectl/command_tree.h"

#include <climits>
#include <utility>

#include "cli/command_line.h"
#include "cli/kubectl/output.h"

namespace ringmaster::cli::kubectl {

CommandTree::CommandTree()
    : app_("Train neural networks on the cluster that kubectl talks to.", "kubectl ringmaster") {
  app_.require_subcommand(0, 1);
  app_.fallthrough();  // the flags below may stand behind a command too
  app_.add_option("-n,--namespace", flags_.ns, "The namespace; the context's where absent.");
  app_.add_option("--context", flags_.source.context, "The kubeconfig's context.");
  app_.add_option("--kubeconfig", flags_.source.kubeconfig,
                  "The kubeconfig; $KUBECONFIG or ~/.kube/config where absent.");
  app_.add_option("--request-timeout", flags_.request_timeout,
                  "Seconds that a call to the API server may take.")
      ->check(Whole(1))
      ->capture_default_str();
  AddSubmit();
  AddGet();
  AddLogs();
  AddEvents();
  AddChanges();
}

CLI::App* CommandTree::Add(const std::string& name, const std::string& help,
                           std::function<int()> run) {
  CLI::App* command = app_.add_subcommand(name, help);
  command->callback([this, run = std::move(run)] { chosen_ = run; });
  return command;
}

void CommandTree::AddJob(CLI::App* command, std::string& job, bool required) {
  command->add_option("job", job, required ? "The job." : "One job; all where absent.")
      ->required(required)
      ->transform([](const std::string& text) { return JobName(text); });
}

void CommandTree::AddSubmit() {
  CLI::App* submit = Add("submit", "Check a manifest and bring it into the cluster.",
                         [this] { return Submit(flags_, submit_); });
  submit->add_option("-f,--filename", submit_.manifest, "The manifest, a YAML file; - for stdin.")
      ->required();
  submit->add_option("-w,--workers", submit_.workers, kWorkersHelp)->check(Whole(INT_MIN));
  submit->add_option("--set", submit_.set, kSetHelp)->allow_extra_args(false);
  submit->add_flag("--force-conflicts", submit_.force_conflicts,
                   "Take fields back that others have changed since.");
  submit->add_option("-o,--output", submit_.output, "json, yaml or name of what was stored.")
      ->check(CLI::IsMember({kJson, kYaml, kName}));
}

void CommandTree::AddGet() {
  CLI::App* get =
      Add("get", "List the jobs, or show one in detail.", [this] { return Get(flags_, get_); });
  AddJob(get, get_.job, /*required=*/false);
  get->add_option("-o,--output", get_.output, "json, yaml, name, or wide for more columns.")
      ->check(CLI::IsMember({kJson, kYaml, kName, kWide}));
  get->add_flag("-A,--all-namespaces", get_.all_namespaces, "The jobs of all namespaces.");
}

void CommandTree::AddLogs() {
  CLI::App* logs = Add("logs", "Print what a job's workers have written.",
                       [this] { return Logs(flags_, logs_); });
  AddJob(logs, logs_.job);
  CLI::Option* rank = logs->add_option("-r,--rank", logs_.rank,
                                       "The worker of this rank in the present round alone.")
                          ->check(Whole(0));
  logs->add_option("-w,--worker", logs_.worker, "The worker of this index alone.")
      ->check(Whole(0))
      ->excludes(rank);
  logs->add_flag("-f,--follow", logs_.follow,
                 "Go on as lines come, also with pods that replace others, until the job ends.");
  logs->add_flag("-p,--previous", logs_.previous,
                 "Of the pods before the present ones, or their last words.")
      ->excludes("--follow");
  logs->add_option("--tail", logs_.tail, "Only the last lines of each log.")->check(Whole(0));
  logs->add_flag("--timestamps", logs_.timestamps, "When each line was written.");
  logs->add_option("-c,--container", logs_.container,
                   "Another container than the worker's own, the pod's first.");
}

void CommandTree::AddEvents() {
  CLI::App* events =
      Add("events", "Show what happened to a job.", [this] { return Events(flags_, events_); });
  AddJob(events, events_.job);
  events->add_option("-o,--output", events_.output, "json or yaml.")
      ->check(CLI::IsMember({kJson, kYaml}));
}

void CommandTree::AddChanges() {
  AddJob(Add("suspend", "Have the workers checkpoint and leave.",
             [this] { return Suspend(flags_, job_); }),
         job_);
  AddJob(Add("resume", "Have the workers come back and go on from the last checkpoint.",
             [this] { return Resume(flags_, job_); }),
         job_);
  CLI::App* scale = Add("scale", "Change the number of workers.",
                        [this] { return Scale(flags_, job_, workers_); });
  AddJob(scale, job_);
  scale->add_option("-w,--workers", workers_, "How many workers.")->required()->check(Whole(1));
  CLI::App* remove =
      Add("delete", "Delete a job and its pods.", [this] { return Delete(flags_, delete_); });
  AddJob(remove, delete_.job);
  remove->add_flag("--wait", delete_.wait, "Return when the job and its pods are gone.");
  remove->add_option("--timeout", delete_.timeout, "Seconds to wait.")
      ->check(Whole(1))
      ->capture_default_str();
}

}  // namespace ringmaster::cli::kubectl
