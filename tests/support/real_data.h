#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace tacit::test {

// The path of a file of real data, which may not be shipped: it is taken from ../shared/data beside
// the checkout. "" where it is not there and need not be; where TACIT_REQUIRE asks for data, that
// is a failure.
inline std::string RealData(const std::string& name) {
  const std::string path = std::string(TACIT_SOURCE_DIR) + "/../shared/data/" + name;
  if (std::filesystem::exists(path)) return path;
  const char* required = std::getenv("TACIT_REQUIRE");
  EXPECT_TRUE(required == nullptr || std::string_view(required).find("data") == std::string::npos)
      << "TACIT_REQUIRE asks for real data, and " << path << " is missing";
  return "";
}

}  // namespace tacit::test
