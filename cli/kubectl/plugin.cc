#include "cli/kubectl/plugin.h"

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/kubectl/command_tree.h"
#include "common/contract.h"

namespace ringmaster::cli::kubectl {

int Main(int argc, char** argv, const char* version) {
  CommandTree tree;
  tree.app().set_version_flag("--version", version);
  if (const auto code = ParseCommandLine(tree.app(), argc, argv)) return *code;
  if (tree.chosen()) return tree.chosen()();
  fmt::print("{}", tree.app().help());
  return contract::kExitUsage;
}

}  // namespace ringmaster::cli::kubectl
