// A piece of memory that processes of one machine share: a file of /dev/shm under a random name,
// which its maker takes away when the others have mapped it.
//
// The maker holds a lock on the file for as long as it has a name. A file whose maker died in
// between has no lock, which is how SweepAbandoned knows it, whatever process namespaces the two
// live in: nothing stays in /dev/shm for longer than until the next round of any job.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_SEGMENT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_SEGMENT_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/file.h"

namespace ringmaster::collectives::shm {

// What every file's name begins with.
inline constexpr char kNamePrefix[] = "ringmaster-";

class Segment {
 public:
  // Makes one of `bytes` zero bytes, all of which are there: no later access can fail for want of
  // memory. kResourceExhausted: /dev/shm has not that much room; else the system's error.
  static absl::StatusOr<std::unique_ptr<Segment>> Make(size_t bytes);

  enum class Access { kWrite, kRead };

  // Maps the one of that name. kNotFound: there is none in this process's /dev/shm;
  // kInvalidArgument: not a name that Make gives, or another size.
  static absl::StatusOr<std::unique_ptr<Segment>> Open(const std::string& name, size_t bytes,
                                                       Access access = Access::kWrite);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Takes the name away: the memory lives on in those who have mapped it. No effect on a segment
  // that was opened, or the second time.
  void Unlink();
  bool has_name() const { return locked_.valid(); }

  const std::string& name() const { return name_; }
  // Not to be written to where it was opened for reading.
  std::span<std::byte> memory() const { return memory_; }

 private:
  explicit Segment(std::string name) : name_(std::move(name)) {}
  absl::Status Map(int fd, size_t bytes, Access access);

  const std::string name_;
  std::span<std::byte> memory_;
  UniqueFd locked_;  // the maker's, while the file has a name
};

// Removes what makers left behind that were killed. Best effort; thread-safe.
void SweepAbandoned();

// What tells machines, their restarts, and the network namespaces of a machine apart, of which the
// calling thread's counts: namespaces stand for machines where a network is simulated. Empty where
// it cannot be read.
std::string MachineId();

}  // namespace ringmaster::collectives::shm

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_SEGMENT_H_
