#include "store/witness.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"
#include "store/seal.h"

namespace tacit::store {
namespace {

constexpr uint32_t kMagic = 0x54495754;  // "TWIT"
constexpr uint32_t kFormat = 1;
constexpr size_t kLineageDigits = 32;
constexpr size_t kSlotBytes = 8 + 4 + 4 + kLineageDigits + 8 + 32;
constexpr off_t kSlotDistance = 4096;  // slots never share a sector

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Status IoFailure(std::string_view doing, const std::string& path) {
  return Fail(ErrorCode::kIo, fmt::format("{} witness {}: {}", doing, path, std::strerror(errno)));
}

std::string EncodeSlot(const WitnessRecord& record) {
  TACIT_CHECK(record.lineage.size() == kLineageDigits);
  ByteWriter writer;
  writer.Put(kMagic).Put(kFormat);
  writer.PutArray(std::span<const char>(record.lineage)).Put(record.seq.value);
  writer.PutArray(std::span<const uint8_t>(record.head));
  return Seal(writer.bytes());
}

std::optional<WitnessRecord> DecodeSlot(std::string_view slot) {
  const auto payload = Unseal(slot, "slot");
  if (!payload) return std::nullopt;
  ByteReader reader(*payload);
  if (reader.Get<uint32_t>() != kMagic || reader.Get<uint32_t>() != kFormat) return std::nullopt;
  WitnessRecord record;
  record.lineage.resize(kLineageDigits);
  reader.GetArray(std::span<char>(record.lineage));
  record.seq = CommitSeq(reader.Get<uint64_t>());
  reader.GetArray(std::span<uint8_t>(record.head));
  return reader.at_end() ? std::optional(record) : std::nullopt;
}

// Both slots, as far as they are readable.
using Slots = std::array<std::optional<WitnessRecord>, 2>;

Result<Slots> ReadSlots(int fd, const std::string& path) {
  Slots slots;
  for (int i = 0; i < 2; ++i) {
    std::array<char, kSlotBytes> bytes;
    const ssize_t got = pread(fd, bytes.data(), bytes.size(), i * kSlotDistance);
    if (got < 0) return Fail(IoFailure("reading", path).error());
    slots[i] = DecodeSlot({bytes.data(), static_cast<size_t>(got)});
  }
  if (!slots[0] && !slots[1])
    return Fail(ErrorCode::kCorruption,
                fmt::format("neither slot of witness {} is readable", path));
  return slots;
}

int Newest(const Slots& slots) {
  if (!slots[0]) return 1;
  if (!slots[1]) return 0;
  return slots[1]->seq > slots[0]->seq ? 1 : 0;
}

Status WriteSlot(int fd, int slot, const WitnessRecord& record, const std::string& path) {
  const std::string bytes = EncodeSlot(record);
  const ssize_t wrote = pwrite(fd, bytes.data(), bytes.size(), slot * kSlotDistance);
  if (wrote >= 0 && wrote < static_cast<ssize_t>(bytes.size())) errno = ENOSPC;
  if (wrote != static_cast<ssize_t>(bytes.size())) return IoFailure("writing", path);
  if (fdatasync(fd) != 0) return IoFailure("syncing", path);
  return {};
}

Status SyncDirectoryOf(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const Descriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || fsync(fd.get()) != 0) return IoFailure("syncing the folder of", path);
  return {};
}

// Under another name first: a witness that exists is always readable.
Status Create(const std::string& path, const WitnessRecord& first) {
  const std::string fresh = path + ".new";
  {
    const Descriptor fd(open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (fd.get() < 0) return IoFailure("creating", path);
    TACIT_RETURN_IF_ERROR(WriteSlot(fd.get(), 0, first, path));
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return IoFailure("creating", path);
  return SyncDirectoryOf(path);
}

}  // namespace

Result<std::optional<WitnessRecord>> WitnessFile::Read(const std::string& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    if (errno == ENOENT) return std::optional<WitnessRecord>{};
    return Fail(IoFailure("opening", path).error());
  }
  TACIT_ASSIGN(const Slots slots, ReadSlots(fd.get(), path));
  return slots[Newest(slots)];
}

Result<std::unique_ptr<WitnessFile>> WitnessFile::OpenOrCreate(const std::string& path,
                                                               const WitnessRecord& first) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) TACIT_RETURN_IF_ERROR(Create(path, first));
  Descriptor fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0) return Fail(IoFailure("opening", path).error());
  TACIT_ASSIGN(const Slots slots, ReadSlots(fd.get(), path));
  return std::unique_ptr<WitnessFile>(new WitnessFile(path, fd.Release(), 1 - Newest(slots)));
}

WitnessFile::~WitnessFile() { close(fd_); }

Status WitnessFile::Write(const WitnessRecord& record) {
  TACIT_RETURN_IF_ERROR(WriteSlot(fd_, slot_, record, path_));
  slot_ = 1 - slot_;
  return {};
}

Status CheckWitness(const WitnessRecord& witness, const WitnessRecord& store,
                    const std::string& witness_path, const std::string& store_path) {
  const auto refuse = [&](std::string_view difference) {
    return Fail(ErrorCode::kRefused,
                fmt::format("store {} is not the one its witness {} has seen: {}", store_path,
                            witness_path, difference));
  };
  // A witness of no commits has seen nothing that could be lost.
  if (witness.lineage != store.lineage && witness.seq.value > 0)
    return refuse(fmt::format("lineage {} here, {} there", store.lineage, witness.lineage));
  if (witness.lineage != store.lineage) return {};
  if (store.seq < witness.seq)
    return refuse(
        fmt::format("it ends at commit {}, the witness has seen commit {}; an older copy "
                    "would report less privacy loss than there was",
                    store.seq.value, witness.seq.value));
  if (store.seq == witness.seq && store.head != witness.head)
    return refuse(fmt::format("commit {} has ledger head {} here, {} there", store.seq.value,
                              ToHex(store.head), ToHex(witness.head)));
  return {};
}

}  // namespace tacit::store
