#pragma once

#include <string>
#include <string_view>
#include <system_error>

#include "base/files/unique_fd.h"
#include "base/result.h"

// Checks of a store's folder before RocksDB opens it: access, room and lock.
namespace tacit::store {

// The error for a failed system call, by its errno. kInvalidArgument: it fails until an operator
// changes the folder or the configuration, and the message says how. kIo: it may be temporary.
Error FolderError(int error, std::string_view doing, const std::string& path);

// Makes the file, if it is missing, and locks it until the descriptor is closed. kUnavailable, with
// the message `held`: another process has the lock.
Result<UniqueFd> LockFileAlone(const std::string& file, int mode, const std::string& held);

// Creates the folder and those above it, if they are missing. Their names are then on disk: a loss
// of power would otherwise take a folder with all that was synced in it.
std::error_code MakeFolders(const std::string& path);
// Creates in that way a folder that only its owner and group may enter.
std::error_code MakeOwnFolder(const std::string& path);
// Creates the folder in that way, and checks that this user can work in it.
Status PrepareFolder(const std::string& path);

// Checks whether another process has the store open. REQUIRES that this one has not. Fails without
// permission to look.
Result<bool> IsHeldByAnother(const std::string& path);

// Returns kUnavailable if another process has the store open. REQUIRES that this one has not.
Status CheckClosed(const std::string& path);

// Fails where the store belongs to another user, who could not read what this one writes there.
Status CheckOwner(const std::string& path);

// Returns kIo if the disk has less room than opening the store may take. The folder need not be
// there yet.
Status CheckRoom(const std::string& path);

// True if this errno means that this or another process holds the lock. For any other reason (no
// permission, no such folder, a file system without locks) waiting is useless.
bool MeansHeld(int error, const std::string& store);
// The lock's holder as text, such as "process 123", as far as the system shows it.
std::string HolderOf(const std::string& store);

}  // namespace tacit::store
