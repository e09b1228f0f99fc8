// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/deploy/elf.h"

#include <elf.h>
#include <fmt/format.h>
#include <string.h>

#include <cstdint>
#include <fstream>
#include <optional>

#include "core/base/words.h"

namespace evenkeel {
namespace {

class ElfImage {
 public:
  explicit ElfImage(std::string bytes) : bytes_(std::move(bytes)) {}

  [[nodiscard]] bool isUsable() const {
    const auto header = at<Elf64_Ehdr>(0);
    return header && ::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_ident[EI_DATA] == (__BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB);
  }
  template <class T>
  [[nodiscard]] std::optional<T> at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    ::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  template <class T>
  void put(std::uint64_t offset, const T& value) {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof value) return;
    ::memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  [[nodiscard]] std::vector<Elf64_Shdr> sections() const {
    std::vector<Elf64_Shdr> found;
    const auto header = at<Elf64_Ehdr>(0);
    for (unsigned i = 0; i < header->e_shnum; ++i) {
      const auto section = at<Elf64_Shdr>(header->e_shoff + std::uint64_t{i} * sizeof(Elf64_Shdr));
      if (!section) break;
      found.push_back(*section);
    }
    return found;
  }
  [[nodiscard]] std::string textAt(const Elf64_Shdr& strings, std::uint64_t index) const {
    if (index >= strings.sh_size || strings.sh_offset >= bytes_.size() || index >= bytes_.size() - strings.sh_offset) return {};
    const char* begin = bytes_.data() + strings.sh_offset + index;
    return {begin, ::strnlen(begin, bytes_.size() - strings.sh_offset - index)};
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

Result<ElfImage> load(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) return invalidInput(file.string(), "cannot be opened");
  std::string bytes(static_cast<std::size_t>(stream.tellg()), '\0');
  stream.seekg(0);
  if (!stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    return failed(file.string(), "cannot be read to its end");
  ElfImage image(std::move(bytes));
  if (!image.isUsable()) return invalidInput(file.string(), "is no program or library of this kind of machine");
  return image;
}

void readSymbols(const ElfImage& image, const Elf64_Shdr& table, const Elf64_Shdr& strings, ElfFile& elf) {
  for (std::uint64_t offset = sizeof(Elf64_Sym); offset + sizeof(Elf64_Sym) <= table.sh_size; offset += sizeof(Elf64_Sym)) {
    const auto symbol = image.at<Elf64_Sym>(table.sh_offset + offset);
    if (!symbol) return;
    const unsigned binding = ELF64_ST_BIND(symbol->st_info);
    if (binding == STB_LOCAL) continue;
    if (symbol->st_shndx != SHN_UNDEF) elf.defined.push_back(image.textAt(strings, symbol->st_name));
    else if (binding != STB_WEAK) elf.undefined.push_back(image.textAt(strings, symbol->st_name));
  }
}

void readVersions(const ElfImage& image, const Elf64_Shdr& table, const Elf64_Shdr& strings, ElfFile& elf) {
  std::uint64_t offset = table.sh_offset;
  for (unsigned i = 0; i < table.sh_info; ++i) {
    const auto need = image.at<Elf64_Verneed>(offset);
    if (!need) return;
    std::uint64_t entry = offset + need->vn_aux;
    for (unsigned j = 0; j < need->vn_cnt; ++j) {
      const auto version = image.at<Elf64_Vernaux>(entry);
      if (!version) return;
      const std::string name = image.textAt(strings, version->vna_name);
      if (name.starts_with("GLIBC_2.") && compareVersions(name.substr(6), elf.glibc) > 0) elf.glibc = name.substr(6);
      if (version->vna_next == 0) break;
      entry += version->vna_next;
    }
    if (need->vn_next == 0) return;
    offset += need->vn_next;
  }
}

}  // namespace

int compareVersions(const std::string& a, const std::string& b) {
  std::string_view left = a, right = b;
  while (!left.empty() || !right.empty()) {
    const auto next = [](std::string_view& text) {
      const std::size_t dot = text.find('.');
      const int number = parseNumber<int>(text.substr(0, dot)).value_or(0);
      text = dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
      return number;
    };
    const int l = next(left), r = next(right);
    if (l != r) return l < r ? -1 : 1;
  }
  return 0;
}

Result<ElfFile> readElf(const std::filesystem::path& file) {
  auto image = load(file);
  if (!image) return std::move(image).error();
  ElfFile elf;
  const std::vector<Elf64_Shdr> sections = image->sections();
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    if (section.sh_type == SHT_DYNSYM) readSymbols(*image, section, strings, elf);
    if (section.sh_type == SHT_GNU_verneed) readVersions(*image, section, strings, elf);
    if (section.sh_type != SHT_DYNAMIC) continue;
    for (std::uint64_t offset = 0; offset + sizeof(Elf64_Dyn) <= section.sh_size; offset += sizeof(Elf64_Dyn)) {
      const auto entry = image->at<Elf64_Dyn>(section.sh_offset + offset);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_NEEDED) elf.needed.push_back(image->textAt(strings, entry->d_un.d_val));
    }
  }
  return elf;
}

Result<void> copyWithoutNeeded(const std::filesystem::path& from, const std::filesystem::path& to,
                               const std::set<std::string>& dropped) {
  auto image = load(from);
  if (!image) return std::move(image).error();
  const std::vector<Elf64_Shdr> sections = image->sections();
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNAMIC || section.sh_link >= sections.size()) continue;
    std::uint64_t kept = 0;  // the others move up; what is then left over at the end are ends
    for (std::uint64_t offset = 0; offset + sizeof(Elf64_Dyn) <= section.sh_size; offset += sizeof(Elf64_Dyn)) {
      const auto entry = image->at<Elf64_Dyn>(section.sh_offset + offset);
      if (!entry) break;
      if (entry->d_tag == DT_NEEDED && dropped.contains(image->textAt(sections[section.sh_link], entry->d_un.d_val))) continue;
      image->put(section.sh_offset + kept, *entry);
      kept += sizeof(Elf64_Dyn);
    }
    for (; kept + sizeof(Elf64_Dyn) <= section.sh_size && image->at<Elf64_Dyn>(section.sh_offset + kept);
         kept += sizeof(Elf64_Dyn))
      image->put(section.sh_offset + kept, Elf64_Dyn{});
  }
  std::ofstream stream(to, std::ios::binary | std::ios::trunc);
  stream.write(image->bytes().data(), static_cast<std::streamsize>(image->bytes().size()));
  stream.flush();
  if (stream) return {};
  return failed(to.string(), "cannot be written");
}

}  // namespace evenkeel
