//===- CustomCalls.cpp - Custom calls that are known by name ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The signatures of all custom calls that the compiler knows by name, and the
// check of a call against them.
//
// In: a call. Out: success, or an error that states the first difference. The
// table is the one list of these names: what no row has is an unknown call. A
// signature is a row of text; its notation is explained at `Signature`. Cost: a
// search of the table, linear in the operands, results and their dimensions.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/CustomCalls.h"

#include "Checks.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace whale;
using stablehlo::CustomCallOp;

namespace {

/// What calls of a name must be like.
///
/// A tensor is an element type and the sizes of its last dimensions; those
/// before them are the batch, the same in all tensors of the call. Element
/// types are T (one type in the whole call), R and C (the real and complex type
/// of its precision), i32 and i1. Sizes are a letter (one number in the whole
/// call), `min` (of m and n), `n-1` (not below 0) and `?` (any).
///
/// A configuration is a list of name=value, where value is
///   LU     the code of one of these letters, of type ui8,
///   #k     an integer of 64 bits, the size k,
///   #1..n  an integer of 32 bits from 1 to n,
///   bool, true, false   a boolean, or this one.
/// An entry that ends with ? may be missing. Of several rows with one name,
/// that with the right configuration holds.
struct Signature {
  /// The names that have it, in `target`, and of what they stand for: left out
  /// where that is the name itself.
  StringRef names, meaning;
  /// Of LAPACK: the element types by their letters, s, d, c and z.
  StringRef types;
  StringRef config, operands, results;
  /// Sizes that are at most others: "k<=n".
  StringRef limits = "";
};

// Shapes are those of matrices as StableHLO has them, m by n in most calls.
constexpr StringRef kAll = "sdcz", kReal = "sd", kComplex = "cz";
const Signature kLapack[] = {
    {"gees", "gees", kReal, "mode=NV sort=N", "T n n",
     "T n n, T n n, T n, T n, i32, i32"},
    {"gees", "gees", kComplex, "mode=NV sort=N", "T n n",
     "T n n, T n n, T n, i32, i32"},
    {"geev", "geev", kReal, "compute_left=NV compute_right=NV", "T n n",
     "T n, T n, C n n, C n n, i32"},
    {"geev", "geev", kComplex, "compute_left=NV compute_right=NV", "T n n",
     "T n, T n n, T n n, i32"},
    {"gehrd", "gehrd", kAll, "low=#1..n high=#1..n", "T n n",
     "T n n, T n-1, i32"},
    {"geqp3", "geqp3", kAll, "", "T m n, i32 n", "T m n, i32 n, T min"},
    {"geqrf", "geqrf", kAll, "", "T m n", "T m n, T min"},
    {"gesdd", "gesdd", kAll, "mode=A", "T m n",
     "T m n, R min, T m m, T n n, i32"},
    {"gesdd", "gesdd", kAll, "mode=S", "T m n",
     "T m n, R min, T m min, T min n, i32"},
    {"gesdd", "gesdd", kAll, "mode=N", "T m n",
     "T m n, R min, T ? ?, T ? ?, i32"},
    {"getrf", "getrf", kAll, "", "T m n", "T m n, i32 min, i32"},
    {"gtsv", "gtsv", kAll, "", "T n, T n, T n, T n c",
     "T n, T n, T n, T n c, i32"},
    {"orgqr", "orgqr", kReal, "", "T m n, T k", "T m n", "k<=n n<=m"},
    {"ungqr", "orgqr", kComplex, "", "T m n, T k", "T m n", "k<=n n<=m"},
    {"ormqr", "ormqr", kReal, "left=true transpose=bool", "T m c, T k, T m n",
     "T m n", "k<=c k<=m"},
    {"ormqr", "ormqr", kReal, "left=false transpose=bool", "T n c, T k, T m n",
     "T m n", "k<=c k<=n"},
    {"unmqr", "ormqr", kComplex, "left=true transpose=bool",
     "T m c, T k, T m n", "T m n", "k<=c k<=m"},
    {"unmqr", "ormqr", kComplex, "left=false transpose=bool",
     "T n c, T k, T m n", "T m n", "k<=c k<=n"},
    {"potrf", "potrf", kAll, "uplo=LU", "T n n", "T n n, i32"},
    {"syevd", "syevd", kReal, "mode=NV uplo=LU", "T n n", "T n n, R n, i32"},
    {"heevd", "syevd", kComplex, "mode=NV uplo=LU", "T n n", "T n n, R n, i32"},
    {"sytrd", "sytrd", kReal, "uplo=LU", "T n n",
     "T n n, R n, R n-1, T n-1, i32"},
    {"hetrd", "sytrd", kComplex, "uplo=LU", "T n n",
     "T n n, R n, R n-1, T n-1, i32"},
    {"trsm", "trsm", kAll, "side=L uplo=LU trans_x=NTC diag=UN", "T m m, T m n",
     "T m n"},
    {"trsm", "trsm", kAll, "side=R uplo=LU trans_x=NTC diag=UN", "T n n, T m n",
     "T m n"},
};

const Signature kChlo[] = {
    {"acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf "
     "erf_inv erfc lgamma sinh square tan",
     "", "", "", "T", "T"},
    {"is_inf is_neg_inf is_pos_inf", "", "", "", "T", "i1"},
    {"mulhi next_after polygamma zeta", "", "", "", "T, T", "T"},
    {"top_k topk", "top_k", "", "k=#k largest=true?", "T n", "T k, i32 k",
     "k<=n"},
};

constexpr StringLiteral kApproxTopK = "ApproxTopK", kSharding = "Sharding";

/// The rows of a name, the letter of its element type, and what it stands for.
struct Found {
  SmallVector<const Signature *> rows;
  char type = 0;
  StringRef meaning;
};

/// Checks one call against the rows of its name.
class Match {
public:
  Match(CustomCallOp call, const Found &found)
      : call(call), check(call), found(found), config(getConfiguration(call)) {}

  LogicalResult run();

private:
  const Signature *select();
  /// What an entry asks for, if the configuration does not have it.
  std::optional<std::string> findFault(StringRef name, StringRef wanted) const;
  bool isInRange(IntegerAttr number, StringRef range) const;
  LogicalResult checkNames(const Signature &row) const;
  LogicalResult checkRanges(const Signature &row);
  LogicalResult checkTensors(StringRef what, StringRef list, TypeRange types,
                             std::optional<ArrayAttr> layouts);
  LogicalResult checkTensor(const Twine &what, StringRef notation, Type type);
  LogicalResult checkLimits(const Signature &row) const;
  Type elementOf(StringRef notation, RankedTensorType type);
  int64_t sizeOf(StringRef notation) const;
  int64_t sizeOf(char letter) const {
    auto it = sizes.find(letter);
    return it == sizes.end() ? ShapedType::kDynamic : it->second;
  }

  CustomCallOp call;
  Checker check;
  const Found &found;
  DictionaryAttr config;
  Type element;
  std::optional<SmallVector<int64_t>> batch;
  std::map<char, int64_t> sizes;
};

/// Calls `function` with the parts of a list between `separator`s.
void forEachPart(StringRef list, char separator,
                 function_ref<void(StringRef)> function) {
  SmallVector<StringRef> parts;
  list.split(parts, separator, /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    function(part.trim());
}

bool isLetterCode(StringRef wanted) {
  return !wanted.empty() && llvm::isUpper(wanted.front());
}

std::optional<std::string> Match::findFault(StringRef name,
                                            StringRef wanted) const {
  bool isOptional = wanted.consume_back("?");
  Attribute value = config.get(name);
  if (!value && isOptional)
    return std::nullopt;
  auto flag = dyn_cast_or_null<BoolAttr>(value);
  auto number = dyn_cast_or_null<IntegerAttr>(value);
  if (wanted == "bool")
    return flag ? std::nullopt : std::optional<std::string>("a boolean");
  if (wanted == "true" || wanted == "false")
    return flag && flag.getValue() == (wanted == "true")
               ? std::nullopt
               : std::optional(wanted.str());
  if (isLetterCode(wanted)) {
    if (number && number.getType().isUnsignedInteger(8) &&
        wanted.contains(char(number.getValue().getZExtValue())))
      return std::nullopt;
    std::string text;
    for (char letter : wanted)
      text += (text.empty() ? "'" : " or '") + std::string(1, letter) + "'";
    return text;
  }
  unsigned width = wanted.contains("..") ? 32 : 64;
  if (number && number.getType().isSignlessInteger(width))
    return std::nullopt;
  return "an integer of type i" + std::to_string(width);
}

const Signature *Match::select() {
  // Of the rows that are right for the longest, what each expects next.
  StringRef name;
  std::string expected;
  bool isCode = false;
  size_t furthest = 0;
  for (const Signature *row : found.rows) {
    size_t position = 0;
    bool fits = true;
    forEachPart(row->config, ' ', [&](StringRef entry) {
      auto [key, wanted] = entry.split('=');
      std::optional<std::string> fault = findFault(key, wanted);
      if (!fits || !fault) {
        position += fits;
        return;
      }
      fits = false;
      if (!expected.empty() && position < furthest)
        return;
      bool isSame = !expected.empty() && position == furthest;
      expected = isSame ? expected + " or " + *fault : *fault;
      furthest = position;
      name = key;
      isCode = isLetterCode(wanted);
    });
    if (fits)
      return row;
  }
  expected += isCode ? ", of type ui8" : "";
  if (Attribute value = config.get(name))
    (void)check.error("expects ", name, " to be ", expected, " (got ", value,
                      ")");
  else
    (void)check.error("expects ", name, ": ", expected);
  return nullptr;
}

LogicalResult Match::checkNames(const Signature &row) const {
  SmallVector<StringRef> known;
  forEachPart(row.config, ' ', [&](StringRef entry) {
    known.push_back(entry.split('=').first);
  });
  for (NamedAttribute entry : config)
    if (!llvm::is_contained(known, entry.getName().getValue()))
      return check.error("has no configuration ", entry.getName());
  return success();
}

bool Match::isInRange(IntegerAttr number, StringRef range) const {
  auto [least, most] = range.split("..");
  int64_t low = 0, high = sizeOf(most);
  least.getAsInteger(10, low);
  return number.getInt() >= low &&
         (ShapedType::isDynamic(high) || number.getInt() <= high);
}

/// Integers from 1 to a size, once the sizes are known.
LogicalResult Match::checkRanges(const Signature &row) {
  LogicalResult result = success();
  forEachPart(row.config, ' ', [&](StringRef entry) {
    auto [key, range] = entry.split('=');
    if (!range.consume_front("#") || !range.contains("..") || failed(result))
      return;
    auto number = config.getAs<IntegerAttr>(key);
    if (!isInRange(number, range))
      result = check.error("expects ", key, " in ", range, " (got ",
                           number.getInt(), ")");
  });
  return result;
}

Type Match::elementOf(StringRef notation, RankedTensorType type) {
  Builder builder(call.getContext());
  if (notation == "i32")
    return builder.getI32Type();
  if (notation == "i1")
    return builder.getI1Type();
  if (!element)
    element = type.getElementType();
  auto complex = dyn_cast<ComplexType>(element);
  if (notation == "R")
    return complex ? complex.getElementType() : element;
  if (notation == "C")
    return complex ? complex : ComplexType::get(element);
  return element;
}

int64_t Match::sizeOf(StringRef notation) const {
  if (notation == "min") {
    int64_t m = sizeOf('m'), n = sizeOf('n');
    return ShapedType::isDynamic(m) || ShapedType::isDynamic(n)
               ? ShapedType::kDynamic
               : std::min(m, n);
  }
  if (notation == "n-1") {
    int64_t n = sizeOf('n');
    return ShapedType::isDynamic(n) ? n : std::max<int64_t>(n - 1, 0);
  }
  return sizeOf(notation.front());
}

LogicalResult Match::checkTensor(const Twine &what, StringRef notation,
                                 Type type) {
  SmallVector<StringRef> parts;
  notation.split(parts, ' ');
  ArrayRef<StringRef> last = ArrayRef(parts).drop_front();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() < int64_t(last.size()))
    return check.error("expects ", what, " to be a tensor of ", last.size(),
                       " dimensions or more (got ", type, ")");
  ArrayRef<int64_t> shape = tensor.getShape();
  if (!batch)
    batch = llvm::to_vector(shape.drop_back(last.size()));
  SmallVector<int64_t> expected = *batch;
  bool fits = shape.size() == batch->size() + last.size();
  for (auto [index, size] : llvm::enumerate(last)) {
    if (fits && size.size() == 1 && llvm::isLower(size.front()) &&
        !shape.empty())
      if (int64_t given = shape[batch->size() + index];
          !ShapedType::isDynamic(given))
        sizes.try_emplace(size.front(), given);
    expected.push_back(sizeOf(size));
  }
  auto wanted = RankedTensorType::get(expected, elementOf(parts[0], tensor));
  if (!fits || tensor.getElementType() != wanted.getElementType() ||
      failed(verifyCompatibleShape(shape, expected)))
    return check.error("expects ", what, " to be ", wanted, " (got ", type,
                       ")");
  return success();
}

/// Layouts as LAPACK reads them: matrices in column-major order, batch by
/// batch.
bool isColumnMajor(Attribute layout, int64_t matrixRank) {
  SmallVector<int64_t> dims;
  for (const APInt &dim : cast<DenseIntElementsAttr>(layout).getValues<APInt>())
    dims.push_back(dim.getSExtValue());
  SmallVector<int64_t> expected =
      llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(dims.size())));
  if (matrixRank == 2)
    std::swap(expected[0], expected[1]);
  return dims == expected;
}

LogicalResult Match::checkTensors(StringRef what, StringRef list,
                                  TypeRange types,
                                  std::optional<ArrayAttr> layouts) {
  SmallVector<StringRef> notations;
  forEachPart(list, ',',
              [&](StringRef notation) { notations.push_back(notation); });
  if (types.size() != notations.size())
    return check.error("expects ", notations.size(), " ", what,
                       notations.size() == 1 ? "" : "s", " (got ", types.size(),
                       ")");
  for (auto [index, notation] : llvm::enumerate(notations)) {
    if (failed(checkTensor(what + " " + Twine(index), notation, types[index])))
      return failure();
    if (found.type && !isColumnMajor((*layouts)[index], notation.count(' ')))
      return check.error("expects ", what, " ", index,
                         " to have the layout that LAPACK reads: the last two "
                         "dimensions in column-major order (got ",
                         (*layouts)[index], ")");
  }
  return success();
}

LogicalResult Match::checkLimits(const Signature &row) const {
  LogicalResult result = success();
  forEachPart(row.limits, ' ', [&](StringRef limit) {
    auto [small, large] = limit.split("<=");
    int64_t least = sizeOf(small), most = sizeOf(large);
    if (succeeded(result) && !ShapedType::isDynamic(least) &&
        !ShapedType::isDynamic(most) && least > most)
      result = check.error("expects ", limit, " in (", row.operands, ") -> (",
                           row.results, ") (got ", least, " and ", most, ")");
  });
  return result;
}

LogicalResult Match::run() {
  Builder builder(call.getContext());
  if (found.type)
    element = llvm::StringRef("dz").contains(found.type) ? builder.getF64Type()
                                                         : builder.getF32Type();
  if (kComplex.contains(found.type))
    element = ComplexType::get(element);
  const Signature *row = select();
  if (!row || failed(checkNames(*row)))
    return failure();
  if (!call.getCalledComputations().empty())
    return check.error("expects no called_computations");
  if (found.type && !call.getOperandLayouts())
    return check.error("expects operand_layouts and result_layouts");
  forEachPart(row->config, ' ', [&](StringRef entry) {
    auto [key, size] = entry.split('=');
    if (size.consume_front("#") && size.size() == 1)
      sizes[size.front()] = config.getAs<IntegerAttr>(key).getInt();
  });
  for (auto [letter, size] : sizes)
    if (size < 0)
      return check.error("expects ", StringRef(&letter, 1),
                         " of at least 0 (got ", size, ")");
  return success(
      succeeded(checkTensors("operand", row->operands, call.getOperandTypes(),
                             call.getOperandLayouts())) &&
      succeeded(checkTensors("result", row->results, call.getResultTypes(),
                             call.getResultLayouts())) &&
      succeeded(checkRanges(*row)) && succeeded(checkLimits(*row)));
}

/// Whether a function compares elements of these types, as a sort does: two of
/// each.
bool isComparator(FunctionOpInterface function, TypeRange elements) {
  Type pred =
      RankedTensorType::get({}, IntegerType::get(function.getContext(), 1));
  if (function.isExternal() || !function.getFunctionBody().hasOneBlock() ||
      function.getNumArguments() != 2 * elements.size())
    return false;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (type != RankedTensorType::get({}, elementType(elements[index / 2])))
      return false;
  Operation &last = function.getFunctionBody().front().back();
  return last.getNumOperands() == 1 && last.getOperand(0).getType() == pred;
}

/// The signature of ApproxTopK: for each of its results a tensor, and behind
/// all of these an initial value for each.
LogicalResult verifyApproxTopK(CustomCallOp call) {
  Checker check(call);
  DictionaryAttr config = getConfiguration(call);
  auto dim = config.getAs<IntegerAttr>("reduction_dim");
  auto size = config.getAs<IntegerAttr>("top_k");
  for (auto [name, number] :
       {std::pair("reduction_dim", dim), std::pair("top_k", size)})
    if (!number || !number.getType().isSignlessInteger(64))
      return check.error("expects ", name, ": an integer of type i64");
  unsigned count = call.getNumResults();
  if (count == 0)
    return check.error("expects results");
  if (failed(check.count("operands, twice as many as results",
                         call.getNumOperands(), 2 * count)))
    return failure();
  SmallVector<Type> tensors(call.getInputs().take_front(count).getTypes());
  auto first = dyn_cast<RankedTensorType>(tensors.front());
  if (!first)
    return check.error("expects tensors (got ", tensors.front(), ")");
  if (failed(check.inRange("reduction_dim", dim.getInt(), first.getRank())))
    return failure();
  auto aggregates = config.getAs<BoolAttr>("aggregate_to_topk");
  for (unsigned i = 0; i < count; ++i) {
    auto tensor = dyn_cast<RankedTensorType>(tensors[i]);
    if (!tensor || tensor.getShape() != first.getShape())
      return check.error("expects operand ", i,
                         " to be a tensor of the shape "
                         "of operand 0 (got ",
                         tensors[i], ")");
    auto scalar = RankedTensorType::get({}, tensor.getElementType());
    if (call.getOperandTypes()[count + i] != scalar)
      return check.error("expects operand ", count + i, " to be ", scalar,
                         " (got ", call.getOperandTypes()[count + i], ")");
    auto result = dyn_cast<RankedTensorType>(call.getResultTypes()[i]);
    SmallVector<int64_t> shape(tensor.getShape());
    int64_t given = result && result.getRank() == tensor.getRank()
                        ? result.getDimSize(dim.getInt())
                        : 0;
    bool isExact = aggregates && aggregates.getValue();
    bool fits = given >= size.getInt() && given <= shape[dim.getInt()] &&
                (!isExact || given == size.getInt());
    shape[dim.getInt()] = fits ? given : size.getInt();
    if (!fits || result != tensor.clone(shape))
      return check.error("expects result ", i, " to be ", tensor.clone(shape),
                         " (got ", call.getResultTypes()[i], ")");
  }
  if (failed(check.count("called_computations",
                         call.getCalledComputations().size(), 1)))
    return failure();
  auto name = cast<FlatSymbolRefAttr>(call.getCalledComputations()[0]);
  auto function =
      SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(call, name);
  if (!function || !isComparator(function, tensors))
    return check.error("expects ", name,
                       " to be a function that compares two "
                       "elements of each tensor");
  return success();
}

/// Of an annotation: one tensor, as it is.
LogicalResult verifySharding(CustomCallOp call) {
  Checker check(call);
  if (failed(check.count("operands", call.getNumOperands(), 1)) ||
      failed(check.count("results", call.getNumResults(), 1)))
    return failure();
  Type type = call.getOperandTypes()[0];
  if (!isa<RankedTensorType>(type) || call.getResultTypes()[0] != type)
    return check.error("expects a tensor, and a result of its type (got ", type,
                       " and ", call.getResultTypes()[0], ")");
  return success();
}

std::optional<Found> findLapack(StringRef target) {
  if (!target.consume_front("lapack_") || !target.consume_back("_ffi") ||
      target.size() < 2)
    return std::nullopt;
  Found found;
  found.type = target.front();
  for (const Signature &row : kLapack)
    if (row.names == target.drop_front() && row.types.contains(found.type)) {
      found.rows.push_back(&row);
      found.meaning = row.meaning;
    }
  return found.rows.empty() ? std::nullopt : std::optional(found);
}

std::optional<Found> findChlo(StringRef target) {
  if (!target.consume_front("mhlo.") && !target.consume_front("chlo."))
    return std::nullopt;
  std::optional<Found> found;
  for (const Signature &row : kChlo)
    forEachPart(row.names, ' ', [&](StringRef name) {
      if (name == target)
        found = Found{{&row}, 0, row.meaning.empty() ? name : row.meaning};
    });
  return found;
}

} // namespace

std::optional<StringRef> whale::getLapackRoutine(StringRef target) {
  std::optional<Found> found = findLapack(target);
  return found ? std::optional(found->meaning) : std::nullopt;
}

bool whale::isPythonCallback(StringRef target) {
  // xla_ffi_python_cpu_callback, xla_ffi_partitioned_python_cpu_callback.
  return target.contains("python") && target.contains("callback");
}

std::optional<StringRef> whale::getChloOperation(StringRef target) {
  std::optional<Found> found = findChlo(target);
  return found ? std::optional(found->meaning) : std::nullopt;
}

DictionaryAttr whale::getConfiguration(CustomCallOp call) {
  StringRef name = findChlo(call.getCallTargetName()) ? "mhlo.attributes"
                                                      : "mhlo.backend_config";
  if (auto config = call->getAttrOfType<DictionaryAttr>(name))
    return config;
  if (auto config =
          dyn_cast_or_null<DictionaryAttr>(call.getBackendConfigAttr()))
    return config;
  return DictionaryAttr::get(call.getContext());
}

LogicalResult whale::verifySignature(CustomCallOp call) {
  StringRef target = call.getCallTargetName();
  if (std::optional<Found> found = findLapack(target))
    return Match(call, *found).run();
  if (std::optional<Found> found = findChlo(target))
    return Match(call, *found).run();
  if (target == kApproxTopK)
    return verifyApproxTopK(call);
  if (target == kSharding)
    return verifySharding(call);
  return success();
}
