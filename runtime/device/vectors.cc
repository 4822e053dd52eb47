#include "runtime/device/vectors.h"

#include <algorithm>
#include <string>

#include "common/env.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <unistd.h>

#include <sys/syscall.h>
#endif

namespace ringmaster::device {
namespace {

#if defined(__x86_64__)

// The kernel keeps room for tiles in the state of threads only of processes that ask for it.
bool GetsTiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool HasTiles() {
  constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kAmxBf16) != 0 &&
         (d & kAmxTile) != 0 && GetsTiles();
}

// How many kinds there are, from the first on. Tiles are asked for only where they are allowed.
int Has(int allowed) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")) return 1;
  return allowed > 2 && HasTiles() ? 3 : 2;
}

#else

int Has(int /*allowed*/) {
  return 0;
}

#endif

int Allowed() {
  const std::string most = env::GetString("RINGMASTER_MAX_VECTORS");
  if (most == "avx2") return 1;
  return most == "avx512" ? 2 : 3;
}

}  // namespace

bool MayUse(Vectors vectors) {
  static const int usable = [] {
    const int allowed = Allowed();
    return std::min(allowed, Has(allowed));
  }();
  return static_cast<int>(vectors) < usable;
}

}  // namespace ringmaster::device
