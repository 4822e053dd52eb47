#include "runtime/collectives/training/join_group.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/collectives/element.h"

namespace ringmaster::collectives {
namespace {

constexpr char kIntents[] = "who takes part";
constexpr uint64_t kMostNumbers = uint64_t{1} << 40;

// What an intent is on the wire, before its name.
struct Head {
  uint64_t count = 0;
  uint8_t joined = 0;
  uint8_t reduction = 0;
  uint8_t type = 0;
  uint8_t unused[5] = {};
};

// What changes no sum: -0 in floats, for +0 would turn -0 into +0.
void FillWithNothing(Elements values) {
  std::ranges::fill(values.bytes(), std::byte{0});
  const bool is_float = values.type() != ElementType::kU8 && values.type() != ElementType::kI32 &&
                        values.type() != ElementType::kI64;
  if (!is_float) return;
  // The sign is the last byte's highest bit: numbers are little-endian here.
  const size_t size = values.element_bytes();
  for (size_t i = 0; i < values.count(); ++i) values.data()[i * size + size - 1] = std::byte{0x80};
}

}  // namespace

std::string JoinGroup::Intent::Encode() const {
  const Head head{.count = count,
                  .joined = static_cast<uint8_t>(joined),
                  .reduction = static_cast<uint8_t>(reduction),
                  .type = static_cast<uint8_t>(type)};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  return bytes + name;
}

absl::StatusOr<JoinGroup::Intent> JoinGroup::Intent::Decode(std::string_view bytes) {
  Head head;
  if (bytes.size() < sizeof(head)) return absl::DataLossError("an intent is too short");
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.type > static_cast<uint8_t>(ElementType::kF64) ||
      head.reduction > static_cast<uint8_t>(Reduction::kAverage)) {
    return absl::DataLossError("an intent of no known type or reduction");
  }
  if (head.count > kMostNumbers) return absl::DataLossError("an intent of more than memory holds");
  return Intent{.joined = head.joined != 0,
                .reduction = static_cast<Reduction>(head.reduction),
                .type = static_cast<ElementType>(head.type),
                .count = head.count,
                .name = std::string(bytes.substr(sizeof(head)))};
}

std::string JoinGroup::Intent::Describe() const {
  return fmt::format("{} of {} {} \"{}\"", NameOf(reduction), count, NameOf(type), name);
}

absl::StatusOr<std::vector<JoinGroup::Intent>> JoinGroup::Exchange(const Intent& mine) {
  const std::string bytes = mine.Encode();
  RM_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      communicator_.AllgatherBytes(std::as_bytes(std::span(bytes)), kIntents));
  std::vector<Intent> intents;
  joined_.clear();
  for (const std::string& one : all) {
    RM_ASSIGN_OR_RETURN(intents.emplace_back(), Intent::Decode(one));
    joined_.push_back(intents.back().joined);
  }
  return intents;
}

absl::StatusOr<JoinGroup::Intent> JoinGroup::Agree(const std::vector<Intent>& intents) {
  const auto active = [](const Intent& intent) { return !intent.joined; };
  const auto first = std::find_if(intents.begin(), intents.end(), active);
  const auto other = std::find_if(first, intents.end(), [&](const Intent& intent) {
    return active(intent) && intent.Encode() != first->Encode();
  });
  if (other == intents.end()) return *first;
  return absl::FailedPreconditionError(fmt::format("rank {} is in {}, rank {} in {}",
                                                   first - intents.begin(), first->Describe(),
                                                   other - intents.begin(), other->Describe()));
}

absl::Status JoinGroup::Sum(const Intent& intent, Elements values) {
  return communicator_.Allreduce(Reduction::kSum, values, values, intent.name);
}

absl::StatusOr<int> JoinGroup::Allreduce(Reduction reduction, ConstElements in, Elements out,
                                         std::string_view name) {
  absl::StatusOr<int> active;
  RM_RETURN_IF_ERROR(communicator_.Guard(name, [&] {
    active = Reduce(reduction, in, out, name);
    return active.status();
  }));
  return active;
}

absl::StatusOr<int> JoinGroup::Join() {
  absl::StatusOr<int> last;
  RM_RETURN_IF_ERROR(communicator_.Guard("a join", [&] {
    last = TakePart();
    return last.status();
  }));
  return last;
}

absl::StatusOr<int> JoinGroup::Reduce(Reduction reduction, ConstElements in, Elements out,
                                      std::string_view name) {
  if (reduction != Reduction::kSum && reduction != Reduction::kAverage) {
    return absl::InvalidArgumentError(
        fmt::format("{}: a {} has no value for a rank that has joined", name, NameOf(reduction)));
  }
  if (in.type() != out.type() || in.count() != out.count()) {
    return absl::InvalidArgumentError(fmt::format("{}: {} {} into {} {}", name, in.count(),
                                                  NameOf(in.type()), out.count(),
                                                  NameOf(out.type())));
  }
  const Intent mine{
      .reduction = reduction, .type = in.type(), .count = in.count(), .name = std::string(name)};
  RM_ASSIGN_OR_RETURN(const std::vector<Intent> intents, Exchange(mine));
  RM_RETURN_IF_ERROR(Agree(intents).status());
  const auto active = static_cast<int>(std::count_if(
      intents.begin(), intents.end(), [](const Intent& intent) { return !intent.joined; }));
  if (reduction == Reduction::kSum) {
    if (in.data() != out.data()) std::memmove(out.data(), in.data(), in.bytes().size());
    RM_RETURN_IF_ERROR(Sum(mine, out));
    return active;
  }
  std::vector<std::byte> memory(in.count() * SizeOf(WideTypeOf(in.type())));
  const Elements wide(WideTypeOf(in.type()), memory);
  const double scale = AverageScale(in.type(), communicator_.world());
  Widen(in, wide, scale);
  RM_RETURN_IF_ERROR(Sum(mine, wide));
  DivideAndNarrow(wide, active, out, scale);
  return active;
}

absl::StatusOr<int> JoinGroup::TakePart() {
  while (true) {
    const std::vector<bool> before = joined_;
    RM_ASSIGN_OR_RETURN(const std::vector<Intent> intents, Exchange({.joined = true}));
    if (std::find(joined_.begin(), joined_.end(), false) == joined_.end()) {
      joined_.clear();
      return LastOf(before);
    }
    RM_ASSIGN_OR_RETURN(const Intent intent, Agree(intents));
    const ElementType type =
        intent.reduction == Reduction::kAverage ? WideTypeOf(intent.type) : intent.type;
    std::vector<std::byte> memory(intent.count * SizeOf(type));
    const Elements values(type, memory);
    FillWithNothing(values);
    RM_RETURN_IF_ERROR(Sum(intent, values));
  }
}

// The highest rank that had not joined when all were last asked; any, where they never were.
int JoinGroup::LastOf(const std::vector<bool>& before) const {
  int last = communicator_.world() - 1;
  while (last > 0 && !before.empty() && before[static_cast<size_t>(last)]) --last;
  return last;
}

}  // namespace ringmaster::collectives
