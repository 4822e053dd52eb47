#include "operator/api/diagnostic.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster::api {

int SourceMap::LineOf(std::string_view path) const {
  while (true) {
    const auto found = lines_.find(path);
    if (found != lines_.end()) return found->second;
    if (path.empty()) return 0;
    const std::size_t cut = path.find_last_of(".[");
    path = cut == std::string_view::npos ? "" : path.substr(0, cut);
  }
}

std::string FormatDiagnostics(std::string_view filename, std::vector<Diagnostic> diagnostics) {
  std::stable_sort(diagnostics.begin(), diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return a.line < b.line; });
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : diagnostics) {
    std::string text(filename);
    if (diagnostic.line > 0) text += fmt::format(":{}", diagnostic.line);
    if (!diagnostic.path.empty()) text += fmt::format(": {}", diagnostic.path);
    lines.push_back(fmt::format("{}: {}", text, diagnostic.message));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace ringmaster::api
