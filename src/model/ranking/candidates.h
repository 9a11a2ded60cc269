#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/threads/worker_pool.h"
#include "model/transitions/estimate.h"
#include "model/transitions/public_items.h"
#include "model/transitions/scorer.h"

namespace tacit::model::ranking {

// A pair counts in S_ab by this much where b came before a.
inline constexpr double kReverseWeight = 0.25;

// The features of an item b that may follow a history whose last items are a0, a1, ... (a0 the
// latest). S_ab is what transitions::Scorer makes of the pair, F_ab the same of b after a alone; d
// is its decay (Options::recent_decay). Sums over decay^age leave out weights below a thousandth. A
// feature that the catalogue does not describe is 0, for all candidates alike.
enum Feature : size_t {
  // Features of counts.
  kScore,     // ln of the counts' own score
  kForward,   // ln sum d^age F_ab
  kSharp,     // ln sum .4^age S_ab
  kLong,      // ln sum .9^age S_ab
  kLatest,    // ln S_a0b
  kProduct,   // sum d^age ln S_ab
  kPopular,   // ln p_b
  kUsual,     // -(ln p_b - what is usual for the history)^2
  kAsLatest,  // -|ln p_b - ln p_a0|
  // Features of public descriptions. A profile is the share of a genre, or a bin of years, in the
  // history, over its share in the popularity; "recent" weighs with .9^age.
  kGenresRecent,  // cosine of b's genres with those of the history
  kGenresEver,
  kTasteRecent,  // mean over b's genres of the profile's logarithm
  kTasteEver,
  kEraLatest,  // logarithm of the profile at b's bin of years; "latest" weighs with d^age
  kEraRecent,
  kEraEver,
  kYearsLatest,  // -ln(1 + years between a0, or a1, and b)
  kYearsBefore,
  kPlacesLatest,  // -ln(1 + places between their ids)
  kPlacesBefore,
  kYounger,    // sign of the years from a0 to b
  kYoungerBy,  // ln(1 + years) if there are any
  kBehind,     // the same of places
  kBehindBy,
  kOverlapLatest,  // Jaccard of genres with a0, and a1
  kOverlapBefore,
  kWordLatest,  // a rare word of the title in common with a0
  kFeatures
};

// The items that most likely follow a history, and a row of kFeatures numbers for each. Kept from
// question to question, so that no question allocates.
struct Candidates {
  std::vector<uint32_t> items;  // ascending
  std::vector<float> rows;      // items.size() x kFeatures

  std::span<const float> Row(size_t i) const { return {&rows[i * kFeatures], kFeatures}; }
  // The item's place among the candidates; items.size() if it is none of them.
  size_t PlaceOf(uint32_t item) const;

  std::vector<float> counted;  // per candidate its score by the counts
  std::vector<float> scores;   // of the whole catalogue, if there is a table of it; else empty

  // Working memory.
  std::vector<uint8_t> taken;  // per item of the catalogue: not to be recommended
  std::vector<transitions::ScoredItem> top;
  std::vector<float> pair, after;     // per candidate: its score after one item
  std::vector<float> sums;            // of four features, candidate by candidate
  std::vector<uint32_t> in_bin;       // items by bins of scores
  std::vector<uint32_t> of_last_bin;  // of which a part has room
  transitions::TopMemory memory;
};

// Chooses candidates by the shaped counts and computes the features of each. Made of released
// numbers and the public catalogue; of the user who asks it sees the history and no more.
// Immutable: usable from any thread, each with Candidates of its own. Holds two scorers: tables of
// all pairs where these fit, and lists of measured cells for any larger catalogue, where a question
// takes the work of the history's lists and not of the catalogue.
class CandidateSource {
 public:
  // The catalogue must outlive it.
  CandidateSource(const transitions::Estimate& estimate, const transitions::PublicItems& catalogue,
                  const transitions::Options& options, WorkerPool& workers);

  uint32_t items() const { return counts_.items(); }
  // Finds the `most` likeliest items by the counts, without those of the history and those marked
  // in `left_out` (per item; empty if none). Each feature is shifted and scaled to mean 0 and
  // deviation 1 over the candidates, because only their differences count. Finds none without a
  // history. REQUIRES items of the catalogue.
  void Find(std::span<const uint32_t> history, size_t most, Candidates* out,
            std::span<const uint8_t> left_out = {}) const;
  // The counts' own scores.
  const transitions::Scorer& counts() const { return counts_; }

 private:
  struct Item;
  class Profile;

  CandidateSource(const transitions::Estimate& estimate, const transitions::PublicItems& catalogue,
                  const transitions::Options& options, const transitions::Cells& listed,
                  WorkerPool& workers);
  void Choose(std::span<const uint32_t> history, size_t most, std::span<const uint8_t> left_out,
              Candidates* out) const;
  void ChooseFromTable(std::span<const uint32_t> history, size_t most, Candidates* out) const;
  void FromCounts(std::span<const uint32_t> history, Candidates* out) const;
  void FromDescriptions(std::span<const uint32_t> history, Candidates* out) const;

  const transitions::Options options_;
  const transitions::PublicItems& catalogue_;
  const transitions::Scorer counts_, forward_;
  std::vector<float> log_popularity_;
  // If items are described: each item's bin of years; the share of a genre (by its bit) or a bin in
  // all popularity; one over the root of an item's number of genres.
  std::vector<uint32_t> era_;
  std::vector<float> genre_share_, era_share_, genre_unit_;
};

}  // namespace tacit::model::ranking
