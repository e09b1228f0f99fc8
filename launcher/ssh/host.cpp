// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "core/base/sha256.h"

namespace evenkeel {
namespace {

constexpr std::size_t kMostOutput = std::size_t{16} << 20U;
constexpr std::size_t kMostErrorOutput = std::size_t{64} << 10U;  // the first of it tells what went wrong
constexpr std::size_t kFileChunk = std::size_t{256} << 10U;

void keepFirst(std::string& kept, std::string_view piece) {
  kept += piece.substr(0, kMostErrorOutput - std::min(kept.size(), kMostErrorOutput));
}

}  // namespace

std::string Ending::text() const { return signal.empty() ? fmt::format("exit status {}", exitStatus) : "killed by " + signal; }

Result<CommandOutput> run(Host& host, Command command, std::stop_token stop) {
  CommandOutput output;
  bool tooMuch = false;
  std::stop_source overflow;  // ends the command when it writes more than we take
  const std::stop_callback forward(stop, [&] { overflow.request_stop(); });
  command.onOutput = [&](std::string_view piece) {
    if (output.out.size() + piece.size() > kMostOutput) {
      tooMuch = true;
      overflow.request_stop();
    } else {
      output.out += piece;
    }
  };
  command.onErrorOutput = [&](std::string_view piece) { keepFirst(output.err, piece); };
  auto ending = host.execute(command, overflow.get_token());
  if (tooMuch) return failed(host.name(), fmt::format("{} wrote more than {} MiB", command.argv.front(), kMostOutput >> 20U));
  if (!ending) return std::move(ending).error();
  output.ending = *ending;
  return output;
}

Result<CommandOutput> followLines(Host& host, Command command, const std::function<void(std::string_view)>& onLine,
                                  std::stop_token stop) {
  CommandOutput output;
  std::string line;  // what has come of a line that is not whole yet
  bool tooLong = false;
  std::stop_source overflow;
  const std::stop_callback forward(stop, [&] { overflow.request_stop(); });
  command.onOutput = [&](std::string_view piece) {
    for (std::size_t newline = piece.find('\n'); newline != std::string_view::npos && !tooLong; newline = piece.find('\n')) {
      line += piece.substr(0, newline);
      piece.remove_prefix(newline + 1);
      onLine(line);
      line.clear();
    }
    line += piece;
    if (line.size() <= kMostOutput) return;
    tooLong = true;
    overflow.request_stop();
  };
  command.onErrorOutput = [&](std::string_view piece) { keepFirst(output.err, piece); };
  auto ending = host.execute(command, overflow.get_token());
  if (tooLong)
    return failed(host.name(), fmt::format("{} wrote a line of more than {} MiB", command.argv.front(), kMostOutput >> 20U));
  if (!ending) return std::move(ending).error();
  output.ending = *ending;
  return output;
}

Result<void> makeDirectory(Host& host, const std::string& path, std::chrono::milliseconds deadline) {
  const std::string script = R"(umask 077; mkdir -p -- "$1" && chmod 0700 -- "$1")";
  auto made = run(host, {.argv = {"sh", "-c", script, "sh", path}, .deadline = deadline});
  if (!made) return std::move(made).error();
  if (!made->ending.wasGood()) return failed(host.name(), fmt::format("cannot make the folder {}: {}", path, made->err));
  return {};
}

Result<void> upload(Host& host, const Upload& upload, std::stop_token stop) {
  std::shared_ptr<std::ifstream> file;
  std::string digest = upload.sha256;
  if (!upload.file.empty()) {
    file = std::make_shared<std::ifstream>(upload.file, std::ios::binary);
    if (!*file) return invalidInput(upload.file, "cannot be opened");
    if (digest.empty()) {
      Sha256 hash;
      std::string chunk(kFileChunk, '\0');
      while (file->read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file->gcount() > 0) {
        hash.update({chunk.data(), static_cast<std::size_t>(file->gcount())});
      }
      digest = hash.finish();
      file->clear();
      file->seekg(0);
    }
  } else if (digest.empty()) {
    digest = sha256(upload.bytes);
  }
  std::uint64_t done = 0;
  const auto next = [&](std::size_t most) {
    std::string chunk;
    if (file) {
      chunk.resize(std::min(most, kFileChunk));
      file->read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
      chunk.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file->gcount())));
    } else {
      chunk = upload.bytes.substr(std::min<std::size_t>(done, upload.bytes.size()), most);
    }
    done += chunk.size();
    if (upload.onProgress && !chunk.empty()) upload.onProgress(done);
    return chunk;
  };
  // The part is named after the shell's process, so that two uploads of one file do not meet. It does not outlive the shell,
  // which must not die of a signal when the connection does.
  const std::string script =
      "umask 077; trap '' PIPE HUP; part=$1.$$.part; mkdir -p -- \"${1%/*}\" || exit 1; trap 'rm -f -- \"$part\"' EXIT\n"
      "cat > \"$part\" || exit 1\n"
      "sum=$(sha256sum < \"$part\") || exit 1\n"
      "[ \"${sum%% *}\" = \"$2\" ] || { echo 'what arrived has another checksum' >&2; exit 1; }\n"
      "chmod \"$3\" \"$part\" && mv -f -- \"$part\" \"$1\"";
  auto ran = run(host,
                 {.argv = {"sh", "-c", script, "sh", upload.path, digest, upload.isProgram ? "0700" : "0600"},
                  .input = next,
                  .silence = upload.silence},
                 std::move(stop));
  if (!ran) return std::move(ran).error();
  if (ran->ending.wasGood()) return {};
  return failed(host.name(), fmt::format("cannot put {} there ({}): {}", upload.path, ran->ending.text(), ran->err));
}

}  // namespace evenkeel
