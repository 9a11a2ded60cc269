#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tacit {

// Returns " (did you mean 'x'?)" for the candidate closest to `given`, or "" when none is close.
std::string DidYouMean(std::string_view given, std::span<const std::string_view> candidates);

// Returns the number of bytes of the well-formed UTF-8 sequence (RFC 3629) at the beginning of
// `text`, or 0. REQUIRES a text that is not empty.
size_t Utf8Length(std::string_view text);
bool IsUtf8(std::string_view text);
// Returns the text with each byte that no terminal should get as `\xNN`: control characters except
// line ends, and what is not UTF-8. For texts of others, which may quote the bytes of a file.
std::string Printable(std::string_view text);

// Lower-case hexadecimal.
std::string ToHex(std::span<const uint8_t> bytes);
// Returns false unless `hex` has exactly two hexadecimal digits for each byte of `out`.
bool FromHex(std::string_view hex, std::span<uint8_t> out);

// 12345678 -> "12,345,678".
std::string WithThousands(uint64_t number);

// "1 file", "2,000 files".
std::string Counted(uint64_t count, std::string_view noun);

}  // namespace tacit
