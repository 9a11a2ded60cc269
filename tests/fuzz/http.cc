// Fuzzes what comes over a connection, with a whole server behind a UNIX socket. Every answer is an
// answer of HTTP, and the server answers the next client after anything that one has sent.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "fuzz.h"
#include "http/server.h"

namespace tacit {
namespace {

class Answerer final : public http::Handler {
 public:
  void Handle(const http::Request& request, http::Reply* reply) override {
    *reply = http::ReplyFor(request.path);
    http::SetError(404, request.path, reply);
  }
};

class Service {
 public:
  Service() : path_("/dev/shm/tacit-fuzz-" + std::to_string(getpid()) + ".sock") {
    http::ServerOptions options;
    options.listeners = {{"unix:" + path_, http::Role::kPublic}};
    options.max_header_bytes = 2 << 10;
    options.max_body_bytes = 4 << 10;
    auto server = http::Server::Start(
        std::move(options), [] { return std::make_unique<Answerer>(); }, registry_);
    fuzz::Demand(server.has_value(), "the server starts");
    server_ = *std::move(server);
  }

  std::string Exchange(std::string_view sent) const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    fuzz::Demand(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
                 "the server takes the next client");
    while (!sent.empty()) {
      const ssize_t done = send(fd, sent.data(), sent.size(), MSG_NOSIGNAL);
      if (done <= 0) break;  // it has heard enough
      sent.remove_prefix(static_cast<size_t>(done));
    }
    shutdown(fd, SHUT_WR);
    std::string answer;
    char buffer[16 << 10];
    for (ssize_t got; (got = recv(fd, buffer, sizeof(buffer), 0)) > 0;)
      answer.append(buffer, static_cast<size_t>(got));
    close(fd);
    return answer;
  }

 private:
  const std::string path_;
  metrics::Registry registry_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace
}  // namespace tacit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacit;
  static auto* const service = new Service;
  const std::string answer = service->Exchange(fuzz::TextOf(data, size));
  fuzz::Demand(answer.empty() || answer.starts_with("HTTP/1."), "an answer is one of HTTP");
  return 0;
}
