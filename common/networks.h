// The networks that a manifest may name: what the operator says of one before it starts, and the
// runtime holds to when it builds it (runtime/nn/zoo.h, where they are described). The API's list
// of names (trainer.proto, Zoo) is the same; a test compares them. Header-only constants.
#ifndef RINGMASTER_COMMON_NETWORKS_H_
#define RINGMASTER_COMMON_NETWORKS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::networks {

struct Network {
  std::string_view name;
  // Height and width of the smallest image that its layers leave something of; 0: it reads text.
  int64_t smallest_side = 0;
  std::optional<double> dropout;  // the published rate, where it has such layers
  int64_t blocks = 0;             // as published, where their number can be set
  int64_t longest_window = 0;     // in tokens, where it reads text
  bool batch_norm = false;

  constexpr bool reads_text() const { return smallest_side == 0; }
};

inline constexpr std::array kNetworks = {
    Network{.name = "lenet", .smallest_side = 16},
    Network{.name = "lenet-bn", .smallest_side = 4, .dropout = 0.25, .batch_norm = true},
    Network{.name = "alexnet", .smallest_side = 63, .dropout = 0.5},
    Network{.name = "vgg-16", .smallest_side = 32, .dropout = 0.5},
    Network{.name = "resnet-18", .smallest_side = 1, .batch_norm = true},
    Network{.name = "resnet-50", .smallest_side = 1, .batch_norm = true},
    Network{.name = "densenet-121", .smallest_side = 29, .batch_norm = true},
    Network{.name = "gpt-2", .dropout = 0.1, .blocks = 12, .longest_window = 1024},
};

// Null for a name that no network has.
constexpr const Network* Find(std::string_view name) {
  const auto* found = std::ranges::find(kNetworks, name, &Network::name);
  return found == kNetworks.end() ? nullptr : found;
}

// "lenet, lenet-bn, ...": those that `include` holds for.
template <typename Predicate>
std::string NamesOf(Predicate include) {
  std::string names;
  for (const Network& network : kNetworks) {
    if (!include(network)) continue;
    if (!names.empty()) names += ", ";
    names += network.name;
  }
  return names;
}

inline std::string AllNames() {
  return NamesOf([](const Network&) { return true; });
}

}  // namespace ringmaster::networks

#endif  // RINGMASTER_COMMON_NETWORKS_H_
