// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <map>
#include <sstream>
#include <unordered_map>

#include "core/base/json.h"
#include "core/base/sha256.h"
#include "launcher/deploy/bundle.h"
#include "launcher/deploy/checked_file.h"
#include "launcher/deploy/elf.h"
#include "launcher/ssh/local_host.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLimit{60'000};

/// What every machine brings along, and what must be the machine's own: the C library, and the driver's side of CUDA.
bool isOfTheMachine(const std::string& soname) {
  static const std::vector<std::string> names = {"libc.so",    "libm.so",      "libpthread.so", "libdl.so",  "librt.so",
                                                 "libutil.so", "libresolv.so", "libnsl.so",     "libanl.so", "ld-linux",
                                                 "linux-vdso", "libcuda.so",   "libnvidia-"};
  return std::ranges::any_of(names, [&](const std::string& name) { return soname.starts_with(name); });
}

struct Library {
  std::string soname;
  fs::path file;
  ElfFile elf;
};

/// What the loader takes for the programs, in its order.
Result<std::vector<std::pair<std::string, fs::path>>> loadedBy(const std::vector<fs::path>& programs) {
  std::vector<std::pair<std::string, fs::path>> loaded;
  LocalHost here("this machine");
  for (const fs::path& program : programs) {
    const auto said = run(here, {.argv = {"ldd", program.string()}, .deadline = kLimit});
    if (!said) return said.error();
    std::istringstream lines(said->out);
    for (std::string line; std::getline(lines, line);) {  // "	libfmt.so.9 => /lib/x86_64-linux-gnu/libfmt.so.9 (0x...)"
      std::istringstream words(line);
      std::string soname, arrow, path;
      words >> soname >> arrow >> path;
      if (arrow != "=>" || isOfTheMachine(soname)) continue;
      if (path == "not")
        return failed(program.string(), fmt::format("needs {}, which is not on this machine", soname),
                      "install it, or build anew");
      if (std::ranges::none_of(loaded, [&](const auto& known) { return known.first == soname; }))
        loaded.emplace_back(soname, fs::canonical(path));
    }
  }
  return loaded;
}

/// The libraries of which a symbol is used, starting from the programs, and those on the way to them.
class Closure {
 public:
  explicit Closure(std::vector<Library> all, std::size_t programs)
      : all_(std::move(all)), kept_(all_.size(), false), programs_(programs) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      for (const std::string& symbol : all_[i].elf.defined)
        definer_.emplace(symbol, i);  // the first one in the loader's order wins
      index_.emplace(all_[i].soname, i);
    }
  }
  std::vector<bool> kept() {
    std::deque<std::size_t> open;
    for (std::size_t i = 0; i < programs_; ++i) keep(i, open);
    while (!open.empty()) {
      const std::size_t library = open.front();
      open.pop_front();
      for (const std::string& symbol : all_[library].elf.undefined) {
        const auto found = definer_.find(symbol);
        if (found != definer_.end()) keepWithWay(found->second, open);
      }
    }
    return kept_;
  }

 private:
  void keep(std::size_t library, std::deque<std::size_t>& open) {
    if (kept_[library]) return;
    kept_[library] = true;
    open.push_back(library);
  }
  /// The loader finds a library through those that need it: the nearest way there is kept too.
  void keepWithWay(std::size_t wanted, std::deque<std::size_t>& open) {
    if (kept_[wanted]) return;
    std::map<std::size_t, std::size_t> from;  // a kept library is its own
    std::deque<std::size_t> next;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!kept_[i]) continue;
      from[i] = i;
      next.push_back(i);
    }
    while (!next.empty() && !from.contains(wanted)) {
      const std::size_t at = next.front();
      next.pop_front();
      for (const std::string& soname : all_[at].elf.needed) {
        const auto found = index_.find(soname);
        if (found != index_.end() && from.emplace(found->second, at).second) next.push_back(found->second);
      }
    }
    for (std::size_t at = wanted; from.contains(at) && !kept_[at]; at = from[at]) keep(at, open);
  }

  std::vector<Library> all_;
  std::vector<bool> kept_;
  std::size_t programs_;
  std::unordered_map<std::string, std::size_t> definer_, index_;
};

/// Of everything that the bundle is made of: a change of any of it makes another one.
std::string keyOf(const Bundle& programs, const std::vector<std::pair<std::string, fs::path>>& loaded) {
  std::string text = "3";  // of this way of making it
  for (const BundleFile& file : programs.files) text += " " + file.sha256;
  for (const auto& [soname, file] : loaded) {
    std::error_code failure;
    text += fmt::format(" {} {} {}", file.string(), fs::file_size(file, failure),
                        fs::last_write_time(file, failure).time_since_epoch().count());
  }
  return sha256(text).substr(0, 32);
}

Result<Bundle> describe(const fs::path& folder, const std::vector<std::string>& names, const std::string& glibc) {
  Bundle bundle;
  Json manifest{{"glibc", glibc}, {"files", Json::array()}};
  for (const std::string& name : names) {
    auto file = checkedFile(folder / name, name);
    if (!file) return std::move(file).error();
    file->isProgram = !name.starts_with("lib/");
    manifest["files"].push_back({{"name", name}, {"sha256", file->sha256}, {"bytes", file->bytes}, {"program", file->isProgram}});
    bundle.files.push_back(*std::move(file));
  }
  bundle.glibc = glibc;
  bundle.directory = directoryOf(bundle.files);
  if (auto written = writeFileAtomically(folder / "manifest.json", prettyText(manifest)); !written) return written.error();
  return bundle;
}

/// What was made before; nothing if it is not whole.
std::optional<Bundle> madeBefore(const fs::path& folder) {
  const auto manifest = readJsonFile(folder / "manifest.json");
  if (!manifest || !manifest->contains("files")) return std::nullopt;
  Bundle bundle;
  bundle.glibc = manifest->value("glibc", "");
  for (const Json& file : (*manifest)["files"]) {
    BundleFile known{.name = file.value("name", ""), .file = folder / file.value("name", ""), .sha256 = file.value("sha256", "")};
    known.bytes = file.value("bytes", std::uint64_t{0});
    known.isProgram = file.value("program", false);
    std::error_code failure;
    if (fs::file_size(known.file, failure) != known.bytes || failure) return std::nullopt;
    bundle.files.push_back(std::move(known));
  }
  bundle.directory = directoryOf(bundle.files);
  return bundle;
}

/// Copies what is kept into a folder and lets the programs run there with every symbol bound.
Result<Bundle> make(const fs::path& folder, const std::vector<Library>& all, std::size_t programs,
                    const std::vector<bool>& kept) {
  std::set<std::string> dropped;
  std::string glibc;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!kept[i]) dropped.insert(all[i].soname);
    else if (compareVersions(all[i].elf.glibc, glibc) > 0) glibc = all[i].elf.glibc;
  }
  std::error_code failure;
  fs::create_directories(folder / "lib", failure);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!kept[i]) continue;
    names.push_back(i < programs ? all[i].soname : "lib/" + all[i].soname);
    if (auto copied = copyWithoutNeeded(all[i].file, folder / names.back(), dropped); !copied) return copied.error();
    if (i < programs) fs::permissions(folder / names.back(), fs::perms::owner_all, failure);
  }
  LocalHost here("this machine");
  for (std::size_t i = 0; i < programs; ++i) {
    const std::string& program = all[i].soname;
    const std::string argument = program == "evenkeel-agent" ? "version" : "--features";
    const auto tried = run(here, {.argv = {"env", "LD_BIND_NOW=1", "LD_LIBRARY_PATH=" + (folder / "lib").string(),
                                           (folder / program).string(), argument},
                                  .deadline = kLimit});
    if (!tried) return tried.error();
    if (!tried->ending.wasGood())
      return failed(program,
                    fmt::format("does not run with the libraries that were chosen for it: {}", tried->err.substr(0, 300)));
  }
  return describe(folder, names, glibc);
}

}  // namespace

Result<Bundle> slimBundle(const fs::path& programs, const fs::path& cache, const std::vector<std::string>& names) {
  auto plain = programBundle(programs, names);
  if (!plain) return plain;
  std::vector<Library> all;
  std::vector<fs::path> files;
  for (const BundleFile& file : plain->files) {
    auto elf = readElf(file.file);
    if (!elf) return plain;  // a script
    files.push_back(file.file);
    all.push_back({file.name, file.file, *std::move(elf)});
  }
  const auto loaded = loadedBy(files);
  if (!loaded) return loaded.error();
  const fs::path folder = cache / "made" / keyOf(*plain, *loaded);
  if (auto before = madeBefore(folder)) return *std::move(before);
  for (const auto& [soname, file] : *loaded) {
    auto elf = readElf(file);
    if (!elf) return std::move(elf).error();
    all.push_back({soname, file, *std::move(elf)});
  }
  const fs::path part = folder.string() + fmt::format(".{}.part", ::getpid());
  auto made = make(part, all, files.size(), Closure(all, files.size()).kept());
  if (!made) made = make(part, all, files.size(), std::vector<bool>(all.size(), true));  // larger, but it runs
  std::error_code failure;
  if (made) fs::rename(part, folder, failure);
  fs::remove_all(part, failure);
  if (!made) return made;
  if (auto whole = madeBefore(folder)) return *std::move(whole);
  return failed(folder.string(), "cannot be written", "free some space there");
}

}  // namespace evenkeel
