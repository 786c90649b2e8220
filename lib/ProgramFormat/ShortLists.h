//===- ShortLists.h - Lists as differences of elements ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The elements of a table's lists mostly differ from earlier ones in integers
// alone. A short list has one element of each form, and a row for each element:
// how far its integers are from those of the one before it of its form.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAMFORMAT_SHORTLISTS_H
#define WHALE_LIB_PROGRAMFORMAT_SHORTLISTS_H

#include "Field.h"
#include "JsonText.h"
#include "whale/ProgramFormat/Limits.h"

namespace whale::format {

/// Replaces the lists in `json` that are shorter as short lists. Returns how
/// many characters that saves.
size_t shortenLists(Json &json);

/// Replaces the short lists of documents by the lists that they stand for.
class ListExpander {
public:
  /// Throws system::Error with the path of what is wrong in `json`, a part of
  /// `document`.
  void expand(const Document &document, nlohmann::json &json);

private:
  void expandOne(const Document &document, nlohmann::json &json);
  int64_t budget = mostShortened;
};

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_SHORTLISTS_H
