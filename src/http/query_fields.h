#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

// Reads a request's query, the part after '?'.
namespace tacit::http {

// Calls each(name, value) for every field, with %XX and '+' decoded; stops at its first failure.
// kInvalidArgument for a % without two hexadecimal digits.
Status ForFields(
    std::string_view query,
    const std::function<Status(std::string_view name, const std::string& value)>& each);

// A part of a path, with %XX decoded; kInvalidArgument as above, naming `what` it is.
Result<std::string> PathText(std::string_view what, std::string_view text);

// The field's value as a whole number; kInvalidArgument names the field.
Result<uint64_t> WholeNumber(std::string_view name, std::string_view value);

}  // namespace tacit::http
