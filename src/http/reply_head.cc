#include "http/reply_head.h"

#include <array>
#include <charconv>
#include <cstdint>

namespace tacit::http {
namespace {

// A number as text, without a format string: every answer has two.
class Digits {
 public:
  explicit Digits(uint64_t number)
      : end_(std::to_chars(text_.data(), text_.data() + text_.size(), number).ptr) {}
  std::string_view view() const { return {text_.data(), static_cast<size_t>(end_ - text_.data())}; }

 private:
  std::array<char, 20> text_;
  const char* end_;
};

}  // namespace

void RenderHead(const Reply& reply, std::string_view reason, std::string_view date, bool keep_alive,
                bool is_http10, std::string* out) {
  const auto append = [out](auto... parts) { (out->append(parts), ...); };
  out->clear();
  append("HTTP/1.1 ", Digits(reply.status).view(), " ", reason, "\r\nServer: tacit\r\nDate: ", date,
         "\r\nContent-Type: ", reply.content_type,
         "\r\nContent-Length: ", Digits(reply.body.size()).view(), "\r\n");
  for (const auto& [name, value] : reply.headers)
    append(std::string_view(name), ": ", std::string_view(value), "\r\n");
  if (!keep_alive) *out += "Connection: close\r\n";
  if (keep_alive && is_http10) *out += "Connection: keep-alive\r\n";
  *out += "\r\n";
}

}  // namespace tacit::http
