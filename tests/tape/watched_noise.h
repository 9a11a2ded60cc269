#pragma once

#include <cstdint>

namespace tacit::noise {

// The next sources of coins have the keys that follow this one, in their order.
void StartCoins(uint8_t key);

}  // namespace tacit::noise
