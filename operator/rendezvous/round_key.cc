#include "operator/rendezvous/round_key.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"

namespace ringmaster::rendezvous {
namespace {

constexpr size_t kSecretBytes = 32;

// Each part with its length before it, so that no two different lists read the same.
void AppendPart(std::string_view part, std::string* text) {
  *text += fmt::format("{}:", part.size());
  text->append(part);
}

// Not WriteFileAtomically alone: the file must never have been readable by others.
absl::Status StoreSecret(const std::string& path, std::string_view secret) {
  const std::string temporary = path + ".new";
  ::unlink(temporary.c_str());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoStatus(errno, temporary);
  RM_RETURN_IF_ERROR(
      WriteAll(fd.get(), std::as_bytes(std::span(secret.data(), secret.size())), temporary));
  if (::fsync(fd.get()) != 0) return ErrnoStatus(errno, temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return ErrnoStatus(errno, path);
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return SyncDirectory(parent.empty() ? "." : parent);
}

}  // namespace

std::string RoundKey(std::string_view secret, const kube::ObjectKey& job,
                     const reconcile::Announcement& round) {
  std::string message;
  AppendPart("ringmaster round key", &message);
  AppendPart(job.ns, &message);
  AppendPart(job.name, &message);
  AppendPart(fmt::format("{}", round.round), &message);
  for (const reconcile::RoundMember& member : round.members) AppendPart(member.pod_uid, &message);
  const Sha256Digest digest = HmacSha256(secret, message);
  return std::string(digest.begin(), digest.end());
}

absl::StatusOr<std::string> LoadOrCreateSecret(const std::string& path) {
  absl::StatusOr<std::string> stored = ReadFile(path, 4096);
  if (stored.ok()) {
    if (stored->size() == kSecretBytes) return stored;
    return absl::DataLossError(fmt::format("{}: holds {} bytes, not a secret of {}; delete it",
                                           path, stored->size(), kSecretBytes));
  }
  if (stored.status().code() != absl::StatusCode::kNotFound) return stored.status();
  const std::string secret = RandomBytes(kSecretBytes);
  RM_RETURN_IF_ERROR(StoreSecret(path, secret));
  return secret;
}

}  // namespace ringmaster::rendezvous
