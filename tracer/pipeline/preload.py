"""The library of --preload for one trace."""

from __future__ import annotations

from pathlib import Path

from tracer.capture.launch import User
from tracer.errors import UsageError
from tracer.files.cache_folder import cache_directory
from tracer.kernel.sources import bpf_directory
from tracer.model.preload_names import PreloadLibrary
from tracer.pipeline.trace_options import TraceOptions
from tracer.preload.library import is_open_to_all, preload_library

_SOURCE = Path(__file__).parent.parent / "preload"


def library_for(options: TraceOptions, user: User | None) -> PreloadLibrary | None:
    """Return the library, if the options ask for it; raises UsageError, CannotWrite. `user`: who the target becomes."""
    if not options.preload:
        return None
    library = preload_library(cache_directory(), _SOURCE, bpf_directory(), options.selection.sample_bytes)
    if user is not None and not is_open_to_all(library.path):
        raise UsageError(
            f"{user.name} may not read {library.path}, the library of --preload",
            "have REFLEAK_CACHE name a folder below those that everybody may enter, or leave --preload out",
        )
    return library
