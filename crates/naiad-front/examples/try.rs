use naiad_front::*; use naiad_ir::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let src = naiad_diag::Source::new(&*a[1], std::fs::read_to_string(&a[1]).unwrap());
    let show = |d: &naiad_diag::Diagnostic| println!("{}\n", naiad_diag::render::human(d, naiad_diag::render::Style::PLAIN));
    let host = match file::FileHost::new(src) { Ok(h) => h, Err(d) => { show(&d); return } };
    for k in host.kernels() {
        let f = host.kernel(k).unwrap();
        let info = match inspect(&host, f) { Ok(i) => i, Err(d) => { show(&d); continue } };
        let specs: Vec<ParamSpec> = info.params.iter().map(|p| {
            
            if p.is_constexpr { if p.name.contains("ACT") { ParamSpec::Constexpr(HostValue::Str("relu".into())) } else { ParamSpec::Constexpr(HostValue::Int(32)) } }
            else if p.name.contains("ptr") || "ABC".contains(&p.name) || p.name == "lock" || p.name.ends_with("Ptr") { ParamSpec::Value(Type::pointer(Scalar::F32)) }
            else { ParamSpec::Value(Type::I32) } }).collect();
        let t = std::time::Instant::now();
        match compile(&host, f, &specs) { Ok(c) => println!("{}# {:?}", c.func, t.elapsed()), Err(d) => show(&d) }
    }
}
