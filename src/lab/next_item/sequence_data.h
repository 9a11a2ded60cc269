#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/histories.h"
#include "model/transitions/public_items.h"

namespace tacit::lab {

// Users' histories, read from a file. Users are numbered in the order in which they first appear.
// Items are numbered by SHA-256 of their name in the file, so that an item's number, which breaks
// ties, does not depend on any history. Nor does a user's id, the first 8 bytes of SHA-256 of his
// name in the file: his number would change if an earlier user were removed. An experiment takes
// all items of the file as the public catalogue.
struct SequenceData {
  std::string path;  // the file's
  model::Histories histories;
  std::vector<std::string> items;  // their names in the file
  std::string identity;            // SHA-256 of the data, in hex
};

// Reads lines `user item`, in order of time for each user, separated by blanks or tabs; plain, gzip
// or zstd. Skips empty lines. Fails for a damaged or empty file, and for a line of another form,
// which the error names.
Result<SequenceData> ReadSequences(const std::string& path);

// Users' events in order of time: event i is the next item of user user[i].
struct SequenceStream {
  SequenceData data;
  std::vector<uint32_t> user;  // per event
};

// Reads lines `user item rating timestamp`, separated by blanks, tabs or commas; a first line that
// does not end in a number is a header. Fails as ReadSequences does, and for a line with an earlier
// time than the line before.
Result<SequenceStream> ReadSequenceStream(const std::string& path);

// Reads the published descriptions of these items: a catalogue as a daemon's, lines
// `id::title::genre|genre`, and, if its ids differ from the data's, a file of lines `item id`.
// Refuses a line of another form by file and line, and an item of the data without a description by
// name. All described items count in deciding which words are rare and which genres common, whether
// the data has them or not.
Result<model::transitions::PublicItems> ReadCatalogue(const SequenceData& data,
                                                      const std::string& items_path,
                                                      const std::string& ids_path);

// The histories to learn from, and the questions: for each user of `user`, the item that comes
// next.
struct SequenceSplit {
  model::Histories train;
  std::vector<uint32_t> user;    // the user, whose history in `train` came before
  std::vector<uint32_t> answer;  // the next item, per user asked about
};

// Asks for the last item of every user and learns from all items before it. As in SASRec, users
// with fewer than three items are learnt from in full and not asked about. With `validate`, asks
// for the item before the last and ignores the last.
SequenceSplit LeaveLastOut(const model::Histories& histories, bool validate);

}  // namespace tacit::lab
