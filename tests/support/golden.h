#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace tacit::testing {

// The rows of tests/golden/<name>.csv without the heading; no quoting. Fails the test when there
// are none.
inline std::vector<std::vector<std::string>> ReadGolden(const std::string& name) {
  std::ifstream file(TACIT_SOURCE_DIR "/tests/golden/" + name + ".csv");
  std::string line;
  std::vector<std::vector<std::string>> rows;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> cells(1);
    for (char c : line) {
      if (c == ',') {
        cells.emplace_back();
      } else {
        cells.back().push_back(c);
      }
    }
    rows.push_back(std::move(cells));
  }
  EXPECT_FALSE(rows.empty()) << "golden file " << name;
  return rows;
}

inline double CellNumber(const std::string& cell) { return std::strtod(cell.c_str(), nullptr); }

inline std::vector<std::vector<double>> ReadGoldenNumbers(const std::string& name) {
  std::vector<std::vector<double>> rows;
  for (const auto& cells : ReadGolden(name)) {
    rows.emplace_back();
    for (const std::string& cell : cells) rows.back().push_back(std::strtod(cell.c_str(), nullptr));
  }
  return rows;
}

template <size_t N>
std::array<uint8_t, N> Bytes(std::string_view hex) {
  std::array<uint8_t, N> bytes{};
  EXPECT_TRUE(FromHex(hex, bytes)) << hex;
  return bytes;
}

}  // namespace tacit::testing
