#include "system/accidents/shop_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tacit::test {

std::string_view NameOf(Happening happening) {
  constexpr std::string_view kNames[] = {"nothing",          "renamed field",  "labels all 1",
                                         "everything twice", "seconds for ms", "users gone",
                                         "other topic",      "night",          "sale",
                                         "new category"};
  return kNames[static_cast<size_t>(happening)];
}

ShopStream::ShopStream(uint64_t seed, Happening happening, Size sizes)
    : random_(seed), happening_(happening) {
  const int numbers = Between(0, 3), categories = Between(2, 6);
  const auto name = [&] { return fmt::format("f{:x}", random_() % 0xffffffu); };
  for (int i = 0; i < numbers + categories; ++i) {
    names_.push_back(name());
    values_.push_back(i < numbers ? 0 : uint64_t{1} << Between(4, sizes.value_bits));
    missing_.push_back(Uniform() < .5 ? 0 : .2 * Uniform());
  }
  label_ = name();
  user_ = name();
  time_ = name();
  users_ = static_cast<uint64_t>(Between(sizes.least, sizes.most));
  click_rate_ = .05 + .35 * Uniform();
  const double size = Uniform();
  switch (happening) {
    case Happening::kRenamedField:
      column_ = Between(-1, static_cast<int>(names_.size()) - 1);
      share_ = .4 + .6 * size;
      break;
    case Happening::kLabelsAllOne:
      share_ = .6 + .4 * size;
      break;
    case Happening::kSecondsForMilliseconds:
      share_ = .2 + .8 * size;
      break;
    case Happening::kHalfOfTheUsersGone:
      share_ = .4 + .2 * size;
      break;
    case Happening::kNewCategory:
      column_ = static_cast<int>(names_.size()) - 1;
      share_ = .5 * size;
      break;
    case Happening::kSale:
      share_ = .5 * size;  // more clicks
      break;
    default:
      share_ = .5 + .5 * size;
  }
}

int ShopStream::Between(int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random_);
}
double ShopStream::Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
uint64_t ShopStream::Skewed(uint64_t n) {
  return static_cast<uint64_t>(std::pow(static_cast<double>(n), Uniform()) - .999);
}

std::string ShopStream::SourceJson() const {
  std::string features;
  for (const std::string& name : names_)
    features += fmt::format("{}{}: /{}", features.empty() ? "" : ", ", name, name);
  return fmt::format(
      "{{label: /{}, user: /{}, timestamp: /{}, item: \"\", event_id: \"\", features: {{{}}}}}",
      label_, user_, time_, features);
}

std::string ShopStream::Schema() const {
  std::string features;
  for (size_t i = 0; i < names_.size(); ++i)
    features += values_[i] == 0
                    ? fmt::format("    - {{name: {}, kind: dense}}\n", names_[i])
                    : fmt::format("    - {{name: {}, kind: categorical, buckets: {}}}\n", names_[i],
                                  std::max<uint64_t>(256, 2 * values_[i]));
  return "schema:\n  features:\n" + features;
}

uint64_t ShopStream::NextUser(bool happens) {
  while (true) {
    const uint64_t user = Skewed(users_);
    const bool gone = happens && happening_ == Happening::kHalfOfTheUsersGone &&
                      static_cast<double>(user * 7919 % 1000) < 1000 * share_;
    if (!gone) return user;
  }
}

double ShopStream::Pace(bool happens, double since) const {
  return happens && happening_ == Happening::kNight ? std::exp(-since / 20) : 1;
}

std::string ShopStream::Record(bool happens, bool hit, double since, int64_t now_ms) {
  const bool another = hit && happening_ == Happening::kAnotherTopic;
  double rate = click_rate_;
  if (happens && happening_ == Happening::kSale) rate = std::min(.95, rate * (1 + share_));
  if (happens && happening_ == Happening::kNight) rate *= 1 - .4 * std::min(1., since / 60);
  const bool label = (hit && happening_ == Happening::kLabelsAllOne) || Uniform() < rate;
  const bool renames = hit && happening_ == Happening::kRenamedField;
  const bool seconds = hit && happening_ == Happening::kSecondsForMilliseconds;
  std::string record = fmt::format(
      R"({{"{}{}":{},"{}":"user-{}","{}":{})", renames && column_ < 0 ? "new_" : "", label_,
      label ? 1 : 0, user_, NextUser(happens), time_, seconds ? now_ms / 1000 : now_ms);
  for (int i = 0; i < static_cast<int>(names_.size()); ++i) {
    const auto at = static_cast<size_t>(i);
    if (Uniform() < missing_[at]) continue;
    record += fmt::format(R"(,"{}{}":)", renames && column_ == i ? "new_" : "", names_[at]);
    if (values_[at] == 0)
      record += fmt::format("{:.4f}", Uniform());
    else if (hit && happening_ == Happening::kNewCategory && column_ == i)
      record += "\"brand new\"";
    else
      record += fmt::format("\"{}{}\"", another ? "other-" : "v", Skewed(values_[at]));
  }
  return record + '}';
}

void ShopStream::Next(bool happens, double since, int64_t now_ms,
                      std::vector<std::string>* records) {
  const bool hit = happens && Uniform() < share_;
  records->push_back(Record(happens, hit, since, now_ms));
  if (hit && happening_ == Happening::kEverythingTwice) records->push_back(records->back());
}

}  // namespace tacit::test
