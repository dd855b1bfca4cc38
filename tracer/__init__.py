"""refleak: trace reference counts and allocations of unmodified processes.

`tracer.trace`, `launch`, `attach` and `read` are the library (tracer.api), imported when they are first asked for.
"""

from typing import TYPE_CHECKING

from tracer.lazy_names import __getattr__ as __getattr__

if TYPE_CHECKING:
    from tracer.api import *  # noqa: F403

__version__ = "0.2.0"
