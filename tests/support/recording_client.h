// A client that writes down every change it is asked to make, and can be told to fail.
//
// It stands between the operator and the memory store in the scenarios: what it prints is what the
// operator did, and an operator that is killed is one whose client answers no more from some call
// on. Not thread-safe: the scenarios run the loop on one thread.
#ifndef RINGMASTER_TESTS_SUPPORT_RECORDING_CLIENT_H_
#define RINGMASTER_TESTS_SUPPORT_RECORDING_CLIENT_H_

#include <functional>
#include <map>
#include <string>

#include "operator/kube/client.h"

namespace ringmaster::testing {

class RecordingClient : public kube::Client {
 public:
  // `inner` must outlive this. Lines are appended to `log`; `died` is told when the operator has.
  RecordingClient(kube::Client& inner, std::string& log, std::function<void()> died)
      : inner_(inner), log_(log), died_(std::move(died)) {}

  // The n-th change from now (1 is the next) fails with `error` and does nothing; where
  // `answer_lost` is set it is made, and only the answer is an error.
  void FailCall(int n, absl::Status error, bool answer_lost);
  // The operator dies at the n-th change from now: before it, so that it is not made, or after it,
  // so that nobody hears that it was. Nothing is answered from then on, and watches tell nothing
  // more, until Revive.
  void DieBeforeCall(int n) { die_before_ = calls_ + n; }
  void DieAfterCall(int n) { die_after_ = calls_ + n; }
  bool dead() const { return dead_; }
  void Revive() { dead_ = false; }

  // How often each pod was created, by name: more than once is a bug.
  const std::map<std::string, int>& created() const { return created_; }

  absl::StatusOr<kube::Json> Get(const kube::ResourceType& type,
                                 const kube::ObjectKey& key) override;
  absl::StatusOr<kube::ObjectList> List(const kube::ResourceType& type, std::string_view ns,
                                        const kube::ListOptions& options) override;
  absl::StatusOr<std::unique_ptr<kube::WatchStream>> Watch(
      const kube::ResourceType& type, std::string_view ns,
      const kube::WatchOptions& options) override;
  absl::StatusOr<kube::Json> Create(const kube::ResourceType& type,
                                    const kube::Json& object) override;
  absl::StatusOr<kube::Json> Update(const kube::ResourceType& type,
                                    const kube::Json& object) override;
  absl::StatusOr<kube::Json> Patch(const kube::ResourceType& type, const kube::ObjectKey& key,
                                   const kube::Json& patch) override;
  absl::StatusOr<kube::Json> PatchStatus(const kube::ResourceType& type, const kube::ObjectKey& key,
                                         const kube::Json& status,
                                         std::string_view resource_version) override;
  absl::StatusOr<kube::Json> Apply(const kube::ResourceType& type, const kube::Json& object,
                                   const kube::ApplyOptions& options) override;
  absl::Status Delete(const kube::ResourceType& type, const kube::ObjectKey& key,
                      const kube::DeleteOptions& options) override;

 private:
  class Stream;

  void Die(const std::string& line, const char* when);
  // Runs one change under the failure that is due, and prints what came of it.
  template <typename Call>
  auto Change(const std::string& line, Call call) -> decltype(call());

  kube::Client& inner_;
  std::string& log_;
  const std::function<void()> died_;
  std::map<std::string, int> created_;
  int calls_ = 0;
  int fail_at_ = 0;
  int die_before_ = 0;
  int die_after_ = 0;
  bool answer_lost_ = false;
  bool dead_ = false;
  absl::Status error_;
};

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_SUPPORT_RECORDING_CLIENT_H_
