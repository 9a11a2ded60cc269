#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "inspect/roles.h"

namespace tacit::inspect {
namespace {

struct ValueStory {
  uint64_t count = 0, first = 0, last = 0, later = 0;  // later: in the second half
};
using Stories = std::unordered_map<uint32_t, ValueStory>;

Stories StoriesOf(const Column& column, uint64_t rows, Profile* profile) {
  Stories stories;
  uint64_t missing[2] = {0, 0};
  uint32_t before = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    const uint32_t code = column.code[row];
    const size_t half = row * 2 < rows ? 0 : 1;
    if (code == 0) {
      ++missing[half];
      continue;
    }
    ValueStory& story = stories[code];
    if (story.count++ == 0) story.first = row;
    story.last = row;
    story.later += half;
    profile->runs += code != before ? 1 : 0;
    before = code;
  }
  const double half = static_cast<double>(rows) / 2;
  const double first = std::ceil(half), second = std::floor(half);
  profile->missing_first = first > 0 ? static_cast<double>(missing[0]) / first : 0;
  profile->missing_second = second > 0 ? static_cast<double>(missing[1]) / second : 0;
  profile->present = rows - missing[0] - missing[1];
  profile->missing =
      rows > 0 ? 1 - static_cast<double>(profile->present) / static_cast<double>(rows) : 0;
  return stories;
}

void AddSkew(const Stories& stories, uint64_t rows, Profile* profile) {
  std::vector<uint64_t> counts;
  uint64_t early = 0, fresh = 0, later = 0;
  for (const auto& [code, story] : stories) {
    counts.push_back(story.count);
    later += story.later;
    if (story.first * 2 < rows)
      ++early;
    else
      fresh += story.count;
  }
  const size_t ten = std::min<size_t>(10, counts.size());
  std::partial_sort(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(ten), counts.end(),
                    std::greater());
  const auto present = static_cast<double>(std::max<uint64_t>(1, profile->present));
  for (size_t i = 0; i < ten; ++i) {
    const double share = static_cast<double>(counts[i]) / present;
    if (i == 0) profile->top = profile->top_least = share;
    profile->top_10 += share;
  }
  profile->distinct = stories.size();
  if (early > 0)
    profile->growth =
        std::min(1.0, std::log2(static_cast<double>(stories.size()) / static_cast<double>(early)));
  if (later > 0) profile->fresh = static_cast<double>(fresh) / static_cast<double>(later);
}

// Distances between a value's neighbouring records, each over the distance that chance would make
// of them and at most 1.
double ClosenessOf(const Column& column, const Stories& stories, uint64_t rows) {
  std::unordered_map<uint32_t, uint64_t> last;
  double sum = 0, pairs = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    const uint32_t code = column.code[row];
    if (code == 0) continue;
    const auto [seen, fresh] = last.emplace(code, row);
    if (fresh) continue;
    const double usual = static_cast<double>(rows) / static_cast<double>(stories.at(code).count);
    sum += std::min(1.0, static_cast<double>(row - seen->second) / usual);
    pairs += 1;
    seen->second = row;
  }
  return pairs > 0 ? sum / pairs : 1;
}

// The share of neighbours that do not fall.
class Order {
 public:
  void Add(double number) {
    if (!std::isnan(before_)) {
      ordered_ += number >= before_ ? 1 : 0;
      pairs_ += 1;
    }
    before_ = number;
  }
  double share() const { return pairs_ > 0 ? ordered_ / pairs_ : 0; }

 private:
  double before_ = NAN, ordered_ = 0, pairs_ = 0;
};

void AddNumbers(const Column& column, Profile* profile) {
  Order all;
  std::array<Order, std::size(kTimeUnits)> times;
  profile->least = INFINITY;
  profile->most = -INFINITY;
  for (const double number : column.number) {
    if (std::isnan(number)) continue;
    profile->least = std::min(profile->least, number);
    profile->most = std::max(profile->most, number);
    all.Add(number);
    for (size_t i = 0; i < std::size(kTimeUnits); ++i) {
      if (!IsUsualTime(number * kTimeUnits[i].ms_per_unit)) continue;
      ++profile->times_in[i];
      times[i].Add(number);
    }
  }
  profile->ordered = all.share();
  const auto unit = std::ranges::max_element(profile->times_in) - profile->times_in.begin();
  profile->times_ordered = times[static_cast<size_t>(unit)].share();
}

// Texts of one form, or numbers between 1990 and 2100 in one of the units.
std::optional<event::TimeUnit> UnitOfTimes(const Column& column, const Profile& profile) {
  constexpr double kNearlyAll = 0.95;
  const auto nearly_all = [&](auto times) {
    return times > 0 &&
           static_cast<double>(times) >= kNearlyAll * static_cast<double>(profile.present);
  };
  if (nearly_all(column.times)) return event::TimeUnit::kRfc3339;
  if (nearly_all(column.datetimes)) return event::TimeUnit::kDatetime;
  if (!nearly_all(column.numbers())) return std::nullopt;
  for (size_t i = 0; i < std::size(kTimeUnits); ++i)
    if (nearly_all(profile.times_in[i])) return kTimeUnits[i].unit;
  return std::nullopt;
}

}  // namespace

Profile ProfileOf(const Column& column, uint64_t rows) {
  Profile profile;
  const Stories stories = StoriesOf(column, rows, &profile);
  AddSkew(stories, rows, &profile);
  profile.closeness = ClosenessOf(column, stories, rows);
  if (!column.number.empty()) AddNumbers(column, &profile);
  profile.elements = column.elements.size();
  profile.time_unit = UnitOfTimes(column, profile);
  profile.zero_or_one = column.numbers() + column.flags == profile.present && profile.present > 0 &&
                        profile.distinct == 2 && profile.least == 0 && profile.most == 1;
  return profile;
}

}  // namespace tacit::inspect
