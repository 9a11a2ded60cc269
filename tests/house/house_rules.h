#pragma once

#include <filesystem>
#include <string>
#include <vector>

// The rules of the house, read from the tree itself. Each function returns what breaks a rule, one
// sentence an offence: "src/ops/x.cc:3: ...".
namespace tacit::house {

// A source file, by its path from the top.
struct SourceFile {
  std::string path;
  std::vector<std::string> lines;
};

// Every file below root/folder whose extension is one of these, sorted by path.
std::vector<SourceFile> ReadSources(const std::filesystem::path& root, const std::string& folder,
                                    const std::vector<std::string>& extensions);

// One file; without lines if it is not there.
SourceFile ReadSource(const std::filesystem::path& root, const std::string& path);

// A room includes only the rooms it may, third-party headers only where they are at home, and no
// header that leads to one from another room.
std::vector<std::string> CheckIncludes(const std::filesystem::path& root);
// The folders inside rooms whose arrows lead back to them.
std::vector<std::string> FoldersInCircles();
// A room has a CMakeLists.txt and a README that is short enough to be read first.
std::vector<std::string> CheckRooms(const std::filesystem::path& root);
// Nothing lies at the top that is not part of the plan.
std::vector<std::string> CheckTopLevel(const std::filesystem::path& root);
// Randomness comes from `noise`, never from the standard library.
std::vector<std::string> CheckRandomness(const std::filesystem::path& root);
// A call that draws noise is counted in docs/internals/noise.md, and declares the query that the
// page names; no float gets noise.
std::vector<std::string> CheckDraws(const std::filesystem::path& root);
// The processor is asked in `base/cpu.cc` alone, where it can be set to say less.
std::vector<std::string> CheckProcessor(const std::filesystem::path& root);
// Mutexes and condition variables are those of `base/threads/mutex.h`, which tools/locks checks.
std::vector<std::string> CheckLocks(const std::filesystem::path& root);
// No file is read through std::istreambuf_iterator, which throws where the disk fails or a folder
// is in the file's place, and in rooms that a daemon's configuration names files to none through a
// stream, which waits for a pipe: `base/files/regular_file.h` reads files.
std::vector<std::string> CheckReading(const std::filesystem::path& root);
// Shipped programs are not built for the machine they were built on.
std::vector<std::string> CheckCompileFlags(const std::filesystem::path& root);
// No folder has more units than a reader takes in.
std::vector<std::string> CheckFolders(const std::filesystem::path& root);
// A source stands on a line of its own in CMake's lists, in order.
std::vector<std::string> CheckSourceLists(const std::filesystem::path& root);
// No two files of a room of `src` have a private type or constant of the same name: TACIT_UNITY
// compiles a room's files together, and which of them meet depends on how many there are.
std::vector<std::string> CheckPrivateNames(const std::filesystem::path& root);
// A room's sources are in its own namespace; those of `base` are in `tacit` itself.
std::vector<std::string> CheckNamespaces(const std::filesystem::path& root);
// The files and names that a room's README, src/README.md, docs/internals and CONTRIBUTING.md point
// at are there.
std::vector<std::string> CheckSignposts(const std::filesystem::path& root);
// docs/checks.md counts the TACIT_CHECKs of each room as they are.
std::vector<std::string> CheckChecks(const std::filesystem::path& root);
// Files stay short enough to read; headers are guarded; nothing is marked as left for later.
std::vector<std::string> CheckFiles(const std::filesystem::path& root);

// Comments of these folders whose first word leaves the subject out ("What is kept ...", "Of the
// last commit ..."), by file and line. CONTRIBUTING, Style 9.
std::vector<std::string> HeadlessComments(const std::filesystem::path& root,
                                          const std::vector<std::string>& folders);

// Words of the house's own dialect in comments, and in the pages of docs/, of the rooms and at the
// top: a sentence without them is understood at first reading. CONTRIBUTING, Style 9.
std::vector<std::string> CheckWords(const std::filesystem::path& root);

// All rules except HeadlessComments.
std::vector<std::string> CheckHouse(const std::filesystem::path& root);

}  // namespace tacit::house
