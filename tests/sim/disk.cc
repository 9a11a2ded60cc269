#include "sim/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <set>

#include "sim/scheduler.h"

namespace tacit::sim {
namespace {

constexpr size_t kMappingBytes = size_t{2} << 30;  // takes memory where it is used

bool Reads(int flags) { return (flags & O_ACCMODE) != O_WRONLY; }
bool Writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

uint64_t Hash(uint64_t hash, std::string_view bytes) {
  hash = Mix(hash, bytes.size());
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    hash = Mix(hash, word);
  }
  return hash;
}

// Tells whether a change is left by a loss of power, which has `first` changes to take or to leave.
bool Stays(Left left, uint64_t change, uint64_t first, uint64_t draw) {
  switch (left) {
    case Left::kNothing:
      return false;
    case Left::kFirst:
      return change < first;
    case Left::kLast:
      return change >= first;
    case Left::kAny:
      return Mix(draw, change) % 2 == 0;
  }
  return false;
}

}  // namespace

Disk::Owned Disk::Make(uint64_t space_bytes) {
  void* const mapping = mmap(nullptr, kMappingBytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<char*>(mapping);
  return Owned(new (mapping) Disk(begin + sizeof(Disk), begin + kMappingBytes, space_bytes));
}

// All that a disk has lies in its mapping.
void Disk::Unmap::operator()(Disk* disk) const { munmap(disk, kMappingBytes); }

Disk::Disk(char* begin, char* end, uint64_t space_bytes)
    : mapping_(begin, end),
      memory_({.max_blocks_per_chunk = 64, .largest_required_pool_block = size_t{4} << 20},
              &mapping_),
      space_pages_(space_bytes / kPage),
      inodes_(&memory_),
      name_changes_(&memory_),
      opened_(&memory_),
      descriptors_(&memory_) {
  for (const Ino folder : {kRoot, kDescriptors}) {
    Inode& inode = inodes_.try_emplace(folder, &memory_).first->second;
    inode.mode = S_IFDIR | 0755;
    inode.parent = folder;
  }
}

void Disk::Bytes::Put(uint64_t at, std::string_view bytes) {
  size = std::max(size, at + bytes.size());
  while (!bytes.empty()) {
    const size_t in = at % kPage, count = std::min(kPage - in, bytes.size());
    std::pmr::string& page = pages[at / kPage];
    page.resize(kPage);
    memcpy(page.data() + in, bytes.data(), count);
    bytes.remove_prefix(count);
    at += count;
  }
}

void Disk::Bytes::Cut(uint64_t bytes) {
  size = bytes;
  pages.erase(pages.lower_bound((bytes + kPage - 1) / kPage), pages.end());
  const auto last = pages.find(bytes / kPage);
  if (last == pages.end() || last->second.empty()) return;
  memset(last->second.data() + bytes % kPage, 0, kPage - bytes % kPage);
}

void Disk::Bytes::Get(uint64_t at, char* to, size_t count) const {
  while (count > 0) {
    const size_t in = at % kPage, piece = std::min(kPage - in, count);
    const auto page = pages.find(at / kPage);
    if (page == pages.end() || page->second.empty())
      memset(to, 0, piece);
    else
      memcpy(to, page->second.data() + in, piece);
    to += piece, at += piece, count -= piece;
  }
}

Disk::OpenFile* Disk::Opened(int fd) {
  const auto found = descriptors_.find(fd);
  return found == descriptors_.end() ? nullptr : &opened_.at(found->second);
}

// Counts the call, if the fault could meet it. Returns the error that the call fails with; 0: none.
int Disk::Fails(Act act, std::string_view path) {
  if (fault_.error == 0 || act != fault_.act || path.find(fault_.files) == path.npos) return 0;
  ++fault_calls_;
  const bool meets = fault_.lasting ? fault_calls_ >= fault_.call : fault_calls_ == fault_.call;
  if (meets && fault_.error == Fault::kPower) EndPowerAt(1);
  return meets ? fault_.error : 0;
}

bool Disk::CountChange() { return ++changes_ != power_ends_at_ || power_ends_at_ == 0; }

int64_t Disk::Open(int at, std::string_view path, int flags, mode_t mode) {
  if (const int error = Fails(Act::kOpen, path); error > 0) return -error;
  if ((flags & O_TMPFILE) == O_TMPFILE) return -EOPNOTSUPP;
  const bool alone = (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0;
  Place place;
  const int64_t found = Find(at, path, (flags & O_NOFOLLOW) == 0 && !alone, &place);
  if (found < 0) return found;
  if (place.inode == 0) {
    if ((flags & O_CREAT) == 0) return -ENOENT;
    place.inode = Add(S_IFREG | (mode & 0777));
    SetName(next_name_change_++, place, place.inode);
  } else {
    const mode_t there = inodes_.at(place.inode).mode;
    if (alone) return -EEXIST;
    if (S_ISLNK(there)) return (flags & O_DIRECTORY) != 0 ? -ENOTDIR : -ELOOP;
    if ((flags & O_DIRECTORY) != 0 && !S_ISDIR(there)) return -ENOTDIR;
    if (S_ISDIR(there) && (Writes(flags) || (flags & (O_CREAT | O_TRUNC)) != 0)) return -EISDIR;
    if ((flags & O_TRUNC) != 0 && S_ISREG(there)) Note(inodes_.at(place.inode), true, 0, {});
  }
  const uint32_t opened = next_opened_++;
  opened_.emplace(opened, OpenFile{.inode = place.inode,
                                   .flags = flags,
                                   .offset = 0,
                                   .lock = LOCK_UN,
                                   .path = std::pmr::string(path, &memory_)});
  int fd = kFirstDescriptor;
  while (descriptors_.contains(fd)) ++fd;
  descriptors_.emplace(fd, opened);
  return fd;
}

int64_t Disk::Close(int fd) {
  const auto found = descriptors_.find(fd);
  if (found == descriptors_.end()) return -EBADF;
  const uint32_t opened = found->second;
  descriptors_.erase(found);
  for (const auto& [other, same] : descriptors_)
    if (same == opened) return 0;
  const Ino inode = opened_.at(opened).inode;
  opened_.erase(opened);
  Release(inode);
  return 0;
}

int64_t Disk::Dup(int fd) {
  const auto found = descriptors_.find(fd);
  if (found == descriptors_.end()) return -EBADF;
  int copy = kFirstDescriptor;
  while (descriptors_.contains(copy)) ++copy;
  descriptors_.emplace(copy, found->second);
  return copy;
}

int64_t Disk::Flags(int fd) const {
  const OpenFile* const open = Opened(fd);
  if (open == nullptr) return -EBADF;
  return open->flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY);
}

int64_t Disk::Read(int fd, char* to, size_t size, std::optional<uint64_t> at) {
  OpenFile* const open = Opened(fd);
  if (open == nullptr || !Reads(open->flags)) return -EBADF;
  if (IsFolder(open->inode)) return -EISDIR;
  const Bytes& bytes = inodes_.at(open->inode).live;
  const uint64_t from = at.value_or(open->offset);
  size_t got = from < bytes.size ? std::min<uint64_t>(size, bytes.size - from) : 0;
  if (const int error = Fails(Act::kRead, open->path); error > 0)
    return -error;
  else if (error == Fault::kShort)
    got = (got + 1) / 2;
  bytes.Get(from, to, got);
  if (!at) open->offset += got;
  return static_cast<int64_t>(got);
}

int64_t Disk::Write(int fd, std::string_view bytes, std::optional<uint64_t> at) {
  OpenFile* const open = Opened(fd);
  if (open == nullptr || !Writes(open->flags)) return -EBADF;
  if (const int error = Fails(Act::kWrite, open->path); error > 0)
    return -error;
  else if (error == Fault::kShort)
    bytes = bytes.substr(0, (bytes.size() + 1) / 2);
  if (bytes.empty()) return 0;
  Inode& file = inodes_.at(open->inode);
  const uint64_t to = (open->flags & O_APPEND) != 0 ? file.live.size : at.value_or(open->offset);
  const int64_t written = Note(file, false, to, bytes);
  if (written > 0 && !at) open->offset = to + static_cast<uint64_t>(written);
  return written;
}

// Changes the bytes of a file, as far as there is space. Returns the number of bytes.
int64_t Disk::Note(Inode& file, bool cut, uint64_t at, std::string_view bytes) {
  const size_t before = file.live.pages.size();
  if (cut) {
    file.live.Cut(at);
  } else {
    uint64_t free = space_pages_ - used_pages_;
    for (uint64_t page = at / kPage; page * kPage < at + bytes.size(); ++page) {
      if (file.live.pages.contains(page)) continue;
      if (free-- > 0) continue;
      bytes = bytes.substr(0, std::max(page * kPage, at) - at);
      break;
    }
    if (bytes.empty()) return -ENOSPC;
    file.live.Put(at, bytes);
  }
  file.unsynced.push_back({.cut = cut, .at = at, .bytes = std::pmr::string(bytes, &memory_)});
  file.changed = now;
  used_pages_ += file.live.pages.size() - before;
  return static_cast<int64_t>(bytes.size());
}

int64_t Disk::Seek(int fd, int64_t offset, int whence) {
  OpenFile* const open = Opened(fd);
  if (open == nullptr) return -EBADF;
  if (whence == SEEK_CUR) offset += static_cast<int64_t>(open->offset);
  if (whence == SEEK_END) offset += static_cast<int64_t>(inodes_.at(open->inode).live.size);
  if (offset < 0 || whence < SEEK_SET || whence > SEEK_END) return -EINVAL;
  open->offset = static_cast<uint64_t>(offset);
  return offset;
}

int64_t Disk::Resize(int fd, uint64_t bytes) {
  OpenFile* const open = Opened(fd);
  if (open == nullptr) return -EBADF;
  if (!Writes(open->flags)) return -EINVAL;
  if (const int error = Fails(Act::kWrite, open->path); error > 0) return -error;
  return Note(inodes_.at(open->inode), true, bytes, {});
}

int64_t Disk::Reserve(int fd, int mode, uint64_t at, uint64_t bytes) {
  OpenFile* const open = Opened(fd);
  if (open == nullptr || !Writes(open->flags)) return -EBADF;
  if (const int error = Fails(Act::kWrite, open->path); error > 0) return -error;
  Inode& file = inodes_.at(open->inode);
  const bool punches = mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
  if (!punches && (mode & ~FALLOC_FL_KEEP_SIZE) != 0) return -EOPNOTSUPP;
  const uint64_t first = (at + (punches ? kPage - 1 : 0)) / kPage, end = at + bytes;
  if (punches) {
    // Within the file only zeros would be right, and no caller asks for these.
    if (at < file.live.size) return -EOPNOTSUPP;
    const size_t before = file.live.pages.size();
    file.live.pages.erase(file.live.pages.lower_bound(first),
                          file.live.pages.lower_bound(end / kPage));
    used_pages_ -= before - file.live.pages.size();
    return 0;
  }
  uint64_t missing = 0;
  for (uint64_t page = first; page * kPage < end; ++page)
    missing += !file.live.pages.contains(page);
  if (missing > space_pages_ - used_pages_) return -ENOSPC;
  used_pages_ += missing;
  for (uint64_t page = first; page * kPage < end; ++page) file.live.pages.try_emplace(page);
  if ((mode & FALLOC_FL_KEEP_SIZE) == 0 && end > file.live.size) {
    file.live.size = end;
    file.unsynced.push_back({.cut = true, .at = end, .bytes = std::pmr::string(&memory_)});
  }
  return 0;
}

int64_t Disk::Sync(int fd) {
  OpenFile* const open = Opened(fd);
  if (open == nullptr) return -EBADF;
  Inode& file = inodes_.at(open->inode);
  const int error = Fails(Act::kSync, open->path);
  if (error <= 0 && IsFolder(open->inode)) SyncNames(open->inode);
  if (error <= 0) {
    std::set<uint64_t> pages;
    for (const Change& change : file.unsynced) {
      const uint64_t first = change.at / kPage;
      const auto add = [&](const Bytes& bytes) {
        for (auto page = bytes.pages.lower_bound(first); page != bytes.pages.end(); ++page)
          pages.insert(page->first);
      };
      if (change.cut) add(file.live), add(file.safe);
      for (uint64_t page = first; page * kPage < change.at + change.bytes.size(); ++page)
        pages.insert(page);
    }
    for (const uint64_t page : pages) {
      const auto live = file.live.pages.find(page);
      if (live == file.live.pages.end())
        file.safe.pages.erase(page);
      else
        file.safe.pages[page] = live->second;
    }
    file.safe.size = file.live.size;
  }
  if (error <= 0) journal_ = next_name_change_;
  // After a failure Linux takes the pages for clean: they are gone with the power.
  file.unsynced.clear();
  return error > 0 ? -error : 0;
}

int64_t Disk::Lock(int fd, int operation) {
  OpenFile* const open = Opened(fd);
  if (open == nullptr) return -EBADF;
  const int wanted = operation & ~LOCK_NB;
  for (const auto& [number, other] : opened_)
    if (&other != open && other.inode == open->inode && wanted != LOCK_UN &&
        (other.lock == LOCK_EX || (other.lock == LOCK_SH && wanted == LOCK_EX))) {
      open->lock = LOCK_UN;  // Linux gives the lock up before it takes the other kind
      return -EWOULDBLOCK;
    }
  open->lock = wanted;
  return 0;
}

Disk::Space Disk::space() const {
  return {.blocks = space_pages_, .free = space_pages_ - used_pages_};
}

void Disk::EndProcess() {
  descriptors_.clear();
  opened_.clear();
  std::vector<Ino> all;
  for (const auto& [number, inode] : inodes_) all.push_back(number);
  for (const Ino inode : all) Release(inode);
  Collect();
}

// Makes some changes of the bytes safe. A sector of a write and a cut are units, each left or not.
// A sector that is left has all that was written to it before.
void Disk::KeepSome(Inode& file, uint64_t draw, Left left) {
  uint64_t units = 0;
  const auto for_each = [&](const auto& take) {
    units = 0;
    for (const Change& change : file.unsynced) {
      uint64_t at = change.at;
      std::string_view rest = change.bytes;
      if (change.cut) take(units++, change, at, rest);
      while (!rest.empty()) {
        const size_t count = std::min<size_t>(kSector - at % kSector, rest.size());
        take(units++, change, at, rest.substr(0, count));
        rest.remove_prefix(count);
        at += count;
      }
    }
  };
  for_each([](auto...) {});
  const uint64_t first = Mix(draw, 1) % (units + 1);
  std::map<uint64_t, std::vector<uint64_t>> sectors;  // the units of each
  for_each([&](uint64_t unit, const Change& change, uint64_t at, std::string_view) {
    if (!change.cut) sectors[at / kSector].push_back(unit);
  });
  std::map<uint64_t, uint64_t> last;  // unit that is left, by sector
  for (const auto& [sector, all] : sectors) {
    const uint64_t drawn = Mix(Mix(draw, 2), sector) % (all.size() + 1);
    for (size_t i = 0; i < all.size(); ++i)
      if (left == Left::kAny ? i < drawn : Stays(left, all[i], first, draw)) last[sector] = all[i];
  }
  for_each([&](uint64_t unit, const Change& change, uint64_t at, std::string_view sector) {
    if (change.cut && Stays(left, unit, first, draw)) file.safe.Cut(at);
    const auto found = last.find(at / kSector);
    if (!change.cut && found != last.end() && unit <= found->second) file.safe.Put(at, sector);
  });
  file.unsynced.clear();
}

void Disk::LosePower(uint64_t draw, Left bytes, Left names) {
  descriptors_.clear();
  opened_.clear();
  const uint64_t oldest = name_changes_.empty() ? next_name_change_ : name_changes_[0].change;
  const uint64_t sure = std::max(oldest, journal_);
  const uint64_t least = names == Left::kFirst ? sure : oldest;
  const uint64_t first = least + Mix(draw, 2) % (next_name_change_ - least + 1);
  for (const NameChange& change : name_changes_)
    if (Stays(names, change.change, first, Mix(draw, 3))) MakeSafe(change);
  name_changes_.clear();
  used_pages_ = 0;
  for (auto& [number, inode] : inodes_) {
    KeepSome(inode, Mix(draw, number), bytes);
    inode.live.pages = inode.safe.pages;
    inode.live.size = inode.safe.size;
    inode.names = inode.safe_names;
    inode.links = 0;
  }
  for (auto& [number, inode] : inodes_)
    for (const auto& [name, to] : inode.names) {
      ++inodes_.at(to).links;
      if (IsFolder(to)) inodes_.at(to).parent = number;
    }
  Collect();
  for (const auto& [number, inode] : inodes_) used_pages_ += inode.live.pages.size();
}

void Disk::SyncAll() {
  name_changes_.clear();
  for (auto& [number, inode] : inodes_) {
    inode.safe.pages = inode.live.pages;
    inode.safe.size = inode.live.size;
    inode.unsynced.clear();
    inode.safe_names = inode.names;
  }
}

std::string Disk::Rot(uint64_t draw, std::string_view files) {
  std::vector<std::pair<std::string, Ino>> found;
  for (const auto& [number, inode] : inodes_)
    if (S_ISREG(inode.mode) && inode.links > 0 && inode.live.size > 0)
      if (std::string path = PathOf(number); path.find(files) != path.npos)
        found.emplace_back(std::move(path), number);
  if (found.empty()) return "";
  const auto& [path, number] = found[Mix(draw, 1) % found.size()];
  Inode& file = inodes_.at(number);
  const uint64_t at = Mix(draw, 2) % file.live.size;
  char byte = 0;
  file.live.Get(at, &byte, 1);
  byte = static_cast<char>(byte ^ 1 << Mix(draw, 3) % 8);
  file.live.Put(at, {&byte, 1});
  file.safe.Put(at, {&byte, 1});
  return path;
}

uint64_t Disk::Digest() const {
  std::map<std::string, Ino> paths;
  for (const auto& [number, inode] : inodes_)
    for (const auto& [name, to] : inode.names)
      paths.emplace(PathOf(number) + "/" + std::string(name), to);
  uint64_t hash = 0;
  for (const auto& [path, number] : paths) {
    const Inode& inode = inodes_.at(number);
    hash = Hash(Hash(Hash(hash, path), Contents(path).value_or("")), inode.target);
  }
  return hash;
}

std::optional<std::string> Disk::Contents(std::string_view path) const {
  Place place;
  if (Find(AT_FDCWD, path, true, &place) < 0 || place.inode == 0) return std::nullopt;
  const Bytes& bytes = inodes_.at(place.inode).live;
  std::string contents(bytes.size, '\0');
  bytes.Get(0, contents.data(), contents.size());
  return contents;
}

}  // namespace tacit::sim
