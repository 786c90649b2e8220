//===- ReadTables.cpp - Read the tables of a program ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a table's field in the manifest, and which of its elements are needed.
// Out: its elements, of which those that are in files without a needed one are
// null. Checks the depth of JSON before parsing it, and the hash of each file.
//
// Where some ranks only are wanted, their classes are needed, the functions
// that these run, the channels that they start, and the channels that describe
// those. Linear in the size of the text that is read.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"
#include "whale/System/Checksum.h"
#include "whale/System/Error.h"
#include "whale/System/Json.h"

#include <algorithm>
#include <iterator>

namespace whale::format {

/// Returns the nesting depth of lists and objects in a JSON text.
static size_t nestingDepth(std::string_view text) {
  size_t depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"')
      quoted = !quoted;
    else if (quoted)
      i += c == '\\';
    else if (c == '[' || c == '{')
      deepest = std::max(deepest, ++depth);
    else if ((c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return deepest;
}

Document parseDocument(std::string_view text, const std::string &file) {
  // Loops and cases nest far less deeply; the limit protects the recursive
  // functions that parse and write the plan, which has no schema.
  constexpr size_t deepest = 512;
  if (nestingDepth(text) > deepest)
    throw system::Error(file + ": lists nest more than " +
                        std::to_string(deepest) + " deep");
  // The parser treats a zero byte as the end.
  if (size_t zero = text.find('\0'); zero != text.npos)
    throw system::Error(file + ": not valid JSON: byte " +
                        std::to_string(zero) + " is zero");
  Document document{file, {}};
  try {
    document.root = system::parseJson<nlohmann::json>(text);
  } catch (const nlohmann::json::exception &error) {
    throw system::Error(file + ": not valid JSON: " + error.what());
  }
  return document;
}

std::string readFileName(const Field &field) {
  const std::string &name = field.text();
  if (name.empty() || name == "." || name == ".." ||
      name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    field.fail("must be the name of a file, without folders");
  return name;
}

/// Returns the path of another file in the directory of `file`.
static std::string beside(const std::string &file, const std::string &name) {
  return file.substr(0, file.rfind('/') + 1) + name;
}

/// Of "channels" an object, of others a list.
static bool isList(const std::string &table) { return table != "channels"; }

/// The files of a table; nullopt where it is in the manifest.
static std::optional<Field> filesOf(const Field &table) {
  if (!table.json().is_object() || !table.json().contains("files"))
    return std::nullopt;
  return table.at("files");
}

static int64_t countOfFile(const Field &file) {
  constexpr int64_t most = 1 << 20;
  return file.at("count").integer(0, most);
}

int64_t ProgramReader::countOf(const std::string &list) const {
  Field field = root.at(list);
  auto files = filesOf(field);
  if (!files)
    return static_cast<int64_t>(field.size());
  int64_t count = 0;
  for (size_t i = 0; i < files->size(); ++i)
    count += countOfFile((*files)[i]);
  return count;
}

bool ProgramReader::isNeeded(Numbers numbers, int64_t begin,
                             std::optional<int64_t> end) const {
  if (!needed)
    return true;
  const std::set<int64_t> &all = (*needed).*numbers;
  auto it = all.lower_bound(begin);
  return it != all.end() && *it < end.value_or(begin + 1);
}

const Document &ProgramReader::open(const Field &entry) {
  std::string file = readFileName(entry.at("name"));
  auto it = documents.find(file);
  if (it != documents.end())
    return it->second;
  std::string text = openFile(file);
  std::string path = beside(document.file, file);
  if (auto hashes = root.find("hashes");
      hashes && hashes->at(file).text() != system::Checksum::of(text))
    throw system::Error(path +
                        ": differs from its hash in manifest.json: it was "
                        "damaged, or is another program's");
  Document &opened = documents[file] = parseDocument(text, path);
  shortLists.expand(opened, opened.root);
  return opened;
}

const ProgramReader::Table &ProgramReader::readTable(const std::string &name,
                                                     Numbers numbers) {
  static const Document unread;
  Field field = root.at(name);
  Table &table = tables[name];
  table.clear();
  auto add = [&](const Field &part) {
    if (isList(name))
      for (size_t i = 0; i < part.size(); ++i)
        table.emplace_back("", part[i]);
    else
      std::ranges::move(part.members(), std::back_inserter(table));
  };
  auto files = filesOf(field);
  if (!files) {
    add(field);
    return table;
  }
  if (!openFile)
    files->fail("there are no other files");
  // The number of the first element of a file.
  int64_t begin = 0;
  for (size_t i = 0; i < files->size(); ++i) {
    Field file = (*files)[i];
    int64_t count = countOfFile(file);
    std::optional<int64_t> end;
    if (isList(name))
      end = begin + count;
    else if (auto last = file.find("last"))
      end = last->integer(begin, Field::maximum - 1) + 1;
    // Where the entry does not say what is in the file, all may be.
    if (end && !isNeeded(numbers, begin, end)) {
      if (isList(name))
        table.resize(table.size() + static_cast<size_t>(count),
                     {"", Field(unread)});
    } else {
      size_t before = table.size();
      add(Field(open(file)));
      if (count != static_cast<int64_t>(table.size() - before))
        file.at("count").fail(file.at("name").text() + " has " +
                              std::to_string(table.size() - before) +
                              " elements");
      for (size_t k = before; end && !isList(name) && k < table.size(); ++k)
        if (auto number = parseDecimal(table[k].first);
            number && (*number < begin || *number >= *end))
          file.at("last").fail(file.at("name").text() + " has number " +
                               table[k].first);
    }
    begin = end.value_or(begin);
  }
  if (needed && !isList(name))
    program.unreadChannelEnd = begin;
  return table;
}

nlohmann::json ProgramReader::tablesAtLength() const {
  nlohmann::json all = nlohmann::json::object();
  for (const auto &[name, table] : tables) {
    nlohmann::json &whole = all[name] =
        isList(name) ? nlohmann::json::array() : nlohmann::json::object();
    for (const auto &[key, field] : table)
      if (isList(name))
        whole.push_back(field.json());
      else
        whole[key] = field.json();
  }
  return all;
}

/// Adds the channels that instructions start, those in loops and cases
/// included. What is no instruction is found by who reads it.
static void addStarted(const nlohmann::json &list,
                       std::set<int64_t> &channels) {
  for (const nlohmann::json &instruction : list) {
    if (!instruction.is_object())
      continue;
    if (auto start = instruction.find("start");
        start != instruction.end() && start->is_number_integer())
      channels.insert(start->get<int64_t>());
    for (const char *nested : {"cond", "body"})
      if (auto it = instruction.find(nested); it != instruction.end())
        addStarted(*it, channels);
    if (auto it = instruction.find("branches"); it != instruction.end())
      for (const nlohmann::json &branch : *it)
        addStarted(branch, channels);
  }
}

void ProgramReader::findNeeded() {
  const Table &classes = tables.at("classes");
  for (int64_t number : needed->classes) {
    const Field &field = classes[number].second;
    if (auto runs = field.find("runs"))
      for (size_t i = 0; i < runs->size(); ++i)
        needed->functions.insert((*runs)[i].at("function").integer());
    addStarted(field.at("instructions").json(), needed->channels);
  }
  // A channel that describes another one may be in another file.
  for (const auto &[key, field] : readTable("channels", &Needed::channels))
    if (auto number = parseDecimal(key);
        number && isNeeded(&Needed::channels, *number))
      if (auto other = field.find("same_as"))
        needed->channels.insert(other->integer());
}

} // namespace whale::format
