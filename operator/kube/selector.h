// Label selectors in Kubernetes' text form.
//
// Requirements joined by commas, all of which must hold:
//
//   key              the label is there            !key               it is not
//   key=v  key==v    it has this value             key!=v             it has not, or is absent
//   key in (a, b)    it has one of these           key notin (a, b)   it has none, or is absent
//
// A selector is an immutable value: copy it freely, use it from any thread.
#ifndef RINGMASTER_OPERATOR_KUBE_SELECTOR_H_
#define RINGMASTER_OPERATOR_KUBE_SELECTOR_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/kube/types.h"

namespace ringmaster::kube {

class LabelSelector {
 public:
  // The empty text selects everything. kInvalidArgument (reason BadRequest) names what is wrong.
  static absl::StatusOr<LabelSelector> Parse(std::string_view text);

  // Whether metadata.labels of the object satisfies every requirement.
  bool Matches(const Json& object) const;

  bool empty() const { return requirements_.empty(); }

 private:
  enum class Operator { kExists, kAbsent, kIn, kNotIn };
  struct Requirement {
    std::string key;
    Operator op = Operator::kExists;
    std::vector<std::string> values;
  };

  static absl::StatusOr<Requirement> ParseOne(std::string_view text);
  static absl::StatusOr<Requirement> ParseSet(std::string_view text, std::size_t open);

  std::vector<Requirement> requirements_;
};

// "key=value", the selector for one label.
std::string LabelEquals(std::string_view key, std::string_view value);

}  // namespace ringmaster::kube

#endif  // RINGMASTER_OPERATOR_KUBE_SELECTOR_H_
