#include "http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

namespace tacit::http {
namespace {

constexpr char kCertificateKey[] = "serve.tls.certificate", kPrivateKey[] = "serve.tls.key",
               kClientCaKey[] = "serve.tls.client_ca";
// The ciphers of TLS 1.2 with forward secrecy and authenticated encryption; TLS 1.3 has no others.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL";
constexpr unsigned char kSessionContext[] = "tacit";

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

tl::unexpected<Error> BadTls(std::string_view key, std::string_view path, std::string_view why) {
  ERR_clear_error();
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}: {}", key, path, why));
}

Owned<BIO> Reader(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Refuses a passphrase: a daemon has nobody to ask.
int NoPassphrase(char*, int, int, void*) { return 0; }

// All certificates of a file in PEM, in their order.
std::vector<Owned<X509>> CertificatesIn(const std::string& text) {
  std::vector<Owned<X509>> certificates;
  const Owned<BIO> reader = Reader(text);
  while (X509* const next = PEM_read_bio_X509(reader.get(), nullptr, NoPassphrase, nullptr))
    certificates.emplace_back(next);
  ERR_clear_error();
  return certificates;
}

std::string TextOf(const ASN1_TIME* time) {
  std::tm utc{};
  char text[40];
  if (ASN1_TIME_to_tm(time, &utc) != 1) return "?";
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc)};
}

// Uses the certificate and those that it hangs on; returns the time when the first of them ends.
Result<int64_t> UseCertificate(SSL_CTX* context, const std::string& path, FileStamp* stamp) {
  *stamp = StampOfFile(path);
  TACIT_ASSIGN(const std::string text, ReadOpenFile(kCertificateKey, path));
  const auto chain = CertificatesIn(text);
  if (chain.empty()) return BadTls(kCertificateKey, path, "has no certificate in PEM");
  std::time_t ends = 0;
  for (const Owned<X509>& certificate : chain) {
    const ASN1_TIME* const last = X509_get0_notAfter(certificate.get());
    if (X509_cmp_current_time(last) < 0)
      return BadTls(kCertificateKey, path, "expired on " + TextOf(last));
    const ASN1_TIME* const first = X509_get0_notBefore(certificate.get());
    if (X509_cmp_current_time(first) > 0)
      return BadTls(kCertificateKey, path, "is valid from " + TextOf(first) + " on, not yet");
    std::tm utc{};
    ASN1_TIME_to_tm(last, &utc);
    const std::time_t end = timegm(&utc);
    ends = ends == 0 ? end : std::min(ends, end);
    const bool is_own = &certificate == &chain.front();
    const long used = is_own ? SSL_CTX_use_certificate(context, certificate.get())
                             : SSL_CTX_add1_chain_cert(context, certificate.get());
    if (used != 1) return BadTls(kCertificateKey, path, "OpenSSL refuses it (a key too short?)");
  }
  return ends;
}

Status UseKey(SSL_CTX* context, const TlsFiles& files, FileStamp* stamp) {
  TACIT_ASSIGN(std::string text, ReadKeptFile(kPrivateKey, files.key, stamp));
  const Owned<BIO> reader = Reader(text);
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(reader.get(), nullptr, NoPassphrase, nullptr));
  OPENSSL_cleanse(text.data(), text.size());
  if (key == nullptr)
    return BadTls(kPrivateKey, files.key, "has no private key in PEM without a passphrase");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return BadTls(kPrivateKey, files.key,
                  fmt::format("is not the key of the certificate in {}", files.certificate));
  return {};
}

// Has every client show a certificate that one of the file's has signed.
Status AskClients(SSL_CTX* context, const std::string& path, FileStamp* stamp) {
  *stamp = StampOfFile(path);
  TACIT_ASSIGN(const std::string text, ReadOpenFile(kClientCaKey, path));
  const auto authorities = CertificatesIn(text);
  if (authorities.empty()) return BadTls(kClientCaKey, path, "has no certificate in PEM");
  for (const Owned<X509>& authority : authorities)
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context, authority.get()) != 1)
      return BadTls(kClientCaKey, path, "OpenSSL refuses a certificate in it");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

void Harden(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context, kCiphers);
  SSL_CTX_set_options(
      context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_id_context(context, kSessionContext, sizeof(kSessionContext) - 1);
  // An idle connection keeps no record buffers.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

}  // namespace

Status TlsFromFiles::Reload() {
  const MutexLock reading(reading_);
  stamps_ = {};
  auto context = std::make_shared<TlsContext>(TlsContext::tls_server);
  SSL_CTX* const native = context->native_handle();
  Harden(native);
  // Every stamp is taken, so that a file that was bad is looked at again once it changes.
  stamps_ = Look();
  TACIT_ASSIGN(const int64_t ends, UseCertificate(native, files_.certificate, &stamps_[0]));
  TACIT_RETURN_IF_ERROR(UseKey(native, files_, &stamps_[1]));
  if (!files_.client_ca.empty())
    TACIT_RETURN_IF_ERROR(AskClients(native, files_.client_ca, &stamps_[2]));
  const MutexLock lock(mutex_);
  context_ = std::move(context);
  expires_s_ = ends;
  return {};
}

TlsFromFiles::Stamps TlsFromFiles::Look() const {
  return {StampOfFile(files_.certificate), StampOfFile(files_.key),
          files_.client_ca.empty() ? FileStamp{} : StampOfFile(files_.client_ca)};
}

Result<bool> TlsFromFiles::ReloadIfChanged() {
  {
    const MutexLock reading(reading_);
    if (Look() == stamps_) return false;
  }
  TACIT_RETURN_IF_ERROR(Reload());
  return true;
}

void TlsFromFiles::TakeOver(const Tls& other) {
  const auto& from = static_cast<const TlsFromFiles&>(other);  // there are no others
  // No other thread has `other`, so the order of the locks is free.
  const MutexLock reading(reading_), reading_other(from.reading_);
  const MutexLock lock(mutex_), lock_other(from.mutex_);
  files_ = from.files_;
  stamps_ = from.stamps_;
  context_ = from.context_;
  expires_s_ = from.expires_s_;
}

int64_t TlsFromFiles::expires_s() const {
  const MutexLock lock(mutex_);
  return expires_s_;
}

std::shared_ptr<TlsContext> TlsFromFiles::context() const {
  const MutexLock lock(mutex_);
  return context_;
}

Result<std::shared_ptr<Tls>> Tls::Open(TlsFiles files) {
  auto tls = std::make_shared<TlsFromFiles>(std::move(files));
  TACIT_RETURN_IF_ERROR(tls->Reload());
  return tls;
}

}  // namespace tacit::http
