#include "operator/kube/rest/credentials.h"

#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "common/file.h"
#include "common/status.h"

namespace ringmaster::kube::rest {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

class Static : public CredentialSource {
 public:
  explicit Static(Credentials credentials) : credentials_(std::move(credentials)) {}
  absl::StatusOr<Credentials> Get() override { return credentials_; }
  void Refused(const Credentials&) override {}

 private:
  const Credentials credentials_;
};

absl::Status ReadInto(const std::string& path, std::string& text) {
  if (path.empty()) return absl::OkStatus();
  auto content = ReadFile(path, kMaxFileBytes);
  if (!content.ok()) return absl::UnauthenticatedError("credentials: " + Message(content.status()));
  text = *std::move(content);
  return absl::OkStatus();
}

void TrimSpace(std::string& text) {
  constexpr char kSpace[] = " \t\r\n";
  text.erase(0, text.find_first_not_of(kSpace));
  text.erase(text.find_last_not_of(kSpace) + 1);
}

class Files : public CredentialSource {
 public:
  Files(CredentialFiles files, const Clock& clock) : files_(std::move(files)), clock_(clock) {}

  absl::StatusOr<Credentials> Get() override {
    std::lock_guard lock(mutex_);
    const SteadyTime now = clock_.SteadyNow();
    if (current_ && now < read_at_ + files_.max_age) return *current_;
    auto fresh = Read();
    if (!fresh.ok()) {
      if (!current_) return fresh.status();
      return *current_;  // being replaced just now, it may be; the next Get looks again
    }
    current_ = *std::move(fresh);
    read_at_ = now;
    return *current_;
  }

  void Refused(const Credentials& refused) override {
    std::lock_guard lock(mutex_);
    if (current_ == refused) read_at_ = clock_.SteadyNow() - files_.max_age;
  }

 private:
  absl::StatusOr<Credentials> Read() const {
    Credentials credentials = files_.fixed;
    RM_RETURN_IF_ERROR(ReadInto(files_.token_file, credentials.bearer_token));
    RM_RETURN_IF_ERROR(
        ReadInto(files_.client_certificate_file, credentials.client_certificate_pem));
    RM_RETURN_IF_ERROR(ReadInto(files_.client_key_file, credentials.client_key_pem));
    RM_RETURN_IF_ERROR(ReadInto(files_.authority_file, credentials.authority_pem));
    TrimSpace(credentials.bearer_token);
    if (!files_.token_file.empty() && credentials.bearer_token.empty()) {
      return absl::UnauthenticatedError(fmt::format("credentials: {} is empty", files_.token_file));
    }
    return credentials;
  }

  const CredentialFiles files_;
  const Clock& clock_;
  std::mutex mutex_;
  std::optional<Credentials> current_;  // guarded by mutex_
  SteadyTime read_at_;                  // guarded by mutex_
};

}  // namespace

std::shared_ptr<CredentialSource> StaticCredentials(Credentials credentials) {
  return std::make_shared<Static>(std::move(credentials));
}

std::shared_ptr<CredentialSource> FileCredentials(CredentialFiles files, const Clock& clock) {
  return std::make_shared<Files>(std::move(files), clock);
}

}  // namespace ringmaster::kube::rest
