#include "inspect/names.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <utility>

#include "event/shape_rules.h"

namespace tacit::inspect {
namespace {

// Small letters and digits of a name: "userId" and "user_id" are one.
std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

// The last word of a name, in small letters: "id" of "shop_id", "shopId" and "Shop ID".
std::string LastWord(std::string_view name) {
  size_t begin = name.size();
  while (begin > 0 && std::isalnum(static_cast<unsigned char>(name[begin - 1])) != 0) {
    --begin;
    if (begin > 0 && std::isupper(static_cast<unsigned char>(name[begin])) != 0 &&
        std::islower(static_cast<unsigned char>(name[begin - 1])) != 0)
      break;
  }
  return Plain(name.substr(begin));
}

// Tries the last key, and the last two: "/user/id" is called "userid".
bool IsCalled(const Column& column, std::initializer_list<std::string_view> names) {
  const auto among = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (among(Plain(column.name))) return true;
  const size_t last = column.place.rfind('/');
  if (last == std::string::npos || last == 0) return false;
  const size_t before = column.place.rfind('/', last - 1);
  return among(Plain(std::string_view(column.place).substr(before + 1)));
}

// True if the text is digits, commas and points between signs, or before a currency such as EUR.
bool IsWrittenNumber(std::string_view text) {
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (text.size() > 4 && text[text.size() - 4] == ' ' &&
      std::ranges::all_of(text.substr(text.size() - 3), is_capital))
    text.remove_suffix(4);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (!text.empty() && !is_digit(text.front()) && Plain(text.substr(0, 1)).empty())
    text.remove_prefix(1);
  while (!text.empty() && !is_digit(text.back()) && Plain(text.substr(text.size() - 1)).empty())
    text.remove_suffix(1);
  const bool amount =
      std::ranges::all_of(text, [&](char c) { return is_digit(c) || c == ',' || c == '.'; });
  return !text.empty() && amount &&
         (text.find(',') != text.npos || std::ranges::count(text, '.') < 2);
}

// True if the text is a day such as 20261125, or begins with three numbers that may be one, with
// the year first or last.
bool BeginsWithDay(std::string_view text) {
  if (text.size() == 8 && text.find_first_not_of("0123456789") == text.npos)
    return (text.starts_with("19") || text.starts_with("20")) && text.substr(4, 2) <= "12" &&
           text.substr(6) <= "31";
  std::string_view parts[3];
  char sign = 0;
  for (std::string_view& part : parts) {
    const size_t size = std::min(text.find_first_not_of("0123456789"), text.size());
    part = text.substr(0, size);
    text.remove_prefix(size);
    if (&part == &parts[2]) break;
    if (text.empty() || std::string_view("-./").find(text[0]) == std::string_view::npos ||
        (sign != 0 && text[0] != sign))
      return false;
    sign = text[0];
    text.remove_prefix(1);
  }
  const auto is_year = [](std::string_view part) {
    return part.size() == 4 && (part.starts_with("19") || part.starts_with("20"));
  };
  const auto is_short = [](std::string_view part) { return part.size() == 1 || part.size() == 2; };
  const bool ends = text.empty() || text[0] == ' ' || text[0] == 'T' || text[0] == ',';
  return ends && is_short(parts[1]) &&
         ((is_year(parts[0]) && is_short(parts[2])) || (is_short(parts[0]) && is_year(parts[2])));
}

}  // namespace

bool IsLabelName(const Column& column) {
  return IsCalled(column, {"label",    "click",      "clicked",   "isclick",  "isclicked",
                           "target",   "conversion", "converted", "purchase", "purchased",
                           "bought",   "rating",     "stars",     "liked",    "outcome",
                           "response", "y",          "paid",      "success",  "subscribed"});
}
bool IsEventName(const Column& column) {
  return IsCalled(column, {"event", "eventtype", "eventname", "action", "actiontype", "type"});
}
bool IsUserName(const Column& column) {
  return IsCalled(column, {"user", "userid", "uid", "useruuid", "customer", "customerid", "visitor",
                           "visitorid", "member", "memberid", "accountid", "clientid", "cookieid"});
}
bool IsItemName(const Column& column) {
  return IsCalled(column, {"item", "itemid", "product", "productid", "productsku", "sku", "movie",
                           "movieid", "article", "articleid", "track", "trackid", "song", "songid",
                           "video", "videoid", "book", "bookid"});
}
bool IsTimeName(const Column& column) {
  return IsCalled(
      column, {"timestamp", "timestampms", "ts", "time", "datetime", "date", "when", "eventtime",
               "eventtimestamp", "createdat", "occurredat", "unixtime", "epoch", "epochms"});
}
bool IsEventIdName(const Column& column) {
  return IsCalled(column, {"eventid", "event", "id", "uuid", "requestid", "impressionid"});
}

bool IsIdName(const Column& column) { return LastWord(column.name) == "id"; }
bool IsClockName(const Column& column) {
  static constexpr std::string_view kWords[] = {"at",   "date", "datetime", "time",  "timestamp",
                                                "hour", "day",  "week",     "month", "year"};
  return std::ranges::find(kWords, LastWord(column.name)) != std::end(kWords);
}

bool HasWrittenNumbers(const Column& column) {
  size_t written = 0;
  for (const auto& [code, text] : column.texts) {
    if (event::ReadNumber(text) || StandsForNone(text)) continue;
    if (!IsWrittenNumber(text)) return false;
    ++written;
  }
  return written > 0;
}

bool HasDays(const Column& column) {
  size_t days = 0;
  for (const auto& [code, text] : column.texts) {
    if (StandsForNone(text)) continue;
    if (!BeginsWithDay(text)) return false;
    ++days;
  }
  return days > 0;
}

bool StandsForNone(std::string_view text) {
  static constexpr std::string_view kWords[] = {
      "null",     "none",    "nil",       "nan",       "na",   "inf",
      "infinity", "unknown", "undefined", "anonymous", "anon", "guest",
      "notset",   "nobody",  "nouser",    "missing",   "empty"};
  static constexpr std::string_view kSigns[] = {"", "-", "--", "?", ".", "-1", "\\N"};
  if (std::ranges::find(kSigns, text) != std::end(kSigns)) return true;
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
    return false;
  if (text.find_first_of(";|\t") != text.npos) return false;  // several values, perhaps
  return event::ReadNumber(text) == 0 || text.starts_with("0000-00-00") ||
         std::ranges::find(kWords, Plain(text)) != std::end(kWords);
}

std::string TextsForNone::Quoted() const {
  std::string quoted;
  for (const auto& [code, text] : texts)
    quoted += (quoted.empty() ? "" : ", ") + config::QuotedYaml(text);
  return quoted;
}

TextsForNone TextsForNoneOf(const Column& column) {
  TextsForNone none;
  for (const auto& [code, text] : column.texts)
    if (!text.empty() && !event::ReadNumber(text) && StandsForNone(text))  // a list's is empty
      none.texts.emplace(code, text);
  if (!none.texts.empty())
    none.records = static_cast<uint64_t>(std::ranges::count_if(
        column.code, [&](uint32_t code) { return none.texts.contains(code); }));
  return none;
}

Column Without(const TextsForNone& none, const Column& column) {
  Column without = column;
  for (uint32_t& code : without.code)
    if (none.texts.contains(code)) code = 0;
  for (const auto& [code, text] : none.texts) without.texts.erase(code);
  without.words -= none.records;
  return without;
}

std::optional<config::Words> OppositeLabels(const Column& column) {
  static constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"no", "yes"}, {"n", "y"}, {"false", "true"}, {"f", "t"}};
  if (column.texts.size() != 2) return std::nullopt;
  const std::string &one = column.texts.begin()->second, &other = column.texts.rbegin()->second;
  for (const auto& [zero, success] : kPairs) {
    if (Plain(one) == zero && Plain(other) == success)
      return config::Words{{one, "0"}, {other, "1"}};
    if (Plain(one) == success && Plain(other) == zero)
      return config::Words{{other, "0"}, {one, "1"}};
  }
  return std::nullopt;
}

}  // namespace tacit::inspect
