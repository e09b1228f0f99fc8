// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/deploy/data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "core/base/sha256.h"
#include "launcher/ssh/waits.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

/// The files below a folder, in the order of their relative paths.
Result<std::vector<fs::path>> filesOf(const fs::path& folder) {
  std::vector<std::string> relative;
  std::error_code failure;
  fs::recursive_directory_iterator entry(folder, failure);
  for (; !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure)) {
    const bool isHidden = entry->path().filename().string().starts_with('.');
    if (entry->is_symlink()) {
      entry.disable_recursion_pending();
    } else if (entry->is_directory()) {
      if (isHidden) entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && !isHidden) {
      relative.push_back(entry->path().lexically_relative(folder).string());
    }
  }
  if (failure) return invalidInput(folder.string(), failure.message());
  std::ranges::sort(relative);
  std::vector<fs::path> files;
  for (const std::string& name : relative) files.push_back(folder / name);
  return files;
}

/// What is to be joined: files of bytes that are tokens of one type.
struct Sources {
  std::vector<fs::path> files;
  TokenType token = TokenType::Uint8;
  bool isText = true;
};

Result<Sources> sourcesNamed(const std::vector<std::string>& names) {
  Sources sources;
  std::vector<std::string> texts;
  std::string tokensName;
  for (const std::string& name : names) {
    const auto pair = tokenFilesNamed(name);
    if (!pair) {
      texts.push_back(name);
      continue;
    }
    const auto opened = openTokenFiles(*pair);
    if (!opened) return opened.error();
    if (!tokensName.empty() && sources.token != opened->type)
      return invalidInput(name, fmt::format("holds tokens of type {}, those of {} are {}", evenkeel::name(opened->type), tokensName, evenkeel::name(sources.token)),
                          "name pairs of one type");
    sources.token = opened->type;
    sources.isText = false;
    tokensName = name;
    sources.files.push_back(opened->bin);
  }
  if (!texts.empty() && !tokensName.empty())
    return invalidInput(texts.front(), fmt::format("is text, and {} holds tokens", tokensName), "name one kind of data, or make tokens of the text with `evenkeel-cli tokenize encode`");
  if (tokensName.empty()) {
    auto found = textFilesNamed(texts);
    if (!found) return std::move(found).error();
    sources.files = *std::move(found);
  }
  return sources;
}

/// A file under construction; gone unless it is kept.
class Part {
 public:
  explicit Part(fs::path file)
      : file_(std::move(file)), fd_(::open(file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {}
  ~Part() {
    if (fd_.get() >= 0) ::unlink(file_.c_str());
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  [[nodiscard]] Error error() const { return failed(file_.string(), fmt::format("cannot be written: {}", ::strerror(errno))); }
  [[nodiscard]] bool isOpen() const { return fd_.get() >= 0; }
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) return false;
      if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }
  bool keepAs(const fs::path& file) {
    if (::fsync(fd_.get()) != 0 || ::rename(file_.c_str(), file.c_str()) != 0) return false;
    fd_.close();
    return true;
  }

 private:
  fs::path file_;
  OwnedFd fd_;
};

}  // namespace

Result<std::vector<fs::path>> textFilesNamed(const std::vector<std::string>& names) {
  std::vector<fs::path> files;
  for (const std::string& name : names) {
    std::error_code failure;
    const fs::file_status status = fs::status(name, failure);
    if (status.type() == fs::file_type::not_found)
      return invalidInput(name, "no such file or folder", "name text files or folders that are there, or tokens (NAME of NAME.bin and NAME.idx)");
    if (status.type() == fs::file_type::directory) {
      auto found = filesOf(name);
      if (!found) return std::move(found).error();
      if (found->empty()) return invalidInput(name, "holds no files (hidden ones and links are left out)");
      files.insert(files.end(), found->begin(), found->end());
    } else if (status.type() == fs::file_type::regular) {
      files.emplace_back(name);
    } else {
      return invalidInput(name, "is neither a file nor a folder");
    }
  }
  return files;
}

Result<void> checkData(const std::vector<std::string>& names) {
  const auto sources = sourcesNamed(names);
  return sources ? Result<void>() : sources.error();
}

Result<PackedData> packData(const std::vector<std::string>& names, const fs::path& cache,
                            const std::vector<std::string>& validationNames) {
  if (names.empty()) return invalidInput("data", "no training text is named", "name files or folders with --data");
  auto sources = sourcesNamed(names);
  if (!sources) return std::move(sources).error();
  auto validation = sourcesNamed(validationNames);
  if (!validation) return std::move(validation).error();
  if (!validationNames.empty() && (validation->isText != sources->isText || validation->token != sources->token))
    return invalidInput(validationNames.front(), "is data of another kind than what is trained on", "name text for text and tokens of the same type for tokens");
  const fs::path folder = cache / "data";
  std::error_code failure;
  fs::create_directories(folder, failure);
  ::chmod(folder.c_str(), 0700);
  Part part(folder / fmt::format("{}.part", ::getpid()));
  if (!part.isOpen()) return part.error();
  PackedData data{.file = {}, .sha256 = {}, .token = sources->token, .isText = sources->isText};
  const auto width = static_cast<std::size_t>(bytesOf(data.token));
  Sha256 hash;
  std::string chunk(std::size_t{1} << 20U, '\0');
  const auto append = [&](const std::vector<fs::path>& list) -> Result<void> {
    for (const fs::path& file : list) {
      std::ifstream stream(file, std::ios::binary);
      if (!stream) return invalidInput(file.string(), fmt::format("cannot be opened: {}", ::strerror(errno)));
      while (stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || stream.gcount() > 0) {
        const std::string_view piece(chunk.data(), static_cast<std::size_t>(stream.gcount()));
        data.bytes += piece.size();
        if (data.bytes > kMostDataBytes) {
          return invalidInput(file.string(), fmt::format("with it the training text has more than {} GiB", kMostDataBytes >> 30U),
                              "name less of it");
        }
        for (std::size_t at = 0; at + width <= piece.size(); at += width) {  // the chunk's size and that of a file are whole tokens
          const std::int64_t token = tokenAt(reinterpret_cast<const std::uint8_t*>(piece.data()) + at, data.token);
          data.leastToken = std::min(data.leastToken, token);
          data.greatestToken = std::max(data.greatestToken, token);
        }
        hash.update(piece);
        if (!part.write(piece)) return part.error();
      }
      if (stream.bad()) return failed(file.string(), "cannot be read to its end");
    }
    return {};
  };
  if (auto done = append(sources->files); !done) return done.error();
  data.trainBytes = data.bytes;
  if (data.bytes == 0) return invalidInput(names.front(), "the training text is empty");
  data.trainSha256 = Sha256(hash).finish();
  if (auto done = append(validation->files); !done) return done.error();
  if (!validationNames.empty() && data.bytes == data.trainBytes)
    return invalidInput(validationNames.front(), "the text to evaluate on is empty");
  data.sha256 = hash.finish();
  data.file = folder / data.sha256;
  if (!part.keepAs(data.file)) return part.error();
  return data;
}

std::optional<Error> objectionTo(const PackedData& data, std::int64_t vocab) {
  if (data.leastToken < 0)
    return invalidInput("the training data", fmt::format("holds token {}", data.leastToken), "tokens are numbers from 0 on; write the files again");
  if (data.greatestToken < vocab) return std::nullopt;
  return invalidInput("the training data", fmt::format("holds {} {}, outside of the model's vocabulary of {}", data.isText ? "byte" : "token", data.greatestToken, vocab),
                      data.isText ? "train a model with a vocabulary of 256 on text" : "train the model that the tokens were made for");
}

Bundle bundleOf(const PackedData& data) {
  return {.files = {{.name = kDataFile, .file = data.file, .sha256 = data.sha256, .bytes = data.bytes}},
          .directory = "data/" + data.sha256.substr(0, 32)};
}

}  // namespace evenkeel
