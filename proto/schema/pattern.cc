#include "proto/schema/pattern.h"

#include <map>
#include <memory>
#include <mutex>

#include <re2/re2.h>

namespace ringmaster::schema {
namespace {

// Compiled once in the life of the process: that takes far longer than a match.
const RE2& Compiled(const std::string& pattern) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const RE2>> known;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const RE2>& compiled = known[pattern];
  if (compiled == nullptr) compiled = std::make_unique<const RE2>(pattern, RE2::Quiet);
  return *compiled;
}

}  // namespace

bool MatchesWhole(std::string_view text, const std::string& pattern) {
  const RE2& compiled = Compiled(pattern);
  return compiled.ok() && RE2::FullMatch({text.data(), text.size()}, compiled);
}

std::string PatternError(const std::string& pattern) {
  return RE2(pattern, RE2::Quiet).error();
}

}  // namespace ringmaster::schema
