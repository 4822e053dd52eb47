// Gloo's allreduce of f32, in place, by the benchmark's loop, over its TCP transport on loopback.
// Starts its ranks itself; they meet in a folder of their own.
//
//   gloo_allreduce 2 ring 4:1000,1048576:50
//
// Algorithms: ring and bcube (gloo::allreduce), and the classes with buffers of their own:
// halving_doubling, ring_chunked, and both "..._polling": their threads poll the sockets.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>

#include "tests/bench/collectives/programs/points.h"

using namespace ringmaster::bench;

namespace {

using Options = gloo::AllreduceOptions;

std::function<void()> CallOf(const std::string& algorithm,
                             const std::shared_ptr<gloo::Context>& context,
                             std::vector<float>& values) {
  const std::vector<float*> pointers = {values.data()};
  const int count = static_cast<int>(values.size());
  std::shared_ptr<gloo::Algorithm> with_buffers;
  if (algorithm.starts_with("halving_doubling"))
    with_buffers =
        std::make_shared<gloo::AllreduceHalvingDoubling<float>>(context, pointers, count);
  if (algorithm.starts_with("ring_chunked"))
    with_buffers = std::make_shared<gloo::AllreduceRingChunked<float>>(context, pointers, count);
  if (with_buffers != nullptr) return [with_buffers] { with_buffers->run(); };

  auto options = std::make_shared<Options>(context);
  options->setAlgorithm(algorithm == "bcube" ? Options::Algorithm::BCUBE
                                             : Options::Algorithm::RING);
  options->setOutput(values.data(), values.size());
  options->setReduceFunction(
      [](void* out, const void* a, const void* b, size_t n) { gloo::sum<float>(out, a, b, n); });
  return [options] { gloo::allreduce(*options); };
}

void RunRank(int rank, int ranks, const std::string& algorithm, const std::vector<Point>& points,
             const std::string& folder) {
  gloo::transport::tcp::attr attribute;
  attribute.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attribute);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  gloo::rendezvous::FileStore store(folder);
  context->connectFullMesh(store, device);
  if (algorithm.ends_with("_polling")) {
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != rank) context->getPair(peer)->setSync(true, true);
    }
  }
  for (const Point& point : points) {
    std::vector<float> values(point.bytes / sizeof(float));
    const std::function<void()> call = CallOf(algorithm, context, values);
    std::vector<float> figures(2);
    const std::function<void()> add = CallOf(algorithm, context, figures);
    Fill(rank, values);
    call();
    const auto wrong = static_cast<float>(CountWrong(ranks, values));
    std::fill(values.begin(), values.end(), 0.0f);
    const Timed timed = TimeOf(point, add, call);
    figures = {static_cast<float>(timed.seconds), wrong};
    add();
    if (rank == 0) Print(point, figures[0] / ranks, figures[1], timed.step_ns);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: gloo_allreduce RANKS ALGORITHM BYTES:CALLS,...\n");
    return 64;
  }
  const int ranks = std::atoi(argv[1]);
  const std::vector<Point> points = ParsePoints(argv[3]);
  char folder[] = "/tmp/gloo_allreduce.XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    std::perror(folder);
    return 1;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    int code = 1;
    try {
      RunRank(rank, ranks, argv[2], points, folder);
      code = 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    }
    std::fflush(stdout);
    _exit(code);
  }
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed += status != 0 ? 1 : 0;
  std::filesystem::remove_all(folder);
  return failed == 0 ? 0 : 1;
}
