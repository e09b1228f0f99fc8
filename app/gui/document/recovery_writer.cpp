// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/document/recovery_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace evenkeel::gui {
namespace {

std::filesystem::path ownerOf(std::filesystem::path file) { return file.replace_extension(".owner"); }

}  // namespace

RecoveryWriter::RecoveryWriter(std::filesystem::path file)
    : file_(std::move(file)), thread_([this](const std::stop_token& stop) { work(stop); }) {}

RecoveryWriter::~RecoveryWriter() {
  remove();
  thread_ = {};  // no write after this
  if (owner_ < 0) return;
  std::error_code ignored;
  std::filesystem::remove(ownerOf(file_), ignored);
  ::close(owner_);
}

bool RecoveryWriter::isOwned(const std::filesystem::path& file) {
  const int owner = ::open(ownerOf(file).c_str(), O_RDONLY | O_CLOEXEC);
  if (owner < 0) return false;
  const bool isFree = ::flock(owner, LOCK_EX | LOCK_NB) == 0;
  ::close(owner);
  return !isFree;
}

void RecoveryWriter::discard(const std::filesystem::path& file) {
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  std::filesystem::remove(ownerOf(file), ignored);
}

void RecoveryWriter::write(std::shared_ptr<const Project> project, std::string originalPath) {
  const std::lock_guard lock(mutex_);
  next_ = Version{std::move(project), std::move(originalPath)};
  changed_.notify_all();
}

void RecoveryWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !isWriting_ && !next_; });
}

void RecoveryWriter::remove() {
  std::unique_lock lock(mutex_);
  next_.reset();
  changed_.wait(lock, [this] { return !isWriting_; });
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

void RecoveryWriter::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return next_.has_value(); })) {
    const Version version = *std::exchange(next_, std::nullopt);
    isWriting_ = true;
    lock.unlock();
    writeNow(version);
    lock.lock();
    isWriting_ = false;
    changed_.notify_all();
  }
}

/// It begins with the path of the document that it stands for.
void RecoveryWriter::writeNow(const Version& version) {
  Json json;
  json["path"] = version.originalPath;
  json["project"] = toJson(*version.project);
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  std::filesystem::permissions(file_.parent_path(), std::filesystem::perms::owner_all, ignored);
  if (owner_ < 0) {
    owner_ = ::open(ownerOf(file_).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (owner_ >= 0) ::flock(owner_, LOCK_EX | LOCK_NB);
  }
  (void)writeFileAtomically(file_, json.dump(), true);
}

}  // namespace evenkeel::gui
