#include "test_authority.h"

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <atomic>

#include "support/process.h"

namespace tacit::http {
namespace {

X509* NewCertificate(const std::string& name, EVP_PKEY* key, int64_t from_s, int64_t until_s) {
  static std::atomic<long> serial{1};
  X509* const certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), from_s);
  X509_gmtime_adj(X509_getm_notAfter(certificate), until_s);
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

void Extend(X509* certificate, X509* issuer, int what, const char* text) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, what, text);
  EXPECT_NE(extension, nullptr) << text;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

template <class Write>
void WritePem(const std::string& path, const Write& write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  EXPECT_EQ(write(bio), 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  test::WriteFile(path, {text, static_cast<size_t>(size)});
  EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
  BIO_free(bio);
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name) : key_(EVP_EC_gen("P-256")) {
  certificate_ = NewCertificate(name, key_, -3600, 86'400 * 3650);
  X509_set_issuer_name(certificate_, X509_get_subject_name(certificate_));
  Extend(certificate_, certificate_, NID_basic_constraints, "critical,CA:TRUE");
  Extend(certificate_, certificate_, NID_key_usage, "critical,keyCertSign");
  X509_sign(certificate_, key_, EVP_sha256());
}

TestAuthority::~TestAuthority() {
  X509_free(certificate_);
  EVP_PKEY_free(key_);
}

void TestAuthority::Sign(const test::TempDir& dir, const Wanted& wanted) const {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = NewCertificate(wanted.name, key, wanted.from_s, wanted.until_s);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate_));
  Extend(certificate, certificate_, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  X509_sign(certificate, key_, EVP_sha256());
  WritePem(dir / (wanted.name + ".pem"),
           [&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
  WritePem(dir / (wanted.name + ".key"), [&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  X509_free(certificate);
  EVP_PKEY_free(key);
}

void TestAuthority::Write(const std::string& path) const {
  WritePem(path, [&](BIO* bio) { return PEM_write_bio_X509(bio, certificate_); });
}

}  // namespace tacit::http
