#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tacit::console {

// A check of an option's value, for CLI11, which puts the option's name before the answer: what is
// wrong with the value and what is allowed, or "".
using NumberCheck = std::function<std::string(const std::string& value)>;

// Allows whole numbers of at least `least`.
NumberCheck WholeFrom(uint64_t least);
// Allows whole numbers from `least` to `most`.
NumberCheck WholeBetween(uint64_t least, uint64_t most);
// Allows finite numbers above 0.
NumberCheck AboveZero();
// Allows numbers from `least` to `most`.
NumberCheck Between(double least, double most);

}  // namespace tacit::console
