#include "stream/generator/generator_parts.h"

namespace tacit::stream {

AliasTable::AliasTable(std::span<const double> weight) : cell_(weight.size()) {
  double total = 0;
  for (const double w : weight) total += w;
  std::vector<double> share(weight.size());
  std::vector<uint32_t> poor, rich;
  for (size_t i = 0; i < weight.size(); ++i) {
    share[i] = weight[i] / total * static_cast<double>(weight.size());
    (share[i] < 1 ? poor : rich).push_back(static_cast<uint32_t>(i));
    cell_[i] = {UINT32_MAX, static_cast<uint32_t>(i)};
  }
  while (!poor.empty() && !rich.empty()) {
    const uint32_t small = poor.back(), large = rich.back();
    poor.pop_back();
    cell_[small] = {static_cast<uint32_t>(share[small] * 0x1p32), large};
    share[large] -= 1 - share[small];
    if (share[large] < 1) {
      rich.pop_back();
      poor.push_back(large);
    }
  }
}

}  // namespace tacit::stream
