// How a TcpTransport whose round has failed tells its peers why, and hears it where a peer says so
// beside its link.
#include <algorithm>

#include "runtime/collectives/transport/tcp/tcp_transport.h"

namespace ringmaster::collectives::tcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long a failing rank tries to get the cause out to its peers; part of the 100 ms that Abort
// may take.
constexpr milliseconds kTelling{60};
// Of that, how long it waits for its words to get through on the connections that there are.
constexpr milliseconds kFirstWay{10};
// How much longer it tries when it leaves the round, where a connection of their own that is to be
// encrypted was not ready in that time.
constexpr milliseconds kTellingOn{500};

}  // namespace

void TcpTransport::TellPeers() {
  const Failure cause = failure();
  if (cause.status.ok() || told_) return;
  told_ = true;
  AdoptArrivals(steady_clock::now());
  for (const auto& p : peers_) {
    if (p == nullptr) continue;
    p->link.DropWork(/*keep_partial=*/p->link.attached());
    if (p->link.attached() && !p->link.left()) SayWhy(p->link);
  }
  KeepTelling(kTelling, /*on_connections=*/true);
  for (const auto& p : peers_) {
    if (p == nullptr) continue;
    p->link.DropWork(/*keep_partial=*/false);
    if (p->dialer == nullptr || connections_.encryption != Encryption::kNone) continue;
    p->dialer->Leave(AbortFrame(membership_.round, cause));
    p->dialer.reset();
  }
}

void TcpTransport::TellOnLeaving() {
  TellPeers();
  KeepTelling(kTellingOn, /*on_connections=*/false);
  for (const auto& p : peers_) {
    if (p != nullptr) p->dialer.reset();
  }
}

void TcpTransport::SayWhy(Link& link) {
  const Failure cause = failure();
  FrameHeader header = Header(FrameType::kAbort);
  header.tag = AbortTag(cause);
  link.QueueControl(header, Message(cause.status));
}

// Until all have been told, or it has taken too long.
void TcpTransport::KeepTelling(milliseconds most, bool on_connections) {
  const SteadyTime start = steady_clock::now();
  bool first_way = on_connections;
  for (SteadyTime now = start; now < start + most; now = steady_clock::now()) {
    if (first_way && now >= start + kFirstWay) {
      first_way = false;
      DialStuck(SteadyTime::max());  // as long as this goes on, here or when it leaves
    }
    polled_.clear();
    bool stuck = false;
    for (int rank = 0; rank < world(); ++rank) {
      if (rank == membership_.rank) continue;
      Peer& p = peer(rank);
      if (p.dialer != nullptr) DialToTell(rank);
      TellOn(p.link, now);
      if (p.last_words != nullptr) TellOn(*p.last_words, now);
      stuck = stuck || p.link.IsStuck();
    }
    if (polled_.empty() && !(first_way && stuck)) break;
    const auto until = start + (first_way && stuck ? kFirstWay : most);
    const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
    poll(polled_.data(), polled_.size(), static_cast<int>(std::max<int64_t>(left, 0)));
  }
}

// What is said there is recorded. Where it does not come to that, the peer's link tells of its end.
void TcpTransport::HearLastWords(SteadyTime now) {
  for (const auto& p : peers_) {
    if (p == nullptr || p->last_words == nullptr) continue;
    if (!p->last_words->Read(now).ok()) p->last_words.reset();
  }
}

Link& TcpTransport::NewLastWords(int rank) {
  FrameHandler* const handler = this;
  peer(rank).last_words = std::make_unique<Link>(rank, handler);
  return *peer(rank).last_words;
}

// A peer that has not asked for what came before does not look for more, but sees the end.
void TcpTransport::TellOn(Link& link, SteadyTime now) {
  if (!link.has_queued()) return;
  if (!link.Write(now).ok()) {
    link.DropWork(/*keep_partial=*/false);
  } else if (link.has_queued()) {
    polled_.push_back({link.fd(), POLLOUT, 0});
  } else {
    link.EndWriting();
  }
}

void TcpTransport::DialStuck(SteadyTime deadline) {
  for (int rank = 0; rank < world(); ++rank) {
    if (rank == membership_.rank || !peer(rank).link.IsStuck()) continue;
    peer(rank).dialer = std::make_unique<Dialer>(membership_, rank, acceptor_.address(), deadline,
                                                 connections_.encryption);
  }
}

// For peers that the link does not reach, and those in the handshake with this rank: they would see
// nothing but the end of the connection, and blame it. The handshake goes on, as long as the peer
// answers.
void TcpTransport::DialToTell(int rank) {
  Peer& p = peer(rank);
  const SteadyTime now = steady_clock::now();
  auto connection = p.dialer->Step(now);
  const pollfd interest = p.dialer->Interest();
  if (connection.ok() && !connection->has_value() && interest.fd >= 0) {
    polled_.push_back(interest);
    return;
  }
  if (connection.ok() && connection->has_value()) {
    p.link.DropWork(/*keep_partial=*/false);
    Link& link = NewLastWords(rank);
    link.Attach(std::move((*connection)->fd), now, std::move((*connection)->tls));
    SayWhy(link);
  } else if (!connection.ok()) {
    p.dialer->Leave(AbortFrame(membership_.round, failure()));  // its time was up, say
  }
  p.dialer.reset();
}

}  // namespace ringmaster::collectives::tcp
