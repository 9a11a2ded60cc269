#include "model/transitions/public_items.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/bytes.h"
#include "base/hash.h"

namespace tacit::model::transitions {
namespace {

constexpr size_t kGenresMost = 63;  // a bit each, and one for all others
constexpr size_t kWordLettersLeast = 3;
constexpr uint64_t kGenreSeed = 1, kWordSeed = 2;  // a genre and a word of one name are two things

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
// Beyond ASCII every byte belongs to a word: titles come in more than one encoding.
bool IsOfWord(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns the place of the year's opening bracket, or npos.
size_t FindYear(const std::string& title) {
  for (size_t at = title.rfind('('); at != std::string::npos;
       at = at == 0 ? std::string::npos : title.rfind('(', at - 1)) {
    if (at + 5 < title.size() && title[at + 5] == ')' &&
        std::all_of(title.begin() + static_cast<ptrdiff_t>(at) + 1,
                    title.begin() + static_cast<ptrdiff_t>(at) + 5, IsDigit))
      return at;
  }
  return std::string::npos;
}

}  // namespace

int16_t YearOfTitle(const std::string& title) {
  const size_t at = FindYear(title);
  if (at == std::string::npos) return 0;
  int year = 0;
  for (size_t i = at + 1; i < at + 5; ++i) year = year * 10 + (title[i] - '0');
  return static_cast<int16_t>(year);
}

std::vector<std::string> WordsOfTitle(const std::string& title) {
  const std::string text = title.substr(0, FindYear(title));
  std::vector<std::string> words;
  std::string word;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && IsOfWord(text[i])) {
      word += Lower(text[i]);
      continue;
    }
    if (word.size() >= kWordLettersLeast) words.push_back(word);
    word.clear();
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

PublicItems::PublicItems(std::span<const ItemText> texts)
    : items_(static_cast<uint32_t>(texts.size())), features_(texts.size()) {
  for (size_t i = 0; i < texts.size(); ++i) {
    features_[i].id = texts[i].id;
    features_[i].year = YearOfTitle(texts[i].title);
    if (features_[i].year != 0) years_.push_back(features_[i].year);
  }
  std::ranges::sort(years_);
  IndexGenres(texts);
  IndexWords(texts);
}

PublicItems::PublicItems(std::span<const ItemText> described, std::span<const uint32_t> items)
    : items_(static_cast<uint32_t>(items.size())) {
  const PublicItems all(described);
  first_genres_ = all.first_genres_;
  years_ = all.years_;
  genre_names_ = all.genre_names_;
  word_names_ = all.word_names_;
  for (const uint32_t item : items) {
    features_.push_back(all.features_[item]);
    const auto words = all.rare_words(item);
    words_.insert(words_.end(), words.begin(), words.end());
    word_end_.push_back(static_cast<uint32_t>(words_.size()));
  }
}

void PublicItems::IndexGenres(std::span<const ItemText> texts) {
  std::map<std::string, size_t> count;
  for (const ItemText& text : texts)
    for (const std::string& genre : text.genres) ++count[genre];
  std::vector<std::pair<size_t, std::string>> commonest;
  for (const auto& [genre, times] : count) commonest.emplace_back(times, genre);
  std::ranges::stable_sort(commonest, std::greater<>(), &std::pair<size_t, std::string>::first);
  std::map<std::string, uint8_t> place;
  for (size_t i = 0; i < commonest.size(); ++i) {
    place[commonest[i].second] = static_cast<uint8_t>(std::min(i, kGenresMost));
    if (i < kGenresMost) genre_names_.push_back(BucketHash(commonest[i].second, kGenreSeed));
    if (i == kGenresMost) genre_names_.push_back(BucketHash("all others", kGenreSeed));
  }
  first_genres_ = static_cast<uint32_t>(std::min(commonest.size(), kGenresMost + 1)) + 1;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].genres.empty())
      features_[i].first_genre = static_cast<uint8_t>(place[texts[i].genres[0]] + 1);
    for (const std::string& genre : texts[i].genres)
      features_[i].genres |= uint64_t{1} << place[genre];
  }
}

void PublicItems::IndexWords(std::span<const ItemText> texts) {
  std::vector<std::vector<std::string>> words(texts.size());
  std::map<std::string, uint32_t> titles;
  for (size_t i = 0; i < texts.size(); ++i) {
    words[i] = WordsOfTitle(texts[i].title);
    for (const std::string& word : words[i]) ++titles[word];
  }
  const uint32_t most = std::max(2u, items_ / 200);
  std::map<std::string, uint32_t> rare;
  for (const auto& [word, count] : titles)
    if (count >= 2 && count <= most) {
      rare.emplace(word, static_cast<uint32_t>(rare.size()));
      word_names_.push_back(BucketHash(word, kWordSeed));
    }
  for (size_t i = 0; i < texts.size(); ++i) {
    for (const std::string& word : words[i]) {
      const auto at = rare.find(word);
      if (at == rare.end()) continue;
      words_.push_back(at->second);
      features_[i].words |= uint64_t{1} << (at->second * 0x9e3779b1u >> 26);
    }
    word_end_.push_back(static_cast<uint32_t>(words_.size()));
  }
}

std::span<const uint32_t> PublicItems::rare_words(uint32_t item) const {
  const uint32_t begin = item == 0 ? 0 : word_end_[item - 1];
  return std::span(words_).subspan(begin, word_end_[item] - begin);
}

// The SHA-256 of, in the notation of base/bytes.h:
//     catalogue := "tacit.catalogue":string version:u32 items:u32 first_genres:u32
//                  years:u32 year:i16*years
//                  [item*items]            where items are described
//     version   := 1
//     item      := id:i64 genres:u64 year:i16 first_genre:u8 words:u32 word:u32*words
// `words` are the rare ones of the title.
Digest PublicItems::Fingerprint() const {
  ByteWriter writer;
  writer.PutString("tacit.catalogue").Put(uint32_t{1}).Put(items_).Put(first_genres_);
  writer.Put(static_cast<uint32_t>(years_.size())).PutArray(std::span(years_));
  for (uint32_t item = 0; item < features_.size(); ++item) {
    const ItemFeatures& features = features_[item];
    const auto words = rare_words(item);
    writer.Put(features.id).Put(features.genres).Put(features.year).Put(features.first_genre);
    writer.Put(static_cast<uint32_t>(words.size())).PutArray(words);
  }
  return Sha256().Update(writer.bytes()).Finish();
}

bool PublicItems::ShareRareWord(uint32_t a, uint32_t b) const {
  if ((features_[a].words & features_[b].words) == 0) return false;
  const auto left = rare_words(a), right = rare_words(b);
  for (size_t i = 0, j = 0; i < left.size() && j < right.size();) {
    if (left[i] == right[j]) return true;
    ++(left[i] < right[j] ? i : j);
  }
  return false;
}

}  // namespace tacit::model::transitions
