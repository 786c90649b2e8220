whale.cluster @cluster {
  kinds = {k = {flops = {f32 = 1.0e12}, memory_bytes = 1000 : i64, memory_bandwidth = 1.0e-320}},
  nodes = [{devices = [{kind = "k"}]}]}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
