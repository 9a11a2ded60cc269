#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/kind_table.h"
#include "base/tuned.h"

// The kinds of source, format, model, mechanism and optimiser that a configuration can name: for
// each an enumeration and a table of what this room knows of the kind. A new kind is an enumerator
// and a row here; CONTRIBUTING.md lists its places in the other rooms.
namespace tacit::config {

// The keys of its section that a kind uses beside those of every kind. A key inside a section of
// its own is written "section.key"; a whole section counts as one key.
struct Keys {
  std::string_view names[32] = {};

  constexpr bool has(std::string_view key) const {
    return std::ranges::find(names, key) != std::end(names);
  }
};

enum class SourceKind : uint8_t { kLog, kGenerator, kKafka };
inline constexpr SourceKind kLastSource = SourceKind::kKafka;

struct SourceTraits {
  SourceKind kind;
  std::string_view name;
  Keys keys = {};  // the section `kafka` among them
  // The stream has ends of files, which close steps and periods.
  bool has_files = false;
  // A record is a line of text, so that no record may hold a newline.
  bool has_lines = false;
  // Runs of records that wait for the decode thread: enough that neither the decode thread nor the
  // poll thread stalls when the other briefly loses its core. 0: as many as the feed lets wait.
  uint32_t runs_queued = 0;
};

inline constexpr SourceTraits kSources[] = {
    {.kind = SourceKind::kLog,
     .name = "log",
     .keys = {{"format", "files", "passes", "mark"}},
     .has_files = true,
     .has_lines = true},
    {.kind = SourceKind::kGenerator,
     .name = "generator",
     .keys = {{"generator"}},
     .has_files = true},
    {.kind = SourceKind::kKafka,
     .name = "kafka",
     .keys = {{"format", "topic", "framing", "ahead_max_hours", "round_ms", "tick_ms", "periods",
               "on_period_lost", "dedupe.partitions", "kafka"}},
     .runs_queued = 16}};
static_assert(CoversKinds(kSources, kLastSource));

enum class FormatKind : uint8_t { kCriteoTsv, kJson, kCsv, kProtobuf, kAvro };
inline constexpr FormatKind kLastFormat = FormatKind::kAvro;

struct FormatTraits {
  FormatKind kind;
  std::string_view name;
  // Its records may name their user, item and event.
  bool is_named = false;
  // A record holds no newline, so that it can be a line.
  bool is_line = true;
  // Its files have a form of their own, in place of lines.
  bool has_containers = false;
  // A schema's id may stand before a record.
  bool may_be_framed = false;
};

inline constexpr FormatTraits kFormats[] = {
    {.kind = FormatKind::kCriteoTsv, .name = "criteo_tsv"},
    {.kind = FormatKind::kJson, .name = "json", .is_named = true, .may_be_framed = true},
    {.kind = FormatKind::kCsv, .name = "csv", .is_named = true},
    {.kind = FormatKind::kProtobuf,
     .name = "protobuf",
     .is_named = true,
     .is_line = false,
     .may_be_framed = true},
    {.kind = FormatKind::kAvro,
     .name = "avro",
     .is_named = true,
     .is_line = false,
     .has_containers = true,
     .may_be_framed = true}};
static_assert(CoversKinds(kFormats, kLastFormat));

enum class MechanismKind : uint8_t {
  kNone,
  kAdaFest,
  kAdaFestPlus,
  kFest,
  kDpSgd,
  kExponential,
  kCounts,
  kSums,
  kForward
};
inline constexpr MechanismKind kLastMechanism = MechanismKind::kForward;

struct MechanismTraits {
  MechanismKind kind;
  std::string_view name;
  Keys keys = {};
  bool adds_noise = true;
  // It bounds and noises gradients: the keys of clips are used. False: it releases something else.
  bool clips_gradients = true;
  bool every_row = false;  // each step writes the whole id space
  // It noises what the model is shown of a record. All below must not learn from records.
  bool noises_representations = false;

  // Labels stay clear, so that a unit's coins count as known.
  constexpr bool shows_coins() const { return noises_representations; }
  // The gradients of dense layers are there to be summed, by carriers or whole.
  constexpr bool sums_gradients() const {
    return !noises_representations && (clips_gradients || !adds_noise);
  }
};

inline constexpr MechanismTraits kMechanisms[] = {
    {.kind = MechanismKind::kNone, .name = "none", .adds_noise = false, .clips_gradients = false},
    {.kind = MechanismKind::kAdaFest,
     .name = "adafest",
     .keys = {{"threshold", "sigma_ratio", "selection_clip"}}},
    {.kind = MechanismKind::kAdaFestPlus,
     .name = "adafest+",
     .keys = {{"threshold", "sigma_ratio", "selection_clip", "vocabulary"}}},
    {.kind = MechanismKind::kFest, .name = "fest", .keys = {{"vocabulary"}}},
    {.kind = MechanismKind::kDpSgd, .name = "dp-sgd", .every_row = true},
    {.kind = MechanismKind::kExponential,
     .name = "exponential",
     .keys = {{"rows", "row_epsilon", "row_clip"}}},
    {.kind = MechanismKind::kCounts, .name = "counts", .clips_gradients = false},
    {.kind = MechanismKind::kSums,
     .name = "sums",
     .keys = {{"deviations", "whole_columns"}},
     .clips_gradients = false},
    {.kind = MechanismKind::kForward,
     .name = "forward",
     .keys = {{"representation_clip"}},
     .clips_gradients = false,
     .noises_representations = true}};
static_assert(CoversKinds(kMechanisms, kLastMechanism));

enum class ModelKind : uint8_t { kPctr, kSequence, kTransitions, kLinear };
inline constexpr ModelKind kLastModel = ModelKind::kLinear;

struct ModelTraits {
  ModelKind kind;
  std::string_view name;
  Keys keys = {};
  // It recommends a user's next item from the public catalogue; else it gives the probability of a
  // click.
  bool recommends = false;
  // It learns by steps along gradients: the section `optimizer` is used.
  bool descends = true;
  // The only mechanism beside `none` that can guard it; kNone: any that can guard the network over
  // embeddings.
  MechanismKind guard = MechanismKind::kNone;
  // The gradients of its dense layers can be summed by low-rank carriers.
  bool has_carriers = false;
  // Each step is one release of a period of `batch` offsets, so that only `once` can be meant.
  std::string_view only_once = {};
  // The default of participation.batch; 0: one that follows from epsilon (DefaultPeriod).
  uint64_t batch = 2048;
};

inline constexpr ModelTraits kModels[] = {
    {.kind = ModelKind::kPctr,
     .name = "pctr",
     .keys = {{"hidden", "compute", "row_precision", "seed", "categorical"}},
     .has_carriers = true},
    {.kind = ModelKind::kSequence,
     .name = "sequence",
     .keys = {{"compute",      "seed",
               "encoder",      "length",
               "width",        "blocks",
               "heads",        "feed_forward",
               "tied",         "item_bias",
               "negatives",    "re_attention",
               "dropout",      "label_smoothing",
               "mask_seen",    "crops",
               "random_crops", "warm_up_steps",
               "start",        "start_share",
               "start_weight", "described",
               "cells",        "forget"}},
     .recommends = true,
     .guard = MechanismKind::kDpSgd,
     .has_carriers = true},
    {.kind = ModelKind::kTransitions,
     .name = "transitions",
     .keys = {{"seed", "described", "cells", "forget", "ranker", "ranker_share", "ranker_steps",
               "ranker_users"}},
     .recommends = true,
     .descends = false,
     .guard = MechanismKind::kCounts,
     .only_once = "each step counts a period of `batch` offsets",
     .batch = tuned::kCountsPeriod},
    {.kind = ModelKind::kLinear,
     .name = "linear",
     .keys = {{"crosses"}},
     .descends = false,
     .guard = MechanismKind::kSums,
     .only_once = "each step adds up a period of `batch` offsets",
     .batch = 0}};
static_assert(CoversKinds(kModels, kLastModel));

enum class OptimizerKind : uint8_t { kSgd, kAdam, kAdagrad, kAdamBc };
inline constexpr OptimizerKind kLastOptimizer = OptimizerKind::kAdamBc;

struct OptimizerTraits {
  OptimizerKind kind;
  std::string_view name;  // train::OptimizerNamed knows its rule by the same name
  Keys keys = {};
  // The refusal of mechanism none, for a kind that needs the steps' noise; if empty, it needs none.
  std::string_view without_noise = {};
  // The refusal of low-rank carriers, for a kind that they do not fit; if empty, they do.
  std::string_view with_carriers = {};
};

inline constexpr OptimizerTraits kOptimizers[] = {
    {.kind = OptimizerKind::kSgd, .name = "sgd", .keys = {{"momentum"}}},
    {.kind = OptimizerKind::kAdam,
     .name = "adam",
     .keys = {{"beta1", "beta2", "epsilon", "moments"}}},
    {.kind = OptimizerKind::kAdagrad, .name = "adagrad", .keys = {{"epsilon"}}},
    {.kind = OptimizerKind::kAdamBc,
     .name = "adam-bc",
     .keys = {{"beta1", "beta2", "epsilon", "moments", "variance_floor"}},
     .without_noise = "adam-bc takes the noise's share out of the second moment, and mechanism "
                      "none adds no noise; use adam",
     .with_carriers = "adam-bc takes the noise's share out of the second moment, and what carriers "
                      "make of their noise is not the same for every number; use adam"}};
static_assert(CoversKinds(kOptimizers, kLastOptimizer));

}  // namespace tacit::config
