// Which of the kernel's congestion controls a connection between two ranks uses.
//
// A ring keeps one stream on each link, in bursts of an operation each, and usually shares that
// link with nothing else. BBR (Cardwell et al., ACM Queue 2016) learns the rate of a link from
// streams that last for seconds and lets no byte go before its time: over loopback, which has no
// queue to spare, a quarter to a half of the speed is lost, and a tenth at the end of a link of
// 2.5 Gbit/s that is used in both directions (docs/performance.md). Loss-based controls, Reno or
// Cubic, fill such links wholly.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_CONGESTION_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_CONGESTION_H_

#include <string>

#include "absl/status/status.h"

namespace ringmaster::collectives::tcp {

// What a round asks for: one of these, or a name that the kernel knows, such as "dctcp".
//  - auto: Reno where both ends have the same address or a loopback's, so are on one host, where
//    nothing can be congested; else the machine's, but for BBR, instead of which Cubic is taken, or
//    Reno where only root may choose that.
//  - machine: net.ipv4.tcp_congestion_control everywhere.
inline constexpr char kAutoCongestion[] = "auto";
inline constexpr char kMachineCongestion[] = "machine";

// Whether this process may use it. kInvalidArgument: the kernel has none of that name or keeps it
// for others, with those that it allows.
absl::Status CheckCongestion(const std::string& choice);

// Sets it for a connection. Where the kernel refuses, the machine's stays: a connection works with
// any.
void ChooseCongestion(int fd, const std::string& choice);

// What a socket uses, "" where it is no TCP socket.
std::string CongestionOf(int fd);

}  // namespace ringmaster::collectives::tcp

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_CONGESTION_H_
