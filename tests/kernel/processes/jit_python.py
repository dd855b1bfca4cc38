"""A target: leaks through functions that LLVM compiles with debug information, twice at one address if it can."""

from __future__ import annotations

import ctypes
import gc

from llvmlite import binding as llvm

MODULE = """
declare i8* @malloc(i64)
define i8* @leak_NAME(i64 %n) !dbg !4 {
  %p = call i8* @malloc(i64 %n), !dbg !7
  ret i8* %p, !dbg !8
}
define i8* @enter_NAME(i64 %n) !dbg !9 {
  %p = call i8* @leak_NAME(i64 %n), !dbg !10
  ret i8* %p, !dbg !10
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, isOptimized: false, emissionKind: FullDebug)
!1 = !DIFile(filename: "NAME.source", directory: "/nowhere")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 2, !"Dwarf Version", i32 4}
!4 = distinct !DISubprogram(name: "leak_NAME", file: !1, line: 10, type: !5, unit: !0, spFlags: DISPFlagDefinition)
!5 = !DISubroutineType(types: !6)
!6 = !{}
!7 = !DILocation(line: 11, scope: !4)
!8 = !DILocation(line: 12, scope: !4)
!9 = distinct !DISubprogram(name: "enter_NAME", file: !1, line: 20, type: !5, unit: !0, spFlags: DISPFlagDefinition)
!10 = !DILocation(line: 21, scope: !9)
"""


def leak(name: str, count: int, size: int) -> int:
    """Compile, leak, and let the code go; return where it was."""
    module = llvm.parse_assembly(MODULE.replace("NAME", name))
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    address = int(engine.get_function_address(f"enter_{name}"))
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(address)
    for _ in range(count):
        function(size)
    engine.close()
    return address


llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
first = leak("first", 7, 10007)
gc.collect()
second = leak("second", 5, 10009)
print("same address" if first == second else "two addresses")
