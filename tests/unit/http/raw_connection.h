#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tacit::http {

struct RawResponse {
  int status = 0;
  std::string head;  // status line and fields
  std::string body;
};

// A connection on which a test decides about every byte. Plain blocking sockets, so that nothing of
// the server's libraries is on both sides.
class RawConnection {
 public:
  // "HOST:PORT" with a numeric host, "[IPV6]:PORT" or "unix:PATH".
  explicit RawConnection(const std::string& address);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool connected() const { return fd_ >= 0; }
  // False when the other side has closed.
  bool Send(std::string_view bytes);
  // The next response, or nothing when the connection ends or the test's patience does.
  std::optional<RawResponse> Receive(bool is_head = false);
  // Waits until the server closes; bytes that come before are skipped. False when it does not.
  bool Closes();
  // Returns true if anything has come that was not received, the end included.
  bool HasNews() const;
  void CloseSending();

 private:
  bool ReadMore();
  int fd_ = -1;
  bool ended_ = false;  // the server has closed, or reset
  std::string unread_;
};

// A whole request with Host and Content-Length.
std::string MakeRequest(std::string_view method, std::string_view target,
                        std::string_view body = "");

}  // namespace tacit::http
