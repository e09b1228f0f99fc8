// SPDX-License-Identifier: GPL-3.0-or-later
// Text to tokens and back by SentencePiece. It lives in this program because the worker cannot hold it: both it and LibTorch bring a protobuf along.
#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "app/cli/command.h"
#include "core/base/token_files.h"
#include "launcher/deploy/data.h"

namespace evenkeel::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostDocumentBytes = std::uintmax_t{256} << 20U;
constexpr std::size_t kMostSentenceBytes = 4096;  // of one piece of text that training sees; longer lines are cut

struct Arguments {
  std::vector<std::string> names;
  std::string model, out, kind = "bpe";
  int vocab = 8000;
  std::int64_t most = 1000;
  bool eachLine = false, asJson = false;
};

/// The lines of files, one after the other, cut where they are very long.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::vector<fs::path> files) : files_(std::move(files)) { Next(); }
  bool done() const override { return isDone_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }
  void Next() override {
    do {
      while (rest_.empty()) {
        if (stream_.is_open() && std::getline(stream_, rest_)) continue;
        if (next_ == files_.size()) {
          isDone_ = true;
          return;
        }
        stream_ = std::ifstream(files_[next_++], std::ios::binary);
      }
      std::size_t end = std::min(rest_.size(), kMostSentenceBytes);
      while (end < rest_.size() && end > 1 && (static_cast<unsigned char>(rest_[end]) & 0xc0U) == 0x80U) --end;  // not within a letter
      line_ = rest_.substr(0, end);
      rest_.erase(0, end);
    } while (line_.find('\0') != std::string::npos);  // no text
  }

 private:
  std::vector<fs::path> files_;
  std::size_t next_ = 0;
  std::ifstream stream_;
  std::string line_, rest_;
  bool isDone_ = false;
};

Result<void> loaded(sentencepiece::SentencePieceProcessor& model, const std::string& file) {
  const auto bytes = readFile(file);  // its own errors name lines of its source
  if (!bytes) return bytes.error();
  if (!model.LoadFromSerializedProto(*bytes).ok()) return invalidInput(file, "is no SentencePiece model", "make one with `evenkeel-cli tokenize train`");
  return {};
}

/// What SentencePiece says of a vocabulary that does not fit the text, in our words: its own name lines of its source and options that
/// are not ours.
Error refusalOf(const std::string& said, int vocab) {
  const auto numberBehind = [&](std::string_view words) -> std::string {
    const std::size_t at = said.find(words);
    if (at == std::string::npos) return {};
    const std::size_t begin = said.find_first_of("0123456789", at + words.size());
    return begin == std::string::npos ? std::string() : said.substr(begin, said.find_first_not_of("0123456789", begin) - begin);
  };
  const std::string option = fmt::format("--vocab {}", vocab);
  if (const std::string least = numberBehind(" vs "); said.find("smaller than required_chars") != std::string::npos && !least.empty())
    return invalidInput(option, fmt::format("is too small: the letters of this text, 256 bytes and 3 marks are {} pieces", least), "take --vocab " + least + " or more");
  if (const std::string most = numberBehind("value <="); !most.empty())
    return invalidInput(option, "is too large: this text does not give so many pieces", "take --vocab " + most + " or less, or more text");
  const std::size_t source = said.find("] ");
  return invalidInput("tokenize train", "SentencePiece refuses: " + (source == std::string::npos ? said : said.substr(source + 2)));
}

/// Where text stops being UTF-8; nothing if it does not.
std::optional<std::size_t> notUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
    if (length == 0 || i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      const unsigned least = k > 1 ? 0x80 : first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;  // no longer than need be
      const unsigned most = k > 1 ? 0xbf : first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;   // no surrogates, nothing beyond Unicode
      if (next < least || next > most) return i;
    }
    i += length;
  }
  return std::nullopt;
}

int train(const Arguments& arguments) {
  if (auto checked = checkOutput("--out", arguments.out); !checked) return report(checked.error());
  auto files = textFilesNamed(arguments.names);
  if (!files) return report(files.error());
  Lines lines(*std::move(files));
  if (lines.done()) return report(invalidInput(arguments.names.front(), "holds no text"));
  std::string model;
  // Nothing of the text is lost: no normalisation, spaces kept, bytes where no piece fits (a line's end too).
  const auto status = sentencepiece::SentencePieceTrainer::Train({{"vocab_size", std::to_string(arguments.vocab)},
                                                                  {"model_type", arguments.kind},
                                                                  {"byte_fallback", "true"},
                                                                  {"normalization_rule_name", "identity"},
                                                                  {"remove_extra_whitespaces", "false"},
                                                                  {"add_dummy_prefix", "false"},
                                                                  {"max_sentence_length", std::to_string(kMostSentenceBytes)},
                                                                  {"minloglevel", "2"}},
                                                                 &lines, &model);
  if (!status.ok()) return report(refusalOf(status.ToString(), arguments.vocab));
  if (auto written = writeFileAtomically(arguments.out, model); !written) return report(written.error());
  fmt::print("{} pieces\nwritten: {}; next: evenkeel-cli tokenize encode ... --model {} --out NAME\n", arguments.vocab, arguments.out, arguments.out);
  return kOk;
}

/// Writes the tokens and counts them; the index comes last.
class TokenWriter {
 public:
  TokenWriter(const fs::path& file, TokenType type) : type_(type), stream_(file, std::ios::binary) {}
  void add(const std::vector<int>& tokens) {
    std::string bytes;
    for (const int token : tokens) {
      for (int b = 0; b < bytesOf(type_); ++b) bytes += static_cast<char>(static_cast<std::uint32_t>(token) >> (8 * b) & 0xffU);
    }
    stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    lengths_.push_back(static_cast<std::int32_t>(tokens.size()));
    count_ += static_cast<std::int64_t>(tokens.size());
  }
  bool finish() { return static_cast<bool>(stream_.flush()); }
  [[nodiscard]] const std::vector<std::int32_t>& lengths() const { return lengths_; }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  TokenType type_;
  std::ofstream stream_;
  std::vector<std::int32_t> lengths_;
  std::int64_t count_ = 0;
};

/// Every file is a document, or every line that is not empty. What is no UTF-8 is refused: SentencePiece would put other letters into its place.
Result<void> eachDocument(const std::vector<fs::path>& files, bool eachLine, const std::function<void(const std::string&)>& take) {
  const auto checked = [](const fs::path& file, const std::string& text, std::uintmax_t before) -> Result<void> {
    const auto place = notUtf8(text);
    if (!place) return {};
    return invalidInput(file.string(), fmt::format("is no UTF-8 text: byte {}", before + *place), "convert it (iconv), or leave it out");
  };
  for (const fs::path& file : files) {
    if (!eachLine) {
      std::error_code failure;
      if (fs::file_size(file, failure) > kMostDocumentBytes && !failure)
        return invalidInput(file.string(), fmt::format("has more than {} MiB", kMostDocumentBytes >> 20U), "split it, or let every line be a document (--lines)");
      const auto text = readFile(file);
      if (!text) return text.error();
      if (auto good = checked(file, *text, 0); !good) return good;
      if (!text->empty()) take(*text);
      continue;
    }
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return invalidInput(file.string(), fmt::format("cannot be opened: {}", std::strerror(errno)));
    std::uintmax_t before = 0;
    for (std::string line; std::getline(stream, line); before += line.size() + 1) {
      if (auto good = checked(file, line, before); !good) return good;
      if (!line.empty()) take(line);
    }
    if (stream.bad()) return failed(file.string(), "cannot be read to its end");
  }
  return {};
}

int encode(const Arguments& arguments) {
  const bool hasEnding = arguments.out.ends_with(".bin") || arguments.out.ends_with(".idx");
  const std::string stem = hasEnding ? arguments.out.substr(0, arguments.out.size() - 4) : arguments.out;
  const fs::path bin = stem + ".bin", idx = stem + ".idx", part = stem + ".bin.part";
  std::error_code isNoFolder;
  if (fs::is_directory(stem, isNoFolder)) return report(invalidInput("--out " + arguments.out, "is a folder, whose name `launch --data` could not tell from the tokens'", "take another name, or one inside of it"));
  for (const fs::path& file : {bin, idx}) {
    if (auto checked = checkOutput("--out", file.string()); !checked) return report(checked.error());
  }
  sentencepiece::SentencePieceProcessor model;
  if (auto done = loaded(model, arguments.model); !done) return report(done.error());
  const auto files = textFilesNamed(arguments.names);
  if (!files) return report(files.error());
  const TokenType type = model.GetPieceSize() <= 65'536 ? TokenType::Uint16 : TokenType::Int32;
  TokenWriter writer(part, type);
  auto said = std::chrono::steady_clock::now();
  std::vector<int> tokens;
  auto done = eachDocument(*files, arguments.eachLine, [&](const std::string& text) {
    (void)model.Encode(text, &tokens);
    if (model.eos_id() >= 0) tokens.push_back(model.eos_id());
    writer.add(tokens);
    if (const auto now = std::chrono::steady_clock::now(); now - said > std::chrono::seconds(1)) {
      said = now;
      note("{} documents, {} tokens\n", writer.lengths().size(), writer.count());
    }
  });
  if (done && writer.count() == 0) done = invalidInput(arguments.names.front(), "holds no text");
  if (done && !writer.finish()) done = failed(part.string(), "cannot be written: the disk is full or broken");
  std::error_code failure;
  if (done) {
    fs::remove(idx, failure);  // between the two renames nothing fits together, and nobody may think so
    fs::rename(part, bin, failure);
    done = failure ? Result<void>(failed(bin.string(), failure.message())) : writeFileAtomically(idx, tokenIndex(type, writer.lengths()));
  }
  if (!done) {
    fs::remove(part, failure);
    return report(done.error());
  }
  if (arguments.asJson) {
    printJson({{"bin", bin.string()}, {"idx", idx.string()}, {"type", name(type)}, {"documents", writer.lengths().size()}, {"tokens", writer.count()}, {"vocab", model.GetPieceSize()}});
    return kOk;
  }
  fmt::print("{} documents, {} tokens ({}) of a vocabulary of {}\nwritten: {} and {}; next: evenkeel-cli launch plan.json --data {}, of a model with \"vocab\": {}\n", writer.lengths().size(), writer.count(),
             name(type), model.GetPieceSize(), bin.string(), idx.string(), stem, model.GetPieceSize());
  return kOk;
}

int decode(const Arguments& arguments) {
  sentencepiece::SentencePieceProcessor model;
  if (auto done = loaded(model, arguments.model); !done) return report(done.error());
  const auto named = tokenFilesNamed(arguments.names.front());
  if (!named) return report(invalidInput(arguments.names.front(), "is no pair of .bin and .idx files", "name one that `evenkeel-cli tokenize encode` has written"));
  const auto files = openTokenFiles(*named);
  if (!files) return report(files.error());
  std::ifstream stream(files->bin, std::ios::binary);
  const auto width = static_cast<std::size_t>(bytesOf(files->type));
  const std::int64_t count = std::min(files->tokens, arguments.most);
  std::string bytes(static_cast<std::size_t>(count) * width, '\0');
  if (!stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return report(failed(files->bin.string(), "cannot be read"));
  std::vector<int> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t token = tokenAt(reinterpret_cast<const std::uint8_t*>(bytes.data()) + static_cast<std::size_t>(i) * width, files->type);
    if (token < 0 || token >= model.GetPieceSize())
      return report(invalidInput(files->bin.string(), fmt::format("token {} is {}, and {} knows {}", i, token, arguments.model, model.GetPieceSize()), "name the model that it was made with"));
    tokens.push_back(static_cast<int>(token));
  }
  std::string text;
  (void)model.Decode(tokens, &text);
  fmt::print("{}", text);
  return kOk;
}

}  // namespace

void addTokenize(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("tokenize", "Text to the tokens of a SentencePiece model, in Megatron-LM's .bin and .idx files, which `launch --data` takes");
  command->require_subcommand(1);
  auto arguments = std::make_shared<Arguments>();
  const auto add = [&](const char* name, const char* what, const char* names, int (*function)(const Arguments&)) {
    CLI::App* one = command->add_subcommand(name, what);
    one->add_option("names", arguments->names, names)->required();
    one->callback([arguments, function, &outcome] { outcome.exitCode = function(*arguments); });
    return one;
  };
  CLI::App* training = add("train", "Make a model from text", "Text files and folders", train);
  training->add_option("--vocab", arguments->vocab, "Pieces of the model (default 8000)")->check(CLI::Range(260, 1'000'000));
  training->add_option("--kind", arguments->kind, "bpe or unigram (default bpe)")->check(CLI::IsMember({"bpe", "unigram"}));
  training->add_option("--out", arguments->out, "File of the model")->required();
  CLI::App* encoding = add("encode", "Write the tokens of text, an end-of-text token behind every document", "Text files and folders; every file is a document", encode);
  encoding->add_option("--model", arguments->model, "SentencePiece model: of `tokenize train`, or of a public model (tokenizer.model)")->required();
  encoding->add_option("--out", arguments->out, "NAME of NAME.bin and NAME.idx")->required();
  encoding->add_flag("--lines", arguments->eachLine, "Every line is a document");
  encoding->add_flag("--json", arguments->asJson, "What was written as one JSON document on stdout");
  CLI::App* decoding = add("decode", "Show the text of tokens", "NAME of NAME.bin and NAME.idx", decode);
  decoding->add_option("--model", arguments->model, "SentencePiece model")->required();
  decoding->add_option("--first", arguments->most, "So many tokens from the beginning (default 1000)")->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}));
}

}  // namespace evenkeel::cli
