#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/generate/interaction_world.h"

namespace tacit::cli {

// The form of a row. Datasets with users and items are published in one of the latter two.
enum class InteractionForm {
  kJson,      // schemas/interaction.schema.json
  kUserItem,  // `user item`; rows of label 0 are left out
  kRatings,   // `user item rating timestamp`, tabs between, seconds; label 1 is 4 or 5
};

struct InteractionGeneratorOptions {
  uint32_t days = 14;
  uint64_t rows_per_day = 50000;
  uint32_t users = 5000;
  uint32_t items = 1000;
  uint64_t seed = 1;
  InteractionForm form = InteractionForm::kJson;
};

// The results of knowing the truth, on an evenly spread sample of rows. No model can do better.
struct InteractionTruth {
  // For each sampled row, the probability of its label being 1, and the label.
  std::vector<float> probability, label;
  // The sampled items taken by users who had taken one before (asked), and how many of them were
  // among the ten likeliest (best_hits) and the day's ten most popular (popular_hits) of the items
  // that the user had not taken yet.
  uint64_t asked = 0, best_hits = 0, popular_hits = 0;
};

// A stream of interactions whose truth is known: users are shown
// items and take some (label 1). An item taken depends on the user's last one, as items lead to one
// another, on the user's taste, which is a few clusters and changes, and on the day's popularity;
// users take nothing twice, unless they have taken nearly all. An item shown and not taken depends
// on taste and popularity alone. Whether an item is taken depends on the hour, the device, the
// position on the page and the user, besides the item.
//
// The options determine the bytes. Rows must be generated in order, since users continue from what
// they did. Not thread-safe; memory is about 8 bytes a row of label 1, and some 150 a user and an
// item.
class InteractionGenerator {
 public:
  // REQUIRES every option above 0.
  explicit InteractionGenerator(const InteractionGeneratorOptions& options);

  const InteractionWorld& world() const { return world_; }
  // Appends the next rows, each with its newline, and returns how many were drawn: fewer than
  // `rows` at the end of the day, 0 after the last day. Times are of days from 2024 on.
  uint64_t Generate(uint64_t rows, std::string* lines);
  // The day of the next row.
  uint32_t day() const { return day_; }
  const InteractionTruth& truth() const { return truth_; }

 private:
  static constexpr size_t kFavourites = 3;

  struct User {
    uint32_t first_day = 0;
    float activity = 0, eagerness = 0;
    uint8_t device = 0;
    uint32_t last = UINT32_MAX;   // the item that was taken last
    std::vector<uint32_t> taken;  // ascending

    bool Has(uint32_t item) const;
  };
  struct Row {
    uint32_t user, item;
    int64_t timestamp_ms;
    uint32_t hour, device, position;
    bool label;
  };
  class Words;

  void StartDay();
  Row Draw(uint64_t row);
  uint32_t DrawTaken(uint32_t user, Words* words) const;
  uint32_t DrawShown(uint32_t user, Words* words) const;
  uint32_t DrawOfTaste(uint32_t user, Words* words) const;
  std::array<uint32_t, kFavourites> Favourites(uint32_t user) const;
  // The logit of taking an item, before the item is known.
  double Inclination(const Row& row) const;
  // Adds `weight` times the distribution of items chosen by the user's taste alone.
  void AddTaste(uint32_t user, double weight, std::vector<double>* law) const;
  void Look(const Row& row);
  void Append(const Row& row, uint64_t number, std::string* lines) const;

  const InteractionGeneratorOptions options_;
  const InteractionWorld world_;
  const uint64_t look_every_;
  std::vector<User> users_;
  std::array<double, 24> hour_ends_{};  // share of a day's rows before each hour's end
  uint32_t day_ = 0;
  uint64_t row_ = 0;  // of the day
  std::optional<InteractionWorld::Day> today_;
  std::optional<stream::AliasTable> active_;
  InteractionTruth truth_;
  std::vector<double> law_, shown_law_;
};

}  // namespace tacit::cli
