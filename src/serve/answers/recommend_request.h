#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/request_json.h"
#include "serve/items/item_index.h"
#include "serve/items/recommender.h"

namespace tacit::serve {

// A sequence as it was asked for.
struct AskedSequence {
  std::vector<uint32_t> items;             // of the catalogue, oldest first
  std::vector<std::string> unknown_items;  // in their order
};

// A request of POST /v1/recommend.
struct RecommendRequest {
  size_t model = 0;                        // place among the models
  std::optional<std::string> user;         // else a sequence is given
  std::vector<uint32_t> sequence;          // items of the catalogue, oldest first
  std::vector<std::string> unknown_items;  // of the sequence, in its order
  // Several sequences in place of one, each answered by itself.
  std::optional<std::vector<AskedSequence>> sequences = {};
  uint32_t count = 10;
  bool exclude_seen = true;
  // Only these items may be recommended, if it is given; those of `exclude` may not.
  std::optional<std::vector<uint32_t>> among = {};
  std::vector<uint32_t> exclude = {};
  ItemFilter filter = {};
  bool reasons = false;

  bool bars() const { return among || !exclude.empty() || filter.any(); }
};

struct RecommendLimits {
  uint32_t count_most = 1000;
  size_t sequence_most = 4096;  // items, of several sequences together
  size_t sequences_most = 64;
  size_t among_most = 100'000;  // ids in "among" and in "exclude"
  size_t genres_most = 64;
  size_t unknown_bytes_most = 256;  // length of an id outside the catalogue
};

// Appends an item to a sequence, or to its unknown items. kInvalidArgument: the id is unknown, and
// too long or not to be repeated.
Status AddItem(const event::ItemCatalogue& items, const RecommendLimits& limits,
               std::string_view id, std::vector<uint32_t>* sequence,
               std::vector<std::string>* unknown_items);

// Reads the JSON of /v1/recommend; docs/internals/serve.md documents the form. The models must
// outlive it.
class RecommendRequestParser {
 public:
  using Limits = RecommendLimits;

  // `elsewhere` are learners that do not recommend.
  RecommendRequestParser(std::span<const RecommendModel> models, Limits limits,
                         std::vector<http::LearnerElsewhere> elsewhere = {});

  // Fills `request`, replacing what was in it. kNotFound: no such learner; kInvalidArgument:
  // anything else. The message names the key.
  Status Parse(std::string_view json, RecommendRequest* request) const;

 private:
  const std::span<const RecommendModel> models_;
  const Limits limits_;
  std::vector<std::string_view> learners_;
  const std::vector<http::LearnerElsewhere> elsewhere_;
};

}  // namespace tacit::serve
