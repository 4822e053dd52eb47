#include "runtime/collectives/bench/workload.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "runtime/collectives/ordered_sum.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives::bench {
namespace {

constexpr char kName[] = "bench";
constexpr int kShardsPerRank = 4;
constexpr std::byte kWrong{0xff};

template <typename T>
size_t IndexOf(const std::vector<T>& all, const T& one) {
  return static_cast<size_t>(std::find(all.begin(), all.end(), one) - all.begin());
}

ElementType TypeOf(const std::string& name) {
  constexpr ElementType kTypes[] = {ElementType::kF32,  ElementType::kF64, ElementType::kF16,
                                    ElementType::kBF16, ElementType::kI64, ElementType::kI32,
                                    ElementType::kU8};
  return kTypes[IndexOf(TypeNames(), name)];
}

Reduction ReductionOf(const std::string& name) {
  constexpr Reduction kReductions[] = {Reduction::kSum, Reduction::kAverage, Reduction::kMin,
                                       Reduction::kMax, Reduction::kProduct};
  return kReductions[IndexOf(ReductionNames(), name)];
}

}  // namespace

// Fills in a workload; one member function for each operation.
class WorkloadBuilder {
 public:
  WorkloadBuilder(Communicator& communicator, const Options& options, size_t bytes)
      : comm_(communicator),
        type_(TypeOf(options.type)),
        reduction_(ReductionOf(options.redop)),
        root_(options.root),
        shards_(options.shards > 0 ? options.shards : kShardsPerRank * comm_.world()),
        rank_(static_cast<size_t>(comm_.rank())),
        ranks_(static_cast<size_t>(comm_.world())),
        all_(bytes / SizeOf(type_)),
        part_(all_ / ranks_),
        parts_(ranks_, part_) {
    w_.first_.resize(all_ * SizeOf(type_));
    w_.second_.resize(w_.first_.size());
    w_.count_ = part_;
    w_.bytes_ = part_ * ranks_ * SizeOf(type_);
    w_.input_ = MovedBy(type_, comm_.rank());
  }

  absl::StatusOr<Workload> Build(const std::string& op) {
    using Step = void (WorkloadBuilder::*)();
    constexpr Step kSteps[] = {&WorkloadBuilder::Allreduce, &WorkloadBuilder::ReduceScatter,
                               &WorkloadBuilder::Allgather, &WorkloadBuilder::Broadcast,
                               &WorkloadBuilder::Reduce,    &WorkloadBuilder::Gather,
                               &WorkloadBuilder::Scatter,   &WorkloadBuilder::AllToAll,
                               &WorkloadBuilder::Barrier,   &WorkloadBuilder::SendReceive};
    if (op == "send-receive" && ranks_ < 2)
      return absl::InvalidArgumentError("--ranks: one alone has nobody to send to");
    const size_t index = IndexOf(OperationNames(), op);
    if (index < std::size(kSteps)) {
      (this->*kSteps[index])();
      return std::move(w_);
    }
    if (type_ == ElementType::kF32) return Sum<float>();
    if (type_ == ElementType::kF64) return Sum<double>();
    return absl::InvalidArgumentError("--type: the ordered sum is measured of float and double");
  }

 private:
  bool is_root() const { return comm_.rank() == root_; }
  Elements First(size_t count) { return Elements(type_, w_.first_).Slice(0, count); }
  Elements Second(size_t count) { return Elements(type_, w_.second_).Slice(0, count); }
  Elements MyPart() { return Elements(type_, w_.second_).Slice(rank_ * part_, part_); }

  void Whole() {
    w_.count_ = all_;
    w_.bytes_ = all_ * SizeOf(type_);
  }
  void Combine(size_t count, size_t start) {
    w_.input_ = Contribution(type_, reduction_, comm_.rank());
    w_.expected_ = {{0, count, Combined(type_, reduction_, comm_.world()), start}};
  }
  void ExpectPartsOfAll(size_t start) {
    for (size_t r = 0; r < ranks_; ++r)
      w_.expected_.push_back({r * part_, part_, MovedBy(type_, static_cast<int>(r)), start});
  }

  void Allreduce() {
    Whole();
    Combine(all_, 0);
    w_.out_of_place_ = Place{First(all_), Second(all_)};
    w_.in_place_ = Place{Second(all_), Second(all_)};
    w_.call_ = [kept = Captured()](const Place& p) {
      return kept.comm->Allreduce(kept.reduction, p.in, p.out, kName);
    };
  }
  void ReduceScatter() {
    Combine(part_, rank_ * part_);
    w_.out_of_place_ = Place{First(part_ * ranks_), Second(part_)};
    w_.in_place_ = Place{Second(part_ * ranks_), MyPart()};
    w_.call_ = [kept = Captured()](const Place& p) {
      return kept.comm->ReduceScatter(kept.reduction, p.in, kept.parts, p.out, kName);
    };
  }
  void Allgather() {
    ExpectPartsOfAll(0);
    w_.out_of_place_ = Place{First(part_), Second(part_ * ranks_)};
    w_.in_place_ = Place{MyPart(), Second(part_ * ranks_)};
    w_.call_ = [kept = Captured()](const Place& p) {
      return kept.comm->Allgather(p.in, kept.parts, p.out, kName);
    };
  }
  void Broadcast() {
    Whole();
    if (!is_root()) w_.input_.clear();
    w_.expected_ = {{0, all_, MovedBy(type_, root_), 0}};
    w_.in_place_ = Place{Second(all_), Second(all_)};
    w_.call_ = [kept = Captured()](const Place& p) {
      return kept.comm->Broadcast(kept.root, p.out, kName);
    };
  }
  void Reduce() {
    Whole();
    Combine(all_, 0);
    if (!is_root()) w_.expected_.clear();
    w_.out_of_place_ = Place{First(all_), Second(all_)};
    w_.in_place_ = Place{Second(all_), Second(all_)};
    w_.call_ = [kept = Captured()](const Place& p) {
      return kept.comm->Reduce(kept.reduction, kept.root, p.in, p.out, kName);
    };
  }
  void Gather() {
    if (is_root()) ExpectPartsOfAll(0);
    w_.out_of_place_ = Place{First(part_), Second(part_ * ranks_)};
    w_.in_place_ = Place{MyPart(), Second(part_ * ranks_)};
    w_.call_ = [kept = Captured()](const Place& p) {
      return kept.comm->Gather(kept.root, p.in, kept.parts, p.out, kName);
    };
  }
  void Scatter() {
    w_.expected_ = {{0, part_, MovedBy(type_, root_), rank_ * part_}};
    w_.out_of_place_ = Place{First(part_ * ranks_), Second(part_)};
    w_.in_place_ = Place{Second(part_ * ranks_), MyPart()};
    w_.call_ = [kept = Captured()](const Place& p) {
      return kept.comm->Scatter(kept.root, p.in, kept.parts, p.out, kName);
    };
  }
  void AllToAll() {
    ExpectPartsOfAll(rank_ * part_);
    w_.out_of_place_ = Place{First(part_ * ranks_), Second(part_ * ranks_)};
    w_.in_place_ = Place{Second(part_ * ranks_), Second(part_ * ranks_)};
    w_.call_ = [kept = Captured()](const Place& p) {
      return kept.comm->AllToAll(p.in, kept.parts, p.out, kept.parts, kName);
    };
  }
  void Barrier() {
    w_.count_ = w_.bytes_ = 0;
    w_.out_of_place_ = Place{};
    w_.call_ = [kept = Captured()](const Place&) { return kept.comm->Barrier(kName); };
  }

  // To the next rank, and as much from the one before.
  void SendReceive() {
    Whole();
    const int next = RingRank(comm_.rank(), 1, comm_.world());
    const int previous = RingRank(comm_.rank(), -1, comm_.world());
    w_.expected_ = {{0, all_, MovedBy(type_, previous), 0}};
    w_.out_of_place_ = Place{First(all_), Second(all_)};
    w_.call_ = [comm = &comm_, next, previous](const Place& p) {
      return comm->SendReceive(next, p.in, previous, p.out, kName);
    };
  }

  // Each rank adds its share of the shards beforehand; what is timed is the ranks' part.
  template <typename T>
  absl::StatusOr<Workload> Sum() {
    Whole();
    reduction_ = Reduction::kSum;
    w_.input_.clear();
    w_.expected_ = {{0, all_, Combined(type_, reduction_, shards_), 0}};
    w_.out_of_place_ = Place{{}, Second(all_)};
    auto sum = std::make_shared<OrderedSum<T>>(shards_, all_);
    const ShardRange owned = OwnedShards(shards_, comm_.world(), comm_.rank());
    for (int shard = owned.begin; shard < owned.end; ++shard) {
      Fill(First(all_), Contribution(type_, reduction_, shard), 0);
      RM_RETURN_IF_ERROR(sum->Add(shard, {reinterpret_cast<const T*>(w_.first_.data()), all_}));
    }
    w_.call_ = [sum, comm = &comm_](const Place& p) {
      return sum->Reduce(*comm, {reinterpret_cast<T*>(p.out.data()), p.out.count()}, kName);
    };
    return std::move(w_);
  }

  // What the calls keep of this builder.
  struct Kept {
    Communicator* comm;
    Reduction reduction;
    int root;
    std::vector<size_t> parts;
  };
  Kept Captured() const { return {&comm_, reduction_, root_, parts_}; }

  Workload w_;
  Communicator& comm_;
  const ElementType type_;
  Reduction reduction_;
  const int root_;
  const int shards_;  // of an ordered sum
  const size_t rank_;
  const size_t ranks_;
  const size_t all_;   // elements
  const size_t part_;  // elements of one rank's part
  const std::vector<size_t> parts_;
};

absl::StatusOr<Workload> Workload::Create(Communicator& communicator, const Options& options,
                                          size_t bytes) {
  return WorkloadBuilder(communicator, options, bytes).Build(options.op);
}

void Workload::Prepare(const Place& place) {
  std::ranges::fill(place.out.bytes(), kWrong);
  if (!input_.empty()) Fill(place.in, input_, 0);
}

void Workload::Clear(const Place& place) {
  std::ranges::fill(place.out.bytes(), std::byte{0});
  std::ranges::fill(place.in.bytes(), std::byte{0});
}

uint64_t Workload::CountWrong(const Place& place) const {
  uint64_t wrong = 0;
  for (const Expectation& e : expected_)
    wrong += bench::CountWrong(place.out.Slice(e.offset, e.count), e.pattern, e.start);
  return wrong;
}

const std::vector<std::string>& OperationNames() {
  static const std::vector<std::string> names = {
      "allreduce", "reduce-scatter", "allgather", "broadcast",    "reduce",     "gather",
      "scatter",   "all-to-all",     "barrier",   "send-receive", "ordered-sum"};
  return names;
}

const std::vector<std::string>& TypeNames() {
  static const std::vector<std::string> names = {"float", "double", "half", "bfloat16",
                                                 "int64", "int32",  "uint8"};
  return names;
}

const std::vector<std::string>& ReductionNames() {
  static const std::vector<std::string> names = {"sum", "avg", "min", "max", "prod"};
  return names;
}

bool Reduces(const std::string& op) {
  return op == "allreduce" || op == "reduce-scatter" || op == "reduce";
}

bool HasRoot(const std::string& op) {
  return op == "broadcast" || op == "reduce" || op == "gather" || op == "scatter";
}

}  // namespace ringmaster::collectives::bench
