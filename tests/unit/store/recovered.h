#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "script.h"
#include "store/care/verify.h"
#include "store/witness/witness.h"

namespace tacit::store {

// The whole checkpoints in `parent`, each checked byte by byte; nothing there is torn.
inline std::vector<CheckpointPlace> ExpectWholeCheckpoints(const std::string& parent) {
  std::vector<std::string> unreadable;
  auto places = ListCheckpoints(parent, &unreadable);
  EXPECT_TRUE(places);
  for (const std::string& folder : unreadable) ADD_FAILURE() << folder << " cannot be read";
  if (!places) return {};
  for (const CheckpointPlace& place : *places) {
    const auto whole = CheckCheckpoint(place.folder, CheckpointCheck::kEveryByte);
    EXPECT_TRUE(whole) << whole.error().message;
  }
  return *std::move(places);
}

// Expects a store that follows script.h, after its process died, to be as of a commit that the
// witness has seen, or the next one; to go on from there; and to be without damage. `look` sees the
// store before it goes on, and says who is forgotten.
inline void ExpectRecovered(const std::string& root,
                            const std::function<Script::Forgotten(Store&)>& look = nullptr) {
  StoreOptions options = TestOptionsAt(root);
  options.shards = 0;
  const auto witness = WitnessFile::Read(options.witness);
  const uint64_t seen = witness && *witness ? (*witness)->record.seq.value : 0;
  // A reader comes first: it changes nothing.
  std::shared_ptr<const Snapshot> read;
  if (seen > 0) {
    const auto reader = OpenReadOnly(options.path, options.witness, options.learners);
    ASSERT_TRUE(reader) << reader.error().message;
    read = reader->snapshot;
    ASSERT_EQ(read->version().value, seen);
    ASSERT_EQ(read->head(), (*witness)->record.head);
  }
  {
    const auto opened = Store::Open(options);
    ASSERT_TRUE(opened) << opened.error().message;
    Store& store = **opened;
    ASSERT_GE(store.Latest()->version().value, seen);
    ASSERT_LE(store.Latest()->version().value, seen + 1);
    const Script::Forgotten forgotten = look ? look(store) : Script::Forgotten{};
    if (read) Script::ExpectSnapshot(*read, forgotten);
    Script::ExpectStore(store, forgotten);
    for (int commit = 0; commit < 3; ++commit) ASSERT_TRUE(Script::Step(store));
    Script::ExpectStore(store, forgotten);
    ASSERT_TRUE(store.Settle());
  }
  const auto check = VerifyStore(options.path, {.witness = options.witness});
  ASSERT_TRUE(check) << check.error().message;
  for (const Damage& damage : check->damage) ADD_FAILURE() << damage.file << " " << damage.what;
  ExpectWholeCheckpoints(root + "/checkpoints");
}

}  // namespace tacit::store
