// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "app/gui/cluster/placement.h"
#include "core/plan/project.h"

/// What a person does to a drawn cluster, as functions on a project. They know no window; a view calls them in
/// ProjectDocument::edit(). Items are named as in Selection: machines and switches by name, connections by connectionKey().
/// Names that do not exist are passed over. What can be refused returns a Result and then has changed nothing.
namespace evenkeel::gui {

using Items = std::set<std::string>;

/// "a|b" for a drawn link of nodes a and b; "s|m" for switch s and its member m.
[[nodiscard]] std::string connectionKey(const std::string& first, const std::string& second);
[[nodiscard]] std::string linkKey(const Cluster& cluster, const Link& link);

[[nodiscard]] Node* findMachine(Cluster& cluster, const std::string& name);
[[nodiscard]] const Node* findMachine(const Cluster& cluster, const std::string& name);
[[nodiscard]] Switch* findSwitch(Cluster& cluster, const std::string& name);
[[nodiscard]] const Switch* findSwitch(const Cluster& cluster, const std::string& name);
/// All machines, switches and connections.
[[nodiscard]] Items allItems(const Cluster& cluster);

/// "node-" and the first number that makes it the only one of that name.
[[nodiscard]] std::string freeName(const Cluster& cluster, const std::string& stem);

/// A machine with `count` devices of the type and that type's own links, at the free place nearest to `wished`. Gives its name.
[[nodiscard]] Result<std::string> addMachine(Project& project, const std::string& typeName, int count, CanvasPoint wished);
/// A switch without members, 25 GB/s a port. Gives its name.
std::string addSwitch(Project& project, CanvasPoint wished);

/// The things with the connections among them, once more beside themselves. Gives the new machines and switches.
[[nodiscard]] Result<Items> duplicate(Project& project, const Items& items);
/// With their connections and places. Device types of the catalogue that nothing uses any more go too.
void removeItems(Project& project, const Items& items);
[[nodiscard]] Result<void> rename(Project& project, const std::string& from, const std::string& to);

/// Links two machines, or makes a machine or switch a member of a switch. Gives the connection's key. Connected already: no
/// change.
[[nodiscard]] Result<std::string> connectItems(Project& project, const std::string& first, const std::string& second);
/// The drawn link of two unlike machines becomes this, and is drawn if there was none.
void setLink(Project& project, const std::string& first, const std::string& second, LinkSpec spec);

/// What long messages get. A table of bandwidth by message size keeps its shape.
void setBandwidth(LinkSpec& link, BytesPerSecond bandwidth);

void moveItems(Project& project, const Items& items, double dx, double dy);
void arrange(Project& project);

void changeMachines(Project& project, const Items& items, const std::function<void(Node&)>& change);
void changeLinks(Project& project, const Items& items, const std::function<void(Link&)>& change);
void changeSwitches(Project& project, const Items& items, const std::function<void(Switch&)>& change);

/// Puts a whole cluster in, cards with their uuids; a card that stands there already is an error, and nothing is changed.
[[nodiscard]] Result<Items> addCluster(Project& project, Cluster cluster);

/// The things as text for the clipboard.
[[nodiscard]] std::string copyText(const Project& project, const Items& items);
/// What copyText() gave, or a shorthand such as 2x8:A100-80-SXM. Gives the new machines and switches.
[[nodiscard]] Result<Items> pasteText(Project& project, const std::string& text, CanvasPoint wished);

}  // namespace evenkeel::gui
