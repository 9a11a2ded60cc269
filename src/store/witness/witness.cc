#include "store/witness/witness.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "base/files/regular_file.h"
#include "base/first_format.h"
#include "base/text.h"
#include "store/disk/folder.h"

namespace tacit::store {
namespace {

constexpr size_t kLeastDistance = 4096;  // slots never share a sector
constexpr size_t kMostFileBytes = 128 << 20;

Status IoFailure(std::string_view doing, const std::string& path) {
  return Fail(ErrorCode::kIo, fmt::format("{} witness {}: {}", doing, path, std::strerror(errno)));
}

// A slot is as long as the distance between the two; its second copy begins half-way.
size_t PlaceOf(uint64_t write, size_t distance) { return write % 2 * distance; }

// A record may grow to twice its length before the file is laid out anew.
uint32_t DistanceFor(size_t copy_bytes) {
  return static_cast<uint32_t>(std::max(kLeastDistance, std::bit_ceil(4 * copy_bytes)));
}

// The contents of a slot of two copies.
struct Slot {
  std::optional<WitnessCopy> newest;
  bool whole = false;  // both copies are the same write
};

Slot ReadSlot(std::string_view file, size_t parity, size_t distance) {
  Slot slot;
  uint64_t agreed = 0;
  for (const size_t place : {parity * distance, parity * distance + distance / 2}) {
    auto copy = DecodeCopy(file.substr(std::min(place, file.size())));
    if (!copy || copy->distance != distance || copy->write % 2 != parity) continue;
    if (slot.newest && slot.newest->write == copy->write) ++agreed;
    if (!slot.newest || copy->write > slot.newest->write) slot.newest = std::move(copy);
  }
  slot.whole = agreed == 1;
  return slot;
}

struct Layout {
  WitnessSight sight;
  uint64_t writes = 0;
  uint32_t distance = 0;
};

// Every copy holds the distance; any readable copy shows where the others are.
std::optional<Layout> ReadLayout(std::string_view file) {
  for (size_t distance = kLeastDistance; distance / 2 < std::max<size_t>(file.size(), 1);
       distance *= 2) {
    std::array<Slot, 2> slots{ReadSlot(file, 0, distance), ReadSlot(file, 1, distance)};
    const auto write = [](const Slot& slot) { return slot.newest ? slot.newest->write : 0; };
    if (!slots[0].newest && !slots[1].newest) continue;
    Slot& newest = slots[write(slots[1]) > write(slots[0]) ? 1 : 0];
    const bool in_doubt = !slots[0].newest || !slots[1].newest;
    return Layout{.sight = {.record = std::move(newest.newest->record),
                            .in_doubt = in_doubt,
                            .whole = slots[0].whole && slots[1].whole},
                  .writes = newest.newest->write,
                  .distance = static_cast<uint32_t>(distance)};
  }
  return std::nullopt;
}

// Returns nothing if there is no file.
Result<std::optional<std::string>> ReadBytes(const std::string& path) {
  auto bytes = ReadRegularFile(path, kMostFileBytes);
  if (!bytes && bytes.error().code == ErrorCode::kNotFound) return std::optional<std::string>{};
  if (!bytes) return Fail(bytes.error().code, "reading witness " + bytes.error().message);
  return std::optional(*std::move(bytes));
}

Result<std::optional<Layout>> ReadFile(const std::string& path) {
  // A slot that is being written looks damaged for a moment, so the read is repeated.
  for (int attempts = 3;; std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
    TACIT_ASSIGN(const auto bytes, ReadBytes(path));
    if (!bytes) return std::optional<Layout>{};
    auto layout = ReadLayout(*bytes);
    if (layout && (!layout->sight.in_doubt || attempts == 1)) return layout;
    if (!layout && IsBeforeFirst(*bytes))
      return WrittenBeforeFirst("witness " + path,
                                "keep it with the store that it belongs to, and name another");
    if (--attempts > 0) continue;
    return Fail(ErrorCode::kCorruption,
                fmt::format("neither slot of witness {} is readable", path));
  }
}

Status WriteAt(int fd, std::string_view bytes, size_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote == 0) errno = ENOSPC;
    if (wrote <= 0) return IoFailure("writing", path);
    bytes.remove_prefix(static_cast<size_t>(wrote));
    offset += static_cast<size_t>(wrote);
  }
  return {};
}

// Writes both copies of a slot at once.
Status WriteCopies(int fd, const WitnessCopy& copy, const std::string& encoded,
                   const std::string& path) {
  std::string bytes = encoded;
  bytes.resize(copy.distance / 2, '\0');
  bytes += encoded;
  return WriteAt(fd, bytes, PlaceOf(copy.write, copy.distance), path);
}

std::string Resolved(const std::string& path) {
  std::error_code error;
  std::string resolved = std::filesystem::weakly_canonical(path, error).string();
  return error ? path : resolved;
}

Status SyncDirectoryOf(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || fsync(fd.get()) != 0) return IoFailure("syncing the folder of", path);
  return {};
}

Status MoveInPlace(const std::string& fresh, const std::string& path, bool replace) {
  int moved = -1;
  if (!replace) {
    moved = renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE);
    // Not every file system supports this; the time between the check and the rename is short.
    if (moved != 0 && errno == EINVAL) {
      replace = access(path.c_str(), F_OK) != 0;
      errno = EEXIST;
    }
  }
  if (replace) moved = std::rename(fresh.c_str(), path.c_str());
  return moved == 0 ? SyncDirectoryOf(path) : IoFailure("creating", path);
}

bool SameCommit(const WitnessRecord& a, const WitnessRecord& b) {
  return a.lineage == b.lineage && a.seq == b.seq && a.head == b.head;
}

}  // namespace

Result<std::optional<WitnessSight>> WitnessFile::Read(const std::string& path) {
  TACIT_ASSIGN(auto layout, ReadFile(path));
  if (!layout) return std::optional<WitnessSight>{};
  return std::optional(std::move(layout->sight));
}

// Writes nothing in place: if a write of a commit that the store already holds were cut short, the
// witness would look damaged.
Result<std::unique_ptr<WitnessFile>> WitnessFile::OpenAt(const std::string& path,
                                                         const WitnessRecord& now) {
  std::unique_ptr<WitnessFile> file(new WitnessFile(path));
  TACIT_ASSIGN(const auto layout, ReadFile(path));
  if (!layout) {
    TACIT_RETURN_IF_ERROR(file->Renew(now, Replace::kNo));
    return file;
  }
  const WitnessRecord& held = layout->sight.record;
  file->writes_ = layout->writes;
  if (!layout->sight.whole || !SameCommit(held, now) || held.learners != now.learners) {
    TACIT_RETURN_IF_ERROR(file->Renew(now, Replace::kYes));
    return file;
  }
  file->fd_ = UniqueFd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file->fd_.get() < 0) return Fail(IoFailure("opening", path).error());
  // A process that was killed may have left a name that a loss of power takes.
  TACIT_RETURN_IF_ERROR(SyncDirectoryOf(Resolved(path)));
  file->distance_ = layout->distance;
  file->last_ = now;
  return file;
}

// Writes a whole new file with the record in both slots, under another name first, so that an
// existing witness is always readable.
Status WitnessFile::Renew(const WitnessRecord& record, Replace replace) {
  const std::string path = Resolved(path_);  // so that a link to another disk stays a link
  std::error_code error;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) error = MakeFolders(folder);
  if (error) {
    errno = error.value();
    return IoFailure("creating the folder of", path_);
  }
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());  // a crash left it, or somebody made it a link to another file
  UniqueFd fd(open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
  if (fd.get() < 0) return IoFailure("creating", fresh);
  const uint32_t distance = DistanceFor(EncodeCopy({.record = record}).size());
  for (const uint64_t write : {writes_ + 1, writes_ + 2}) {
    const WitnessCopy copy{.write = write, .distance = distance, .record = record};
    TACIT_RETURN_IF_ERROR(WriteCopies(fd.get(), copy, EncodeCopy(copy), path_));
  }
  if (fsync(fd.get()) != 0) return IoFailure("syncing", path_);
  TACIT_RETURN_IF_ERROR(MoveInPlace(fresh, path, replace == Replace::kYes));
  fd_ = std::move(fd);
  writes_ += 2;
  distance_ = distance;
  last_ = record;
  return {};
}

// Returns false if the path names another file, or none.
Result<bool> WitnessFile::IsInPlace() const {
  struct stat ours, there;
  if (fstat(fd_.get(), &ours) != 0) return Fail(IoFailure("looking at", path_).error());
  if (stat(path_.c_str(), &there) == 0)
    return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return Fail(IoFailure("looking at", path_).error());
}

// Accepts a file that was copied and put back. Any other file may belong to another store, or to
// another copy of this one, which would lose its proof.
Status WitnessFile::CheckReplacement() const {
  const auto found = ReadFile(path_);
  if (found && *found && SameCommit((*found)->sight.record, last_)) return {};
  const std::string what =
      !found ? found.error().message
             : fmt::format(
                   "the file there now is of lineage {}, commit {}; this store is of lineage {}, "
                   "and had written commit {}",
                   (*found)->sight.record.lineage, (*found)->sight.record.seq.value, last_.lineage,
                   last_.seq.value);
  return Fail(ErrorCode::kRefused,
              fmt::format("witness {} was replaced while the store was open: {}. Find out who "
                          "else writes there, put the store's own witness back, and start anew",
                          path_, what));
}

Status WitnessFile::Write(const WitnessRecord& record) {
  TACIT_ASSIGN(const bool in_place, IsInPlace());
  const WitnessCopy copy{.write = writes_ + 1, .distance = distance_, .record = record};
  const std::string bytes = EncodeCopy(copy);
  if (!in_place) {
    const bool removed = access(path_.c_str(), F_OK) != 0;
    if (!removed) TACIT_RETURN_IF_ERROR(CheckReplacement());
    TACIT_RETURN_IF_ERROR(Renew(record, removed ? Replace::kNo : Replace::kYes));
    ++times_lost_;
    spdlog::warn("witness {} was {} while the store was open: it is written anew, with commit {}",
                 path_, removed ? "removed" : "put back as a copy", record.seq.value);
    return {};
  }
  if (bytes.size() > distance_ / 2) return Renew(record, Replace::kYes);
  TACIT_RETURN_IF_ERROR(WriteCopies(fd_.get(), copy, bytes, path_));
  if (fdatasync(fd_.get()) != 0) return IoFailure("syncing", path_);
  ++writes_;
  last_ = record;
  return {};
}

bool StoreChain::Has(const RememberedCommit& commit) const {
  const auto head = heads.find(commit.seq);
  if (head != heads.end() && commit.head) return head->second == *commit.head;
  return terms.Has(commit);
}

bool StoreChain::Continues(const WitnessRecord& witness) const {
  return witness.lineage != lineage &&
         AccountsFor(ancestors, witness.lineage, {witness.seq, witness.term, witness.head});
}

Status CheckWitness(const WitnessRecord& witness, const StoreChain& store,
                    const WitnessPlace& place, const std::string& store_path) {
  const auto refuse = [&](std::string_view difference) {
    return Fail(ErrorCode::kRefused, fmt::format("store {} is not the one its {} {} has seen: {}",
                                                 store_path, place.kind, place.path, difference));
  };
  // A witness without commits has seen nothing that could be lost.
  if (witness.seq.value == 0 || store.Continues(witness)) return {};
  if (witness.lineage != store.lineage)
    return refuse(fmt::format("lineage {} here, {} there", store.lineage, witness.lineage));
  if (store.seq < witness.seq)
    return refuse(
        fmt::format("it ends at commit {}, the {} has seen commit {}; an older copy "
                    "would report less privacy loss than there was. If the newest one is lost, "
                    "tacitd --accept-older-copy charges what this one lacks and goes on",
                    store.seq.value, place.kind, witness.seq.value));
  if (store.Has({witness.seq, witness.term, witness.head})) return {};
  return refuse(
      fmt::format("its own commit {} is not the one that the {} has seen, of ledger head {}: "
                  "it was copied before that commit and continued on its own, so its ledger "
                  "leaves out what was spent there. Start the store that wrote the {} last",
                  witness.seq.value, place.kind, ToHex(witness.head), place.kind));
}

Status CheckDamage(const WitnessSight& sight, CommitSeq store, const WitnessPlace& place,
                   const std::string& store_path) {
  if (!sight.in_doubt || store > sight.record.seq) return {};
  return Fail(
      ErrorCode::kRefused,
      fmt::format("half of {} {} is damaged. It may have held a newer commit than {}, where "
                  "store {} ends, so that an older copy could not be told from the newest. "
                  "If this is the newest copy, move the {} away; then tacit store "
                  "accept-witness writes it anew",
                  place.kind, place.path, sight.record.seq.value, store_path, place.kind));
}

}  // namespace tacit::store
