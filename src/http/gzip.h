#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "http/body_buffer.h"
#include "http/http.h"

// Private to this room: gzip (RFC 1952), as requests come in and answers go out.
namespace tacit::http {

// The coding of a body, by its field Content-Encoding.
enum class BodyCoding : uint8_t { kNone, kGzip, kUnknown };
BodyCoding CodingOf(std::string_view content_encoding);

enum class Unpacked : uint8_t { kWhole, kNotGzip, kTooLong, kNoRoom };

// Appends to an empty `out` what `packed` holds: one member of gzip or several, and nothing behind
// them. Never makes more than `most` bytes, however much more would come (kTooLong). Asks `room`
// before each piece, with the bytes that `out` will have, and stops where that returns false or the
// system has no memory (kNoRoom). What `out` has after a failure means nothing.
Unpacked Unpack(std::string_view packed, uint64_t most, const std::function<bool(uint64_t)>& room,
                BodyBuffer* out);

// One member of gzip that holds `text`. If empty, the system has no memory.
std::string Pack(std::string_view text);

// Returns true if a field Accept-Encoding lets an answer come as gzip (RFC 9110, 12.5.3). Without
// the field it does not.
bool AcceptsGzip(std::string_view accept_encoding);

// Compresses an answer that is the same for all, if the client accepts gzip, and sets Vary.
void PackAnswer(std::string_view accept_encoding, Reply* reply);

}  // namespace tacit::http
