// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/model/model_page.h"

#include <QComboBox>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFormLayout>
#include <QHeaderView>
#include <QLabel>
#include <QListWidget>
#include <QMimeData>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QVBoxLayout>

#include "app/gui/widgets/quantity_text.h"
#include "app/gui/widgets/special_value.h"
#include "core/cost/memory.h"

namespace evenkeel::gui {
namespace {

constexpr int kTableWidth = 1000;  // on a wide screen numbers must not stand a hand's breadth from their names

QString text(std::string_view view) { return QString::fromUtf8(view.data(), static_cast<qsizetype>(view.size())); }

/// A box whose first entry leaves the choice open and says what that comes to.
template <class E>
QComboBox* openChoice(const QString& name, std::span<const std::pair<std::string_view, E>> words) {
  auto* box = new QComboBox;
  box->setObjectName(name);
  box->addItem(ModelPage::tr("automatic"), QVariant());
  for (const auto& [word, value] : words) box->addItem(text(word), static_cast<int>(value));
  return box;
}

QSpinBox* openNumber(const QString& name, int most) {
  auto* box = new QSpinBox;
  box->setObjectName(name);
  box->setRange(0, most);  // 0 leaves it open
  box->setSpecialValueText(ModelPage::tr("automatic"));
  box->setGroupSeparatorShown(true);
  selectSpecialValueOnClick(*box);
  return box;
}

void select(QComboBox* box, std::optional<int> value) { box->setCurrentIndex(value ? box->findData(*value) : 0); }

template <class E>
std::optional<E> chosen(const QComboBox* box) {
  const QVariant value = box->currentData();
  return value.isValid() ? std::optional<E>(static_cast<E>(value.toInt())) : std::nullopt;
}

}  // namespace

QString fitLine(const Project& project) {
  const auto problem = project.problem();
  if (!project.model) return ModelPage::tr("Choose a preset at the left, or drop a Hugging Face config.json here.");
  const Model& model = *project.model;
  const QString size = ModelPage::tr("%1 has %2 parameters.").arg(QString::fromStdString(model.name), exactText(parameterCount(model)));
  if (!problem) return size + ModelPage::tr(" Draw a cluster to see whether it fits.");
  const Precision precision = problem->training.precision;
  const std::int64_t perParameter = bytesOf(precision) + gradientBytesPerParameter() + optimizerBytesPerParameter(precision);
  const Bytes state{storedParameters(model, 0, model.unitCount()) * perParameter};
  Bytes largest{};
  for (const DeviceType& type : problem->cluster.deviceTypes) largest = std::max(largest, type.memory);
  const QString sum = ModelPage::tr(" Weights, gradients and optimizer state take %1 (%2 bytes a parameter in %3); ")
                          .arg(bytesText(state)).arg(perParameter).arg(text(name(precision)));
  return size + sum + (state < largest ? ModelPage::tr("the largest device holds %1, so one device can hold it.").arg(bytesText(largest))
                                       : ModelPage::tr("it fits no single device of this cluster (%1 at most).").arg(bytesText(largest)));
}

QString granularityLine(const Project& project) {
  const auto problem = project.problem();
  if (!problem) return {};
  const double layer = 1.0 / problem->model.layers, sample = 1.0 / static_cast<double>(problem->training.globalBatch);
  return ModelPage::tr("Balance: moving one layer moves %1 of the model, moving one sample moves %2 of the batch: data is %3 times finer.")
      .arg(percentText(layer), percentText(sample)).arg(layer / sample, 0, 'f', 1);
}

ModelPage::ModelPage(Workspace& workspace, QWidget* parent)
    : Page(workspace, parent), presets_(new QListWidget), title_(new QLabel), fit_(new QLabel), granularity_(new QLabel) {
  setObjectName(QStringLiteral("modelPage"));
  setAcceptDrops(true);
  QFont font = title_->font();
  font.setPointSizeF(font.pointSizeF() * 1.4);
  title_->setFont(font);
  auto* view = new QTableView;
  view->setObjectName(QStringLiteral("layerTable"));
  view->setAccessibleName(tr("Layers of the model"));
  view->setModel(&table_);
  view->setSelectionBehavior(QAbstractItemView::SelectRows);
  view->setAlternatingRowColors(true);
  view->verticalHeader()->hide();
  view->setMaximumWidth(kTableWidth);
  view->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  view->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  connect(&table_, &LayerTable::modelReset, view, [this, view] {  // as high as its rows
    view->setFixedHeight(view->horizontalHeader()->sizeHint().height() + view->rowHeight(0) * table_.rowCount() +
                         2 * view->frameWidth());
    view->setVisible(table_.rowCount() > 0);
  });
  view->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  for (QLabel* label : {fit_, granularity_}) {
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  fit_->setObjectName(QStringLiteral("fitLine"));
  granularity_->setObjectName(QStringLiteral("granularityLine"));
  auto* middle = new QVBoxLayout;
  middle->addWidget(title_);
  middle->addWidget(view);
  middle->addSpacing(6);
  middle->addWidget(fit_);
  middle->addWidget(granularity_);
  middle->addStretch();
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(12, 12, 12, 12);
  layout->setSpacing(14);
  layout->addWidget(makePresets());
  layout->addLayout(middle, 1);
  layout->addWidget(makeTraining());
  connect(&workspace_.document, &ProjectDocument::changed, this, &ModelPage::refresh);
  refresh();
}

QWidget* ModelPage::makePresets() {
  auto* column = new QWidget;
  column->setFixedWidth(190);
  presets_->setObjectName(QStringLiteral("presets"));
  presets_->setAccessibleName(tr("Model presets"));
  for (const Model& model : modelCatalogue()) presets_->addItem(QString::fromStdString(model.name));
  // The selection, not the current item: a list that gets the focus makes its first item the current one.
  connect(presets_, &QListWidget::itemSelectionChanged, this, [this] {
    const auto selected = presets_->selectedItems();
    if (isRefreshing_ || selected.isEmpty()) return;
    const QString name = selected.front()->text();
    auto model = modelFromArgument(name.toStdString());
    if (model) workspace_.document.edit(tr("Choose %1").arg(name), [&](Project& project) { project.model = *std::move(model); });
  });
  auto* file = new QPushButton(tr("From a file…"));
  file->setToolTip(tr("A model file or a Hugging Face config.json; you can also drop one here"));
  connect(file, &QPushButton::clicked, this, &ModelPage::chooseFile);
  auto* layout = new QVBoxLayout(column);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(new QLabel(tr("Presets")));
  layout->addWidget(presets_, 1);
  layout->addWidget(file);
  return column;
}

QWidget* ModelPage::makeTraining() {
  auto* column = new QWidget;
  column->setFixedWidth(250);
  batch_ = openNumber(QStringLiteral("globalBatch"), static_cast<int>(kMaxGlobalBatch));
  sequence_ = openNumber(QStringLiteral("sequenceLength"), static_cast<int>(kMaxSequence));
  precision_ = openChoice<Precision>(QStringLiteral("precision"), precisionWords());
  sync_ = openChoice<GradientSync>(QStringLiteral("gradientSync"), gradientSyncWords());
  attention_ = openChoice<AttentionKernel>(QStringLiteral("attention"), attentionWords());
  zero_ = new QComboBox;
  zero_->setObjectName(QStringLiteral("zeroStage"));
  zero_->addItem(tr("automatic"), QVariant());
  for (int stage = 0; stage <= 2; ++stage) zero_->addItem(QString::number(stage), stage);

  const auto edit = [this](const QString& what, const auto& change, const QString& mergeKey) {
    if (!isRefreshing_) workspace_.document.edit(tr("Change %1").arg(what), change, mergeKey);
  };
  const auto positive = [](int value) { return value > 0 ? std::optional<std::int64_t>(value) : std::nullopt; };
  connect(batch_, &QSpinBox::valueChanged, this, [=](int value) { edit(tr("global batch"), [&](Project& p) { p.training.globalBatch = positive(value); }, QStringLiteral("batch")); });
  connect(sequence_, &QSpinBox::valueChanged, this, [=](int value) { edit(tr("sequence length"), [&](Project& p) { p.training.sequenceLength = positive(value); }, QStringLiteral("sequence")); });
  connect(precision_, &QComboBox::currentIndexChanged, this, [=, this] { edit(tr("precision"), [&](Project& p) { p.training.precision = chosen<Precision>(precision_); }, {}); });
  connect(zero_, &QComboBox::currentIndexChanged, this, [=, this] { edit(tr("ZeRO stage"), [&](Project& p) { p.training.zeroStage = chosen<int>(zero_); }, {}); });
  connect(sync_, &QComboBox::currentIndexChanged, this, [=, this] { edit(tr("gradient sync"), [&](Project& p) { p.training.gradientSync = chosen<GradientSync>(sync_); }, {}); });
  connect(attention_, &QComboBox::currentIndexChanged, this, [=, this] { edit(tr("attention kernel"), [&](Project& p) { p.training.attention = chosen<AttentionKernel>(attention_); }, {}); });

  auto* form = new QFormLayout(column);
  form->setContentsMargins(0, 0, 0, 0);
  form->addRow(new QLabel(tr("Training")));
  form->addRow(tr("Global batch"), batch_);
  form->addRow(tr("Sequence"), sequence_);
  form->addRow(tr("Precision"), precision_);
  form->addRow(tr("ZeRO"), zero_);
  form->addRow(tr("Gradient sync"), sync_);
  form->addRow(tr("Attention"), attention_);
  return column;
}

void ModelPage::refresh() {
  const Project& project = workspace_.document.project();
  isRefreshing_ = true;
  title_->setText(project.model ? QString::fromStdString(project.model->name) : tr("No model yet"));
  const auto matching = project.model ? presets_->findItems(QString::fromStdString(project.model->name), Qt::MatchExactly) : QList<QListWidgetItem*>();
  if (matching.isEmpty()) presets_->clearSelection();
  else presets_->setCurrentItem(matching.front());

  // What is left open shows what it comes to.
  const auto problem = project.problem();
  const auto open = [&](const QString& value) { return problem ? tr("automatic: %1").arg(value) : tr("automatic"); };
  const Training training = problem ? problem->training : Training{};
  batch_->setSpecialValueText(open(QString::number(training.globalBatch)));
  batch_->setValue(static_cast<int>(project.training.globalBatch.value_or(0)));
  sequence_->setSpecialValueText(open(QString::number(training.sequenceLength)));
  sequence_->setValue(static_cast<int>(project.training.sequenceLength.value_or(0)));
  const auto toInt = [](const auto& choice) { return choice ? std::optional<int>(static_cast<int>(*choice)) : std::nullopt; };
  precision_->setItemText(0, open(text(name(training.precision))));
  select(precision_, toInt(project.training.precision));
  zero_->setItemText(0, open(QString::number(training.zeroStage)));
  select(zero_, project.training.zeroStage);
  sync_->setItemText(0, open(text(name(training.gradientSync))));
  select(sync_, toInt(project.training.gradientSync));
  attention_->setItemText(0, open(text(name(training.attention))));
  select(attention_, toInt(project.training.attention));

  Training shown = training;
  if (project.model && !problem) shown.sequenceLength = project.training.sequenceLength.value_or(project.model->context);
  table_.setRows(project.model ? unitRows(*project.model, shown) : std::vector<UnitRow>{});
  fit_->setText(fitLine(project));
  granularity_->setText(granularityLine(project));
  isRefreshing_ = false;
}

void ModelPage::chooseFile() {
  const QString path = QFileDialog::getOpenFileName(this, tr("Open a model"), {}, tr("Models (*.json)"));
  if (!path.isEmpty()) loadFile(path);
}

void ModelPage::loadFile(const QString& path) {
  auto model = loadModel(path.toStdString());
  if (!model) {
    workspace_.messages.showError(model.error());
    return;
  }
  const QString name = QString::fromStdString(model->name);
  workspace_.document.edit(tr("Load %1").arg(name), [&](Project& project) { project.model = *std::move(model); });
}

void ModelPage::dragEnterEvent(QDragEnterEvent* event) {
  const auto urls = event->mimeData()->urls();
  if (urls.size() == 1 && urls.front().isLocalFile() && urls.front().toLocalFile().endsWith(QStringLiteral(".json"))) event->acceptProposedAction();
}

void ModelPage::dropEvent(QDropEvent* event) { loadFile(event->mimeData()->urls().front().toLocalFile()); }

}  // namespace evenkeel::gui
