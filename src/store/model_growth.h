#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "store/delta.h"

// A model whose configuration has changed goes on: features that are new begin at nothing, tables
// become larger, and what is gone is dropped. The learner's kind says what becomes of its tables
// and parameters; the store takes that over in one commit, with an entry in the ledger, which
// charges nothing: no record is looked at.
namespace tacit::store {

// A trained learner as the store has it.
struct StoredModel {
  const RowLayout& rows;
  const Digest& fingerprint;
  const std::string& form;                      // LearnerLayout::form of then; empty: not noted
  std::shared_ptr<const DenseState> dense;      // null: none
  std::shared_ptr<const std::string> released;  // null: none
};

using RewriteRow = std::function<void(std::span<const float> was, std::span<float> is)>;

// The model that it becomes.
struct GrownModel {
  struct Table {
    // The table of the stored model that it goes on from; nothing: it begins as the configuration
    // says, but with an initial scale of 0.
    std::optional<uint32_t> from = std::nullopt;
    // Each bucket of that table, but for bucket 0, becomes so many, one after the other.
    uint32_t spread = 1;
    // Turns a row into one of other floats; null: rows keep theirs. `is` begins as a row that was
    // never written: the embedding drawn, the optimiser's floats 0.
    RewriteRow rewrite = nullptr;
  };
  std::vector<Table> tables = {};  // of the configured model, in its order
  std::shared_ptr<const DenseState> dense = nullptr;
  std::shared_ptr<const std::string> released = nullptr;
  // The new number of each item in users' histories; empty: they keep theirs.
  std::vector<uint32_t> items = {};
  // The fingerprint that it has, where it is not the layout's: one of LearnerLayout::earlier.
  std::optional<Digest> fingerprint = std::nullopt;
  // Sentences for people. A model that has lost nothing predicts as before.
  std::vector<std::string> gained = {}, lost = {};
};

// Returns kRefused, with the reason, where the stored model cannot become the configured one.
using Grow = std::function<Result<GrownModel>(const StoredModel& stored)>;

// A learner whose model a start would take over.
struct Growth {
  std::string learner;
  std::vector<std::string> gained, lost;
};

struct LearnerLayout;

// Tells what the next start with these learners would take over, of a store that is read as it is
// and not changed. kRefused: some learner cannot be taken over.
// `renames`: as StoreOptions has them; kInvalidArgument: one of them is of no learner, or to a name
// that another learner has.
Result<std::vector<Growth>> PlanGrowth(const std::string& path,
                                       const std::vector<LearnerLayout>& learners,
                                       const std::map<std::string, std::string>& renames = {});

}  // namespace tacit::store
