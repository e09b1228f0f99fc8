// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>

#include "launcher/job/job.h"

namespace evenkeel::gui {

/// Where the threads of jobs bring what only a person can settle, and the window's thread fetches it: host keys, pass phrases,
/// passwords and the questions of servers, one at a time. Secrets are kept in memory for as long as the window lives; nothing is
/// written but host keys that were trusted. Whatever is settled once is not asked again: nodes that share a key file share its
/// pass phrase.
class LoginDesk final : public LoginAdvisor {
 public:
  struct Question {
    int id = 0;
    std::string node;
    LoginObstacle obstacle;  // a changed host key is no question: it is there to be read, and its login has failed
    std::string problem;     // why the last answer could not be carried out; empty: it was not tried
  };

  ~LoginDesk() override { close(); }

  // ---- the window's thread
  /// The oldest that is open; the same until it is answered.
  [[nodiscard]] std::optional<Question> question() const;
  void trust(int id);
  void giveSecret(int id, std::string secret);
  void decline(int id);
  /// Declines all that is open and whatever comes later: nobody waits any more.
  void close();
  /// Forgets what was declined, for a new try.
  void beginAnew();

  // ---- the threads of jobs
  [[nodiscard]] std::map<std::string, std::string> secrets() override;
  [[nodiscard]] bool settle(const std::string& node, const LoginObstacle& obstacle, const std::stop_token& stop) override;

 private:
  enum class Answer { None, Yes, No };
  [[nodiscard]] Answer known(const LoginObstacle& obstacle) const;
  void answer(int id, const std::function<void(const Question&)>& take);

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable_any changed_;
  std::deque<Question> open_;
  std::map<std::string, std::string> secrets_;
  std::set<std::string> trusted_, declined_;  // by what was asked
  int lastId_ = 0;
  bool isClosed_ = false;
};

}  // namespace evenkeel::gui
