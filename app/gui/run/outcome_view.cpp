// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/outcome_view.h"

#include <QFontDatabase>
#include <QLabel>
#include <QPainter>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "app/gui/theme/theme.h"
#include "app/gui/widgets/message_line.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr int kMostLinesShown = 8;  // more scroll

QString text(const std::string& words) { return QString::fromStdString(words); }

}  // namespace

QString stopText(const StopReport& report) {
  QStringList lines;
  for (const StopReport::Node& node : report.nodes) {
    if (node.stopped) {
      lines << OutcomeView::tr("✓ %1: nothing of the run is left").arg(text(node.node));
      continue;
    }
    QStringList left;
    for (const int pid : node.left) left << QString::number(pid);
    QString line =
        left.isEmpty()
            ? OutcomeView::tr("✕ %1: not known to have stopped").arg(text(node.node))
            : OutcomeView::tr("✕ %1: these processes are left: %2").arg(text(node.node), left.join(QStringLiteral(", ")));
    if (!node.problem.empty()) line += QStringLiteral(" (") + text(node.problem) + QLatin1Char(')');
    lines << line;
  }
  return lines.join(QLatin1Char('\n'));
}

QString failureText(const JobFailure& failure) {
  const QString who =
      failure.rank < 0 ? text(failure.node) : OutcomeView::tr("Rank %1 on %2").arg(failure.rank).arg(text(failure.node));
  const QString when = failure.lastStep > 0
                           ? OutcomeView::tr("failed; the last complete step is %1").arg(exactText(failure.lastStep))
                           : OutcomeView::tr("failed before the first step was done");
  return who + QLatin1Char(' ') + when + QStringLiteral(".\n") + text(failure.reason);
}

OutcomeView::OutcomeView(QWidget* parent) : QFrame(parent), text_(new QLabel), lines_(new QPlainTextEdit), resume_(new QPushButton) {
  setObjectName(QStringLiteral("outcome"));
  setAccessibleName(tr("Outcome"));
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
  text_->setObjectName(QStringLiteral("outcomeText"));
  text_->setWordWrap(true);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  lines_->setObjectName(QStringLiteral("outcomeLines"));
  lines_->setAccessibleName(tr("Last lines of the failed rank"));
  lines_->setReadOnly(true);
  lines_->setLineWrapMode(QPlainTextEdit::NoWrap);
  lines_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  lines_->hide();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(12, 8, 8, 8);
  layout->addWidget(text_);
  layout->addWidget(lines_);
  resume_->setObjectName(QStringLiteral("resumeRun"));
  resume_->setToolTip(tr("Put its last checkpoint into the form at the left: launch the same plan again, or another one of the same model"));
  layout->addWidget(resume_, 0, Qt::AlignLeft);
  connect(resume_, &QPushButton::clicked, this, [this] { emit resumeRequested(checkpoint_); });
  hide();
}

void OutcomeView::show(const SessionState& state) {
  QStringList parts;
  tone_ = Tone::Quiet;
  const auto worsen = [this](Tone tone) { tone_ = std::max(tone_, tone); };
  const bool objects = std::ranges::any_of(state.rows, [](const PreflightRow& row) { return !row.passed; });
  if (state.failure) {
    parts << QStringLiteral("✕ ") + failureText(*state.failure);
    worsen(Tone::Error);
  }
  if (state.error && state.error->code == Error::Code::Cancelled) parts << tr("The start was given up; nothing is left running.");
  else if (state.error && objects) parts << tr("✕ Nothing was started: see the checks that object.");
  else if (state.error && !state.failure) parts << QStringLiteral("✕ ") + text(state.error->text());
  if (state.error && state.error->code != Error::Code::Cancelled) worsen(Tone::Error);
  for (const auto& [node, why] : state.lost) {
    parts << tr("⚠ No connection to %1 (%2). The job is believed to go on; trying again.").arg(text(node), text(why));
    worsen(Tone::Warning);
  }
  if (state.isStopping) parts << tr("Stopping on all nodes …");
  if (state.stopError) {
    parts << tr("✕ The job could not be stopped: %1").arg(text(state.stopError->text()));
    worsen(Tone::Error);
  }
  if (state.stopReport) {
    parts << stopText(*state.stopReport);
    if (!state.stopReport->complete()) worsen(Tone::Error);
  }
  if (state.phase == SessionPhase::Detached)
    parts << tr("Detached: the job goes on. Open it in the list of runs to follow it again.");
  const QString all = parts.join(QStringLiteral("\n"));
  if (text_->text() != all) {
    text_->setText(all);
    update();
  }
  const QString last = text(state.lastLines);
  if (lines_->toPlainText() != last) {
    lines_->setPlainText(last);
    const int count = std::min(kMostLinesShown, lines_->blockCount());
    lines_->setFixedHeight(lines_->fontMetrics().lineSpacing() * count + 24);
    lines_->moveCursor(QTextCursor::End);
  }
  lines_->setVisible(!last.isEmpty());
  const bool endedEarly = state.phase == SessionPhase::Over && (state.job == JobState::Failed || state.job == JobState::Stopped);
  checkpoint_ = endedEarly ? text(state.checkpoint) : QString();
  resume_->setText(tr("Go on from step %1…").arg(exactText(state.checkpointStep)));
  resume_->setVisible(!checkpoint_.isEmpty());
  setVisible(!all.isEmpty() || !checkpoint_.isEmpty());
}

void OutcomeView::paintEvent(QPaintEvent*) {
  const Colours& c = colours(palette());
  QPainter painter(this);
  paintMessageGround(painter, rect(),
                     tone_ == Tone::Error     ? c.error
                     : tone_ == Tone::Warning ? c.warning
                                              : c.information,
                     palette());
}

}  // namespace evenkeel::gui
