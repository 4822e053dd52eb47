// The REST client against a real API server: the client's conformance suite, and what only such a
// server can show.
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/certificate.h"
#include "common/file.h"
#include "common/temporary_folder.h"
#include "operator/api/yaml.h"
#include "operator/kube/conformance/client_conformance.h"
#include "operator/kube/errors.h"
#include "operator/kube/rest/rest_client.h"

namespace ringmaster::kube::conformance {
namespace {

constexpr ResourceType kNamespace{"", "v1", "namespaces", "Namespace", false};
constexpr ResourceType kServiceAccount{"", "v1", "serviceaccounts", "ServiceAccount"};
constexpr ResourceType kTokenRequest{"", "v1", "serviceaccounts/default/token", "TokenRequest"};
constexpr ResourceType kDefinition{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                   "CustomResourceDefinition", false};
constexpr char kDefinitionFile[] = "crds/training.ringmaster.dev_trainingjobs.yaml";
constexpr std::chrono::seconds kPatience{60};

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

void Await(const std::string& what, const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("waited in vain for " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // polls; the deadline decides
  }
}

rest::Config TestConfig() {
  const char* path = std::getenv("RINGMASTER_TEST_KUBECONFIG");
  if (path == nullptr) {
    throw std::runtime_error(
        "RINGMASTER_TEST_KUBECONFIG is not set; ctest sets it, tests/cluster/up tells its value");
  }
  return Must(rest::LoadKubeconfig(path, ""));
}

void InstallDefinition(Client& client) {
  const api::YamlDocument definition = api::ParseYaml(Must(ReadFile(kDefinitionFile)));
  Must(client.Apply(kDefinition, definition.value, {.field_manager = "test", .force = true}));
  // It is served a moment after it is stored.
  Await("the CustomResourceDefinition",
        [&] { return client.List(kTrainingJob, "", {.limit = 1}).ok(); });
}

class RealServer : public ServerUnderTest {
 public:
  RealServer() : client_(Must(rest::RestClient::Connect(TestConfig(), {}))) {
    InstallDefinition(*client_);
  }
  ~RealServer() override {
    for (const std::string& ns : namespaces_) {
      EXPECT_TRUE(client_->Delete(kNamespace, {"", ns}, {}).ok()) << ns;
    }
  }

  rest::RestClient& client() override { return *client_; }

  std::string FreshNamespace() override {
    Json object = NewObject(kNamespace, {});
    object["metadata"] = {{"generateName", "test-"}};
    const std::string ns = Name(Must(client_->Create(kNamespace, object)));
    namespaces_.push_back(ns);
    // Without it no pod is admitted. A controller makes it too, a moment later.
    const auto account =
        client_->Create(kServiceAccount, NewObject(kServiceAccount, {ns, "default"}));
    EXPECT_TRUE(account.ok() || kube::IsAlreadyExists(account.status())) << account.status();
    return ns;
  }

  // One of them puts this into every namespace.
  bool HasControllers() override {
    return client_->Get(kConfigMap, {"kube-system", "kube-root-ca.crt"}).ok();
  }

  // The server decides when it forgets: every five minutes.
  bool ExpireHistory() override { return false; }
  // From before the kind was known to it.
  std::string ForgottenVersion(const std::string&) override { return "1"; }

 private:
  const std::unique_ptr<rest::RestClient> client_;
  std::vector<std::string> namespaces_;
};

INSTANTIATE_TEST_SUITE_P(Rest, ClientConformance,
                         ::testing::Values(Backend{"kubernetes",
                                                   [] { return std::make_unique<RealServer>(); }}),
                         BackendName);

// A certificate authority that signed nothing: `openssl req -x509 -subj /CN=nobody`.
constexpr char kStranger[] = R"(-----BEGIN CERTIFICATE-----
MIIBeDCCAR+gAwIBAgIUCDeOb0MAGm7nM3wi3abaeOCk+YQwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTEyMTE4MzA1M1oYDzIxMjYxMDI4MTgz
MDUzWjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AARC7FhJTFKURUkDclxOxpo7zieQqxu+QsLYLijf/V3vumabD28Xdzg1rdkG4X6W
RfQbtnyGEVwS/9j87DCVXW96o1MwUTAdBgNVHQ4EFgQUL/NS2IzEdm+HluCLdzVh
H6b19nEwHwYDVR0jBBgwFoAUL/NS2IzEdm+HluCLdzVhH6b19nEwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiA0sb39OWheJLfcVAgrtIvAvQB9BCx8
WkjTGsWnAuS8HwIgK8nIu6aRIZ86DCd0F72ZGwkijTv2tdzpCKoE1HAnSV8=
-----END CERTIFICATE-----)";

class RestClusterTest : public ::testing::Test {
 protected:
  static absl::Status GetVersion(const rest::Config& config) {
    return Must(rest::RestClient::Connect(config, {}))->GetPath("/version").status();
  }
};

TEST_F(RestClusterTest, SpeaksToTheServerAndToNoOther) {
  const rest::Config config = TestConfig();
  EXPECT_TRUE(GetVersion(config).ok()) << GetVersion(config);
  rest::Config stranger = config;
  stranger.ca_pem = kStranger;
  EXPECT_EQ(GetVersion(stranger).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(GetVersion(stranger).ToString(), ::testing::HasSubstr("not trusted"));
  rest::Config misnamed = config;
  misnamed.tls_server_name = "another.example";
  EXPECT_EQ(GetVersion(misnamed).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(GetVersion(misnamed).ToString(), ::testing::HasSubstr("mismatch"));
  rest::Config named = config;
  named.tls_server_name = "kubernetes.default.svc";
  EXPECT_TRUE(GetVersion(named).ok()) << GetVersion(named);
  rest::Config careless = stranger;
  careless.insecure_skip_tls_verify = true;
  EXPECT_TRUE(GetVersion(careless).ok()) << GetVersion(careless);
}

// Its own answer to that is no Status: what it is told from a load balancer's by must be there.
TEST_F(RestClusterTest, SaysWhatItDoesNotServe) {
  const auto client = Must(rest::RestClient::Connect(TestConfig(), {}));
  constexpr ResourceType kUnknown{"nobody.example", "v1", "things", "Thing"};
  const auto listed = client->List(kUnknown, "", {}).status();
  EXPECT_TRUE(kube::IsNotFound(listed)) << listed;
  EXPECT_THAT(listed.ToString(), ::testing::HasSubstr("CustomResourceDefinition installed?"));
  const auto path = client->GetPath("/apis/nobody.example/v1").status();
  EXPECT_TRUE(kube::IsNotFound(path)) << path;
}

TEST_F(RestClusterTest, ATokenIsAnIdentityOfItsOwn) {
  RealServer server;
  const std::string ns = server.FreshNamespace();
  Json request = {{"apiVersion", "authentication.k8s.io/v1"},
                  {"kind", "TokenRequest"},
                  {"metadata", {{"namespace", ns}}},
                  {"spec", {{"expirationSeconds", 600}}}};
  const Json granted = Must(server.client().Create(kTokenRequest, request));
  rest::Config config = TestConfig();
  config.credentials =
      rest::StaticCredentials({.bearer_token = FindString(granted, {"status", "token"})});
  const auto client = Must(rest::RestClient::Connect(config, {}));
  const auto status = client->Get(kPod, {ns, "a"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_EQ(Reason(status), kReasonForbidden);
  config.credentials = rest::StaticCredentials({.bearer_token = "nonsense"});
  const auto unknown = Must(rest::RestClient::Connect(config, {}))->Get(kPod, {ns, "a"}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnauthenticated) << unknown;
}

TEST_F(RestClusterTest, ReviewsATokenThatIsBoundToAPod) {
  RealServer server;
  const std::string ns = server.FreshNamespace();
  Json pod = NewObject(kPod, {ns, "worker"});
  pod["spec"] = {{"schedulerName", "nobody"}, {"containers", {{{"name", "c"}, {"image", "none"}}}}};
  pod = Must(server.client().Create(kPod, pod));
  const auto token_for = [&](const Json& bound) {
    Json request = {{"apiVersion", "authentication.k8s.io/v1"},
                    {"kind", "TokenRequest"},
                    {"metadata", {{"namespace", ns}}},
                    {"spec", {{"expirationSeconds", 600}, {"audiences", {"ringmaster"}}}}};
    if (!bound.is_null()) request["spec"]["boundObjectRef"] = bound;
    return FindString(Must(server.client().Create(kTokenRequest, request)), {"status", "token"});
  };
  const std::string token =
      token_for({{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", "worker"}, {"uid", Uid(pod)}});
  const auto identity = server.client().ReviewToken(token, "ringmaster");
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(*identity, (PodIdentity{{ns, "worker"}, Uid(pod)}));
  const auto refused = [&](const std::string& presented, const std::string& audience) {
    return server.client().ReviewToken(presented, audience).status().code();
  };
  EXPECT_EQ(refused(token, "another"), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(refused(token + "x", "ringmaster"), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(refused(token_for(nullptr), "ringmaster"), absl::StatusCode::kUnauthenticated);
  ASSERT_TRUE(server.client().Delete(kPod, {ns, "worker"}, {}).ok());
  Await("the token to be void",
        [&] { return refused(token, "ringmaster") == absl::StatusCode::kUnauthenticated; });
}

TEST_F(RestClusterTest, ListsInPagesAndWatchesWithinItsTime) {
  RealServer server;
  const std::string ns = server.FreshNamespace();
  rest::RestOptions options;
  options.page_size = 2;
  options.watch_timeout = std::chrono::seconds(1);
  const auto client = Must(rest::RestClient::Connect(TestConfig(), options));
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    Must(client->Create(kLease, NewObject(kLease, {ns, name})));
  }
  const ObjectList list = Must(client->List(kLease, ns, {}));
  EXPECT_EQ(list.items.size(), 5u);
  // The server ends the watch, which is then taken up where it was.
  const auto first = Must(client->Watch(kLease, ns, {.resource_version = list.resource_version}));
  const auto ended = first->Next(kPatience).status();
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable) << ended;
  Must(client->Create(kLease, NewObject(kLease, {ns, "f"})));
  const auto next = Must(client->Watch(kLease, ns, {.resource_version = list.resource_version}));
  EXPECT_EQ(Name(*Must(next->Next(kPatience)).object), "f");
}

TEST_F(RestClusterTest, WhatABookmarkSaysIsWhereAWatchGoesOn) {
  RealServer server;
  const std::string ns = server.FreshNamespace();
  const std::string other = server.FreshNamespace();
  rest::RestOptions options;
  options.watch_timeout = std::chrono::seconds(6);  // a bookmark comes shortly before its end
  const auto client = Must(rest::RestClient::Connect(TestConfig(), options));
  const std::string begin = Must(client->List(kLease, ns, {})).resource_version;
  Must(client->Create(kLease, NewObject(kLease, {ns, "before"})));
  const auto watch = Must(client->Watch(kLease, ns, {.resource_version = begin}));
  EXPECT_EQ(Name(*Must(watch->Next(kPatience)).object), "before");
  // Of these the watch says nothing, but that they were.
  const std::string unseen =
      ResourceVersion(Must(client->Create(kLease, NewObject(kLease, {other, "unseen"}))));
  std::string version;
  absl::StatusOr<WatchEvent> event = watch->Next(kPatience);
  for (; event.ok(); event = watch->Next(kPatience)) {
    ASSERT_EQ(event->type, WatchEventType::kBookmark);
    version = ResourceVersion(*event->object);
  }
  EXPECT_TRUE(absl::IsUnavailable(event.status())) << event.status();
  ASSERT_NE(version, "") << "no bookmark came";
  EXPECT_GE(std::stoull(version), std::stoull(unseen));
  Must(client->Create(kLease, NewObject(kLease, {ns, "after"})));
  const auto next = Must(client->Watch(kLease, ns, {.resource_version = version}));
  EXPECT_EQ(Name(*Must(next->Next(kPatience)).object), "after") << "nothing comes twice";
}

// Files that a test replaces, read again at each call.
class RenewedFilesTest : public RestClusterTest {
 protected:
  std::string Write(const char* name, const std::string& text) const {
    const auto path = folder_.path() / name;
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path.string();
  }
  static absl::StatusCode ListLeases(rest::RestClient& client) {
    return client.List(kLease, "default", {.limit = 1}).status().code();
  }

  const rest::Config admin_ = TestConfig();
  const rest::Credentials real_ = Must(admin_.credentials->Get());
  const TemporaryFolder folder_ = Must(TemporaryFolder::Make());
};

TEST_F(RenewedFilesTest, AnAuthorityThatIsReplacedIsTrustedByTheSameClient) {
  rest::Config config = admin_;
  config.credentials = rest::FileCredentials({.authority_file = Write("ca.crt", kStranger),
                                              .fixed = real_,
                                              .max_age = std::chrono::seconds(0)});
  const auto client = Must(rest::RestClient::Connect(config, {}));
  EXPECT_EQ(ListLeases(*client), absl::StatusCode::kUnauthenticated);
  Write("ca.crt", kStranger + std::string("\n") + admin_.ca_pem);
  EXPECT_EQ(ListLeases(*client), absl::StatusCode::kOk);
  Write("ca.crt", kStranger);
  EXPECT_EQ(ListLeases(*client), absl::StatusCode::kUnauthenticated);
}

TEST_F(RenewedFilesTest,
       AClientCertificateThatIsReplacedIsShownByTheSameClientAndItsOpenWatchLives) {
  const Certificate nobodys =
      Must(SelfSignedCertificate("nobody", SystemClock().Now(), std::chrono::hours(1)));
  rest::Config config = admin_;
  config.credentials = rest::FileCredentials(
      {.client_certificate_file = Write("tls.crt", real_.client_certificate_pem),
       .client_key_file = Write("tls.key", real_.client_key_pem),
       .max_age = std::chrono::seconds(0)});
  const auto client = Must(rest::RestClient::Connect(config, {}));
  RealServer server;
  const std::string ns = server.FreshNamespace();
  const std::string begin = Must(client->List(kLease, ns, {})).resource_version;
  const auto watch = Must(client->Watch(kLease, ns, {.resource_version = begin}));
  Write("tls.crt", nobodys.certificate_pem);
  Write("tls.key", nobodys.key_pem);
  EXPECT_EQ(ListLeases(*client), absl::StatusCode::kUnauthenticated);
  Must(server.client().Create(kLease, NewObject(kLease, {ns, "seen"})));
  EXPECT_EQ(Name(*Must(watch->Next(kPatience)).object), "seen");
  Write("tls.crt", real_.client_certificate_pem);
  Write("tls.key", real_.client_key_pem);
  EXPECT_EQ(ListLeases(*client), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace ringmaster::kube::conformance
