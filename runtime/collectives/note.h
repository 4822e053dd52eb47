// A few words about an operation, for messages; made in each call of one, so they take nothing from
// the heap.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_NOTE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_NOTE_H_

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "runtime/collectives/operation.h"

namespace ringmaster::collectives {

class Note {
 public:
  // The words, in this object's memory. What is behind kMaxDescriptionBytes is cut off: peers are
  // told no more.
  template <typename... Arguments>
  std::string_view Write(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    const size_t size =
        fmt::format_to_n(text_, sizeof(text_), format, std::forward<Arguments>(arguments)...).size;
    return {text_, std::min(size, sizeof(text_))};
  }

 private:
  char text_[kMaxDescriptionBytes];
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_NOTE_H_
