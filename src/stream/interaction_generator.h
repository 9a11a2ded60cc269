#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stream/interaction_world.h"

namespace tacit::stream {

struct InteractionGeneratorOptions {
  uint32_t days = 14;
  uint64_t rows_per_day = 50000;
  uint32_t users = 5000;
  uint32_t items = 1000;
  uint64_t seed = 1;
};

// What somebody who knows the truth makes of the rows that were looked at, spread evenly: nobody
// can do better, whatever he learns.
struct InteractionTruth {
  // Of each row looked at: the probability of its label being 1, and the label.
  std::vector<float> probability, label;
  // Of those, items taken by users who had taken one before; how many were among the ten that were
  // likeliest, and among the day's ten most popular, of what the user had not taken yet.
  uint64_t asked = 0, best_hits = 0, popular_hits = 0;
};

// A stream of interactions (schemas/interaction.schema.json) whose truth is known: users are shown
// items and take some (label 1). What is taken follows from what the user took last, as items lead
// on to one another, from his taste, which is a few clusters and changes, and from the day's
// popularity; he takes nothing twice, unless he has taken nearly all. What is shown and not taken
// follows from taste and popularity alone. Whether something is taken depends on the hour, the
// device, the place on the page and the user, beside the item.
//
// The bytes follow from the options. Rows come one after the other, as users go on from what they
// did. Not thread-safe; memory is about 8 bytes a row of label 1, and some 150 a user and an item.
class InteractionGenerator {
 public:
  // REQUIRES every option above 0.
  explicit InteractionGenerator(const InteractionGeneratorOptions& options);

  const InteractionWorld& world() const { return world_; }
  // Appends the next rows, each with its newline, and returns how many: fewer than `rows` where the
  // day ends, 0 behind the last. Times are those of days from 2024 on.
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
  // The logit of something's being taken, before the item is known.
  double Inclination(const Row& row) const;
  // Adds `weight` times the law of what the user's taste alone would choose.
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
  std::optional<AliasTable> active_;
  InteractionTruth truth_;
  std::vector<double> law_, shown_law_;
};

}  // namespace tacit::stream
