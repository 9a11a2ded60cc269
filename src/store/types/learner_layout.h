#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "privacy/ledger.h"
#include "store/types/delta.h"

// A learner's model as its configuration makes it, and how a model of before becomes that.
namespace tacit::store {

// A trained learner as the store has it.
struct StoredModel {
  const RowLayout& rows;
  const Digest& fingerprint;
  const std::string& form;                      // LearnerLayout::form of then; empty if not noted
  std::shared_ptr<const DenseState> dense;      // null if none
  std::shared_ptr<const std::string> released;  // null if none
};

using RewriteRow = std::function<void(std::span<const float> was, std::span<float> is)>;

// The model that it becomes.
struct GrownModel {
  struct Table {
    // The table of the stored model that it goes on from; nothing if it begins as the configuration
    // says, but with an initial scale of 0.
    std::optional<uint32_t> from = std::nullopt;
    // The number of buckets that each bucket of that table becomes, one after the other. Bucket 0
    // stays one.
    uint32_t spread = 1;
    // Turns a row into one of other floats; if null, rows stay. `is` begins as a row that was
    // never written: the embedding drawn, the optimiser's floats 0.
    RewriteRow rewrite = nullptr;
  };
  std::vector<Table> tables = {};  // of the configured model, in its order
  std::shared_ptr<const DenseState> dense = nullptr;
  std::shared_ptr<const std::string> released = nullptr;
  // The new number of each item in users' histories; if empty, they keep theirs.
  std::vector<uint32_t> items = {};
  // Sentences for people. A model that has lost nothing predicts as before.
  std::vector<std::string> gained = {}, lost = {};
};

// Returns kRefused, with the reason, where the stored model cannot become the configured one.
using Grow = std::function<Result<GrownModel>(const StoredModel& stored)>;

// A configured learner's model: its rows, its promise, and how it grows.
struct LearnerLayout {
  std::string name;
  RowLayout rows;
  privacy::Promise promise;
  // The store notes this of a trained model, for its kind to let it grow; opaque here. Empty:
  // nothing is noted.
  std::string form = {};
  Grow grow = {};  // if empty, a model of this kind cannot grow
};

}  // namespace tacit::store
