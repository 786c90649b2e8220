// RUN: not whale-opt %s -whale-check-threads -split-input-file 2>&1 \
// RUN:   | FileCheck %s
// RUN: whale-opt %s -whale-check-threads=most=9223372036854775807 \
// RUN:   -split-input-file -o /dev/null

// Loops in loops are multiplied, those one after the other added.

module @kernels {
  // CHECK: step.py:7:3: error: a thread of the GPU would do up to 4097 elements
  // CHECK-SAME: of this one after the other: more than 4096
  func.func @added(%begin: index, %end: index)
      attributes {whale.extent = 1 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    scf.for %i = %begin to %end step %c1 {
      scf.for %j = %c0 to %c64 step %c1 {
        scf.for %k = %c0 to %c64 step %c1 {
        }
      }
      scf.for %j = %c0 to %c1 step %c1 {
      }
    }
    return
  } loc("step.py":7:3)
}

// -----

// The iterations of a kernel are those of different threads, and the threads
// of a block share out its steps.

module @kernels {
  // CHECK-NOT: error
  func.func @shared(%thread: index, %begin: index, %end: index)
      attributes {whale.extent = 100000 : i64, whale.threads = 256 : i64} {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %c100000 = arith.constant 100000 : index
    scf.for %i = %begin to %end step %c1 {
      scf.for %j = %thread to %c100000 step %c256 {
      }
    }
    return
  }

  // Runs of 32 elements of 4096: their ends are where they begin plus 32.
  func.func @runs(%begin: index, %end: index)
      attributes {whale.extent = 1 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c4096 = arith.constant 4096 : index
    scf.for %i = %begin to %end step %c1 {
      scf.for %j = %c0 to %c4096 step %c32 {
        %next = arith.addi %j, %c32 : index
        %to = arith.minui %next, %c4096 : index
        scf.for %k = %j to %to step %c1 {
        }
      }
    }
    return
  }
}

// -----

// Of tiles that all threads share, each is one.

module @kernels {
  // CHECK: step.py:8:3: error: a thread of the GPU would do up to 4097 elements
  func.func @tiles(%begin: index, %end: index)
      attributes {whale.extent = 1 : i64, whale.threads = 256 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c4097 = arith.constant 4097 : index
    scf.for %j = %c0 to %c4097 step %c1 {
      scf.for %k = %c0 to %c64 step %c1 {
      }
    } {whale.tiles}
    return
  } loc("step.py":8:3)
}

// -----

// Nothing is known of a number that is loaded.

module @kernels {
  // CHECK: error: a thread of the GPU would do an unknown number of elements
  func.func @unknown(%x: memref<1xindex>, %begin: index, %end: index)
      attributes {whale.extent = 1 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %count = memref.load %x[%c0] : memref<1xindex>
    scf.for %j = %c0 to %count step %c1 {
    }
    return
  }
}
