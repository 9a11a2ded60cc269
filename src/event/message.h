#pragma once

#include <span>
#include <string_view>

namespace tacit::event {

struct MessageHeader {
  std::string_view name, value;
};

// A message as a broker hands it over. Views of its buffers.
struct Message {
  std::string_view value;
  bool null = false;  // no value at all, a tombstone, which an empty one is not
  std::span<const MessageHeader> headers;
};

}  // namespace tacit::event
