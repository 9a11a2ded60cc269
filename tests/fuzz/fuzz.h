#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// For the fuzzers: each reads bytes as a stranger would send them. Sanitizers find what is read or
// computed wrongly; Demand finds what is merely false.
namespace tacit::fuzz {

// Ends the process where a rule of the product is broken, so that the fuzzer keeps the input.
inline void Demand(bool holds, std::string_view rule) {
  if (holds) return;
  std::fprintf(stderr, "broken: %.*s\n", static_cast<int>(rule.size()), rule.data());
  std::abort();
}

inline std::string_view TextOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Takes the first byte, which chooses among readers; 0 where there is none.
inline uint8_t TakeChoice(std::string_view* bytes) {
  if (bytes->empty()) return 0;
  const auto choice = static_cast<uint8_t>(bytes->front());
  bytes->remove_prefix(1);
  return choice;
}

// An error must say something. It may quote what it was given: its caller makes that
// printable.
template <class Outcome>
void DemandGoodError(const Outcome& outcome) {
  Demand(outcome.has_value() || !outcome.error().message.empty(), "an error has a message");
}

}  // namespace tacit::fuzz
