#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/mapping.h"

namespace tacit::sim {

// Descriptors on a disk begin here: the kernel refuses one that reaches a call that is not ours.
inline constexpr int kFirstDescriptor = 1 << 20;

// Calls that can be made to fail, and crash points (base/crash_point.h), after which the power can
// end.
enum class Act : uint8_t { kOpen, kRead, kWrite, kSync, kName, kPoint };

struct Fault {
  // In place of an error: half of the bytes are written, or read; the power ends at the change
  // after this call.
  static constexpr int kShort = -1, kPower = -2;

  Act act = Act::kWrite;
  const char* files = "";  // a part of the paths that it meets, or of the crash points
  uint64_t call = 1;       // the first call that fails, from 1
  int error = 0;
  bool lasting = false;  // all later calls fail, too
};

// Changes that a loss of power leaves of those since the last sync.
enum class Left : uint8_t { kNothing, kFirst, kLast, kAny };
inline constexpr int kLefts = 4;

// A disk in memory: bytes and names, each as processes see them now and as a loss of power leaves
// them. A call answers as Linux does: a number, or a negative errno. Not thread-safe. A disk lies
// in memory that a process shares with its children, so it outlives them; it may be in use by one
// process at a time.
class Disk {
 public:
  struct Unmap {
    void operator()(Disk* disk) const;
  };
  using Owned = std::unique_ptr<Disk, Unmap>;
  // `space_bytes`: for the contents of files.
  static Owned Make(uint64_t space_bytes = uint64_t{1} << 40);

  // Files.
  int64_t Open(int at, std::string_view path, int flags, mode_t mode);
  int64_t Close(int fd);
  int64_t Dup(int fd);
  int64_t Flags(int fd) const;
  int64_t Read(int fd, char* to, size_t size, std::optional<uint64_t> at = std::nullopt);
  int64_t Write(int fd, std::string_view bytes, std::optional<uint64_t> at = std::nullopt);
  int64_t Seek(int fd, int64_t offset, int whence);
  int64_t Resize(int fd, uint64_t bytes);
  int64_t Reserve(int fd, int mode, uint64_t at, uint64_t bytes);  // fallocate
  int64_t Sync(int fd);
  int64_t Lock(int fd, int operation);  // flock; never waits

  // Names. `at`: a descriptor of a folder, or AT_FDCWD for the root.
  int64_t Stat(int at, std::string_view path, bool follow, struct stat* out) const;
  int64_t StatOpen(int fd, struct stat* out) const;
  int64_t SetMode(int fd, mode_t mode);
  int64_t MakeFolder(int at, std::string_view path, mode_t mode);
  int64_t Remove(int at, std::string_view path, bool folder);
  int64_t Rename(int from_at, std::string_view from, int to_at, std::string_view to,
                 unsigned flags);
  int64_t Link(int from_at, std::string_view from, int to_at, std::string_view to);
  int64_t LinkByName(std::string_view target, int at, std::string_view path);  // symlink
  int64_t ReadLink(int at, std::string_view path, std::string* out) const;
  int64_t Canonical(std::string_view path, std::string* out) const;
  struct Entry {
    std::string name;
    uint32_t inode;
    mode_t mode;
  };
  int64_t List(int fd, std::vector<Entry>* out) const;
  struct Space {
    uint64_t blocks, free;
  };
  Space space() const;

  // The process has ended: its descriptors and locks go.
  void EndProcess();
  // The draw selects which changes since each file's and folder's sync are left. With
  // kFirst the sectors of a file, and the names of the disk, change in their order; kLast is the
  // reverse; with kAny each sector and name changes or not by itself. A rename is one change. Names
  // with kFirst are as on ext4: a sync of any file keeps all names before it.
  void LosePower(uint64_t draw, Left bytes, Left names);
  // All that is written is on disk.
  void SyncAll();
  // Turns a bit over in a file whose path has this part. Returns its path, empty if there is none.
  std::string Rot(uint64_t draw, std::string_view files);

  void Plan(const Fault& fault) { fault_ = fault, fault_calls_ = 0; }
  void Pass(std::string_view crash_point) { Fails(Act::kPoint, crash_point); }
  uint64_t fault_calls() const { return fault_calls_; }  // that it could have met
  // The power ends at this change, from 1; 0: never.
  void EndPowerAt(uint64_t change) { power_ends_at_ = changes_ + change; }
  // No call fails any more, and the power does not end.
  void Mend() { fault_.error = 0, power_ends_at_ = 0; }
  // Counts a change that is about to be made. Returns false if the power has ended before.
  bool CountChange();
  uint64_t changes() const { return changes_; }

  // A hash of all names and bytes.
  uint64_t Digest() const;
  // The contents of a file, if there is one of this path.
  std::optional<std::string> Contents(std::string_view path) const;

  int64_t now = 0;           // of times of files, in nanoseconds
  int64_t sync_time_ns = 0;  // that a sync takes at most

 private:
  using Ino = uint32_t;
  using Memory = std::pmr::memory_resource*;
  static constexpr size_t kPage = 4096, kSector = 512;
  static constexpr Ino kRoot = 1, kDescriptors = 2;  // "/" and /proc/self/fd

  // Pages that are not there are zeros, and so are those that are empty, which only take space.
  struct Bytes {
    explicit Bytes(Memory memory) : pages(memory) {}
    void Put(uint64_t at, std::string_view bytes);
    void Cut(uint64_t bytes);
    void Get(uint64_t at, char* to, size_t count) const;
    std::pmr::map<uint64_t, std::pmr::string> pages;
    uint64_t size = 0;
  };
  struct Change {
    bool cut;
    uint64_t at;  // the new size, for a cut
    std::pmr::string bytes;
  };
  using Names = std::pmr::map<std::pmr::string, Ino, std::less<>>;
  struct Inode {
    explicit Inode(Memory memory)
        : live(memory),
          safe(memory),
          unsynced(memory),
          names(memory),
          safe_names(memory),
          target(memory) {}
    mode_t mode = 0;
    uint32_t links = 0;  // names of a file
    Ino parent = 0;      // of a folder
    int64_t changed = 0;
    Bytes live, safe;
    std::pmr::vector<Change> unsynced;
    Names names, safe_names;
    std::pmr::string target;
  };
  struct OpenFile {
    Ino inode;
    int flags;
    uint64_t offset;
    int lock;
    std::pmr::string path;
  };
  // A name now stands for this inode; 0: for none. A rename is two of the same change.
  struct NameChange {
    uint64_t change;
    Ino folder;
    std::pmr::string name;
    Ino to;
  };
  // The last name of a path: the inode is 0 if there is none.
  struct Place {
    Ino folder = 0;
    std::string name;
    Ino inode = 0;
  };

  Disk(char* begin, char* end, uint64_t space_bytes);
  int64_t Find(int at, std::string_view path, bool follow, Place* out) const;
  bool IsFolder(Ino inode) const { return S_ISDIR(inodes_.at(inode).mode); }
  OpenFile* Opened(int fd);
  const OpenFile* Opened(int fd) const { return const_cast<Disk*>(this)->Opened(fd); }
  Ino Add(mode_t mode);
  void SetName(uint64_t change, const Place& place, Ino to);
  void MakeSafe(const NameChange& change);
  void SyncNames(Ino folder);
  void Release(Ino inode);
  void Collect();
  int64_t Note(Inode& file, bool cut, uint64_t at, std::string_view bytes);
  void Fill(Ino inode, struct stat* out) const;
  int Fails(Act act, std::string_view path);
  std::string PathOf(Ino inode) const;
  static void KeepSome(Inode& file, uint64_t draw, Left left);

  Mapping mapping_;
  std::pmr::unsynchronized_pool_resource memory_;
  const uint64_t space_pages_;
  uint64_t used_pages_ = 0;
  std::pmr::map<Ino, Inode> inodes_;
  Ino next_inode_ = 16;
  std::pmr::vector<NameChange> name_changes_;
  uint64_t next_name_change_ = 0;
  uint64_t journal_ = 0;  // the first name change after the last sync of any file
  std::pmr::map<uint32_t, OpenFile> opened_;
  std::pmr::map<int, uint32_t> descriptors_;
  uint32_t next_opened_ = 1;
  Fault fault_;
  uint64_t fault_calls_ = 0, changes_ = 0, power_ends_at_ = 0;
};

}  // namespace tacit::sim
