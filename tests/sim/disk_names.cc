// The names of a disk: paths, folders and links.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>

#include "sim/disk.h"

namespace tacit::sim {
namespace {

constexpr std::string_view kDescriptorsPath = "/proc/self/fd";
constexpr size_t kNameMost = 255;
constexpr int kLinksMost = 40;

}  // namespace

int64_t Disk::Find(int at, std::string_view path, bool follow, Place* out) const {
  if (path.empty()) return -ENOENT;
  if (path == kDescriptorsPath) return *out = {kDescriptors, ".", kDescriptors}, 0;
  if (path.starts_with(kDescriptorsPath)) {
    int fd = 0;
    std::from_chars(path.data() + kDescriptorsPath.size() + 1, path.data() + path.size(), fd);
    const OpenFile* const open = Opened(fd);
    if (open == nullptr) return -ENOENT;
    return *out = {kDescriptors, std::to_string(fd), open->inode}, 0;
  }
  Ino folder = kRoot;
  if (path[0] != '/' && at != AT_FDCWD) {
    const OpenFile* const open = Opened(at);
    if (open == nullptr) return -EBADF;
    folder = open->inode;
  }
  *out = {folder, ".", folder};
  std::string rest(path);
  for (int links = 0; !rest.empty();) {
    if (rest[0] == '/') {
      rest.erase(0, std::min(rest.find_first_not_of('/'), rest.size()));
      if (rest.empty() && out->inode != 0 && !IsFolder(out->inode)) return -ENOTDIR;
      continue;
    }
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string name = rest.substr(0, end);
    rest.erase(0, end);
    if (out->inode == 0) return -ENOENT;
    if (!IsFolder(out->inode)) return -ENOTDIR;
    if (name.size() > kNameMost) return -ENAMETOOLONG;
    folder = out->inode;
    if (name == "." || name == "..") {
      const Ino there = name == "." ? folder : inodes_.at(folder).parent;
      *out = {there, ".", there};
      continue;
    }
    const Names& names = inodes_.at(folder).names;
    const auto found = names.find(std::string_view(name));
    *out = {folder, name, found == names.end() ? 0 : found->second};
    if (out->inode == 0 || !S_ISLNK(inodes_.at(out->inode).mode) || (rest.empty() && !follow))
      continue;
    if (++links > kLinksMost) return -ELOOP;
    const std::string target(inodes_.at(out->inode).target);
    rest = target + rest;
    *out = {folder, ".", target[0] == '/' ? kRoot : folder};
  }
  return 0;
}

Disk::Ino Disk::Add(mode_t mode) {
  Inode& inode = inodes_.try_emplace(next_inode_, &memory_).first->second;
  inode.mode = mode;
  inode.changed = now;
  return next_inode_++;
}

void Disk::SetName(uint64_t change, const Place& place, Ino to) {
  Inode& folder = inodes_.at(place.folder);
  std::pmr::string name(place.name, &memory_);
  const auto before = folder.names.find(name);
  if (before != folder.names.end()) --inodes_.at(before->second).links;
  if (to == 0)
    folder.names.erase(before);
  else
    folder.names[name] = to, ++inodes_.at(to).links;
  if (to != 0 && IsFolder(to)) inodes_.at(to).parent = place.folder;
  folder.changed = now;
  name_changes_.push_back({change, place.folder, std::move(name), to});
}

void Disk::MakeSafe(const NameChange& change) {
  Names& names = inodes_.at(change.folder).safe_names;
  if (change.to == 0)
    names.erase(change.name);
  else
    names[change.name] = change.to;
}

// A rename is safe as a whole. Older changes of the other folder's name are then out of date.
void Disk::SyncNames(Ino folder) {
  std::set<uint64_t> synced;
  for (const NameChange& change : name_changes_)
    if (change.folder == folder) synced.insert(change.change);
  std::map<std::pair<Ino, std::string>, uint64_t> newest;
  for (const NameChange& change : name_changes_) {
    if (!synced.contains(change.change)) continue;
    MakeSafe(change);
    newest[{change.folder, std::string(change.name)}] = change.change;
  }
  std::erase_if(name_changes_, [&](const NameChange& change) {
    const auto found = newest.find({change.folder, std::string(change.name)});
    return found != newest.end() && change.change <= found->second;
  });
  Collect();
}

// Gives up the space of a file that has neither a name nor a descriptor.
void Disk::Release(Ino number) {
  Inode& inode = inodes_.at(number);
  if (inode.links > 0 || number == kRoot || number == kDescriptors) return;
  for (const auto& [opened, file] : opened_)
    if (file.inode == number) return;
  used_pages_ -= inode.live.pages.size();
  inode.live.pages.clear();
}

// Forgets inodes to which nothing leads, now or after a loss of power.
void Disk::Collect() {
  std::set<Ino> reached = {kRoot, kDescriptors};
  std::vector<Ino> open(reached.begin(), reached.end());
  const auto reach = [&](Ino inode) {
    if (inode != 0 && reached.insert(inode).second) open.push_back(inode);
  };
  for (const auto& [number, file] : opened_) reach(file.inode);
  for (const NameChange& change : name_changes_) reach(change.folder), reach(change.to);
  while (!open.empty()) {
    const Inode& inode = inodes_.at(open.back());
    open.pop_back();
    for (const auto& [name, to] : inode.names) reach(to);
    for (const auto& [name, to] : inode.safe_names) reach(to);
  }
  std::erase_if(inodes_, [&](const auto& inode) { return !reached.contains(inode.first); });
}

void Disk::Fill(Ino number, struct stat* out) const {
  const Inode& inode = inodes_.at(number);
  *out = {};
  out->st_dev = 7;
  out->st_ino = number;
  out->st_mode = inode.mode;
  out->st_nlink = IsFolder(number) ? 2 : inode.links;
  out->st_uid = geteuid();
  out->st_gid = getgid();
  out->st_size = static_cast<off_t>(S_ISLNK(inode.mode) ? inode.target.size() : inode.live.size);
  out->st_blksize = kPage;
  out->st_blocks = static_cast<blkcnt_t>(inode.live.pages.size() * (kPage / 512));
  out->st_mtim = {.tv_sec = inode.changed / 1'000'000'000,
                  .tv_nsec = inode.changed % 1'000'000'000};
  out->st_ctim = out->st_atim = out->st_mtim;
}

int64_t Disk::Stat(int at, std::string_view path, bool follow, struct stat* out) const {
  Place place;
  const int64_t found = Find(at, path, follow, &place);
  if (found < 0) return found;
  if (place.inode == 0) return -ENOENT;
  return Fill(place.inode, out), 0;
}

int64_t Disk::StatOpen(int fd, struct stat* out) const {
  const OpenFile* const open = Opened(fd);
  if (open == nullptr) return -EBADF;
  return Fill(open->inode, out), 0;
}

int64_t Disk::SetMode(int fd, mode_t mode) {
  const OpenFile* const open = Opened(fd);
  if (open == nullptr) return -EBADF;
  mode_t& of = inodes_.at(open->inode).mode;
  of = (of & ~mode_t{07777}) | mode;
  return 0;
}

int64_t Disk::MakeFolder(int at, std::string_view path, mode_t mode) {
  if (const int error = Fails(Act::kName, path); error > 0) return -error;
  Place place;
  // As Linux: a slash at the end asks for nothing here, and a link is not followed.
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const int64_t found = Find(at, path, false, &place);
  if (found < 0) return found;
  if (place.inode != 0) return -EEXIST;
  SetName(next_name_change_++, place, Add(S_IFDIR | (mode & 0777)));
  return 0;
}

int64_t Disk::Remove(int at, std::string_view path, bool folder) {
  if (const int error = Fails(Act::kName, path); error > 0) return -error;
  Place place;
  const int64_t found = Find(at, path, false, &place);
  if (found < 0) return found;
  if (place.inode == 0) return -ENOENT;
  if (place.name == ".") return folder ? -EBUSY : -EISDIR;
  if (folder != IsFolder(place.inode)) return folder ? -ENOTDIR : -EISDIR;
  if (folder && !inodes_.at(place.inode).names.empty()) return -ENOTEMPTY;
  SetName(next_name_change_++, place, 0);
  Release(place.inode);
  return 0;
}

int64_t Disk::Rename(int from_at, std::string_view from, int to_at, std::string_view to,
                     unsigned flags) {
  if (const int error = std::max(Fails(Act::kName, from), Fails(Act::kName, to)); error > 0)
    return -error;
  Place old, fresh;
  const int64_t found_old = Find(from_at, from, false, &old);
  if (found_old < 0) return found_old;
  const int64_t found_fresh = Find(to_at, to, false, &fresh);
  if (found_fresh < 0) return found_fresh;
  if (old.inode == 0) return -ENOENT;
  const bool exchange = flags == RENAME_EXCHANGE;
  if (flags == RENAME_NOREPLACE && fresh.inode != 0) return -EEXIST;
  if (exchange && fresh.inode == 0) return -ENOENT;
  if (old.name == "." || fresh.name == ".") return -EBUSY;
  const auto is_below = [&](Ino folder, Ino above) {
    while (folder != above && folder != kRoot) folder = inodes_.at(folder).parent;
    return folder == above;
  };
  if (IsFolder(old.inode) && is_below(fresh.folder, old.inode)) return -EINVAL;
  if (exchange && IsFolder(fresh.inode) && is_below(old.folder, fresh.inode)) return -EINVAL;
  if (!exchange && is_below(old.folder, fresh.inode) && fresh.inode != 0) return -ENOTEMPTY;
  if (old.inode == fresh.inode) return 0;
  if (!exchange && fresh.inode != 0) {
    if (IsFolder(fresh.inode) && !IsFolder(old.inode)) return -EISDIR;
    if (!IsFolder(fresh.inode) && IsFolder(old.inode)) return -ENOTDIR;
    if (!inodes_.at(fresh.inode).names.empty()) return -ENOTEMPTY;
  }
  const uint64_t change = next_name_change_++;
  SetName(change, fresh, old.inode);
  // While it has two names, its parent is the new one.
  SetName(change, old, exchange ? fresh.inode : 0);
  if (!exchange && fresh.inode != 0) Release(fresh.inode);
  return 0;
}

int64_t Disk::Link(int from_at, std::string_view from, int to_at, std::string_view to) {
  if (const int error = Fails(Act::kName, to); error > 0) return -error;
  Place old, fresh;
  const int64_t found_old = Find(from_at, from, false, &old);
  if (found_old < 0) return found_old;
  if (old.inode == 0) return -ENOENT;
  const int64_t found_fresh = Find(to_at, to, false, &fresh);
  if (found_fresh < 0) return found_fresh;
  if (fresh.inode != 0) return -EEXIST;
  if (IsFolder(old.inode)) return -EPERM;
  SetName(next_name_change_++, fresh, old.inode);
  return 0;
}

int64_t Disk::LinkByName(std::string_view target, int at, std::string_view path) {
  if (const int error = Fails(Act::kName, path); error > 0) return -error;
  Place place;
  const int64_t found = Find(at, path, false, &place);
  if (found < 0) return found;
  if (place.inode != 0) return -EEXIST;
  const Ino link = Add(S_IFLNK | 0777);
  inodes_.at(link).target = target;
  SetName(next_name_change_++, place, link);
  return 0;
}

int64_t Disk::ReadLink(int at, std::string_view path, std::string* out) const {
  Place place;
  const int64_t found = Find(at, path, false, &place);
  if (found < 0) return found;
  if (place.inode == 0) return -ENOENT;
  if (!S_ISLNK(inodes_.at(place.inode).mode)) return -EINVAL;
  *out = inodes_.at(place.inode).target;
  return 0;
}

// One of the names of an inode that has any.
std::string Disk::PathOf(Ino inode) const {
  if (inode == kRoot) return "";
  for (const auto& [folder, there] : inodes_)
    for (const auto& [name, to] : there.names)
      if (to == inode) return PathOf(folder) + "/" + std::string(name);
  return "";
}

int64_t Disk::Canonical(std::string_view path, std::string* out) const {
  Place place;
  const int64_t found = Find(AT_FDCWD, path, true, &place);
  if (found < 0) return found;
  if (place.inode == 0) return -ENOENT;
  *out = PathOf(place.name == "." ? place.inode : place.folder);
  if (place.name != ".") *out += "/" + place.name;
  if (out->empty()) *out = "/";
  return 0;
}

int64_t Disk::List(int fd, std::vector<Entry>* out) const {
  const OpenFile* const open = Opened(fd);
  if (open == nullptr) return -EBADF;
  if (!IsFolder(open->inode)) return -ENOTDIR;
  const auto add = [&](std::string name, Ino inode) {
    out->push_back({std::move(name), inode, inodes_.at(inode).mode});
  };
  if (open->inode == kDescriptors)
    for (const auto& [number, opened] : descriptors_)
      out->push_back({std::to_string(number), opened_.at(opened).inode, S_IFLNK});
  for (const auto& [name, inode] : inodes_.at(open->inode).names) add(std::string(name), inode);
  return 0;
}

}  // namespace tacit::sim
