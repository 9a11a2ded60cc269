#include "cli/generate/interaction_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <string_view>

#include "base/check.h"

namespace tacit::cli {
namespace {

// Shares of taken items that come from the last item taken, from taste and from popularity. If the
// user has no last item, or it leads to no item that exists that day, only the last two count.
constexpr double kOfLast = 0.45, kOfTaste = 0.40, kOfPopularity = 0.15;
constexpr double kShownOfTaste = 0.5;  // the rest is drawn from what all are shown
constexpr std::array<double, 3> kFavouriteShare = {0.5, 0.3, 0.2};
constexpr uint32_t kTasteDays = 12;  // days that a favourite stays one

constexpr double kActivitySpread = 0.8, kActivityMost = 5, kEagernessSpread = 0.6;
constexpr double kLateUsers = 0.3;  // share of users that do not exist on the first day
constexpr double kBaseInclination = -0.3, kHourEffect = 0.5, kPositionEffect = 0.15;
constexpr uint32_t kPositions = 10;
constexpr double kOwnDevice = 0.8;  // share of the rows on the user's usual one
constexpr std::array<std::string_view, 3> kDevices = {"phone", "desktop", "tablet"};
constexpr std::array<double, 3> kDeviceEffect = {-0.4, 0.5, 0.1};

constexpr uint32_t kTries = 256;  // draws to find an item that the user has not taken
constexpr uint32_t kListed = 10;  // number of items that may be recommended
constexpr uint64_t kLooked = 200'000,
                   kLookedItems = 1'000'000'000;    // rows, and items over all rows
constexpr int64_t kFirstDayMs = 1'704'067'200'000;  // 2024-01-01
constexpr int64_t kMsOfDay = 86'400'000;

enum class EventPurpose : uint32_t { kUser = 200, kTaste, kRow };

// Returns the distance between rows to look at: kLooked rows in all, fewer if each is much work.
uint64_t LookEvery(const InteractionGeneratorOptions& options) {
  const uint64_t looked = std::clamp<uint64_t>(kLookedItems / options.items, 1, kLooked);
  return std::max<uint64_t>(1, options.days * options.rows_per_day / looked);
}

// Returns the item's rank among the items not taken; of equal weights the earlier comes first.
template <class Taken>
uint32_t RankOf(uint32_t item, std::span<const double> weight, const Taken& taken) {
  uint32_t rank = 0;
  for (uint32_t other = 0; other < weight.size(); ++other) {
    const bool before =
        weight[other] > weight[item] || (weight[other] == weight[item] && other < item);
    if (before && !taken(other)) ++rank;
  }
  return rank;
}

}  // namespace

// The random words of one row, in order.
class InteractionGenerator::Words {
 public:
  Words(uint64_t seed, uint32_t day, uint64_t row)
      : random_(seed, EventPurpose::kRow),
        day_(day),
        row_(static_cast<uint32_t>(row)),
        high_(static_cast<uint32_t>(row >> 32) << 16) {}
  uint32_t Next() {
    if (used_ % 4 == 0) block_ = random_.Block(row_, high_ | used_ / 4, day_);
    return block_[used_++ % 4];
  }

 private:
  const stream::Random random_;
  const uint32_t day_, row_, high_;
  uint32_t used_ = 0;
  std::array<uint32_t, 4> block_{};
};

bool InteractionGenerator::User::Has(uint32_t item) const {
  return std::binary_search(taken.begin(), taken.end(), item);
}

InteractionGenerator::InteractionGenerator(const InteractionGeneratorOptions& options)
    : options_(options),
      world_({.days = options.days, .items = options.items, .seed = options.seed}),
      look_every_(LookEvery(options)),
      users_(options.users) {
  TACIT_CHECK(options.rows_per_day > 0 && options.users > 0, "an empty stream");
  const stream::Random draw(options.seed, EventPurpose::kUser);
  for (uint32_t u = 0; u < options.users; ++u) {
    const auto words = draw.Block(u, 0, 0), more = draw.Block(u, 1, 0);
    User& user = users_[u];
    const auto [activity, eagerness] = stream::Normals(words[0], words[1]);
    user.activity =
        static_cast<float>(std::min(kActivityMost, std::exp(kActivitySpread * activity)));
    user.eagerness = static_cast<float>(kEagernessSpread * eagerness);
    user.device = static_cast<uint8_t>(words[2] % kDevices.size());
    if (u > 0 && options.days > 1 && stream::Uniform(words[3]) < kLateUsers)
      user.first_day = 1 + more[0] % (options.days - 1);
  }
  double all = 0;
  for (uint32_t hour = 0; hour < hour_ends_.size(); ++hour)
    hour_ends_[hour] = all += 1 + 0.8 * std::sin(2 * std::numbers::pi * (hour - 10.0) / 24);
  for (double& end : hour_ends_) end /= all;
  StartDay();
}

void InteractionGenerator::StartDay() {
  today_.emplace(world_, day_);
  std::vector<double> activity(users_.size());
  for (size_t u = 0; u < users_.size(); ++u)
    if (users_[u].first_day <= day_) activity[u] = users_[u].activity;
  active_.emplace(activity);
}

uint64_t InteractionGenerator::Generate(uint64_t rows, std::string* lines) {
  if (day_ == options_.days) return 0;
  const uint64_t first = row_, end = std::min(options_.rows_per_day, first + rows);
  for (; row_ < end; ++row_) {
    const Row row = Draw(row_);
    const uint64_t number = day_ * options_.rows_per_day + row_;
    if (number % look_every_ == 0) Look(row);
    Append(row, number, lines);
    if (!row.label) continue;
    User& user = users_[row.user];
    user.last = row.item;
    if (!user.Has(row.item))
      user.taken.insert(std::ranges::upper_bound(user.taken, row.item), row.item);
  }
  if (end == options_.rows_per_day) {
    row_ = 0;
    if (++day_ < options_.days) StartDay();
  }
  return end - first;
}

InteractionGenerator::Row InteractionGenerator::Draw(uint64_t number) {
  Words words(options_.seed, day_, number);
  Row row{};
  const double part =
      (static_cast<double>(number) + 0.5) / static_cast<double>(options_.rows_per_day);
  row.hour = static_cast<uint32_t>(std::ranges::upper_bound(hour_ends_, part) - hour_ends_.begin());
  row.hour = std::min<uint32_t>(row.hour, 23);
  const double begin = row.hour == 0 ? 0 : hour_ends_[row.hour - 1];
  const double of_hour = (part - begin) / (hour_ends_[row.hour] - begin);
  row.timestamp_ms = kFirstDayMs + day_ * kMsOfDay +
                     static_cast<int64_t>((row.hour + std::min(of_hour, 0.999999)) * 3'600'000);
  row.user = active_->Draw(words.Next());
  const bool own = stream::Uniform(words.Next()) < kOwnDevice;
  const uint32_t device = words.Next() % kDevices.size();
  row.device = own ? users_[row.user].device : device;
  row.position = 1 + words.Next() % kPositions;
  row.label = stream::Uniform(words.Next()) < 1 / (1 + std::exp(-Inclination(row)));
  row.item = row.label ? DrawTaken(row.user, &words) : DrawShown(row.user, &words);
  return row;
}

double InteractionGenerator::Inclination(const Row& row) const {
  const double evening = std::sin(2 * std::numbers::pi * (row.hour - 14.0) / 24);
  return kBaseInclination + users_[row.user].eagerness + kDeviceEffect[row.device] +
         kHourEffect * evening - kPositionEffect * (row.position - 1);
}

// Returns the user's favourite clusters. Each is replaced in turn, at times that differ by user.
std::array<uint32_t, InteractionGenerator::kFavourites> InteractionGenerator::Favourites(
    uint32_t user) const {
  const stream::Random draw(options_.seed, EventPurpose::kTaste);
  const uint32_t shift = draw.Block(user, 0, 1)[0] % kTasteDays;
  std::array<uint32_t, kFavourites> favourites;
  for (uint32_t i = 0; i < kFavourites; ++i) {
    const uint32_t turn =
        (day_ + shift + i * kTasteDays / static_cast<uint32_t>(kFavourites)) / kTasteDays;
    favourites[i] = draw.Block(user, i, 2 + turn)[0] % world_.clusters();
  }
  return favourites;
}

uint32_t InteractionGenerator::DrawOfTaste(uint32_t user, Words* words) const {
  double part = stream::Uniform(words->Next());
  size_t which = 0;
  while (which + 1 < kFavourites && part >= kFavouriteShare[which])
    part -= kFavouriteShare[which++];
  const uint32_t cluster = Favourites(user)[which];
  return world_.members(cluster)[today_->cluster_tables[cluster].Draw(words->Next())];
}

uint32_t InteractionGenerator::DrawShown(uint32_t user, Words* words) const {
  if (stream::Uniform(words->Next()) < kShownOfTaste) return DrawOfTaste(user, words);
  return today_->shown_table->Draw(words->Next());
}

uint32_t InteractionGenerator::DrawTaken(uint32_t user, Words* words) const {
  const User& who = users_[user];
  std::array<uint32_t, kTaken> to{};
  std::array<double, kTaken> share{};
  if (who.last != UINT32_MAX) {
    to = world_.LeadsTo(who.last);
    share = today_->Leading(world_, who.last);
  }
  const bool leads = share != std::array<double, kTaken>{};
  uint32_t item = 0;
  for (uint32_t i = 0; i < kTries; ++i) {
    double part = stream::Uniform(words->Next()) * (leads ? 1 : kOfTaste + kOfPopularity);
    if (part < kOfTaste) {
      item = DrawOfTaste(user, words);
    } else if (part < kOfTaste + kOfPopularity) {
      item = today_->popular_table->Draw(words->Next());
    } else {
      double rest = stream::Uniform(words->Next());
      size_t which = 0;
      while (which + 1 < kTaken && rest >= share[which]) rest -= share[which++];
      while (share[which] == 0) --which;  // rounding may leave a rest
      item = to[which];
    }
    if (!who.Has(item)) break;
  }
  return item;
}

void InteractionGenerator::AddTaste(uint32_t user, double weight, std::vector<double>* law) const {
  const auto favourites = Favourites(user);
  for (size_t i = 0; i < kFavourites; ++i) {
    const double scale = weight * kFavouriteShare[i] / today_->of_cluster[favourites[i]];
    for (const uint32_t item : world_.members(favourites[i]))
      (*law)[item] += scale * today_->popular[item];
  }
}

// Applies Bayes: items taken and items left have different distributions.
void InteractionGenerator::Look(const Row& row) {
  const User& user = users_[row.user];
  std::array<double, kTaken> share{};
  if (user.last != UINT32_MAX) share = today_->Leading(world_, user.last);
  const bool leads = share != std::array<double, kTaken>{};
  const double all = leads ? 1 : kOfTaste + kOfPopularity;
  law_.assign(world_.items(), 0);
  for (uint32_t i = 0; i < world_.items(); ++i) law_[i] = kOfPopularity / all * today_->popular[i];
  AddTaste(row.user, kOfTaste / all, &law_);
  if (leads) {
    const auto to = world_.LeadsTo(user.last);
    for (uint32_t i = 0; i < kTaken; ++i) law_[to[i]] += kOfLast * share[i];
  }
  double left = 1;
  for (const uint32_t item : user.taken) left -= law_[item];
  shown_law_.assign(world_.items(), 0);
  AddTaste(row.user, kShownOfTaste, &shown_law_);
  const double shown = shown_law_[row.item] + (1 - kShownOfTaste) * today_->shown[row.item];
  const double taken = user.Has(row.item) ? 0 : law_[row.item] / std::max(left, 1e-9);
  const double odds = std::exp(Inclination(row)) * taken / shown;
  truth_.probability.push_back(static_cast<float>(odds / (1 + odds)));
  truth_.label.push_back(row.label ? 1.0f : 0.0f);
  if (!row.label || user.last == UINT32_MAX || user.Has(row.item)) return;
  const auto is_taken = [&](uint32_t item) { return user.Has(item); };
  ++truth_.asked;
  if (RankOf(row.item, law_, is_taken) < kListed) ++truth_.best_hits;
  if (RankOf(row.item, today_->popular, is_taken) < kListed) ++truth_.popular_hits;
}

void InteractionGenerator::Append(const Row& row, uint64_t number, std::string* lines) const {
  const auto out = std::back_inserter(*lines);
  const std::string item = InteractionWorld::Name(row.item);
  if (options_.form == InteractionForm::kUserItem) {
    if (row.label) fmt::format_to(out, "{} {}\n", row.user + 1, item);
    return;
  }
  if (options_.form == InteractionForm::kRatings) {
    const uint64_t stars = row.label ? 4 + number % 2 : 1 + number % 3;
    fmt::format_to(out, "{}\t{}\t{}\t{}\n", row.user + 1, item, stars, row.timestamp_ms / 1000);
    return;
  }
  fmt::format_to(
      out,
      R"({{"event_id":"e{}","user":"u{}","item":"{}","timestamp_ms":{},"label":{},"features":)"
      R"({{"hour":"{}","device":"{}","genre":"{}","position":{}}}}})"
      "\n",
      number, row.user + 1, item, row.timestamp_ms, row.label ? 1 : 0, row.hour,
      kDevices[row.device], world_.Genre(row.item), row.position);
}

}  // namespace tacit::cli
