#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "event/codec.h"

namespace tacit::event {

// Formats a dead letter as a line of JSON: {"file","line","partition","offset","reason"}, in this
// order and without spaces, with its newline.
std::string ToLine(const DeadLetter& letter);

// The record that a line is about.
struct LetterPlace {
  int32_t partition = 0;
  uint64_t offset = 0;
};

// Reads a line of ToLine's, without its newline; returns nullopt for another line. Reads the five
// keys at their fixed places instead of parsing JSON: a start reads all kept letters.
std::optional<LetterPlace> ParseLine(std::string_view line);

// Returns true if these bytes may be the beginning of such a line, as a crash leaves it.
bool MayBeginLine(std::string_view bytes);

}  // namespace tacit::event
