// What every implementation of kube::Client must do.
//
// The tests are parameterised over a backend; a back end's test program lists
// kClientConformanceSources (CMake), and says what it brings up:
//
//   INSTANTIATE_TEST_SUITE_P(Memory, ClientConformance, ::testing::Values(Backend{"memory",
//   MakeMemoryBackend}),
//                            BackendName);
//
// Each test works in a namespace of its own that the backend makes. What a server does in the
// background (garbage collection) is waited for, with a deadline, so that the same test holds for
// both.
#ifndef RINGMASTER_OPERATOR_KUBE_CONFORMANCE_CLIENT_CONFORMANCE_H_
#define RINGMASTER_OPERATOR_KUBE_CONFORMANCE_CLIENT_CONFORMANCE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/client.h"
#include "operator/kube/object.h"

namespace ringmaster::kube::conformance {

// One running server or store. Destroyed after each test.
class ServerUnderTest {
 public:
  virtual ~ServerUnderTest() = default;
  virtual Client& client() = 0;
  // A namespace that exists and that no other test uses.
  virtual std::string FreshNamespace() = 0;
  // Makes the server forget its watch history and list snapshots. False when it cannot be made to:
  // the tests of expiry are then not run.
  virtual bool ExpireHistory() = 0;
  // Whether it collects what has lost its owner. A bare API server does not: the tests of that are
  // then not run.
  virtual bool HasControllers() = 0;
  // A version of which the server has forgotten what came after it, for TrainingJobs: `old`, by
  // now, or an older one.
  virtual std::string ForgottenVersion(const std::string& old) = 0;
};

struct Backend {
  std::string name;
  std::function<std::unique_ptr<ServerUnderTest>()> make;
};

// For the names of the tests, which would else hold addresses.
inline void PrintTo(const Backend& backend, std::ostream* out) {
  *out << backend.name;
}

inline std::string BackendName(const ::testing::TestParamInfo<Backend>& info) {
  return info.param.name;
}

// What the test files share.
class ClientConformance : public ::testing::TestWithParam<Backend> {
 protected:
  static constexpr std::chrono::seconds kDeadline{60};

  void SetUp() override;

  Client& client() { return server_->client(); }
  ObjectKey Key(const std::string& name) const { return {ns_, name}; }

  Json ConfigMap(const std::string& name, const Json& data = Json::object()) const;
  Json Job(const std::string& name) const;
  // A pod that no scheduler looks at. `node` is where it is bound, "" for nowhere.
  Json Pod(const std::string& name, const std::string& node = "") const;

  // The value, or the end of the test: gtest reports an escaping exception as its failure.
  template <typename T>
  static T Must(absl::StatusOr<T> result) {
    if (!result.ok()) throw std::runtime_error(result.status().ToString());
    return *std::move(result);
  }

  // Calls that must succeed.
  Json Create(const ResourceType& type, const Json& object);
  Json Get(const ResourceType& type, const std::string& name);
  void Delete(const ResourceType& type, const std::string& name, const DeleteOptions& options = {});
  bool Exists(const ResourceType& type, const std::string& name);

  // Waits until it is so, which a server's background work may delay.
  void EventuallyGone(const ResourceType& type, const std::string& name);
  void Eventually(const std::string& what, const std::function<bool()>& holds);

  // The next event that is no bookmark.
  WatchEvent NextEvent(WatchStream& stream);
  std::string ListVersion(const ResourceType& type);
  std::unique_ptr<WatchStream> Watch(const ResourceType& type, const std::string& resource_version,
                                     const std::string& selector = "");

  std::unique_ptr<ServerUnderTest> server_;
  std::string ns_;
};

}  // namespace ringmaster::kube::conformance

#endif  // RINGMASTER_OPERATOR_KUBE_CONFORMANCE_CLIENT_CONFORMANCE_H_
