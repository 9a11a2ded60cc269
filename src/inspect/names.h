#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.h"
#include "inspect/sample.h"

// The names by which people call the parts of a record. They decide where the values leave a
// choice; records with other names are told by their values alone.
namespace tacit::inspect {

bool IsLabelName(const Column& column);
bool IsEventName(const Column& column);  // what has happened, in words
bool IsUserName(const Column& column);
bool IsItemName(const Column& column);
bool IsTimeName(const Column& column);
bool IsEventIdName(const Column& column);
bool IsIdName(const Column& column);     // "id", "shop_id", "shopId"
bool IsClockName(const Column& column);  // "hour", "sent_at", "Order Date"

// True if the texts of a column are numbers in a person's way: "1.234,50", "1,234", "$12.50", "5
// %".
bool HasWrittenNumbers(const Column& column);

// True if the texts of a column begin with a day, in any order of its parts: "25.11.2026 03:22".
bool HasDays(const Column& column);

// True if a text in place of an id stands for no id: "guest", "-1", "n/a".
bool StandsForNone(std::string_view text);
// The texts of a column that stand for none and are no numbers, and the records that have them.
struct TextsForNone {
  std::map<uint32_t, std::string> texts = {};  // by their codes
  uint64_t records = 0;

  std::string Quoted() const;
};
TextsForNone TextsForNoneOf(const Column& column);
// The column as if records with these texts had no value in it.
Column Without(const TextsForNone& none, const Column& column);

// Gives the values of a column their labels where they are two words that say so, in small letters
// or capitals: yes and no, y and n, true and false, t and f. No word says so alone.
std::optional<config::Words> OppositeLabels(const Column& column);

}  // namespace tacit::inspect
