// TLS at a running server: our client, curl and OpenSSL's own against it, wrong files, and files
// that change.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <future>

#include "echo_server.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "test_authority.h"

namespace tacit::http {
namespace {

using testing::HasSubstr;

// A connection with TLS on a RawConnection's kind of socket, whose requests follow one another.
class TlsConnection {
 public:
  TlsConnection(const std::string& address, const std::string& ca) {
    context_ = SSL_CTX_new(TLS_client_method());
    EXPECT_EQ(SSL_CTX_load_verify_locations(context_, ca.c_str(), nullptr), 1);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    BIO* const bio = BIO_new_ssl_connect(context_);
    BIO_set_conn_hostname(bio, address.c_str());
    bio_ = bio;
    connected_ = BIO_do_connect(bio) == 1;
  }
  ~TlsConnection() {
    BIO_free_all(bio_);
    SSL_CTX_free(context_);
  }
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  bool connected() const { return connected_; }
  // The status of GET /a, or 0.
  int Ask() {
    const std::string request = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    if (BIO_write(bio_, request.data(), static_cast<int>(request.size())) <= 0) return 0;
    std::string text;
    while (text.find("\r\n\r\n") == text.npos || !text.ends_with("public")) {
      char bytes[1024];
      const int got = BIO_read(bio_, bytes, sizeof(bytes));
      if (got <= 0) return 0;
      text.append(bytes, static_cast<size_t>(got));
    }
    return std::atoi(text.c_str() + 9);
  }
  // The name in the server's certificate.
  std::string Peer() {
    SSL* ssl = nullptr;
    BIO_get_ssl(bio_, &ssl);
    X509* const peer = SSL_get1_peer_certificate(ssl);
    char name[100] = "";
    if (peer != nullptr)
      X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, name, 100);
    X509_free(peer);
    return name;
  }

 private:
  SSL_CTX* context_;
  BIO* bio_ = nullptr;
  bool connected_ = false;
};

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    authority_.Write(dir_ / "ca.pem");
    authority_.Sign(dir_, {});
  }

  TlsFiles Files(const std::string& name = "server") const {
    return {.certificate = dir_ / (name + ".pem"), .key = dir_ / (name + ".key")};
  }
  void Start(TlsFiles files) {
    auto tls = Tls::Open(std::move(files));
    ASSERT_TRUE(tls.has_value()) << tls.error().message;
    tls_ = *tls;
    ServerOptions options = OnLoopback();
    options.listeners.push_back({"unix:" + (dir_ / "socket"), Role::kPublic});
    options.tls = tls_;
    server_ = std::make_unique<EchoServer>(options);
    ASSERT_TRUE(server_->started()) << server_->error().message;
  }
  std::string WhyRefused(TlsFiles files) {
    const auto tls = Tls::Open(std::move(files));
    return tls ? "" : tls.error().message;
  }
  Result<Response> Ask(const ClientTls& tls, const std::string& body = "") {
    return Fetch("https://" + server_->address() + "/a", body.empty() ? "GET" : "POST", body,
                 kPatience, {}, tls);
  }
  // curl's exit status and output.
  test::Ended Curl(std::vector<std::string> words) {
    words.insert(words.begin(), {"/usr/bin/curl", "-sS", "--max-time", "20"});
    words.push_back("https://" + server_->address() + "/a");
    return test::Run(words);
  }
  // Puts copies of a certificate and key in the places of those that are served. Files that are
  // overwritten twice within one tick of the kernel's clock, with as many bytes, look the same.
  void Replace(const std::string& from) {
    for (const char* ending : {".pem", ".key"}) {
      std::filesystem::copy_file(dir_ / (from + ending), dir_ / "new");
      std::filesystem::rename(dir_ / "new", dir_ / (std::string("server") + ending));
    }
  }

  const test::TempDir dir_;
  const TestAuthority authority_{"authority"};
  std::shared_ptr<Tls> tls_;
  std::unique_ptr<EchoServer> server_;
};

TEST_F(TlsTest, ClientsWhoTrustTheAuthorityAreAnswered) {
  Start(Files());
  const auto answer =
      Ask({.ca_file = dir_ / "ca.pem", .certificate = "", .key = ""}, std::string(300'000, 'x'));
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->status, 200u);
  EXPECT_EQ(answer->body, "POST /a? " + std::string(300'000, 'x') + " public");
  const test::Ended curl = Curl({"--cacert", dir_ / "ca.pem"});
  EXPECT_EQ(curl.exit_code, 0) << curl.err;
  EXPECT_EQ(curl.out, "GET /a?  public");
  // Several requests on one connection, and one after another's end.
  TlsConnection connection(server_->address(), dir_ / "ca.pem");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(connection.Ask(), 200);
  // UNIX sockets have none.
  EXPECT_EQ(Fetch("unix:" + (dir_ / "socket") + ":/a", "GET", "", kPatience)->status, 200u);
}

TEST_F(TlsTest, WhoDoesNotTrustOrSpeakAsWeDoIsNotAnswered) {
  Start(Files());
  const TestAuthority other("other");
  other.Write(dir_ / "other.pem");
  const auto refused = Ask({.ca_file = dir_ / "other.pem", .certificate = "", .key = ""});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_THAT(refused.error().message, HasSubstr("certificate verify failed"));
  EXPECT_EQ(Curl({"--cacert", dir_ / "other.pem"}).exit_code,
            60);  // CURLE_PEER_FAILED_VERIFICATION
  // The certificate is of localhost and 127.0.0.1, and of nobody else.
  const std::string port = server_->address().substr(server_->address().rfind(':'));
  EXPECT_TRUE(Fetch("https://localhost" + port + "/a", "GET", "", kPatience, {},
                    {dir_ / "ca.pem", "", ""}));
  EXPECT_FALSE(Fetch("https://127.0.0.2" + port + "/a", "GET", "", kPatience, {},
                     {dir_ / "ca.pem", "", ""}));
  // In the clear there is no answer, and the server goes on.
  EXPECT_FALSE(Fetch("http://" + server_->address() + "/a", "GET", "", kPatience).has_value());
  EXPECT_NE(Curl({"--cacert", dir_ / "ca.pem", "--tls-max", "1.1", "--tlsv1.0"}).exit_code, 0);
  EXPECT_NE(
      Curl({"--cacert", dir_ / "ca.pem", "--tls-max", "1.2", "--ciphers", "AES128-SHA"}).exit_code,
      0);
  EXPECT_EQ(Curl({"--cacert", dir_ / "ca.pem", "--tls-max", "1.2"}).exit_code, 0);
  EXPECT_EQ(Curl({"--cacert", dir_ / "ca.pem", "--tlsv1.3"}).exit_code, 0);
}

TEST_F(TlsTest, ClientsShowACertificateWhereOneIsAskedFor) {
  const TestAuthority clients("clients"), others("others");
  clients.Write(dir_ / "clients.pem");
  clients.Sign(dir_, {.name = "web"});
  clients.Sign(dir_, {.name = "late", .from_s = -7200, .until_s = -3600});
  others.Sign(dir_, {.name = "stranger"});
  TlsFiles files = Files();
  files.client_ca = dir_ / "clients.pem";
  Start(files);
  const auto status = [&](const std::string& name) {
    const auto answer = Ask({.ca_file = dir_ / "ca.pem",
                             .certificate = name.empty() ? "" : dir_ / (name + ".pem"),
                             .key = name.empty() ? "" : dir_ / (name + ".key")});
    return answer ? answer->status : 0;
  };
  EXPECT_EQ(status("web"), 200u);
  for (const char* name : {"", "stranger", "late", "server"}) EXPECT_EQ(status(name), 0u) << name;
  EXPECT_EQ(
      Curl({"--cacert", dir_ / "ca.pem", "--cert", dir_ / "web.pem", "--key", dir_ / "web.key"})
          .out,
      "GET /a?  public");
  EXPECT_NE(Curl({"--cacert", dir_ / "ca.pem"}).exit_code, 0);
}

TEST_F(TlsTest, WrongFilesAreNamedWithWhatIsWrong) {
  EXPECT_EQ(WhyRefused(Files()), "");
  EXPECT_EQ(WhyRefused(Files("nobody")),
            "serve.tls.certificate: " + (dir_ / "nobody.pem") + ": No such file or directory");
  authority_.Sign(dir_, {.name = "second"});
  EXPECT_EQ(WhyRefused({.certificate = dir_ / "server.pem", .key = dir_ / "second.key"}),
            "serve.tls.key: " + (dir_ / "second.key") + ": is not the key of the certificate in " +
                (dir_ / "server.pem"));
  authority_.Sign(dir_, {.name = "old", .from_s = -7200, .until_s = -3600});
  EXPECT_THAT(WhyRefused(Files("old")), HasSubstr("old.pem: expired on 20"));
  authority_.Sign(dir_, {.name = "early", .from_s = 3600, .until_s = 7200});
  EXPECT_THAT(WhyRefused(Files("early")), HasSubstr("early.pem: is valid from 20"));
  EXPECT_THAT(WhyRefused({.certificate = dir_ / "server.key", .key = dir_ / "server.key"}),
              HasSubstr("has no certificate in PEM"));
  EXPECT_THAT(WhyRefused({.certificate = dir_ / "server.pem", .key = dir_ / "server.pem"}),
              HasSubstr("has no private key in PEM"));
  TlsFiles files = Files();
  files.client_ca = dir_ / "server.key";
  EXPECT_THAT(WhyRefused(files),
              HasSubstr("serve.tls.client_ca: " + (dir_ / "server.key") + ": has no certificate"));
  ASSERT_EQ(::chmod((dir_ / "server.key").c_str(), 0644), 0);
  EXPECT_THAT(WhyRefused(Files()),
              HasSubstr("serve.tls.key: " + (dir_ / "server.key") + ": has mode 0644"));
}

TEST_F(TlsTest, FilesChangeWithoutADrop) {
  authority_.Sign(dir_, {.name = "renewed", .until_s = 1'000'000});
  authority_.Sign(dir_, {.name = "old", .from_s = -7200, .until_s = -3600});
  Start(Files());
  const auto ends = [&] { return tls_->expires_s() - std::time(nullptr); };
  EXPECT_NEAR(static_cast<double>(ends()), 86'400.0 * 365, 1000);
  TlsConnection before(server_->address(), dir_ / "ca.pem");
  EXPECT_EQ(before.Ask(), 200);
  EXPECT_EQ(tls_->ReloadIfChanged().value_or(true), false);

  Replace("old");
  const auto refused = tls_->ReloadIfChanged();
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("expired on"));
  EXPECT_EQ(tls_->ReloadIfChanged().value_or(true), false) << "it complains once";
  EXPECT_EQ(TlsConnection(server_->address(), dir_ / "ca.pem").Peer(), "server");

  Replace("renewed");
  EXPECT_EQ(tls_->ReloadIfChanged().value_or(false), true);
  EXPECT_NEAR(static_cast<double>(ends()), 1e6, 1000);
  TlsConnection after(server_->address(), dir_ / "ca.pem");
  EXPECT_EQ(after.Peer(), "renewed");
  EXPECT_EQ(after.Ask(), 200);
  EXPECT_EQ(before.Ask(), 200) << "the connection that was there goes on";
  EXPECT_EQ(before.Peer(), "server");
}

// Clients that never say a word, or garbage, are let go in time. A drain waits for an idle client's
// farewell at most, and that for the linger alone: the client may have its answer before the server
// knows that it is sent.
TEST_F(TlsTest, WhoDoesNotShakeHandsIsLetGo) {
  Start(Files());
  RawConnection silent(server_->address()), garbage(server_->address());
  ASSERT_TRUE(garbage.Send(std::string(1000, 'x')));
  EXPECT_TRUE(garbage.Closes());
  EXPECT_FALSE(silent.HasNews());
  server_->Pass(std::chrono::milliseconds(10'001));
  EXPECT_TRUE(silent.Closes());
  TlsConnection idle(server_->address(), dir_ / "ca.pem");
  EXPECT_EQ(idle.Ask(), 200);
  auto stopped = std::async(std::launch::async, [&] { return (*server_)->Stop(kPatience); });
  while (stopped.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready)
    server_->Pass(std::chrono::milliseconds(100));
  EXPECT_EQ(stopped.get(), 0u);
}

}  // namespace
}  // namespace tacit::http
