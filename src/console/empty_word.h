#pragma once

#include <functional>
#include <string>

namespace tacit::console {

// Returns what is wrong with a command line that has an empty word which is no option's value, such
// as a script's "$STORE" that is not set; "" if nothing is. CLI11 2.1.2 would call itself without
// end where a flag follows, and would take the word behind "--store=" for its value.
// `takes_value` says whether an option of this name takes one.
std::string WhyWordIsEmpty(int argc, const char* const* argv,
                           const std::function<bool(const std::string& option)>& takes_value);

}  // namespace tacit::console
