// The store's journal: an append-only file with one line per write.
//
//   {"crc32":"1c291ca3","write":{"op":"put",...}}\n
//
// The checksum (CRC-32 of ISO-HDLC, as in gzip) covers the bytes of the value of "write". A write
// is acknowledged only when its line is in the file whole, so a last line that is torn or does not
// match was never acknowledged: it is dropped and named. A bad line with good ones after it is
// damage, also where the newline before the last one is what is bad, and the file is refused.
//
// The journal is rewritten whole, atomically (temporary file, fsync, rename, fsync of the folder),
// when most of its lines describe states that are past.
//
// One process at a time: a lock on PATH.lock is held while the journal is open. Not thread-safe;
// the store serialises.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_JOURNAL_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file.h"
#include "operator/kube/types.h"

namespace ringmaster::kube::memory {

// When a write reaches the disk.
enum class Durability {
  kProcess,  // survives the end of the process, not of the machine: the kernel writes it out in its
             // own time
  kMachine,  // fsync before each write is acknowledged
};

class Journal {
 public:
  // Opens or creates the file, whose folder must exist, and calls `replay` with each write in
  // order. `torn`, if not null, is set to a description of the dropped last line, or to "".
  // kFailedPrecondition: another process holds the journal. kDataLoss: damage before the last line.
  // Any error of `replay` is returned with the line's number; the file is then unchanged.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(
      const std::string& path, Durability durability,
      const std::function<absl::Status(const Json&)>& replay, std::string* torn);

  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Appends one write. When it fails (kResourceExhausted on a full disk) the file is as before.
  // Should undoing it, or an fsync, fail too, what the file holds is unknown: then every later call
  // returns that first error.
  absl::Status Append(const Json& write);

  // Replaces the whole content. The old file stays when it fails.
  absl::Status Rewrite(const std::vector<Json>& writes);

  std::int64_t lines() const { return lines_; }

 private:
  Journal(std::string path, Durability durability, FileLock lock, UniqueFd file);

  absl::Status Replay(const std::function<absl::Status(const Json&)>& replay, std::string* torn);
  absl::Status Undo(const absl::Status& cause);

  const std::string path_;
  const Durability durability_;
  const FileLock lock_;
  UniqueFd file_;
  std::int64_t size_ = 0;  // bytes of whole lines
  std::int64_t lines_ = 0;
  absl::Status broken_;  // not OK: the first error after which the file cannot be trusted
};

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_JOURNAL_H_
