"""`python -m tracer`: refleak, where its package can be imported."""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while modules are imported, an interrupt just ends this process

from tracer.cli.main import main

sys.exit(main())
