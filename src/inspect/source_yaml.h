#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "inspect/roles.h"
#include "inspect/sample.h"

// The sections of a proposal that say how records are read.
namespace tacit::inspect {

// Returns a comment in lines of at most 100 characters.
std::string CommentLines(size_t indent, std::string_view text);

// Returns "GUESSED: by its name; it might be "paid" or "done"", or the reason of what is no guess.
std::string GroundsText(const Grounds& grounds);
// Returns "; it might be "paid" or "done"", or nothing.
std::string RivalsText(const Grounds& grounds);
// Returns "ms", as timestamp_unit has it.
std::string_view NameOfUnit(event::TimeUnit unit);

// Returns the rows of a feature's table; 0 for numbers.
uint64_t RowsOf(const Sample& sample, const Roles& roles, const FeatureRole& feature);

std::string SourceYaml(const Sample& sample, const Roles& roles);
std::string SchemaYaml(const Sample& sample, const Roles& roles);

}  // namespace tacit::inspect
