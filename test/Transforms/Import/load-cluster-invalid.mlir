// RUN: not whale-opt %s -whale-load-cluster=file=%S/Inputs/bad-count.json \
// RUN:   2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not whale-opt %s -whale-load-cluster=file=%S/Inputs/bad-syntax.json \
// RUN:   2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not whale-opt %s -whale-load-cluster=file=%S/Inputs/bad-kind.json \
// RUN:   2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not whale-opt %s -whale-load-cluster=file=%S/Inputs/absent.json \
// RUN:   2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not whale-opt %s -whale-load-cluster=file=%S \
// RUN:   2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not whale-opt %s -whale-load-cluster=ranks=-3 \
// RUN:   2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: not whale-opt %s -whale-load-cluster \
// RUN:   2>&1 | FileCheck %s --check-prefix=NEITHER
// RUN: not whale-opt %s "-whale-load-cluster=ranks=3 file=a.json" \
// RUN:   2>&1 | FileCheck %s --check-prefix=NEITHER
// RUN: not whale-opt %s -whale-load-cluster=ranks=3 -whale-load-cluster=ranks=3 \
// RUN:   2>&1 | FileCheck %s --check-prefix=TWICE

// COUNT: bad-count.json:5:17: error: nodes[0].devices[0].count: expected at least 1, found -8
// SYNTAX: bad-syntax.json:3:34: error: syntax error while parsing object key
// KIND: bad-kind.json:1:34: error: nodes[0].devices[0].kind: unknown kind 'V1000', known are cpu, P100-PCIe-16GB
// ABSENT: error: cannot read the cluster file '{{.*}}absent.json': No such file or directory
// FOLDER: error: cannot read the cluster file '{{.*}}': Is a directory
// RANKS: error: number of ranks: expected at least 1, found -3
// NEITHER: error: whale-load-cluster needs either a file or a number of ranks
// TWICE: error: the module has a cluster already
module {}
