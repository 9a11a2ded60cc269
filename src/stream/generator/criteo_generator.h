#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/threads/mutex.h"
#include "stream/source.h"

namespace tacit::stream {

struct CriteoGeneratorOptions {
  uint32_t days = 24;
  uint64_t rows_per_day = 150000;
  uint64_t seed = 1;
  // Share of the values, in columns of some size, that exist for a few days only, as campaigns and
  // offers do; in [0, 1].
  double churn = 0;
};

// The vocabulary sizes of Criteo's 26 categorical columns (Kaggle log, features 14 to 39).
std::span<const uint32_t> CriteoVocabulary();

// A log that looks like Criteo's and whose truth is known: label, 13 integers (heavy tails, some
// missing, the second sometimes negative), 26 categories of 8 hexadecimal digits (Zipf, some
// missing). A logistic model draws the clicks: every integer and every value has an effect, and so
// have some pairs of columns. From day to day the effects turn, values gain and lose popularity,
// new values appear. About a quarter of the rows are clicks, and ranking by the true probability
// gives an AUC of about 0.80: no model can do better.
//
// A row is a function of (seed, day, row) alone. Thread-safe; threads that work on different days
// do not slow each other down.
class CriteoGenerator {
 public:
  // REQUIRES days > 0 and rows_per_day > 0.
  explicit CriteoGenerator(CriteoGeneratorOptions options);
  ~CriteoGenerator();
  CriteoGenerator(const CriteoGenerator&) = delete;
  CriteoGenerator& operator=(const CriteoGenerator&) = delete;

  const CriteoGeneratorOptions& options() const { return options_; }

  // Appends rows [first_row, first_row + n) of a day, each with its newline, and the click
  // probability that each was drawn with; either may be null. REQUIRES day < days.
  void Generate(uint32_t day, uint64_t first_row, uint64_t n, std::string* lines,
                std::vector<float>* true_probability) const;
  // Predicts rows of `day` by the truth of `model_day`: shows what learning on would gain.
  void Predict(uint32_t model_day, uint32_t day, uint64_t first_row, uint64_t n,
               std::vector<float>* probability) const;
  // Returns the AUC of the true probability over the first n rows of a day, the best possible one.
  double BestAuc(uint32_t day, uint64_t n) const;

 private:
  struct Truth;   // holds for all days
  struct Tables;  // of one day
  struct Row;

  std::shared_ptr<const Tables> TablesOf(uint32_t day) const;
  Row Draw(const Tables& tables, uint64_t row) const;

  const CriteoGeneratorOptions options_;
  const std::unique_ptr<const Truth> truth_;
  // Tables take longer to make than a few thousand rows, so the last used ones are kept, latest
  // last.
  mutable Mutex mutex_;
  mutable std::vector<std::shared_ptr<const Tables>> recent_ TACIT_GUARDED_BY(mutex_);
};

// Makes the generator a source: offset = day * rows_per_day + row, a public cut at each day's end,
// an end after the last day.
std::unique_ptr<Source> MakeGeneratorSource(CriteoGeneratorOptions options);

}  // namespace tacit::stream
