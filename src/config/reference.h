#pragma once

#include <string>

// Every key of the configuration, out of its description: `tacitd --describe config`.
namespace tacit::config {

// docs/reference/config.md: a table for each section.
std::string MarkdownReference();
// config/reference.yaml: a configuration that is valid and has every default. Keys that it does not
// use stand behind a '#'.
std::string YamlReference();
// A list of all sections and keys for programs, with defaults as YAML.
std::string JsonReference();

}  // namespace tacit::config
