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

}  // namespace tacit::event
