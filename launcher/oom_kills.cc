#include "launcher/oom_kills.h"

#include <fstream>
#include <string>
#include <unistd.h>

namespace ringmaster::launcher {

std::int64_t OomKills(const std::filesystem::path& control_groups) {
  for (const char* name : {"memory.events", "memory/memory.oom_control"}) {  // versions 2 and 1
    std::ifstream file(control_groups / name);
    std::string key;
    for (std::int64_t value = 0; file >> key >> value;) {
      if (key == "oom_kill") return value;
    }
  }
  return 0;
}

std::int64_t OwnOomKills() {
  return ::getpid() == 1 ? OomKills() : 0;
}

}  // namespace ringmaster::launcher
