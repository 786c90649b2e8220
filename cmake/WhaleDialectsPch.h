// Precompiled for every library that uses our dialects.
#include "WhalePch.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/Program.h"
