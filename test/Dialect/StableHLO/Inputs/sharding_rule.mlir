module {
  func.func @g(%arg0: tensor<4x4xf32> {sdy.b = #sdy.op_sharding_rule<([i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, z_1, z_2z_1])->([]) {i=8, j=16, k=8, l=2, m=1, n=1, o=1, p=1, q=1, r=1, s=1, t=1, u=1, v=1, w=1, x=1, y=1, z=1, z_1=1, z_2=2}>, sdy.c = #sdy.sharding<@mesh, [{"a", ?}, {?}], replicated={"b"}>}) {
    return
  }
}
