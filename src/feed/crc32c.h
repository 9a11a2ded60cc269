#pragma once

#include <cstdint>
#include <string_view>

namespace tacit::feed {

// CRC-32C (Castagnoli's polynomial, RFC 3720, appendix B.4) of the bytes, going on from that of the
// bytes before them.
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);

}  // namespace tacit::feed
