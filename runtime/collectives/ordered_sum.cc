#include "runtime/collectives/ordered_sum.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"
#include "common/status.h"
#include "runtime/collectives/add.h"
#include "runtime/collectives/algorithms/direct_sum.h"
#include "runtime/collectives/algorithms/halving_sum.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/compression/sixteen_bits.h"
#include "runtime/collectives/operation.h"

namespace ringmaster::collectives {
namespace {

template <typename T>
constexpr ElementType kTypeOf = ElementTypeOf<T>();
template <>
constexpr ElementType kTypeOf<HalfBlock> = ElementType::kF16;

}  // namespace

template <typename T>
OrderedSum<T>::OrderedSum(int shards, size_t elements, SumOrder order)
    : shards_(shards),
      elements_(elements),
      order_(order),
      added_(1, shards),
      direct_(std::make_unique<DirectSum<T>>()),
      halving_(std::make_unique<HalvingSum<T>>()) {
  RM_CHECK(shards >= 1, "an ordered sum needs at least one shard");
}

template <typename T>
OrderedSum<T>::~OrderedSum() = default;

template <typename T>
absl::Status OrderedSum<T>::Add(int shard, std::span<const T> values) {
  if (shard < 0 || shard >= shards_) {
    return absl::InvalidArgumentError(fmt::format("shard {} is not one of {}", shard, shards_));
  }
  if (added_.Has(0, shard))
    return absl::InvalidArgumentError(fmt::format("shard {} was added before", shard));
  if (values.size() != elements_) {
    return absl::InvalidArgumentError(
        fmt::format("shard {} has {} values; the sum is of {}", shard, values.size(), elements_));
  }
  added_.Give(0, shard);
  if (order_ == SumOrder::kTree) {
    AddInTreeOrder(shard, values);
  } else {
    AddAsItComes(values);
  }
  return absl::OkStatus();
}

// Climbs from the leaf as long as the sibling is complete, adding into a buffer that exists
// already.
template <typename T>
void OrderedSum<T>::AddInTreeOrder(int shard, std::span<const T> values) {
  ShardRange node{shard, shard + 1};
  std::span<const T> sum = values;
  std::vector<T> buffer;  // holds `sum` once something was added to it
  const ShardRange root{0, shards_};
  while (node != root) {
    const ShardRange parent = ParentNode(shards_, node);
    const bool is_left = node.begin == parent.begin;
    const ShardRange sibling =
        is_left ? ShardRange{node.end, parent.end} : ShardRange{parent.begin, node.begin};
    const auto found = Find(sibling);
    if (found == nodes_.end()) break;
    std::vector<T> other = std::move(found->second);
    nodes_.erase(found);
    const T* left = is_left ? sum.data() : other.data();
    const T* right = is_left ? other.data() : sum.data();
    collectives::Add(other.data(), left, right, elements_);
    buffer.swap(other);
    if (node.size() > 1) free_.push_back(std::move(other));
    sum = buffer;
    node = parent;
  }
  Keep(node, sum.data() == values.data() ? CopyToBuffer(values) : std::move(buffer));
}

template <typename T>
void OrderedSum<T>::AddAsItComes(std::span<const T> values) {
  const ShardRange all{0, shards_};
  const auto found = Find(all);
  if (found == nodes_.end()) {
    Keep(all, CopyToBuffer(values));
  } else {
    collectives::Add(found->second.data(), found->second.data(), values.data(), elements_);
  }
}

// They are few: a search among all costs nothing beside the additions.
template <typename T>
typename std::vector<typename OrderedSum<T>::Node>::iterator OrderedSum<T>::Find(
    const ShardRange& range) {
  return std::ranges::find(nodes_, range, &Node::first);
}

template <typename T>
void OrderedSum<T>::Keep(const ShardRange& range, std::vector<T> values) {
  nodes_.emplace(std::ranges::upper_bound(nodes_, range, {}, &Node::first), range,
                 std::move(values));
}

template <typename T>
std::vector<T> OrderedSum<T>::CopyToBuffer(std::span<const T> values) {
  std::vector<T> buffer;
  if (!free_.empty()) {
    buffer = std::move(free_.back());
    free_.pop_back();
  }
  buffer.assign(values.begin(), values.end());
  return buffer;
}

template <typename T>
absl::Status OrderedSum<T>::CheckUnchanged(const Ownership& owners, int rank) const {
  if (std::ranges::equal(added_.bits(0), owners.bits(rank))) return absl::OkStatus();
  int shard = 0;
  while (added_.Has(0, shard) == owners.Has(rank, shard)) ++shard;
  return absl::FailedPreconditionError(
      fmt::format("shard {} was {} by rank {} in the sum before, and {} now; where shards change "
                  "hands in a round, every rank must call ForgetOwners first",
                  shard, owners.Has(rank, shard) ? "added" : "not added", rank,
                  added_.Has(0, shard) ? "is" : "is not"));
}

template <typename T>
void OrderedSum<T>::Describe(Algorithm algorithm, uint64_t digest) {
  if (const std::pair wanted(algorithm, digest); noted_ != wanted) {
    note_.clear();
    fmt::format_to(std::back_inserter(note_), "{} shards by {}{}", shards_, NameOf(algorithm),
                   digest == 0 ? "" : ", of the same ranks");
    const uint64_t agreed[] = {static_cast<uint64_t>(shards_), static_cast<uint64_t>(order_),
                               static_cast<uint64_t>(algorithm), digest};
    detail_ = Digest(agreed, sizeof(agreed));
    noted_ = wanted;
  }
}

template <typename T>
absl::Status OrderedSum<T>::Reduce(Communicator& communicator, std::span<T> out,
                                   std::string_view name) {
  if (out.size() != elements_) {
    return absl::InvalidArgumentError(
        fmt::format("{}: the result has {} values; the sum is of {}", name, out.size(), elements_));
  }
  return communicator.Guard(name, [&]() -> absl::Status {
    const uint64_t round = communicator.round();
    std::erase_if(told_, [&](const Told& told) { return told.round != round; });
    const auto told = std::ranges::find(told_, communicator.serial(), &Told::communicator);
    const bool knows_owners = told != told_.end();
    const Algorithm algorithm =
        order_ == SumOrder::kTree
            ? communicator.selector().For(OperationKind::kOrderedSum, out.size_bytes()).algorithm
            : Algorithm::kDirect;
    Describe(algorithm, knows_owners ? told->digest : 0);
    Operation operation;
    operation.kind = OperationKind::kOrderedSum;
    operation.type = kTypeOf<T>;
    operation.count = elements_;
    operation.detail = detail_;
    operation.name = name;
    operation.note = note_;
    Ownership fresh;
    Ownership& owners = knows_owners ? told->owners : fresh;
    RM_RETURN_IF_ERROR(communicator.Run(operation, [&](Transport& transport) -> absl::Status {
      const int rank = communicator.rank();
      if (knows_owners) {
        RM_RETURN_IF_ERROR(CheckUnchanged(owners, rank));
      } else {
        owners.Reset(communicator.world(), shards_);
        std::ranges::copy(added_.bits(0), owners.bits(rank).begin());
      }
      sums_.clear();
      for (const auto& [node, values] : nodes_) sums_.push_back(values);
      const Contribution<T> mine{order_, owners, knows_owners, sums_};
      if (algorithm == Algorithm::kHalvingDoubling)
        return halving_->Run(transport, mine, out, communicator.segment_bytes());
      const DirectSteps steps =
          algorithm == Algorithm::kOneShot ? DirectSteps::kOne : DirectSteps::kTwo;
      const size_t largest = steps == DirectSteps::kOne
                                 ? communicator.segment_bytes()
                                 : communicator.selector().direct_piece_bytes();
      return direct_->Run(transport, mine, out, largest, steps);
    }));
    if (!knows_owners) told_.push_back({communicator.serial(), round, fresh, fresh.digest()});
    return absl::OkStatus();
  });
}

template <typename T>
void OrderedSum<T>::Clear() {
  for (auto& [node, values] : nodes_) free_.push_back(std::move(values));
  nodes_.clear();
  added_.Reset(1, shards_);
}

template class OrderedSum<float>;
template class OrderedSum<double>;
template class OrderedSum<BFloat16>;
template class OrderedSum<HalfBlock>;

}  // namespace ringmaster::collectives
