#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

#include "support/process.h"

namespace tacit::test {

// The object that this text is; an empty one, and a failure of the test, where it is none.
inline boost::json::object ParseJson(const std::string& text) {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse(text, error);
  const bool is_object = !error && value.is_object();
  EXPECT_TRUE(is_object) << "no JSON object: " << text;
  return is_object ? std::move(value.as_object()) : boost::json::object{};
}

// Parses what a program printed with --json. Expects that it ended with `exit_code`.
inline boost::json::object Json(const Ended& ended, int exit_code = 0) {
  EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
  return ParseJson(ended.out);
}

}  // namespace tacit::test
