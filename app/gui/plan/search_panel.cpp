// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/plan/search_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <algorithm>
#include <cmath>

#include "app/gui/plan/incumbent_plot.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr int kMostSteps = 6, kLines = 12;  // that fit beside the curve

QString clockText(Seconds time) {
  const auto seconds = static_cast<int>(time.value);
  return QStringLiteral("%1:%2").arg(seconds / 60).arg(seconds % 60, 2, 10, QLatin1Char('0'));
}

QString stepsText(const SearchSnapshot& search) {
  QStringList lines;
  const std::size_t first = search.steps.size() > kMostSteps ? search.steps.size() - kMostSteps : 0;
  for (std::size_t i = first; i < search.steps.size(); ++i) {
    const SearchSnapshot::Step& step = search.steps[i];
    const bool runs = search.isRunning && i + 1 == search.steps.size();
    lines << QStringLiteral("%1 %2  <span style='color:gray'>%3</span>")
                 .arg(runs ? QStringLiteral("▶") : QStringLiteral("✓"), QString::fromStdString(step.name).toHtmlEscaped(),
                      timeText(step.end - step.begin));
  }
  return lines.join(QStringLiteral("<br>"));
}

QString countersText(const SearchSnapshot& search) {
  const Counters& counters = search.counters;
  std::int64_t pruned = 0;
  QStringList reasons;
  for (const auto& [reason, count] : counters.pruned) {
    pruned += count;
    reasons << SearchPanel::tr("%1 %2").arg(exactText(count), QString::fromStdString(reason));
  }
  if (counters.evaluated == 0 && pruned == 0) return {};
  QString text = SearchPanel::tr("%1 plans evaluated, %2 a second")
                     .arg(exactText(counters.evaluated), countText(std::round(search.evaluatedPerSecond)));
  if (counters.cached > 0) text += SearchPanel::tr(", %1 known before").arg(exactText(counters.cached));
  if (pruned > 0) text += SearchPanel::tr("\npruned: %1").arg(reasons.join(QStringLiteral(", ")));
  return text;
}

QString finderText(const SearchSnapshot& search) {
  if (search.curve.empty()) return {};
  const SearchSnapshot::Point& best = search.curve.back();
  const QString improvements = search.curve.size() == 1 ? SearchPanel::tr("the first plan")
                                                        : SearchPanel::tr("%1 improvements").arg(search.curve.size() - 1);
  if (best.finder.empty()) return SearchPanel::tr("Found after %1; %2").arg(timeText(best.found), improvements);
  return SearchPanel::tr("Found by \"%1\" after %2; %3")
      .arg(QString::fromStdString(best.finder), timeText(best.found), improvements);
}

QLabel* makeLabel(const QString& name, QPalette::ColorRole role) {
  auto* label = new QLabel;
  label->setObjectName(name);
  label->setForegroundRole(role);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  return label;
}

}  // namespace

QString progressText(const SearchSnapshot& search) {
  QStringList parts;
  if (search.isRunning || search.elapsed.value > 0) {
    const QString now = search.isRunning ? clockText(search.elapsed) : timeText(search.elapsed);
    parts << (search.isRunning && search.timeLimit ? SearchPanel::tr("%1 of %2").arg(now, clockText(*search.timeLimit))
              : search.isRunning                   ? now
                                                   : SearchPanel::tr("searched for %1").arg(now));
  }
  if (const auto gap = search.gap()) {
    constexpr double kNothing = 1e-9;  // what rounding leaves of a gap
    parts << (*gap <= kNothing ? SearchPanel::tr("proved to be the fastest")
                               : SearchPanel::tr("gap %1 to the bound %2").arg(percentText(*gap), timeText(*search.bound)));
  } else if (search.bound) {
    parts << SearchPanel::tr("bound %1").arg(timeText(*search.bound));
  }
  return parts.join(QStringLiteral("  ·  "));
}

double progressOf(const SearchSnapshot& search) {
  return search.timeLimit ? std::clamp(search.elapsed / *search.timeLimit, 0.0, 1.0) : -1;
}

SearchPanel::SearchPanel(QWidget* parent)
    : QWidget(parent),
      plot_(new IncumbentPlot),
      progress_(makeLabel(QStringLiteral("searchProgress"), QPalette::WindowText)),
      steps_(makeLabel(QStringLiteral("searchSteps"), QPalette::WindowText)),
      counters_(makeLabel(QStringLiteral("searchCounters"), QPalette::PlaceholderText)),
      finder_(makeLabel(QStringLiteral("searchFinder"), QPalette::WindowText)) {
  setObjectName(QStringLiteral("searchPanel"));
  setFixedHeight(kLines * (fontMetrics().height() + 1));  // what is said beside the curve must not move the page
  auto* facts = new QVBoxLayout;
  facts->setSpacing(6);
  facts->addWidget(progress_);
  facts->addWidget(finder_);
  facts->addWidget(steps_);
  facts->addStretch();
  facts->addWidget(counters_);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(14);
  layout->addWidget(plot_, 3);
  layout->addLayout(facts, 2);
}

void SearchPanel::setPlaceholder(const QString& text) { plot_->setPlaceholder(text); }

void SearchPanel::setSearch(const SearchSnapshot& search) {
  plot_->setSearch(search);
  progress_->setText(progressText(search));
  steps_->setText(stepsText(search));
  counters_->setText(countersText(search));
  finder_->setText(finderText(search));
}

}  // namespace evenkeel::gui
