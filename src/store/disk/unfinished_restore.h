#pragma once

#include <string>
#include <utility>

#include "base/files/unique_fd.h"
#include "base/result.h"

// The lock that a restore has, and what a restore that was killed leaves.
namespace tacit::store {

// The right to make the store at a path anew, which one process has at a time. The destructor gives
// it up. A restore takes it before it reads the copy that tells what must be charged.
class RestoreLock {
 public:
  // Makes a file beside the store, PATH.restoring.lock, until the lock is given up; a crash leaves
  // the file, but no lock. kUnavailable: another process restores this store.
  static Result<RestoreLock> Take(const std::string& path);
  RestoreLock(RestoreLock&&) noexcept = default;
  RestoreLock& operator=(RestoreLock&&) = delete;
  ~RestoreLock();

 private:
  RestoreLock(std::string file, UniqueFd lock) : file_(std::move(file)), lock_(std::move(lock)) {}
  std::string file_;
  UniqueFd lock_;
};

// The folder in which a restore works until it has the store's name: PATH.restoring.
std::string WorkFolder(std::string path);
// PATH.restoring.lock.
std::string RestoreLockFile(const std::string& path);

// Says whether another process has that right. kMayBe: the file is another user's, who lets nobody
// ask; a restore that was killed leaves it, too. To ask may refuse the right to one that takes it
// in the same moment, so ask where nothing else is known to hold the store back.
enum class Restoring { kNo, kYes, kMayBe };
Result<Restoring> IsBeingRestored(const std::string& path);

// Removes what a restore that was killed has left: it holds histories and keys. A folder of this
// name without the lock's file is somebody else's, and stays. kUnavailable: a restore runs.
Status RemoveUnfinishedRestore(const std::string& path);

}  // namespace tacit::store
