// The client's conformance suite against the memory store.
#include <fmt/format.h>

#include "operator/kube/conformance/client_conformance.h"
#include "operator/kube/memory/store.h"

namespace ringmaster::kube::conformance {
namespace {

class MemoryServer : public ServerUnderTest {
 public:
  MemoryServer() : store_(*memory::MemoryStore::Open({})) {}

  Client& client() override { return *store_; }
  std::string FreshNamespace() override { return fmt::format("test-{}", ++namespaces_); }
  bool ExpireHistory() override {
    store_->ExpireHistory();
    return true;
  }
  bool HasControllers() override { return true; }
  std::string ForgottenVersion(const std::string& old) override {
    store_->ExpireHistory();
    return old;
  }

 private:
  std::unique_ptr<memory::MemoryStore> store_;
  int namespaces_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Memory, ClientConformance,
                         ::testing::Values(Backend{
                             "memory", [] { return std::make_unique<MemoryServer>(); }}),
                         BackendName);

}  // namespace
}  // namespace ringmaster::kube::conformance
