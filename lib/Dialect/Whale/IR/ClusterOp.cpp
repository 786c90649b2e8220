//===- ClusterOp.cpp - The cluster in the IR ------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Converts between whale.cluster, whose attributes are the cluster file's
// objects field by field, and Cluster. Both directions use JSON, so that one
// parser validates both.
//

#include "mlir/IR/Builders.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/System/Json.h"
#include "llvm/ADT/TypeSwitch.h"
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace whale;
using Json = nlohmann::ordered_json;

/// Converts an attribute to JSON; to null, which no field accepts, if it has no
/// equivalent.
static Json toJson(Attribute attr) {
  return llvm::TypeSwitch<Attribute, Json>(attr)
      .Case([](IntegerAttr attr) -> Json {
        if (!attr.getValue().isSignedIntN(64))
          return nullptr;
        return attr.getValue().getSExtValue();
      })
      .Case([](FloatAttr attr) -> Json { return attr.getValueAsDouble(); })
      .Case([](StringAttr attr) -> Json { return attr.str(); })
      .Case([](ArrayAttr attr) -> Json {
        Json json = Json::array();
        for (Attribute element : attr)
          json.push_back(toJson(element));
        return json;
      })
      .Case([](DictionaryAttr attr) -> Json {
        Json json = Json::object();
        for (NamedAttribute field : attr)
          json[field.getName().str()] = toJson(field.getValue());
        return json;
      })
      .Default([](Attribute) -> Json { return nullptr; });
}

/// Converts the JSON of a valid cluster to an attribute.
static Attribute toAttribute(const Json &json, Builder &builder) {
  if (json.is_number_float())
    return builder.getF64FloatAttr(json.get<double>());
  if (json.is_number())
    return builder.getI64IntegerAttr(json.get<int64_t>());
  if (json.is_string())
    return builder.getStringAttr(json.get<std::string>());
  if (json.is_array()) {
    SmallVector<Attribute> elements;
    for (const Json &element : json)
      elements.push_back(toAttribute(element, builder));
    return builder.getArrayAttr(elements);
  }
  SmallVector<NamedAttribute> fields;
  for (const auto &[key, value] : json.items())
    fields.push_back(builder.getNamedAttr(key, toAttribute(value, builder)));
  return builder.getDictionaryAttr(fields);
}

/// Converts the operation to a Cluster; throws ClusterError.
static Cluster parseCluster(ClusterOp op) {
  Json json = Json::object();
  if (DictionaryAttr kinds = op.getKindsAttr())
    json["kinds"] = toJson(kinds);
  json["nodes"] = toJson(op.getNodesAttr());
  if (DictionaryAttr network = op.getNetworkAttr())
    json["network"] = toJson(network);
  return Cluster::parse(system::printJson(json));
}

void ClusterOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                      const Cluster &cluster) {
  auto fields =
      cast<DictionaryAttr>(toAttribute(Json::parse(cluster.toJson()), builder));
  build(builder, state, name, fields.getAs<DictionaryAttr>("kinds"),
        fields.getAs<ArrayAttr>("nodes"),
        fields.getAs<DictionaryAttr>("network"));
}

Cluster ClusterOp::getCluster() { return parseCluster(*this); }

LogicalResult ClusterOp::verify() {
  try {
    parseCluster(*this);
    return success();
  } catch (const ClusterError &error) {
    return emitOpError(error.what());
  }
}
