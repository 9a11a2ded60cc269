// A simulated disk against a real folder, which gets the same calls, and after a loss of power
// against naive models.
#include "sim/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "sim/process.h"

namespace tacit::sim {
namespace {

namespace fs = std::filesystem;

// Makes random calls below a root, and notes what each answered.
class Caller {
 public:
  Caller(uint64_t seed, std::string root) : random_(seed), root_(std::move(root)) {}

  std::vector<std::string> Call(int calls) {
    for (int call = 0; call < calls; ++call) {
      if (Draw(3) == 0)
        CallForName();
      else
        CallForFile();
    }
    for (const int fd : fds_) close(fd);
    List(root_);
    return std::move(answers_);
  }

 private:
  uint64_t Draw(uint64_t most) { return random_() % most; }

  std::string Path() {
    static const std::array<const char*, 10> kFolders = {"",  "",      "d",   "e", "d/f",
                                                         "l", "d/../", "d/.", "a", "gone"};
    static const std::array<const char*, 7> kNames = {"a", "b", "c", "d", "e", "f", "l"};
    const std::string folder = kFolders[Draw(kFolders.size())];
    return (folder.empty() ? "" : folder + "/") + kNames[Draw(kNames.size())];
  }
  std::string Whole() { return root_ + "/" + Path(); }
  int Fd() { return fds_.empty() ? -1 : fds_[Draw(fds_.size())]; }
  std::string Bytes() { return std::string(1 + Draw(6000), static_cast<char>('a' + Draw(26))); }

  template <class... Words>
  void Note(int64_t answer, const Words&... words) {
    std::ostringstream text;
    const int error = errno;
    ((text << words << ' '), ...);
    if (answer < 0)
      text << strerror(error);
    else
      text << answer;
    answers_.push_back(text.str());
  }
  void NoteStat(const char* call, const std::string& path, int answer, const struct stat& got) {
    const bool folder = answer == 0 && S_ISDIR(got.st_mode);
    const bool known = answer == 0 && !folder;
    Note(answer, call, path, answer == 0 ? got.st_mode & S_IFMT : 0, known ? got.st_size : 0,
         known ? got.st_nlink : 0);
  }
  void Opened(const char* call, const std::string& path, int flags, int fd) {
    Note(fd < 0 ? -1 : 0, call, path, flags);
    if (fd < 0) return;
    fds_.push_back(fd);
    if (fds_.size() <= 5) return;
    Note(close(fds_.front()), "close");
    fds_.erase(fds_.begin());
  }

  void CallForFile() {
    const int fd = Fd();
    const auto at = static_cast<off_t>(Draw(20'000));
    std::string bytes = Bytes();
    struct stat got {};
    switch (Draw(13)) {
      case 0:
      case 1: {
        static const std::array<int, 3> kModes = {O_RDONLY, O_WRONLY, O_RDWR};
        static const std::array<int, 7> kFlags = {0,       O_CREAT,    O_CREAT | O_EXCL, O_APPEND,
                                                  O_TRUNC, O_NOFOLLOW, O_DIRECTORY};
        const int flags = kModes[Draw(3)] | kFlags[Draw(7)] | (Draw(3) == 0 ? O_CREAT : 0);
        // Linux answers this pair in a way that differs between its versions.
        if ((flags & O_CREAT) != 0 && (flags & O_DIRECTORY) != 0) return;
        const std::string path = Whole();
        return Opened("open", path, flags, open(path.c_str(), flags, 0640));
      }
      case 2:
        return Note(write(fd, bytes.data(), bytes.size()), "write", bytes.size());
      case 3:
        return Note(pwrite(fd, bytes.data(), bytes.size(), at), "pwrite", bytes.size(), at);
      case 4: {
        const ssize_t size = read(fd, bytes.data(), bytes.size());
        return Note(size, "read", bytes.substr(0, static_cast<size_t>(std::max<ssize_t>(size, 0))));
      }
      case 5: {
        const ssize_t size = pread(fd, bytes.data(), bytes.size(), at);
        return Note(size, "pread",
                    bytes.substr(0, static_cast<size_t>(std::max<ssize_t>(size, 0))));
      }
      case 6:
        // Folders differ from file system to file system.
        if (fstat(fd, &got) == 0 && S_ISDIR(got.st_mode)) return;
        return Note(lseek(fd, Draw(2) == 0 ? at : -at, static_cast<int>(Draw(3))), "lseek", at);
      case 7:
        return Note(ftruncate(fd, at), "ftruncate", at);
      case 8:
        return Note(fallocate(fd, Draw(2) == 0 ? 0 : FALLOC_FL_KEEP_SIZE, at, 5000), "fallocate",
                    at);
      case 9:
        return Note(Draw(2) == 0 ? fsync(fd) : fdatasync(fd), "sync");
      case 10: {
        static const std::array<int, 3> kLocks = {LOCK_SH, LOCK_EX, LOCK_UN};
        return Note(flock(fd, kLocks[Draw(3)] | LOCK_NB), "flock");
      }
      case 11: {
        const int answer = fstat(fd, &got);
        return NoteStat("fstat", "", answer, got);
      }
      default:
        if (fd >= 0 && Draw(3) == 0) return Opened("dup", "", 0, dup(fd));
        return Note((fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND)), "flags");
    }
  }

  void CallForName() {
    const std::string path = Whole(), other = Whole();
    struct stat got {};
    std::array<char, PATH_MAX> text{};
    switch (Draw(13)) {
      case 0:
        return Note(mkdir(path.c_str(), 0750), "mkdir", path);
      case 1:
        return Note(unlink(path.c_str()), "unlink", path);
      case 2:
        return Note(rmdir(path.c_str()), "rmdir", path);
      case 3:
        return Note(rename(path.c_str(), other.c_str()), "rename", path, other);
      case 4:
      case 5: {
        const unsigned flags = Draw(2) == 0 ? RENAME_NOREPLACE : RENAME_EXCHANGE;
        return Note(renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, other.c_str(), flags), "renameat2",
                    path, other, flags);
      }
      case 6:
        return Note(link(path.c_str(), other.c_str()), "link", path, other);
      case 7: {
        const std::string target = Draw(2) == 0 ? Path() : other;
        return Note(symlink(target.c_str(), path.c_str()), "symlink", target, path);
      }
      case 8: {
        const ssize_t answer = readlink(path.c_str(), text.data(), text.size());
        return Note(answer, "readlink", path, text.data());
      }
      case 9: {
        const int answer = Draw(2) == 0 ? stat(path.c_str(), &got) : lstat(path.c_str(), &got);
        return NoteStat("stat", path, answer, got);
      }
      case 10: {
        const bool found = realpath(path.c_str(), text.data()) != nullptr;
        return Note(found ? 0 : -1, "realpath", path, found ? text.data() : "");
      }
      case 11: {
        const std::string name = Path();
        const int answer = unlinkat(Fd(), name.c_str(), Draw(2) == 0 ? AT_REMOVEDIR : 0);
        return Note(answer, "unlinkat", name);
      }
      default:
        return Stream(path);
    }
  }

  // The way of libstdc++ and of the C library's own streams.
  void Stream(const std::string& path) {
    if (Draw(2) == 0) {
      std::ofstream out(path, Draw(2) == 0 ? std::ios::app : std::ios::trunc);
      out << "a line\n" << Bytes();
      Note(out.flush() ? 0 : 1, "ofstream", path);
    } else if (FILE* const in = fopen(path.c_str(), "r"); in != nullptr) {
      std::array<char, 100> line{};
      const bool read = fgets(line.data(), line.size(), in) != nullptr;
      Note(fseek(in, 3, SEEK_SET), "fopen", path, read ? line.data() : "", fgetc(in));
      fclose(in);
    } else {
      Note(-1, "fopen", path);
    }
  }

  void List(const std::string& folder) {
    std::set<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      names.insert(it->path());
    Note(error.value(), "list", folder);
    for (const std::string& name : names) {
      struct stat got {};
      NoteStat("listed", name, lstat(name.c_str(), &got), got);
      if (S_ISDIR(got.st_mode)) List(name);
      if (!S_ISREG(got.st_mode)) continue;
      std::ifstream in(name);
      Note(0, "contents", std::string(std::istreambuf_iterator<char>(in), {}));
    }
  }

  std::mt19937_64 random_;
  const std::string root_;
  std::vector<int> fds_;
  std::vector<std::string> answers_;
};

// tmpfs, where there is one: it knows all of the calls.
std::string RealFolder() {
  std::string name = access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : fs::temp_directory_path() / "";
  name += "tacit-disk-XXXXXX";
  return mkdtemp(name.data()) == nullptr ? "" : name;
}

TEST(Disk, AnswersAsARealFolderDoes) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const std::string root = RealFolder();
    ASSERT_NE(root, "");
    const auto real = Caller(seed, root).Call(300);
    fs::remove_all(root);
    const Disk::Owned disk = Disk::Make();
    std::vector<std::string> simulated;
    const Outcome outcome = Simulate({.seed = seed, .disk = disk.get()}, [&] {
      fs::create_directories(root);
      simulated = Caller(seed, root).Call(300);
      fs::remove_all(root);
      EXPECT_FALSE(fs::exists(root));
    });
    ASSERT_EQ(outcome.finding, "");
    for (size_t i = 0; i < real.size(); ++i)
      ASSERT_EQ(simulated[i], real[i]) << "seed " << seed << ", call " << i;
    EXPECT_EQ(disk->space().free, disk->space().blocks) << "seed " << seed;
  }
}

// A disk with one folder, and what a naive model knows of it.
struct World {
  Disk::Owned disk = Disk::Make();
  std::mt19937_64 random;
  static constexpr std::array<const char*, 4> kNames = {"/d/a", "/d/b", "/d/c", "/d/e"};

  explicit World(uint64_t seed) : random(seed) {
    EXPECT_EQ(disk->MakeFolder(AT_FDCWD, "/d", 0755), 0);
    Sync("/");
  }
  int Open(const char* path, int flags = O_RDWR) {
    return static_cast<int>(disk->Open(AT_FDCWD, path, flags, 0640));
  }
  void Sync(const char* path) {
    const int fd = Open(path, O_RDONLY);
    EXPECT_EQ(disk->Sync(fd), 0);
    disk->Close(fd);
  }
  const char* Name() { return kNames[random() % kNames.size()]; }
  // The inode of each name.
  std::map<std::string, ino_t> Names() const {
    std::map<std::string, ino_t> names;
    struct stat got {};
    for (const char* name : kNames)
      if (disk->Stat(AT_FDCWD, name, false, &got) == 0) names[name] = got.st_ino;
    return names;
  }
};

TEST(Disk, APowerLossLeavesSomeChangesOfNames) {
  int lost = 0, torn = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    World world(seed);
    const auto left = static_cast<Left>(seed % kLefts);
    std::vector<std::map<std::string, ino_t>> history = {{}};
    for (int call = 0; call < 25; ++call) {
      const char *name = world.Name(), *other = world.Name();
      switch (world.random() % 5) {
        case 0:
          world.disk->Close(world.Open(name, O_RDWR | O_CREAT));
          break;
        case 1:
          world.disk->Remove(AT_FDCWD, name, false);
          break;
        case 2:
          world.disk->Rename(AT_FDCWD, name, AT_FDCWD, other, 0);
          break;
        case 3:
          world.disk->Link(AT_FDCWD, name, AT_FDCWD, other);
          break;
        default:
          if (world.random() % 4 != 0) break;
          world.Sync("/d");
          history.clear();
      }
      history.push_back(world.Names());
    }
    world.disk->EndProcess();
    EXPECT_EQ(world.Names(), history.back()) << "an ended process changes nothing";
    world.disk->LosePower(seed, Left::kAny, left);
    const auto names = world.Names();
    lost += names != history.back();
    torn += std::ranges::find(history, names) == history.end();
    if (left == Left::kNothing) {
      ASSERT_EQ(names, history.front()) << "seed " << seed;
    }
    if (left == Left::kFirst) {
      ASSERT_THAT(history, testing::Contains(names)) << "seed " << seed;
    }
    for (const char* name : World::kNames)
      ASSERT_TRUE(
          std::ranges::any_of(history,
                              [&](const auto& then) {
                                const bool is = names.contains(name), was = then.contains(name);
                                return is == was && (!is || names.at(name) == then.at(name));
                              }))
          << "seed " << seed << ": " << name;
  }
  EXPECT_GT(lost, 200);
  EXPECT_GT(torn, 50);
}

TEST(Disk, APowerLossMayLeaveTheLastChangesAndNotTheFirst) {
  std::map<size_t, int> left;
  for (uint64_t draw = 0; draw < 100; ++draw) {
    World world(0);
    const int fd = world.Open("/d/a", O_RDWR | O_CREAT);
    world.Sync("/d");
    for (uint64_t sector = 0; sector < 4; ++sector)
      world.disk->Write(fd, std::string(512, 'x'), sector * 512);
    for (const char* name : World::kNames) world.disk->Link(AT_FDCWD, "/d/a", AT_FDCWD, name);
    world.disk->LosePower(draw, Left::kLast, Left::kLast);
    std::string names;
    for (const char* name : World::kNames)
      if (world.disk->Contents(name)) names += name;
    EXPECT_TRUE(std::string("/d/a/d/b/d/c/d/e").ends_with(names.substr(4))) << names;
    const std::string bytes = *world.disk->Contents("/d/a");
    const size_t zeros = std::min(bytes.size(), bytes.find('x'));
    EXPECT_EQ(bytes,
              bytes.empty() ? "" : std::string(zeros, '\0') + std::string(2048 - zeros, 'x'));
    ++left[names.size() / 4], ++left[10 + (bytes.size() - zeros) / 512];
  }
  for (const size_t count : {1, 2, 3, 4, 10, 11, 12, 13, 14}) EXPECT_GT(left[count], 0) << count;
}

TEST(Disk, ARenameIsSafeAsAWholeOnceOneOfItsFoldersIsSynced) {
  for (uint64_t draw = 0; draw < 40; ++draw)
    for (const char* synced : {"/d", "/"}) {
      World world(0);
      world.disk->Close(world.Open("/a", O_RDWR | O_CREAT));
      world.disk->Rename(AT_FDCWD, "/a", AT_FDCWD, "/d/a", 0);
      world.Sync(synced);
      world.disk->LosePower(draw, Left::kNothing, Left::kAny);
      EXPECT_TRUE(world.disk->Contents("/d/a"));
      EXPECT_FALSE(world.disk->Contents("/a"));
    }
}

TEST(Disk, WithAJournalASyncOfAnyFileKeepsTheNamesBeforeIt) {
  int lost = 0;
  for (uint64_t draw = 0; draw < 40; ++draw) {
    World world(0);
    world.disk->Close(world.Open("/d/a", O_RDWR | O_CREAT));
    world.disk->Sync(world.Open("/d/b", O_RDWR | O_CREAT));
    world.disk->Close(world.Open("/d/c", O_RDWR | O_CREAT));
    world.disk->LosePower(draw, Left::kAny, draw % 2 == 0 ? Left::kFirst : Left::kAny);
    if (draw % 2 == 0) {
      EXPECT_TRUE(world.disk->Contents("/d/a") && world.disk->Contents("/d/b"));
    }
    lost += !world.disk->Contents("/d/a");
  }
  EXPECT_GT(lost, 0);
}

// The naive file: its states since the last sync, a sector further in each.
class NaiveFile {
 public:
  void Write(uint64_t at, const std::string& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const size_t end = std::min<size_t>(bytes.size(), (at + done) / 512 * 512 + 512 - at);
      std::string next = states.back();
      next.resize(std::max<size_t>(next.size(), at + end), '\0');
      next.replace(at + done, end - done, bytes, done, end - done);
      states.push_back(next);
      done = end;
    }
  }
  void Cut(uint64_t bytes) {
    states.push_back(states.back());
    states.back().resize(bytes, '\0');
  }
  void Sync() { states = {states.back()}; }

  std::vector<std::string> states = {""};
};

TEST(Disk, APowerLossLeavesSomeSectorsOfWhatWasNotSynced) {
  int lost = 0, torn = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    World world(seed);
    NaiveFile naive;
    const int fd = world.Open("/d/a", O_RDWR | O_CREAT);
    world.Sync("/d");
    for (int call = 0; call < 12; ++call) {
      const uint64_t at = world.random() % 9000;
      const std::string bytes(1 + world.random() % 2000, static_cast<char>('a' + call));
      switch (world.random() % 6) {
        case 0:
          world.disk->Resize(fd, at);
          naive.Cut(at);
          break;
        case 1:
          world.disk->Sync(fd);
          naive.Sync();
          break;
        default:
          world.disk->Write(fd, bytes, at);
          naive.Write(at, bytes);
      }
    }
    const auto left = static_cast<Left>(seed % kLefts);
    ASSERT_EQ(world.disk->Contents("/d/a"), naive.states.back());
    world.disk->LosePower(seed, left, Left::kAny);
    const std::string is = world.disk->Contents("/d/a").value_or("gone");
    lost += is != naive.states.back();
    torn += std::ranges::find(naive.states, is) == naive.states.end();
    if (left == Left::kNothing) {
      ASSERT_EQ(is, naive.states.front()) << "seed " << seed;
    }
    if (left == Left::kFirst) {
      ASSERT_THAT(naive.states, testing::Contains(is)) << "seed " << seed;
    }
    // Any byte was there at some time, or is a zero before a sector that was left.
    for (size_t i = 0; i < is.size(); ++i)
      ASSERT_TRUE(is[i] == '\0' || std::ranges::any_of(naive.states,
                                                       [&](const std::string& then) {
                                                         return i < then.size() && then[i] == is[i];
                                                       }))
          << "seed " << seed << ", byte " << i;
  }
  EXPECT_GT(lost, 200);
  EXPECT_GT(torn, 50);
}

TEST(Disk, ASectorThatIsLeftHasAllThatWasWrittenToItBefore) {
  std::map<std::string, int> left;
  for (uint64_t draw = 0; draw < 60; ++draw) {
    World world(0);
    const int fd = world.Open("/d/a", O_RDWR | O_CREAT);
    world.Sync("/d");
    for (const char* bytes : {"a", "b", "c"}) world.disk->Write(fd, bytes);
    world.disk->LosePower(draw, draw % 2 == 0 ? Left::kAny : Left::kLast, Left::kAny);
    ++left[*world.disk->Contents("/d/a")];
  }
  EXPECT_EQ(left.size(), 4);
  for (const char* bytes : {"", "a", "ab", "abc"}) EXPECT_GT(left[bytes], 0) << bytes;
}

TEST(Disk, ASyncThatFailsLosesItsPagesWithThePower) {
  World world(0);
  const int fd = world.Open("/d/a", O_RDWR | O_CREAT);
  world.Sync("/d");
  world.disk->Plan({.act = Act::kSync, .files = "/d/a", .error = EIO});
  world.disk->Write(fd, "lost");
  EXPECT_EQ(world.disk->Sync(fd), -EIO);
  EXPECT_EQ(world.disk->Sync(fd), 0);
  world.disk->Write(fd, "kept", 5000);
  EXPECT_EQ(world.disk->Sync(fd), 0);
  EXPECT_EQ(world.disk->Contents("/d/a"), "lost" + std::string(4996, '\0') + "kept");
  world.disk->LosePower(0, Left::kAny, Left::kAny);
  EXPECT_EQ(world.disk->Contents("/d/a"), std::string(5000, '\0') + "kept");
}

TEST(Disk, FaultsMeetTheCallsThatTheyAreMeantFor) {
  World world(0);
  const int fd = world.Open("/d/a", O_RDWR | O_CREAT), other = world.Open("/d/b", O_RDWR | O_CREAT);
  world.disk->Plan({.act = Act::kWrite, .files = "/a", .call = 2, .error = EIO});
  EXPECT_EQ(world.disk->Write(other, "1"), 1);
  for (const int64_t expected : {1, -EIO, 1}) EXPECT_EQ(world.disk->Write(fd, "1"), expected);
  world.disk->Plan({.act = Act::kWrite, .call = 2, .error = ENOSPC, .lasting = true});
  for (const int64_t expected : {1, -ENOSPC, -ENOSPC})
    EXPECT_EQ(world.disk->Write(fd, "1"), expected);
  world.disk->Plan({.act = Act::kWrite, .error = Fault::kShort});
  EXPECT_EQ(world.disk->Write(fd, "12345678"), 4);
  char bytes[8];
  world.disk->Plan({.act = Act::kRead, .error = Fault::kShort});
  for (const int64_t expected : {2, 4}) EXPECT_EQ(world.disk->Read(fd, bytes, 4, 0), expected);
  EXPECT_EQ(world.disk->fault_calls(), 2);
  world.disk->Plan({.act = Act::kWrite, .files = "/a", .call = 2, .error = Fault::kPower});
  for (const bool goes_on : {true, true, false}) {
    EXPECT_EQ(world.disk->CountChange(), goes_on);
    EXPECT_EQ(world.disk->Write(fd, "12"), 2);
  }
  world.disk->Plan({.act = Act::kName, .files = "/c", .error = EIO});
  EXPECT_EQ(world.disk->Rename(AT_FDCWD, "/d/a", AT_FDCWD, "/d/c", 0), -EIO);
  EXPECT_EQ(world.disk->Rename(AT_FDCWD, "/d/a", AT_FDCWD, "/d/c", 0), 0);
}

TEST(Disk, IsFullAtItsSpaceAndGetsItBackWithTheLastNameAndDescriptor) {
  const Disk::Owned disk = Disk::Make(4 * 4096);
  const int fd = static_cast<int>(disk->Open(AT_FDCWD, "/a", O_RDWR | O_CREAT, 0640));
  EXPECT_EQ(disk->Write(fd, std::string(3 * 4096 - 1, 'x')), 3 * 4096 - 1);
  EXPECT_EQ(disk->Write(fd, std::string(3 * 4096, 'y')), 4097);
  EXPECT_EQ(disk->Write(fd, "z"), -ENOSPC);
  EXPECT_EQ(disk->space().free, 0);
  EXPECT_EQ(disk->Remove(AT_FDCWD, "/a", false), 0);
  EXPECT_EQ(disk->space().free, 0);
  EXPECT_EQ(disk->Close(fd), 0);
  EXPECT_EQ(disk->space().free, 4);
}

TEST(Disk, ALossOfPowerTakesNothingFromADiskThatIsAllSynced) {
  World world(0);
  world.disk->Write(world.Open("/d/a", O_RDWR | O_CREAT), "kept");
  world.disk->SyncAll();
  world.disk->LosePower(0, Left::kNothing, Left::kNothing);
  EXPECT_EQ(world.disk->Contents("/d/a"), "kept");
}

TEST(Disk, OneBitTurnsOverAtRest) {
  World world(0);
  world.disk->Write(world.Open("/d/a", O_RDWR | O_CREAT), std::string(1000, '\0'));
  EXPECT_EQ(world.disk->Rot(1, "/b"), "");
  EXPECT_EQ(world.disk->Rot(1, "/a"), "/d/a");
  int bits = 0;
  const std::string bytes = world.disk->Contents("/d/a").value_or("");
  for (const char byte : bytes) bits += __builtin_popcount(byte & 255);
  EXPECT_EQ(bits, 1);
}

TEST(Disk, OutlivesItsProcessesAndTheirLocks) {
  const Disk::Owned disk = Disk::Make();
  const Options options{.seed = 1, .disk = disk.get()};
  const auto take = [] {
    const int fd = open("/lock", O_RDWR | O_CREAT, 0640);
    return flock(fd, LOCK_EX | LOCK_NB) == 0 && write(fd, "x", 1) == 1 ? 7 : 8;
  };
  EXPECT_EQ(Live(options, take).exit_code, 7);
  EXPECT_EQ(Live(options, take).exit_code, 7);
  EXPECT_EQ(disk->Contents("/lock"), "x");
  disk->EndPowerAt(3);  // after the lock's making, its write and that of the next process
  EXPECT_EQ(Live(options, take).exit_code, 7);
  EXPECT_EQ(Live(options, take).exit_code, kPowerEnded);
}

}  // namespace
}  // namespace tacit::sim
