// Objects as `-o` asks for them. Pure.
#ifndef RINGMASTER_CLI_KUBECTL_OUTPUT_H_
#define RINGMASTER_CLI_KUBECTL_OUTPUT_H_

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace ringmaster::cli::kubectl {

// What -o takes beside a command's own forms.
inline constexpr char kJson[] = "json";
inline constexpr char kYaml[] = "yaml";
inline constexpr char kName[] = "name";
inline constexpr char kWide[] = "wide";

// One object as JSON or YAML, with a line end, or its name as other commands take it.
std::string FormatObject(const nlohmann::json& object, const std::string& output);

// Several as kubectl's List, or a name a line.
std::string FormatObjects(const std::vector<nlohmann::json>& objects, const std::string& output);

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_OUTPUT_H_
