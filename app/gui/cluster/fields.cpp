// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/fields.h"

#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>
#include <QToolTip>

#include "app/gui/cluster/cluster_edits.h"
#include "app/gui/cluster/cluster_text.h"
#include "core/base/words.h"

namespace evenkeel::gui {

QFormLayout* makeForm(QWidget* widget) {
  auto* form = new QFormLayout(widget);
  form->setContentsMargins(0, 0, 0, 0);
  form->setVerticalSpacing(5);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  return form;
}

void renameItem(Workspace& workspace, TextField& field, const std::string& from, const QString& to) {
  std::optional<Error> error;
  workspace.document.edit(TextField::tr("Rename %1").arg(text(from)), [&](Project& project) {
    if (auto renamed = rename(project, from, to.toStdString()); !renamed) error = renamed.error();
  });
  if (!error) return workspace.selection.setItems({to.toStdString()});
  workspace.messages.showError(*error);
  field.setValue(text(from));
}

NumberField::NumberField(const QString& name, const QString& title, const QString& unit, double least, double most,
                         QWidget* parent)
    : QWidget(parent), title_(title), least_(least), most_(most), edit_(new QLineEdit), reset_(new QToolButton) {
  edit_->setObjectName(name);
  edit_->setAccessibleName(title);
  edit_->setAlignment(Qt::AlignRight);
  edit_->setMinimumWidth(60);
  auto* unitLabel = new QLabel(unit);
  unitLabel->setMinimumWidth(fontMetrics().horizontalAdvance(QStringLiteral("GB/s ")));
  reset_->setObjectName(name + QStringLiteral("Reset"));
  reset_->setText(QStringLiteral("↺"));
  reset_->setAutoRaise(true);
  reset_->setToolTip(tr("Unlike the device table: set it back"));
  reset_->setAccessibleName(tr("Reset: %1").arg(title));
  QSizePolicy keeps = reset_->sizePolicy();
  keeps.setRetainSizeWhenHidden(true);  // the column stays straight
  reset_->setSizePolicy(keeps);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addWidget(edit_, 1);
  layout->addWidget(unitLabel);
  layout->addWidget(reset_);
  setFocusProxy(edit_);
  connect(edit_, &QLineEdit::editingFinished, this, &NumberField::finish);
  connect(reset_, &QToolButton::clicked, this, &NumberField::resetAsked);
  setValue(std::nullopt);
}

void NumberField::setValue(std::optional<double> value, bool isUnlike) {
  value_ = value;
  if (!edit_->hasFocus() || !edit_->isModified()) edit_->setText(value ? numberText(*value) : QString());
  edit_->setPlaceholderText(value ? QString() : tr("(mixed)"));
  QFont font = edit_->font();
  font.setBold(isUnlike);
  edit_->setFont(font);
  reset_->setVisible(isUnlike);
}

void NumberField::setSource(const QString& source) { edit_->setToolTip(source); }

void NumberField::finish() {
  if (!edit_->isModified()) return;
  edit_->setModified(false);
  const QString typed = edit_->text().trimmed();
  const auto number = parseNumber<double>(typed.toStdString());
  const bool isPossible = number && *number >= least_ && *number <= most_;
  if (isPossible && (!value_ || numberText(*value_) != numberText(*number))) return emit edited(*number);
  edit_->setText(value_ ? numberText(*value_) : QString());  // what cannot be is not kept
  if (isPossible || typed.isEmpty()) return;
  QToolTip::showText(edit_->mapToGlobal(QPoint(0, edit_->height())),
                     tr("%1: \"%2\" cannot be; a number from %3 to %4").arg(title_, typed, numberText(least_), numberText(most_)), edit_);
}

TextField::TextField(const QString& name, const QString& title, const QString& placeholder, QWidget* parent)
    : QLineEdit(parent), placeholder_(placeholder) {
  setObjectName(name);
  setAccessibleName(title);
  connect(this, &QLineEdit::editingFinished, this, [this] {
    if (!isModified()) return;
    setModified(false);
    if (text().trimmed() != shown_ || !placeholderText().isEmpty()) emit edited(text().trimmed());
  });
}

void TextField::setValue(const std::optional<QString>& value) {
  shown_ = value.value_or(QString());
  setPlaceholderText(value ? placeholder_ : tr("(mixed)"));
  if (!hasFocus() || !isModified()) setText(shown_);
}

}  // namespace evenkeel::gui
