// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "app/gui/run/login_desk.h"

class QLineEdit;
class QVBoxLayout;

namespace evenkeel::gui {

/// Puts one question of a login to a person and answers it at the desk. Closing it declines; so does Return, unless a pass phrase
/// was typed. A changed host key can only be read: there is no button that passes it over.
class LoginDialog final : public QDialog {
  Q_OBJECT

 public:
  LoginDialog(LoginDesk::Question question, LoginDesk& desk, QWidget* parent = nullptr);
  [[nodiscard]] int questionId() const { return question_.id; }

 signals:
  /// The command that does by hand what was just agreed to.
  void settled(const QString& command);

 private:
  void askAboutUnknownKey(QVBoxLayout& column);
  void tellOfChangedKey(QVBoxLayout& column);
  void askForSecret(QVBoxLayout& column);
  void addButtons(QVBoxLayout& column, const QString& agree, const QString& decline);
  void agree();
  [[nodiscard]] QString place() const;

  const LoginDesk::Question question_;
  LoginDesk& desk_;
  QLineEdit* passPhrase_ = nullptr;
};

}  // namespace evenkeel::gui
