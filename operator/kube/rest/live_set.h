// What is under way on a transport, so that it can be ended. Thread-safe.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_LIVE_SET_H_
#define RINGMASTER_OPERATOR_KUBE_REST_LIVE_SET_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace ringmaster::kube::rest {

template <typename T>
class LiveSet {
 public:
  void Add(const std::shared_ptr<T>& one) {
    const std::lock_guard lock(mutex_);
    if (members_.size() >= sweep_at_) {
      std::erase_if(members_, [](const auto& member) { return member.expired(); });
      sweep_at_ = std::max<std::size_t>(64, members_.size() * 2);
    }
    members_.push_back(one);
  }

  // Those that somebody still holds.
  std::vector<std::shared_ptr<T>> All() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    for (const auto& member : members_) {
      if (auto one = member.lock()) all.push_back(std::move(one));
    }
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<T>> members_;  // some are gone; guarded by mutex_
  std::size_t sweep_at_ = 64;              // guarded by mutex_
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_LIVE_SET_H_
