#include "runtime/train/gradient_sum.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "common/text.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/collectives/compression/top_k.h"

namespace ringmaster::train {
namespace {

using collectives::Communicator;
using collectives::OperationStats;
using collectives::Phase;
using collectives::Piece;
using collectives::TimelineTrack;

// Of all gradients, or of one bucket of them, for messages and the timeline.
std::string NameOf(const nn::Model& layout, Piece range) {
  const std::string* first = nullptr;
  const std::string* last = nullptr;
  for (const nn::Parameter& parameter : layout.parameters) {
    const size_t end = parameter.offset + static_cast<size_t>(parameter.shape.elements());
    if (end <= range.offset || parameter.offset >= range.offset + range.count) continue;
    if (first == nullptr) first = &parameter.name;
    last = &parameter.name;
  }
  if (first == nullptr) return "gradients";
  if (first == last) return fmt::format("gradients of {}", *first);
  return fmt::format("gradients of {} to {}", *first, *last);
}

// Gradients from the last to the first, cut where the grid allows it.
std::vector<Piece> CutGradients(size_t gradients, size_t bucket_floats) {
  std::vector<Piece> pieces;
  size_t end = gradients;
  while (end > 0) {
    const size_t wanted = end > bucket_floats ? end - bucket_floats : 0;
    const size_t begin = wanted / kBucketGrid * kBucketGrid;
    pieces.push_back({begin, end - begin});
    end = begin;
  }
  return pieces;
}

// Where the tensors begin, the floats between them counted to the one before.
std::vector<size_t> TensorsOf(const nn::Model& layout) {
  std::vector<size_t> tensors;
  for (const nn::Parameter& parameter : layout.parameters) tensors.push_back(parameter.offset);
  if (tensors.empty()) tensors.push_back(0);
  tensors.front() = 0;
  return tensors;
}

}  // namespace

OperationStats TotalOf(const Communicator& communicator) {
  OperationStats total;
  for (const OperationStats& stats : communicator.stats().by_kind) {
    total.bytes_sent += stats.bytes_sent;
    total.bytes_received += stats.bytes_received;
  }
  return total;
}

absl::StatusOr<std::unique_ptr<GradientSum>> GradientSum::Create(const GradientSumOptions& options,
                                                                 Communicator& communicator,
                                                                 std::span<float> out) {
  const int world = communicator.world();
  const int parts = options.shards == 0 ? world : options.shards;
  if (parts > options.batch || world > parts) {
    return absl::InvalidArgumentError(
        fmt::format("a batch of {} in {} cannot be shared by {}", WithNoun(options.batch, "sample"),
                    WithNoun(parts, "shard"), WithNoun(world, "worker")));
  }
  if (const auto& top_k = options.config->top_k; top_k && !out.empty()) {
    RM_RETURN_IF_ERROR(
        Annotate(collectives::TopKSum::Check(options.layout->parameter_floats, top_k->share),
                 "spec.trainer.gradients.topK"));
  }
  return std::unique_ptr<GradientSum>(new GradientSum(options, communicator, out));
}

GradientSum::GradientSum(const GradientSumOptions& options, Communicator& communicator,
                         std::span<float> out)
    : options_(options),
      communicator_(communicator),
      out_(out),
      parts_(options.shards == 0 ? communicator.world() : options.shards),
      owned_(collectives::OwnedShards(parts_, communicator.world(), communicator.rank())),
      compressed_(NamesMethod(*options.config)) {
  if (out.empty()) return;
  const size_t gradients = options.layout->parameter_floats;
  const auto bucket_floats = static_cast<size_t>(options.config->bucket_bytes) / sizeof(float);
  const bool whole =
      options.config->bucket_bytes == 0 || gradients <= bucket_floats || !MayBeCut(*options.config);
  if (whole && !compressed_) {
    AddBucket({0, out.size()}, false, "gradients, statistics, loss and flags");
    return;
  }
  for (const Piece& piece :
       CutGradients(gradients, whole ? gradients : std::max(bucket_floats, kBucketGrid)))
    AddBucket(piece, true, NameOf(*options.layout, piece));
  AddBucket({gradients, out.size() - gradients}, false, "statistics, loss and flags");
  // Alone there is nobody to wait for.
  if (buckets_.size() > 2 && communicator.world() > 1) overlap_ = std::make_unique<TaskQueue>();
}

void GradientSum::AddBucket(Piece range, bool gradients, std::string name) {
  BucketSumOptions options{.shards = parts_,
                           .ring = options_.shards == 0,
                           .arrival_order = options_.arrival_order,
                           .elements = range.count,
                           .batch = options_.batch,
                           .world = communicator_.world(),
                           .rank = communicator_.rank(),
                           .tensors = TensorsOf(*options_.layout)};
  for (int shard = 0; shard < parts_; ++shard) options.rows.push_back(RowsOf(shard));
  buckets_.push_back(
      {.range = range,
       .name = std::move(name),
       .gradients = gradients,
       .sum = gradients ? MakeBucketSum(options, *options_.config) : MakeExactSum(options)});
}

data::RowRange GradientSum::RowsOf(int shard) const {
  return data::ShardRows(options_.batch, parts_, shard);
}

absl::Status GradientSum::AddGradients(int shard, std::span<const float> contribution,
                                       size_t from) {
  while (buckets_[next_].gradients && buckets_[next_].range.offset >= from)
    RM_RETURN_IF_ERROR(AddNext(shard, contribution));
  return absl::OkStatus();
}

absl::Status GradientSum::Add(int shard, std::span<const float> contribution) {
  while (next_ < buckets_.size()) RM_RETURN_IF_ERROR(AddNext(shard, contribution));
  next_ = 0;
  return absl::OkStatus();
}

absl::Status GradientSum::AddNext(int shard, std::span<const float> contribution) {
  if (shard == owned_.begin && next_ == 0) before_ = TotalOf(communicator_);
  Bucket& bucket = buckets_[next_++];
  {
    const TimelineTrack track(options_.timeline, bucket.name);
    const Phase phase("fuse");
    RM_RETURN_IF_ERROR(
        bucket.sum->Add(shard, contribution.subspan(bucket.range.offset, bucket.range.count)));
  }
  bucket.ready = std::chrono::steady_clock::now();
  if (shard + 1 == owned_.end && overlap_ != nullptr)
    overlap_->Add([this, &bucket] { return ReduceBucket(bucket); });
  return absl::OkStatus();
}

absl::Status GradientSum::ReduceBucket(Bucket& bucket) {
  if (options_.timeline != nullptr)
    options_.timeline->Add(bucket.name, "wait", bucket.ready, std::chrono::steady_clock::now());
  const TimelineTrack track(options_.timeline, bucket.name);
  const Phase phase("reduce");
  return bucket.sum->Reduce(communicator_, out_.subspan(bucket.range.offset, bucket.range.count),
                            bucket.name);
}

absl::StatusOr<ReductionTraffic> GradientSum::Reduce() {
  if (overlap_ != nullptr) {
    RM_RETURN_IF_ERROR(overlap_->Wait());
  } else {
    for (Bucket& bucket : buckets_) RM_RETURN_IF_ERROR(ReduceBucket(bucket));
  }
  const OperationStats after = TotalOf(communicator_);
  ReductionTraffic traffic{.sent = after.bytes_sent - before_.bytes_sent,
                           .received = after.bytes_received - before_.bytes_received};
  const auto world = static_cast<uint64_t>(communicator_.world());
  const uint64_t plain = 2 * (world - 1) * out_.size_bytes() / world;
  if (compressed_ && plain > traffic.sent) traffic.saved = plain - traffic.sent;
  return traffic;
}

size_t GradientSum::bytes() const {
  size_t bytes = 0;
  for (const Bucket& bucket : buckets_) bytes += bucket.sum->bytes();
  return bytes;
}

void GradientSum::Commit() {
  for (Bucket& bucket : buckets_) bucket.sum->Commit();
}

}  // namespace ringmaster::train
