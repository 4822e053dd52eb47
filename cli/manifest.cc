#include "cli/manifest.h"

#include <fmt/format.h>

#include "common/file.h"
#include "operator/api/yaml.h"

namespace ringmaster::cli {

absl::StatusOr<api::ParsedJob> ReadManifest(const std::string& path,
                                            const std::vector<std::string>& set) {
  const auto text = ReadFile(path, api::kMaxYamlBytes);
  if (absl::IsResourceExhausted(text.status())) {
    return absl::InvalidArgumentError(
        fmt::format("{}: larger than {} bytes; a manifest is not", path, api::kMaxYamlBytes));
  }
  if (!text.ok()) return text.status();
  return api::ParseManifest(*text, path, {.set = set});
}

}  // namespace ringmaster::cli
