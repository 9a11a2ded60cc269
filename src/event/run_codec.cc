#include "event/run_codec.h"

#include <fmt/format.h>

namespace tacit::event {

std::string Quoted(std::string_view field) {
  constexpr size_t kShown = 24;
  std::string text = "'";
  for (const char c : field.substr(0, kShown)) {
    if (c >= ' ' && c <= '~')
      text.push_back(c);
    else
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text + (field.size() > kShown ? "...'" : "'");
}

MaybeBad TooFarAhead(int64_t timestamp_ms, int64_t taken_ms, const InteractionOptions& options) {
  if (taken_ms == 0 || timestamp_ms <= taken_ms) return std::nullopt;
  // The difference of any two such integers, the larger minus the smaller, fits without a sign.
  const uint64_t ahead = static_cast<uint64_t>(timestamp_ms) - static_cast<uint64_t>(taken_ms);
  if (ahead <= static_cast<uint64_t>(options.ahead_max_ms)) return std::nullopt;
  return BadRecord(
      fmt::format("timestamp_ms: lies more than {:g} s ahead of when the record was taken",
                  static_cast<double>(options.ahead_max_ms) / 1000),
      BadPart::kTime);
}

}  // namespace tacit::event
