// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QGraphicsItem>
#include <QStaticText>
#include <QString>
#include <string>
#include <vector>

namespace evenkeel::gui {

class LinkItem;

/// What stands on the canvas and has ends of links: a machine or a switch. It shows values that the scene gives it.
class BoxItem : public QGraphicsItem {
 public:
  explicit BoxItem(std::string theName) : name(std::move(theName)) {}
  const std::string name;  // of the machine or switch
  std::vector<LinkItem*> links;

  [[nodiscard]] virtual QSizeF size() const = 0;
  [[nodiscard]] QRectF boundingRect() const override { return QRectF(QPointF(0, 0), size()).adjusted(-3, -3, 3, 3); }
  [[nodiscard]] QPointF centre() const { return pos() + QPointF(size().width() / 2, size().height() / 2); }
  /// Moves the box and the ends of its links. False: it is there already.
  bool moveTo(QPointF topLeft);
  /// False: it is so already.
  bool setMarked(bool marked);
  /// How it looks where text could not be read: a block, still in the colour of what it is.
  struct Block {
    QColor edge, inside;
  };
  [[nodiscard]] virtual Block block(const QPalette& palette) const = 0;

 protected:
  bool isMarked_ = false;
};

class MachineItem final : public BoxItem {
 public:
  struct Group {
    QString text;  // "8 × A100-80-SXM"
    int type = 0;  // index in the cluster's types, for the colour
    int count = 1;
    bool operator==(const Group&) const = default;
  };
  struct Content {
    std::vector<Group> groups;
    QString detail;  // "inside 300 · NIC 25 GB/s"
    bool operator==(const Content&) const = default;
  };
  using BoxItem::BoxItem;
  void setContent(Content content);
  [[nodiscard]] QSizeF size() const override;
  [[nodiscard]] Block block(const QPalette& palette) const override;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

 private:
  [[nodiscard]] QColor border(const QPalette& palette) const;
  void paintDevices(QPainter& painter, const QColor& text) const;
  Content content_;
  QStaticText title_, first_, second_, more_;  // laid out once: text is what a frame costs most
  bool isSecondSmall_ = true;
  int squares_ = 0;
};

class SwitchItem final : public BoxItem {
 public:
  using BoxItem::BoxItem;
  void setDetail(const QString& detail);  // "25 GB/s a port"
  [[nodiscard]] QSizeF size() const override;
  [[nodiscard]] Block block(const QPalette& palette) const override;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

 private:
  QString detail_;
  QStaticText title_, second_;
};

/// A drawn link (with its bandwidth as label) or a membership of a switch (without).
class LinkItem final : public QGraphicsItem {
 public:
  LinkItem(std::string theKey, BoxItem& first, BoxItem& second);
  const std::string key;
  BoxItem& first;
  BoxItem& second;

  /// width: of the line, in canvas units
  void setContent(const QString& label, double width);
  /// False: it is so already.
  bool setMarked(bool marked);
  [[nodiscard]] bool isMarked() const { return isMarked_; }
  /// To be called when an end has moved.
  void follow();
  [[nodiscard]] const QLineF& line() const { return line_; }
  [[nodiscard]] QRectF boundingRect() const override;
  [[nodiscard]] QPainterPath shape() const override;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

 private:
  QLineF line_;
  QString label_;
  QStaticText labelText_;
  QSizeF labelSize_;
  double width_ = 1.5;
  bool isMarked_ = false;
};

/// Pixel sizes, so that a drawing prints at any resolution.
[[nodiscard]] QFont canvasFont(int pixels, bool bold = false);

/// Below these zooms labels of links, and texts of machines and switches, are left out: they could not be read, and cost the most time.
/// Below kTextZoom the scene paints all of them at once (paintOverview).
inline constexpr double kLinkLabelZoom = 0.5, kTextZoom = 0.35, kGridZoom = 0.4;

}  // namespace evenkeel::gui
