"""`python -m tracer`: refleak, where its package can be imported.

An interrupt in the milliseconds before these lines is Python's own, which ends with a traceback; under the launcher,
`refleak`, it waits for them.
"""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # what was before these lines is Python's own
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # none may meet a handler that is taken away
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while modules are imported, an interrupt just ends this process
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)

from tracer.cli.main import main

sys.exit(main())
