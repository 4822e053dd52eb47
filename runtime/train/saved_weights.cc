#include "runtime/train/saved_weights.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "common/status.h"

namespace ringmaster::train {
namespace {

using checkpoint::CheckpointId;

std::string StepsOf(const std::vector<CheckpointId>& ids) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(ids.size(), kShown); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ids[i].step);
  return ids.size() > kShown ? text + ", ..." : text;
}

}  // namespace

SavedWeights ParseSavedWeights(const std::string& text) {
  const size_t at = text.rfind('@');
  std::error_code missing;
  if (at == std::string::npos || std::filesystem::exists(text, missing)) return {.path = text};
  int64_t step = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + at + 1, end, step);
  if (error != std::errc() || last != end || step < 0) return {.path = text};
  return {.path = text.substr(0, at), .step = step};
}

absl::StatusOr<std::optional<CheckpointId>> Find(const SavedWeights& saved) {
  const std::filesystem::path& path = saved.path;
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found) {
    return absl::NotFoundError(path.string() + ": there is no such file or directory");
  }
  if (kind == std::filesystem::file_type::regular) {
    if (!saved.step) return std::nullopt;
    return absl::InvalidArgumentError(path.string() +
                                      ": is a file, which has no steps; leave the step out");
  }
  RM_ASSIGN_OR_RETURN(const std::vector<CheckpointId> whole, checkpoint::WholeCheckpoints(path));
  if (whole.empty()) return absl::NotFoundError(path.string() + ": holds no whole checkpoint");
  if (!saved.step) return whole.front();
  const auto found = std::find_if(whole.begin(), whole.end(),
                                  [&](const CheckpointId& id) { return id.step == *saved.step; });
  if (found != whole.end()) return *found;
  return absl::NotFoundError(fmt::format("{}: holds no whole checkpoint of step {}; it has {}",
                                         path.string(), *saved.step, StepsOf(whole)));
}

absl::StatusOr<checkpoint::Checkpoint> Load(const std::filesystem::path& path,
                                            const std::optional<CheckpointId>& found) {
  return found ? checkpoint::Load(path, *found) : checkpoint::LoadFile(path);
}

}  // namespace ringmaster::train
