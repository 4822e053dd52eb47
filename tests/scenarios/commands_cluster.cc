// What users, schedulers and kubelets do.
#include <fmt/format.h>

#include "common/file.h"
#include "common/status.h"
#include "operator/api/parse.h"
#include "operator/kube/object.h"
#include "tests/scenarios/render.h"
#include "tests/scenarios/runner.h"

namespace ringmaster::scenarios {
namespace {

using kube::Json;

// apply <file in tests/scenarios> [<path>=<value> ...]
// apply
//   <manifest>
// Parses the manifest as `ringmaster run` does, `path=value` as its --set does, and creates the
// job, which later commands speak of.
absl::Status Apply(Runner& runner, const Command& command, std::string*) {
  std::string text = command.input;
  std::string name = "job.yaml";
  if (!command.words.empty()) {
    name = command.words[0];
    RM_ASSIGN_OR_RETURN(text, ReadFile("tests/scenarios/" + name));
  }
  api::ParseOptions options;
  for (const auto& [path, value] : command.options) options.set.push_back(path + "=" + value);
  RM_ASSIGN_OR_RETURN(api::ParsedJob parsed, api::ParseManifest(text, name, options));
  if (kube::Namespace(parsed.object).empty()) parsed.object["metadata"]["namespace"] = "default";
  RM_ASSIGN_OR_RETURN(const Json stored,
                      runner.world().api().Create(kube::kTrainingJob, parsed.object));
  runner.set_job(kube::KeyOf(stored));
  return absl::OkStatus();
}

// {"a.b": "1"} as {"a": {"b": 1}}; what is no JSON is text.
Json MergePatchOf(const std::map<std::string, std::string>& assignments) {
  Json patch = Json::object();
  for (const auto& [path, text] : assignments) {
    Json* field = &patch;
    std::string_view rest = path;
    while (!rest.empty()) {
      const std::size_t dot = rest.find('.');
      field = &(*field)[std::string(rest.substr(0, dot))];
      rest = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
    }
    *field = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (field->is_discarded()) *field = text;
  }
  return patch;
}

// create <file in tests/scenarios> [unchecked] [<path>=<JSON> ...]
// As `kubectl create` on a cluster does: only the CRD's own rules are checked. `unchecked`: on one
// whose CRD is of another version, and has let this in.
absl::Status Create(Runner& runner, const Command& command, std::string*) {
  RM_ASSIGN_OR_RETURN(const std::string text, ReadFile("tests/scenarios/" + command.words.at(0)));
  RM_ASSIGN_OR_RETURN(api::ParsedJob parsed, api::ParseManifest(text, command.words[0]));
  Json& job = parsed.object;
  job["metadata"]["namespace"] = "default";
  kube::MergePatch(job, MergePatchOf(command.options));
  if (command.words.size() > 1 && command.words[1] == "unchecked") {
    RM_RETURN_IF_ERROR(runner.world().CreateUnchecked(job));
  } else {
    RM_RETURN_IF_ERROR(runner.world().api().Create(kube::kTrainingJob, job).status());
  }
  runner.set_job(kube::KeyOf(job));
  return absl::OkStatus();
}

// set <path>=<JSON> ...
// Changes fields of the job, as kubectl patch does: set spec.suspend=true
absl::Status Set(Runner& runner, const Command& command, std::string*) {
  return runner.world()
      .api()
      .Patch(kube::kTrainingJob, runner.job(), MergePatchOf(command.options))
      .status();
}

// delete job | delete service | delete pod <name>
// As a user does: graceful for a pod that runs.
absl::Status Delete(Runner& runner, const Command& command, std::string*) {
  if (command.words.empty()) return absl::InvalidArgumentError("delete what?");
  kube::Client& api = runner.world().api();
  if (command.words[0] == "job") return api.Delete(kube::kTrainingJob, runner.job(), {});
  if (command.words[0] == "service") return api.Delete(kube::kService, runner.job(), {});
  return api.Delete(kube::kPod, runner.PodKey(command.words.at(1)), {});
}

// pod <name|all> <what> [options]: what its kubelet or the scheduler says of it.
//   running
//   succeeded                                       not while its worker waits to be let go
//   failed exit=<code> [reason=OOMKilled] [message="last words"]
//   ended container=<name> exit=<code>              this container; a sidecar runs on
//   evicted reason=<pod reason> [message=...]       Failed as a whole
//   waiting reason=ImagePullBackOff [message=...]
//   unschedulable message=...
//   disrupted reason=EvictionByEvictionAPI          and deleted, as an eviction does
//   gone                                            the object goes, whatever it was
// `all` means every pod that has not ended and is not being deleted; for `gone`, every pod that is.
absl::Status TouchPod(Runner& runner, const kube::ObjectKey& pod, const Command& command) {
  testing::ScriptedKubelet& kubelet = runner.kubelet();
  const std::string& what = command.words[1];
  const std::string reason = command.Option("reason");
  const std::string message = command.Option("message");
  if (what == "running") return kubelet.Run(pod);
  if (what == "succeeded") {
    if (runner.world().workers().WaitsToLeave(pod))
      return absl::FailedPreconditionError(pod.name + " waits until it is let go");
    return kubelet.End(pod, 0, "", message);
  }
  if (what == "failed") {
    return kubelet.End(pod, static_cast<int>(command.Number("exit", 1)), reason, message);
  }
  if (what == "ended") {
    return kubelet.EndBesideSidecar(pod, command.Option("container"),
                                    static_cast<int>(command.Number("exit", 0)));
  }
  if (what == "evicted") return kubelet.Fail(pod, reason, message);
  if (what == "waiting") return kubelet.Wait(pod, reason, message);
  if (what == "unschedulable") return kubelet.Unschedulable(pod, message);
  if (what == "disrupted") return kubelet.Disrupt(pod, reason, message);
  if (what == "gone") return kubelet.Remove(pod);
  return absl::InvalidArgumentError(fmt::format("pods do not become {}", what));
}

bool Meant(const Json& pod, const std::string& what) {
  if (what == "gone") return kube::IsDeleting(pod);
  const std::string phase = kube::FindString(pod, {"status", "phase"});
  return !kube::IsDeleting(pod) && phase != "Succeeded" && phase != "Failed";
}

absl::Status Pod(Runner& runner, const Command& command, std::string*) {
  if (command.words.size() != 2) return absl::InvalidArgumentError("pod <name|all> <what>");
  if (command.words[0] != "all") return TouchPod(runner, runner.PodKey(command.words[0]), command);
  for (const kube::ObjectPtr& pod : runner.Pods()) {
    if (!Meant(*pod, command.words[1])) continue;
    RM_RETURN_IF_ERROR(TouchPod(runner, kube::KeyOf(*pod), command));
  }
  return absl::OkStatus();
}

// stranger <pod name>
// Somebody else has a pod of this name.
absl::Status Stranger(Runner& runner, const Command& command, std::string*) {
  Json pod = kube::NewObject(kube::kPod, runner.PodKey(command.words.at(0)));
  pod["spec"]["containers"] = Json::array({{{"name", "other"}, {"image", "other"}}});
  return runner.world().api().Create(kube::kPod, pod).status();
}

absl::Status ShowGroups(Runner& runner, std::string* output) {
  for (const reconcile::GangApi& api : reconcile::kGangApis) {
    RM_ASSIGN_OR_RETURN(const kube::ObjectList list,
                        runner.world().api().List(api.type, runner.job().ns, {}));
    for (const kube::ObjectPtr& group : list.items) {
      *output += fmt::format("{} {}\n", kube::Name(*group), (*group)["spec"].dump());
    }
  }
  return absl::OkStatus();
}

// show status | pods | services | groups | job | pod <name>
absl::Status Show(Runner& runner, const Command& command, std::string* output) {
  const std::string what = command.words.empty() ? "status" : command.words[0];
  if (what == "pods") {
    *output += RenderPods(runner.Pods());
    return absl::OkStatus();
  }
  if (what == "groups") return ShowGroups(runner, output);
  if (what == "services") {
    RM_ASSIGN_OR_RETURN(const kube::ObjectList list,
                        runner.world().api().List(kube::kService, runner.job().ns, {}));
    for (const kube::ObjectPtr& service : list.items) {
      *output += fmt::format("{} {}\n", kube::Name(*service), (*service)["spec"].dump());
    }
    if (list.items.empty()) *output += "no services\n";
    return absl::OkStatus();
  }
  if (what == "pod") {
    RM_ASSIGN_OR_RETURN(const Json pod,
                        runner.world().api().Get(kube::kPod, runner.PodKey(command.words.at(1))));
    *output += Json{{"labels", pod["metadata"]["labels"]},
                    {"ownerReferences", pod["metadata"]["ownerReferences"]},
                    {"spec", pod["spec"]}}
                   .dump(1) +
               "\n";
    return absl::OkStatus();
  }
  RM_ASSIGN_OR_RETURN(const Json job, runner.Job());
  *output += what == "job" ? job["spec"].dump(1) + "\n" : RenderStatus(job);
  return absl::OkStatus();
}

}  // namespace

void AddClusterCommands(Handlers& handlers) {
  handlers["apply"] = Apply;
  handlers["create"] = Create;
  handlers["set"] = Set;
  handlers["delete"] = Delete;
  handlers["pod"] = Pod;
  handlers["stranger"] = Stranger;
  handlers["show"] = Show;
}

}  // namespace ringmaster::scenarios
