#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "operator/node/pod_plan.h"

namespace ringmaster::node {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};

constexpr std::array kSuffixes = {
    Suffix{"", 1},        Suffix{"m", 1e-3},    Suffix{"k", 1e3},     Suffix{"M", 1e6},
    Suffix{"G", 1e9},     Suffix{"T", 1e12},    Suffix{"P", 1e15},    Suffix{"Ki", 1024.0},
    Suffix{"Mi", 0x1p20}, Suffix{"Gi", 0x1p30}, Suffix{"Ti", 0x1p40}, Suffix{"Pi", 0x1p50},
};

}  // namespace

absl::StatusOr<double> ParseQuantity(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end != text.c_str() && std::isfinite(number) && number >= 0) {
    for (const Suffix& suffix : kSuffixes) {
      if (suffix.text == end) return number * suffix.factor;
    }
  }
  return absl::InvalidArgumentError(
      fmt::format("'{}' is not a quantity such as 500m, 2 or 64Mi", text));
}

}  // namespace ringmaster::node
