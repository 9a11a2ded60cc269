#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacit::test {

// Accidents of the producers of a stream, and days like any other (the last three).
enum class Happening : uint8_t {
  kNothing,
  kRenamedField,  // the label, or a feature, comes under another name
  kLabelsAllOne,
  kEverythingTwice,
  kSecondsForMilliseconds,
  kHalfOfTheUsersGone,
  kAnotherTopic,  // records of other fields, or of the same fields with other values
  kNight,         // fewer and fewer records, and fewer clicks
  kSale,          // more clicks
  kNewCategory,   // a value that was not there before
};
inline constexpr Happening kHappenings[] = {Happening::kRenamedField,
                                            Happening::kLabelsAllOne,
                                            Happening::kEverythingTwice,
                                            Happening::kSecondsForMilliseconds,
                                            Happening::kHalfOfTheUsersGone,
                                            Happening::kAnotherTopic,
                                            Happening::kNight,
                                            Happening::kSale,
                                            Happening::kNewCategory};

constexpr bool IsAccident(Happening happening) {
  return happening >= Happening::kRenamedField && happening <= Happening::kAnotherTopic;
}
std::string_view NameOf(Happening happening);

// Clicks as JSON, in a random shape of their own: names, features, users, click rate, missing
// values. The happening has a random size, as that of stream_watch_test.cc has.
class ShopStream {
 public:
  // The size of a stream: at least and at most this many users.
  struct Size {
    int least = 1000, most = 20'000;
    int value_bits = 16;  // of the values of a feature, at most
  };
  ShopStream(uint64_t seed, Happening happening, Size sizes);

  // The configuration's `source.json` and `schema` for these records.
  std::string SourceJson() const;
  std::string Schema() const;

  // Appends a record, or two where everything comes twice. `happens`: from the happening's
  // beginning on; `since`, in seconds from then, is for what comes slowly.
  void Next(bool happens, double since, int64_t now_ms, std::vector<std::string>* records);
  // Records a second, in shares of those of an ordinary one.
  double Pace(bool happens, double since) const;

 private:
  int Between(int least, int most);
  double Uniform();
  // A number below `n`, small ones more often.
  uint64_t Skewed(uint64_t n);
  uint64_t NextUser(bool happens);
  std::string Record(bool happens, bool hit, double since, int64_t now_ms);

  std::mt19937_64 random_;
  const Happening happening_;
  double share_ = 0;                // of records, or of users
  int column_ = 0;                  // that is renamed or has a new value; -1: the label
  std::vector<std::string> names_;  // numbers, then categories
  std::vector<uint64_t> values_;    // 0: a number
  std::vector<double> missing_;
  std::string label_, user_, time_;
  uint64_t users_ = 0, next_ = 0;
  double click_rate_ = 0;
};

}  // namespace tacit::test
