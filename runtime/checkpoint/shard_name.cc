#include "runtime/checkpoint/shard_name.h"

#include <charconv>

#include <fmt/format.h>

#include "common/sha256.h"

namespace ringmaster::checkpoint {
namespace {

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kTemporary = ".tmp-";
constexpr size_t kTagLetters = 12;

bool TakeText(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

template <typename T>
bool TakeNumber(std::string_view& text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string ShardFileName(const CheckpointId& id, int rank) {
  return fmt::format("step-{}-round-{}-rank-{}-of-{}{}", id.step, id.round, rank, id.world_size,
                     kSuffix);
}

std::string JobTag(std::string_view job) {
  return Hex(Sha256Of(job)).substr(0, kTagLetters);
}

std::string TemporaryName(const CheckpointId& id, int rank, std::string_view job) {
  return fmt::format("{}{}{}", ShardFileName(id, rank), kTemporary, JobTag(job));
}

std::string RejectedPrefix(std::string_view job) {
  return fmt::format("rejected-{}-", JobTag(job));
}

std::string RejectedName(const CheckpointId& id, int rank, std::string_view job) {
  return RejectedPrefix(job) + ShardFileName(id, rank);
}

std::optional<ShardName> ParseShardName(std::string_view file_name) {
  std::string_view rest = file_name;
  ShardName name;
  const bool parsed =
      TakeText(rest, "step-") && TakeNumber(rest, name.id.step) && TakeText(rest, "-round-") &&
      TakeNumber(rest, name.id.round) && TakeText(rest, "-rank-") && TakeNumber(rest, name.rank) &&
      TakeText(rest, "-of-") && TakeNumber(rest, name.id.world_size) && TakeText(rest, kSuffix);
  if (!parsed || name.rank >= name.id.world_size) return std::nullopt;
  if (TakeText(rest, kTemporary)) {
    name.temporary = true;
    name.tag = rest;
    rest = {};
  }
  if (!rest.empty() || !file_name.starts_with(ShardFileName(name.id, name.rank))) {
    return std::nullopt;
  }
  return name;
}

std::string CombinedDigest(std::span<const std::string> file_digests) {
  Sha256 hash;
  for (const std::string& digest : file_digests) {
    hash.Update(digest);
    hash.Update("\n");
  }
  return Hex(hash.Finish());
}

}  // namespace ringmaster::checkpoint
