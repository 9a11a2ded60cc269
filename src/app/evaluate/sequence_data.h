#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/histories.h"
#include "model/transitions/catalogue.h"

namespace tacit::app {

// What users did, as a file tells it. Users are numbered in the order in which they first come;
// items by SHA-256 of what the file calls them, so that an item's number, by which ties are broken,
// owes nothing to any history. Nor does a user's id, the first 8 bytes of SHA-256 of what the file
// calls him: his number would be another where somebody before him is taken out. An experiment
// takes all items of the file for the public catalogue.
struct SequenceData {
  std::string path;  // of the file
  model::Histories histories;
  std::vector<std::string> items;  // what the file calls them
  std::string identity;            // SHA-256 of what was read, in hex
};

// Reads lines `user item`, in the order of time for each user, separated by blanks or tabs, plain
// or gzip or zstd; empty lines are passed over. Fails for a file that is damaged or empty, and for
// a line of another form, which is named.
Result<SequenceData> ReadSequences(const std::string& path);

// What users did, one after the other in time: event i is the next item of user user[i].
struct SequenceStream {
  SequenceData data;
  std::vector<uint32_t> user;  // per event
};

// Reads lines `user item rating timestamp`, separated by blanks, tabs or commas; a first line that
// does not end in a number is a header. Fails as ReadSequences does, and for a line that is earlier
// than the one before it.
Result<SequenceStream> ReadSequenceStream(const std::string& path);

// What the publisher says of these items: lines `id::title::genre|genre`, and, where the ids are
// others than the data's, a file of lines `item id`. Refused, by file and line, where a line is of
// another form; an item of the data that is not described is refused by name.
// What is rare or common is counted over all that is described, whether the data has it or not.
Result<model::transitions::Catalogue> ReadCatalogue(const SequenceData& data,
                                                    const std::string& items_path,
                                                    const std::string& ids_path);

// A learner's histories, and what it is asked: for each user of `asked` what came after `before`.
struct SequenceSplit {
  model::Histories train;
  std::vector<uint32_t> user;    // whose history in `train` is what came before
  std::vector<uint32_t> answer;  // per user asked about
};

// The last item of every user is asked for, all before it are learnt from. As SASRec has it, users
// of fewer than three items are learnt from in full and not asked about. With `validate`, the item
// before the last is asked for and the last is as if it were not there.
SequenceSplit LeaveLastOut(const model::Histories& histories, bool validate);

}  // namespace tacit::app
