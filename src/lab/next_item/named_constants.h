#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "base/text.h"

// Reads constants from NAME=VALUE, lists them, and prints them. Each set of constants is defined
// once, by a function for_each(constants, visit) that calls visit(name, field) for every constant.
namespace tacit::lab {

inline Status ParseConstant(std::string_view text, bool* value) {
  if (text != "true" && text != "false")
    return Fail(ErrorCode::kInvalidArgument, "it is true or false");
  *value = text == "true";
  return {};
}

template <class Number>
Status ParseConstant(std::string_view text, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if constexpr (std::is_floating_point_v<Number>) {
    if (whole && std::isfinite(*value)) return {};
    return Fail(ErrorCode::kInvalidArgument, "it is a number");
  } else {
    if (whole) return {};
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("it is a whole number of 0 to {}", std::numeric_limits<Number>::max()));
  }
}

template <class Constants, class ForEach>
std::vector<std::string_view> NamesOf(const Constants& constants, const ForEach& for_each) {
  std::vector<std::string_view> names;
  for_each(constants, [&](std::string_view name, const auto&) { names.push_back(name); });
  return names;
}

template <class Constants, class ForEach>
std::string TextOf(const Constants& constants, const ForEach& for_each) {
  std::string text;
  for_each(constants, [&](std::string_view name, const auto& field) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", name, field);
  });
  return text;
}

// kInvalidArgument, naming --set. `whose` names the owner in messages: "trained learners".
template <class Constants, class ForEach>
Status SetNamed(std::string_view setting, std::string_view whose, const ForEach& for_each,
                Constants* constants) {
  const size_t equals = setting.find('=');
  const std::string_view wanted = setting.substr(0, equals);
  const auto refuse = [&](std::string why) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("--set {}: {}", setting, why));
  };
  if (equals == std::string_view::npos) return refuse("it has the form NAME=VALUE");
  bool found = false;
  Status status;
  for_each(*constants, [&](std::string_view name, auto& field) {
    if (name != wanted) return;
    found = true;
    auto value = field;  // a refused value leaves the field unchanged
    status = ParseConstant(setting.substr(equals + 1), &value);
    if (status) field = value;
  });
  if (!found) {
    const auto names = NamesOf(*constants, for_each);
    return refuse(fmt::format("no constant of {}{}; there are {}", whose, DidYouMean(wanted, names),
                              fmt::join(names, ", ")));
  }
  return status ? Status() : refuse(status.error().message);
}

}  // namespace tacit::lab
