// The API server's rules for names, label keys and label values.
//
// Each function returns "" when the text is good, else what is wrong with it as one clause that
// names the text, to be put behind a path: `metadata.name: "A_b" must consist of ...`.
#ifndef RINGMASTER_OPERATOR_KUBE_NAMES_H_
#define RINGMASTER_OPERATOR_KUBE_NAMES_H_

#include <string>
#include <string_view>

namespace ringmaster::kube {

// RFC 1123 label: at most 63 of [a-z0-9-], alphanumeric at both ends. Namespaces.
std::string ProblemWithDnsLabel(std::string_view text);
// RFC 1123 subdomain: labels joined by dots, at most 253 characters. Most objects' names.
std::string ProblemWithDnsSubdomain(std::string_view text);
// RFC 1035 label: as RFC 1123, but begins with a letter. Services.
std::string ProblemWithServiceName(std::string_view text);
// [prefix/]name, the prefix a DNS subdomain, the name at most 63 of [A-Za-z0-9_.-]. Also annotation
// keys, finalizers.
std::string ProblemWithLabelKey(std::string_view text);
// Empty, or at most 63 of [A-Za-z0-9_.-] with alphanumerics at both ends.
std::string ProblemWithLabelValue(std::string_view text);

}  // namespace ringmaster::kube

#endif  // RINGMASTER_OPERATOR_KUBE_NAMES_H_
