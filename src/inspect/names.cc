#include "inspect/names.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

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

// A number without the signs around it, and with a point where its fraction begins.
std::string PlainNumber(std::string_view text) {
  const auto is_sign = [](char c) {
    return c == ' ' || c == '$' || c == '%' || static_cast<unsigned char>(c) >= 0x80;
  };
  const auto is_currency = [](std::string_view word) {
    return word.size() == 3 &&
           std::ranges::all_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
  };
  if (text.size() > 4 && text[text.size() - 4] == ' ' && is_currency(text.substr(text.size() - 3)))
    text.remove_suffix(4);
  while (!text.empty() && is_sign(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_sign(text.back())) text.remove_suffix(1);
  std::string number(text);
  const size_t comma = number.rfind(','), point = number.rfind('.');
  if (comma == std::string::npos) return number;
  const bool fraction = point == std::string::npos || comma > point;
  if (fraction) number[comma] = ';';
  std::erase_if(number, [&](char c) { return c == ',' || (fraction && c == '.'); });
  std::ranges::replace(number, ';', '.');
  return number;
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

// `of_two`: the column has one other word. Among more words "good" may be neither the best nor the
// only success, so that only words of an event are one.
bool IsSuccess(std::string_view word, bool of_two) {
  static constexpr std::string_view kEvents[] = {
      "click",     "clicked",   "buy",         "bought",   "purchase",  "purchased",
      "convert",   "converted", "conversion",  "order",    "payment",   "paid",
      "done",      "checkout",  "transaction", "complete", "completed", "won",
      "subscribe", "success",   "subscribed",  "signup",   "successful"};
  static constexpr std::string_view kOfTwo[] = {"yes",  "y",    "true", "t",
                                                "like", "good", "pos",  "positive"};
  const std::string plain = Plain(word);
  return std::ranges::find(kEvents, plain) != std::end(kEvents) ||
         (of_two && std::ranges::find(kOfTwo, plain) != std::end(kOfTwo));
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
    if (!event::ReadNumber(PlainNumber(text))) return false;
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
  if (text == "-1" || text == "\\N") return true;
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
    return false;
  if (text.find_first_of(";|\t") != text.npos) return false;  // several values, perhaps
  const std::string plain = Plain(text);
  const bool clock = text.find(':') != text.npos && text.find('-') == text.npos;  // "00:00"
  const bool amount = text.find_first_of(",%$") != text.npos;                     // "0,00"
  return (plain.find_first_not_of('0') == plain.npos && !clock && !amount) ||
         std::ranges::find(kWords, plain) != std::end(kWords);
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

bool TellsSuccess(const Column& column) {
  const bool of_two = column.texts.size() == 2;
  const auto successes = static_cast<size_t>(std::ranges::count_if(
      column.texts, [&](const auto& text) { return IsSuccess(text.second, of_two); }));
  return successes > 0 && successes < column.texts.size();
}

config::Words WordsToLabels(const Column& column, uint64_t rows) {
  std::map<uint32_t, uint64_t> counts;
  for (uint64_t row = 0; row < rows; ++row)
    if (column.code[row] != 0) ++counts[column.code[row]];
  uint32_t rarest = 0;
  for (const auto& [code, count] : counts)
    if (rarest == 0 || count < counts[rarest]) rarest = code;
  const bool told = TellsSuccess(column);
  config::Words labels;
  for (const auto& [code, count] : counts) {
    const std::string text = column.TextOf(code);
    const bool is_one = told ? IsSuccess(text, column.texts.size() == 2) : code == rarest;
    labels.emplace_back(text, is_one ? "1" : "0");
  }
  std::ranges::sort(labels);
  return labels;
}

}  // namespace tacit::inspect
