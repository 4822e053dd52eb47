// One rank of a group of processes that sum an array. No job and no trainer: whoever starts the
// processes tells each of them who is there.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <ringmaster/collectives/communicator.h>
#include <ringmaster/collectives/transport/tcp/listener.h>

using ringmaster::collectives::Communicator;
using ringmaster::collectives::CommunicatorOptions;
using ringmaster::collectives::Reduction;
using ringmaster::collectives::tcp::Listener;

absl::Status Sum(CommunicatorOptions options) {
  const auto rank = static_cast<size_t>(options.rank);
  if (rank >= options.members.size()) return absl::InvalidArgumentError("no address of this rank");
  RM_ASSIGN_OR_RETURN(const auto listener, Listener::Open(options.members[rank].address));
  RM_ASSIGN_OR_RETURN(const auto group, Communicator::Create(options, *listener));
  std::vector<float> numbers(1'000'000, static_cast<float>(rank) + 1);
  RM_RETURN_IF_ERROR(group->Allreduce(Reduction::kSum, numbers, numbers, "numbers"));
  std::printf("rank %d of %d: %g\n", group->rank(), group->world(),
              static_cast<double>(numbers.back()));
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s RANK KEY ADDRESS...   (host:port of every rank)\n", argv[0]);
    return 2;
  }
  CommunicatorOptions options;
  options.job = "sum";
  options.round = 1;
  options.rank = std::atoi(argv[1]);
  options.key = argv[2];
  options.connect_timeout = options.operation_timeout = std::chrono::seconds(10);
  // A member's name is whatever tells it from the others: on a cluster, its pod's.
  for (int i = 3; i < argc; ++i) options.members.push_back({argv[i], argv[i]});
  const absl::Status status = Sum(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", ringmaster::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
