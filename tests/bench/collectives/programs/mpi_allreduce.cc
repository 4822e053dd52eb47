// Open MPI's allreduce of f32, in place, by the benchmark's loop. Run by mpirun, whose parameters
// choose the algorithm.
//
//   mpirun -n 2 mpi_allreduce 4:1000,1048576:50
#include <algorithm>
#include <cstdio>
#include <mpi.h>
#include <vector>

#include "tests/bench/collectives/programs/points.h"

using namespace ringmaster::bench;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 2) {
    std::fprintf(stderr, "usage: mpi_allreduce BYTES:CALLS,...\n");
    MPI_Abort(MPI_COMM_WORLD, 64);
  }
  for (const Point& point : ParsePoints(argv[1])) {
    std::vector<float> values(point.bytes / sizeof(float));
    const auto call = [&] {
      MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT,
                    MPI_SUM, MPI_COMM_WORLD);
    };
    Fill(rank, values);
    call();
    double figures[2] = {0, static_cast<double>(CountWrong(ranks, values))};
    std::fill(values.begin(), values.end(), 0.0f);
    const Timed timed = TimeOf(
        point, [] { MPI_Barrier(MPI_COMM_WORLD); }, call);
    figures[0] = timed.seconds;
    MPI_Allreduce(MPI_IN_PLACE, figures, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) Print(point, figures[0] / ranks, figures[1], timed.step_ns);
  }
  MPI_Finalize();
  return 0;
}
