// The dashboard's page, which the build puts together from the files beside this one, and the
// policy that browsers hold it to.
#include <fmt/format.h>

#include <span>

#include "base/check.h"
#include "base/hash.h"
#include "serve/dashboard/dashboard_route.h"
#include "serve/dashboard/page_text.h"

namespace tacit::serve {
namespace {

std::string Base64(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) three = three << 8 | (i + k < bytes.size() ? bytes[i + k] : 0);
    for (size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63];
  }
  return text;
}

// The hash source of what stands between these tags, as the policy names it.
std::string HashOf(std::string_view page, std::string_view open, std::string_view close) {
  const size_t tag = page.find(open);
  TACIT_CHECK(tag != page.npos && page.find(open, tag + 1) == page.npos, "one element of a kind");
  const size_t begin = tag + open.size();
  const std::string_view inner = page.substr(begin, page.find(close, begin) - begin);
  return "'sha256-" + Base64(Sha256().Update(inner).Finish()) + "'";
}

}  // namespace

// Nothing is loaded but the page itself, nothing runs but its own script, and nothing is asked but
// the server that it came from.
const std::string& DashboardPolicy() {
  static const std::string kPolicy = fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      HashOf(kPageText, "<script>", "</script>"), HashOf(kPageText, "<style>", "</style>"));
  return kPolicy;
}

bool WantsPage(const http::Request& request) {
  return request.Field("Accept").find("text/html") != std::string_view::npos;
}

void AnswerDashboardPage(http::Reply* reply) {
  reply->content_type = "text/html; charset=utf-8";
  reply->body = kPageText;
  for (const auto& [name, value] :
       {std::pair<const char*, std::string_view>{"Content-Security-Policy", DashboardPolicy()},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cache-Control", "no-store"},
        {"Vary", "Accept"}})
    reply->headers.emplace_back(name, value);
}

}  // namespace tacit::serve
