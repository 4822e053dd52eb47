// What execve and its kin take: words, and a null pointer behind them.
#ifndef RINGMASTER_COMMON_EXEC_ARGUMENTS_H_
#define RINGMASTER_COMMON_EXEC_ARGUMENTS_H_

#include <string>
#include <vector>

namespace ringmaster {

// Points into `words`, which must outlive it unchanged. Made before a fork: its child, which has
// none of the threads that may have held the allocator's lock, may not allocate.
inline std::vector<char*> ExecArguments(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_EXEC_ARGUMENTS_H_
