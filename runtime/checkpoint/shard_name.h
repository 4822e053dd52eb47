// What a checkpoint is called: the job's step, the round that wrote it, and its files.
//
// A checkpoint of a round with W workers is W files, one per rank:
//
//   step-448-round-3-rank-2-of-4.safetensors
//
// The round in the name keeps a worker of an older round from touching a file of a newer one. While
// a file is written it carries `.tmp-TAG` behind its name, TAG standing for the job. Pure
// functions.
#ifndef RINGMASTER_RUNTIME_CHECKPOINT_SHARD_NAME_H_
#define RINGMASTER_RUNTIME_CHECKPOINT_SHARD_NAME_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster::checkpoint {

struct CheckpointId {
  int64_t step = 0;
  int64_t round = 0;
  int world_size = 1;  // number of its files

  auto operator<=>(const CheckpointId&) const = default;
};

// A checkpoint that exists: the job's status holds it.
struct CheckpointRef {
  CheckpointId id;
  std::string digest;  // CombinedDigest of its files

  bool operator==(const CheckpointRef&) const = default;
};

struct ShardName {
  CheckpointId id;
  int rank = 0;
  bool temporary = false;
  std::string tag;  // of a temporary one

  bool operator==(const ShardName&) const = default;
};

std::string ShardFileName(const CheckpointId& id, int rank);

// The name while it is written.
std::string TemporaryName(const CheckpointId& id, int rank, std::string_view job);

// The name of one that does not load and is set aside to be looked at: `rejected-TAG-` before its
// own. RejectedPrefix is what all of a job's begin with.
std::string RejectedPrefix(std::string_view job);
std::string RejectedName(const CheckpointId& id, int rank, std::string_view job);

// What TAG is for a job ("namespace/name").
std::string JobTag(std::string_view job);

// Nothing for a name that is not exactly what the functions above write.
std::optional<ShardName> ParseShardName(std::string_view file_name);

// sha256, in hexadecimal, over the hexadecimal digests of the files in rank order, each followed by
// a line feed: what the operator makes of the workers' reports.
std::string CombinedDigest(std::span<const std::string> file_digests);

}  // namespace ringmaster::checkpoint

#endif  // RINGMASTER_RUNTIME_CHECKPOINT_SHARD_NAME_H_
