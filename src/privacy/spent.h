#pragma once

#include <string_view>

namespace tacit::privacy {

// The budget that has no room for a learner's next step, so that the learner stands still.
enum class Spent { kNone, kOwn, kTotal };

// "own" or "total"; "" while there is room.
constexpr std::string_view Name(Spent spent) {
  switch (spent) {
    case Spent::kNone:
      return "";
    case Spent::kOwn:
      return "own";
    case Spent::kTotal:
      return "total";
  }
  return "";
}

}  // namespace tacit::privacy
