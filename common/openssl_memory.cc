// OpenSSL's memory in programs that train: the C library's heap, but small blocks are kept by the
// thread that frees them. OpenSSL 3.0 takes 40 bytes whenever it looks for a record of TLS, and a
// step is to take nothing from the heap. It takes other functions only for a whole process and
// before its first allocation, so this is for programs, and not for libraries that others link.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <openssl/crypto.h>

// Sanitizers are to see each block.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

// Bytes of every block that is kept, whatever was asked for.
constexpr size_t kSmall = 64;

// Before each block.
struct alignas(std::max_align_t) Header {
  size_t bytes;  // of the block
};

// What this thread keeps. OpenSSL frees what it has of a thread after the thread's own objects, so
// this one is never destroyed, but emptied and closed.
struct Kept {
  std::array<Header*, 16> blocks{};
  size_t count = 0;
  bool is_closed = false;
};
constinit thread_local Kept kept;

struct Closer {
  ~Closer() {
    kept.is_closed = true;
    while (kept.count > 0) std::free(kept.blocks[--kept.count]);
  }
};

void* Allocate(size_t bytes, const char* /*file*/, int /*line*/) {
  if (bytes == 0) return nullptr;
  if (bytes <= kSmall && kept.count > 0) return kept.blocks[--kept.count] + 1;
  const size_t room = std::max(bytes, kSmall);
  if (room > SIZE_MAX - sizeof(Header)) return nullptr;
  auto* const header = static_cast<Header*>(std::malloc(sizeof(Header) + room));
  if (header == nullptr) return nullptr;
  header->bytes = room;
  return header + 1;
}

void Free(void* block, const char* /*file*/, int /*line*/) {
  if (block == nullptr) return;
  Header* const header = static_cast<Header*>(block) - 1;
  if (header->bytes != kSmall || kept.is_closed || kept.count == kept.blocks.size())
    return std::free(header);
  thread_local Closer closer;
  kept.blocks[kept.count++] = header;
}

void* Reallocate(void* block, size_t bytes, const char* file, int line) {
  if (block == nullptr) return Allocate(bytes, file, line);
  if (bytes == 0) {
    Free(block, file, line);
    return nullptr;
  }
  const size_t before = (static_cast<const Header*>(block) - 1)->bytes;
  if (bytes <= before) return block;
  void* const larger = Allocate(bytes, file, line);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, block, before);
  Free(block, file, line);
  return larger;
}

[[maybe_unused]] const int taken = CRYPTO_set_mem_functions(Allocate, Reallocate, Free);

}  // namespace

#endif
