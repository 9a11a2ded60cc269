#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace tacit::lab::test_scores {

// Says in a file of kept scores, of the model trained as `from`, that it was trained as `to`: so a
// test plants that it was.
inline void Pretend(const std::string& path, const std::string& from, const std::string& to) {
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto at = text.find('"' + from + '"');
  ASSERT_NE(at, std::string::npos) << text.substr(0, 200);
  text.replace(at, from.size() + 2, '"' + to + '"');
  std::ofstream(path) << text;
}

}  // namespace tacit::lab::test_scores
