// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/document/recovery_writer.h"

#include <unistd.h>

namespace evenkeel::gui {

RecoveryWriter::RecoveryWriter(std::filesystem::path file)
    : file_(std::move(file)), thread_([this](const std::stop_token& stop) { work(stop); }) {}

RecoveryWriter::~RecoveryWriter() { remove(); }

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

/// It begins with the process that owns it and the path of the document that it stands for.
void RecoveryWriter::writeNow(const Version& version) const {
  Json json;
  json["pid"] = ::getpid();
  json["path"] = version.originalPath;
  json["project"] = toJson(*version.project);
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  std::filesystem::permissions(file_.parent_path(), std::filesystem::perms::owner_all, ignored);
  (void)writeFileAtomically(file_, json.dump(), true);
}

}  // namespace evenkeel::gui
