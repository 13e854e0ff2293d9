// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/config.h"

namespace accrue::config {
namespace {

constexpr size_t kMaxDepth = 16;
constexpr size_t kMaxNodes = 20000;

/// Builds the tree: an event becomes a node, a finished node goes into the one above it.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& name, Problems& problems, bool positions)
      : name_(name), problems_(problems), positions_(positions) {
    for (size_t start = 0; start <= text.size();) {
      const size_t end = std::min(text.find('\n', start), text.size());
      lines_.push_back(text.substr(start, end - start));
      start = end + 1;
    }
  }

  Node take_root() { return std::move(root_); }

  std::string place(int line, int column) const {
    if (!positions_) return name_;
    return name_ + ":" + std::to_string(line) + ":" + std::to_string(column);
  }

  std::string place(const YAML::Mark& mark) const {
    return mark.is_null() ? name_ : place(mark.line + 1, column_of(mark));
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    close(open(Node::Kind::null, mark, "", anchor));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(message::yaml_alias_inside_itself, {{"place", place(mark)}});
    check_size(mark, count(found->second), depth(found->second));
    Node copy = found->second;
    copy.line = mark.line + 1;
    copy.column = column_of(mark);
    close({std::move(copy), 0});
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!";
    Open scalar = open(Node::Kind::scalar, mark, quoted ? "" : tag, anchor);
    scalar.node.quoted = quoted;
    scalar.node.text = value;
    close(std::move(scalar));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    stack_.push_back(open(Node::Kind::sequence, mark, tag, anchor));
  }
  void OnSequenceEnd() override { close_top(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    stack_.push_back(open(Node::Kind::map, mark, tag, anchor));
  }
  void OnMapEnd() override { close_top(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;  // the last entry of a map waits for its value
  };

  // The reader counts bytes; people count characters.
  int column_of(const YAML::Mark& mark) const {
    if (mark.line < 0 || static_cast<size_t>(mark.line) >= lines_.size()) return mark.column + 1;
    const std::string_view before =
        lines_[static_cast<size_t>(mark.line)].substr(0, static_cast<size_t>(mark.column));
    const auto continued = [](char letter) { return (static_cast<unsigned char>(letter) & 0xC0) == 0x80; };
    return mark.column + 1 - static_cast<int>(std::count_if(before.begin(), before.end(), continued));
  }

  static size_t count(const Node& node) {
    size_t total = 1;
    for (const Node& item : node.items) total += count(item);
    for (const auto& [key, value] : node.entries) total += 1 + count(value);
    return total;
  }

  static size_t depth(const Node& node) {
    size_t deepest = 0;
    for (const Node& item : node.items) deepest = std::max(deepest, depth(item));
    for (const auto& [key, value] : node.entries) deepest = std::max(deepest, depth(value));
    return deepest + 1;
  }

  void check_size(const YAML::Mark& mark, size_t nodes, size_t levels) {
    num_nodes_ += nodes;
    if (num_nodes_ > kMaxNodes) fail(message::yaml_too_large, {{"place", place(mark)}, {"limit", kMaxNodes}});
    if (stack_.size() + levels > kMaxDepth)
      fail(message::yaml_too_deep, {{"place", place(mark)}, {"limit", kMaxDepth}});
  }

  Open open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    check_size(mark, 1, 1);
    if (!tag.empty() && tag != "?" && tag != "!") {
      problems_.add(message::yaml_tag, {{"place", place(mark)}, {"tag", tag}});
    }
    Open opened;
    opened.node.kind = kind;
    opened.node.line = mark.line + 1;
    opened.node.column = column_of(mark);
    opened.anchor = anchor;
    return opened;
  }

  void close_top() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    close(std::move(done));
  }

  void close(Open done) {
    if (done.anchor != 0) anchors_[done.anchor] = done.node;
    if (stack_.empty()) {
      root_ = std::move(done.node);
    } else if (stack_.back().node.kind == Node::Kind::sequence) {
      stack_.back().node.items.push_back(std::move(done.node));
    } else if (stack_.back().has_key) {
      stack_.back().has_key = false;
      auto& [key, value] = stack_.back().node.entries.back();
      value = std::move(done.node);
      // The reader places a missing value at whatever comes next.
      if (value.kind == Node::Kind::null)
        std::tie(value.line, value.column) = std::pair(key.line, key.column);
    } else {
      add_key(stack_.back(), std::move(done.node));
    }
  }

  void add_key(Open& map, Node key) {
    if (key.kind == Node::Kind::null) key.text = "null";
    if (key.kind == Node::Kind::sequence || key.kind == Node::Kind::map) {
      problems_.add(message::yaml_key_not_text,
                    {{"place", place(key.line, key.column)}, {"got", describe(key)}});
    }
    for (const auto& [other, value] : map.node.entries) {
      if (other.text != key.text || key.text.empty()) continue;
      problems_.add(message::yaml_key_twice,
                    {{"place", place(key.line, key.column)}, {"key", shown(key.text)}, {"line", other.line}});
      break;
    }
    map.node.entries.push_back({std::move(key), Node{}});
    map.has_key = true;
  }

  const std::string& name_;
  Problems& problems_;
  bool positions_;
  std::vector<std::string_view> lines_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  size_t num_nodes_ = 0;
  Node root_;
};

/// The length of the UTF-8 character at `at`, or 0 where there is none.
size_t character_length(std::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return first == 0 ? 0 : 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xC0) != 0x80) return 0;
  }
  const auto second = static_cast<unsigned char>(text[at + 1]);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool outside = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  return overlong || outside ? 0 : length;
}

void check_utf8(std::string_view text, const TreeBuilder& builder) {
  int line = 1;
  int column = 1;
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text, at);
    if (length == 0) {
      fail(message::yaml_not_utf8, {{"place", builder.place(line, column)},
                                    {"byte", static_cast<int>(static_cast<unsigned char>(text[at]))}});
    }
    column = text[at] == '\n' ? 1 : column + 1;
    line += text[at] == '\n' ? 1 : 0;
    at += length;
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return node.quoted ? "text \"" + shown(node.text) + "\"" : shown(node.text);
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::map:
      return "a section";
  }
  return "nothing";
}

std::string shown(std::string_view text) {
  constexpr int kMaxCharacters = 60;
  std::string part;
  int characters = 0;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if ((code & 0xC0) != 0x80 && ++characters > kMaxCharacters) return part + "...";
    part.push_back(code < 0x20 || code == 0x7f ? '?' : letter);
  }
  return part;
}

Node parse_tree(std::string_view text, const std::string& name, Problems& problems, bool positions) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  TreeBuilder builder(text, name, problems, positions);
  check_utf8(text, builder);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    Problems ignored;
    TreeBuilder rest(text, name, ignored, positions);
    if (parser.HandleNextDocument(rest)) {
      const Node second = rest.take_root();
      fail(message::yaml_second_document, {{"place", builder.place(second.line, second.column)}});
    }
    return builder.take_root();
  } catch (const YAML::Exception& error) {
    fail(message::yaml_broken, {{"place", builder.place(error.mark)}, {"reason", shown(error.msg)}});
  }
}

}  // namespace accrue::config
