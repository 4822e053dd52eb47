#include "common/text.h"

namespace ringmaster {

std::string WithCommas(int64_t number) {
  std::string digits = std::to_string(number);
  const int64_t first = number < 0 ? 1 : 0;
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(at, 1, ',');
  return digits;
}

}  // namespace ringmaster
