"""A target: leaks through functions that LLVM's ORC compiles, which tells of them by __register_frame alone."""

from __future__ import annotations

import ctypes

from llvmlite import binding as llvm

MODULE = """
declare i8* @malloc(i64)
define i8* @leak_NAME(i64 %n) nounwind uwtable {
  %room = alloca i8, i64 %n
  store volatile i8 1, i8* %room
  %p = call i8* @malloc(i64 %n)
  store volatile i8 2, i8* %room
  ret i8* %p
}
define i8* @enter_NAME(i64 %n) nounwind uwtable {
  %p = call i8* @leak_NAME(i64 %n)
  %q = getelementptr i8, i8* %p, i64 0
  ret i8* %q
}
"""


def leak(name: str, count: int, size: int, *, links_itself: bool) -> None:
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1, jit=True)
    compiler = llvm.create_lljit_compiler(machine, use_jit_link=links_itself)
    builder = llvm.JITLibraryBuilder().add_current_process().add_ir(MODULE.replace("NAME", name))
    tracker = builder.export_symbol(f"enter_{name}").link(compiler, name)
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(tracker[f"enter_{name}"])
    for _ in range(count):
        function(size)
    tracker.close()
    compiler.close()


llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
leak("first", 7, 10007, links_itself=False)
leak("second", 5, 10009, links_itself=True)
