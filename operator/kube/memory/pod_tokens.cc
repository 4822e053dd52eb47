#include "operator/kube/memory/pod_tokens.h"

#include "common/sha256.h"

namespace ringmaster::kube::memory {
namespace {

constexpr std::size_t kTokenBytes = 32;

std::string Digest(std::string_view token) {
  return Hex(Sha256Of(token));
}

}  // namespace

std::string PodTokens::Issue(PodIdentity pod, std::string_view audience, Time expires, Time now) {
  std::erase_if(grants_, [now](const auto& entry) { return entry.second.expires <= now; });
  const std::string random = RandomBytes(kTokenBytes);
  const std::string token = Hex({reinterpret_cast<const uint8_t*>(random.data()), random.size()});
  grants_[Digest(token)] = {std::move(pod), std::string(audience), expires};
  return token;
}

std::optional<PodIdentity> PodTokens::Find(std::string_view token, std::string_view audience,
                                           Time now) const {
  const auto it = grants_.find(Digest(token));
  if (it == grants_.end() || it->second.expires <= now || it->second.audience != audience)
    return std::nullopt;
  return it->second.pod;
}

}  // namespace ringmaster::kube::memory
