module {
  sdy.mesh @mesh = <["a"=4, "b"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @m1 = <[], device_ids=[3]>
  func.func private @f(tensor<f32>, tensor<f32>) -> tensor<f32>
  func.func @g(%arg0: tensor<4x4xf32>, %arg1: tensor<2xi32>, %arg2: tensor<f32>, %arg3: !stablehlo.token, %arg4: tensor<i1>, %arg5: tensor<4x4xcomplex<f32>>, %arg6: tensor<i32>, %arg7: tensor<?x?xf32>, %arg8: tensor<4x4xi8>) {
    %0 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<4x4xf32>
    %1 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-05, ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4x4xf32>
    %2 = stablehlo.exponential %arg0 : tensor<4x4xf32>
    %3 = stablehlo.exponential %arg0 : tensor<4x4xf32>
    %4 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [0, 1] {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>} : (tensor<4x4xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    %5 = stablehlo.dynamic_iota %arg1, dim = 1 : (tensor<2xi32>) -> tensor<?x?xf32>
    %6 = stablehlo.dynamic_pad %arg0, %arg2, %arg1, %arg1, %arg1 : (tensor<4x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %7 = stablehlo.dynamic_reshape %arg0, %arg1 : (tensor<4x4xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    %8 = stablehlo.real_dynamic_slice %arg0, %arg1, %arg1, %arg1 : (tensor<4x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %9 = stablehlo.after_all %arg3, %arg3 : !stablehlo.token
    %10 = stablehlo.create_token : !stablehlo.token
    %11 = stablehlo.tuple %arg0, %arg3 : tuple<tensor<4x4xf32>, !stablehlo.token>
    %12 = stablehlo.get_tuple_element %11[0] : (tuple<tensor<4x4xf32>, !stablehlo.token>) -> tensor<4x4xf32>
    %13:2 = "stablehlo.recv"(%arg3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4x4xf32>, !stablehlo.token)
    %14 = "stablehlo.send"(%arg0, %arg3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}> : (tensor<4x4xf32>, !stablehlo.token) -> !stablehlo.token
    %15 = stablehlo.replica_id : tensor<ui32>
    %16 = stablehlo.atan2 %arg0, %arg0 : tensor<4x4xf32>
    %17 = "stablehlo.if"(%arg4) ({
      stablehlo.return %arg0 : tensor<4x4xf32>
    }, {
      stablehlo.return %arg0 : tensor<4x4xf32>
    }) : (tensor<i1>) -> tensor<4x4xf32>
    %18 = stablehlo.popcnt %arg1 : tensor<2xi32>
    %19 = stablehlo.round_nearest_afz %arg0 : tensor<4x4xf32>
    %20 = stablehlo.cholesky %arg0 : tensor<4x4xf32>
    %21 = stablehlo.cholesky %arg0, lower = true : tensor<4x4xf32>
    %22 = stablehlo.cholesky %arg0 : tensor<4x4xf32>
    %23 = "stablehlo.triangular_solve"(%arg0, %arg0) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %24 = "stablehlo.collective_broadcast"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %25 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<4x4xf32>) -> tensor<i32>
    %26 = "stablehlo.map"(%arg0, %arg0) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg9: tensor<f32>, %arg10: tensor<f32>):
      stablehlo.return %arg9 : tensor<f32>
    }) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %27 = stablehlo.reduce(%arg0 init: %arg2) across dimensions = [0, 1] {foo.bar = 1 : i32} : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
     reducer(%arg9: tensor<f32>, %arg10: tensor<f32>)  {
      %40 = stablehlo.add %arg10, %arg9 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }
    %28 = stablehlo.reduce(%arg0 init: %arg2) applies stablehlo.add across dimensions = [0, 1] {foo.bar = 1 : i32} : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
    %29 = stablehlo.while(%iterArg = %arg0) : tensor<4x4xf32> attributes {foo.bar = 1 : i32}
    cond {
      stablehlo.return %arg4 : tensor<i1>
    } do {
      stablehlo.return %iterArg : tensor<4x4xf32>
    }
    stablehlo.while()
    cond {
      stablehlo.return %arg4 : tensor<i1>
    } do {
      stablehlo.return 
    }
    stablehlo.optimization_barrier()
    %30 = stablehlo.convolution(%arg0, %arg0) dim_numbers = [b, f]x[i, o]->[b, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %31 = sdy.sharding_constraint %arg0 <@mesh, [{"a":(1)2, ?}p1, {}], replicated={"b"}, unreduced={"a":(2)2}> : tensor<4x4xf32>
    %32 = sdy.sharding_constraint %arg0 <mesh<["a"=2]>, [{"a"}, {}]> : tensor<4x4xf32>
    %33 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<4x4xf32>
    sdy.sharding_group %arg0 group_id=3 : tensor<4x4xf32>
    %34 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [] x [] {foo.bar = 1 : i32} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4x4x4xf32>
    %35 = stablehlo.dot_general %arg0, %arg0, batching_dims = [0] x [0], contracting_dims = [] x [], precision = [] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4x4xf32>
    %36 = "stablehlo.dynamic_gather"(%arg0, %arg1, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0, 1]>}> : (tensor<4x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %37 = stablehlo.select %arg4, %arg0, %arg0 : tensor<i1>, tensor<4x4xf32>
    %38 = stablehlo.add %arg7, %arg0 : (tensor<?x?xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %c = stablehlo.constant {foo.bar = 1 : i64} dense<1> : tensor<i32>
    %39 = stablehlo.custom_call @foo(%arg0) {api_version = 4 : i32, backend_config = {a = 1 : i32}, called_computations = [@f], has_side_effect = true} : (tensor<4x4xf32>) -> tuple<tensor<4xf32>>
    return
  }
}
