// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/deploy/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>

#include "core/base/sha256.h"
#include "core/base/words.h"
#include "launcher/deploy/checked_file.h"
#include "launcher/deploy/packed_file.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileChunk = std::size_t{256} << 10U;

/// What travels of one file.
struct Part {
  const BundleFile* file = nullptr;
  fs::path source;  // packed, or as it is
  std::string packer = "none";
  std::uint64_t size = 0, offset = 0;  // of the source; how much the node has
  [[nodiscard]] std::string nameThere() const { return file->sha256 + "." + packer; }
};

/// A line that announces each part, then its bytes from its offset on: what copyFiles' script reads.
class Parts {
 public:
  Parts(std::vector<Part> parts, const CopyProgress& onProgress) : parts_(std::move(parts)), onProgress_(onProgress) {
    for (const Part& part : parts_) total_ += part.size - part.offset;
  }
  std::string next(std::size_t most) {
    while (true) {
      if (!announced_.empty()) return take(announced_, most);
      if (stream_.is_open()) {
        std::string chunk(std::min<std::uint64_t>({most, kFileChunk, left_}), '\0');
        stream_.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
        chunk.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, stream_.gcount())));
        left_ -= chunk.size();
        done_ += chunk.size();
        if (left_ == 0 || chunk.empty()) stream_.close();
        if (onProgress_ && !chunk.empty()) onProgress_(done_, total_);
        if (!chunk.empty()) return chunk;
        return {};  // shorter than it was: the other side misses the rest
      }
      if (at_ == parts_.size()) return {};
      const Part& part = parts_[at_++];
      announced_ = fmt::format("{} {} {} {} {} {}\n", part.file->sha256,
                               part.file->isStored ? "-" : std::to_string(part.size - part.offset), part.size, part.packer,
                               part.file->isProgram ? "0700" : "0600", part.file->name);
      left_ = part.file->isStored ? 0 : part.size - part.offset;
      if (left_ == 0) continue;
      stream_.open(part.source, std::ios::binary);
      stream_.seekg(static_cast<std::streamoff>(part.offset));
    }
  }

 private:
  static std::string take(std::string& text, std::size_t most) {
    std::string taken = text.substr(0, most);
    text.erase(0, taken.size());
    return taken;
  }
  std::vector<Part> parts_;
  const CopyProgress& onProgress_;
  std::size_t at_ = 0;
  std::string announced_;
  std::ifstream stream_;
  std::uint64_t left_ = 0, done_ = 0, total_ = 0;
};

constexpr const char* kLookScript = R"sh(
dir=$1 store=$2; shift 2
while [ $# -gt 1 ]; do
  name=$1 sum=$2; shift 2
  [ -f "$dir/$name" ] && got=$(sha256sum < "$dir/$name") && [ "${got%% *}" = "$sum" ] && { echo "has $sum"; continue; }
  [ -f "$store/$sum" ] && got=$(sha256sum < "$store/$sum") && [ "${got%% *}" = "$sum" ] && echo "stored $sum"
done
exit 0
)sh";

// What a cut connection has left is taken by renaming it: of several that copy the same file to one store (nodes that share a
// home directory) one goes on with it, the others begin anew under names of their own. One whose copier was killed before it
// could give it back is recognised by its age.
constexpr const char* kPartsScript = R"sh(
store=$1 tag=$2; shift 2
for part in "$@"; do
  mine=$store/$part.$tag.part
  mv -- "$store/$part.part" "$mine" 2>/dev/null || { old=$(find "$store" -name "$part.*.part" -mmin +1 2>/dev/null | head -n 1); [ -n "$old" ] && mv -- "$old" "$mine" 2>/dev/null; }
  [ -f "$mine" ] && echo "$part $(wc -c < "$mine")"
done
exit 0
)sh";

// Unpacking is nice: what still travels comes first. The shell must not die of a signal when the connection does: what has come so
// far is kept for the next time. Complaints go to stderr as they come; that all is well is for the marks to say, which a full disk
// lacks too.
constexpr const char* kStoreScript = R"sh(
umask 077; trap '' PIPE HUP
store=$1 dir=$2 tag=$3 names= status=0
mkdir -p -- "$store" "$dir" || exit 1
link() {
  mkdir -p -- "$dir/$(dirname -- "$name")" && { ln -f -- "$store/$sum" "$dir/$name" 2>/dev/null || [ "$store/$sum" -ef "$dir/$name" ] || cp -f -- "$store/$sum" "$dir/$name"; } && : > "$store/$sum.$tag.ok"
}
unpack() {
  new=$store/$sum.$tag
  case $packer in none) cat < "$part" ;; *) nice "$packer" -dc < "$part" ;; esac > "$new" || { rm -f -- "$part" "$new"; return; }
  got=$(nice sha256sum < "$new")
  if [ "${got%% *}" != "$sum" ]; then echo "what arrived of $name has another checksum" >&2; rm -f -- "$part" "$new"; return; fi
  chmod "$mode" "$new" && mv -f -- "$new" "$store/$sum" && rm -f -- "$part" && link
}
while read -r sum more size packer mode name; do
  part=$store/$sum.$packer.$tag.part names="$names $sum:$name"
  if [ "$more" = - ]; then chmod "$mode" "$store/$sum" && link; continue; fi
  head -c "$more" >> "$part" && [ "$(wc -c < "$part")" -eq "$size" ] || { mv -f -- "$part" "$store/$sum.$packer.part"; break; }
  unpack &
done
wait
find "$store" -name '*.part' -mtime +7 -exec rm -f -- {} + 2>/dev/null
for one in $names; do [ -f "$store/${one%%:*}.$tag.ok" ] || { echo "${one#*:} has not arrived whole" >&2; status=1; break; }; done
rm -f -- "$store"/*."$tag.ok"
exit $status
)sh";

std::string storeBelow(const std::string& cache) { return cache + "/files"; }

/// What a cut connection has left of each part on the node.
Result<void> findOffsets(Host& host, const std::string& store, const std::string& tag, std::vector<Part>& parts,
                         const std::stop_token& stop) {
  std::vector<std::string> argv{"sh", "-c", kPartsScript, "sh", store, tag};
  for (const Part& part : parts) argv.push_back(part.nameThere());
  auto looked = run(host, {.argv = std::move(argv), .deadline = std::chrono::seconds(60)}, stop);
  if (!looked) return looked.error();
  std::istringstream lines(looked->out);
  for (std::string name, size; lines >> name >> size;) {
    for (Part& part : parts) {
      if (part.nameThere() == name) part.offset = parseNumber<std::uint64_t>(size).value_or(0);
    }
  }
  return {};
}

}  // namespace

std::uint64_t bytesOf(const std::vector<BundleFile>& files) {
  return std::accumulate(files.begin(), files.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const BundleFile& file) { return sum + (file.isStored ? 0 : file.bytes); });
}

Result<Bundle> programBundle(const fs::path& programs, const std::vector<std::string>& names) {
  Bundle bundle;
  for (const std::string& name : names) {
    auto file = checkedFile(programs / name, name);
    if (!file) return std::move(file).error();
    file->isProgram = true;
    bundle.files.push_back(*std::move(file));
  }
  bundle.directory = directoryOf(bundle.files);
  return bundle;
}

Result<std::vector<BundleFile>> missingFiles(Host& host, const std::string& cache, const Bundle& bundle,
                                             std::chrono::milliseconds deadline, std::stop_token stop) {
  std::vector<std::string> argv{"sh", "-c", kLookScript, "sh", cache + "/" + bundle.directory, storeBelow(cache)};
  for (const BundleFile& file : bundle.files) argv.insert(argv.end(), {file.name, file.sha256});
  auto looked = run(host, {.argv = std::move(argv), .deadline = deadline}, std::move(stop));
  if (!looked) return std::move(looked).error();
  std::map<std::string, std::string> state;  // by checksum
  std::istringstream lines(looked->out);
  for (std::string word, sum; lines >> word >> sum;) state[sum] = word;
  std::vector<BundleFile> missing;
  for (BundleFile file : bundle.files) {
    const auto found = state.find(file.sha256);
    if (found != state.end() && found->second == "has") continue;
    file.isStored = found != state.end();
    missing.push_back(std::move(file));
  }
  return missing;
}

Result<void> copyFiles(Host& host, const std::string& cache, const Bundle& bundle, const std::vector<BundleFile>& files,
                       const CopyOptions& options, const CopyProgress& onProgress, std::stop_token stop) {
  if (files.empty()) return {};
  std::vector<Part> parts;
  for (const BundleFile& file : files) {
    Part part{.file = &file, .source = file.file, .size = file.bytes};
    if (!file.isStored && !options.packer.empty() && !options.packed.empty()) {
      auto packed = packedFile(file, options.packed, options.packer);
      if (!packed) return std::move(packed).error();
      part.source = *std::move(packed);
      part.packer = options.packer;
      part.size = fs::file_size(part.source);
    }
    parts.push_back(std::move(part));
  }
  // The largest first: it is unpacked while all others travel.
  std::ranges::stable_sort(parts, std::greater<>(), [](const Part& part) { return part.file->isStored ? 0 : part.size; });
  const std::string tag = fmt::format("{:08x}", std::random_device{}());
  if (auto found = findOffsets(host, storeBelow(cache), tag, parts, stop); !found) return found;
  std::vector<std::string> odd;  // longer than what we have: of another packing, so of no use
  for (Part& part : parts) {
    if (part.offset <= part.size) continue;
    part.offset = 0;
    odd.push_back(storeBelow(cache) + "/" + part.nameThere() + "." + tag + ".part");
  }
  if (!odd.empty()) {
    odd.insert(odd.begin(), {"rm", "-f", "--"});
    if (auto removed = run(host, {.argv = std::move(odd), .deadline = std::chrono::seconds(60)}, stop); !removed)
      return removed.error();
  }
  Parts stream(std::move(parts), onProgress);
  auto ran = run(host,
                 {.argv = {"sh", "-c", kStoreScript, "sh", storeBelow(cache), cache + "/" + bundle.directory, tag},
                  .input = [&](std::size_t most) { return stream.next(most); },
                  .silence = std::chrono::seconds(60)},
                 std::move(stop));
  if (!ran) return std::move(ran).error();
  if (ran->ending.wasGood()) return {};
  return failed(host.name(), fmt::format("the files cannot be put into {} ({}): {}", cache, ran->ending.text(), ran->err));
}

}  // namespace evenkeel
