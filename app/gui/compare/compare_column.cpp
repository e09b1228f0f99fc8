// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/compare/compare_column.h"

#include <QGridLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>
#include <utility>

#include "app/gui/plan/search_panel.h"
#include "app/gui/plan/stage_cards.h"
#include "app/gui/theme/theme.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {

QString againstBestText(Seconds iteration, Seconds best) {
  if (iteration <= best) return CompareColumn::tr("best");
  return QStringLiteral("−") + percentText(1 - best / iteration);
}

CompareColumn::CompareColumn(const Planner& planner, QWidget* parent)
    : QFrame(parent),
      title_(new QLabel),
      state_(new QLabel),
      bar_(new QProgressBar),
      cancel_(new QPushButton(tr("Cancel"))),
      figures_(makeFigures()),
      reason_(new QLabel),
      cards_(new StageCards(StageCards::Detail::Compact)),
      left_(new QLabel),
      use_(new QPushButton(tr("Use this plan"))) {
  const QString name = QString::fromStdString(planner.name);
  setObjectName(QStringLiteral("column-") + name);
  setAccessibleName(name);
  setFrameShape(QFrame::StyledPanel);
  setMinimumWidth(300);
  title_->setText(name);
  title_->setToolTip(QString::fromStdString(planner.summary));
  QFont font = title_->font();
  font.setPointSizeF(font.pointSizeF() * 1.25);
  font.setBold(true);
  title_->setFont(font);
  state_->setObjectName(QStringLiteral("compareState"));
  state_->setForegroundRole(QPalette::PlaceholderText);
  bar_->setTextVisible(false);
  bar_->setMaximumHeight(10);
  cancel_->setObjectName(QStringLiteral("compareCancel"));
  reason_->setObjectName(QStringLiteral("compareReason"));
  reason_->setWordWrap(true);
  reason_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  use_->setObjectName(QStringLiteral("compareUse"));
  use_->setToolTip(tr("Keep it among the project's plans and show it"));
  for (QPushButton* button : {cancel_, use_}) button->setMinimumWidth(button->sizeHint().width() + 20);
  connect(cancel_, &QPushButton::clicked, this, &CompareColumn::cancelled);
  connect(use_, &QPushButton::clicked, this, &CompareColumn::used);

  auto* top = new QHBoxLayout;
  top->addWidget(title_);
  top->addWidget(state_, 1);
  top->addWidget(cancel_);
  top->addWidget(use_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(10, 8, 10, 8);
  layout->setSpacing(6);
  layout->addLayout(top);
  layout->addWidget(bar_);
  layout->addWidget(figures_);
  layout->addWidget(reason_);
  layout->addWidget(cards_);
  left_->setForegroundRole(QPalette::PlaceholderText);
  left_->setObjectName(QStringLiteral("compareLeft"));
  left_->hide();
  layout->addWidget(left_);
  if (!planner.deviations.empty()) {
    auto* deviations = new QLabel(tr("deviations from the original: %1").arg(planner.deviations.size()));
    QStringList lines;
    for (const std::string& deviation : planner.deviations) lines << QString::fromStdString(deviation);
    deviations->setToolTip(lines.join(QLatin1Char('\n')));
    deviations->setForegroundRole(QPalette::PlaceholderText);
    layout->addWidget(deviations);
  }
  layout->addStretch();
}

QWidget* CompareColumn::makeFigures() {
  const std::array<QString, FigureCount> captions = {tr("Iteration"), tr("Samples/s"), tr("Against best"), tr("Bubble"),
                                                     tr("MFU"),       tr("Memory"),    tr("Devices"),      tr("Search"),
                                                     tr("Gap"),       tr("Own view")};
  const std::array<QString, FigureCount> hints = {tr("Seconds of one iteration, as simulated"),
                                                  tr("Samples a second"),
                                                  tr("Samples a second that are missing against the best"),
                                                  tr("Waiting of the used devices until the slowest pipeline is done"),
                                                  tr("Model FLOP/s of the peak of all devices"),
                                                  tr("Of the fullest device, in parts of what it may use"),
                                                  tr("Devices that the plan uses"),
                                                  tr("How long the planner searched"),
                                                  tr("How much faster any plan could be, at most"),
                                                  tr("What the original's own estimator says of this plan")};
  auto* figures = new QWidget;
  auto* grid = new QGridLayout(figures);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setVerticalSpacing(2);
  grid->setHorizontalSpacing(16);
  // Two columns of captions, of the same width in every column of the page.
  const int rows = (FigureCount + 1) / 2;
  for (int i = 0; i < FigureCount; ++i) {
    auto* caption = new QLabel(captions[static_cast<std::size_t>(i)]);
    caption->setForegroundRole(QPalette::PlaceholderText);
    auto* value = new QLabel;
    value->setObjectName(QStringLiteral("figure%1").arg(i));
    value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    caption->setToolTip(hints[static_cast<std::size_t>(i)]);
    captions_[static_cast<std::size_t>(i)] = caption;
    values_[static_cast<std::size_t>(i)] = value;
    grid->addWidget(caption, i % rows, i / rows * 2);
    grid->addWidget(value, i % rows, i / rows * 2 + 1);
  }
  grid->setColumnStretch(1, 1);
  grid->setColumnStretch(3, 1);
  return figures;
}

void CompareColumn::setProgress(const SearchSnapshot& search) {
  const double part = progressOf(search);
  bar_->setRange(0, part < 0 ? 0 : 1000);
  if (part >= 0) bar_->setValue(static_cast<int>(part * 1000));
  QString text = progressText(search);
  if (!search.curve.empty()) text += QStringLiteral("  ·  ") + timeText(search.curve.back().iteration);
  state_->setText(text);
}

void CompareColumn::setContender(const Contender& contender, std::optional<Seconds> best) {
  using State = Contender::State;
  const bool isOpen = contender.state == State::Waiting || contender.state == State::Running;
  bar_->setVisible(contender.state == State::Running);
  cancel_->setVisible(isOpen);
  const bool hasPlan = contender.evaluation.has_value();
  figures_->setVisible(hasPlan);
  cards_->setVisible(hasPlan);
  use_->setVisible(hasPlan);
  reason_->setVisible(!hasPlan && !isOpen);
  if (contender.state == State::Waiting) state_->setText(tr("waits for its turn"));
  if (contender.state == State::Cancelled) {
    state_->setText(tr("cancelled"));
    reason_->setText(tr("It was cancelled before it began."));
  }
  if (contender.state != State::Done) return;
  if (hasPlan) return showPlan(contender, best);
  report::Compared one = comparedOf(contender);
  const std::string remedy = std::exchange(one.error->remedy, {});
  state_->setText(one.error->code == Error::Code::Infeasible  ? tr("no plan fits")
                  : one.error->code == Error::Code::Cancelled ? tr("stopped")
                                                              : tr("no plan"));
  QString text = QString::fromStdString(report::reasonOf(one)) + QStringLiteral(".");
  if (!remedy.empty()) text += QStringLiteral("\n") + tr("Way out: %1.").arg(QString::fromStdString(remedy));
  reason_->setText(text);
}

void CompareColumn::showPlan(const Contender& contender, std::optional<Seconds> best) {
  const Evaluation& evaluation = *contender.evaluation;
  const report::KeyFigures figures = report::keyFiguresOf(evaluation);
  const PlanFacts& facts = contender.facts;
  const bool isBest = best && figures.iteration <= *best;
  state_->setText(isBest ? tr("★ the fastest") : QString());
  const auto set = [&](Figure figure, const QString& text) { values_[figure]->setText(text); };
  set(Iteration, timeText(figures.iteration));
  set(Samples, QString::number(figures.samplesPerSecond, 'g', 4));
  set(AgainstBest, best ? againstBestText(figures.iteration, *best) : QString());
  set(Bubble, percentText(figures.bubbleFraction));
  set(Mfu, percentText(figures.mfu));
  set(WorstMemory, percentText(figures.worstMemory));
  set(Devices, tr("%1 of %2").arg(figures.usedDevices).arg(figures.usedDevices + figures.idleDevices));
  set(SearchTime, timeText(contender.search.elapsed) +
                      (figures.stopped.empty() ? QString() : tr(" (%1)").arg(QString::fromStdString(figures.stopped))));
  set(Gap, figures.gap ? percentText(*figures.gap) : tr("no bound"));
  set(OwnEstimate, figures.ownEstimate ? timeText(*figures.ownEstimate) : QStringLiteral("–"));
  cards_->setFacts(facts);
}

QStringList CompareColumn::figureTexts() const {
  QStringList texts;
  for (const QLabel* value : values_) texts << value->text();
  return texts;
}

void CompareColumn::showOnly(const std::vector<bool>& figures, const PlanFacts& facts, const QString& left) {
  for (std::size_t i = 0; i < figures.size(); ++i) {
    captions_[i]->setVisible(figures[i]);
    values_[i]->setVisible(figures[i]);
  }
  cards_->setFacts(facts);
  left_->setText(left);
  left_->setVisible(!left.isEmpty());
}

}  // namespace evenkeel::gui
