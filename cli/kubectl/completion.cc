#include "cli/kubectl/completion.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/kubectl/command_tree.h"
#include "cli/kubectl/plugin.h"
#include "operator/kube/object.h"

namespace ringmaster::cli::kubectl {
namespace {

constexpr int kPatience = 3;  // seconds: somebody waits at a prompt
constexpr kube::ResourceType kNamespaces{"", "v1", "namespaces", "Namespace", false};

std::vector<std::string> BeginningWith(const std::string& typed, std::vector<std::string> words) {
  std::erase_if(words, [&](const std::string& word) { return !word.starts_with(typed); });
  std::ranges::sort(words);
  return words;
}

bool TakesValue(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

const CLI::Option* FindOption(const CLI::App& app, const CLI::App* command,
                              const std::string& word) {
  for (const CLI::App* owner : {command, &app}) {
    if (owner == nullptr || !word.starts_with('-')) continue;
    for (const CLI::Option* option : owner->get_options()) {
      if (option->check_name(word)) return option;
    }
  }
  return nullptr;
}

std::vector<std::string> Flags(const CLI::App& app, const CLI::App* command) {
  std::vector<std::string> flags;
  for (const CLI::App* owner : {command, &app}) {
    if (owner == nullptr) continue;
    for (const CLI::Option* option : owner->get_options()) {
      for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
  }
  return flags;
}

Completion OfValue(const CLI::Option& option) {
  const std::set<std::string> names(option.get_lnames().begin(), option.get_lnames().end());
  if (names.contains("filename") || names.contains("kubeconfig")) return {Wanted::kFile, {}};
  if (names.contains("namespace")) return {Wanted::kNamespace, {}};
  return {};
}

std::vector<std::string> NamesIn(Cluster& cluster, const kube::ResourceType& type) {
  std::vector<std::string> names;
  const auto list = cluster.client->List(type, cluster.ns, {.limit = 500});
  if (!list.ok()) return names;
  for (const kube::ObjectPtr& object : list->items) names.push_back(kube::Name(*object));
  return names;
}

std::vector<std::string> AskCluster(const std::vector<std::string>& words, Wanted wanted) {
  ClusterFlags flags;
  flags.source.kubeconfig = ValueOf(words, {"--kubeconfig"});
  flags.source.context = ValueOf(words, {"--context"});
  flags.ns = ValueOf(words, {"-n", "--namespace"});
  flags.request_timeout = kPatience;
  auto cluster = Connect(flags);
  if (!cluster.ok()) return {};
  return NamesIn(*cluster, wanted == Wanted::kJob ? kube::kTrainingJob : kNamespaces);
}

}  // namespace

Completion CompletionOf(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string typed = words.empty() ? "" : words.back();
  const CLI::App* command = nullptr;
  const CLI::Option* waiting = nullptr;  // the flag whose value comes next
  bool has_job = false;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (waiting != nullptr) {
      waiting = nullptr;
    } else if (word.starts_with('-')) {
      const CLI::Option* option = FindOption(app, command, word);
      if (option != nullptr && TakesValue(*option)) waiting = option;
    } else if (command == nullptr) {
      command = FindCommand(app, word);
      if (command == nullptr) return {};
    } else {
      has_job = true;
    }
  }
  if (waiting != nullptr) return OfValue(*waiting);
  if (typed.starts_with('-')) return {Wanted::kWords, BeginningWith(typed, Flags(app, command))};
  if (command == nullptr) {
    std::vector<std::string> names;
    for (const CLI::App* each : app.get_subcommands(nullptr)) names.push_back(each->get_name());
    return {Wanted::kWords, BeginningWith(typed, std::move(names))};
  }
  if (command->get_option_no_throw("job") == nullptr || has_job) return {};
  return {Wanted::kJob, {}};
}

std::string ValueOf(const std::vector<std::string>& words, const std::vector<std::string>& flags) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    for (const std::string& flag : flags) {
      if (words[i] == flag && i + 2 < words.size()) return words[i + 1];
      if (words[i].starts_with(flag + "=")) return words[i].substr(flag.size() + 1);
    }
  }
  return "";
}

int Complete(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + std::max(argc, 1));
  CommandTree tree;
  Completion completion = CompletionOf(tree.app(), words);
  if (completion.wanted == Wanted::kJob || completion.wanted == Wanted::kNamespace) {
    completion.words =
        BeginningWith(words.empty() ? "" : words.back(), AskCluster(words, completion.wanted));
  }
  for (const std::string& word : completion.words) fmt::print("{}\n", word);
  fmt::print(":{}\n", completion.wanted == Wanted::kFile ? 0 : 4);
  return 0;
}

}  // namespace ringmaster::cli::kubectl
