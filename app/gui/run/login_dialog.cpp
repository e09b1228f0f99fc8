// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/login_dialog.h"

#include <QDialogButtonBox>
#include <QFontDatabase>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStyle>
#include <QVBoxLayout>

#include "app/gui/theme/theme.h"
#include "launcher/ssh/quoting.h"

namespace evenkeel::gui {
namespace {

using Kind = LoginObstacle::Kind;
constexpr int kTextWidth = 520;

QString text(const std::string& words) { return QString::fromStdString(words); }

QLabel* paragraph(const QString& words) {
  auto* label = new QLabel(words);
  label->setWordWrap(true);
  label->setMinimumWidth(kTextWidth);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

/// Fingerprints and commands, to be compared letter by letter and copied.
QLabel* verbatim(const QString& name, const QString& words) {
  QLabel* label = paragraph(words);
  label->setObjectName(name);
  QFont font = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  font.setPointSizeF(label->font().pointSizeF());
  label->setFont(font);
  label->setContentsMargins(12, 0, 0, 0);
  return label;
}

QString keyScan(const LoginObstacle& obstacle) {
  return QStringLiteral("ssh-keyscan -p %1 %2 >> %3")
      .arg(obstacle.port)
      .arg(text(shellWord(obstacle.host)), text(shellWord(obstacle.knownHosts)));
}

}  // namespace

LoginDialog::LoginDialog(LoginDesk::Question question, LoginDesk& desk, QWidget* parent)
    : QDialog(parent), question_(std::move(question)), desk_(desk) {
  setObjectName(QStringLiteral("loginDialog"));
  setAttribute(Qt::WA_DeleteOnClose);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(18, 16, 18, 14);
  column->setSpacing(10);
  column->setSizeConstraint(QLayout::SetFixedSize);
  switch (question_.obstacle.kind) {
    case Kind::UnknownHostKey: askAboutUnknownKey(*column); break;
    case Kind::ChangedHostKey: tellOfChangedKey(*column); break;
    case Kind::PassPhrase:
    case Kind::Password:
    case Kind::Question: askForSecret(*column); break;
  }
  connect(this, &QDialog::rejected, this, [this] { desk_.decline(question_.id); });
}

QString LoginDialog::place() const {
  return tr("%1 (%2 port %3)").arg(text(question_.node), text(question_.obstacle.host)).arg(question_.obstacle.port);
}

void LoginDialog::addButtons(QVBoxLayout& column, const QString& agree, const QString& decline) {
  auto* buttons = new QDialogButtonBox;
  QPushButton* no = buttons->addButton(decline, QDialogButtonBox::RejectRole);
  no->setObjectName(QStringLiteral("loginDecline"));
  no->setDefault(true);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  if (!agree.isEmpty()) {
    QPushButton* yes = buttons->addButton(agree, QDialogButtonBox::ActionRole);
    yes->setObjectName(QStringLiteral("loginAgree"));
    yes->setAutoDefault(false);
    yes->setMinimumWidth(yes->sizeHint().width() + 20);
    connect(yes, &QPushButton::clicked, this, &LoginDialog::agree);
  }
  column.addSpacing(6);
  column.addWidget(buttons);
}

void LoginDialog::askAboutUnknownKey(QVBoxLayout& column) {
  const LoginObstacle& obstacle = question_.obstacle;
  setWindowTitle(tr("Unknown host key"));
  column.addWidget(paragraph(tr("%1 has not been reached from here before. It shows this key:").arg(place())));
  column.addWidget(verbatim(QStringLiteral("loginShownKey"), text(obstacle.shownKey)));
  column.addWidget(paragraph(tr("Compare it with what this command says on that machine itself, or ask whoever runs it:")));
  column.addWidget(verbatim(QStringLiteral("loginCommand"),
                            QStringLiteral("for k in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $k; done")));
  column.addWidget(paragraph(tr("Trusting it adds it to %1.").arg(text(obstacle.knownHosts))));
  if (!question_.problem.empty()) column.addWidget(paragraph(QStringLiteral("✕ ") + text(question_.problem)));
  addButtons(column, tr("Trust this key"), tr("Cancel"));
}

void LoginDialog::tellOfChangedKey(QVBoxLayout& column) {
  const LoginObstacle& obstacle = question_.obstacle;
  setWindowTitle(tr("Host key changed"));
  column.addWidget(
      paragraph(tr("✕ %1 does not show the key that %2 has for it. Someone may stand between you and that machine, or "
                   "it was set up anew. Nothing was sent to it.")
                    .arg(place(), text(obstacle.knownHosts))));
  column.addWidget(paragraph(tr("Known:")));
  column.addWidget(verbatim(QStringLiteral("loginKnownKey"), text(obstacle.knownKeys)));
  column.addWidget(paragraph(tr("Shown now:")));
  column.addWidget(verbatim(QStringLiteral("loginShownKey"), text(obstacle.shownKey)));
  column.addWidget(paragraph(
      tr("If whoever runs that machine confirms the new key, remove the old one with this command, then launch again:")));
  const std::string entry = obstacle.port == 22 ? obstacle.host : "[" + obstacle.host + "]:" + std::to_string(obstacle.port);
  column.addWidget(
      verbatim(QStringLiteral("loginCommand"),
               QStringLiteral("ssh-keygen -R %1 -f %2").arg(text(shellWord(entry)), text(shellWord(obstacle.knownHosts)))));
  addButtons(column, {}, tr("Close"));
}

void LoginDialog::askForSecret(QVBoxLayout& column) {
  const LoginObstacle& obstacle = question_.obstacle;
  const bool isPassPhrase = obstacle.kind == Kind::PassPhrase, isQuestion = obstacle.kind == Kind::Question;
  const QString title = isPassPhrase ? tr("Pass phrase") : isQuestion ? tr("Question of the server") : tr("Password");
  const QString label = isQuestion ? text(obstacle.question) : title;
  setWindowTitle(title);
  column.addWidget(paragraph(isPassPhrase ? tr("The key %1 is locked. It is needed for %2.").arg(text(obstacle.identity), place())
                             : isQuestion ? tr("%1 asks %2:").arg(place(), text(obstacle.user))
                                          : tr("%1 asks for the password of %2.").arg(place(), text(obstacle.user))));
  passPhrase_ = new QLineEdit;
  passPhrase_->setObjectName(QStringLiteral("loginPassPhrase"));
  passPhrase_->setAccessibleName(label);
  passPhrase_->setPlaceholderText(label);
  passPhrase_->setEchoMode(obstacle.isShown ? QLineEdit::Normal : QLineEdit::Password);
  column.addWidget(passPhrase_);
  if (obstacle.wasWrong) {
    QLabel* wrong = paragraph(isPassPhrase ? tr("✕ That pass phrase does not open it.") : tr("✕ The server refused that."));
    wrong->setObjectName(QStringLiteral("loginWrong"));
    QPalette tint;
    tint.setColor(QPalette::WindowText, colours(palette()).error);
    wrong->setPalette(tint);
    column.addWidget(wrong);
  }
  QLabel* note = paragraph(
      tr("It stays in memory until Evenkeel closes and is written nowhere. %1")
          .arg(isPassPhrase ? tr("With ssh-add the agent keeps it instead.") : tr("With ssh-copy-id a key does instead.")));
  note->setForegroundRole(QPalette::PlaceholderText);
  column.addWidget(note);
  addButtons(column, isPassPhrase ? tr("Unlock") : tr("Log in"), tr("Cancel"));
  auto* unlock = findChild<QPushButton*>(QStringLiteral("loginAgree"));
  unlock->setEnabled(false);
  connect(passPhrase_, &QLineEdit::textChanged, this, [this, unlock](const QString& typed) {
    unlock->setEnabled(!typed.isEmpty());
    unlock->setAutoDefault(!typed.isEmpty());
    unlock->setDefault(!typed.isEmpty());
  });
  passPhrase_->setFocus();
}

void LoginDialog::agree() {
  if (passPhrase_ != nullptr) {
    desk_.giveSecret(question_.id, passPhrase_->text().toStdString());
    const LoginObstacle& obstacle = question_.obstacle;
    emit settled(obstacle.kind == Kind::PassPhrase ? QStringLiteral("ssh-add ") + text(shellWord(obstacle.identity))
                                                   : QStringLiteral("ssh-copy-id -p %1 ").arg(obstacle.port) +
                                                         text(shellWord(obstacle.user + "@" + obstacle.host)));
  } else {
    desk_.trust(question_.id);
    emit settled(keyScan(question_.obstacle));
  }
  accept();
}

}  // namespace evenkeel::gui
