#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
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
  Source source = Source::kRunning;
  uint64_t keep = 0;                // rows of the vocabulary; 0 with kPublic: all that are given
  double noise_multiplier = 0;      // of a histogram, in units of clip
  double clip = 1;                  // the norm that one unit's histogram is cut to
  std::vector<uint64_t> rows = {};  // kPublic: ascending, distinct
};

// DP-FEST's set of rows worth writing, and the release it rests on (docs/internals/mechanism.md,
// Vocabularies). One id space over all tables. A unit counts once in every row that it activates;
// its counts are scaled as one vector to the clip. The histogram is over the WHOLE id space: rows
// that no unit activated get noise too. The vocabulary is empty until its first release. Observed
// counts add up until OpenPeriod; a process that stops before loses them and is shown the period
// again. Memory per row of the space, if the source is a period: 4 bytes, and 12 more while a
// period is shown and released.
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

// The common part of vocabularies out of the stream: when there is a release, what it costs, and
// the state.
class ReleasedVocabulary : public Vocabulary {
 public:
  // `query`: the number by which the state names the class.
  ReleasedVocabulary(const RowSpace& space, const VocabularyOptions& options, uint8_t query);

  std::span<const uint64_t> rows() const final { return rows_; }
  uint64_t keep() const final { return keep_; }
  bool observes_periods() const final { return Releases(); }
  void Observe(const model::Activations& activations) final {
    if (Releases()) Add(activations);
  }
  std::optional<privacy::Charge> opening_charge() const final {
    if (!Releases()) return {};
    return Cost();
  }
  void OpenPeriod(noise::NoiseSource& noise) final {
    if (!Releases()) return;
    Release(noise);
    ++releases_;
  }

  uint64_t state_version() const final { return releases_; }
  std::string SaveState() const final;
  Status LoadState(std::string_view bytes) final;

 protected:
  virtual void Add(const model::Activations& activations) = 0;
  virtual privacy::Charge Cost() const = 0;
  // Sets rows_ from the sums and forgets them.
  virtual void Release(noise::NoiseSource& noise) = 0;
  virtual void SaveBody(ByteWriter* bytes) const = 0;
  // Returns false, and changes nothing, when the bytes are no body.
  virtual bool LoadBody(ByteReader* bytes) = 0;

  const RowSpace& space_;
  const VocabularyOptions options_;
  const uint64_t keep_;
  std::vector<uint64_t> rows_;

 private:
  bool Releases() const {
    return options_.source == VocabularyOptions::Source::kRunning || releases_ == 0;
  }

  const uint8_t query_;
  uint64_t releases_ = 0;
};

// `space` must outlive the vocabulary. REQUIRES at most kVocabularySpaceMax rows in it if the
// source is a period: their counts are a part of the state.
inline constexpr uint64_t kVocabularySpaceMax = uint64_t{1} << 29;
std::unique_ptr<Vocabulary> MakeVocabulary(const RowSpace& space, VocabularyOptions options);

}  // namespace tacit::mechanism
