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

// What POST /v1/recommend asks for.
struct RecommendRequest {
  size_t model = 0;                        // place among the models
  std::optional<std::string> user;         // else the sequence:
  std::vector<uint32_t> sequence;          // of the catalogue, oldest first
  std::vector<std::string> unknown_items;  // of the sequence, as they come
  uint32_t count = 10;
  bool exclude_seen = true;
};

// Reads the JSON of /v1/recommend; README.md documents the form. The models must outlive it.
class RecommendRequestParser {
 public:
  struct Limits {
    uint32_t count_most = 1000;
    size_t sequence_most = 4096;
  };

  RecommendRequestParser(std::span<const RecommendModel> models, Limits limits);

  // Fills `request`, whatever was in it. kNotFound: no such learner; kInvalidArgument: anything
  // else. The message names the key.
  Status Parse(std::string_view json, RecommendRequest* request) const;

 private:
  const std::span<const RecommendModel> models_;
  const Limits limits_;
  std::vector<std::string_view> learners_;
};

}  // namespace tacit::serve
