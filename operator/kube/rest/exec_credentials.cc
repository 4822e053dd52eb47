#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/object.h"
#include "operator/kube/rest/credentials.h"
#include "operator/kube/rest/run_program.h"

namespace ringmaster::kube::rest {
namespace {

// Not to present at the last second what expires on the way.
constexpr std::chrono::seconds kExpiryMargin{5};

std::string LastLine(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  const std::size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

struct Answer {
  Credentials credentials;
  std::optional<Time> expires;
};

class Exec : public CredentialSource {
 public:
  Exec(ExecPlugin plugin, const Clock& clock) : plugin_(std::move(plugin)), clock_(clock) {}

  absl::StatusOr<Credentials> Get() override {
    const std::uint64_t failures = failures_;
    std::lock_guard lock(mutex_);  // held while the plugin runs: the others want its answer
    if (answer_ && (!answer_->expires || clock_.Now() + kExpiryMargin < *answer_->expires)) {
      return answer_->credentials;
    }
    // It failed while this call waited. Were each that waits to run it anew, one that hangs would
    // hold up the last of them for as many time-outs.
    if (failures_ != failures) return failure_;
    auto answer = Run();
    if (!answer.ok()) {
      failure_ = absl::UnauthenticatedError(
          fmt::format("credential plugin {}: {}", plugin_.command, Message(answer.status())));
      ++failures_;
      return failure_;
    }
    answer_ = *std::move(answer);
    return answer_->credentials;
  }

  void Refused(const Credentials& refused) override {
    std::lock_guard lock(mutex_);
    if (answer_ && answer_->credentials == refused) answer_.reset();
  }

 private:
  std::string ExecInfo() const {
    Json info = {{"apiVersion", plugin_.api_version},
                 {"kind", "ExecCredential"},
                 {"spec", {{"interactive", false}}}};
    if (plugin_.cluster) info["spec"]["cluster"] = *plugin_.cluster;
    return info.dump();
  }

  absl::StatusOr<Answer> Run() const {
    std::vector<std::string> argv = {plugin_.command};
    argv.insert(argv.end(), plugin_.args.begin(), plugin_.args.end());
    auto env = plugin_.env;
    env.emplace_back("KUBERNETES_EXEC_INFO", ExecInfo());
    const auto output = RunProgram(argv, env, plugin_.timeout);
    if (absl::IsNotFound(output.status())) {
      return absl::NotFoundError(plugin_.install_hint.empty()
                                     ? "not found; install it, or correct users[].user.exec.command"
                                     : "not found; " + plugin_.install_hint);
    }
    RM_RETURN_IF_ERROR(output.status());
    if (output->exit_code != 0) {
      const std::string why = LastLine(output->standard_error);
      return absl::UnavailableError(fmt::format("it ended with exit code {}{}{}", output->exit_code,
                                                why.empty() ? "" : ": ", why));
    }
    return Parse(output->standard_output);
  }

  // What it printed may be a secret: no message repeats any of it.
  absl::StatusOr<Answer> Parse(const std::string& text) const {
    const Json printed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (printed.is_discarded() || FindString(printed, {"kind"}) != "ExecCredential") {
      return absl::InvalidArgumentError("it printed no ExecCredential");
    }
    if (FindString(printed, {"apiVersion"}) != plugin_.api_version) {
      return absl::InvalidArgumentError(
          fmt::format("it printed another apiVersion than {}, which the kubeconfig asks for",
                      plugin_.api_version));
    }
    Answer answer;
    answer.credentials.bearer_token = FindString(printed, {"status", "token"});
    answer.credentials.client_certificate_pem =
        FindString(printed, {"status", "clientCertificateData"});
    answer.credentials.client_key_pem = FindString(printed, {"status", "clientKeyData"});
    if (answer.credentials.client_certificate_pem.empty() !=
        answer.credentials.client_key_pem.empty()) {
      return absl::InvalidArgumentError("it printed a certificate without a key, or the reverse");
    }
    if (answer.credentials == Credentials{}) {
      return absl::InvalidArgumentError("it printed neither a token nor a certificate");
    }
    if (const std::string expires = FindString(printed, {"status", "expirationTimestamp"});
        !expires.empty()) {
      auto time = ParseTime(expires);
      if (!time.ok()) return absl::InvalidArgumentError("its expirationTimestamp is no time");
      answer.expires = *time;
    }
    return answer;
  }

  const ExecPlugin plugin_;
  const Clock& clock_;
  std::mutex mutex_;
  std::optional<Answer> answer_;             // guarded by mutex_
  std::atomic<std::uint64_t> failures_ = 0;  // runs that failed; written under mutex_
  absl::Status failure_;                     // of the last of them; guarded by mutex_
};

}  // namespace

std::shared_ptr<CredentialSource> ExecCredentials(ExecPlugin plugin, const Clock& clock) {
  return std::make_shared<Exec>(std::move(plugin), clock);
}

}  // namespace ringmaster::kube::rest
