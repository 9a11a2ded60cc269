#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace tacit::console {

// Ends a command line that CLI11 could not read, or that asks for help or the version. Returns the
// exit code. A wrong line is told on standard error in words of our own: the command, the option,
// what it takes, and the nearest name where one is misspelt.
int EndParse(const CLI::App& app, const CLI::ParseError& error, std::string_view program);

// The words alone, for EndParse and its tests.
std::string WhyNotParsed(const CLI::App& app, const CLI::ParseError& error,
                         std::string_view program);

}  // namespace tacit::console
