#include "operator/api/parse.h"

#include <utility>

#include <fmt/format.h>

#include "common/contract.h"
#include "common/status.h"
#include "operator/api/defaults.h"
#include "operator/api/diagnostic.h"
#include "operator/api/metadata.h"
#include "operator/api/salvage.h"
#include "operator/api/set_path.h"
#include "operator/api/validation.h"
#include "operator/api/yaml.h"
#include "proto/schema/check.h"
#include "proto/schema/path.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;
using schema::Problem;
using training::v1alpha1::SchemaOf;
using training::v1alpha1::TrainingJob;

class ManifestParser {
 public:
  ManifestParser(std::string_view text, std::string_view filename)
      : filename_(filename), document_(ParseYaml(text)) {
    diagnostics_ = std::move(document_.errors);
  }

  absl::StatusOr<ParsedJob> Parse(const ParseOptions& options) {
    Json& object = document_.value;
    if (diagnostics_.empty() && object.is_null()) Add("", "the manifest is empty");
    // A file of another kind would only give a list of unknown fields.
    if (object.is_null() || !IsTrainingJob(object)) return Failure();
    for (const std::string& assignment : options.set) {
      const absl::Status set = SetPath(assignment, object);
      if (!set.ok()) set_errors_.push_back("--set " + Message(set));
      set_paths_.push_back(assignment.substr(0, assignment.find('=')));
    }
    object.erase("status");  // the operator's own; the API server would drop it too
    Json written = object;
    Check(object);
    if (!diagnostics_.empty() || !set_errors_.empty()) return Failure();
    ParsedJob parsed;
    FromCheckedJson(object, parsed.job);
    ApplyDerivedDefaults(parsed.job.spec);
    parsed.object = std::move(object);
    parsed.written = std::move(written);
    return parsed;
  }

 private:
  void Add(std::string path, std::string message) {
    for (const std::string& set : set_paths_) {
      if (path.starts_with(set)) message += " (set on the command line)";
    }
    const int line = document_.lines.LineOf(path);
    diagnostics_.push_back({line, std::move(path), std::move(message)});
  }

  bool IsTrainingJob(const Json& object) {
    if (!object.is_object()) {
      Add("", "a manifest is an object: apiVersion, kind, metadata and spec");
      return false;
    }
    return Is(object, "apiVersion", contract::kApiVersion) & Is(object, "kind", contract::kKind);
  }

  bool Is(const Json& object, const char* name, const char* wanted) {
    const Json* value = schema::FindPath(object, name);
    if (value != nullptr && *value == wanted) return true;
    Add(name, value == nullptr ? fmt::format("required, but missing: {}", wanted)
                               : fmt::format("{} is not {}", value->dump(), wanted));
    return false;
  }

  void Check(Json& object) {
    auto problems = schema::CheckAndDefault(SchemaOf<TrainingJob>(), object);
    if (object.contains("metadata") && object["metadata"].is_object()) {
      Json metadata = object["metadata"];
      for (Problem& problem : schema::CheckAndDefault(ObjectMetaSchema(), metadata, "metadata")) {
        if (problem.path != "metadata.name")
          problems.push_back(std::move(problem));  // said by the kind's own name rule
      }
    }
    for (Problem& problem : CheckMeaning(object, problems)) problems.push_back(std::move(problem));
    for (Problem& problem : problems) Add(std::move(problem.path), std::move(problem.message));
  }

  // What only the decoded job can tell. Values that the schema refused are left out first: where
  // the rest still is a whole object, it is checked too, so that one misspelt field does not hide
  // what else is wrong.
  static std::vector<Problem> CheckMeaning(Json object, const std::vector<Problem>& refused) {
    RemoveRefused(refused, object);
    object["metadata"] = {{"name", "any"}};
    if (!schema::CheckAndDefault(SchemaOf<TrainingJob>(), object).empty()) return {};
    TrainingJob job;
    FromCheckedJson(object, job);
    return Validate(job);
  }

  absl::Status Failure() {
    std::string text;
    for (const std::string& error : set_errors_) text += error + "\n";
    text += FormatDiagnostics(filename_, diagnostics_);
    if (text.ends_with('\n')) text.pop_back();
    return absl::InvalidArgumentError(text);
  }

  std::string_view filename_;
  YamlDocument document_;
  std::vector<Diagnostic> diagnostics_;
  std::vector<std::string> set_errors_;
  std::vector<std::string> set_paths_;
};

}  // namespace

absl::StatusOr<ParsedJob> ParseManifest(std::string_view text, std::string_view filename,
                                        const ParseOptions& options) {
  return ManifestParser(text, filename).Parse(options);
}

}  // namespace ringmaster::api
