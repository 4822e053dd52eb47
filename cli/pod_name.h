// The two numbers of a worker's pod: which worker it is, and its how-manieth pod. Pure.
#ifndef RINGMASTER_CLI_POD_NAME_H_
#define RINGMASTER_CLI_POD_NAME_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

namespace ringmaster::cli {

// "<job>-<index>-<incarnation>" to its two numbers; nothing for another name.
std::optional<std::pair<int, int>> ParsePodName(std::string_view name, std::string_view job);

// The same by the pod's labels; -1 where they do not say.
int IndexOf(const nlohmann::json& pod);
int IncarnationOf(const nlohmann::json& pod);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_POD_NAME_H_
