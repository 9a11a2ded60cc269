#include "sim/border.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace tacit::sim {
namespace {

// A loaded program or library, by its tables in memory.
class Image {
 public:
  explicit Image(const dl_phdr_info& info) : name_(info.dlpi_name) {
    for (int i = 0; i < info.dlpi_phnum; ++i)
      if (info.dlpi_phdr[i].p_type == PT_DYNAMIC)
        Read(reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr),
             info.dlpi_addr);
  }

  const std::string& name() const { return name_; }
  bool IsCalled(const std::string& library) const {
    return name_.find("/" + library) != std::string::npos;
  }

  // The names of the libraries that it asks for.
  std::vector<std::string> Libraries() const {
    std::vector<std::string> libraries;
    for (const ElfW(Xword) at : libraries_) libraries.emplace_back(strings_ + at);
    return libraries;
  }

  // The names that the C library has to define for it.
  std::set<std::string> Wanted() const {
    std::set<std::string> wanted;
    if (hash_ == nullptr || versions_ == nullptr) return wanted;
    const auto libraries = VersionedLibraries();
    const uint32_t first_defined = hash_[1];
    for (uint32_t i = 1; i < first_defined; ++i) {
      const auto library = libraries.find(versions_[i] & 0x7fff);
      if (symbols_[i].st_shndx == SHN_UNDEF && library != libraries.end() &&
          !library->second.starts_with("libm."))
        wanted.insert(strings_ + symbols_[i].st_name);
    }
    return wanted;
  }

 private:
  void Read(const ElfW(Dyn) * entry, ElfW(Addr) base) {
    for (; entry->d_tag != DT_NULL; ++entry) {
      // The loader turns some of the offsets into addresses.
      ElfW(Addr) at = entry->d_un.d_ptr;
      if (at < base) at += base;
      if (entry->d_tag == DT_NEEDED) libraries_.push_back(entry->d_un.d_val);
      if (entry->d_tag == DT_STRTAB) strings_ = reinterpret_cast<const char*>(at);
      if (entry->d_tag == DT_SYMTAB) symbols_ = reinterpret_cast<const ElfW(Sym)*>(at);
      if (entry->d_tag == DT_GNU_HASH) hash_ = reinterpret_cast<const uint32_t*>(at);
      if (entry->d_tag == DT_VERSYM) versions_ = reinterpret_cast<const ElfW(Half)*>(at);
      if (entry->d_tag == DT_VERNEED) needed_ = reinterpret_cast<const ElfW(Verneed)*>(at);
    }
  }

  // The C library's versions, by their numbers in this image.
  std::map<uint16_t, std::string> VersionedLibraries() const {
    std::map<uint16_t, std::string> libraries;
    const auto* need = needed_;
    while (need != nullptr) {
      const std::string file = strings_ + need->vn_file;
      const char* at = reinterpret_cast<const char*>(need) + need->vn_aux;
      for (int i = 0; i < need->vn_cnt; ++i) {
        const auto* version = reinterpret_cast<const ElfW(Vernaux)*>(at);
        if (std::string(strings_ + version->vna_name).starts_with("GLIBC_"))
          libraries[version->vna_other] = file;
        at += version->vna_next;
      }
      if (need->vn_next == 0) break;
      need = reinterpret_cast<const ElfW(Verneed)*>(reinterpret_cast<const char*>(need) +
                                                    need->vn_next);
    }
    return libraries;
  }

  std::string name_;
  std::vector<ElfW(Xword)> libraries_;  // places of their names
  const char* strings_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const uint32_t* hash_ = nullptr;
  const ElfW(Half) * versions_ = nullptr;
  const ElfW(Verneed) * needed_ = nullptr;
};

bool IsTheCLibrary(const std::string& name) {
  for (const char* part : {"/libc.so", "/ld-linux", "linux-vdso", "/libm.so"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

// The program and the libraries that it reaches.
std::vector<Image> Images(const std::string& without) {
  std::vector<Image> images;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        if (!IsTheCLibrary(info->dlpi_name))
          static_cast<std::vector<Image>*>(to)->emplace_back(*info);
        return 0;
      },
      &images);
  std::vector<Image> reached = {images.front()};
  for (size_t i = 0; i < reached.size(); ++i)
    for (const std::string& library : reached[i].Libraries()) {
      const auto image =
          std::ranges::find_if(images, [&](const Image& one) { return one.IsCalled(library); });
      if (image == images.end() || (!without.empty() && library.starts_with(without))) continue;
      if (std::ranges::none_of(reached,
                               [&](const Image& one) { return one.name() == image->name(); }))
        reached.push_back(*image);
    }
  return reached;
}

// The section of each name. A section begins with its name in brackets.
std::map<std::string, std::string> Sections(const std::string& path) {
  std::map<std::string, std::string> sections;
  std::ifstream in(path);
  std::string section;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    if (line.starts_with("[")) section = line;
    std::istringstream words(line);
    for (std::string word; words >> word;) sections.emplace(word, section);
  }
  return sections;
}

bool IsOurs(const std::string& name) {
  Dl_info ours, found;
  void* const address = dlsym(RTLD_DEFAULT, name.c_str());
  return address != nullptr && dladdr(address, &found) != 0 &&
         dladdr(reinterpret_cast<void*>(&CheckBorder), &ours) != 0 &&
         found.dli_fbase == ours.dli_fbase;
}

}  // namespace

std::vector<std::string> CheckBorder(const std::string& list, const std::string& without) {
  const auto sections = Sections(list);
  std::vector<std::string> complaints;
  for (const Image& image : Images(without)) {
    const std::string who = image.name().empty() ? "the program" : image.name();
    for (const std::string& name : image.Wanted()) {
      const auto found = sections.find(name);
      if (found == sections.end())
        complaints.push_back(name + ", which " + who + " calls, is not in the list");
      else if ((found->second == "[simulated]" || found->second == "[stopped]") && !IsOurs(name))
        complaints.push_back(name + " of " + who + " is the C library's");
    }
  }
  return complaints;
}

}  // namespace tacit::sim
