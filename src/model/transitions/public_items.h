#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"

namespace tacit::model::transitions {

// An item as its publisher describes it.
struct ItemText {
  int64_t id = 0;                   // in the publisher's order
  std::string title;                // "Toy Story (1995)"; the year may be missing
  std::vector<std::string> genres;  // the first is the main one
};

// The public features of one item, in the form that pairs are compared in.
struct ItemFeatures {
  int64_t id = 0;
  uint64_t genres = 0;      // a bit for each
  uint64_t words = 0;       // a bit for each rare word, by hash: two items without a common bit
                            // share none
  int16_t year = 0;         // 0: unknown
  uint8_t first_genre = 0;  // 0: none
  friend bool operator==(const ItemFeatures&, const ItemFeatures&) = default;
};

// The public items: their number and, if the publisher describes them, their features. It depends
// on no user's history. A value.
class PublicItems {
 public:
  // A catalogue without descriptions.
  explicit PublicItems(uint32_t items) : items_(items) {}
  // Item i is texts[i]. Its year is the last four digits in brackets of its title. The 63 commonest
  // genres are kept apart. A word is rare if between 2 and max(2, items / 200) titles have it;
  // words of fewer than three letters are left out.
  explicit PublicItems(std::span<const ItemText> texts);
  // Item i is described[items[i]]; all of `described` decides which words and genres are rare or
  // common, and how years are distributed.
  PublicItems(std::span<const ItemText> described, std::span<const uint32_t> items);

  uint32_t items() const { return items_; }
  bool described() const { return !features_.empty(); }
  // REQUIRES described().
  const ItemFeatures& features(uint32_t item) const { return features_[item]; }
  // The number of main genres, "none" included.
  uint32_t first_genres() const { return first_genres_; }
  // The known years of all that is described, ascending, each as often as it comes.
  std::span<const int16_t> years() const { return years_; }
  // The rare words of an item's title, ascending, by their numbers in this catalogue.
  std::span<const uint32_t> rare_words(uint32_t item) const;
  bool ShareRareWord(uint32_t a, uint32_t b) const;
  // A hash of the genre that is this bit of ItemFeatures::genres, and of a rare word: the same in
  // every catalogue, beside any other description.
  uint64_t genre_name(size_t bit) const { return genre_names_[bit]; }
  uint64_t word_name(uint32_t word) const { return word_names_[word]; }
  // SHA-256 of the whole catalogue: counts made with another catalogue mean something else.
  Digest Fingerprint() const;

 private:
  void IndexGenres(std::span<const ItemText> texts);
  void IndexWords(std::span<const ItemText> texts);

  uint32_t items_ = 0;
  uint32_t first_genres_ = 1;
  std::vector<ItemFeatures> features_;
  std::vector<int16_t> years_;
  std::vector<uint32_t> word_end_, words_;  // per item its rare words, ascending
  std::vector<uint64_t> genre_names_, word_names_;
};

// Returns 0 if there is no year.
int16_t YearOfTitle(const std::string& title);
// Returns the title's words in lower case, ascending, each once.
std::vector<std::string> WordsOfTitle(const std::string& title);

}  // namespace tacit::model::transitions
