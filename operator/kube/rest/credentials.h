// Who the client says it is, fresh at each request: tokens and certificates expire and are replaced
// while a program runs.
//
// Thread-safe. Get may block, on a file or on a plugin, never longer than the source's own
// deadline. No status and no log line ever contains a token or a key.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_CREDENTIALS_H_
#define RINGMASTER_OPERATOR_KUBE_REST_CREDENTIALS_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "common/clock.h"

namespace ringmaster::kube::rest {

// Each part may be empty. A certificate comes with its key; all but the token are PEM text.
struct Credentials {
  std::string bearer_token;
  std::string client_certificate_pem;
  std::string client_key_pem;
  // Whom to show them to, instead of Config::ca_pem: a pod's authority comes and is replaced with
  // its token.
  std::string authority_pem;

  friend bool operator==(const Credentials&, const Credentials&) = default;
};

class CredentialSource {
 public:
  virtual ~CredentialSource() = default;

  // What to present now. kUnauthenticated, with the file or plugin that failed and what to do about
  // it, when there is nothing to present.
  virtual absl::StatusOr<Credentials> Get() = 0;

  // The server answered 401 to `refused`: a later Get does not return it from a cache.
  virtual void Refused(const Credentials& refused) = 0;
};

// Always the same.
std::shared_ptr<CredentialSource> StaticCredentials(Credentials credentials);

// A token in a file, a certificate with its key in two, and an authority, each read again when it
// is older than `max_age` (what is left empty is not read): a kubelet, or a person, renews them in
// place. A file that cannot be read for a moment leaves the last content in force.
struct CredentialFiles {
  std::string token_file;
  std::string client_certificate_file;
  std::string client_key_file;
  std::string authority_file;
  Credentials fixed;  // parts that are not in files
  std::chrono::seconds max_age{60};
};
std::shared_ptr<CredentialSource> FileCredentials(CredentialFiles files,
                                                  const Clock& clock = SystemClock());

// A program that prints an ExecCredential of client.authentication.k8s.io/v1 (or v1beta1) on its
// standard output: how clouds sign people in. Its answer is used until it expires, or is refused;
// it is run once at a time, whoever asks, without standard input, and killed at the deadline. Who
// waits for a run that fails gets that failure; the next to ask runs it again. What it writes on
// standard error, its last line, goes into the error message.
struct ExecPlugin {
  std::string api_version = "client.authentication.k8s.io/v1";
  std::string command;  // a path, or a name to be looked up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // beside the program's own
  std::string install_hint;                              // for the message when it is not there
  // "server", "certificate-authority-data" and such, where provideClusterInfo asks for them.
  std::shared_ptr<const nlohmann::json> cluster;
  std::chrono::milliseconds timeout{30'000};
};
std::shared_ptr<CredentialSource> ExecCredentials(ExecPlugin plugin,
                                                  const Clock& clock = SystemClock());

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_CREDENTIALS_H_
