// Tests how a store of an older format is brought up. There is no such format yet, so the format 0
// here is one that only this test knows: its lineage is under another key.
#include "store/disk/format.h"

#include <gmock/gmock.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <filesystem>

#include "base/bytes.h"
#include "script.h"
#include "store/care/recover.h"
#include "store/care/verify.h"
#include "store/disk/rocks.h"
#include "store/disk/seal.h"
#include "support/temp_dir.h"

namespace tacit::store {
namespace {

using testing::HasSubstr;

constexpr std::string_view kLineageOfFormat0 = "line";

// Moves a value of `meta`.
Status Move(const Rocks& rocks, std::string_view from, std::string_view to,
            rocksdb::WriteBatch* batch) {
  auto* meta = rocks.family(Family::kMeta);
  TACIT_ASSIGN(const auto value, rocks.Get(Family::kMeta, from));
  TACIT_CHECK(value.has_value());
  batch->Put(meta, AsSlice(to), Seal(*value));
  batch->Delete(meta, AsSlice(from));
  return {};
}

class FormatTest : public testing::Test {
 protected:
  FormatTest() : options_(TestOptions(folder_)) {
    const auto store = MustOpen(options_);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Script::Step(*store));
  }

  std::shared_ptr<Rocks> OpenRocks() const {
    auto rocks =
        Rocks::Open(options_.path, options_.memory_bytes, std::make_shared<FailureLatch>());
    TACIT_CHECK(rocks.has_value());
    return *std::move(rocks);
  }
  void SetFormat(uint32_t format, bool move_lineage) const {
    const auto rocks = OpenRocks();
    rocksdb::WriteBatch batch;
    if (move_lineage) {
      ASSERT_TRUE(Move(*rocks, meta::kLineage, kLineageOfFormat0, &batch));
    }
    batch.Put(rocks->family(Family::kMeta), AsSlice(meta::kFormat),
              Seal(ByteWriter().Put(format).bytes()));
    ASSERT_TRUE(rocks->WriteSynced(batch));
  }
  void ExpectRefused(const char* says) const {
    const auto owner = Store::Open(options_);
    const auto reader = OpenReadOnly(options_.path, options_.witness, options_.learners);
    const auto check = VerifyStore(options_.path, {.witness = options_.witness});
    const auto ledger = RecoverLedger({.store = options_.path, .checkpoints = {}, .end = {}});
    ASSERT_FALSE(owner);
    ASSERT_FALSE(reader);
    ASSERT_FALSE(check);
    ASSERT_FALSE(ledger);
    for (const Error& error : {owner.error(), reader.error(), check.error(), ledger.error()}) {
      EXPECT_EQ(error.code, ErrorCode::kRefused);
      EXPECT_THAT(error.message, HasSubstr("store " + options_.path + says));
    }
  }

  const TestFolder folder_;
  StoreOptions options_;
};

TEST_F(FormatTest, AnOlderOneIsBroughtUpByItsStep) {
  SetFormat(0, /*move_lineage=*/true);
  ExpectRefused(" has format 0, this program reads 1");
  const std::array<FormatStep, 1> fails{
      {{.from = 0, .put = [](const Rocks&, rocksdb::WriteBatch*) -> Status {
          return Fail(ErrorCode::kIo, "the step fails");
        }}}};
  options_.format_steps = fails;
  EXPECT_EQ(Store::Open(options_).error().message, "the step fails");
  options_.format_steps = {};
  ExpectRefused(" has format 0, this program reads 1");  // nothing has changed

  const std::array<FormatStep, 1> steps{
      {{.from = 0, .put = [](const Rocks& rocks, rocksdb::WriteBatch* batch) {
          return Move(rocks, kLineageOfFormat0, meta::kLineage, batch);
        }}}};
  options_.format_steps = steps;
  {
    const auto store = MustOpen(options_);
    Script::ExpectStore(*store);
    ASSERT_TRUE(Script::Step(*store));
  }
  options_.format_steps = {};
  const auto reader = OpenReadOnly(options_.path, options_.witness, options_.learners);
  ASSERT_TRUE(reader) << reader.error().message;
  Script::ExpectSnapshot(*reader->snapshot);
  EXPECT_EQ(reader->snapshot->version().value, 4u);
}

TEST_F(FormatTest, ALaterOneIsRefused) {
  SetFormat(2, /*move_lineage=*/false);
  ExpectRefused(" has format 2, this program reads 1");
}

// tests/fixtures/README.md says which program wrote it.
TEST_F(FormatTest, AStoreFromBeforeTheFirstIsRefused) {
  std::filesystem::remove_all(options_.path);
  std::filesystem::remove(options_.witness);
  std::filesystem::copy(TACIT_SOURCE_DIR "/tests/fixtures/before-0.1.0/store", options_.path,
                        std::filesystem::copy_options::recursive);
  ExpectRefused(" was written before 0.1.0");
}

}  // namespace
}  // namespace tacit::store
