#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace tacit::cli {

// A text as a shell reads it back, in one line: quoted where it has to be.
std::string ShellWord(std::string_view text);

// An option with its value, with a space before it.
std::string OptionWords(std::string_view name, std::string_view value);

// The arguments that a command was given, each with a space before it. REQUIRES that it was parsed.
std::string GivenWords(const CLI::App& command);

}  // namespace tacit::cli
