"""The end of CPython's code objects: the function that frees them.

It is a local function, for which a stripped Python has no symbol. The type of code objects points to it
(Include/cpython/object.h: tp_dealloc of PyTypeObject, the same in 3.11 to 3.15).
"""

from __future__ import annotations

from tracer.architecture.current import argument
from tracer.elf.image import Image
from tracer.elf.stored_pointers import stored_pointer
from tracer.elf.symbol_table import read_symbol_table
from tracer.model.operations import FunctionSpec, Operation, Site, SiteFlag

CODE_TYPE = "PyCode_Type"
_DEALLOC = 48
"""Of tp_dealloc in PyTypeObject, bytes."""
_NAME = "code_dealloc"
"""As CPython's sources call it (Objects/codeobject.c)."""


def python_code_end(image: Image) -> Site | None:
    """Return the function that frees code objects; None where the binary has no CPython."""
    table = read_symbol_table(image)
    addresses = {symbol.address for symbol in table.find(CODE_TYPE)} if table.mentions(CODE_TYPE) else set()
    if len(addresses) != 1:
        return None
    address = stored_pointer(image, addresses.pop() + _DEALLOC)
    offset = None if address is None else image.file_offset_of(address)
    if address is None or offset is None or not image.is_code(address):
        return None
    function = FunctionSpec(_NAME, Operation.CODE_END, object=argument(0), flags=SiteFlag.ENTRY_RESULT)
    return Site(function, str(image.path), offset, address)
