#include "event/letter_line.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

namespace tacit::event {
namespace {

constexpr std::string_view kBegin = R"({"file":")";

bool Skip(std::string_view expected, std::string_view* rest) {
  if (!rest->starts_with(expected)) return false;
  rest->remove_prefix(expected.size());
  return true;
}

// Skips past a string's end, the first quote that no backslash escapes.
bool SkipString(std::string_view* rest) {
  for (size_t i = 0; i < rest->size(); ++i) {
    if ((*rest)[i] == '"') {
      rest->remove_prefix(i + 1);
      return true;
    }
    if ((*rest)[i] == '\\') ++i;
  }
  return false;
}

template <class Int>
bool TakeNumber(std::string_view* rest, Int* number) {
  const auto [end, error] = std::from_chars(rest->data(), rest->data() + rest->size(), *number);
  if (error != std::errc()) return false;
  rest->remove_prefix(static_cast<size_t>(end - rest->data()));
  return true;
}

}  // namespace

std::string ToLine(const DeadLetter& letter) {
  const boost::json::object json{{"file", letter.origin},
                                 {"line", letter.line},
                                 {"partition", letter.partition},
                                 {"offset", letter.offset},
                                 {"reason", letter.reason}};
  return boost::json::serialize(json) + '\n';
}

std::optional<LetterPlace> ParseLine(std::string_view line) {
  LetterPlace place;
  uint64_t number = 0;
  const bool good = Skip(kBegin, &line) && SkipString(&line) && Skip(R"(,"line":)", &line) &&
                    TakeNumber(&line, &number) && Skip(R"(,"partition":)", &line) &&
                    TakeNumber(&line, &place.partition) && Skip(R"(,"offset":)", &line) &&
                    TakeNumber(&line, &place.offset) && Skip(R"(,"reason":")", &line) &&
                    SkipString(&line) && line == "}";
  return good ? std::optional(place) : std::nullopt;
}

bool MayBeginLine(std::string_view bytes) {
  const size_t shared = std::min(bytes.size(), kBegin.size());
  return bytes.substr(0, shared) == kBegin.substr(0, shared);
}

}  // namespace tacit::event
