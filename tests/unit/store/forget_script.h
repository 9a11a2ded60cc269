#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "script.h"
#include "support/files_below.h"

namespace tacit::store {

// Users with histories whose bytes are found in files, and in no file by chance.
class ForgetScript {
 public:
  static constexpr Hash128 kAda{1, 2}, kBen{3, 4};
  static constexpr int64_t kTime = 1'600'000'000'123;

  static HistoryItem ItemOf(const Hash128& user, uint32_t i) {
    return {.item = static_cast<uint32_t>(0xa1b2'0000 + 256 * user.low + i),
            .timestamp_ms = kTime + i};
  }
  static UserHistory HistoryOf(const Hash128& user, uint32_t items = 3) {
    UserHistory history{.user = user, .items = {}};
    for (uint32_t i = 0; i < items; ++i) history.items.push_back(ItemOf(user, i));
    return history;
  }
  // Makes the next commit, which appends this and counts a step of each user.
  static Status Append(Store& store, std::vector<UserHistory> appended) {
    const uint64_t seq = store.Latest()->version().value + 1;
    CommitRequest request{.learners = {}, .source_identity = "source"};
    request.learners.push_back(
        {LearnerIndex(0), nullptr, nullptr, "position", {TestCharge("ctr", seq)}});
    request.learners.back().allowances = {.step = seq, .uses = {}};
    for (const UserHistory& user : appended)
      request.learners.back().allowances->uses.push_back(
          {.user = user.user, .used = static_cast<uint32_t>(seq), .in_period = 1, .period = seq});
    request.learners.back().histories = {
        .step = seq, .appended = std::move(appended), .items_most = 10};
    TACIT_RETURN_IF_ERROR(store.Commit(std::move(request), {}));
    return store.Flush();
  }

  // Tells whether any file of the folder has the item's bytes, as histories are stored.
  static bool IsInFiles(const std::string& folder, const HistoryItem& item) {
    ByteWriter wanted;
    wanted.Put(item.item).Put(item.timestamp_ms);
    for (const auto& file : test::FilesBelow(folder)) {
      std::ifstream in(file, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      if (bytes.find(wanted.bytes()) != std::string::npos) return true;
    }
    return false;
  }
};

}  // namespace tacit::store
