// A list of tables on a simulated disk: a loss of power tears its end, and never looks like damage.
#include "store/disk/table_list.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <boost/crc.hpp>
#include <cstring>
#include <string>

#include "sim/process.h"
#include "sim/scheduler.h"
#include "store/disk/log_damage.h"

namespace tacit::store {
namespace {

using sim::Disk, sim::Left, sim::Mix;

constexpr const char* kList = "/MANIFEST-000001";

// A record of RocksDB's published format, which log_damage.h cites.
std::string Record(const std::string& payload) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  const char type = 1;
  crc.process_byte(type);
  crc.process_bytes(payload.data(), payload.size());
  const uint32_t turned = crc.checksum() >> 15 | crc.checksum() << 17;
  const uint32_t masked = turned + 0xa282ead8u;
  std::string record(7, type);
  memcpy(record.data(), &masked, 4);
  record[4] = static_cast<char>(payload.size());
  record[5] = static_cast<char>(payload.size() >> 8);
  return record + payload;
}

// Writes groups of records, and syncs each group. Notes the bytes that are synced.
int Write(uint64_t seed, uint64_t* synced) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  if (!rocksdb::FileSystem::Default()->NewWritableFile(kList, {}, &file, nullptr).ok()) return 1;
  TableList list(std::move(file), std::make_shared<std::atomic<bool>>(false));
  uint64_t bytes = 0;
  for (uint64_t group = 0; group < 10; ++group) {
    const uint64_t draw = Mix(seed, group);
    for (uint64_t i = 0; i <= draw % 12; ++i) {
      const std::string record = Record(std::string(20 + Mix(draw, i) % 250, 'x'));
      if (!list.Append(record, {}, nullptr).ok()) return 1;
      bytes += record.size();
    }
    if (!list.Sync({}, nullptr).ok()) return 1;
    *synced = bytes;
  }
  return 0;
}

TEST(TableList, ALossOfPowerTearsItsEndAlone) {
  void* const shared =
      mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& synced = *static_cast<uint64_t*>(shared);
  int torn = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Disk::Owned disk = Disk::Make();
    synced = 0;
    disk->EndPowerAt(20 + Mix(seed, 1) % 60);
    const sim::Life wrote =
        sim::Live({.seed = seed, .disk = disk.get()}, [&] { return Write(seed, &synced); });
    ASSERT_TRUE(wrote.exit_code == 0 || wrote.exit_code == sim::kPowerEnded) << wrote.words;
    disk->Mend();
    disk->LosePower(seed, Left::kAny, Left::kFirst);
    const sim::Life read = sim::Live({.seed = seed, .disk = disk.get()}, [&] {
      const auto damage = FindLogDamage(kList);
      if (!damage) return 1;
      if (!*damage) return 0;
      std::printf("%s\n", Describe(**damage).c_str());
      return (*damage)->torn && (*damage)->offset >= synced ? 2 : 3;
    });
    ASSERT_TRUE(read.exit_code == 0 || read.exit_code == 2) << "seed " << seed << read.words;
    torn += read.exit_code == 2;
  }
  EXPECT_GT(torn, 3);
  munmap(shared, sizeof(uint64_t));
}

}  // namespace
}  // namespace tacit::store
