#include "store/disk/log_damage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/files/regular_file.h"
#include "base/files/unique_fd.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLogBlockBytes = 32768, kSectorBytes = 512, kRecordHeaderBytes = 7;
constexpr std::string_view kListPrefix = "MANIFEST-";
constexpr const char* kCutShort = "it ends within a record";
// A batch is one record of type 1, or begins with one of type 2.
constexpr uint8_t kZeroType = 0, kFirstOfBatch = 2, kMiddle = 3, kLastPlainType = 4;

// CRC-32C, the polynomial of Castagnoli.
using Crc32C = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

// RocksDB stores checksums turned and shifted, since a checksum of bytes with checksums in them is
// weak.
uint32_t Mask(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

struct Header {
  uint32_t crc = 0;
  uint16_t length = 0;
  uint8_t type = 0;
};
Header HeaderAt(const char* bytes) {
  Header header;
  std::memcpy(&header.crc, bytes, 4);
  std::memcpy(&header.length, bytes + 4, 2);
  header.type = static_cast<uint8_t>(bytes[6]);
  return header;
}

bool MatchesChecksum(std::string_view rest, const Header& header) {
  Crc32C crc;
  crc.process_bytes(rest.data() + 6, 1 + size_t{header.length});
  return Mask(crc.checksum()) == header.crc;
}

// Tells whether the next record is of the same batch.
bool GoesOn(const Header& header) { return header.type == kFirstOfBatch || header.type == kMiddle; }

// Tells whether a whole record is at the beginning of `rest`.
bool IsWhole(std::string_view rest) {
  if (rest.size() < kRecordHeaderBytes) return false;
  const Header header = HeaderAt(rest.data());
  return header.type != kZeroType && header.type <= kLastPlainType &&
         kRecordHeaderBytes + header.length <= rest.size() && MatchesChecksum(rest, header);
}

// The length at which the record at the beginning of `rest` matches its checksum, and the file's
// end or a whole record follows. A record that a crash cut short has none.
std::optional<size_t> LengthByChecksum(std::string_view rest, const Header& header) {
  Crc32C crc;
  crc.process_byte(static_cast<unsigned char>(rest[6]));
  for (size_t length = 0;; ++length) {
    const size_t next = kRecordHeaderBytes + length;
    const bool matches = Mask(crc.checksum()) == header.crc;
    if (matches && (next == rest.size() || IsWhole(rest.substr(next)))) return length;
    if (next == rest.size()) return std::nullopt;
    crc.process_byte(static_cast<unsigned char>(rest[next]));
  }
}

bool AreZeros(std::string_view bytes) { return bytes.find_first_not_of('\0') == bytes.npos; }

// Says why the record at the beginning of `rest` is damaged; empty if it is whole, and `*size`
// bytes long, or it is cut short by the file's end, and `*size` is 0.
std::string FindFault(std::string_view rest, bool last_block, size_t* size) {
  const Header header = HeaderAt(rest.data());
  *size = kRecordHeaderBytes + header.length;
  if (AreZeros(rest)) {
    *size = rest.size();  // room that was laid out and not written
    return "";
  }
  if (*size > rest.size()) {
    *size = 0;
    if (!last_block)
      return fmt::format("a record of {} bytes goes beyond its block", header.length);
    // RocksDB takes a length that goes beyond the file's end for a cut, and drops the rest.
    if (const auto length = LengthByChecksum(rest, header))
      return fmt::format("a record of {} bytes says that it has {}", *length, header.length);
    return "";
  }
  if (header.type == kZeroType || header.type > kLastPlainType)
    return fmt::format("a record is of type {}, which there is not", header.type);
  if (!MatchesChecksum(rest, header))
    return fmt::format("a record of {} bytes does not match its checksum", header.length);
  return "";
}

bool BatchBeginsIn(std::string_view rest) {
  while (rest.size() >= kRecordHeaderBytes) {
    const Header header = HeaderAt(rest.data());
    const bool whole = IsWhole(rest);
    if (whole && header.type <= kFirstOfBatch) return true;
    rest.remove_prefix(whole ? kRecordHeaderBytes + header.length : 1);
  }
  return false;
}

// An open log, block by block.
class Blocks {
 public:
  Blocks(const std::string& file, int fd, uint64_t bytes) : file_(file), fd_(fd), bytes_(bytes) {}
  const std::string& file() const { return file_; }
  uint64_t bytes() const { return bytes_; }

  // The block that begins here. It lives until the next call.
  Result<std::string_view> Read(uint64_t begin) {
    const size_t count = std::min<uint64_t>(kLogBlockBytes, bytes_ - begin);
    for (size_t done = 0; done < count;) {
      const ssize_t got =
          pread(fd_, block_.data() + done, count - done, static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        return Fail(ErrorCode::kIo, fmt::format("reading {} failed at offset {}: {}", file_, begin,
                                                got == 0 ? "it ends" : std::strerror(errno)));
      done += static_cast<size_t>(got);
    }
    return std::string_view(block_.data(), count);
  }

 private:
  const std::string& file_;
  const int fd_;
  const uint64_t bytes_;
  std::vector<char> block_ = std::vector<char>(kLogBlockBytes);
};

// Tells whether a loss of power can have left the log like this from a damaged record on. Sectors
// reach a disk in any order, and one that did not is zeros in a file that only grows. A batch is on
// disk before the next one is written, so no other may begin later.
Result<bool> IsTorn(Blocks& blocks, uint64_t at) {
  bool lost = false;
  for (uint64_t begin = at - at % kLogBlockBytes; begin < blocks.bytes(); begin += kLogBlockBytes) {
    TACIT_ASSIGN(const std::string_view block, blocks.Read(begin));
    const size_t first = std::max(at, begin) - begin;
    if (BatchBeginsIn(block.substr(first))) return false;
    for (size_t sector = first; sector < block.size();
         sector += kSectorBytes - sector % kSectorBytes)
      lost |= AreZeros(block.substr(sector, kSectorBytes - sector % kSectorBytes));
  }
  return lost;
}

// Returns the first damaged record.
Result<std::optional<LogDamage>> FindDamage(Blocks& blocks, bool followed) {
  std::optional<uint64_t> zeros;  // where room begins that was laid out and not written
  bool in_batch = false;          // the records before have begun one that goes on
  const auto damaged = [&](uint64_t at, std::string what) -> Result<std::optional<LogDamage>> {
    TACIT_ASSIGN(const bool torn, IsTorn(blocks, at));
    return std::optional(LogDamage{blocks.file(), at, std::move(what), torn && !followed});
  };
  for (uint64_t begin = 0; begin < blocks.bytes(); begin += kLogBlockBytes) {
    TACIT_ASSIGN(const std::string_view block, blocks.Read(begin));
    const bool last = begin + block.size() == blocks.bytes();
    if (zeros && !AreZeros(block)) return damaged(*zeros, "zeros stand before a record");
    size_t at = 0;
    for (size_t size = 1; at + kRecordHeaderBytes <= block.size() && size > 0; at += size) {
      std::string fault = FindFault(block.substr(at), last, &size);
      if (!fault.empty()) return damaged(begin + at, std::move(fault));
      if (size == 0) break;
      if (!AreZeros(block.substr(at))) {
        in_batch = GoesOn(HeaderAt(block.data() + at));
        continue;
      }
      if (in_batch) return damaged(begin + at, "zeros stand within a batch");
      zeros = zeros.value_or(begin + at);
    }
    if (last && at < block.size())
      return std::optional(LogDamage{blocks.file(), begin + at, kCutShort, true});
  }
  return std::optional<LogDamage>{};
}

// Tells whether each header leads to the next one and the last to the end of the file, by types and
// lengths alone.
Result<bool> HeadersLeadToTheEnd(Blocks& blocks) {
  for (uint64_t begin = 0; begin < blocks.bytes(); begin += kLogBlockBytes) {
    TACIT_ASSIGN(const std::string_view block, blocks.Read(begin));
    size_t at = 0;
    while (at + kRecordHeaderBytes <= block.size()) {
      const Header header = HeaderAt(block.data() + at);
      at += kRecordHeaderBytes + header.length;
      if (header.type == kZeroType || header.type > kLastPlainType || at > block.size())
        return false;
    }
    if (at < block.size() && block.size() < kLogBlockBytes) return false;
  }
  return true;
}

// The list of tables that CURRENT names; empty if it names none that is there.
std::string ListNamedByCurrent(const std::string& store) {
  const std::string path = store + "/CURRENT";
  std::error_code error;
  std::string name;
  if (fs::is_regular_file(path, error)) {
    std::ifstream in(path, std::ios::binary);
    std::getline(in, name);
    // RocksDB wants the newline, and nothing after it.
    if (in.eof() || fs::file_size(path, error) != name.size() + 1) name.clear();
  }
  const bool there =
      name.starts_with(kListPrefix) && fs::is_regular_file(store + "/" + name, error);
  return there ? name : "";
}

}  // namespace

std::string Describe(const LogDamage& damage) {
  return fmt::format("{} is damaged at offset {}: {}", damage.file, damage.offset, damage.what);
}

Result<std::optional<LogDamage>> FindLogDamage(const std::string& file, bool followed) {
  TACIT_ASSIGN(const UniqueFd fd, OpenRegularFile(file));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0)
    return Fail(ErrorCode::kIo, fmt::format("{}: {}", file, std::strerror(errno)));
  Blocks blocks(file, fd.get(), static_cast<uint64_t>(info.st_size));
  return FindDamage(blocks, followed);
}

rocksdb::IOStatus CheckNothingIsPassedOver(const std::string& file, int fd, uint64_t bytes) {
  Blocks blocks(file, fd, bytes);
  const auto whole = HeadersLeadToTheEnd(blocks);
  if (whole && *whole) return rocksdb::IOStatus::OK();
  const auto damage = whole ? FindDamage(blocks, false) : Fail(whole.error());
  if (!damage) return rocksdb::IOStatus::IOError(damage.error().message);
  // RocksDB itself drops a record that is cut short.
  return !*damage || (*damage)->what == kCutShort
             ? rocksdb::IOStatus::OK()
             : rocksdb::IOStatus::Corruption(Describe(**damage));
}

bool IsLog(std::string_view file) {
  file.remove_prefix(file.rfind('/') + 1);
  return file.ends_with(".log") || file.starts_with(kListPrefix);
}

std::optional<LogDamage> CheckCurrent(const std::string& store) {
  if (!ListNamedByCurrent(store).empty()) return std::nullopt;
  return LogDamage{store + "/CURRENT", 0, "it names no list of tables that is there"};
}

bool HoldsRecords(const std::string& store) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(store, error)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".sst") || name.ends_with(".blob") || name.ends_with(".log")) return true;
  }
  return false;
}

Result<std::vector<LogDamage>> CheckLogs(const std::string& store) {
  std::vector<LogDamage> found;
  if (auto current = CheckCurrent(store)) found.push_back(*std::move(current));
  // A start that dies leaves a list that it has begun and CURRENT does not name. Nobody reads it.
  const std::string list = ListNamedByCurrent(store);
  const auto is_in_use = [&](std::string_view name) {
    return !name.starts_with(kListPrefix) || list.empty() || name == list;
  };
  std::vector<std::string> logs;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(store, error)) {
    const std::string name = entry.path().filename();
    if (IsLog(name) && is_in_use(name)) logs.push_back(entry.path());
  }
  if (error) return Fail(ErrorCode::kIo, fmt::format("reading {}: {}", store, error.message()));
  std::ranges::sort(logs);
  std::string newest;
  for (const std::string& log : logs)
    if (log.ends_with(".log") && fs::file_size(log, error) > 0) newest = log;
  for (const std::string& log : logs) {
    TACIT_ASSIGN(auto damage, FindLogDamage(log, log.ends_with(".log") && log < newest));
    if (damage) found.push_back(*std::move(damage));
  }
  return found;
}

std::vector<LogDamage> TornLogs(const std::string& store) {
  auto found = CheckLogs(store);
  if (!found || !std::ranges::all_of(*found, &LogDamage::torn)) return {};
  return *std::move(found);
}

bool CutTornLogs(const std::string& store) {
  const std::vector<LogDamage> torn = TornLogs(store);
  const auto cut = [](const LogDamage& log) {
    const UniqueFd fd(open(log.file.c_str(), O_WRONLY | O_CLOEXEC));
    return fd.get() >= 0 && ftruncate(fd.get(), static_cast<off_t>(log.offset)) == 0 &&
           fsync(fd.get()) == 0;
  };
  return !torn.empty() && std::ranges::all_of(torn, cut);
}

std::string ExplainCorruption(const std::string& store, const std::string& own_words) {
  constexpr std::string_view kAdvice =
      "What was committed after it cannot be read. Leave the files as they are. tacit store verify "
      "lists all that is damaged; docs/operating/restore.md, \"When the store is lost\", says how "
      "to "
      "go on from a checkpoint, which takes what is left of this store into account";
  const auto found = CheckLogs(store);
  if (found)
    for (const LogDamage& damage : *found)
      if (!damage.torn) return fmt::format("{}. {}", Describe(damage), kAdvice);
  return fmt::format("{}. {}", own_words, kAdvice);
}

}  // namespace tacit::store
