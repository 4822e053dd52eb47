// Which servers are trusted: handshakes in memory, with certificates that are made here.
#include "operator/kube/rest/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace ringmaster::kube::rest {
namespace {

using ::testing::HasSubstr;

constexpr char kPeer[] = "api.example";
constexpr long kHour = 3600;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Connection = std::unique_ptr<SSL, Deleter<SSL_free>>;
using Context = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;

// Who has a certificate, and the key to sign others'.
struct Identity {
  std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>> key{EVP_EC_gen("P-256")};
  std::unique_ptr<X509, Deleter<X509_free>> certificate{X509_new()};

  std::string Pem() const {
    const Bio text(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(text.get(), certificate.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(text.get(), &data);
    return std::string(data, static_cast<std::size_t>(size));
  }
};

void Extend(X509* certificate, int kind, const std::string& value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()));
  X509_add_ext(certificate, extension.get(), -1);
}

// Signed by `issuer`, or by itself where there is none; valid for an hour, or no more.
Identity Make(const std::string& name, const Identity* issuer, bool is_authority,
              long expires_in = kHour) {
  static long serial = 0;
  Identity made;
  X509* certificate = made.certificate.get();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -2 * kHour);
  X509_gmtime_adj(X509_getm_notAfter(certificate), expires_in);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate,
                       X509_get_subject_name(issuer ? issuer->certificate.get() : certificate));
  X509_set_pubkey(certificate, made.key.get());
  Extend(certificate, NID_basic_constraints, is_authority ? "critical,CA:TRUE" : "CA:FALSE");
  Extend(certificate, NID_subject_alt_name, "DNS:" + name);
  X509_sign(certificate, issuer ? issuer->key.get() : made.key.get(), EVP_sha256());
  return made;
}

// Shows `leaf`, and the authorities that signed it.
Context ServerOf(const Identity& leaf, std::initializer_list<const Identity*> chain) {
  Context context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_use_certificate(context.get(), leaf.certificate.get());
  SSL_CTX_use_PrivateKey(context.get(), leaf.key.get());
  for (const Identity* link : chain)
    SSL_CTX_add1_chain_cert(context.get(), link->certificate.get());
  return context;
}

class TlsTest : public ::testing::Test {
 protected:
  // "" where the server is trusted, else why it is not.
  static std::string Handshake(const Context& server_context, const std::string& ca_pem) {
    const auto setup = TlsSetup::Create({.peer = kPeer, .ca_pem = ca_pem});
    if (!setup.ok()) return setup.status().ToString();
    const Context client_context((*setup)->ShareContext());
    const Connection client(SSL_new(client_context.get()));
    const Connection server(SSL_new(server_context.get()));
    BIO* client_end = nullptr;
    BIO* server_end = nullptr;
    BIO_new_bio_pair(&client_end, 0, &server_end, 0);
    SSL_set_bio(client.get(), client_end, client_end);
    SSL_set_bio(server.get(), server_end, server_end);
    (*setup)->NameServer(client.get());
    SSL_set_connect_state(client.get());
    SSL_set_accept_state(server.get());
    for (int flight = 0; flight < 10; ++flight) {
      if (SSL_do_handshake(client.get()) == 1) return "";
      SSL_do_handshake(server.get());
    }
    return (*setup)->TakeProblem();
  }

  const Identity root_ = Make("root", nullptr, /*is_authority=*/true);
  const Identity middle_ = Make("middle", &root_, /*is_authority=*/true);
  const Identity leaf_ = Make(kPeer, &middle_, /*is_authority=*/false);
};

TEST_F(TlsTest, TrustsWhatARootHasSignedThroughAnother) {
  EXPECT_EQ(Handshake(ServerOf(leaf_, {&middle_}), root_.Pem()), "");
}

TEST_F(TlsTest, TrustsAnAuthorityThatAnotherHasSignedWithoutThatOther) {
  EXPECT_EQ(Handshake(ServerOf(leaf_, {}), middle_.Pem()), "");
  EXPECT_EQ(Handshake(ServerOf(leaf_, {&middle_}), middle_.Pem()), "");
  EXPECT_EQ(Handshake(ServerOf(leaf_, {&middle_, &root_}), middle_.Pem()), "");
}

TEST_F(TlsTest, TrustsNoOtherAuthority) {
  const Identity sibling = Make("sibling", &root_, /*is_authority=*/true);
  EXPECT_THAT(Handshake(ServerOf(leaf_, {&middle_}), sibling.Pem()), HasSubstr("unable to get"));
  EXPECT_NE(Handshake(ServerOf(leaf_, {}), root_.Pem()), "") << "the one between was not shown";
  const Identity misnamed = Make("another.example", &middle_, /*is_authority=*/false);
  EXPECT_THAT(Handshake(ServerOf(misnamed, {}), middle_.Pem()), HasSubstr("mismatch"));
}

TEST_F(TlsTest, TrustsNothingThatHasExpired) {
  const Identity old = Make(kPeer, &middle_, /*is_authority=*/false, -kHour);
  EXPECT_THAT(Handshake(ServerOf(old, {}), middle_.Pem()), HasSubstr("expired"));
  const Identity old_middle = Make("old", &root_, /*is_authority=*/true, -kHour);
  const Identity leaf = Make(kPeer, &old_middle, /*is_authority=*/false);
  EXPECT_THAT(Handshake(ServerOf(leaf, {}), old_middle.Pem()), HasSubstr("expired"));
}

}  // namespace
}  // namespace ringmaster::kube::rest
