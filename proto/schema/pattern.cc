#include "proto/schema/pattern.h"

#include <re2/re2.h>

namespace ringmaster::schema {

bool MatchesWhole(std::string_view text, const std::string& pattern) {
  const RE2 compiled(pattern, RE2::Quiet);
  return compiled.ok() && RE2::FullMatch({text.data(), text.size()}, compiled);
}

std::string PatternError(const std::string& pattern) {
  return RE2(pattern, RE2::Quiet).error();
}

}  // namespace ringmaster::schema
