#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tacit {

// " (did you mean 'x'?)" for the candidate closest to `given`, or "" when none is close.
std::string DidYouMean(std::string_view given, std::span<const std::string_view> candidates);

// Bytes of the well-formed UTF-8 sequence (RFC 3629) that `text` begins with, or 0. REQUIRES a text
// that is not empty.
size_t Utf8Length(std::string_view text);
bool IsUtf8(std::string_view text);

// Lower-case hexadecimal.
std::string ToHex(std::span<const uint8_t> bytes);
// False when `hex` is not exactly twice as many hexadecimal digits as `out` has bytes.
bool FromHex(std::string_view hex, std::span<uint8_t> out);

// 12345678 -> "12,345,678".
std::string WithThousands(uint64_t number);

}  // namespace tacit
