#pragma once

#include <span>
#include <string_view>

namespace tacit::event {

struct MessageHeader {
  std::string_view name, value;
};

// A message as a broker delivers it. Holds views of the broker client's buffers.
struct Message {
  std::string_view value;
  bool null = false;  // no value at all (a tombstone), unlike an empty value
  std::span<const MessageHeader> headers;
};

}  // namespace tacit::event
