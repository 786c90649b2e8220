// Names are bytes. Those that are no UTF-8 are escaped where JSON is written,
// and what looks like such an escape is, too.
//
// RUN: rm -rf %t && mkdir %t
// RUN: whale-compile %s --cluster=4 -o %t/p.whale --explain | FileCheck %s --check-prefix=TABLE
// TABLE: task graph '\xFF\xFE' is on devices
// TABLE: {{^}}\xFF\xFE {{ *}}split
// TABLE: {{^}}\xFF {{ *}}split
// RUN: whale-compile %s --cluster=4 -o %t/p.whale --explain=json > %t/explained.json
// RUN: whale-compile %s --cluster=4 -o %t/p.whale --explain=json --messages=json > %t/messages.json
// RUN: %python -c "import json, sys; plan = json.load(open(sys.argv[1]))['plan']; print([graph['name'] for graph in plan['task_graphs']])" %t/explained.json | FileCheck %s --check-prefix=JSON
// RUN: %python -c "import json, sys; plan = json.load(open(sys.argv[1]))['plan']; print([graph['name'] for graph in plan['task_graphs']])" %t/p.whale/manifest.json | FileCheck %s --check-prefix=JSON
// JSON: ['\\xFF\\xFE', '\\x5CxFF']
//
// RUN: %python -c "import json, sys; [json.loads(line) for line in open(sys.argv[1])]" %t/messages.json
//
// RUN: %python -c "import numpy as np, safetensors.numpy as s, sys; s.save_file({'arg0': np.ones((4, 4), np.float32), 'arg1': np.ones((4, 4), np.float32)}, sys.argv[1])" %t/in.safetensors
// RUN: whale-run %t/p.whale --inputs=%t/in.safetensors --outputs=%t/out.safetensors --trace=%t/trace.json --stats=%t/stats.json
// RUN: FileCheck %s --check-prefix=TRACE < %t/trace.json
// TRACE: "lines":["\\xE9.py:7"
// RUN: %python -c "import json, sys; [json.load(open(name)) for name in sys.argv[1:]]" %t/trace.json %t/stats.json

module {
  func.func @main(%a: tensor<4x4xf32> loc("\C3(arg"), %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.add %a, %b {whale.strategy = #whale.split<devices = 2, name = "\FF\FE">} : tensor<4x4xf32> loc("\E9.py":7:1)
    %1 = stablehlo.multiply %0, %b {whale.strategy = #whale.split<devices = 2, name = "\\xFF">} : tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}
