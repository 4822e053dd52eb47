// Numbers as people read them. Pure.
#ifndef RINGMASTER_COMMON_TEXT_H_
#define RINGMASTER_COMMON_TEXT_H_

#include <cstdint>
#include <string>

namespace ringmaster {

// 9410 -> "9,410".
std::string WithCommas(int64_t number);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_TEXT_H_
