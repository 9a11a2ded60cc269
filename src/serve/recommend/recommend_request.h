#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serve/recommend/recommender.h"

namespace tacit::serve {

// A request of POST /v1/recommend.
struct RecommendRequest {
  size_t model = 0;                        // place among the models
  std::optional<std::string> user;         // else a sequence is given
  std::vector<uint32_t> sequence;          // items of the catalogue, oldest first
  std::vector<std::string> unknown_items;  // of the sequence, in its order
  uint32_t count = 10;
  bool exclude_seen = true;
};

// Reads the JSON of /v1/recommend; README.md documents the form. The models must outlive it.
class RecommendRequestParser {
 public:
  struct Limits {
    uint32_t count_most = 1000;
    size_t sequence_most = 4096;
    size_t unknown_bytes_most = 256;  // length of an id outside the catalogue
  };

  RecommendRequestParser(std::span<const RecommendModel> models, Limits limits);

  // Fills `request`, replacing what was in it. kNotFound: no such learner; kInvalidArgument:
  // anything else. The message names the key.
  Status Parse(std::string_view json, RecommendRequest* request) const;

 private:
  const std::span<const RecommendModel> models_;
  const Limits limits_;
  std::vector<std::string_view> learners_;
};

}  // namespace tacit::serve
