// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/discover/discover_dialog.h"

#include <gmock/gmock.h>

#include <QCheckBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeWidget>
#include <ctime>

#include "launcher/ssh/fake_host.h"

namespace evenkeel::gui {
namespace {

constexpr int kLongMs = 30'000;  // a busy machine; nothing here waits for it to pass

/// Two A100s, one of them in use.
std::string answers() {
  return "@@evenkeel system\narchitecture=x86_64\nlibc=glibc 2.36\ncores=8\nmemory_kib=8388608\nclock=" + std::to_string(std::time(nullptr)) +
         "\nwritable=yes\ndisk_free_kib=9999999\n@@evenkeel-end 0\n@@evenkeel nvidia\nindex, uuid, name, memory.total [MiB], memory.used [MiB]\n"
         "0, GPU-a, NVIDIA A100-SXM4-80GB, 81920, 1\n1, GPU-b, NVIDIA A100-SXM4-80GB, 81920, 60000\n@@evenkeel-end 0\n"
         "@@evenkeel network\nnic eth0 up 25000\n@@evenkeel-end 0\n";
}

class DiscoverDialogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dialog_.setConnector([](const SshTarget&, const std::string& name, std::chrono::milliseconds, const std::stop_token&) -> Result<std::unique_ptr<Host>> {
      if (name == "down") return Error{Error::Code::Unreachable, name, "does not answer", "is it switched on?"};
      return std::unique_ptr<Host>(std::make_unique<FakeHost>(name, [](const Command& command, const std::stop_token&) { return FakeHost::reply(command, answers()); }));
    });
    dialog_.show();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(&dialog_));
  }
  template <class W>
  W* find(const char* name) {
    return dialog_.findChild<W*>(QString::fromLatin1(name));
  }
  void look(const char* hosts) {
    find<QLineEdit>("discoverHosts")->setText(QString::fromLatin1(hosts));
    QTest::mouseClick(find<QPushButton>("discoverLook"), Qt::LeftButton);
    ASSERT_TRUE(QTest::qWaitFor([&] { return find<QPushButton>("discoverLook")->text() == QStringLiteral("Look"); }, kLongMs));
  }

  QTemporaryDir recovery_;
  ProjectDocument document_{recovery_.path()};
  Selection selection_;
  MessageLine messages_;
  Workspace workspace_{document_, selection_, messages_};
  DiscoverDialog dialog_{workspace_};
};

TEST_F(DiscoverDialogTest, DrawsTheFreeDevicesOfTheHostsThatItLooksAt) {
  look("gpu-1,down");
  auto* rows = find<QTreeWidget>("discoverRows");
  ASSERT_EQ(rows->topLevelItemCount(), 2);
  EXPECT_TRUE(find<QLabel>("discoverState")->text().startsWith(QStringLiteral("1 of 2 hosts could not")));
  auto* add = find<QPushButton>("discoverAdd");
  EXPECT_EQ(add->text(), QStringLiteral("Add 1 device")) << "the other one is in use";
  QTest::mouseClick(add, Qt::LeftButton);
  EXPECT_FALSE(dialog_.isVisible());
  const Cluster& cluster = document_.project().cluster;
  ASSERT_EQ(cluster.nodes.size(), 1U);
  EXPECT_EQ(cluster.nodes[0].devices, (std::vector<Device>{{0, "GPU-a"}}));
  EXPECT_EQ(cluster.nodes[0].ssh.host, "gpu-1");
  EXPECT_EQ(gbs(cluster.nodes[0].nic.bandwidth), 3.125);
  document_.undoStack().undo();
  EXPECT_TRUE(document_.project().cluster.nodes.empty()) << "one undo step";
}

TEST_F(DiscoverDialogTest, DoesNotDrawACardTwice) {
  look("gpu-1");
  QTest::mouseClick(find<QPushButton>("discoverAdd"), Qt::LeftButton);
  dialog_.show();
  QTest::mouseClick(find<QPushButton>("discoverAdd"), Qt::LeftButton);
  EXPECT_TRUE(dialog_.isVisible());
  EXPECT_TRUE(find<QLabel>("discoverState")->text().contains(QStringLiteral("stand in the cluster already")));
  EXPECT_EQ(document_.project().cluster.nodes.size(), 1U);
}

TEST_F(DiscoverDialogTest, SaysWhereAListOfHostsIsWrong) {
  find<QLineEdit>("discoverHosts")->setText(QStringLiteral("gpu[1-"));
  QTest::mouseClick(find<QPushButton>("discoverLook"), Qt::LeftButton);
  EXPECT_TRUE(find<QLabel>("discoverState")->text().contains(QStringLiteral("without its ]")));
  EXPECT_FALSE(find<QPushButton>("discoverAdd")->isEnabled());
}

}  // namespace
}  // namespace evenkeel::gui
