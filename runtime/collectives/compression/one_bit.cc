#include "runtime/collectives/compression/one_bit.h"

#include <algorithm>
#include <cmath>

#include "common/status.h"
#include "runtime/collectives/communicator.h"

namespace ringmaster::collectives {
namespace {

size_t BlocksFor(size_t elements) {
  return (elements + OneBitBlock::kValues - 1) / OneBitBlock::kValues;
}

std::span<float> ValuesOf(std::span<float> values, size_t block) {
  const size_t offset = block * OneBitBlock::kValues;
  return values.subspan(offset, std::min(OneBitBlock::kValues, values.size() - offset));
}

float ValueOf(const OneBitBlock& block, size_t place) {
  const bool negative = (block.negative[place / 8] >> (place % 8) & 1) != 0;
  return negative ? -block.scale : block.scale;
}

}  // namespace

void TakeSigns(std::span<float> rest, std::span<OneBitBlock> blocks) {
  for (size_t b = 0; b < blocks.size(); ++b) {
    const std::span<float> values = ValuesOf(rest, b);
    OneBitBlock& block = blocks[b];
    block = {};
    double magnitude = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      magnitude += std::abs(double{values[i]});
      block.negative[i / 8] |= static_cast<uint8_t>((values[i] < 0 ? 1 : 0) << (i % 8));
    }
    block.scale = static_cast<float>(magnitude / static_cast<double>(values.size()));
    for (size_t i = 0; i < values.size(); ++i) values[i] -= ValueOf(block, i);
  }
}

void AddSigns(std::span<const OneBitBlock> blocks, std::span<float> out) {
  for (size_t b = 0; b < blocks.size(); ++b) {
    const std::span<float> values = ValuesOf(out, b);
    for (size_t i = 0; i < values.size(); ++i) values[i] += ValueOf(blocks[b], i);
  }
}

OneBitSum::OneBitSum(size_t elements) : FeedbackSum(elements), mine_(BlocksFor(elements)) {}

absl::Status OneBitSum::Exchange(Communicator& communicator, std::span<float> rest,
                                 std::span<float> out, std::string_view name) {
  TakeSigns(rest, mine_);
  const auto world = static_cast<size_t>(communicator.world());
  all_.resize(world * mine_.size());
  counts_.assign(world, mine_.size() * sizeof(OneBitBlock));
  RM_RETURN_IF_ERROR(communicator.Allgather(std::as_bytes(std::span(mine_)), counts_,
                                            std::as_writable_bytes(std::span(all_)), name));
  for (size_t rank = 0; rank < world; ++rank)
    AddSigns(std::span(all_).subspan(rank * mine_.size(), mine_.size()), out);
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives
