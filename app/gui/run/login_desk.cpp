// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/login_desk.h"

#include <algorithm>

namespace evenkeel::gui {
namespace {

using Kind = LoginObstacle::Kind;

/// What is asked, so that it is asked once.
std::string subjectOf(const LoginObstacle& obstacle) {
  const std::string secret = obstacle.secretName();
  return secret.empty() ? obstacle.knownHosts + "\n" + obstacle.knownHostsLine : secret;
}

}  // namespace

std::optional<LoginDesk::Question> LoginDesk::question() const {
  const std::lock_guard lock(mutex_);
  return open_.empty() ? std::nullopt : std::optional(open_.front());
}

void LoginDesk::answer(int id, const std::function<void(const Question&)>& take) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(open_, id, &Question::id);
  if (found == open_.end()) return;  // whoever asked has gone
  const Question question = *found;
  open_.erase(found);
  take(question);
  changed_.notify_all();
}

void LoginDesk::trust(int id) {
  answer(id, [this](const Question& question) {
    if (question.obstacle.kind != Kind::UnknownHostKey) return;
    if (auto written = trustHostKey(question.obstacle); written) {
      trusted_.insert(subjectOf(question.obstacle));
    } else {
      Question again = question;
      again.id = ++lastId_;
      again.problem = written.error().text();
      open_.push_front(std::move(again));
    }
  });
}

void LoginDesk::giveSecret(int id, std::string secret) {
  answer(id, [&](const Question& question) { secrets_[question.obstacle.secretName()] = std::move(secret); });
}

void LoginDesk::decline(int id) {
  answer(id, [this](const Question& question) { declined_.insert(subjectOf(question.obstacle)); });
}

void LoginDesk::close() {
  const std::lock_guard lock(mutex_);
  isClosed_ = true;
  open_.clear();
  changed_.notify_all();
}

void LoginDesk::beginAnew() {
  const std::lock_guard lock(mutex_);
  declined_.clear();
}

std::map<std::string, std::string> LoginDesk::secrets() {
  const std::lock_guard lock(mutex_);
  return secrets_;
}

LoginDesk::Answer LoginDesk::known(const LoginObstacle& obstacle) const {
  const std::string subject = subjectOf(obstacle);
  if (isClosed_ || declined_.contains(subject)) return Answer::No;
  if (obstacle.kind == Kind::UnknownHostKey) return trusted_.contains(subject) ? Answer::Yes : Answer::None;
  return !obstacle.wasWrong && secrets_.contains(obstacle.secretName()) ? Answer::Yes : Answer::None;
}

bool LoginDesk::settle(const std::string& node, const LoginObstacle& obstacle, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (isClosed_) return false;
  if (obstacle.kind == Kind::ChangedHostKey) {
    open_.push_back({++lastId_, node, obstacle, {}});
    return false;
  }
  if (obstacle.wasWrong) secrets_.erase(obstacle.secretName());
  LoginObstacle asked = obstacle;  // after the first answer a wrong one is the next login's to find out
  while (true) {
    const Answer answer = known(asked);
    if (answer != Answer::None) return answer == Answer::Yes;
    const auto isSame = [&](const Question& question) { return subjectOf(question.obstacle) == subjectOf(asked); };
    if (std::ranges::none_of(open_, isSame)) open_.push_back({++lastId_, node, asked, {}});
    changed_.wait(lock, stop, [&] { return isClosed_ || std::ranges::none_of(open_, isSame); });
    if (stop.stop_requested()) {
      std::erase_if(open_, isSame);
      changed_.notify_all();
      return false;
    }
    asked.wasWrong = false;
  }
}

}  // namespace evenkeel::gui
