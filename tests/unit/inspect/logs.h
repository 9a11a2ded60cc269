#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

// Logs whose fields have names drawn at random, so that nothing can be told by a name.
namespace tacit::test {

// Names of small letters, all different.
class RandomNames {
 public:
  explicit RandomNames(uint64_t seed) : random_(seed) {}
  std::string Next() {
    while (true) {
      std::string name;
      for (int i = 0; i < 6; ++i) name += static_cast<char>('a' + random_() % 26);
      if (given_.insert(name).second) return name;
    }
  }

 private:
  std::mt19937_64 random_;
  std::set<std::string> given_;
};

inline std::vector<std::string> SplitAt(const std::string& line, char separator) {
  std::vector<std::string> fields;
  std::string field;
  std::istringstream in(line);
  while (std::getline(in, field, separator)) fields.push_back(field);
  if (line.ends_with(separator)) fields.emplace_back();
  return fields;
}

inline std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines = SplitAt(text, '\n');
  if (text.ends_with('\n')) lines.pop_back();
  return lines;
}

// The four fields of a rating, in an order of their own.
struct MovieNames {
  explicit MovieNames(uint64_t seed) {
    RandomNames names(seed);
    for (std::string* name : {&user, &item, &rating, &time}) *name = names.Next();
  }
  std::string user, item, rating, time;
};
// JSON lines out of MovieLens' `userId,movieId,rating,timestamp`, at most `most` of them.
inline std::string MoviesAsJson(const std::string& csv, const MovieNames& names,
                                size_t most = SIZE_MAX) {
  std::string text;
  std::istringstream in(csv);
  std::string line;
  std::getline(in, line);  // the header
  for (size_t i = 0; i < most && std::getline(in, line); ++i) {
    if (line.ends_with('\r')) line.pop_back();
    const std::vector<std::string> fields = SplitAt(line, ',');
    text += fmt::format(R"({{"{}":{},"{}":{},"{}":{},"{}":{}}})", names.item, fields[1], names.time,
                        fields[3], names.user, fields[0], names.rating, fields[2]);
    text += '\n';
  }
  return text;
}

// The forty names of Criteo's columns.
inline std::vector<std::string> CriteoNames(uint64_t seed) {
  RandomNames names(seed);
  std::vector<std::string> list;
  for (int i = 0; i < 40; ++i) list.push_back(names.Next());
  return list;
}
// A JSON line out of one of Criteo's: numbers as numbers, categories as texts, missing ones left
// out, the label in the middle.
inline std::string CriteoAsJson(const std::string& line, const std::vector<std::string>& names) {
  std::vector<std::string> fields = SplitAt(line, '\t');
  fields.resize(40);
  std::string record;
  for (size_t k = 0; k < 40; ++k) {
    const size_t i = (k + 20) % 40;
    if (fields[i].empty()) continue;
    const std::string value = i <= 13 ? fields[i] : '"' + fields[i] + '"';
    record += fmt::format("{}\"{}\":{}", record.empty() ? "" : ",", names[i], value);
  }
  return '{' + record + "}\n";
}

// The fields of a shop's records, by names drawn at random.
struct ShopNames {
  explicit ShopNames(uint64_t seed) {
    RandomNames names(seed);
    for (std::string* name : {&when, &who, &shelf, &price, &hour, &taken}) *name = names.Next();
  }
  std::string when, who, shelf, price, hour, taken;
};
struct ShopRecord {
  std::string who, json;
  int64_t when_ms = 0;
};
// JSON records of the same shop, a minute apart: whether an offer is taken depends on its shelf,
// its price and the hour; the rest is chance.
inline std::vector<ShopRecord> ShopAsJson(uint64_t seed, size_t rows, const ShopNames& names) {
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<ShopRecord> records;
  for (size_t i = 0; i < rows; ++i) {
    const uint64_t shelf = random() % 60, hour = i / 60 % 24, who = random() % 3000;
    const double price = std::exp(6 * uniform());
    const double logit =
        -1.2 + (shelf % 7 == 0 ? 1.5 : -0.3) - 0.35 * (std::log(price) - 3) + (hour > 17 ? 0.8 : 0);
    const bool taken = uniform() < 1 / (1 + std::exp(-logit));
    ShopRecord record{.who = fmt::format("u{}", who),
                      .json = {},
                      .when_ms = 1'772'323'200'000 + static_cast<int64_t>(i) * 60'000};
    record.json =
        fmt::format(R"({{"{}":{},"{}":"{}","{}":"shelf {}","{}":{:.2f},"{}":{},"{}":{}}})",
                    names.when, record.when_ms, names.who, record.who, names.shelf, shelf,
                    names.price, price, names.hour, hour, names.taken, taken ? 1 : 0);
    records.push_back(std::move(record));
  }
  return records;
}

// A shop's lines of values, with a header: whether an offer is taken depends on its shelf, its
// price and the hour; the rest is chance.
inline std::string ShopAsCsv(uint64_t seed, size_t rows, char separator = ';') {
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::string text = "when;who;shelf;price;hour;tags;seen;taken\n";
  for (size_t i = 0; i < rows; ++i) {
    const uint64_t shelf = random() % 60, hour = random() % 24, tag = random() % 12;
    const double price = std::exp(6 * uniform());
    const double logit = -1.2 + (shelf % 7 == 0 ? 1.5 : -0.3) - 0.35 * (std::log(price) - 3) +
                         (hour > 17 ? 0.8 : 0) + (tag == 3 ? 0.9 : 0);
    const bool taken = uniform() < 1 / (1 + std::exp(-logit));
    text += fmt::format("2026-03-{:02}T{:02}:{:02}:00Z;u{};\"shelf {}\";{:.2f};{};t{}|t{};{};{}\n",
                        1 + i * 28 / rows, i * 24 * 28 / rows % 24, i % 60, random() % 3000, shelf,
                        price, hour, tag, 20 + random() % 30, random() % 500, taken ? "yes" : "no");
  }
  if (separator != ';')
    for (char& c : text) c = c == ';' ? separator : c;
  return text;
}

// A shop's log with users, items and other columns: shelves are whole numbers, times name no zone.
inline std::string DatedShopAsCsv(uint64_t seed, size_t rows, size_t users = 400,
                                  char separator = ',') {
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::string text = "at,customer,sku,shelf,price,clicked\n";
  for (size_t i = 0; i < rows; ++i) {
    const uint64_t sku = random() % 100, shelf = sku % 12;
    const bool clicked = uniform() < (shelf % 4 == 0 ? 0.5 : 0.1);
    text += fmt::format("2019-11-{:02} {:02}:{:02}:13,u{},{},{},{:.2f},{}\n", 1 + i * 28 / rows,
                        i * 24 * 28 / rows % 24, i % 60, random() % users, 7000 + sku, shelf,
                        std::exp(5 * uniform()), clicked ? 1 : 0);
  }
  if (separator != ',')
    for (char& c : text) c = c == ',' ? separator : c;
  return text;
}
// The same records as JSON lines.
inline std::string DatedShopAsJson(const std::string& csv) {
  std::string text;
  std::istringstream in(csv);
  std::string line;
  std::getline(in, line);  // the header
  while (std::getline(in, line)) {
    const std::vector<std::string> fields = SplitAt(line, ',');
    text += fmt::format(
        R"({{"at":"{}","customer":"{}","what":{{"sku":{},"shelf":{},"price":{}}},"clicked":{}}})",
        fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]);
    text += '\n';
  }
  return text;
}

}  // namespace tacit::test
