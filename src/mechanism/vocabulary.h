#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"
#include "model/examples.h"
#include "noise/noise.h"
#include "privacy/charge.h"

namespace tacit::mechanism {

struct VocabularyOptions {
  enum class Source {
    kPublic,       // given from outside, owes nothing to the stream
    kFirstPeriod,  // the first period's histogram, released once
    kRunning,      // every period's histogram, released each; counts add up
  };
  enum class Query {
    kGaussian,  // one noised histogram: its top rows, and everything else made of it, are free
    kGumbel,    // one-shot top-k; counts are not released, so nothing runs on
  };
  Source source = Source::kRunning;
  Query query = Query::kGaussian;
  uint64_t keep = 0;            // rows of the vocabulary; 0 with kPublic: all that are given
  double noise_multiplier = 0;  // kGaussian: of a histogram, in units of clip. kGumbel: what its
                                // zCDP is to cost, rho = 1 / (2 multiplier^2)
  double clip = 1;              // kGaussian: norm that one unit's histogram is cut to
  std::vector<uint64_t> rows = {};  // kPublic: ascending, distinct
};

// DP-FEST's set of rows worth writing, and the release it rests on (docs/internals/mechanism.md,
// Vocabularies). One id space over all tables. A unit counts once in every row that it activates;
// its counts are scaled as one vector to the clip (Gumbel: each count is at most 1). The histogram
// is over the WHOLE id space: rows that no unit activated get noise too. The vocabulary is empty
// until its first release. Observed counts add up until OpenPeriod; a process that stops before
// loses them and is shown the period again. Memory per row of the space, if the source is a period:
// kGaussian 4 bytes, and 12 more while a period is shown and released; kGumbel 4 while it is shown.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  // Ascending.
  virtual std::span<const uint64_t> rows() const = 0;
  // The number of rows it has, or will have after its first release.
  virtual uint64_t keep() const = 0;
  // Noised counts over the id space, all periods together; empty where none are released.
  virtual std::span<const float> counts() const = 0;

  // Mechanism describes these calls.
  virtual bool observes_periods() const = 0;
  virtual void Observe(const model::Activations& activations) = 0;
  virtual std::optional<privacy::Charge> opening_charge() const = 0;
  virtual void OpenPeriod(noise::NoiseSource& noise) = 0;

  virtual uint64_t state_version() const = 0;
  virtual std::string SaveState() const = 0;
  virtual Status LoadState(std::string_view bytes) = 0;
};

// `space` must outlive the vocabulary. REQUIRES at most kVocabularySpaceMax rows in it if the
// source is a period: their counts are a part of the state.
inline constexpr uint64_t kVocabularySpaceMax = uint64_t{1} << 29;
std::unique_ptr<Vocabulary> MakeVocabulary(const RowSpace& space, VocabularyOptions options);

}  // namespace tacit::mechanism
